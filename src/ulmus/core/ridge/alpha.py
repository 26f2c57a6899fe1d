"""The ridge parameter alpha, by generalised, leave-one-out or leave-block-out cross-validation.

Scores are computed from the singular values of a few members, on a grid relative to the largest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy, transposed
from ulmus.core.data.cv_blocks import block_runs
from ulmus.core.data.scaling import OutputUnits
from ulmus.core.data.source import Block, Source, row_keys
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.factor import Factor, Spectrum, spectrum
from ulmus.core.ridge.preconditioner import scaled_rows
from ulmus.core.ridge.residuals import SMALLEST_ONE_MINUS_LEVERAGE, leave_block_out_errors
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

# alpha over the squared largest singular value: from interpolation to the mean.
RELATIVE_GRID = np.logspace(-14, 2, 65)
# Smallest share of the rows as residual degrees of freedom.
SMALLEST_RESIDUAL_SHARE = 1e-3
# Squared singular values below this share of alpha have no influence on the slope of the score.
HARDLY_SPANNED = 1e-4
# Largest number of members used to choose alpha, and about their total number of units: the score
# of a wide member varies little (benchmarks/core.py compares with the choice of all members).
ALPHA_MEMBERS = 5
ALPHA_UNITS = 2000
# Approximate number of rows in leave-one-out and leave-block-out scores; more add no precision.
SCORED_ROWS = 10_000
# Seed of the keys by which rows are chosen.
SEED = 3


class AlphaChoice(NamedTuple):
    """Ridge parameters and their uncertainty."""

    alphas: list[float]  # ridge parameter of each output
    # (K,): standard deviation of log alpha over the noise; zero for a fixed alpha.
    deviation: np.ndarray
    response: np.ndarray  # (K,): minus the derivative of log alpha by the slope of the score


def n_alpha_members(M: int, n_neurons: int) -> int:
    """Number of members used to choose alpha."""
    return min(M, ALPHA_MEMBERS, max(1, round(ALPHA_UNITS / n_neurons)))


def chosen_alphas(
    rule: float | str | tuple[float, ...],
    factor: Factor,
    layer: HiddenLayer,
    units: OutputUnits,
    source: Source | None,
) -> AlphaChoice:
    """Ridge parameter of each output: fixed for all or for each, or by a rule.

    Without a source there is no second pass: ``"loo"`` becomes ``"gcv"``, and ``"block-loo"``
    raises an error.
    """
    K = factor.y_square.shape[0]
    if not isinstance(rule, str):
        alphas = np.broadcast_to(np.asarray(rule, dtype=float), K).tolist()
        return AlphaChoice(alphas, np.zeros(K), np.zeros(K))
    few = slice(n_alpha_members(layer.n_members, layer.W.shape[1]))
    parts = spectrum(factor.members(few))
    alphas = alpha_grid(parts)
    if rule == "block-loo" and source is None:
        text = "requires two passes over the rows, and partial_fit has one"
        suggestions = Setting("alpha", "gcv"), "fit all rows at once"
        raise InputError(Message("second-pass", text, "alpha", rule, suggestions))
    if rule == "gcv" or source is None:
        scores = gcv_scores(parts, alphas)
    else:
        members, center = layer.members(few), factor.center[few, :]
        row_pass = LEAVE_OUT_PASSES[rule](
            members, units, parts, center, factor.y_constant, factor.mass, alphas
        )
        scores = source.for_width(members.width).reduce(row_pass)
    chosen = [best_alpha(alphas, scores[:, k]) for k in range(K)]
    uncertainty = [log_alpha_deviation(parts, alpha, k) for k, alpha in enumerate(chosen)]
    return AlphaChoice(chosen, *np.asarray(uncertainty).T)


def alpha_grid(parts: Spectrum) -> np.ndarray:
    """Candidate values of alpha in ascending order."""
    largest = float(namespace(parts.s).max(parts.s))
    return RELATIVE_GRID * max(largest, np.finfo(float).tiny ** 0.25) ** 2


def gcv_scores(parts: Spectrum, alphas: np.ndarray) -> np.ndarray:
    r"""Generalised cross-validation for each alpha, shape (A, K).

    .. math:: n \|(I - P)y\|^2 / (n - \operatorname{tr} P)^2,

    averaged over the members (Golub, Heath & Wahba, 1979).
    """
    scores, xp, n = [], namespace(parts.s), parts.n_rows
    for alpha in map(float, alphas):
        d = parts.filters(alpha)
        dof = n - parts.n_constants - xp.sum(d, axis=1)[:, None]  # n - tr P
        valid = dof > SMALLEST_RESIDUAL_SHARE * n
        rss = parts.residual_squares(d)
        score = n * rss / xp.where(valid, dof, xp.ones_like(dof)) ** 2
        score = xp.where(valid, score, xp.full_like(score, xp.inf))
        scores.append(to_numpy(xp.mean(score, axis=0)))
    return np.stack(scores)


@dataclass(frozen=True)
class LeaveOneOutPass:
    r"""Squared leave-one-out errors of an ensemble for each alpha and output.

    The residual of row i in member m fitted without it is :math:`r_{mi}/(1 - p_{mi})` exactly;
    the error of the ensemble is the mean over members. Errors are weighted by the row weights.
    """

    title: ClassVar[str] = "Choosing alpha: leave-one-out errors"

    layer: HiddenLayer
    units: OutputUnits
    parts: Spectrum
    center: Array
    y_constant: Array
    mass: float
    alphas: np.ndarray

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Sums over the blocks, shape (A, K)."""
        xp, n = namespace(self.parts.q), self.parts.n_rows
        d = xp.stack([self.parts.filters(float(a)) for a in self.alphas], axis=1)  # (m, A, r)
        trace = xp.max(xp.sum(d, axis=2), axis=0) + self.parts.n_constants
        total = np.zeros((len(self.alphas), self.parts.q.shape[2]))
        total[to_numpy(trace) > (1 - SMALLEST_RESIDUAL_SHARE) * n] = np.inf
        for block in self.units.blocks(blocks):
            scored = self._scored(block)
            if scored.y.shape[1] > 0:
                self._add(total, scored, d)
        return total

    def _scored(self, block: Block) -> Block:
        """The rows of a block that are scored."""
        if self.parts.n_rows <= SCORED_ROWS:
            return block
        share = SCORED_ROWS / self.parts.n_rows
        return block.taken(np.flatnonzero(row_keys(block, SEED) < share))

    def _add(self, total: np.ndarray, block: Block, d: Array) -> None:
        """Add the squared errors of a block of rows, with filters d (m, A, r)."""
        xp, q = namespace(d), self.parts.q
        Q, along = self._rows(block)
        one_minus_leverage = (1 - along**2) - d @ Q**2
        usable = one_minus_leverage > SMALLEST_ONE_MINUS_LEVERAGE
        one_minus_leverage = xp.where(usable, one_minus_leverage, xp.ones_like(one_minus_leverage))
        broken = xp.any(xp.any(~usable, axis=0), axis=1)
        unexplained = block.weighted_y - self.y_constant[:, None] * along
        for k in range(q.shape[2]):
            residual = unexplained[k, :] - (d * q[:, None, :, k]) @ Q
            error = xp.mean(residual / one_minus_leverage, axis=0)
            score = xp.sum(error**2, axis=1)
            total[:, k] += to_numpy(xp.where(broken, xp.full_like(score, xp.inf), score))

    def _rows(self, block: Block) -> tuple[Array, Array]:
        """Orthonormal coordinates of rows, (m, r, n), and along the constant, (n,)."""
        xp, first = namespace(self.parts.s), int(self.layer.constant)
        H = self.layer(block.X)[:, first:, :] - self.center[:, :, None]
        to_q = self.parts.Vt * self.parts.inverse(float(self.alphas[0]))[:, :, None]
        root = xp.ones_like(block.y[0, :]) if block.root_weight is None else block.root_weight
        along = first * root / self.mass**0.5
        return to_q @ scaled_rows(H, block.root_weight), along


