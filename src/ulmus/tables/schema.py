"""The columns that a model uses, and the rule for missing values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.tables.cells import Cells, some, text_of
from ulmus.tables.columns import COLUMN_TYPES, CategoryColumn, Column
from ulmus.tables.missing import is_missing

MISSING_RULES = ("error", "drop", "impute")
UNKNOWN_RULES = ("ignore", "error")


@dataclass(frozen=True)
class Schema:
    """The columns that a model uses, and the rule for missing values.

    Parameters
    ----------
    columns : tuple of Column
        The columns in their order.
    missing : {"error", "drop", "impute"}
        Whether rows with missing values raise an error, are excluded, or are completed by medians
        and most frequent categories.
    na_values : tuple of str
        Texts and numbers that stand for a missing value.
    unknown : {"error", "ignore"}
        Whether a category that is in no training row raises an error, or has no indicator.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import CategoryColumn, NumberColumn, Schema
    >>> schema = Schema((NumberColumn("t"), CategoryColumn("species", ("elm", "oak"), fill="elm")))
    >>> codes, kept = schema.parse(pd.DataFrame({"t": [1.5, 2.0], "species": ["oak", "elm"]}))
    >>> schema.encode(codes)
    array([[1.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """

    columns: tuple[Column, ...]
    missing: str = "error"
    na_values: tuple[str, ...] = ()
    unknown: str = "error"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that encode the columns."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def origins(self) -> tuple[str, ...]:
        """The column of each of these inputs."""
        return tuple(column.name for column in self.columns for _ in column.features)

    @property
    def categorical(self) -> tuple[str, ...]:
        """Names of the columns whose cells are labels."""
        return tuple(column.name for column in self.columns if column.categorical)

    @property
    def continuous(self) -> tuple[str, ...]:
        """Names of the columns for which slopes exist."""
        return tuple(column.name for column in self.columns if column.continuous)

    def with_missing(self, missing: str | None) -> Schema:
        """The same columns with another rule for missing values; None keeps the rule."""
        return self if missing is None else replace(self, missing=missing)

    def parse(
        self, frame: Any, first_row: int = 0, *, keep_missing: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """One code per cell, shape (rows kept, columns), and which rows are kept.

        With ``keep_missing``, cells that would be imputed are NaN.
        """
        self._require_columns(frame)
        rules = self.na_values, first_row, self.unknown
        cells = [Cells(c.name, frame[c.name], *rules) for c in self.columns]
        codes = np.stack([c.parse(s) for c, s in zip(self.columns, cells, strict=True)], axis=1)
        absent = np.isnan(codes)
        if self.missing == "error":
            self._refuse_missing(absent, first_row)
        if self.missing == "impute":
            if not keep_missing:
                codes = np.where(absent, [column.fill_code for column in self.columns], codes)
            absent = np.zeros_like(absent)
        kept = ~absent.any(axis=1)
        return codes[kept], kept

    def require_categories(self, values: Mapping[str, Any]) -> None:
        """Refuse values of columns that are not among their categories, whatever the rule."""
        for column in self.columns:
            value: Any = values.get(column.name)
            if not isinstance(column, CategoryColumn) or np.ndim(value) or is_missing(value):
                continue
            if text_of(value) not in (*column.categories, *self.na_values):
                known = some(map(repr, column.categories))
                text = f"{value!r} is not a category of {column.name!r} ({known})"
                raise InputError(Message("unknown-category", text, suggestions=("correct it",)))

    def encode(self, codes: np.ndarray) -> np.ndarray:
        """Inputs of a model, shape (n, features)."""
        parts = [column.encode(codes[:, j]) for j, column in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)

    def encoded_column(self, name: str, values: Any) -> np.ndarray:
        """Inputs of a model for a series of one column, shape (n, features of the column)."""
        column = next(one for one in self.columns if one.name == name)
        rule = "error" if self.missing == "drop" else self.missing
        alone = replace(self, columns=(column,), missing=rule)
        codes, _ = alone.parse(values.to_frame(name))
        return alone.encode(codes)

    def convert(
        self, frame: Any, first_row: int = 0, *, keep_missing: bool = False
    ) -> tuple[Any, np.ndarray]:
        """A data frame with columns of their types, and which rows it has.

        Categorical columns have all categories of the model, dates are days, and columns that the
        model does not use are unchanged. With ``keep_missing``, cells that would be imputed are
        missing.
        """
        import pandas as pd

        codes, kept = self.parse(frame, first_row, keep_missing=keep_missing)
        converted = frame[kept].copy()
        for j, column in enumerate(self.columns):
            values = column.to_pandas(codes[:, j])
            converted[column.name] = pd.Series(values, index=converted.index)
        return converted, kept

    def _require_columns(self, frame: Any) -> None:
        names = list(frame.columns)
        lacking = [repr(name) for name in self.names if name not in names]
        if lacking:
            noun, required = "column" if len(lacking) == 1 else "columns", some(self.names, 20)
            text = f"the table lacks the {noun} {some(lacking)}"
            raise ValueError(f"{text}; the model requires {required}.")
        require_distinct([name for name in names if name in self.names])

    def _refuse_missing(self, absent: np.ndarray, first_row: int) -> None:
        if not absent.any():
            return
        row, j = map(int, np.argwhere(absent)[0])
        text = f"column {self.names[j]!r} has no value in data row {first_row + row + 1}"
        drop = Setting("missing", "drop", "use {} to exclude such rows")
        impute = Setting("missing", "impute", "use {} to fill in medians")
        raise InputError(Message("missing-value", text, suggestions=("fill it", drop, impute)))

    def describe(self) -> dict[str, Any]:
        """A description for JSON."""
        columns = [column.describe() for column in self.columns]
        rules = {"missing": self.missing, "unknown": self.unknown}
        return {"columns": columns, **rules, "na_values": list(self.na_values)}

    @classmethod
    def from_description(cls, description: Any) -> Schema:
        """The schema of a JSON description."""
        try:
            columns = tuple(
                COLUMN_TYPES[one["type"]].from_description(one) for one in description["columns"]
            )
            rules = description["missing"], tuple(description["na_values"])
            schema = cls(columns, *rules, description.get("unknown", "error"))
            schema._require_valid({"unknown": "error"} | description)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not the description of a table: {error}.") from error
        return schema

    def _require_valid(self, description: Any) -> None:
        """Refuse a schema that was read and that no table has."""
        finite = all(np.isfinite(column.fill_code) for column in self.columns)
        rules = self.missing in MISSING_RULES and self.unknown in UNKNOWN_RULES
        if not finite or not rules:
            raise ValueError("it has unknown values")
        texts = (*self.names, *self.na_values)
        if not all(isinstance(text, str) for text in texts) or self.describe() != description:
            raise ValueError("names must be texts")
        if not self.columns or len(set(self.names)) < len(self.columns):
            raise ValueError("names must be distinct")


def require_distinct(names: list[Any]) -> None:
    """Refuse a name of two columns."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the table has several columns called {twice!r}; rename all but one.")
