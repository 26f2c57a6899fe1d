"""Columns of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ulmus.tables.cells import Cells, some
from ulmus.tables.columns.base import CategoryStatistics, Column


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, encoded as one indicator each.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Its categories, as text.
    fill : str
        Most frequent category, which replaces missing cells when they are imputed.

    Examples
    --------
    >>> from ulmus.tables import CategoryColumn
    >>> CategoryColumn("species", ("elm", "oak"), fill="elm").features
    ('species=elm', 'species=oak')
    """

    categories: tuple[str, ...]
    fill: str

    type_name, plural, categorical = "category", "categories", True
    note = "Encoded as categories (number of levels): {}."

    def __post_init__(self) -> None:
        texts = all(isinstance(category, str) for category in self.categories)
        if not texts or not isinstance(self.categories, tuple):
            raise TypeError(f"categories of {self.name!r} must be a tuple of texts")

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Categorical dtypes."""
        return hasattr(dtype, "categories")

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Anything that no other type matches."""
        return True

    @classmethod
    def statistics(cls) -> CategoryStatistics:
        """Counts of the categories."""
        return CategoryStatistics()

    @classmethod
    def from_statistics(cls, name: str, statistics: CategoryStatistics) -> Self:
        """A column whose missing cells are the most frequent category."""
        return cls(name, statistics.categories, statistics.mode)

    @property
    def features(self) -> tuple[str, ...]:
        """One input per category."""
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def label(self) -> str:
        """Name and number of categories."""
        return f"{self.name} ({len(self.categories)})"

    @property
    def fill_code(self) -> float:
        """Index of the most frequent category."""
        return float(self.categories.index(self.fill))

    def parse(self, cells: Cells) -> np.ndarray:
        """The index of each cell among the categories, NaN where missing, -1 where unknown."""
        return cells.codes(self.categories)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Indicators, shape (n, categories), all zero for an unknown category."""
        return (codes[:, None] == np.arange(len(self.categories))).astype(float)

    def to_pandas(self, codes: np.ndarray) -> Any:
        """A categorical with all categories of the model."""
        import pandas as pd

        index = np.nan_to_num(codes, nan=-1).astype(int)
        return pd.Categorical.from_codes(index, dtype=pd.CategoricalDtype(list(self.categories)))

    def parse_text(self, text: str) -> str:
        """One of the categories."""
        if text not in self.categories:
            categories = f"{self.name!r} ({some(map(repr, self.categories))})"
            quotes = "put quotes around one that contains a comma"
            raise ValueError(f"{text!r} is not a category of {categories}; {quotes}.")
        return text
