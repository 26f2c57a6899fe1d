"""The columns that a model uses, and how missing values and unknown categories are encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ulmus.core.layer.levels import Levels
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.tables.cells import Cells, some, text_of
from ulmus.tables.columns import COLUMN_TYPES, CategoryColumn, Column, DateColumn, DayColumn
from ulmus.tables.columns.base import as_lists, as_tuples
from ulmus.tables.imputation import Imputation
from ulmus.tables.missing import is_missing

MISSING_RULES = ("impute", "drop", "error")
UNKNOWN_RULES = ("average", "error")


@dataclass(frozen=True)
class Schema:
    """The columns that a model uses, and how missing values and unknown categories are encoded.

    Parameters
    ----------
    columns : tuple of Column
        The columns in their order.
    missing : {"impute", "drop", "error"}
        Whether missing numbers are predicted from the other columns, and missing categories are a
        category; rows with missing values are excluded; or they raise an error.
    na_values : tuple of str
        Texts and numbers that stand for a missing value.
    unknown : {"average", "error"}
        Whether a category that is in no training row has the average inputs of the others, or
        raises an error.
    imputation : Imputation, default=None
        How missing numbers are predicted; by default they are the medians of the columns.
    notes : tuple of str, default=()
        Sentences about excluded and encoded columns.
    doubts : tuple of str, default=()
        Sentences about columns that are excluded, or that the user may not mean as they are read.
    date_steps : tuple of (str, float), default=()
        Names of the columns of dates, and the median step of their training dates in days.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import CategoryColumn, NumberColumn, Schema
    >>> schema = Schema((NumberColumn("t", 1.5), CategoryColumn("species", ("elm", "oak"))))
    >>> codes, kept = schema.parse(pd.DataFrame({"t": [None, 2.0], "species": ["oak", "elm"]}))
    >>> schema.encode(codes)
    array([[1.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """

    columns: tuple[Column, ...]
    missing: str = "impute"
    na_values: tuple[str, ...] = ()
    unknown: str = "average"
    imputation: Imputation | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    date_steps: tuple[tuple[str, float], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs that encode the columns."""
        return tuple(name for column in self.columns for name in column.features)

    @cached_property
    def origins(self) -> tuple[str, ...]:
        """The column of each of these inputs."""
        return tuple(column.name for column in self.columns for _ in column.features)

    @cached_property
    def predictors(self) -> np.ndarray:
        """Which inputs predict missing ones: all but indicators of missing cells, shape (d,)."""
        return np.array([flag for column in self.columns for flag in column.predictors])

    @property
    def level_blocks(self) -> tuple[tuple[int, Levels], ...]:
        """The first input of each column of categories, and its levels."""
        starts = np.cumsum([0, *(len(column.features) for column in self.columns)])
        pairs = zip(starts, self.columns, strict=False)
        return tuple((int(s), c.levels) for s, c in pairs if c.levels is not None)

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

    def with_excluded(self, without_target: int, incomplete: int) -> Schema:
        """The same columns with notes about rows that a fit excluded."""
        counts = {"without a target": without_target, "with missing values": incomplete}
        notes = tuple(f"Excluded rows {text}: {count}." for text, count in counts.items() if count)
        return replace(self, notes=(*self.notes, *notes))

    def with_date_steps(self, codes: np.ndarray) -> Schema:
        """The same columns with the steps of the dates of training rows, codes (n, columns)."""
        steps = []
        for j, column in enumerate(self.columns):
            if isinstance(column, DateColumn):
                gaps = np.diff(np.unique(codes[~np.isnan(codes[:, j]), j]))
                steps.append((column.name, float(np.median(gaps)) if len(gaps) else 0.0))
        return replace(self, date_steps=tuple(steps))

    def parse(self, frame: Any, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """One code per cell, shape (rows kept, columns), and which rows are kept.

        Codes of cells without a value are NaN.
        """
        self._require_columns(frame)
        rules = self.na_values, first_row, self.unknown
        cells = [Cells(c.name, frame[c.name], *rules) for c in self.columns]
        codes = np.stack([c.parse(s) for c, s in zip(self.columns, cells, strict=True)], axis=1)
        if self.missing == "impute":
            return codes, np.ones(len(codes), dtype=bool)
        absent = np.isnan(codes)
        if self.missing == "error":
            self._refuse_missing(absent, first_row)
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
        inputs = self.raw_inputs(codes)
        if not np.isnan(codes).any():
            return inputs
        if self.imputation is not None:
            inputs[:, self.predictors] = self.imputation.fill(inputs[:, self.predictors])
            return inputs
        medians = self.raw_inputs(np.array([[column.fill_code for column in self.columns]]))
        return np.where(np.isnan(inputs), medians, inputs)

    def raw_inputs(self, codes: np.ndarray) -> np.ndarray:
        """The same with NaN for numbers that are to be filled in."""
        parts = [column.encode(codes[:, j]) for j, column in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)

    def column(self, name: str) -> Column:
        """A column by its name."""
        return next(one for one in self.columns if one.name == name)

    def encoded_column(self, name: str, values: Any) -> np.ndarray:
        """Inputs of a model for a series of one column, shape (n, features of the column)."""
        rule = "error" if self.missing == "drop" else self.missing
        alone = replace(self, columns=(self.column(name),), missing=rule, imputation=None)
        codes, _ = alone.parse(values.to_frame(name))
        return alone.encode(codes)

    def numbers(self, name: str, values: Any) -> np.ndarray:
        """Codes of a series of one column, NaN where missing: days, or indices of categories."""
        return self.column(name).parse(Cells(name, values, self.na_values, 0, self.unknown))

    def value(self, name: str, given: Any) -> Any:
        """A value of a column that a user wrote, as ``convert`` returns it: dates are days."""
        if name not in self.names:
            return given
        column = self.column(name)
        if not isinstance(column, DayColumn) or isinstance(given, (int, float)):
            return given
        import pandas as pd

        return float(column.parse(Cells(name, pd.Series([given])))[0])

    def shown(self, name: str, value: Any) -> Any:
        """A value of a column for results: days are dates."""
        column = self.column(name) if name in self.names else None
        if isinstance(column, DateColumn) and isinstance(value, (int, float)) and value == value:
            return column.shown(float(value))
        return value

    def convert(self, frame: Any, first_row: int = 0) -> tuple[Any, np.ndarray]:
        """A data frame with columns of their types, and which rows it has.

        Categorical columns have all categories of the model, dates are days, and columns that the
        model does not use are unchanged. Missing cells stay missing.
        """
        import pandas as pd

        codes, kept = self.parse(frame, first_row)
        values = {
            column.name: pd.Series(column.to_pandas(codes[:, j]), index=frame.index[kept])
            for j, column in enumerate(self.columns)
        }
        return frame[kept].assign(**values), kept

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
        impute = Setting("missing", "impute", "use {} to fill them in")
        raise InputError(Message("missing-value", text, suggestions=("fill it", drop, impute)))

    def describe(self) -> dict[str, Any]:
        """A description for JSON."""
        columns = [column.describe() for column in self.columns]
        rules = {"missing": self.missing, "unknown": self.unknown}
        lists = {
            name: as_lists(getattr(self, name))
            for name in ("na_values", "notes", "doubts", "date_steps")
        }
        imputation = None if self.imputation is None else _lists_of(self.imputation)
        return {"columns": columns, **rules, **lists, "imputation": imputation}

    @classmethod
    def from_description(cls, description: Any) -> Schema:
        """The schema of a JSON description."""
        try:
            columns = tuple(
                COLUMN_TYPES[one["type"]].from_description(one) for one in description["columns"]
            )
            rules = description["missing"], tuple(description["na_values"]), description["unknown"]
            found = description["imputation"]
            filling = None if found is None else {k: as_tuples(v) for k, v in found.items()}
            imputation = None if filling is None else Imputation(**filling)
            notes = tuple(description["notes"]), tuple(description["doubts"])
            steps = as_tuples(description["date_steps"])
            schema = cls(columns, *rules, imputation, *notes, steps)
            schema._require_valid(description)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this is not the description of a table: {error}.") from error
        return schema

    def _require_valid(self, description: Any) -> None:
        """Refuse a schema that was read and that no table has."""
        rules = self.missing in MISSING_RULES and self.unknown in UNKNOWN_RULES
        row = self.raw_inputs(np.array([[column.fill_code for column in self.columns]]))
        if not np.isfinite(row).all() or not rules:
            raise ValueError("it has unknown values")
        imputation = self.imputation
        if imputation is not None and not imputation.is_valid(int(np.sum(self.predictors))):
            raise ValueError("its means and correlations are not those of its columns")
        if not all(name in self.names and step >= 0 for name, step in self.date_steps):
            raise ValueError("its steps are not those of its dates")
        texts = (*self.names, *self.na_values, *self.notes, *self.doubts)
        if not all(isinstance(text, str) for text in texts) or self.describe() != description:
            raise ValueError("names must be texts")
        if not self.columns or len(set(self.names)) < len(self.columns):
            raise ValueError("names must be distinct")


def _lists_of(imputation: Imputation) -> dict[str, Any]:
    return {one.name: as_lists(getattr(imputation, one.name)) for one in fields(imputation)}


def require_distinct(names: list[Any]) -> None:
    """Refuse a name of two columns."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the table has several columns called {twice!r}; rename all but one.")
