"""The fitted members: a hidden layer, the units of y, and a regression for each ridge parameter.

Outputs of the same ridge parameter share a regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy, transposed
from ulmus.core.data.scaling import OutputUnits
from ulmus.core.data.source import Block
from ulmus.core.layer.functionals import Functionals, Points, by_features, count
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise.constant import NoiseVariance
from ulmus.core.ridge.residuals import RowFit, row_fit
from ulmus.core.ridge.smoother import Smoother, SmootherSummary, square_lengths
from ulmus.core.variance.quadratic_forms import PairForms
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting


@dataclass(frozen=True)
class Regression:
    """Outputs that share a ridge parameter: smoother, noise variance and forms."""

    outputs: tuple[int, ...]  # which outputs
    smoother: Smoother | SmootherSummary  # the members
    y_square: Array  # (K,): sums of squares of the outputs, centred if there is an intercept
    noise_variance: NoiseVariance  # noise variance at weight 1
    # (K,): standard deviation of log alpha over new noise; zero for a fixed alpha.
    alpha_deviation: np.ndarray
    # (K,): decrease of log alpha if noise increases the slope of the criterion by one.
    alpha_response: np.ndarray
    # Forms of each noise assumption of the estimates.
    forms: dict[str, PairForms] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without results that follow from them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def exact(self) -> Smoother:
        """The smoother with its coordinates, which a compact fit does not keep."""
        if isinstance(self.smoother, Smoother):
            return self.smoother
        cause = "requires the exact forms of the variances, which this fit does not keep"
        message = Message("compact-fit", cause, suggestions=(Setting("exact", True),))
        raise InputError(message)

    @property
    def alpha_vectors(self) -> Array:
        r"""Vectors of the variance due to the choice of alpha, shape (2, M, N', K).

        Shifts of predictions are products of coordinates with these vectors.
        With the slope f' of a prediction in :math:`l = \log\alpha` and its covariance c with l,
        that is :math:`f'^2 Var(l) + 2 f' c`: the square of :math:`f' sd(l) + c / sd(l)` less that
        of :math:`c / sd(l)`.
        """
        smoother = self.exact
        xp, q = namespace(smoother.q), smoother.q
        sd, response = like(self.alpha_deviation, q), like(self.alpha_response, q)
        share = xp.where(sd > 0, response / xp.where(sd > 0, sd, xp.ones_like(sd)), sd)
        gradient = smoother.score_gradient * (-2 * share * self.noise_variance.sigma2)
        return xp.stack([smoother.ridge_slope * sd + gradient, gradient])

    @cached_property
    def alpha_weights(self) -> Array:
        """Coefficients of the features in these shifts of the ensemble, shape (2, K, M N')."""
        if isinstance(self.smoother, SmootherSummary):
            return self.smoother.alpha_weights
        vectors, M = self.alpha_vectors, self.smoother.n_members
        weights = transposed(self.smoother.to_t) @ vectors / M
        shape = (2, -1, vectors.shape[3])
        return transposed(namespace(weights).reshape(weights, shape))

    @property
    def summary(self) -> Regression:
        """The regression without the coordinates of points, for predictions."""
        if isinstance(self.smoother, SmootherSummary):
            return self
        smoother = self.smoother.summary(self.alpha_weights)
        return replace(self, smoother=smoother, forms={})


@dataclass(frozen=True)
class Ensemble:
    """A hidden layer and its regressions, all in the fit's units of y."""

    layer: HiddenLayer  # the hidden units
    units: OutputUnits  # shift and unit of each output
    regressions: tuple[Regression, ...]  # one for each ridge parameter

    @property
    def n_members(self) -> int:
        """Number of members."""
        return self.layer.n_members

    @property
    def n_rows(self) -> int:
        """Number of training rows of positive weight."""
        return self.regressions[0].smoother.n_rows

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.units.unit.shape[0])

    @property
    def unit(self) -> np.ndarray:
        """Unit of each output, shape (K,)."""
        return to_numpy(self.units.unit)

    @property
    def shift(self) -> np.ndarray:
        """Offset of each output, shape (K,)."""
        return to_numpy(self.units.shift)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Ridge parameter of each output."""
        return tuple(self.per_output(part.smoother.alpha for part in self.regressions).tolist())

    def ordered(self, parts: Iterable[Array], axis: int = 0) -> Array:
        """Results of the regressions, joined along an axis in the order of the outputs."""
        arrays = list(parts)
        if len(arrays) == 1:
            return arrays[0]
        xp = namespace(*arrays)
        order = np.argsort([k for regression in self.regressions for k in regression.outputs])
        index = xp.asarray(order, device=arrays[0].device)
        return xp.take(xp.concat(arrays, axis=axis), index, axis=axis)

    def per_output(self, values: Iterable[float]) -> np.ndarray:
        """One number for each regression as one for each output, shape (K,)."""
        parts = zip(values, self.regressions, strict=True)
        return self.ordered(np.full(len(regression.outputs), value) for value, regression in parts)

    def mean(self, X: Array | Functionals) -> np.ndarray:
        """Prediction at the rows of X, or of functionals, shape (K, p)."""
        return np.concatenate(by_features(self.mean_of, self.layer, X), axis=1)

    def mean_of(self, h: Array) -> np.ndarray:
        """Prediction for features h (M, N', p), shape (K, p)."""
        xp = namespace(h)
        flat = xp.reshape(h, (-1, h.shape[2]))
        parts = []
        for regression in self.regressions:
            beta = xp.reshape(regression.smoother.beta, (flat.shape[0], -1)) / self.n_members
            parts.append(to_numpy(beta.T @ flat))
        shift = self.shift[:, None] * to_numpy(self.layer.shares(h))
        return shift + self.unit[:, None] * self.ordered(parts)

    def alpha_shifts(self, X: Points) -> np.ndarray:
        """Shifts of predictions that yield their covariance due to the choice of alpha, (2, K, p).

        The covariance is the product of the first shifts of two predictions less that of the
        second.
        """
        if not any(np.any(regression.alpha_deviation > 0) for regression in self.regressions):
            return np.zeros((2, self.n_outputs, count(X)))
        shifts = by_features(self._alpha_shifts, self.layer, X)
        # Squares of their units may exceed single precision.
        return np.concatenate(shifts, axis=2).astype(float) * self.unit[:, None]

    def _alpha_shifts(self, h: Array) -> np.ndarray:
        """The same for features h (M, N', p) in the fit's units."""
        flat = namespace(h).reshape(h, (-1, h.shape[2]))
        parts = [to_numpy(regression.alpha_weights @ flat) for regression in self.regressions]
        return self.ordered(parts, axis=1)

    def row_fits(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, list[RowFit]]]:
        """Each block of training rows with its fit by every regression."""
        for block in self.units.blocks(blocks):
            xp, h = namespace(block.y), self.layer(block.X)
            fits = []
            for regression in self.regressions:
                y = xp.stack([block.y[k, :] for k in regression.outputs])
                fits.append(row_fit(regression.exact, h, y, block.root_weight, block.block_ids))
            yield block, fits

    def members(self, few: slice) -> Ensemble:
        """Some of the members, without forms."""
        each = ((regression, regression.exact.members(few)) for regression in self.regressions)
        parts = tuple(
            replace(regression, smoother=smoother, forms={}) for regression, smoother in each
        )
        return replace(self, layer=self.layer.members(few), regressions=parts)

    @property
    def summary(self) -> Ensemble:
        """The ensemble without the coordinates of points, for predictions."""
        return replace(self, regressions=tuple(part.summary for part in self.regressions))

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients of the features in the units of the outputs, shape (M, N', K)."""
        beta = [to_numpy(regression.smoother.beta) for regression in self.regressions]
        return self.ordered(beta, axis=2) * self.unit


def mean_and_spread(members: Array, others: Array | None = None) -> tuple[Array, Array]:
    """Mean over members (M, K, p), and their sample variance, (K, p).

    With predictions of the same members elsewhere, (M, K, p'), it is their covariance, (K, p, p').
    """
    xp, M = namespace(members), members.shape[0]
    mean = xp.mean(members, axis=0)
    if others is None:
        return mean, xp.sum((members - mean) ** 2, axis=0) / max(M - 1, 1)
    left, right = (xp.permute_dims(a - xp.mean(a, axis=0), (1, 0, 2)) for a in (members, others))
    return mean, transposed(left) @ right / max(M - 1, 1)


def mean_leverage(t: Array) -> np.ndarray:
    """Squared lengths of coordinates t (M, N', p), mean over members, shape (p,)."""
    return to_numpy(square_lengths(t)).mean(axis=0)


def member_values(smoother: Smoother, t: Array) -> Array:
    """Predictions of each member for coordinates t, all or the leading ones, shape (M, K, p)."""
    return transposed(smoother.q[:, : t.shape[1], :]) @ t
