"""Columns of data frames by name, and the names of columns without one."""

from __future__ import annotations

from typing import Any

import numpy as np


def default_feature_names(n_features: int) -> list[str]:
    """Names of inputs without names: x0, x1, ..."""
    return [f"x{j}" for j in range(n_features)]


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame if all of them are text, else None."""
    if not hasattr(X, "columns"):
        return None
    # ``columns`` of an Arrow table are the columns themselves.
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    return tuple(names) if all(isinstance(name, str) for name in names) else None


def column_index(names: tuple[str, ...] | None, name: Any) -> int:
    """Position of a column by its name."""
    if names is None or name not in names:
        reason = "X has no column names" if names is None else f"X has {', '.join(names)}"
        raise ValueError(f"there is no column {name!r}: {reason}; give its values as an array.")
    return names.index(name)


def column(X: Any, name: Any) -> np.ndarray:
    """Values of a column of a data frame, or of an array with names, by its name."""
    index = column_index(column_names(X), name)
    return np.asarray(X[name] if hasattr(X, "__getitem__") else np.asarray(X)[:, index])


def pandas_if_arrow(X: Any) -> Any:
    """An Arrow table as a pandas data frame; other tables unchanged."""
    return X.to_pandas() if hasattr(X, "column_names") and hasattr(X, "to_pandas") else X


def pandas_frame(X: Any) -> Any:
    """A pandas data frame from a data frame of any library."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not hasattr(frame, "iloc") or not hasattr(frame, "columns"):
        text = f"X must be a data frame with named columns, got {type(X).__name__}"
        raise ValueError(f"{text}; arrays of numbers need no encoder.")
    return frame
