"""Effects of a model at the rows of a table."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ulmus.cli import options, steps
from ulmus.cli.console import Console
from ulmus.cli.steps.columns import model_columns
from ulmus.cli.steps.files import (
    numeric_column,
    require_table_output,
    sample_rows,
    write_frame,
)
from ulmus.cli.steps.printed import printed_frame
from ulmus.cli.steps.streams import CsvStream, is_standard
from ulmus.tables import Column, Schema
from ulmus.tables.cells import some

if TYPE_CHECKING:
    from ulmus.cli.steps.models import TableModel

# Computes the effects of a model at the rows of a table, with the options of all effects.
Estimand = Callable[["TableModel", Any, dict[str, Any]], Any]


def estimate(
    estimand: Estimand,
    model: Path,
    data: Path,
    effect: options.EffectOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Estimate, and print or write the result."""
    output = effect.output
    require_table_output(output, [data, model], console)
    with console.working("Estimating"):
        needed = model_columns(model, effect.missing)
        table = needed.table(data, reading, console)
        by = list(options.column_names(effect.by, table.names))
        weight = effect.weights
        columns = [*needed.schema.names, *by, *([] if weight is None else [weight])]
        frame = sample_rows(table, list(dict.fromkeys(columns)), console)
        rows, _ = needed.complete_rows(frame, table.path, console)
        how = {
            "by": by or None,
            "weights": weight and numeric_column(weight, rows, (), 0, "the weight"),
            "confidence_level": effect.confidence_level,
            "target": effect.interval_target.value,
            "scale": effect.scale.value,
            "simultaneous": effect.simultaneous,
            "hypothesis": effect.hypothesis,
            "adjust": effect.adjust,
        }
        result = estimand(steps.models.load_model(model, needed), rows, how)
    facts = {
        "output": output,
        "rows": len(rows),
        "effects": result.to_dict("records"),
        "joint_tests": result.attrs.get("wald"),
    }
    text = printed_frame(result)
    if is_standard(output):
        CsvStream().write_table(pa.Table.from_pandas(result, preserve_index=False))
        text = ""
    elif output is not None:
        write_frame(output, result)
        text = f"Wrote {output}."
    console.result(text, facts)


def contrasts(schema: Schema, variables: list[str]) -> dict[str, Any]:
    """The argument ``variables`` of ``compare``, from options such as ``t=10,20`` or ``t,site``."""
    columns = {column.name: column for column in schema.columns}
    found: dict[str, Any] = {}
    for name, text in (pair for argument in variables for pair in _terms(argument, columns)):
        require_column(schema, name)
        if name in found:
            text = f"--variables names {name} twice; give all values at once, as in {name}=1,2,3"
            raise ValueError(f"{text}, or run the command for each contrast.")
        found[name] = None if text is None else _values(columns[name], text)
    return found


def require_column(schema: Schema, name: str, option: str = "--variables") -> None:
    """Refuse a name that is not a column of the model, with a similar one that is."""
    if name in schema.names:
        return
    starting = [one for one in schema.names if name and one.startswith(name)]
    similar = starting or difflib.get_close_matches(name, schema.names, n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else "."
    names = some(list(schema.names), 20)
    text = f"{option} names {name!r}, which is not a column of the model{hint}"
    raise ValueError(f"{text} Its columns are {names}.")


def _terms(text: str, columns: Mapping[str, Column]) -> list[tuple[str, str | None]]:
    """Columns, each with the text of its values, from ``a=1,2,b=3`` or ``a,b``.

    Names may contain commas and equals signs themselves: of several readings, the longest name of a
    column counts. What is neither a name nor starts with one belongs to the values before it.
    """
    terms: list[tuple[str, str | None]] = []
    while text:
        starts = (
            name for name in columns if text == name or text.startswith((f"{name}=", f"{name},"))
        )
        name = max(starts, key=len, default="")
        last, values = terms[-1] if terms else ("", None)
        part, rest = _first_part(text)
        if values is not None and (not name or _is_category(columns.get(last), part)):
            terms[-1], text = (last, f"{values},{part}"), rest
            continue
        if not name:
            name = part.partition("=")[0]
        text = text[len(name) :]
        values = None
        if text.startswith("="):
            values, text = _first_part(text[1:])
        else:
            text = text[1:].lstrip()
        terms.append((name, values))
    return terms


def _is_category(column: Column | None, text: str) -> bool:
    """Whether a text is a category of a column."""
    if column is None or not column.categorical:
        return False
    try:
        column.parse_text(text.strip(' "'))
    except ValueError:
        return False
    return True


def _first_part(text: str) -> tuple[str, str]:
    """The text before the first comma that is not in double quotes, and the rest."""
    quoted = False
    for i, sign in enumerate(text):
        quoted ^= sign == '"'
        if sign == "," and not quoted:
            return text[:i], text[i + 1 :].lstrip()
    return text, ""


def _values(column: Column, text: str) -> Any:
    """The values of a column to compare, or a step of a number."""
    try:
        values = [column.parse_text(value) for value in options.split(text)]
    except ValueError as error:
        raise ValueError(f"--variables {column.name}: {error}") from error
    if column.categorical:
        return values
    return values[0] if len(values) == 1 else tuple(values)
