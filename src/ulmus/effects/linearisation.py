r"""Functionals of the mean of y as linear functionals of the fit.

The mean of an observation at x is :math:`\mu(x) = g(\eta(x), s(x))`, with the prediction
:math:`\eta` and the noise's standard deviation s on the link scale, and the mean g of the response
family. The sum :math:`\theta = \sum_i w_i \mu(x_i)` has the error

.. math:: \hat\theta - \theta \approx \sum_i w_i \, g_\eta \, \delta\eta(x_i)
                                      + \sum_i w_i \, \delta g(x_i),

with subscripts for derivatives. The first sum is a linear functional of the fit, with the weights
:math:`w_i g_\eta`. The second is due to the estimate of the family, with the errors of
``family.influence``. The derivative in a direction d, :math:`\mu_d = g_\eta \eta_d + g_s s_d`, has
the error

.. math:: (g_{\eta\eta} \eta_d + g_{\eta s} s_d) \, \delta\eta + g_\eta \, \delta\eta_d
          + \delta g_d,

where the first two terms are a value and a derivative of the fit. A modelled variance of the noise
is taken as known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, dense, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, Piece, Rows
from ulmus.core.response.family import LinkPrediction, ResponseFamily, variances
from ulmus.effects.dropped_features import AddedRows
from ulmus.intervals.response import link_predictions, needs_noise

# Steps of difference quotients in standard deviations of the noise. Derivatives of a mean jump
# where residuals reach a bound of y, and second derivatives require a wide step.
STEP, WIDE_STEP = 1e-3, 0.1
# Steps without noise, relative to the unit of the output.
NOISELESS = 1e-2
# Functionals whose errors by the family are computed together.
MOST_FUNCTIONALS = 2**15


@dataclass
class Linearisation:
    """Functionals of the mean of one output, and the linear functionals of their errors."""

    center: np.ndarray  # (q,): their values
    family_variance: np.ndarray  # (q,): variance by the estimate of the family
    terms: np.ndarray  # (q, d): derivatives by the coefficients of added linear terms
    # (r, q): errors by the estimate of the family; None for many functionals.
    family_errors: np.ndarray | None = None
    pieces: list[Piece] = field(default_factory=list)  # linear functionals of the prediction

    @property
    def functionals(self) -> Functionals:
        """The linear functionals."""
        return Functionals(tuple(self.pieces))


class Sensitivity(NamedTuple):
    """Means of y at b points, or their derivatives in directions, and derivatives of these."""

    value: np.ndarray  # (b,)
    by_value: np.ndarray  # (b,): derivative by the prediction
    by_slope: np.ndarray | None  # (b,): derivative by that of the prediction; None for means
    by_family: np.ndarray  # (r, b): errors by the estimate of the family


class AddedInputs(NamedTuple):
    """Inputs of added linear terms at b points, and their derivatives in directions."""

    value: np.ndarray  # (b, d): less their means
    slope: np.ndarray | None  # (b, d); None for values


class PointLinks(NamedTuple):
    """Predictions of each output at b points, and their derivatives in directions."""

    links: list[LinkPrediction]
    mean_slope: np.ndarray | None  # (K, b); None for values
    sd_slope: np.ndarray | None  # (K, b): derivatives of the noise's standard deviation
    added: AddedInputs | None  # inputs of added linear terms, which the predictions include


def linearised(
    fit: Fit, functionals: Functionals, added: AddedRows | None = None
) -> list[Linearisation]:
    """Functionals of the mean of each output, some of them with added linear terms."""
    q, K = functionals.count, fit.ensemble.n_outputs
    d = 0 if added is None or added.terms is None else len(added.terms.center)
    results = [Linearisation(np.zeros(q), np.zeros(q), np.zeros((q, d))) for _ in range(K)]
    parts = _parts(functionals, None if d == 0 else added)
    derivatives = [[_Derivatives(piece) for piece, _ in parts] for _ in range(K)]
    for start in range(0, q, MOST_FUNCTIONALS):
        few = slice(start, min(start + MOST_FUNCTIONALS, q))
        errors = [np.zeros((1, few.stop - few.start)) for _ in range(K)]
        for i, (piece, terms) in enumerate(parts):
            for rows, weights in piece.blocks(few, fit.ensemble.layer):
                points = point_links(fit, piece, rows, terms)
                for k, one in enumerate(sensitivities(fit, points)):
                    derivatives[k][i].set(rows, one)
                    results[k].center[few] += weights.T @ one.value
                    if points.added is not None:
                        results[k].terms[few] += weights.T @ _by_terms(one, points.added)
                    errors[k] = errors[k] + (weights.T @ one.by_family.T).T
        for result, error in zip(results, errors, strict=True):
            result.family_variance[few] = variances(error)
            result.family_errors = error if few == slice(0, q) else None
    for result, each in zip(results, derivatives, strict=True):
        result.pieces = [piece for one in each for piece in one.pieces()]
    return results


def _parts(
    functionals: Functionals, added: AddedRows | None
) -> list[tuple[Piece, AddedRows | None]]:
    """Pieces without and with added terms, which only some of the functionals have."""
    if added is None:
        return [(piece, None) for piece in functionals.pieces]
    parts: list[tuple[Piece, AddedRows | None]] = []
    for piece in functionals.pieces:
        for terms, columns in ((None, ~added.rows), (added, added.rows)):
            chosen = scipy.sparse.diags_array(columns.astype(float))
            weights = scipy.sparse.csr_array(piece.weights @ chosen)
            weights.eliminate_zeros()
            if weights.nnz:
                parts.append((Piece(piece.points, weights, piece.directions), terms))
    return parts


class _Derivatives:
    """Derivatives at the points of a piece, by which its weights are multiplied."""

    def __init__(self, piece: Piece) -> None:
        p = piece.weights.shape[0]
        self.piece, self.by_value, self.by_slope = piece, np.zeros(p), np.zeros(p)

    def set(self, rows: Rows, one: Sensitivity) -> None:
        """Keep those of some points."""
        self.by_value[rows] = one.by_value
        if one.by_slope is not None:
            self.by_slope[rows] = one.by_slope

    def pieces(self) -> Iterator[Piece]:
        """Values, and derivatives, with these weights."""
        piece = self.piece
        yield Piece(piece.points, self._scaled(self.by_value))
        if piece.directions is not None:
            yield Piece(piece.points, self._scaled(self.by_slope), piece.directions)

    def _scaled(self, factor: np.ndarray) -> Any:
        return scipy.sparse.csr_array(scipy.sparse.diags_array(factor) @ self.piece.weights)


# ------------------------------------------------------------ points


def point_links(fit: Fit, piece: Piece, rows: Rows, added: AddedRows | None) -> PointLinks:
    """Predictions at some points of a piece, with added linear terms if there are any."""
    X = piece.points(rows)
    D = None if piece.directions is None else piece.directions(rows)
    links = link_predictions(fit, X)
    slope = None if D is None else fit.ensemble.mean_of(fit.ensemble.layer.derivative(X, D))
    sd_slope = None if D is None else noise_sd_slopes(fit, X, D, links)
    if added is None or added.terms is None:
        return PointLinks(links, slope, sd_slope, None)
    beta, inputs = added.terms.coefficients, added.inputs
    value = to_numpy(dense(X))[:, inputs].astype(float) - added.terms.center
    links = [one._replace(mean=one.mean + value @ beta[:, k]) for k, one in enumerate(links)]
    if D is None or slope is None:
        return PointLinks(links, None, None, AddedInputs(value, None))
    change = to_numpy(dense(D))[:, inputs].astype(float)
    return PointLinks(links, slope + (change @ beta).T, sd_slope, AddedInputs(value, change))


def noise_sd_slopes(
    fit: Fit, X: Array, directions: Array, links: Sequence[LinkPrediction]
) -> np.ndarray:
    """Derivatives of the noise's standard deviation in directions, shape (K, b).

    With the variance :math:`v = f e^{c g(x)}` of the noise model that is :math:`v c g_d / (2 s)`.
    """
    slopes, model = np.zeros((len(links), X.shape[0])), fit.noise_model
    if model is None or not needs_noise(fit):
        return slopes
    variance = fit.unit_noise(X) * fit.ensemble.unit[:, None] ** 2 / fit.mean_weight
    for k, ensemble in enumerate(model.logs):
        if ensemble is None:
            continue
        log = ensemble.mean(X)[0]
        slope = ensemble.mean_of(ensemble.layer.derivative(X, directions))[0]
        inside = (log > model.low[k]) & (log < model.high[k]) & (links[k].noise_sd > 0)
        rate = model.share[k] * slope * variance[k]
        slopes[k, inside] = rate[inside] / (2.0 * links[k].noise_sd[inside])
    return slopes


# ------------------------------------------------------------ derivatives


def sensitivities(fit: Fit, points: PointLinks) -> Iterator[Sensitivity]:
    """Means of each output at some points, or their derivatives."""
    assert fit.response is not None
    for k, (family, link) in enumerate(zip(fit.response, points.links, strict=True)):
        if points.mean_slope is None or points.sd_slope is None:
            values = family.mean(link), family.mean_slope(link), None, family.influence(link)
            yield Sensitivity(*values)
        else:
            direction = points.mean_slope[k], points.sd_slope[k]
            step = np.where(link.noise_sd > 0, link.noise_sd, NOISELESS * fit.ensemble.unit[k])
            yield _derivative_sensitivity(family, link, *direction, step)


def _derivative_sensitivity(
    family: ResponseFamily,
    link: LinkPrediction,
    mean_slope: np.ndarray,
    sd_slope: np.ndarray,
    step: np.ndarray,
) -> Sensitivity:
    """Derivative of the mean in a direction, from those of the prediction and of its noise."""
    by_slope = family.mean_slope(link)
    value = by_slope * mean_slope
    if np.any(sd_slope):
        along_sd = np.zeros_like(mean_slope), sd_slope
        value = value + directional(family.mean, link, *along_sd, STEP * step)
    along = mean_slope, sd_slope, WIDE_STEP * step
    by_value = directional(family.mean_slope, link, *along)
    return Sensitivity(value, by_value, by_slope, directional(family.influence, link, *along))


def directional(
    function: Callable[[LinkPrediction], np.ndarray],
    link: LinkPrediction,
    mean_slope: np.ndarray,
    sd_slope: np.ndarray,
    step: np.ndarray,
) -> np.ndarray:
    """Derivative of a function of predictions in a direction, by the five-point formula.

    ``step`` is the largest change of the prediction, or of the noise's standard deviation.
    """
    size = np.maximum(np.abs(mean_slope), np.abs(sd_slope))
    t = step / np.where(size > 0, size, 1.0)

    def central(j: int) -> np.ndarray:
        ends = (
            link._replace(
                mean=link.mean + sign * t * mean_slope,
                noise_sd=link.noise_sd + sign * t * sd_slope,
            )
            for sign in (j, -j)
        )
        above, below = map(function, ends)
        return above - below

    return (8.0 * central(1) - central(2)) / (12.0 * t)


def _by_terms(one: Sensitivity, added: AddedInputs) -> np.ndarray:
    """Derivatives of the values at b points by coefficients of added terms, (b, d)."""
    derivative = one.by_value[:, None] * added.value
    if one.by_slope is None or added.slope is None:
        return derivative
    return derivative + one.by_slope[:, None] * added.slope
