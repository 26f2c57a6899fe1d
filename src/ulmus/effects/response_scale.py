r"""Effects, covariances and designs on the response scale, that of y.

A response family leads from the prediction on the link scale to the mean of y. With the slopes s
(p,) of the mean in the prediction and the errors D (r, p) by the estimate of the family, the
covariance of the means at p points is, by the delta method,

.. math:: \mathrm{diag}(s) \, C \, \mathrm{diag}(s) + D'D

with the covariance C of the predictions. Effects are sums of such means, or functions of sums
(``linearisation``).
"""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.quasi_likelihood import VarianceFunction
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.sequential_design import DesignChoice, DesignScale, next_points
from ulmus.core.response import Counts, ResponseFamilies
from ulmus.core.response.family import LinkPrediction, ResponseFamily, covariances
from ulmus.core.response.point_mass import PointMass
from ulmus.effects.dropped_features import (
    AddedRows,
    DroppedChanges,
    added_rows,
    with_dropped_columns,
    without_standard_errors,
)
from ulmus.effects.estimands import Estimand
from ulmus.effects.inference import Estimates, infer
from ulmus.effects.linearisation import Linearisation, linearised
from ulmus.intervals.confidence import ErrorBars
from ulmus.intervals.response import (
    by_output,
    family_variance,
    link_predictions,
    total_variance,
)
from ulmus.intervals.standard_errors import joint_variance

# Weights of an average sum to one up to this.
ROUND_OFF = 1e-9


# ------------------------------------------------------------ effects


def estimated(
    fit: Fit, estimand: Estimand, target: str, dropped: DroppedChanges, *, joint: bool
) -> Estimates:
    """Estimates of the functionals of an estimand; ``joint`` requires their joint covariance."""
    functionals, labels = estimand.functionals, estimand.labels
    if fit.response is None:
        estimates = infer(fit, functionals, labels, target, joint=joint)
        return with_dropped_columns(fit, functionals, estimates, dropped)
    added = added_rows(fit, dropped, labels, functionals.count)
    linear = linearised(fit, functionals, added)
    each = [infer(fit, one.functionals, labels, target, joint=joint) for one in linear]
    parts = [
        _of_output(fit, k, one, found, target, added)
        for k, (one, found) in enumerate(zip(linear, each, strict=True))
    ]
    estimates = _joined(parts, average_limits(functionals, fit.response))
    if added is not None and added.terms is None:
        return without_standard_errors(estimates, added.rows)
    return estimates


def _of_output(
    fit: Fit,
    k: int,
    linear: Linearisation,
    found: Estimates,
    target: str,
    added: AddedRows | None,
) -> Estimates:
    """Estimates of the mean of output k, from those of the linear functionals of its errors.

    For the true function they are centred at the undersmoothed fit, whose distance from the fit is
    that of the linear functionals.
    """
    # Of derivatives alone, the allowance is the same for all outputs.
    errors = ErrorBars(*(a[:, [k]] for a in np.broadcast_arrays(*found.errors)))
    center = linear.center
    if target == "function":
        center = center + errors.center[:, 0] - fit.mean(linear.functionals)[k]
    variance = total_variance(errors.variance[:, 0], linear.family_variance)
    covariance = None if found.covariance is None else found.covariance[[k]]
    if covariance is not None and linear.family_errors is not None:
        covariance = covariance + covariances(linear.family_errors)
    if added is not None and added.terms is not None:
        by_terms = linear.terms @ added.terms.covariance[k]
        variance = variance + np.sum(by_terms * linear.terms, axis=1)
        covariance = None if covariance is None else covariance + by_terms @ linear.terms.T
    errors = errors._replace(center=center[:, None], variance=variance[:, None])
    return found._replace(errors=errors, covariance=covariance)


def _joined(parts: list[Estimates], limits: FloatArray) -> Estimates:
    """Estimates of several outputs side by side."""
    errors = ErrorBars(*map(np.hstack, zip(*(one.errors for one in parts), strict=True)))
    errors = errors._replace(center=np.clip(errors.center, *limits))
    blocks = [one.covariance for one in parts if one.covariance is not None]
    covariance = np.concatenate(blocks) if blocks else None
    return parts[0]._replace(errors=errors, covariance=covariance, limits=limits)


