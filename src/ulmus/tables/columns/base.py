"""Base class of the column types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np

from ulmus.core.layer.levels import Levels
from ulmus.tables.cells import Cells
from ulmus.tables.columns.statistics import ColumnStatistics


def as_lists(value: Any) -> Any:
    """Nested tuples as lists, for JSON."""
    return [as_lists(one) for one in value] if isinstance(value, tuple) else value


def as_tuples(value: Any) -> Any:
    """Nested lists of JSON as tuples."""
    return tuple(as_tuples(one) for one in value) if isinstance(value, list) else value


def missing_feature(name: str) -> str:
    """Name of the input that indicates missing cells of a column."""
    return f"{name} (missing)"


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table; each type of column is a subclass.

    Attributes
    ----------
    name : str
        Name of the column.
    n_missing : int
        Number of training rows that have no value. If there are any, an input indicates them.
    type_name : str
        Name of the type, as in files.
    plural : str
        What such a column contains, for messages.
    categorical : bool
        Whether cells are labels, of which differences and no slopes exist.
    continuous : bool
        Whether slopes exist.
    note : str
        A sentence for columns that are encoded in a way worth a note; ``{}`` are the columns.

    Examples
    --------
    >>> from ulmus.tables import Column, NumberColumn
    >>> issubclass(NumberColumn, Column)
    True
    """

    name: str
    n_missing: int = field(default=0, kw_only=True)  # training rows without a value
    type_name: ClassVar[str]
    plural: ClassVar[str]
    categorical: ClassVar[bool] = False
    continuous: ClassVar[bool] = False
    note: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def matches_dtype(cls, dtype: Any) -> bool:
        """Whether a dtype of pandas is one of this type."""

    @classmethod
    @abstractmethod
    def matches_values(cls, values: list[Any]) -> bool:
        """Whether distinct texts or objects are of this type."""

    @classmethod
    @abstractmethod
    def statistics(cls) -> ColumnStatistics:
        """Empty statistics, from which a column is made."""

    @classmethod
    @abstractmethod
    def from_statistics(cls, name: str, statistics: Any) -> Self:
        """The column with such cells."""

    def describe(self) -> dict[str, Any]:
        """A description for JSON: the type, and the fields."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"type": self.type_name, **{name: as_lists(v) for name, v in values.items()}}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""
        values = {name: as_tuples(v) for name, v in description.items() if name != "type"}
        return cls(**values)

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """The five most frequent values of a Series with their counts, formatted by ``show``."""
        counts = values.astype(str).value_counts()
        texts = [f"{show(text)} ({count})" for text, count in counts.iloc[:5].items()]
        more = len(counts) - len(texts)
        return ", ".join(texts) + (f" and {more} more" if more else "")

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that encode it."""

    @property
    def predictors(self) -> tuple[bool, ...]:
        """Which inputs predict missing ones: all but indicators of missing cells."""
        return tuple(name != missing_feature(self.name) for name in self.features)

    @property
    def fill_code(self) -> float:
        """The code that replaces missing cells where the other columns are not used for that."""
        return 0.0

    @property
    def indicates_missing(self) -> bool:
        """Whether an input indicates missing cells."""
        return self.n_missing > 0

    @property
    def levels(self) -> Levels | None:
        """Its categories as values of the inputs; None for a column of another type."""
        return None

    @property
    def label(self) -> str:
        """How a note names the column."""
        return self.name

    @abstractmethod
    def parse(self, cells: Cells) -> np.ndarray:
        """One code per cell, NaN where missing."""

    @abstractmethod
    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Inputs of a model, shape (n, features)."""

    def to_pandas(self, codes: np.ndarray) -> Any:
        """Codes as values of a data frame."""
        return codes

    @abstractmethod
    def parse_text(self, text: str) -> float | str:
        """A value of the column that was written as text."""
