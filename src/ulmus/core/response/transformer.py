"""Transformations by transformers of scikit-learn's interface."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.response.transforms import Identity, Log, Logit, Sqrt, YeoJohnson
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

# Steps of the search for the end of a domain, and distance of an end that is far, in ranges of z.
DOUBLINGS, FAR = 60, 2.0


@dataclass(frozen=True)
class Fitted:
    """A fitted transformer of scikit-learn's interface, which increases."""

    transformer: Any
    center: float  # a possible y
    domain: tuple[float, float] = (-np.inf, np.inf)  # z that are inverted

    support = (-np.inf, np.inf)
    # Step of difference quotients relative to the size of z.
    STEP = 1e-6

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.transformer).__name__

    def forward(self, y: FloatArray) -> FloatArray:
        """Values on the link scale; infinite where y is impossible."""
        z = _by_column(self.transformer.transform, y)
        return np.where(np.isnan(z), np.where(y < self.center, -np.inf, np.inf), z)

    def inverse(self, z: FloatArray) -> FloatArray:
        """Values on the response scale."""
        return _by_column(self.transformer.inverse_transform, np.clip(z, *self.domain))

    def inverse_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the inverse, by a central difference."""
        z = np.clip(z, *self.domain)
        step = self.STEP * np.maximum(1.0, np.abs(z))
        with np.errstate(invalid="ignore"):
            rise = np.maximum(self.inverse(z + step) - self.inverse(z - step), 0.0)
        return np.where(np.isfinite(rise), rise / (2.0 * step), 0.0)

    def log_slope(self, y: FloatArray) -> FloatArray:
        """Logarithm of the derivative of the transformation."""
        with np.errstate(divide="ignore"):
            return -np.log(self.inverse_slope(self.forward(y)))


@dataclass(frozen=True)
class Transformer:
    """A transformer of scikit-learn's interface, which may have to be fitted."""

    transformer: Any
    is_fitted: bool

    def fitted(self, y: FloatArray) -> Fitted:
        """The transformation of values (n,), to which a copy is fitted if it is not fitted yet."""
        one = self.transformer
        if not self.is_fitted:
            one = copy.deepcopy(one).fit(y[:, None])
        found = Fitted(one, float(np.median(y)))
        _require_increasing(found, np.unique(y))
        ends = np.array([np.min(y), np.max(y)])
        return replace(found, domain=(_last(found, ends[::-1]), _last(found, ends)))


def _last(transform: Fitted, y: FloatArray) -> float:
    """The last z in the direction from y[0] to y[1] that is inverted.

    Where the inverse is infinite not far beyond y[1], as that of a power may be, it ends before.
    """
    z, width = transform.forward(y), float(np.ptp(y))

    def rise(value: float) -> float:
        return (float(transform.inverse(np.array([value]))[0]) - float(y[1])) * direction

    direction = 1.0 if z[1] >= z[0] else -1.0
    inside, step = float(z[1]), float(z[1] - z[0]) or 1.0
    # Beyond a pole the inverse returns from the other side.
    end = _end(lambda value: np.isfinite(rise(value)) and rise(value) >= 0.0, inside, step)
    if abs(end - inside) > FAR * abs(step):
        return end
    return _end(lambda value: 0.0 <= rise(value) <= width, inside, step)


def _end(holds: Callable[[float], bool], inside: float, step: float) -> float:
    """The last number in the direction of a step for which a condition holds."""
    for _ in range(DOUBLINGS):
        if not holds(inside + step):
            break
        inside, step = inside + step, 2.0 * step
    else:
        return float(np.copysign(np.inf, step))
    for _ in range(DOUBLINGS):
        step *= 0.5
        inside = inside + step if holds(inside + step) else inside
    return inside


def _require_increasing(transform: Fitted, y: FloatArray) -> None:
    """Raise an error for a transformation that does not increase, or has another inverse."""
    z = transform.forward(y)
    back = transform.inverse(z)
    if not np.all(np.diff(z) > 0):
        text = "does not increase on the values of y, so that quantiles cannot be transformed back"
    elif not np.allclose(back, y, rtol=1e-4, atol=1e-6 * float(np.ptp(y))):
        i = int(np.argmax(np.abs(back - y)))
        text = f"has an inverse that returns {back[i]:g} for the value {y[i]:g} of y"
    else:
        return
    remedies = "use a monotone transformation with its inverse", Setting("target_transform", "auto")
    name = transform.name
    raise InputError(Message("not-monotone", text, "target_transform", name, remedies))


def _by_column(function: Any, values: FloatArray) -> FloatArray:
    """A function of columns (n, 1) applied to an array of any shape, without its warnings."""
    column = np.asarray(values, dtype=float).reshape(-1, 1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of impossible values, which are not finite
        return np.asarray(function(column), dtype=float).reshape(np.shape(values))


AnyTransform = Identity | Log | Sqrt | Logit | YeoJohnson | Fitted
