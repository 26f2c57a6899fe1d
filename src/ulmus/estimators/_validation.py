"""Checks of data given to an estimator, for NumPy, sparse and other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, validate_data

from ulmus.core.backend import like, to_numpy


def is_foreign(X: Any) -> bool:
    """Whether X is an array of another library than NumPy: torch, CuPy or the like."""
    return is_array_api_obj(X) and not isinstance(X, np.ndarray) and not scipy.sparse.issparse(X)


def checked_table(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Training inputs and outputs; the first ones set the number and names of features."""
    at_least = 2 if reset else 1
    if is_foreign(X):
        y = check_array(to_numpy(y), ensure_2d=False, dtype=np.float64, input_name="y")
        X = _checked_foreign(X, None if reset else estimator.n_features_in_)
        estimator.n_features_in_ = X.shape[1]
        if X.shape[0] != len(y) or len(y) < at_least:
            raise ValueError(f"X has {X.shape[0]} rows and y {len(y)}; give at least two of each.")
        return X, y
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        multi_output=True,
        y_numeric=True,
        ensure_min_samples=at_least,
        reset=reset,
    )
    return X, np.asarray(y, dtype=float)


def checked_points(estimator: Any, X: Any) -> Any:
    """Points to predict at."""
    if is_foreign(X):
        return _checked_foreign(X, estimator.n_features_in_)
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
    )


def _checked_foreign(X: Any, n_features: int | None) -> Any:
    xp = array_namespace(X)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got {X.ndim} axes.")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the fit had {n_features}.")
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X holds NaN or infinity; drop or fill those rows.")
    return X


def checked_weight(sample_weight: Any, n_rows: int, *, at_least: int = 2) -> Any:
    """Row weights as a NumPy array, or None; so many of them must be positive."""
    if sample_weight is None:
        return None
    weight = check_array(
        to_numpy(sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have one number per row, got {weight.ndim} axes.")
    check_consistent_length(weight, np.empty(n_rows))
    if np.any(weight < 0):
        raise ValueError(f"sample_weight must not be negative, got {weight.min():g}.")
    if np.sum(weight > 0) < at_least:
        raise ValueError(
            f"sample_weight must differ from zero in at least {at_least} rows, got "
            f"{int(np.sum(weight > 0))} such weights."
        )
    return weight


def rows_outside(X: Any, low: np.ndarray, high: np.ndarray) -> int:
    """Number of rows with a value outside the given bounds."""
    if scipy.sparse.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        beyond = (low[X.indices] > X.data) | (high[X.indices] < X.data)
        return len(np.unique(rows[beyond]))
    xp = array_namespace(X)
    outside = xp.any((like(low, X) > X) | (like(high, X) < X), axis=1)
    return int(xp.sum(xp.astype(outside, xp.int64)))
