"""The parameters of the target: its transformation, its range and its kind."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ulmus.core.response.target import KINDS, TRANSFORMS, TargetSpec
from ulmus.core.response.transformer import Transformer
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting, invalid


def target_spec(estimator: Any) -> TargetSpec | None:
    """The parameters, checked; None if the regression is that of y itself."""
    transform = _checked_transform(estimator.target_transform)
    low, high = _checked_range(estimator.target_range)
    kind = estimator.target_kind
    if kind is not None and kind not in KINDS:
        names = ", ".join(map(repr, KINDS))
        raise InputError(invalid("target_kind", f"must be None or one of {names}", kind))
    if kind == "count":
        _check_count_parameters(estimator, transform, high)
    elif transform is None and estimator.target_range is None:
        return None
    return TargetSpec(transform, low, high, kind)


def _checked_transform(value: Any) -> Any:
    if value is None or (isinstance(value, str) and value in TRANSFORMS):
        return value
    has_inverse = hasattr(value, "transform") and hasattr(value, "inverse_transform")
    if isinstance(value, (str, type)) or not has_inverse:
        names = ", ".join(map(repr, TRANSFORMS))
        requirement = f"must be None, one of {names}, or a transformer with inverse_transform"
        raise InputError(invalid("target_transform", requirement, value))
    try:
        check_is_fitted(value)
    except NotFittedError:
        return Transformer(value, False)
    return Transformer(value, True)


def _checked_range(value: Any) -> tuple[float, float]:
    """Lower and upper bound; None is infinite."""
    requirement = "must be None or (low, high) with low < high; None is no bound"
    error = InputError(invalid("target_range", requirement, value))
    if value is None:
        return -np.inf, np.inf
    ordered = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if isinstance(value, (str, dict)) or not ordered or len(value) != 2:
        raise error
    bounds = []
    for end, infinite in zip(value, (-np.inf, np.inf), strict=True):
        number = isinstance(end, numbers.Real) and not isinstance(end, bool)
        if end is not None and (not number or np.isnan(end)):
            raise error
        bounds.append(infinite if end is None else float(end))
    if not bounds[0] < bounds[1]:
        raise error
    return bounds[0], bounds[1]


def _check_count_parameters(estimator: Any, transform: Any, high: float) -> None:
    """Refuse parameters that counts do not combine with."""
    if transform not in (None, "auto"):
        text = "models the logarithm of the mean of counts, and takes no transformation"
        remedies: tuple[Setting, ...] = (Setting("target_transform", None),)
        remedies += (Setting("target_kind", "continuous"),)
        raise InputError(Message("transformed-counts", text, "target_kind", "count", remedies))
    if high < np.inf:
        text = "is a distribution without an upper bound"
        remedies = (Setting("target_kind", "continuous"), Setting("target_range", (0, None)))
        raise InputError(Message("bounded-counts", text, "target_kind", "count", remedies))
    if not isinstance(estimator.noise, str):
        text = "has no correlated noise, which is defined on the scale of the regression"
        remedies = (Setting("target_transform", "sqrt", "use {} instead"), Setting("noise", "auto"))
        raise InputError(Message("correlated-counts", text, "target_kind", "count", remedies))
    if not isinstance(estimator.noise_variance, str):
        text = "determines the variance of the noise by the mean"
        remedies = (Setting("noise_variance", "pilot"),)
        raise InputError(Message("known-variance", text, "target_kind", "count", remedies))