@dataclass(frozen=True)
class LeaveBlockOutPass(LeaveOneOutPass):
    """Squared leave-block-out errors of an ensemble for each alpha and output.

    With correlated errors, leave-one-out favours undersmoothing: a row is predicted from the
    errors of its neighbours. Excluding the whole block avoids it.
    """

    title: ClassVar[str] = "Choosing alpha: leave-block-out errors"

    def _scored(self, block: Block) -> Block:
        """The rows of every few blocks."""
        if block.block_ids is None:
            suggestions = "give times, coordinates or groups of the rows", Setting("alpha", "loo")
            text = "requires blocks of rows"
            raise InputError(Message("no-block-ids", text, "alpha", "block-loo", suggestions))
        every = max(1, self.parts.n_rows // SCORED_ROWS)
        return block.taken(np.flatnonzero(block.block_ids % every == 0))

    def _add(self, total: np.ndarray, block: Block, d: Array) -> None:
        xp, q, block_ids = namespace(d), self.parts.q, block.block_ids
        assert block_ids is not None  # as blocks were scored
        Q, along = self._rows(block)
        unexplained = block.weighted_y - self.y_constant[:, None] * along
        constant = xp.broadcast_to(along, (Q.shape[0], 1, Q.shape[2]))
        for i in np.flatnonzero(np.isfinite(total[:, 0])):
            residual = unexplained - transposed(d[:, i, :, None] * q) @ Q
            t = xp.concat([constant, d[:, i, :, None] ** 0.5 * Q], axis=1)
            for run in block_runs(block_ids):
                errors = leave_block_out_errors(run.stacked(t), run.stacked(residual))
                if errors is None:
                    total[i, :] = np.inf
                    break
                total[i, :] += to_numpy(xp.sum(xp.mean(errors, axis=0) ** 2, axis=(0, 2)))


LEAVE_OUT_PASSES = {"loo": LeaveOneOutPass, "block-loo": LeaveBlockOutPass}


def best_alpha(alphas: np.ndarray, scores: np.ndarray) -> float:
    """The alpha of least score."""
    if not np.any(np.isfinite(scores)):
        return float(alphas[-1])
    # Of equal scores, the largest alpha: a constant output is fitted by its mean.
    return float(alphas[len(alphas) - 1 - int(np.argmin(scores[::-1]))])


def log_alpha_deviation(parts: Spectrum, alpha: float, k: int) -> tuple[float, float]:
    r"""Standard deviation of the logarithm of a chosen ridge parameter over the noise.

    The choice is the root of the slope of :math:`C(l) = \log\|(I - P)y\|^2 - 2\log(n - tr P)`,
    with :math:`l = \log\alpha`. To first order,

    .. math:: sd(\hat l) = sd(C'(l)) / C''(l).

    The slope is a sum of squares of the outputs along singular vectors, each of mean
    :math:`m^2 + \sigma^2` and variance :math:`2\sigma^4 + 4\sigma^2 m^2`. The variance of
    leave-one-out and leave-block-out is approximated by that of generalised cross-validation.

    Returns the standard deviation, at most 2, and the response :math:`1 / C''(l)`, reduced if the
    deviation is at its bound.
    """
    n = parts.n_rows - parts.n_constants
    # n rows span at most n directions, while the factor of a stream has as many as units.
    values, u2 = to_numpy(parts.s)[:, :n] ** 2, to_numpy(parts.q)[:, :n, k] ** 2
    # Directions that the units hardly span count as beyond them: their basis is arbitrary, or
    # round-off in single precision.
    spanned = values > HARDLY_SPANNED * alpha
    beyond = to_numpy(parts.beyond[:, k]) + np.sum(u2 * ~spanned, axis=1)
    values, u2 = values * spanned, u2 * spanned
    total = np.sum(u2, axis=1) + beyond
    if not np.all(total > 0):
        return 0.0, 0.0
    u2, beyond = u2 / total[:, None], beyond / total
    log_step = 0.5  # of the second difference
    steps = (-1, 0, 1)
    terms = [_slope_terms(values, u2, beyond, n, alpha * np.exp(i * log_step)) for i in steps]
    curvature = np.mean(terms[0].score - 2 * terms[1].score + terms[2].score) / log_step**2
    variance = np.mean(terms[1].slope_variance)
    if not variance > 0 or not np.isfinite(variance):
        return 0.0, 0.0
    sd = np.sqrt(variance)
    response = min(1 / max(curvature, 1e-12), 2.0 / sd)
    return float(response * sd), float(response)


class _SlopeTerms(NamedTuple):
    """Score of each member, and variance of its slope in log alpha, each of shape (m,)."""

    score: np.ndarray
    slope_variance: np.ndarray


def _slope_terms(
    values: np.ndarray, u2: np.ndarray, beyond: np.ndarray, n: int, alpha: float
) -> _SlopeTerms:
    """Terms from squared singular values (m, r) and squared outputs along their vectors (m, r)."""
    d = values / (values + alpha)
    remaining = (1 - d) ** 2
    rss = np.maximum(np.sum(remaining * u2, axis=1) + beyond, SMALLEST_RESIDUAL_SHARE**4)
    denominator = np.maximum(n - np.sum(d, axis=1), SMALLEST_RESIDUAL_SHARE * n)
    residual_dof = np.maximum(n - np.sum(d * (2 - d), axis=1), SMALLEST_RESIDUAL_SHARE * n)
    sigma2 = (rss / residual_dof)[:, None]
    growth = 2 * d * remaining
    slope = (np.sum(growth * u2, axis=1) / rss)[:, None]
    share = (growth - slope * remaining) / rss[:, None]
    square_variance = 2 * sigma2**2 + 4 * sigma2 * np.maximum(u2 - sigma2, 0)
    outside = max(n - values.shape[1], 0) * 2 * (sigma2 * slope / rss[:, None])[:, 0] ** 2
    variance = np.sum(share**2 * square_variance, axis=1) + outside
    return _SlopeTerms(np.log(rss) - 2 * np.log(denominator), variance)
