"""Checks of data given to an estimator in memory, by scikit-learn and by ``ulmus.tables.frames``."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ulmus.core.arrays.backend import is_foreign, namespace, to_numpy
from ulmus.tables.frames import (
    canonical_rows,
    checked_outputs,
    require_moderate,
    require_numeric_columns,
)


def checked_table(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Training inputs and outputs; the first ones set the number and names of features."""
    at_least = 2 if reset else 1
    require_numeric_columns(X)
    if is_foreign(X):
        y = check_array(to_numpy(y), ensure_2d=False, dtype=np.float64, input_name="y")
        X = _checked_foreign(X, None if reset else estimator.n_features_in_)
        estimator.n_features_in_ = X.shape[1]
        if X.shape[0] != len(y) or len(y) < at_least:
            raise ValueError(f"X has {X.shape[0]} rows and y {len(y)}; give at least two of each.")
        return X, checked_outputs(y, "the table")
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
    y = np.asarray(y, dtype=float)
    require_moderate(y, "y")
    return canonical_rows(X) if scipy.sparse.issparse(X) else X, y


def checked_points(estimator: Any, X: Any) -> Any:
    """Points to predict at."""
    require_numeric_columns(X)
    if is_foreign(X):
        return _checked_foreign(X, estimator.n_features_in_)
    return validate_data(
        estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
    )


def _checked_foreign(X: Any, n_features: int | None) -> Any:
    # A torch tensor may belong to a graph of gradients, which ends here.
    X, xp = X.detach() if hasattr(X, "detach") else X, namespace(X)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got {X.ndim} axes.")
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("X is complex; give real numbers.")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the fit had {n_features}.")
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("X holds NaN or infinity; drop or fill those rows.")
    return X


def require_dense(X: Any, device: str | None, reference: Any) -> None:
    """Refuse sparse rows where torch or CuPy computes."""
    if scipy.sparse.issparse(X) and is_foreign(reference):
        where = f"device={device!r}" if device is not None else "a model fitted to other arrays"
        raise ValueError(
            f"X is sparse, and {where} computes with dense arrays only; give X.toarray(), or fit "
            "with device=None and NumPy."
        )
