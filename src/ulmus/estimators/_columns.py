"""Tables of the user as inputs of a model: columns that a fit learns, and their encoding.

A table of complete numbers is its own matrix of inputs. Any other table has a schema, which a fit
learns and keeps as ``columns_``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length, validate_data

from ulmus.core.arrays.backend import is_foreign
from ulmus.core.data.source import RowBlocks
from ulmus.estimators._validation import rows_in_memory
from ulmus.exceptions import InputError, MissingValuesWarning, warn
from ulmus.messages import Message
from ulmus.tables.arrow import NamedArray
from ulmus.tables.checks import checked_weight, require_no_dates
from ulmus.tables.frames import column, column_names, default_feature_names, pandas_frame
from ulmus.tables.kinds import is_frame, needs_schema
from ulmus.tables.missing import missing_mask
from ulmus.tables.new_rows import encoded_rows, warn_about_columns
from ulmus.tables.schema import Schema, require_distinct
from ulmus.tables.schema_inference import infer_schema
from ulmus.tables.training_encoding import EncodingLearner


class TrainingTable(NamedTuple):
    """Rows of a fit: inputs of the model, what belongs to each row, and the columns."""

    X: Any  # inputs of the model, (n, d)
    y: Any
    sample_weight: Any
    locations: dict[str, Any]  # times, coordinates and groups
    source: Any  # the table of these rows as the user gave it, whose columns have names
    schema: Schema | None  # None if the table is its own matrix of inputs

    def checked(self, estimator: Any, *, reset: bool = True) -> tuple[RowBlocks, bool]:
        """The rows as a checked source, and whether y has one axis."""
        arrays = self.X, self.y, self.sample_weight
        return rows_in_memory(estimator, *arrays, reset=reset, encoded=self.schema is not None)

    def column(self, name: Any) -> np.ndarray:
        """Values of a column of the user's table."""
        return column(self.source, name)


def training_table(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    locations: Mapping[str, Any],
    schema: Schema | None = None,
    *,
    learn_columns: bool | None = None,
) -> TrainingTable:
    """The rows with an observed target, encoded if they are not complete numbers.

    With ``learn_columns`` complete numbers have a schema too, without it (False) no table has. A
    given schema, that of earlier rows, is not changed.
    """
    _require_table(X)
    rows = TrainingTable(X, y, sample_weight, dict(locations), X, None)
    observed = observed_rows(y)
    if observed is not None:
        check_consistent_length(X, y, sample_weight)
        rows = _taken(rows, observed)
        warn_about_targets(int(np.sum(~observed)), len(observed))
    if schema is not None:
        return rows._replace(X=encoded_points(schema, rows.X), schema=schema)
    if not (has_schema(estimator, rows.X) if learn_columns is None else learn_columns):
        return rows
    require_outputs(rows.y)
    check_consistent_length(rows.X, rows.y, rows.sample_weight)
    n_excluded = 0 if observed is None else int(np.sum(~observed))
    inferred = infer_schema([named_frame(rows.X)], **column_rules(estimator))
    warn_about_columns(inferred.doubts)
    return _encoded(rows, inferred, n_excluded)


def _require_table(X: Any) -> None:
    """Refuse dictionaries, and data frames without columns or with two of one name."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # as sparse dictionaries of keys have
        text, remedy = "X is a dictionary, not a table", "give pandas.DataFrame(X)"
        raise InputError(Message("no-table", text, suggestions=(remedy,)))
    if is_frame(X):
        names = list(X.column_names if hasattr(X, "column_names") else X.columns)
        if not names:
            text = "X has no columns"
            raise InputError(Message("no-columns", text, suggestions=("give at least one input",)))
        require_distinct(names)


def require_outputs(y: Any) -> None:
    """Refuse a table with a schema whose outputs are missing altogether, or dates."""
    if y is None:
        raise InputError(Message("no-target", "is None", "y", suggestions=("give the target",)))
    require_no_dates(y)


def has_schema(estimator: Any, X: Any) -> bool:
    """Whether a table requires a schema, or the parameters of an estimator ask for one."""
    rules = column_rules(estimator)
    if not rules["categorical"] and not rules["na_values"]:
        return needs_schema(X)
    if column_names(X) is None and not is_frame(X):
        text = "X has no column names, to which categorical and na_values refer"
        raise InputError(Message("no-column-names", text, suggestions=("give a data frame",)))
    return True


def column_rules(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator about columns."""
    rules = {"missing": estimator.missing, "unknown": estimator.unknown}
    for parameter in ("categorical", "na_values"):
        # Names of columns may be numbers, see ``named_frame``.
        rules[parameter] = _texts(parameter, getattr(estimator, parameter))
    return rules


