"""A transformer of scikit-learn that encodes the columns of a table as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.tables.frames import pandas_frame
from ulmus.tables.schema import Schema
from ulmus.tables.schema_inference import infer_schema


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a table of numbers, booleans, dates and categories as numbers.

    Numbers are unchanged, booleans become 0 and 1, dates become days since 1970, and each category
    becomes an indicator. Constant columns and free texts are excluded. It is the first step of the
    models of ``ulmus fit``.

    Parameters
    ----------
    categorical : list of str, default=()
        Columns of numbers that are labels of categories.
    missing : {"error", "drop", "impute"}, default="error"
        Whether missing values raise an error or are imputed by medians and most frequent
        categories. A transformer cannot exclude rows, so that ``"drop"`` is an error here too;
        ``schema_.convert(table)`` excludes them.
    na_values : list of str, default=()
        Texts and numbers that stand for a missing value, such as ``"-999"``.

    Attributes
    ----------
    schema_ : Schema
        The columns.
    notes_ : tuple of str
        Sentences about excluded and encoded columns.
    feature_names_in_ : ndarray of str
        Names of the columns that are inputs.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus.tables import TableEncoder
    >>> table = pd.DataFrame({"t": [1.0, 2.5], "kind": ["a", "b"], "unit": ["m", "m"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table)
         t  kind=a  kind=b
    0  1.0     1.0     0.0
    1  2.5     0.0     1.0
    >>> encoder.notes_
    ('Excluded (constant): unit.', 'Encoded as categories (number of levels): kind (2).')
    """

    def __init__(
        self, categorical: Sequence[str] = (), missing: str = "error", na_values: Sequence[str] = ()
    ) -> None:
        self.categorical = categorical
        self.missing = missing
        self.na_values = na_values

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
        encoder = cls(schema.categorical, missing=schema.missing, na_values=schema.na_values)
        return encoder._fitted(schema, ())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Infer the types of the columns.

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
        inferred = infer_schema([pandas_frame(X)], **self.get_params())
        return self._fitted(inferred.schema, inferred.notes)

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
        import pandas as pd

        check_is_fitted(self)
        frame = pandas_frame(X)
        rule = "error" if self.schema_.missing == "drop" else self.schema_.missing
        codes, _ = self.schema_.with_missing(rule).parse(frame)
        values = self.schema_.encode(codes)
        return pd.DataFrame(values, index=frame.index, columns=list(self.schema_.features))

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

    def _fitted(self, schema: Schema, notes: tuple[str, ...]) -> Self:
        self.schema_, self.notes_ = schema, notes
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        return self
