"""Columns of categories: indicators of few levels, ranks of ordered ones, statistics of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ulmus.core.layer.levels import Levels
from ulmus.tables.cells import Cells, some
from ulmus.tables.columns.base import Column, missing_feature
from ulmus.tables.columns.statistics import CategoryStatistics


@dataclass(frozen=True)
class CategoryColumn(Column):
    """A column of categories, encoded as one indicator each.

    Missing cells are a category of their own if training rows have any. Other cells without a
    category of the training rows have the shares of the categories as indicators.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Its categories, as text.
    counts : tuple of int, default=()
        Number of training rows with each category; equal ones by default.

    Examples
    --------
    >>> from ulmus.tables import CategoryColumn
    >>> CategoryColumn("species", ("elm", "oak")).features
    ('species=elm', 'species=oak')
    """

    categories: tuple[str, ...]
    counts: tuple[int, ...] = ()

    type_name, plural, categorical = "category", "categories", True
    note = "Encoded as categories (number of levels): {}."

    def __post_init__(self) -> None:
        texts = all(isinstance(category, str) for category in self.categories)
        if not texts or not isinstance(self.categories, tuple):
            raise TypeError(f"categories of {self.name!r} must be a tuple of texts")
        if self.counts and len(self.counts) != len(self.categories):
            raise ValueError(f"{self.name!r} must have one count for each category")

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Categorical dtypes without an order."""
        return hasattr(dtype, "categories") and not dtype.ordered

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
        """A column of the categories of the statistics."""
        categories = statistics.categories
        counts = tuple(int(statistics.counts[one]) for one in categories)
        return cls(name, categories, counts, n_missing=statistics.n_missing)

    @property
    def features(self) -> tuple[str, ...]:
        """One input per category, and one for missing cells."""
        names = tuple(f"{self.name}={category}" for category in self.categories)
        return (*names, missing_feature(self.name)) if self.indicates_missing else names

    @property
    def shares(self) -> np.ndarray:
        """Share of each category in the training rows that have one, shape (L,)."""
        counts = np.array(self.counts or (1,) * len(self.categories), dtype=float)
        return np.asarray(counts / np.sum(counts))

    @property
    def levels(self) -> Levels:
        """Indicators of each category; the shares for an unknown one."""
        n_levels, width = len(self.categories), len(self.features)
        unknown = np.zeros(width)
        unknown[:n_levels] = self.shares
        return Levels(np.eye(n_levels, width), self.shares, unknown)

    @property
    def label(self) -> str:
        """Name and number of categories."""
        return f"{self.name} ({len(self.categories)})"

    def parse(self, cells: Cells) -> np.ndarray:
        """The index of each cell among the categories, NaN where missing, -1 where unknown."""
        return cells.codes(self.categories)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Indicators, shape (n, features)."""
        levels = self.levels
        last = np.eye(len(self.features))[-1] if self.indicates_missing else levels.unknown
        table = np.vstack([levels.values, last, levels.unknown])
        return table[self._rows(codes)]

    def _rows(self, codes: np.ndarray) -> np.ndarray:
        """Row of each code in a table of the categories, missing and unknown ones."""
        index = np.where(np.isnan(codes), len(self.categories), codes)
        return np.where(index < 0, len(self.categories) + 1, index).astype(int)

    def to_pandas(self, codes: np.ndarray) -> Any:
        """A categorical with all categories of the model."""
        import pandas as pd

        index = np.nan_to_num(codes, nan=-1).astype(int)
        ordered = isinstance(self, OrderedColumn)
        return pd.Categorical.from_codes(
            index, dtype=pd.CategoricalDtype(list(self.categories), ordered)
        )

    def parse_text(self, text: str) -> str:
        """One of the categories."""
        if text not in self.categories:
            categories = f"{self.name!r} ({some(map(repr, self.categories))})"
            quotes = "put quotes around one that contains a comma"
            raise ValueError(f"{text!r} is not a category of {categories}; {quotes}.")
        return text


class OrderedColumn(CategoryColumn):
    """A column of ordered categories, encoded as their ranks 0, 1, ...

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Its categories in their order.
    counts : tuple of int, default=()
        Number of training rows with each category; equal ones by default.

    Examples
    --------
    >>> from ulmus.tables import OrderedColumn
    >>> OrderedColumn("size", ("small", "large")).levels.values.ravel()
    array([0., 1.])
    """

    type_name, plural = "ordered", "ordered categories"
    note = "Encoded as ranks of ordered categories (number of levels): {}."

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Categorical dtypes with an order."""
        return hasattr(dtype, "categories") and bool(dtype.ordered)

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Values have no order without a dtype."""
        return False

    @property
    def features(self) -> tuple[str, ...]:
        """The rank, and an indicator of missing cells."""
        return (self.name, missing_feature(self.name)) if self.indicates_missing else (self.name,)

    @property
    def fill_code(self) -> float:
        """The mean rank, rounded."""
        return float(np.round(self.shares @ np.arange(len(self.categories))))

    @property
    def levels(self) -> Levels:
        """Ranks; their mean for an unknown category."""
        values = np.zeros((len(self.categories), len(self.features)))
        values[:, 0] = np.arange(len(self.categories))
        unknown = np.zeros(len(self.features))
        # Not a rank, by which it is recognised.
        unknown[0] = np.round(self.shares @ values[:, 0], 3) + 5e-4
        return Levels(values, self.shares, unknown)

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Ranks, NaN where missing, and indicators of missing cells, shape (n, features)."""
        rank = np.where(codes < 0, self.levels.unknown[0], codes)
        if self.indicates_missing:
            return np.stack([rank, np.isnan(codes)], axis=1).astype(float)
        return np.nan_to_num(rank, nan=self.levels.unknown[0])[:, None]


