"""Arguments and options that several commands share, each defined once."""

from __future__ import annotations

import csv
import functools
import inspect
import io
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ulmus.cli.console import Console


class Unknown(StrEnum):
    """What happens to categories that no training row has."""

    average = "average"
    error = "error"


class Missing(StrEnum):
    """The rule for rows with missing values."""

    error = "error"
    drop = "drop"
    impute = "impute"


class IntervalTarget(StrEnum):
    """What a confidence interval covers."""

    function = "function"
    expectation = "expectation"


class Comparison(StrEnum):
    """How two averages are compared."""

    difference = "difference"
    ratio = "ratio"


class Scale(StrEnum):
    """Scale of effects: that of the target, or of the regression."""

    response = "response"
    link = "link"


# An option that names columns, and options of a panel of the help.
columns_option = functools.partial(typer.Option, metavar="COLUMNS")
_csv = functools.partial(typer.Option, rich_help_panel="Reading CSV")

TABLE_HELP = "Table: .csv, .csv.gz, .parquet, .arrow or .feather, or `-` for CSV on standard input."
Data = Annotated[Path, typer.Argument(metavar="TABLE", help=TABLE_HELP)]
OptionalData = Annotated[
    Path | None, typer.Argument(metavar="TABLE", show_default=False, help=TABLE_HELP)
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by `ulmus fit` or `save`.")
]
Target = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Observed column (default: the target of the model)."),
]
ConfidenceLevel = Annotated[float, typer.Option(help="Level of intervals, between 0 and 1.")]
MissingRule = Annotated[
    Missing | None,
    typer.Option(help="Rows with missing values (default: as when the model was fitted)."),
]

NewWeight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the weights of the new rows (default: that of the fit, if there is one).",
    ),
]


@dataclass(frozen=True)
class MessageOptions:
    """Where messages and results are printed."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")] = (
        False
    )


@dataclass(frozen=True)
class ReadingOptions:
    """Format of a CSV file."""

    delimiter: Annotated[str | None, _csv(help="Column delimiter (default: detected).")] = None
    decimal: Annotated[str | None, _csv(help="Decimal separator (default: detected).")] = None
    encoding: Annotated[str, _csv(help="Text encoding.")] = "utf-8"


@dataclass(frozen=True)
class EffectOptions:
    """Options of all commands that estimate effects."""

    by: Annotated[list[str] | None, columns_option(help="Columns that define groups.")] = None
    confidence_level: ConfidenceLevel = 0.95
    interval_target: Annotated[IntervalTarget, typer.Option(help="What the intervals cover.")] = (
        IntervalTarget.expectation
    )
    scale: Annotated[
        Scale,
        typer.Option(help="Effects on the target, or on its transformed values or log counts."),
    ] = Scale.response
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Simultaneous intervals for all rows.")
    ] = False
    hypothesis: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Differences between the rows of the result: pairwise, or equal (a joint test).",
        ),
    ] = None
    adjust: Annotated[
        str | None, typer.Option(metavar="NAME", help="Adjustment of the p-values: holm.")
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the weights of the rows in averages."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Table to write, `-` for CSV (default: print it)."),
    ] = None
    missing: MissingRule = None


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are one line, and whose groups of options are single options.

    A parameter that is annotated by a dataclass stands for the fields of that class. The parameter
    ``console`` stands for the options of messages.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    groups["console"] = MessageOptions
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        parameters += (
            [_keyword(field.name, field.default, groups[name]) for field in fields(groups[name])]
            if name in groups
            else [_keyword(name, parameter.default, function)]
        )

    @functools.wraps(function)
    def run(**arguments: Any) -> None:
        grouped = {
            name: group(**{field.name: arguments.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        messages = grouped.pop("console")
        console = Console(function.__name__, messages.quiet, messages.json)
        with console.handle_errors():
            _require_inputs(arguments.get("model"), arguments.get("data"))
            function(**arguments, **grouped, console=console)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _keyword(name: str, default: Any, owner: Any) -> inspect.Parameter:
    """A parameter of a function, or a field of a class, as a keyword parameter."""
    annotation = get_type_hints(owner, include_extras=True)[name]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _require_inputs(model: Path | None, data: Path | None) -> None:
    """Refuse files that do not exist before anything is loaded to read them."""
    if model is not None and not model.exists():
        raise ValueError(f"{str(model)!r} does not exist; give the name of a model file.")
    if data is not None and str(data) != "-" and not data.exists():
        raise ValueError(f"{data} does not exist; check the name.")


def number_or_name(text: str) -> Any:
    """The value of a parameter that is a number or a name; ``none``, as messages say, is None."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return None if text.lower() == "none" else text


def names_or_none(arguments: list[str] | None) -> Any:
    """One name, or several from repeated options or separated by commas; ``none`` is None."""
    names = [number_or_name(name) for name in column_names(arguments)]
    return names[0] if len(names) == 1 else names


def column_names(arguments: list[str] | None, columns: Collection[str] = ()) -> tuple[str, ...]:
    """Names from repeated options or separated by commas; the name of a column stays whole."""
    parts = ([text] if text in columns else split(text) for text in arguments or ())
    return tuple(name for names in parts for name in names)


def split(text: str) -> list[str]:
    """The parts of a text between commas, except for commas in double quotes."""
    lines = csv.reader(io.StringIO(text), skipinitialspace=True)
    return [part.strip() for line in lines for part in line if part.strip()]
