"""``ulmus reproduce``: the paper's tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from joblib import cpu_count
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ulmus.experiments import figures, selection, tables
from ulmus.experiments.runs import Options, Result, simulated
from ulmus.experiments.runs import Progress as ProgressBars
from ulmus.experiments.settings import (
    FIGURES,
    PAPER_ENSEMBLES,
    PAPER_REPLICATIONS,
    STUDIES,
    TABLES,
)

QUICK_REPLICATIONS, QUICK_ENSEMBLES = 100, 500

Target = Enum(  # type: ignore[misc]
    "Target", {name: name for name in (*TABLES, *FIGURES, "selection", "all")}, type=str
)


def reproduce(
    target: Annotated[Target, typer.Argument(help="What to reproduce.")],
    replications: Annotated[
        int | None, typer.Option(min=2, help=f"Replications [{PAPER_REPLICATIONS}].")
    ] = None,
    ensembles: Annotated[
        int | None, typer.Option(min=2, help=f"Ensembles of the truth [{PAPER_ENSEMBLES}].")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help=f"{QUICK_REPLICATIONS} replications, {QUICK_ENSEMBLES} ensembles.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes [all cores].")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device, such as cuda.")] = None,
    precision: Annotated[
        str, typer.Option(help="Of the large products: float32 or float64.")
    ] = "float32",
    output: Annotated[
        Path, typer.Option(help="Folder of the results; a run continues what it finds there.")
    ] = Path("reproduction"),
    json: Annotated[
        Path | None, typer.Option(help="File for the numbers of the tables, as JSON.")
    ] = None,
) -> None:
    """Reproduce a table, a figure, or everything, with the paper's own numbers beside."""
    console = Console(width=None if Console().is_terminal else 200)
    try:
        options = Options(
            replications or (QUICK_REPLICATIONS if quick else PAPER_REPLICATIONS),
            ensembles or (QUICK_ENSEMBLES if quick else PAPER_ENSEMBLES),
            seed,
            jobs or cpu_count(),
            device,
            precision,
            output,
            progress_bars(console),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    wanted = [*TABLES, *FIGURES, "selection"] if target.value == "all" else [target.value]
    results = simulated_results(wanted, options)
    found: list[tables.Record] = []
    for name in wanted:
        if name in TABLES:
            found += _table(name, results, options, console)
        elif name in FIGURES:
            _figure(name, results, output, console)
        else:
            console.print(_choices(selection.choices(options)))
    if json is not None:
        tables.write_json(found, json)
        console.print(f"wrote {json}")


def simulated_results(wanted: list[str], options: Options) -> dict[str, Result]:
    """Every study that is wanted, once."""
    names = [column.study for name in wanted for column in TABLES.get(name, ())]
    names += [study for name in wanted for study in FIGURES.get(name, ())]
    return {name: simulated(STUDIES[name], options) for name in dict.fromkeys(names)}


def progress_bars(console: Console) -> ProgressBars:
    """Progress bars on a console; what is not a terminal gets none."""

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        hidden = not console.is_terminal
        with Progress(*columns, console=console, disable=hidden, transient=True) as progress:
            task = progress.add_task(title, total=total)
            yield lambda steps: progress.advance(task, steps)

    return bar


def _table(
    name: str, results: dict[str, Result], options: Options, console: Console
) -> list[tables.Record]:
    found = tables.records(name, results)
    console.print(tables.printed_table(name, found, options))
    assert options.output is not None
    for suffix, write in (("csv", tables.write_csv), ("json", tables.write_json)):
        path = options.output / f"{name}.{suffix}"
        write(found, path)
        console.print(f"wrote {path}")
    return found


def _figure(name: str, results: dict[str, Result], output: Path, console: Console) -> None:
    for path in figures.write_figure(name, results, output):
        console.print(f"wrote {path}")


def _choices(found: list[selection.Choice]) -> Table:
    table = Table(title="Hyper-parameters: by the mean score, of single data sets, the paper's")
    for title in ("study", "parameter", "score", "by mean", "median", "quartiles", "paper"):
        table.add_column(title)
    for c in found:
        name = f"{c.parameter} (N = {c.n_neurons})" if c.parameter == "alpha" else c.parameter
        quartiles = f"{c.lower:.3g} to {c.upper:.3g}"
        values = (f"{c.by_mean:.3g}", f"{c.median:.3g}", quartiles, f"{c.paper:.3g}")
        table.add_row(c.study, name, c.score, *values)
    return table
