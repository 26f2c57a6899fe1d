"""The columns of a table as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.tables.cells import CATEGORY
from ulmus.tables.learning import learned_schema
from ulmus.tables.schema import Schema


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers from a table of numbers, truth values, dates and categories.

    Numbers stay as they are, truth values become 0 and 1, dates days since 1970, and each category
    a column of zeros and ones. Columns without any difference, and texts that are no categories,
    are left out. It is the first step of the models that ``ulmus fit`` makes.

    Parameters
    ----------
    categorical : list of str, default=()
        Columns of numbers that are names of categories.
    missing : {"error", "drop", "impute"}, default="error"
        What rows with missing values get: an error, or medians and the most frequent category. A
        transformer cannot leave out rows, so that ``"drop"`` is an error here too;
        ``schema_.tidied(table)`` leaves them out.
    marks : list of str, default=()
        Texts and numbers that stand for a missing value, such as ``"-999"``.

    Attributes
    ----------
    schema_ : Schema
        The columns.
    notes_ : tuple of str
        What was left out or changed, in sentences.
    feature_names_in_ : ndarray of str
        Names of the columns that are used.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import TableEncoder
    >>> table = pd.DataFrame({"t": [1.0, 2.5, 4.0], "kind": ["a", "b", "a"], "unit": ["m"] * 3})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table)
         t  kind=a  kind=b
    0  1.0     1.0     0.0
    1  2.5     0.0     1.0
    2  4.0     1.0     0.0
    >>> encoder.notes_
    ('Left out, the same in all rows: unit.', 'Became categories, so many of each: kind (2).')
    """

    def __init__(
        self,
        categorical: Sequence[str] = (),
        missing: str = "error",
        marks: Sequence[str] = (),
    ) -> None:
        self.categorical = categorical
        self.missing = missing
        self.marks = marks

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """A fitted transformer with known columns."""
        categorical = tuple(c.name for c in schema.columns if c.kind == CATEGORY)
        encoder = cls(categorical, missing=schema.missing, marks=schema.marks)
        return encoder._with(schema, ())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out what the columns are.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_columns)
            The table, without its target.
        y : ignored

        Returns
        -------
        self : object
            The fitted transformer.
        """
        learned = learned_schema(
            [_frame(X)], categorical=self.categorical, missing=self.missing, marks=self.marks
        )
        return self._with(learned.schema, learned.notes)

    def transform(self, X: Any) -> Any:
        """Rows of a table as numbers.

        Parameters
        ----------
        X : data frame
            Rows with the columns of the fit, in any order, perhaps with others.

        Returns
        -------
        numbers : pandas.DataFrame
            As many rows, and a column for each number and each category.
        """
        import pandas as pd

        check_is_fitted(self)
        frame = _frame(X)
        rule = "error" if self.schema_.missing == "drop" else self.schema_.missing
        codes, _ = self.schema_.with_missing(rule).coded(frame)
        values = self.schema_.expanded(codes)
        return pd.DataFrame(values, index=frame.index, columns=list(self.schema_.features))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the numbers.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
            One for each column of what ``transform`` gives.
        """
        check_is_fitted(self)
        return np.array(self.schema_.features, dtype=object)

    def _with(self, schema: Schema, notes: tuple[str, ...]) -> Self:
        self.schema_, self.notes_ = schema, notes
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        return self


def _frame(X: Any) -> Any:
    """A data frame of pandas, from any kind of data frame."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not hasattr(frame, "iloc") or not hasattr(frame, "columns"):
        raise ValueError(
            f"X must be a data frame with named columns, got {type(X).__name__}; arrays of numbers "
            "need no encoder."
        )
    return frame
