"""What a model keeps of the columns of its table, and how it turns rows into numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.tables.cells import CATEGORY, KINDS, TRUTH, Cells, some

MISSING = ("error", "drop", "impute")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"number", "truth value", "date", "category"}
        What it holds.
    categories : tuple of str
        Its categories, as text; empty for other kinds.
    fill : float or str
        What absent values are replaced by when they are imputed: the median, or the most frequent
        category.

    Examples
    --------
    >>> from ulmus.tables import Column
    >>> Column("kind", "category", ("a", "b"), fill="a").features
    ('kind=a', 'kind=b')
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | str = 0.0

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the numbers that it becomes."""
        if self.kind != CATEGORY:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories)

    @property
    def filling(self) -> float:
        """The code of what absent values are replaced by."""
        if self.kind == CATEGORY:
            return float(self.categories.index(str(self.fill)))
        return float(self.fill)

    def coded(self, cells: Cells) -> np.ndarray:
        """One number for each cell: its value, or its place among the categories."""
        return cells.codes(self.categories) if self.kind == CATEGORY else cells.numbers(self.kind)

    def expanded(self, codes: np.ndarray) -> np.ndarray:
        """These as numbers for a model, shape (n, features)."""
        if self.kind != CATEGORY:
            return codes[:, None]
        return (codes[:, None] == np.arange(len(self.categories))).astype(float)


@dataclass(frozen=True)
class Schema:
    """The columns that a model uses, and what it does about missing values.

    Parameters
    ----------
    columns : tuple of Column
        The columns in their order.
    missing : {"error", "drop", "impute"}
        What rows with missing values get.
    marks : tuple of str
        Texts and numbers that stand for a missing value.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import Column, Schema
    >>> schema = Schema((Column("t", "number"), Column("kind", "category", ("a", "b"), fill="a")))
    >>> codes, kept = schema.coded(pd.DataFrame({"t": [1.5, 2.0], "kind": ["b", "a"]}))
    >>> schema.expanded(codes)
    array([[1.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """

    columns: tuple[Column, ...]
    missing: str = "error"
    marks: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the numbers that the columns become."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def origins(self) -> tuple[str, ...]:
        """The column that each of these comes from."""
        return tuple(column.name for column in self.columns for _ in column.features)

    def with_missing(self, missing: str | None) -> Schema:
        """The same columns with another rule about missing values, if one is given."""
        return self if missing is None else replace(self, missing=missing)

    def coded(
        self, frame: Any, first_row: int = 0, *, gaps: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """A number for each cell, shape (rows kept, columns), and which rows are kept.

        With ``gaps``, cells that would be filled in are NaN.
        """
        self._require_columns(frame)
        cells = [Cells(c.name, frame[c.name], self.marks, first_row) for c in self.columns]
        codes = np.stack([c.coded(s) for c, s in zip(self.columns, cells, strict=True)], axis=1)
        absent = np.isnan(codes)
        if self.missing == "error":
            self._refuse_absent(absent, first_row)
        if self.missing == "impute":
            if not gaps:
                codes = np.where(absent, [column.filling for column in self.columns], codes)
            absent = np.zeros_like(absent)
        kept = ~absent.any(axis=1)
        return codes[kept], kept

    def expanded(self, codes: np.ndarray) -> np.ndarray:
        """Numbers for a model, shape (n, features)."""
        parts = [c.expanded(codes[:, j]) for j, c in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)

    def tidied(
        self, frame: Any, first_row: int = 0, *, gaps: bool = False
    ) -> tuple[Any, np.ndarray]:
        """A table in which every column is of its kind and complete, and which rows it has.

        Categories know each other, dates are days, and columns that the model does not use stay.
        With ``gaps``, cells that would be filled in are missing.
        """
        import pandas as pd

        codes, kept = self.coded(frame, first_row, gaps=gaps)
        tidy = frame[kept].copy()
        for j, column in enumerate(self.columns):
            values: Any = codes[:, j]
            if column.kind == CATEGORY:
                dtype = pd.CategoricalDtype(list(column.categories))
                locations = np.nan_to_num(codes[:, j], nan=-1).astype(int)
                values = pd.Categorical.from_codes(locations, dtype=dtype)
            elif column.kind == TRUTH:
                values = pd.array(codes[:, j], dtype="boolean")
                values = values if values.isna().any() else values.astype(bool)
            tidy[column.name] = pd.Series(values, index=tidy.index)
        return tidy, kept

    def _require_columns(self, frame: Any) -> None:
        names = list(frame.columns)
        lacking = [repr(name) for name in self.names if name not in names]
        if lacking:
            noun = "column" if len(lacking) == 1 else "columns"
            raise ValueError(
                f"the table lacks the {noun} {some(lacking)}; the model needs "
                f"{some(self.names, 20)}."
            )
        twice = next((name for name in self.names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the table has several columns called {twice!r}; rename all but one.")

    def _refuse_absent(self, absent: np.ndarray, first_row: int) -> None:
        if not absent.any():
            return
        row, place = map(int, np.argwhere(absent)[0])
        raise ValueError(
            f"column {self.names[place]!r} has no value in data row {first_row + row + 1}; fill "
            "it, or choose missing='drop' to leave such rows out, or missing='impute' to fill in "
            "medians."
        )

    def described(self) -> dict[str, Any]:
        """A description that JSON can hold."""
        columns = [
            {"name": c.name, "kind": c.kind, "categories": list(c.categories), "fill": c.fill}
            for c in self.columns
        ]
        return {"columns": columns, "missing": self.missing, "marks": list(self.marks)}

    @classmethod
    def restored(cls, description: Any) -> Schema:
        """The schema of a description."""
        try:
            columns = tuple(
                Column(c["name"], c["kind"], tuple(c["categories"]), c["fill"])
                for c in description["columns"]
            )
            schema = cls(columns, description["missing"], tuple(description["marks"]))
            known = all(c.kind in KINDS and np.isfinite(c.filling) for c in columns)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"this describes no columns of a table: {error}.") from error
        if not known or schema.missing not in MISSING:
            raise ValueError("this describes columns of a kind, or a rule, that is not known.")
        texts = [*schema.names, *schema.marks, *(text for c in columns for text in c.categories)]
        if not all(isinstance(text, str) for text in texts) or schema.described() != description:
            raise ValueError("this describes columns or categories whose names are no texts.")
        if not columns or len(set(schema.names)) < len(columns):
            raise ValueError("this describes no columns, or one of them twice.")
        return schema
