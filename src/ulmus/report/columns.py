"""What the data are: a description of each column of a table, and of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.report.numbers import number

FloatArray = npt.NDArray[np.float64]

NUMBERS, TRUTH, DATES, CATEGORIES = "numbers", "yes or no", "dates", "categories"
# Categories that are listed by name, and letters of a name.
MOST_LISTED, LONGEST = 5, 40


@dataclass(frozen=True)
class Column:
    """One input of a table.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        What it holds.
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
class Target:
    """What is predicted.

    Parameters
    ----------
    name : str
        Its name.
    values : ndarray of shape (n,)
        What was observed.
    """

    name: str
    values: FloatArray

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to explain."""
        return bool(np.ptp(self.values) == 0)


def column_kind(values: Any) -> str:
    """What a column of a data frame holds."""
    kind = getattr(values.dtype, "kind", "O")
    if kind == "b" or str(values.dtype) == "boolean":
        return TRUTH
    if kind in "iuf":
        return NUMBERS
    return DATES if kind in "mM" else CATEGORIES


def described(table: Any) -> tuple[Column, ...]:
    """A description of every column of a data frame."""
    return tuple(
        _column(str(name), table.iloc[:, j]) for j, name in enumerate(map(str, table.columns))
    )


def _column(name: str, values: Any) -> Column:
    missing, kind = int(values.isna().sum()), column_kind(values)
    known = values.dropna()
    if len(known) == 0:
        return Column(name, kind, "no values", missing)
    if kind == NUMBERS:
        low, middle, high = (float(v) for v in np.quantile(known.astype(float), [0, 0.5, 1]))
        text = f"{number(low)} to {number(high)}, median {number(middle)}"
        return Column(name, kind, text if high > low else f"always {number(low)}", missing)
    if kind == DATES:
        return Column(name, kind, f"{known.min()} to {known.max()}", missing)
    counts = known.astype(str).value_counts()
    listed = [f"{_short(label)} ({count})" for label, count in counts.iloc[:MOST_LISTED].items()]
    more = len(counts) - len(listed)
    text = ", ".join(listed) + (f" and {more} more" if more else "")
    return Column(name, kind, text, missing)


def _short(label: Any) -> str:
    text = str(label)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
