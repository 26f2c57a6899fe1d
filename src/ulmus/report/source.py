"""The file of the training rows, for the code that refits the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pprint import pformat
from typing import TYPE_CHECKING, Any, Self

from ulmus.tables.formats import ARROW, CSV, PARQUET

if TYPE_CHECKING:
    from ulmus.tables.files import TableFile

# Functions of pandas by the format of the file.
READERS = {CSV: "read_csv", PARQUET: "read_parquet", ARROW: "read_feather"}
# The beginnings of the names of Arrow's types of dates.
DATES = ("date", "timestamp")
# Characters of a line of code.
LINE = 88


@dataclass(frozen=True)
class TableSource:
    """The file that the training rows were read from, and the roles of its columns.

    Parameters
    ----------
    path : str
        Path of the file.
    reader : str, default="read_csv"
        Function of pandas that reads it.
    options : mapping, default={}
        Keyword arguments of the reader.
    weight : str, optional
        Column of the row weights.
    locations : mapping, default={}
        Columns of the arguments ``time``, ``coords`` and ``groups`` of ``fit``.
    n_excluded : int, default=0
        Rows of the file that the fit excluded.

    Examples
    --------
    >>> from ulmus.report import TableSource
    >>> TableSource("trees.csv", options={"sep": ";"}).reading
    "pd.read_csv('trees.csv', sep=';', float_precision='round_trip')"
    """

    path: str
    reader: str = "read_csv"
    options: Mapping[str, Any] = field(default_factory=dict)
    weight: str | None = None
    locations: Mapping[str, Any] = field(default_factory=dict)
    n_excluded: int = 0

    @classmethod
    def of_file(cls, table: TableFile, **roles: Any) -> Self:
        """The source of a file that the command line has opened, with the roles of its columns."""
        options: dict[str, Any] = {}
        if table.format == CSV:
            dialect = table.dialect  # type: ignore[attr-defined]
            usual = {"sep": ",", "decimal": ".", "encoding": "utf-8"}
            found = dict(
                zip(usual, (dialect.delimiter, dialect.decimal, dialect.encoding), strict=True)
            )
            options = {k: v for k, v in found.items() if v is not None and v != usual[k]}
            if table.text_columns:
                options["dtype"] = dict.fromkeys(table.text_columns, "str")
            dates = [one.name for one in table.schema if str(one.type).startswith(DATES)]
            if dates:
                options["parse_dates"] = dates
        return cls(str(table.path), READERS[table.format], options, **roles)

    @property
    def reading(self) -> str:
        """Code that reads the file."""
        exact = {"float_precision": "round_trip"} if self.reader == "read_csv" else {}
        options = (f"{name}={value!r}" for name, value in {**self.options, **exact}.items())
        return f"pd.{self.reader}({', '.join([repr(self.path), *options])})"


def training_code(source: TableSource, names: list[str], target: str, *, as_frame: bool) -> str:
    """Code that reads the training rows as X and y, and locations and weights if there are any."""
    needed = [target, *([] if source.weight is None else [source.weight])]
    columns = pformat(names, width=LINE, compact=True)
    lines = [
        f"table = {source.reading}",
        f"table = table.dropna(subset={needed!r})",
        f"columns = {columns}".replace("\n", "\n" + " " * len("columns = ")),
        f"X, y = table[columns]{'' if as_frame else '.to_numpy()'}, table[{target!r}]",
    ]
    return "\n".join(lines)


def fit_arguments(source: TableSource) -> str:
    """Arguments of ``fit`` after X and y, from the columns of the table."""
    columns = dict(source.locations)
    if source.weight is not None:
        columns["sample_weight"] = source.weight
    parts = (f", {name}=table[{_label(column)!r}]" for name, column in columns.items())
    return "".join(parts)


def _label(column: Any) -> Any:
    if isinstance(column, tuple):
        return list(column) if len(column) > 1 else column[0]
    return column
