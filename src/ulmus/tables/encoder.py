"""A transformer of scikit-learn that encodes the columns of a table as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ulmus.exceptions import ExtrapolationWarning, warn
from ulmus.messages import Message, Setting
from ulmus.tables.cells import UNKNOWN
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
    unknown : {"ignore", "error"}, default="ignore"
        Whether a category that is in no training row has no indicator, with an
        ``ExtrapolationWarning`` that counts such rows, or raises an error. Rare categories may
        all be in the held-out rows of a cross-validation.

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
        self,
        categorical: Sequence[str] = (),
        missing: str = "error",
        na_values: Sequence[str] = (),
        unknown: str = "ignore",
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
        encoder = cls(schema.categorical, na_values=schema.na_values, **rules)
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
        self._warn_about_unknown(codes)
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

    def _warn_about_unknown(self, codes: np.ndarray) -> None:
        """Warn of rows (n, columns) with categories that no training row has."""
        counts = np.sum(codes == UNKNOWN, axis=0, where=self._are_categories)
        if not np.any(counts):
            return
        columns = zip(self.schema_.names, counts, strict=True)
        text = ", ".join(f"{count} of {name!r}" for name, count in columns if count)
        rows = int(np.sum(np.any((codes == UNKNOWN) & self._are_categories, axis=1)))
        text = (
            f"{rows} of {len(codes)} rows have categories that are in no training row ({text}), so "
            "that their indicators are zero"
        )
        remedy = Setting("unknown", "error", "use {} to refuse such rows")
        message = Message("unknown-category", text, suggestions=(remedy,), topic="extrapolation")
        warn(message, ExtrapolationWarning)

    @property
    def _are_categories(self) -> np.ndarray:
        """Whether each column is one of categories, whose codes are no numbers."""
        return np.array([column.categorical for column in self.schema_.columns])

    def _fitted(self, schema: Schema, notes: tuple[str, ...]) -> Self:
        self.schema_, self.notes_ = schema, notes
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        return self