@dataclass(frozen=True)
class TargetEncodedColumn(CategoryColumn):
    """A column of many categories, encoded by statistics of the outputs in each.

    They are the mean output and its reliability, which is the share of the mean that comes from the
    rows of the category; and, if there are other columns, the mean residual of a fit to these, and
    slopes along a few of their inputs. All are shrunk to those of all rows. Missing cells are a
    category of their own if training rows have any.

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Its categories, as text.
    counts : tuple of int, default=()
        Number of training rows with each category.
    inputs : tuple of str
        What the inputs are.
    values : tuple of tuples of float
        Inputs of each category, and of missing cells.
    unknown : tuple of float
        Inputs of an unknown category.

    Examples
    --------
    >>> from ulmus.tables import TargetEncodedColumn
    >>> names = ("mean", "reliability")
    >>> column = TargetEncodedColumn(
    ...     "town", ("A", "B"), (3, 1), names, ((2.0, 0.9), (1.5, 0.8)), (1.8, 0.0)
    ... )
    >>> column.features
    ('town (mean)', 'town (reliability)')
    """

    inputs: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()
    unknown: tuple[float, ...] = ()

    type_name = "target-encoded category"
    note = "Encoded by target statistics of each category (number of levels): {}."

    def __post_init__(self) -> None:
        super().__post_init__()
        n_rows = len(self.categories) + self.indicates_missing
        widths = {len(self.inputs), *map(len, self.values)}
        if len(self.values) != n_rows or widths != {len(self.unknown)}:
            raise ValueError(f"{self.name!r} must have statistics of each category")

    @classmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """No dtype says how many categories there are."""
        return False

    @classmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """The number of categories is known after all values."""
        return False

    @property
    def features(self) -> tuple[str, ...]:
        """The statistics."""
        return tuple(f"{self.name} ({one})" for one in self.inputs)

    @property
    def levels(self) -> Levels:
        """Statistics of each category; those of all rows for an unknown one."""
        values = np.array(self.values, dtype=float)[: len(self.categories)]
        return Levels(values, self.shares, np.array(self.unknown))

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Statistics, shape (n, features)."""
        unknown = [self.unknown] * (1 if self.indicates_missing else 2)
        return np.array([*self.values, *unknown], dtype=float)[self._rows(codes)]
