"""Validation of arguments, and the weighted mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def weighted_mean(
    values: NDArray[Any], target_ndim: int, sample_weight: ArrayLike | None
) -> float | FloatArray:
    """Average over rows (weighted) and outputs; keep a trailing axis of levels."""
    if sample_weight is None:
        mean = np.mean(values, axis=tuple(range(target_ndim)))
    else:
        weight = checked_weights(sample_weight, len(values))
        used = weight > 0  # 0 * inf would be NaN
        mean = np.average(values[used], axis=0, weights=weight[used])
        mean = np.mean(mean, axis=0) if target_ndim == 2 else mean
    return float(mean) if np.ndim(mean) == 0 else np.asarray(mean, dtype=np.float64)


def with_levels(target: FloatArray, like: FloatArray) -> FloatArray:
    """Add a last axis to ``target`` where ``like`` has one for levels."""
    return target[..., None] if like.ndim > target.ndim else target


def checked_array(
    name: str, value: ArrayLike, ndims: tuple[int, ...], *, infinite: bool = False
) -> FloatArray:
    """Return numbers without NaN, finite unless ``infinite``, in one of ``ndims`` dimensions."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = f"{name} must be an array of numbers, got {type(value).__name__} ({error})"
        raise ValueError(f"{text}; convert it to a float array.") from error
    if array.ndim not in ndims or array.size == 0:
        counts = " or ".join(str(d) for d in ndims)
        text = f"{name} must be non-empty with {counts} dimensions, got shape {array.shape}"
        raise ValueError(f"{text}; reshape it (np.ravel for a single output).")
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if np.any(bad):
        where = _first(bad)
        text = f"{name} contains {array[where]} at index {where}"
        raise ValueError(f"{text}; drop or impute such rows first.")
    return array


def _first(bad: NDArray[np.bool_]) -> tuple[int, ...]:
    """Index of the first true entry."""
    return tuple(int(i) for i in np.argwhere(bad)[0])


def check_shape(name: str, array: NDArray[Any], shape: tuple[int, ...], remedy: str) -> None:
    """Raise an error for an array of another shape."""
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}; {remedy}.")


def checked_target(y_true: ArrayLike) -> FloatArray:
    """Return targets (n,) or (n, K)."""
    return checked_array("y_true", y_true, ndims=(1, 2))


def checked_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    """Return ``n`` weights, none negative and some positive."""
    weight = checked_array("sample_weight", sample_weight, ndims=(1,))
    check_shape("sample_weight", weight, (n,), "give one weight per row")
    if np.any(weight < 0) or not np.any(weight > 0):
        text = f"got minimum {weight.min()} and sum {weight.sum()}; omit it for equal weights."
        raise ValueError(f"sample_weight must be >= 0 with a positive sum, {text}")
    return weight


def checked_normal(
    mean: ArrayLike, std: ArrayLike, shape: tuple[int, ...] | None, *, positive: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of one shape, the target's ``shape`` if given."""
    mu = checked_array("mean", mean, ndims=(1, 2))
    sigma = checked_array("std", std, ndims=(0, 1, 2))
    if shape is not None:
        check_shape("mean", mu, shape, "it must match y_true (np.ravel for a single output)")
    if sigma.ndim == 0:
        sigma = np.full(mu.shape, sigma)
    check_shape("std", sigma, mu.shape, "it must match mean, or be a float")
    if np.any(sigma < 0):
        raise ValueError(f"std must be >= 0, got {sigma.min()}; pass the root of a variance.")
    if positive and np.any(sigma == 0):
        raise ValueError(
            "std must be > 0 here, got 0.0: a point mass has no density; use crps_normal, or add "
            "the noise variance to the model variance."
        )
    return mu, sigma


def checked_ends(intervals: ArrayLike) -> FloatArray:
    """Return intervals of 2 to 4 dimensions, their ends possibly infinite."""
    return checked_array("intervals", intervals, ndims=(2, 3, 4), infinite=True)


def checked_bounds(intervals: ArrayLike, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends, each of the target's ``shape``, with k levels last if given."""
    n_axes = len(shape)
    ends = checked_ends(intervals)
    if ends.shape[: n_axes + 1] != (*shape, 2) or ends.ndim > n_axes + 2:
        raise ValueError(
            f"intervals must have shape {(*shape, 2)} or {(*shape, 2, 'k')} for a target of shape "
            f"{shape}, got {ends.shape}; np.stack(list_of_intervals, axis=-1) puts levels last, "
            "mean_width takes n_outputs for a target of two dimensions."
        )
    lower, upper = np.take(ends, 0, axis=n_axes), np.take(ends, 1, axis=n_axes)
    bad = (lower > upper) | np.isposinf(lower) | np.isneginf(upper)
    if np.any(bad):
        where = _first(bad)
        raise ValueError(
            f"intervals must have lower <= upper, got lower={lower[where]}, upper={upper[where]} "
            f"at index {where}; np.sort(intervals, axis={n_axes}) orders the ends."
        )
    return lower, upper


def checked_levels(name: str, value: ArrayLike, ndims: tuple[int, ...]) -> FloatArray:
    """Return probabilities inside (0, 1)."""
    level = checked_array(name, value, ndims)
    if np.any((level <= 0) | (level >= 1)):
        text = f"{name} must lie strictly between 0 and 1, got {level.tolist()}"
        raise ValueError(f"{text}; write 95 % as 0.95.")
    return level


def checked_interval_levels(confidence_level: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return the levels of intervals, of ``shape`` (k,), or () where there is no last axis."""
    level = checked_levels("confidence_level", confidence_level, ndims=(0, 1))
    remedy = "give one level per entry of the last axis of intervals, a float where there is none"
    check_shape("confidence_level", level, shape, remedy)
    return level


def checked_quantiles(
    quantile_predictions: ArrayLike, quantiles: ArrayLike, shape: tuple[int, ...] | None
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles that do not cross, of the target's ``shape`` if given, and their levels."""
    q = checked_array("quantile_predictions", quantile_predictions, ndims=(2, 3))
    tau = checked_levels("quantiles", quantiles, ndims=(1,))
    shape = q.shape[:-1] if shape is None else shape
    check_shape("quantile_predictions", q, (*shape, len(tau)), "one per target and level, last")
    if np.any(np.diff(tau) <= 0):
        text = f"quantiles must be strictly increasing, got {tau.tolist()}"
        raise ValueError(f"{text}; sort them, and quantile_predictions accordingly.")
    crossed = np.diff(q, axis=-1) < 0
    if np.any(crossed):
        where = _first(crossed)
        text = f"quantile_predictions cross at index {where}: {q[where]} is above the next"
        raise ValueError(f"{text}; np.sort(quantile_predictions, axis=-1) repairs this.")
    return q, tau
