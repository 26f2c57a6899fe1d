"""Figures of a model: the displays of ``ulmus.plot``, drawn into files."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulmus.atomic_write import atomic_write
from ulmus.cli.console import Console
from ulmus.cli.options import Missing, ReadingOptions, column_names
from ulmus.cli.steps.columns import ModelColumns, model_columns
from ulmus.cli.steps.diagnostics import brief_summary
from ulmus.cli.steps.effects import require_column
from ulmus.cli.steps.files import sample_rows
from ulmus.cli.steps.models import load_model

# The most curves of a figure that names no columns.
MOST_CURVES = 6
# The least relevance of a column that is drawn without being named.
LEAST_SHARE = 0.005
DOTS_PER_INCH = 150
# Displays that need no table, and those that need the target.
WITHOUT_TABLE, WITH_TARGET = ("relevance", "residuals"), ("calibration",)


@dataclass(frozen=True)
class Request:
    """The figure that the options ask for."""

    display: str | None
    features: list[str] | None
    given: dict[str, Any]  # options of the display that were given
    target: str | None
    missing: Missing | None


def draw(
    request: Request,
    path: Path,
    data: Path | None,
    output: Path,
    reading: ReadingOptions,
    console: Console,
) -> dict[str, Any]:
    """Draw a figure, write it, and return its facts."""
    if data is None and request.display not in (None, *WITHOUT_TABLE):
        text = f"--display {request.display} needs a table"
        raise ValueError(f"{text}; give it after the model, as in `plot {path} TABLE`.")
    if data is not None and request.display in WITHOUT_TABLE:
        console.note(f"--display {request.display} is of the training rows; {data} is not used.")
        data = None
    columns = model_columns(path, request.missing)
    with console.working("Reading"):
        rows, y = (None, None) if data is None else _rows(request, columns, data, reading, console)
        model = load_model(path, columns).estimator
    display = request.display or _default_display(model, rows)
    arguments: dict[str, Any] = {} if display in WITHOUT_TABLE else {"X": rows}
    if display in ("calibration", "prediction"):
        arguments["y"] = y
    features = list(column_names(request.features, columns.schema.names))
    _require_columns(columns, features)
    with console.working(f"Drawing {output}"):
        figure = _figure(display, model, arguments, features, request.given, columns)
        with atomic_write(output) as temporary:
            figure.savefig(temporary, dpi=DOTS_PER_INCH, bbox_inches="tight")
    return {"display": display, "features": features}


def _rows(
    request: Request, columns: ModelColumns, data: Path, reading: ReadingOptions, console: Console
) -> tuple[Any, Any]:
    """Rows of the table, and their target if the display shows it."""
    table = columns.table(data, reading, console)
    name = columns.target if request.target is None else request.target
    if request.display in WITH_TARGET:
        if name is None:
            raise ValueError("the model file does not name its target; give it with --target.")
        table.require([name])
    if request.display not in (*WITH_TARGET, "prediction"):
        frame = sample_rows(table, list(columns.schema.names), console)
        return columns.complete_rows(frame, table.path, console)
    rows, y, _ = columns.observed_rows(table, name, None, console)
    return rows, y


def _default_display(model: Any, rows: Any) -> str:
    if rows is not None:
        return "partial-dependence"
    return "relevance" if hasattr(model, "feature_relevance_") else "residuals"


def _figure(
    display: str,
    model: Any,
    arguments: dict[str, Any],
    features: list[str],
    given: dict[str, Any],
    columns: ModelColumns,
) -> Any:
    """The figure of a display, with the options that it has."""
    import matplotlib as mpl

    mpl.use("Agg")
    from ulmus import plot

    found = getattr(plot, f"{display.title().replace('-', '')}Display")
    known = inspect.signature(found.from_estimator).parameters
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        option = f"--{unknown.replace('_', '-')}"
        raise ValueError(f"--display {display} has no {option}; leave it out.")
    if "features" in known:
        arguments["features"] = features or _most_relevant(model, columns)
    elif "feature" in known and features:
        if len(features) > 1:
            text = f"--display {display} draws one column, got {', '.join(features)}"
            raise ValueError(f"{text}; run the command for each of them.")
        arguments["feature"] = features[0]
    elif features:
        raise ValueError(f"--display {display} has no --features; leave it out.")
    elif "feature" in known and known["feature"].default is inspect.Parameter.empty:
        arguments["feature"] = _most_relevant(model, columns, continuous=True)[0]
    if "y_name" in known and columns.target is not None:
        arguments["y_name"] = columns.target
    return found.from_estimator(model, **arguments, **given).figure_


def _most_relevant(model: Any, columns: ModelColumns, *, continuous: bool = False) -> list[str]:
    """The columns with the largest relevance above zero, or the first ones without any."""
    schema = columns.schema
    names = schema.continuous if continuous else schema.names
    if not names:
        raise ValueError("the model has no column of numbers or dates, and no slope.")
    relevance = brief_summary(model).relevance
    relevant = [one.name for one in relevance if one.share > LEAST_SHARE and one.name in names]
    return (relevant or list(names))[:MOST_CURVES]


def _require_columns(columns: ModelColumns, features: list[str]) -> None:
    """Refuse names of no column of the model."""
    for name in features:
        require_column(columns.schema, name, "--features")