def average_limits(functionals: Functionals, families: ResponseFamilies) -> FloatArray:
    """Smallest and largest possible value of functionals, (2, q, K); infinite but for averages."""
    total = np.zeros(functionals.count)
    average = np.ones(functionals.count, dtype=bool)
    for piece in functionals.pieces:
        weights = piece.weights
        total += np.asarray(weights.sum(axis=0)).ravel()
        negative = np.asarray((weights < 0).sum(axis=0)).ravel() > 0
        used = np.asarray((weights != 0).sum(axis=0)).ravel() > 0
        average &= ~(negative | (used & (piece.directions is not None)))
    average &= np.abs(total - 1.0) < ROUND_OFF
    low, high = np.array([possible_means(one) for one in families]).T
    shown = average[:, None]
    return np.stack([np.where(shown, low, -np.inf), np.where(shown, high, np.inf)])


def possible_means(family: ResponseFamily) -> tuple[float, float]:
    """Smallest and largest possible mean of an observation."""
    if isinstance(family, Counts):
        return 0.0, np.inf
    bounded = family.above if isinstance(family, PointMass) else family
    return bounded.least, bounded.most  # type: ignore[attr-defined]


# ------------------------------------------------------------ covariances


def response_covariance(
    fit: Fit, X: Array, estimate: str | None = None, weight: FloatArray | None = None
) -> FloatArray:
    """Joint covariance of the predicted means of y, shape (K, p, p).

    The mean may depend on the weights (p,) of the observations.
    """
    variance, covariance = joint_variance(fit, X, estimate)
    if fit.response is None:
        return covariance
    links = link_predictions(fit, X, weight, variance.mean)
    for k, (family, link) in enumerate(zip(fit.response, links, strict=True)):
        slope, error = family.mean_slope(link), family.influence(link)
        covariance[k] = slope[:, None] * covariance[k] * slope + covariances(error)
    return covariance


def response_noise(fit: Fit, X: Array, weight: FloatArray | None = None) -> FloatArray:
    """Variance of new observations around their means, shape (p, K)."""
    if fit.response is None:
        return fit.noise_variance(X, weight)
    links = link_predictions(fit, X, weight)
    return by_output(fit.response, links, lambda family, link: family.noise_variance(link))


# ------------------------------------------------------------ designs


def response_design(fit: Fit, candidates: Array, targets: Array, n: int) -> DesignChoice:
    """New measurements that reduce the variances of the means of y at the targets most.

    A row whose weight follows from its mean has that of its predicted mean.
    """
    if fit.response is None:
        return next_points(fit, candidates, targets, n)
    links = link_predictions(fit, targets)
    slope = by_output(fit.response, links, lambda family, link: family.mean_slope(link))
    scale = DesignScale(slope**2, family_variance(fit.response, links))
    weight = None
    if fit.has_working_weights:  # the fit has a single output
        weight = working_weight(fit.response[0], link_predictions(fit, candidates)[0])
    return next_points(fit, candidates, targets, n, scale, weight)


def working_weight(family: ResponseFamily, link: LinkPrediction) -> FloatArray:
    """Weights (p,) of observations as rows of a fit whose weights follow from the means of y."""
    dispersion = family.dispersion if isinstance(family, Counts) else None
    unit = family.unit if isinstance(family, PointMass) else 1.0
    return VarianceFunction(dispersion, unit).weight(family.mean_slope(link))


def link_noise(fit: Fit, X: Array, weight: FloatArray | None = None) -> FloatArray:
    """Variance of new observations around the prediction on the link scale, shape (p, K)."""
    if fit.response is None or not fit.has_working_weights:
        return fit.noise_variance(X, weight)
    links = link_predictions(fit, X)
    slope = by_output(fit.response, links, lambda family, link: family.mean_slope(link))
    noise = response_noise(fit, X)
    return np.divide(noise, slope**2, out=np.zeros_like(noise), where=slope > 0)
