r"""Sequential design: candidates that reduce the variance at target points most.

A candidate becomes a training row with coordinates q, those of its features times the root of its
weight. By the Sherman-Morrison formula, the coordinates of a point x in each member become

.. math:: t_m^+(x) = t_m(x) - t_m(q)\, b_m(x), \qquad
          b_m(x) = \frac{q_m' t_m(x)}{1 + q_m' t_m(q)},

where t(q) are the coordinates q updated for all rows added before. The smoother row of x gets the
further entry :math:`b_m(x)`, and the prediction of the member changes by :math:`b_m(x)` times its
residual at the new row. With :math:`K_{ml} = Q_m' D_{ml} Q_l`, a sum over pairs of members
(``variance.quadratic_forms``) becomes

.. math:: \sum_{m,l} t_m' K_{ml} t_l - 2 \sum_m b_m\, t_m(q)' \sum_l K_{ml} t_l
          + \sum_{m,l} b_m b_l \left( t_m(q)' K_{ml} t_l(q) + D_{ml} \right),

with the noise variance :math:`D_{ml}` of the new row, whose error is taken as independent of the
others. The forms include the noise covariance of the training rows. The inner sum is computed once
for each target, the bracket once for each candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, column_sums, like, namespace, to_numpy, transposed
from ulmus.core.ensemble.ensemble import Regression, mean_and_spread, member_values
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import by_features
from ulmus.core.ridge.member_pairs import COMMON, PAIRINGS, Pairing, PairSums
from ulmus.core.variance.estimates import ESTIMATES, PointParts, model_variance, never_negative
from ulmus.core.variance.quadratic_forms import PairwiseForm, row_form
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

# Candidates are evaluated in blocks: largest number of members x outputs x candidates x targets.
CANDIDATE_ELEMENTS = 2**22
# Relative change of a sum of variances that is round-off.
ROUND_OFF = 1e-9


class DesignChoice(NamedTuple):
    """New measurements in the order of their choice."""

    rows: np.ndarray  # (n,): index of each in the candidates
    before: np.ndarray  # (p, K): variance of the prediction at each target before any of them
    variance: np.ndarray  # (n, p, K): variance after the first, the first two, ... of them
    improved: np.ndarray  # (n,): whether each reduces it; those that do not are not used


class DesignScale(NamedTuple):
    """How variances of predictions at the targets become those of means of y, each (p, K)."""

    factor: np.ndarray  # squared slopes of the mean in the prediction
    added: np.ndarray  # variance that does not depend on new measurements


def next_points(
    fit: Fit,
    candidates: Array,
    targets: Array,
    n: int,
    scale: DesignScale | None = None,
    weight: np.ndarray | None = None,
) -> DesignChoice:
    """Greedy sequential design: each measurement is the best one given those before it.

    The best candidate minimises the sum over targets of the variance of the prediction, by the
    default estimate of the fit. Each output is in units of its mean variance before. A row that
    would increase this sum is not used: with a fixed ridge parameter it may reduce the shrinkage
    more than the variance, and without weights a row of large noise has its full influence. The
    ridge parameter, hidden weights, noise variances, and the variance due to the choice of alpha
    and of the map are fixed. A new row has its ``weight`` (c,), or the mean weight of the training
    rows, the noise variance of a new observation, and the prediction as its output. Without ridge,
    the null space of the hidden features of the training rows is not updated.

    Each of the candidates (c, d) can be measured any number of times; repeated targets (p, d) count
    repeatedly. With a ``scale``, variances are those of means of y.
    """
    for name, value in (("candidates", candidates), ("targets", targets)):
        if value.shape[0] < 1:
            suggestion = ("give at least one point",)
            raise InputError(Message(f"empty-{name}", "has no rows", name, suggestions=suggestion))
    if n < 1:
        text = "is not a number of measurements"
        raise InputError(Message("invalid-n", text, "n", n, ("use n >= 1",)))
    ensemble, square = fit.exact_ensemble, fit.ensemble.unit**2
    factor = None if scale is None else scale.factor.T
    regressions = [
        augmented_regression(fit, part, candidates, targets, factor, weight)
        for part in ensemble.regressions
    ]
    choice = fit.choice_variance(targets)

    def variance(regressions: list[AugmentedRegression]) -> np.ndarray:
        of_link = ensemble.ordered([one.variance for one in regressions]).T * square + choice
        return of_link if scale is None else of_link * scale.factor + scale.added

    variances, rows = [variance(regressions)], []
    mean = np.mean(variances[0] / square, axis=0)
    share = np.divide(1.0, mean, out=np.ones_like(mean), where=mean > 0)
    improved = []
    for _ in range(n):
        scores = np.sum([one.scores(share) for one in regressions], axis=0)
        rows.append(int(np.argmin(scores)))
        # Not strictly less: with many rows a further one changes nothing but round-off.
        least = sum(one.score(share) for one in regressions) * (1 + ROUND_OFF)
        improved.append(bool(scores[rows[-1]] <= least))
        if improved[-1]:
            regressions = [one.with_row(rows[-1]) for one in regressions]
        variances.append(variance(regressions))
    arrays = np.asarray(rows), variances[0], np.stack(variances[1:])
    return DesignChoice(*arrays, np.asarray(improved))


class MemberPredictions(NamedTuple):
    """Coordinates t (M, N', p) of points, and predictions f (M, K, p) of the members there."""

    t: Array
    f: Array


@dataclass(frozen=True)
class AugmentedRegression:
    """A regression with some candidates as further training rows, in the fit's units of y."""

    part: Regression  # the regression without them
    forms: tuple[PairwiseForm, ...]  # the forms of the variance estimate
    estimate: str  # name of the variance estimate
    # (M, N', c): coordinates q of all candidates as training rows, in the regression without them.
    rows: Array
    noise: Array  # (1, c): noise variance of such a row for each form of the estimate
    candidates: MemberPredictions  # in the augmented regression, as weighted rows
    targets: MemberPredictions  # in the augmented regression
    chosen: tuple[int, ...] = ()  # candidates that were added
    # (K, p): variance before the last row, the bound of negative estimates.
    bound: np.ndarray | None = None
    factor: np.ndarray | None = None  # (K, p): factors of the variances at the targets

    @property
    def pairing(self) -> Pairing:
        """Pairing of the estimate."""
        return PAIRINGS[ESTIMATES[self.estimate].pairing]

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of the prediction at the targets, shape (K, p)."""
        sums = [PairSums(*(column_sums(self.targets.t, a) for a in one)) for one in self.applied]
        return self._variances(self.targets.f, sums, self.bound)

    def score(self, share: np.ndarray) -> float:
        """Sum over targets and outputs of the variance, weighted by ``share`` (K,)."""
        return float(share[list(self.part.outputs)] @ self._total(self.variance[:, None])[:, 0])

    def scores(self, share: np.ndarray) -> np.ndarray:
        """The same with each candidate as the next row, (c,)."""
        weights = share[list(self.part.outputs)]
        return np.concatenate([weights @ self._total(v) for v in self._by_candidate()])

    def _total(self, variance: np.ndarray) -> np.ndarray:
        """Sums over the targets of variances (K, few, p) times their factors, (K, few)."""
        each = variance if self.factor is None else variance * self.factor[:, None, :]
        return each.sum(axis=2, dtype=float)

    def with_row(self, i: int) -> AugmentedRegression:
        """The regression with candidate i added, whose output is the ensemble's prediction."""
        one = slice(i, i + 1)
        t, residual = self.candidates.t[:, :, one], self._residuals(one)

        def updated(points: MemberPredictions) -> MemberPredictions:
            b = self._entries(points.t, one)
            return MemberPredictions(points.t - t @ b, points.f + residual @ b)

        return replace(
            self,
            candidates=updated(self.candidates),
            targets=updated(self.targets),
            chosen=(*self.chosen, i),
            bound=self.variance,
        )

    @cached_property
    def applied(self) -> list[PairSums]:
        """Sums over l of K_ml t_l for the targets, by form."""
        each = [[form.applied(self.targets.t) for form in forms] for forms in self._forms]
        return [PairSums(*map(sum, zip(*parts, strict=True))) for parts in each]

    @cached_property
    def by_pair(self) -> list[Array]:
        """t_m(q)' K_ml t_l(q) + D_ml of each candidate as the next row, (M, M, c), by form."""
        return [
            sum(form.by_pair(self.candidates.t) for form in forms) + self._between(j)
            for j, forms in enumerate(self._forms)
        ]

    @cached_property
    def _forms(self) -> list[list[PairwiseForm]]:
        """Each form of the fit, with a form of the added rows."""
        forms: list[list[PairwiseForm]] = [[form] for form in self.forms]
        if self.chosen:
            xp = namespace(self.rows)
            index = xp.asarray(self.chosen, device=self.rows.device)
            Q = xp.take(self.rows, index, axis=2)
            for j, parts in enumerate(forms):
                omega = xp.take(self._omega(j), index, axis=1)
                scaled = Q * omega[:, None, :] ** 0.5 if self.pairing.single is None else Q
                parts.append(row_form(scaled, self.pairing, omega))
        return forms

    def _between(self, j: int) -> Array:
        """D_ml of each candidate in form j, shape (M, M, c)."""
        omega = self._omega(j)
        between = self.pairing.between(omega)
        return between * omega if self.pairing.single is None else between

    def _omega(self, j: int) -> Array:
        """Noise variances of the candidates in form j, equal for all members, (M, c)."""
        M, _, c = self.rows.shape
        return namespace(self.noise).broadcast_to(self.noise[j, :], (M, c))

    def _entries(self, t: Array, few: slice) -> Array:
        """b: entries of the smoother rows of t (M, N', p) for new rows, shape (M, few, p)."""
        q = self.rows[:, :, few]
        length = namespace(q).sum(q * self.candidates.t[:, :, few], axis=1)
        return transposed(q / (1 + length[:, None, :])) @ t

    def _residuals(self, few: slice) -> Array:
        """Residuals of the members if the output is the ensemble's prediction, (M, K, few)."""
        f = self.candidates.f[:, :, few]
        return namespace(f).mean(f, axis=0) - f

    def _by_candidate(self) -> Iterator[np.ndarray]:
        """Variances at the targets with one more candidate, (K, few, p) for each block."""
        c, (M, K, p) = self.rows.shape[2], self.targets.f.shape
        size = max(1, CANDIDATE_ELEMENTS // (M * K * p))
        for start in range(0, c, size):
            few = slice(start, min(start + size, c))
            b, t = self._entries(self.targets.t, few), self.candidates.t[:, :, few]
            forms = zip(self.applied, self.by_pair, strict=True)
            sums = [
                updated_sums(self.targets.t, applied, t, terms[:, :, few], b)
                for applied, terms in forms
            ]
            change = self._residuals(few)[:, :, :, None] * b[:, None, :, :]
            yield self._variances(self.targets.f[:, :, None, :] + change, sums, self.variance)

    def _variances(self, f: Array, sums: list[PairSums], bound: np.ndarray | None) -> np.ndarray:
        """Variances from predictions f (M, K, ...) of the members and the sums of each form."""
        M, K = f.shape[:2]
        mean, spread = (to_numpy(a) for a in mean_and_spread(f))
        scale = to_numpy(self.part.forms[ESTIMATES[self.estimate].pairing].scale)
        out = []
        for k in range(K):
            form = self.pairing.means(sums[k if len(sums) > 1 else 0], M)
            A, U = (scale[k] * to_numpy(a) for a in form)
            parts = PointParts(mean[k], spread[k], A, U, np.zeros_like(A), M)
            variance = never_negative(self.estimate, parts)
            if bound is not None:
                # The positive part may exceed a small positive estimate without the row.
                negative = model_variance(self.estimate, parts) < 0
                lower = np.minimum(variance, bound[k])
                variance = np.where(negative, lower, variance)
            out.append(variance)
        return np.stack(out)


def augmented_regression(
    fit: Fit,
    part: Regression,
    candidates: Array,
    targets: Array,
    factor: np.ndarray | None = None,
    weight: np.ndarray | None = None,
) -> AugmentedRegression:
    """A regression with candidates to add, of weights (c,) or of mean weight.

    Variances at the targets are multiplied by a factor (K, p).
    """
    estimate, smoother = fit.estimates[0], part.exact
    name = ESTIMATES[estimate].pairing
    forms = tuple(form for form in part.forms[name].forms if isinstance(form, PairwiseForm))
    if len(forms) < len(part.forms[name].forms):
        text = "estimates a noise matrix that is not diagonal, to which no row can be added"
        hc3 = Setting("hc", "HC3", "use {}, whose estimates are nearly equal")
        raise InputError(Message("dense-noise-matrix", text, "hc", "HC3-exact", (hc3,)))

    def coordinates(X: Array) -> Array:
        blocks = by_features(smoother.coordinates, fit.ensemble.layer, X)
        return namespace(*blocks).concat(blocks, axis=2)

    t, q = coordinates(targets), coordinates(candidates)
    q = q * (fit.mean_weight**0.5 if weight is None else like(weight**0.5, q))
    # The forms of homoskedastic noise are in units of its variance.
    noise = np.ones((1, q.shape[2]))
    if name != COMMON.name:
        noise = fit.unit_noise(candidates)[list(part.outputs)]
        # Outputs of constant noise have a form in units of its variance.
        scale = to_numpy(part.forms[name].scale)[:, None]
        noise = noise / np.where(scale > 0, scale, 1.0)
    at_candidates, at_targets = (MemberPredictions(a, member_values(smoother, a)) for a in (q, t))
    noise = like(noise, q)
    own = None if factor is None else factor[list(part.outputs)]
    arrays = q, noise, at_candidates, at_targets
    return AugmentedRegression(part, forms, estimate, *arrays, factor=own)


def updated_sums(t: Array, applied: PairSums, step: Array, terms: Array, b: Array) -> PairSums:
    """Both sums at each target with one more candidate, each (c, p).

    ``t`` (M, N', p) are the targets, ``applied`` the sums over l of K_ml t_l, ``step`` (M, N', c)
    the candidates t(q), ``terms`` (M, M, c) their t_m(q)' K_ml t_l(q) + D_ml, and ``b`` (M, c, p)
    the entries of the smoother rows of the targets for the new row.
    """
    xp, by_candidate = namespace(t), namespace(t).permute_dims(b, (1, 0, 2))

    def updated(w: Array, kept: Array) -> Array:
        square = xp.permute_dims(terms * kept[:, :, None], (2, 0, 1)) @ by_candidate
        change = xp.permute_dims(square, (1, 0, 2)) - 2 * (transposed(step) @ w)
        return column_sums(t, w) + xp.sum(b * change, axis=0)

    same = xp.eye(t.shape[0], dtype=t.dtype, device=t.device)
    return PairSums(updated(applied.single, same), updated(applied.distinct, 1 - same))
