r"""The shape of scaled residuals: a smooth distribution by its normal scores.

A residual e in units of its own standard deviation gets the normal score
:math:`g(e) = \Phi^{-1}(F(e))`. Between knots g is a monotone rational quadratic spline, whose
inverse has a closed form (Gregory & Delbourgo, 1982). Beyond the outermost knot :math:`e_0` with
score :math:`z_0` and slope d,

.. math:: g(e)^2 = z_0^2 + 2 |z_0| \, d \, |e - e_0|,

so that the density falls off as an exponential function: never faster than a normal one, and its
logarithm is finite everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from ulmus.core.arrays.backend import FloatArray

# Knots grow with the cube root of the number of residuals; these are the fewest and the most.
KNOTS_PER_ROOT = 2.0
FEWEST_KNOTS, MOST_KNOTS = 7, 27
# Residuals beyond the outermost knots, of which the tails are made, times the root of their number.
TAIL_ROOTS = 0.8
# Tied residuals: neighbouring knots lie at least so many standard deviations apart. In a smaller
# step, the distribution function would rise by more than 1e-8 between neighbouring numbers.
SMALLEST_STEP = 1e-4


@dataclass(frozen=True)
class ResidualShape:
    """Distributions of the scaled residuals of K outputs."""

    knot: FloatArray  # (K, m): residuals in units of their standard deviations, ascending
    score: FloatArray  # (m,): their normal scores, ascending and symmetric about zero
    slope: FloatArray  # (K, m): derivatives of the score at the knots
    shaped: npt.NDArray[np.bool_]  # (K,): outputs whose residuals are clearly not normal

    def scores(self, e: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Normal scores of scaled residuals of output k, and the derivative there."""
        x, z, d = self.knot[k], self.score, self.slope[k]
        i = np.clip(np.searchsorted(x, e) - 1, 0, len(x) - 2)
        width, height = x[i + 1] - x[i], z[i + 1] - z[i]
        t, s = np.clip((e - x[i]) / width, 0.0, 1.0), height / width
        u = t * (1 - t)
        below = s + (d[i] + d[i + 1] - 2 * s) * u
        score = z[i] + height * (s * t**2 + d[i] * u) / below
        inner = d[i + 1] * t**2 + 2 * s * u + d[i] * (1 - t) ** 2
        slope = s**2 * inner / below**2
        for end, sign in ((0, -1), (-1, 1)):
            beyond = np.maximum(sign * (e - x[end]), 0.0)
            rate = abs(z[end]) * d[end]
            root = np.sqrt(z[end] ** 2 + 2 * rate * beyond)
            score = np.where(beyond > 0, sign * root, score)
            slope = np.where(beyond > 0, rate / root, slope)
        return score, slope

    def residuals(self, score: FloatArray, k: int) -> FloatArray:
        """Scaled residuals of output k that have the given normal scores."""
        x, z, d = self.knot[k], self.score, self.slope[k]
        i = np.clip(np.searchsorted(z, score) - 1, 0, len(z) - 2)
        width, height = x[i + 1] - x[i], z[i + 1] - z[i]
        s, rise = height / width, np.clip(score - z[i], 0.0, height)
        bend = rise * (d[i] + d[i + 1] - 2 * s)
        # The root in [0, 1] of a t^2 + b t + c = 0, in the form that loses no digits.
        a, b, c = height * (s - d[i]) + bend, height * d[i] - bend, -s * rise
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
        e = x[i] + width * np.clip(-2 * c / (b + root), 0.0, 1.0)
        for end, sign in ((0, -1), (-1, 1)):
            beyond = sign * (score - z[end]) > 0
            excess = (score**2 - z[end] ** 2) / (2 * abs(z[end]) * d[end])
            e = np.where(beyond, x[end] + sign * excess, e)
        return e

    def quantile(self, k: int) -> Callable[[FloatArray], FloatArray]:
        """Quantile function of the scaled residuals of output k."""
        return lambda q: self.residuals(special.ndtri(q), k)


def residual_shape(errors: FloatArray, shaped: npt.NDArray[np.bool_]) -> ResidualShape:
    """Shape of scaled residuals (K, n), by quantiles at equally spaced normal scores.

    The quantile at level q has the plotting position q (n + 1). The slope at an outermost knot is
    that of the exponential tail whose mean excess is that of the residuals beyond the knot.
    """
    n = errors.shape[1]
    m = int(np.clip(round(KNOTS_PER_ROOT * n ** (1 / 3)), FEWEST_KNOTS, MOST_KNOTS))
    tail = min(max(TAIL_ROOTS * np.sqrt(n), 3.0), 0.25 * n) / (n + 1)
    end = -special.ndtri(tail)
    score = np.linspace(-end, end, m)
    # The mean of (z^2 - end^2) / (2 end) for a normal z beyond end.
    mills = np.exp(-0.5 * end**2) / np.sqrt(2 * np.pi) / tail
    factor = 0.5 * (1 + end * mills - end**2) / end
    knots, slopes = [], []
    for e in np.sort(errors, axis=1):
        x = np.interp(special.ndtr(score) * (n + 1) - 1, np.arange(n), e)
        smallest = SMALLEST_STEP * (np.std(e) or 1.0)
        x = _separated(x, smallest)
        secant = np.diff(score) / np.diff(x)
        # Harmonic means, which let flat stretches stay flat.
        inner = 2 / (1 / secant[:-1] + 1 / secant[1:])
        excesses = _mean_excess(x[0] - e), _mean_excess(e - x[-1])
        outer = [factor / max(excess, smallest) for excess in excesses]
        knots.append(x)
        slopes.append(np.concatenate([outer[:1], inner, outer[1:]]))
    return ResidualShape(np.stack(knots), score, np.stack(slopes), shaped)


def _separated(x: FloatArray, step: float) -> FloatArray:
    """Ascending numbers at least a step apart; those of ties move to both sides."""
    ramp = step * np.arange(len(x))
    up = np.maximum.accumulate(x - ramp)
    down = np.minimum.accumulate((x - ramp)[::-1])[::-1]
    return 0.5 * (up + down) + ramp


def _mean_excess(beyond: FloatArray) -> float:
    """Mean of the positive values, zero where there are none."""
    positive = beyond[beyond > 0]
    return float(np.mean(positive)) if len(positive) else 0.0
