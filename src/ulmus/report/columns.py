"""Summaries of the columns of a table, and the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.plot._relevance import shortened
from ulmus.report.numbers import number

FloatArray = npt.NDArray[np.float64]

NUMBERS, BOOLEANS, DATES, CATEGORIES = "numbers", "boolean", "dates", "categories"
# Categories that are listed by name.
MOST_LISTED = 5


@dataclass(frozen=True)
class ColumnSummary:
    """Type and values of one input.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        Type of its values.
    values : str
        Its range, or its most frequent categories with their counts.
    missing : int
        Rows without a value.
    """

    name: str
    kind: str
    values: str
    missing: int


@dataclass(frozen=True)
class ObservedTarget:
    """Observations of the target.

    Parameters
    ----------
    name : str
        Its name.
    values : ndarray of shape (n,)
        Observations.
    """

    name: str
    values: FloatArray

    @property
    def is_constant(self) -> bool:
        """Whether all values are equal."""
        return bool(np.ptp(self.values) == 0)


def column_kind(values: Any) -> str:
    """Type of the values of a column of a data frame."""
    kind = getattr(values.dtype, "kind", "O")
    if kind == "b" or str(values.dtype) == "boolean":
        return BOOLEANS
    if kind in "iuf":
        return NUMBERS
    return DATES if kind in "mM" else CATEGORIES


def column_summaries(table: Any) -> tuple[ColumnSummary, ...]:
    """Summary of every column of a data frame."""
    return tuple(
        _column(str(name), table.iloc[:, j]) for j, name in enumerate(map(str, table.columns))
    )


def _column(name: str, values: Any) -> ColumnSummary:
    missing, kind = int(values.isna().sum()), column_kind(values)
    present = values.dropna()
    if len(present) == 0:
        return ColumnSummary(name, kind, "no values", missing)
    if kind == NUMBERS:
        low, middle, high = (float(v) for v in np.quantile(present.astype(float), [0, 0.5, 1]))
        text = f"{number(low)} to {number(high)}, median {number(middle)}"
        return ColumnSummary(name, kind, text if high > low else f"always {number(low)}", missing)
    if kind == DATES:
        return ColumnSummary(name, kind, f"{present.min()} to {present.max()}", missing)
    counts = present.astype(str).value_counts()
    listed = [
        f"{shortened(str(label))} ({count})" for label, count in counts.iloc[:MOST_LISTED].items()
    ]
    more = len(counts) - len(listed)
    text = ", ".join(listed) + (f" and {more} more" if more else "")
    return ColumnSummary(name, kind, text, missing)