def _texts(parameter: str, values: Any) -> tuple[str, ...]:
    """A list of names or codes as texts; a text is not a list of its letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        suggestions = ("use []" if values is None else f"use [{values!r}]",)
        raise InputError(Message("not-a-list", "must be a list", parameter, values, suggestions))
    return tuple(map(str, values))


def _encoded(rows: TrainingTable, schema: Schema, n_excluded: int) -> TrainingTable:
    """The rows that the schema keeps, as inputs of the model; some were excluded before."""
    codes, kept = schema.parse(named_frame(rows.X))
    if len(codes) < 2:
        text = f"has {len(codes)} complete {'row' if len(codes) == 1 else 'rows'} with a target"
        raise InputError(Message("no-rows", text, "X", suggestions=("give at least two",)))
    rows = rows if np.all(kept) else _taken(rows, kept)
    weight = checked_weight(rows.sample_weight, len(codes), "the table")
    y = output_matrix(rows.y)
    learner = EncodingLearner(schema, y.shape[1])
    learner.add(codes, y, weight)
    encoding = learner.encoding()
    n_dropped = int(np.sum(~kept))
    schema = encoding.schema.with_excluded(n_excluded, n_dropped)
    return rows._replace(X=encoding.encode(codes), schema=schema)


def encoded_points(schema: Schema, X: Any) -> np.ndarray:
    """New rows as inputs of the model, shape (n, d), with warnings about unknown levels."""
    return encoded_rows(schema, named_frame(X))


def named_frame(X: Any) -> Any:
    """A pandas data frame with names that are texts: x0, x1, ... for arrays."""
    if is_frame(X):
        frame = pandas_frame(X)
        if all(isinstance(name, str) for name in frame.columns):
            return frame
        return frame.set_axis([str(name) for name in frame.columns], axis=1)
    try:
        import pandas as pd
    except ImportError as error:
        text = "missing values require pandas; install it, or fill them before the fit."
        raise ImportError(text) from error
    values = np.asarray(X)
    if values.ndim != 2:
        text = f"X must have rows and columns, got {values.ndim} axes"
        raise ValueError(f"{text}; give a single row as a table of one row, such as X[:1].")
    names = column_names(X) or default_feature_names(values.shape[1])
    return pd.DataFrame(values, columns=list(names))


def set_features(estimator: Any, X: Any, *, reset: bool = True) -> None:
    """Record the number and the names of the user's columns, as scikit-learn does."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)


# ------------------------------------------------------------ rows


def observed_rows(y: Any) -> np.ndarray | None:
    """Rows whose outputs are all observed, shape (n,); None if all are, or y is invalid."""
    if is_foreign(y):
        return None
    try:
        values = _numbers(y)
    except (TypeError, ValueError):
        return None  # refused with the other checks of y
    if values.ndim not in (1, 2) or not len(values):
        return None
    missing = np.isnan(values).reshape(len(values), -1).any(axis=1)
    return ~missing if missing.any() else None


def output_matrix(y: Any) -> np.ndarray:
    """Outputs as floats, shape (n, K)."""
    values = _numbers(y)
    return values[:, None] if values.ndim == 1 else values


def _numbers(y: Any) -> np.ndarray:
    """Outputs as floats, NaN where missing."""
    if hasattr(y, "to_pandas"):
        y = y.to_pandas()
    if hasattr(y, "to_numpy"):
        kinds = [getattr(y, "dtype", None)] if getattr(y, "ndim", 1) == 1 else list(y.dtypes)
        if all(getattr(kind, "kind", "O") in "biuf" for kind in kinds):
            return np.asarray(y.to_numpy(dtype=float, na_value=np.nan))
    values = np.asarray(y)
    if values.dtype.kind == "c":
        raise TypeError("y is complex")
    if values.dtype.kind == "O":
        values = np.where(missing_mask(values), np.nan, values)
    try:
        return values.astype(float)
    except ValueError as error:
        texts = [str(one) for one in values.flat if isinstance(one, str) and not _is_number(one)]
        if not texts:
            raise
        cause = f"y contains the text {texts[0]!r}, and a regression requires numbers"
        raise InputError(Message("target-text", cause, suggestions=("correct it",))) from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _taken(rows: TrainingTable, kept: np.ndarray) -> TrainingTable:
    """Some rows, boolean (n,)."""
    where = np.flatnonzero(kept)
    if not len(where):
        text = "has no row with an observed target, not NaN, and all required values"
        raise InputError(Message("no-rows", text, "y", suggestions=("give at least two",)))
    X = rows_of(rows.X, where)
    locations = {axis: rows_of(values, where) for axis, values in rows.locations.items()}
    return TrainingTable(
        X, rows_of(rows.y, where), rows_of(rows.sample_weight, where), locations, X, rows.schema
    )


def rows_of(values: Any, where: np.ndarray) -> Any:
    """Some rows of an array, list, series or data frame; None stays None."""
    if values is None:
        return None
    if hasattr(values, "to_pandas") and hasattr(values, "columns"):
        values = values.to_pandas()
    if isinstance(values, NamedArray):
        return NamedArray(values.values[where], values.columns)
    if hasattr(values, "iloc"):
        return values.iloc[where]
    return values[where] if hasattr(values, "shape") else [values[int(i)] for i in where]


def warn_about_targets(missing: int, n_rows: int) -> None:
    """Warn of rows without a target."""
    if not missing:
        return
    text = f"{missing} of {n_rows} rows have no target and are excluded"
    remedy = "drop them to silence this warning"
    warn(
        Message("missing-target", text, suggestions=(remedy,), topic="input"), MissingValuesWarning
    )
