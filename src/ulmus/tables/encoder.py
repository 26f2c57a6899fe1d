"""A transformer of scikit-learn that encodes the columns of a table as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.tables.frames import pandas_frame
from ulmus.tables.new_rows import encoded_rows, warn_about_columns
from ulmus.tables.schema import Schema
from ulmus.tables.schema_inference import infer_schema
from ulmus.tables.training_encoding import EncodingLearner, TrainingEncoding


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, for other estimators in a Pipeline.

    The estimators of ulmus accept tables themselves, with the same encoding
    (:doc:`/guide/tables`). Constant columns and free texts are excluded.

    Parameters
    ----------
    categorical : list of str, default=()
        Columns of numbers that are labels of categories.
    missing : {"impute", "error"}, default="impute"
        Whether missing numbers are predicted from the other columns and missing categories are a
        category, or missing values raise an error. A transformer cannot exclude rows.
    na_values : list of str, default=()
        Texts and numbers that stand for a missing value, such as ``"-999"``.
    unknown : {"average", "error"}, default="average"
        Whether a category that is in no training row has the average inputs of the others, with
        an ``ExtrapolationWarning`` that counts such rows, or raises an error.

    Attributes
    ----------
    schema_ : Schema
        The columns.
    feature_names_in_ : ndarray of str
        Names of the columns that are inputs.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import TableEncoder
    >>> table = pd.DataFrame({"t": [1.0, 2.5], "kind": ["a", "b"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table)
         t  kind=a  kind=b
    0  1.0     1.0     0.0
    1  2.5     0.0     1.0
    >>> encoder.schema_.notes
    ('Encoded as categories (number of levels): kind (2).',)
    """

    def __init__(
        self,
        categorical: Sequence[str] = (),
        missing: str = "impute",
        na_values: Sequence[str] = (),
        unknown: str = "average",
    ) -> None:
        self.categorical = categorical
        self.missing = missing
        self.na_values = na_values
        self.unknown = unknown

    @classmethod
    def from_schema(cls, schema: Schema) -> Self:
        """A fitted transformer with the columns of a schema.

        Parameters
        ----------
        schema : Schema
            The columns.

        Returns
        -------
        encoder : TableEncoder
            The fitted transformer.
        """
        rules = {"missing": schema.missing, "unknown": schema.unknown}
        return cls(schema.categorical, na_values=schema.na_values, **rules)._fitted(schema)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the types of the columns and how to fill in missing numbers.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_columns)
            The table, without its target.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Target. If it is given, columns of many categories are encoded by its means.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        encoding, _ = self._learned(X, y)
        return self._fitted(encoding.schema)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and encode the training rows, by means of the target in other rows.

        Parameters
        ----------
        X : data frame of shape (n_samples, n_columns)
            The table, without its target.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Target. If it is given, columns of many categories are encoded by its means.

        Returns
        -------
        numbers : pandas.DataFrame
            One column for each input of a model.
        """
        encoding, codes = self._learned(X, y)
        self._fitted(encoding.schema)
        return self._frame(encoding.encode(codes), pandas_frame(X).index)

    def transform(self, X: Any) -> Any:
        """Encode rows of a table.

        Parameters
        ----------
        X : data frame
            Rows with the columns of the fit, in any order, perhaps with others.

        Returns
        -------
        numbers : pandas.DataFrame
            One column for each input of a model.
        """
        check_is_fitted(self)
        frame = pandas_frame(X)
        return self._frame(encoded_rows(self.schema_, frame), frame.index)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the encoded columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str
            One for each column of the result of ``transform``.
        """
        check_is_fitted(self)
        return np.array(self.schema_.features, dtype=object)

    def _learned(self, X: Any, y: Any) -> tuple[TrainingEncoding, np.ndarray]:
        """The encoding of a table, and its codes."""
        frame = pandas_frame(X)
        schema = infer_schema([frame], **self.get_params())
        warn_about_columns(schema.doubts)
        codes, kept = schema.parse(frame)
        if len(codes) < len(kept):
            raise ValueError("a transformer cannot exclude rows; use missing='impute' or 'error'.")
        if y is None:
            learner, outputs, weight = EncodingLearner(schema, None), None, None
        else:
            outputs = np.asarray(y, dtype=float).reshape(len(codes), -1)
            learner = EncodingLearner(schema, outputs.shape[1])
            # Rows without a target keep their place, which determines their fold, and do not count.
            weight = (~np.isnan(outputs).any(axis=1)).astype(float)
            outputs = np.where(weight[:, None] > 0, outputs, 0.0)
        learner.add(codes, outputs, weight)
        return learner.encoding(), codes

    def _frame(self, inputs: np.ndarray, index: Any) -> Any:
        import pandas as pd

        return pd.DataFrame(inputs, index=index, columns=list(self.schema_.features))

    def _fitted(self, schema: Schema) -> Self:
        self.schema_ = schema
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        return self
