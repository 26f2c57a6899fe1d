"""The controls of a page: one for each column, with its range, its categories and its encoding.

``columns.js`` encodes the values of controls as the inputs of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.diagnostics.relevance import grouped_relevance
from ulmus.tables import (
    BooleanColumn,
    Column,
    DateColumn,
    NumberColumn,
    Schema,
    TargetEncodedColumn,
    TimeColumn,
)
from ulmus.tables.columns import DayColumn, DurationColumn

# A range of whole numbers up to this has steps of one.
MOST_STEPS = 2000
SECOND = 1 / 86400
# Steps of dates: a day, an hour, a minute. The range has at least so many of a larger one.
DATE_STEPS = (1.0, 1 / 24, 1 / 1440)
FEWEST_STEPS = 50
# With at most so many distinct values, a slider moves between these.
MOST_VALUES = 12
MISSING = "(missing)"


@dataclass(frozen=True)
class Columns:
    """The columns of a model and the inputs that encode them."""

    columns: tuple[Column, ...]

    @property
    def starts(self) -> np.ndarray:
        """First input of each column, and the number of all inputs at the end."""
        return np.cumsum([0, *(len(column.features) for column in self.columns)])

    @property
    def groups(self) -> list[int]:
        """The column of each input."""
        return [j for j, column in enumerate(self.columns) for _ in column.features]

    def inputs(self, j: int, X: np.ndarray) -> np.ndarray:
        """Inputs of a column, (n, features), among those of rows X (n, d)."""
        return X[:, self.starts[j] : self.starts[j + 1]]

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Codes of the cells that the rows X (n, d) encode, NaN where unknown, (n, columns)."""
        each = (_codes(column, self.inputs(j, X)) for j, column in enumerate(self.columns))
        return np.stack(list(each), axis=1)

    def fit_single(self, codes: np.ndarray) -> bool:
        """Whether single precision does not change what codes (n, columns) are shown as."""
        errors = np.nan_to_num(np.abs(codes.astype("f4") - codes)).max(axis=0, initial=0.0)
        ranges = np.ptp(np.nan_to_num(codes), axis=0) if len(codes) else np.zeros_like(errors)
        days = [isinstance(column, DayColumn) for column in self.columns]
        return bool(np.all(errors <= np.where(days, SECOND / 2, 1e-4 * ranges)))


def model_columns(schema: Schema | None, names: list[str]) -> Columns:
    """The columns of a schema, or numbers of these names."""
    if schema is None:
        return Columns(tuple(NumberColumn(name) for name in names))
    return Columns(schema.columns)


def _codes(column: Column, E: np.ndarray) -> np.ndarray:
    """Codes (n,) of the inputs E (n, features) of a column: numbers, or positions in a menu."""
    missing = column.indicates_missing
    if not column.categorical:
        return np.where(E[:, 1] > 0.5, np.nan, E[:, 0]) if missing else E[:, 0].astype(float)
    if isinstance(column, TargetEncodedColumn):  # training rows are encoded without their fold
        return np.full(len(E), np.nan)
    distance = np.abs(E[:, None, :] - category_inputs(column)[None]).sum(axis=2)
    return np.argmin(distance, axis=1).astype(float)


def category_inputs(column: Any) -> np.ndarray:
    """Inputs of each category, and of a missing cell if training rows had any, (L, features)."""
    codes = np.arange(len(column.categories), dtype=float)
    E = column.encode(np.append(codes, np.nan) if column.indicates_missing else codes)
    medians = column.encode(np.array([column.fill_code]))
    return np.where(np.isnan(E), medians, E)


# ------------------------------------------------------------ controls


def controls(
    columns: Columns, fit: Fit, codes: np.ndarray | None, start: np.ndarray
) -> list[dict[str, Any]]:
    """Each column's control; ``codes`` are those of training rows, if known."""
    found = grouped_relevance(fit, columns.groups, len(columns.columns))
    out = []
    for j, column in enumerate(columns.columns):
        relevance = None if found is None else [float(found[0][j]), float(found[1][j])]
        common = {"name": column.name, "start": float(start[j]), "relevance": relevance}
        common["shown"] = not isinstance(column, TargetEncodedColumn)
        if column.categorical:
            out.append(common | _menu(column))
            continue
        at = columns.starts[j]
        low, high = float(fit.scale.low[at]), float(fit.scale.high[at])
        known = None if codes is None else codes[:, j]
        out.append(common | _number(column, low, high, known))
    return out


def _menu(column: Any) -> dict[str, Any]:
    labels = [*column.categories, *([MISSING] if column.indicates_missing else [])]
    inputs = [[float(f"{a:.12g}") for a in row] for row in category_inputs(column)]
    # The last label, if the column has missing cells; a category may have the same name.
    missing = bool(column.indicates_missing)
    return {"kind": "category", "labels": labels, "missing": missing, "inputs": inputs}


def _number(column: Column, low: float, high: float, codes: np.ndarray | None) -> dict[str, Any]:
    control: dict[str, Any] = {"kind": "number", "low": low, "high": high}
    control["missing"] = column.indicates_missing
    if isinstance(column, BooleanColumn):
        return control | {"kind": "boolean"}
    if isinstance(column, (DateColumn, DurationColumn, TimeColumn)):
        control["seasons"] = list(column.seasons)
    if isinstance(column, DateColumn):
        return control | {"kind": "date", "step": _date_step(column, low, high, codes)}
    if isinstance(column, TimeColumn):
        return control | {"kind": "time", "step": 1 / 1440}
    return control | {"step": _step(low, high, codes), "values": _values(codes)}


def _date_step(column: DateColumn, low: float, high: float, codes: np.ndarray | None) -> float:
    """Step of a slider in days: of whole days, hours of a season, or as the range permits."""
    values = np.array([low, high]) if codes is None else codes[np.isfinite(codes)]
    if np.all(values == np.round(values)):
        return 1.0
    steps = DATE_STEPS[1:] if "day" in column.seasons else DATE_STEPS
    return next((step for step in steps[:-1] if high - low >= FEWEST_STEPS * step), steps[-1])


def _values(codes: np.ndarray | None) -> list[float] | None:
    """The distinct values of a column, if they are few."""
    if codes is None:
        return None
    values = np.unique(codes[np.isfinite(codes)])
    return values.tolist() if len(values) <= MOST_VALUES else None


def _step(low: float, high: float, codes: np.ndarray | None) -> float:
    """Step of a slider: one for whole numbers, else about a 200th of the range."""
    if not high > low:
        return 1.0
    values = np.array([low, high]) if codes is None else codes[np.isfinite(codes)]
    if codes is not None and high - low <= MOST_STEPS and np.all(values == np.round(values)):
        return 1.0
    rough = (high - low) / 200
    power = 10.0 ** np.floor(np.log10(rough))
    return float(power * min((1, 2, 5, 10), key=lambda a: abs(np.log(a * power / rough))))
