"""What every type of column implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from ulmus.tables.cells import Cells
from ulmus.tables.columns.statistics import ColumnStatistics


@dataclass(frozen=True)
class Column(ABC):
    """One column of a table; each type of column is a subclass.

    Attributes
    ----------
    name : str
        Name of the column.
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
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        lists = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
        return {"type": self.type_name, **lists}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The column of a JSON description."""
        lists = {n: tuple(v) for n, v in description.items() if isinstance(v, list)}
        values: dict[str, Any] = {**description, **lists}
        del values["type"]
        return cls(**values)

    @classmethod
    def summary(cls, values: Any, show: Callable[[Any], str]) -> str:
        """The five most frequent values of a Series with their counts, formatted by ``show``."""
        counts = values.astype(str).value_counts()
        texts = [f"{show(text)} ({count})" for text, count in counts.iloc[:5].items()]
        more = len(counts) - len(texts)
        return ", ".join(texts) + (f" and {more} more" if more else "")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that encode it."""
        return (self.name,)

    @property
    def label(self) -> str:
        """How a note names the column."""
        return self.name

    @property
    @abstractmethod
    def fill_code(self) -> float:
        """The code that replaces missing cells when they are imputed."""

    @abstractmethod
    def parse(self, cells: Cells) -> np.ndarray:
        """One code per cell, NaN where missing."""

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Inputs of a model, shape (n, features)."""
        return codes[:, None]

    def to_pandas(self, codes: np.ndarray) -> Any:
        """Codes as values of a data frame."""
        return codes

    @abstractmethod
    def parse_text(self, text: str) -> float | str:
        """A value of the column that was written as text."""
