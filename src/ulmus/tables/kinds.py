"""Whether a table is a matrix of complete numbers, or requires a schema."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import is_foreign
from ulmus.tables.frames import pandas_frame


def is_frame(X: Any) -> bool:
    """Whether X is a data frame with named columns, of pandas, polars or Arrow."""
    if hasattr(X, "collect") and hasattr(X, "lazy"):  # its columns are not known without work
        text = (
            f"X is a lazy frame ({type(X).__module__.split('.')[0]}), whose rows are not computed"
        )
        raise ValueError(f"{text}; give X.collect().")
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_pandas"))


def needs_schema(X: Any) -> bool:
    """Whether a table has categories, dates or missing values, which a schema encodes."""
    if is_foreign(X) or scipy.sparse.issparse(X):
        return False
    if is_frame(X):
        frame = pandas_frame(X)
        return not all(_is_complete(frame.iloc[:, j]) for j in range(frame.shape[1]))
    values = np.asarray(X)
    if values.dtype.kind == "O":
        try:
            values = values.astype(float)
        except (TypeError, ValueError):
            return False  # refused with the other checks of X
    return bool(values.dtype.kind == "f" and values.ndim == 2 and np.isnan(values).any())


def _is_complete(values: Any) -> bool:
    """Whether a Series consists of numbers or booleans, none of them missing."""
    if values.isna().any():
        return False
    if getattr(values.dtype, "kind", "O") in "biuf":
        return True
    if hasattr(values.dtype, "categories") or values.dtype.kind in "mMc":
        return values.dtype.kind == "c"  # complex numbers are refused with the other checks
    try:
        np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return False
    return True
