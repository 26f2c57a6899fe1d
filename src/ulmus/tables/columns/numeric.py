"""Columns with one number per cell: numbers and booleans."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ulmus.tables.cells import BOOLEANS, LEADING_ZERO, Cells, number_of, text_of
from ulmus.tables.columns.base import Column, missing_feature
from ulmus.tables.columns.statistics import NumericStatistics


@dataclass(frozen=True)
class NumericColumn(Column):
    """A column with one number per cell, which is its code and its first input."""

    fill: float = 0.0

    @classmethod
    @abstractmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """One number per cell, NaN where missing."""

    @classmethod
    def statistics(cls) -> NumericStatistics:
        """Range and median."""
        return NumericStatistics(cls.parse)

    @classmethod
    def from_statistics(cls, name: str, statistics: NumericStatistics) -> Self:
        """A column with the median of the first values."""
        fill = float(np.median(statistics.values))
        return cls(name, fill, n_missing=statistics.n_missing)

    @property
    def features(self) -> tuple[str, ...]:
        """The number, and an indicator of missing cells if training rows have any."""
        return (self.name, missing_feature(self.name)) if self.indicates_missing else (self.name,)

    @property
    def fill_code(self) -> float:
        """The median."""
        return float(self.fill)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Numbers, NaN where missing, and indicators of missing cells, shape (n, features)."""
        inputs = [codes, np.isnan(codes)] if self.indicates_missing else [codes]
        return np.stack(inputs, axis=1).astype(float)

    def parse_text(self, text: str) -> float | str:
        """The number that a text is, or the text."""
        number = number_of(text)
        return text if number is None else number


class NumberColumn(NumericColumn):
    """A column of numbers.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median, which replaces missing cells if the other columns do not predict them.

    Examples
    --------
    >>> from ulmus.tables import NumberColumn
    >>> NumberColumn("t").describe()
    {'type': 'number', 'name': 't', 'n_missing': 0, 'fill': 0.0}
    """

    type_name, plural, continuous = "number", "numbers", True

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Integers and floats."""
        import pandas as pd

        return dtype.kind != "b" and bool(pd.api.types.is_numeric_dtype(dtype))

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Texts of which at least 80 % are numbers; the others are then errors.

        Texts of digits that start with zero, such as 00123, are names.
        """
        texts = [text_of(value) for value in values]
        if any(LEADING_ZERO.fullmatch(text) for text in texts):
            return False
        return bool(np.mean([number_of(text) is not None for text in texts]) >= 0.8)

    @classmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """The numbers."""
        return cells.numbers()

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """Range and median."""
        low, median, high = map(float, np.quantile(values.astype(float), [0, 0.5, 1]))
        if not high > low:
            return f"always {show(low)}"
        return f"{show(low)} to {show(high)}, median {show(median)}"


class BooleanColumn(NumericColumn):
    """A column of booleans, encoded as 0 and 1.

    Parameters
    ----------
    name : str
        Name of the column.
    fill : float
        Median, which replaces missing cells if the other columns do not predict them.

    Examples
    --------
    >>> from ulmus.tables import BooleanColumn
    >>> BooleanColumn("wet").parse_text("true")
    1.0
    """

    type_name, plural = "boolean", "booleans"

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Booleans."""
        return bool(dtype.kind == "b")

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Booleans."""
        return all(isinstance(value, (bool, np.bool_)) for value in values)

    @classmethod
    def parse(cls, cells: Cells) -> np.ndarray:
        """Zeros and ones."""
        values = cells.numbers()
        cells.require(np.isin(values, (0.0, 1.0)), "a boolean", "write true or false, or 1 or 0")
        return values

    def to_pandas(self, codes: np.ndarray) -> Any:
        """Booleans, with NA where missing."""
        import pandas as pd

        values = pd.array(codes, dtype="boolean")
        return values if values.isna().any() else values.astype(bool)

    def parse_text(self, text: str) -> float | str:
        """0 or 1."""
        return BOOLEANS.get(text.lower(), super().parse_text(text))
