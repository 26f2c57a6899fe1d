"""``ulmus report``: an HTML page about a model and a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ulmus.cli import options
from ulmus.cli.models import Known, known_model
from ulmus.cli.outputs import require_place
from ulmus.cli.tables import Reading, TableFile
from ulmus.cli.talk import Talk, counted_rows
from ulmus.cli.training import numeric_column

# Larger tables are reported on by so many of their rows.
MOST_ROWS = 200_000


def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML page to write.")],
    target: Annotated[
        str | None,
        typer.Option(help="Observed column; by default, the one that the model was fitted to."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    missing: options.MissingRule = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write a page about a model: how good it is, whether its error bars are honest, what matters.

    With the table that the model was fitted to, every row is judged as if it had been left out.
    Another table with the target in it is an honest test.

    ```
    ulmus report model.ulmus table.csv -o report.html
    ulmus report model.ulmus new.csv -o report.html --title "Ozone, 2026"
    ```
    """
    talk = Talk(quiet, json)
    with talk.politely():
        require_place(output, [".html", ".htm"], inputs=[data, model])
        from ulmus.report import write_report

        with talk.working("Reading"):
            known = known_model(model, missing and missing.value)
            table = known.table(data, Reading(delimiter, decimal, encoding), talk)
            name = known.target if target is None else target
            tidy, y = observed_rows(known, table, name, talk)
        with talk.working(f"Writing {output}"):
            write_report(known.model, tidy, y, output, title=title, target=name or "y")
        facts = {"output": output, "rows": len(tidy), "observed": y is not None}
        talk.result(f"Wrote {output}.", facts)


def observed_rows(
    known: Known, table: TableFile, target: str | None, talk: Talk
) -> tuple[Any, np.ndarray | None]:
    """Complete rows of a table and, where it has the target, what was observed there."""
    columns = list(known.schema.names)
    if target is not None and target in table.names:
        columns.append(target)
    else:
        talk.note(f"{table.path} has no column {target!r}: nothing observed to compare with.")
        target = None
    frame = some_rows(table, columns, talk)
    y = None
    if target is not None:
        y = numeric_column(target, frame, known.schema.marks, 0, "the target")
    return tidied_rows(known, frame, table.path, talk, y, gaps=True)


def tidied_rows(
    known: Known,
    frame: Any,
    path: Path,
    talk: Talk,
    y: np.ndarray | None = None,
    *,
    gaps: bool = False,
) -> tuple[Any, np.ndarray | None]:
    """Rows that a model can be asked about and, where it was observed, their target."""
    tidy, kept = known.schema.tidied(frame, gaps=gaps)
    if y is not None:
        y = y[kept]
        tidy, y = tidy[~np.isnan(y)], y[~np.isnan(y)]
    if not len(tidy):
        raise ValueError(f"{path} has no complete rows.")
    if len(tidy) < len(frame):
        talk.note(f"Left out: {counted_rows(len(frame) - len(tidy))} with missing values.")
    return tidy, y


def some_rows(table: TableFile, columns: Sequence[str], talk: Talk) -> Any:
    """All rows of a table, or so many of a large one, evenly spread."""
    import pandas as pd

    if not table.is_large:
        return table.frame(columns)
    step, start, n_kept, parts = 1, 0, 0, []
    for frame in table.frames(columns):
        parts.append(
            frame.set_axis(np.arange(start, start + len(frame))).iloc[-start % step :: step]
        )
        start, n_kept = start + len(frame), n_kept + len(parts[-1])
        while n_kept > MOST_ROWS:
            step *= 2
            parts = [part[part.index % step == 0] for part in parts]
            n_kept = sum(map(len, parts))
    talk.note(f"{table.path} is large: {n_kept:,} of its {start:,} rows are used, evenly spread.")
    rows = pd.concat(parts)
    return rows.set_axis(rows.index + 1)
