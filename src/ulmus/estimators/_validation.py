"""Checks of the data given to an estimator, and their conversion to sources of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from ulmus.core.arrays.backend import Array, is_foreign, namespace, reference_array, to_numpy
from ulmus.core.data.source import RowBlocks
from ulmus.core.fit.fit import Fit
from ulmus.core.noise.ordered_rows import require_reading_order
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.estimators import _parameters as check
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting, named
from ulmus.noise.assumptions import noise_assumption
from ulmus.noise.locations import covariance_spec, default_block_ids
from ulmus.tables.blocks import BlockSource, RowColumns
from ulmus.tables.cells import number_of
from ulmus.tables.checks import (
    canonical_rows,
    checked_outputs,
    checked_weight,
    require_moderate,
    require_no_dates,
    require_numeric_columns,
)
from ulmus.tables.missing import missing_mask


def checked_table(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Training inputs and outputs; the first ones set the number and names of features."""
    at_least = 2 if reset else 1
    require_numeric_columns(X)
    require_no_dates(y)
    if is_foreign(X):
        y = check_array(to_numpy(y), ensure_2d=False, dtype=np.float64, input_name="y")
        X = _checked_foreign(X, None if reset else estimator.n_features_in_)
        estimator.n_features_in_ = X.shape[1]
        if X.shape[0] != len(y) or len(y) < at_least:
            raise ValueError(f"X has {X.shape[0]} rows and y {len(y)}; give at least two of each.")
        return X, checked_outputs(y, "the table")
    X, y = _validated(
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


def checked_inputs_and_outputs(X: np.ndarray, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inputs that a schema encoded, and checked outputs."""
    y = check_array(y, ensure_2d=False, dtype=np.float64, allow_nd=True, input_name="y")
    check_consistent_length(X, y)
    return X, checked_outputs(y, "the table")


def checked_points(estimator: Any, X: Any) -> Any:
    """Points to predict at."""
    require_numeric_columns(X)
    if is_foreign(X):
        return _checked_foreign(X, estimator.n_features_in_)
    return _validated(
        estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
    )


def _validated(estimator: Any, *arrays: Any, **how: Any) -> Any:
    """The arrays after the checks of scikit-learn; NaN has an error with our own suggestions."""
    try:
        return validate_data(estimator, *arrays, **how)
    except ValueError as error:
        is_fit = len(arrays) > 1
        if is_fit and not hasattr(arrays[0], "columns") and _has_text(arrays[0]):
            text = "X is an array of texts, which only columns of data frames may contain"
            remedy = "give a data frame, such as pandas.DataFrame(X).infer_objects()"
            raise InputError(Message("array-text", text, suggestions=(remedy,))) from error
        if not _has_nan(arrays[0]):
            raise
        cause = (
            "X contains NaN, and how missing values are encoded is learned from training rows that "
            "have some, in memory and on the CPU"
        )
        remedies = ("fit rows with missing values", "fill them")
        message = Message("missing-value", cause, suggestions=remedies, topic="input")
        raise InputError(message) from None


def _has_text(X: Any) -> bool:
    """Whether an array contains texts that are no numbers."""
    values = np.asarray(X.data if scipy.sparse.issparse(X) else X)
    if values.dtype.kind not in "OU":
        return False
    return any(isinstance(one, str) and number_of(one) is None for one in values.flat)


def _has_nan(X: Any) -> bool:
    values = np.asarray(X.data if scipy.sparse.issparse(X) else X)
    if values.dtype.kind == "O":
        return bool(missing_mask(values).any())
    return bool(values.dtype.kind == "f" and np.isnan(values).any())


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
        text = f"X is sparse, and {where} computes with dense arrays only"
        raise ValueError(f"{text}; give X.toarray(), or fit with device=None and NumPy.")


# ------------------------------------------------------------ rows


def rows_in_memory(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    reset: bool = True,
    encoded: bool = False,
) -> tuple[RowBlocks, bool]:
    """Checked rows as a source, and whether y has one axis; X may be inputs of a schema."""
    if encoded:
        X, y = checked_inputs_and_outputs(X, y)
    else:
        X, y = checked_table(estimator, X, y, reset=reset)
    weight = checked_weight(sample_weight, X.shape[0], "the table", at_least=2 if reset else 0)
    rows = RowBlocks(
        X=X,
        y=np.ascontiguousarray(y.reshape(len(y), -1).T),
        root_weight=None if weight is None else np.sqrt(weight),
        reference=checked_reference(estimator, X),
        width=X.shape[1],
    )
    return rows, y.ndim == 1


def checked_reference(estimator: Any, X: Any) -> Array:
    """An array of the library, device and precision that an estimator computes with."""
    dtype = check.checked_choice("dtype", estimator.dtype, ("float64", "float32"))
    reference = reference_array(X, estimator.device, dtype)
    require_dense(X, estimator.device, reference)
    return reference


def refuse_tuning_fraction(estimator: Any, method: str) -> None:
    """Refuse to set rows aside where no interval uses them."""
    if check.checked_fraction("tuning_fraction", estimator.tuning_fraction) is not None:
        text = (
            "sets rows aside for prediction intervals from leave-one-out residuals, which "
            f"{method} does not compute"
        )
        remedies = ("use fit", Setting("tuning_fraction", None))
        fraction = estimator.tuning_fraction
        raise InputError(Message("rows-not-kept", text, "tuning_fraction", fraction, remedies))


def require_same_outputs(n_outputs: int, earlier: Fit) -> None:
    """Refuse another number of outputs than that of the earlier rows."""
    before = earlier.ensemble.n_outputs
    if n_outputs != before:
        text = f"y has {n_outputs} outputs, and that of the earlier rows has {before}"
        raise ValueError(f"{text}; give the same ones.")


# ------------------------------------------------------------ correlated noise


def checked_covariance_spec(
    estimator: Any, n_rows: int, columns: Any, arguments: dict[str, Any]
) -> CovarianceSpec | None:
    """Covariance structure and locations of the rows; None for independent noise."""
    if noise_assumption(estimator.noise).correlated:
        return covariance_spec(estimator.noise, n_rows, columns, arguments)
    unused = [axis for axis, values in arguments.items() if values is not None]
    if unused:
        text = ("was given to fit, and ", named("noise", estimator.noise), " is independent")
        remedies = (f"leave out {unused[0]}", "use a class of ulmus.noise, such as AR1()")
        raise InputError(Message("unused-locations", text, unused[0], suggestions=remedies))
    return None


def blocks_with_locations(
    estimator: Any,
    source: BlockSource,
    arguments: dict[str, Any],
    row_columns: Callable[[list[str]], RowColumns],
) -> tuple[BlockSource, CovarianceSpec | None]:
    """Blocks with block ids for cross-validation, and the locations of their rows."""
    if not noise_assumption(estimator.noise).correlated:
        return source, checked_covariance_spec(estimator, 0, None, arguments)
    if not estimator.noise.structure().serial:
        text = "requires all rows at once, and a fit in blocks reads them one block at a time"
        in_python = "use AR1(), NeweyWest() or Clustered()"
        serial = Setting("noise", phrase="use {} ar1, newey-west or clustered", python=in_python)
        remedies = serial, Setting("in_memory", python="fit all rows in memory")
        raise InputError(Message("needs-all-rows", text, "noise", estimator.noise, remedies))
    names = [name for name in estimator.noise.names().values() if name is not None]
    columns, used = row_columns(names)
    covariance = covariance_spec(estimator.noise, len(used), columns.__getitem__, arguments)
    require_reading_order(covariance.locations)
    if estimator.alpha in ("loo", "block-loo"):
        source = replace(source, block_ids=default_block_ids(covariance, used))
    return source, replace(covariance, used=used)
