r"""Where to measure next: the rows that would lower the variance at target points most.

A candidate becomes a training row with coordinates q, those of its features times the root of its
weight. By the formula of Sherman and Morrison, one more row moves the coordinates of any point x
in each member to

.. math:: t_m^+(x) = t_m(x) - t_m(q)\, b_m(x), \qquad
          b_m(x) = \frac{q_m' t_m(x)}{1 + q_m' t_m(q)},

where t(q) are the coordinates q moved by all rows added before. The smoother row of x gets
:math:`b_m(x)` as a further entry, and the member's prediction moves by :math:`b_m(x)` times its
residual at the new row. So with :math:`K_{ml} = Q_m' D_{ml} Q_l`, a sum over pairs of members
(forms.py) becomes

.. math:: \sum_{m,l} t_m' K_{ml} t_l - 2 \sum_m b_m\, t_m(q)' \sum_l K_{ml} t_l
          + \sum_{m,l} b_m b_l \left( t_m(q)' K_{ml} t_l(q) + D_{ml} \right),

with the noise :math:`D_{ml}` of the new row, which is independent of that of the others. Noise that
hangs together between the rows before is in their forms already. The inner sum is taken once for
each target, the bracket once for each candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, column_sums, like, namespace, to_numpy, transposed
from ulmus.core.ensemble.ensemble import Regression, mean_and_spread, member_values
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import features
from ulmus.core.ridge.member_pairs import COMMON, PAIRINGS, Pairing, PairSums
from ulmus.core.variance.estimates import ESTIMATES, PointParts, never_negative
from ulmus.core.variance.quadratic_forms import JackknifeForm, PairForms, row_form

# Candidates are tried in blocks: members x outputs x candidates x targets are at most so many.
TRIAL_ELEMENTS = 2**22


class DesignChoice(NamedTuple):
    """New measurements in the order in which they were chosen.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Row of each among the candidates.
    before : ndarray of shape (p, K)
        Variance of the prediction at each target now.
    variance : ndarray of shape (n, p, K)
        The same once the first, the first two, ... of them are measured.
    """

    rows: np.ndarray
    before: np.ndarray
    variance: np.ndarray


def next_points(fit: Fit, candidates: Array, targets: Array, n: int) -> DesignChoice:
    """Choose measurements one after the other, each the best one given those before it.

    The best lowers the variance of the prediction, by the fit's default estimate, most in the sum
    over the targets. With several outputs, each counts in units of its mean variance now. The
    ridge parameter, the hidden weights, the noise variances and what choosing alpha and the map
    costs stay as they are. A new row has the mean weight of the training rows and the noise
    variance of a new observation; what it will show is not known and taken to be the prediction.

    Parameters
    ----------
    fit : Fit
        The fit so far.
    candidates : array of shape (c, d)
        Points that can be measured. A place can be measured again: they stay available.
    targets : array of shape (p, d)
        Points where the prediction should become certain; one given twice counts twice.
    n : int
        Number of measurements.

    Returns
    -------
    placement : DesignChoice
        The chosen rows, and the variances at the targets before and after.

    Notes
    -----
    Without ridge, directions of the hidden features that no training row has stay out of the fit.
    """
    for name, value in (("candidates", candidates), ("targets", targets)):
        if value.shape[0] < 1:
            raise ValueError(f"{name} has no row; give at least one point.")
    if n < 1:
        raise ValueError(f"n={n} measurements cannot be placed; use n >= 1.")
    ensemble, square = fit.ensemble, fit.ensemble.unit**2
    regressions = [
        augmented_regression(fit, part, candidates, targets) for part in ensemble.regressions
    ]
    choice = fit.choice_variance(targets)

    def variance(regressions: list[AugmentedRegression]) -> np.ndarray:
        return ensemble.ordered([one.variance for one in regressions]).T * square + choice

    variances, rows = [variance(regressions)], []
    mean = np.mean(variances[0] / square, axis=0)
    share = np.divide(1.0, mean, out=np.ones_like(mean), where=mean > 0)
    for _ in range(n):
        rows.append(int(np.argmin(sum(one.scores(share) for one in regressions))))
        regressions = [one.with_row(rows[-1]) for one in regressions]
        variances.append(variance(regressions))
    return DesignChoice(np.asarray(rows), variances[0], np.stack(variances[1:]))


class MemberPredictions(NamedTuple):
    """Coordinates t (M, N', p) of points, and predictions f (M, K, p) of the members there."""

    t: Array
    f: Array


@dataclass(frozen=True)
class AugmentedRegression:
    """A regression as it will be once some candidates are measured, in the fit's units of y.

    Parameters
    ----------
    part : Regression
        The regression as it is.
    estimate : str
        Name of the variance estimate.
    rows : array of shape (M, N', c)
        Coordinates q of the candidates as training rows, before any of them is measured.
    noise : array of shape (1, c) or (K, c)
        Noise variance of such a row for each form of the estimate.
    candidates, targets : Points
        Both as they will be; candidates as weighted rows.
    chosen : tuple of int
        Candidates that are measured.
    """

    part: Regression
    estimate: str
    rows: Array
    noise: Array
    candidates: MemberPredictions
    targets: MemberPredictions
    chosen: tuple[int, ...] = ()

    @property
    def pairing(self) -> Pairing:
        """How the noise of two members is combined."""
        return PAIRINGS[ESTIMATES[self.estimate].pairing]

    @property
    def pairs(self) -> PairForms:
        """The forms of the estimate."""
        return self.part.forms[ESTIMATES[self.estimate].pairing]

    @cached_property
    def variance(self) -> np.ndarray:
        """Variance of the prediction at the targets, shape (K, p)."""
        sums = [PairSums(*(column_sums(self.targets.t, a) for a in one)) for one in self.applied]
        return self._variances(self.targets.f, sums)

    def scores(self, share: np.ndarray) -> np.ndarray:
        """Sum over targets and outputs of shares (K,) of the variance, by candidate, (c,)."""
        weights = share[list(self.part.outputs)]
        return np.concatenate([weights @ v.sum(axis=2, dtype=float) for v in self._by_candidate()])

    def with_row(self, i: int) -> AugmentedRegression:
        """The same once candidate i is measured as well, with the ensemble's prediction."""
        one = slice(i, i + 1)
        t, residual = self.candidates.t[:, :, one], self._residuals(one)

        def moved(points: MemberPredictions) -> MemberPredictions:
            b = self._entries(points.t, one)
            return MemberPredictions(points.t - t @ b, points.f + residual @ b)

        return replace(
            self,
            candidates=moved(self.candidates),
            targets=moved(self.targets),
            chosen=(*self.chosen, i),
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
    def _forms(self) -> list[list[Any]]:
        """Each form of the fit, with one of the same kind for the rows that are added to it."""
        forms = [[form] for form in self.pairs.forms]
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
        """Noise variances of the candidates in form j, the same for all members, (M, c)."""
        M, _, c = self.rows.shape
        return namespace(self.noise).broadcast_to(self.noise[j, :], (M, c))

    def _entries(self, t: Array, few: slice) -> Array:
        """b: entries of the smoother rows of t (M, N', p) for new rows, shape (M, few, p)."""
        q = self.rows[:, :, few]
        length = namespace(q).sum(q * self.candidates.t[:, :, few], axis=1)
        return transposed(q / (1 + length[:, None, :])) @ t

    def _residuals(self, few: slice) -> Array:
        """Residuals of the members where the ensemble's prediction is measured, (M, K, few)."""
        f = self.candidates.f[:, :, few]
        return namespace(f).mean(f, axis=0) - f

    def _by_candidate(self) -> Iterator[np.ndarray]:
        """Variances at the targets once a candidate is measured, (K, few, p) of each block."""
        c, (M, K, p) = self.rows.shape[2], self.targets.f.shape
        size = max(1, TRIAL_ELEMENTS // (M * K * p))
        for start in range(0, c, size):
            few = slice(start, min(start + size, c))
            b, t = self._entries(self.targets.t, few), self.candidates.t[:, :, few]
            forms = zip(self.applied, self.by_pair, strict=True)
            sums = [
                updated_sums(self.targets.t, applied, t, terms[:, :, few], b)
                for applied, terms in forms
            ]
            moves = self._residuals(few)[:, :, :, None] * b[:, None, :, :]
            yield self._variances(self.targets.f[:, :, None, :] + moves, sums)

    def _variances(self, f: Array, sums: list[PairSums]) -> np.ndarray:
        """Variances from predictions f (M, K, ...) of the members and the sums of each form."""
        M, K = f.shape[:2]
        mean, spread = (to_numpy(a) for a in mean_and_spread(f))
        scale = to_numpy(self.pairs.scale)
        out = []
        for k in range(K):
            form = self.pairing.means(sums[k if len(sums) > 1 else 0], M)
            A, U = (scale[k] * to_numpy(a) for a in form)
            parts = PointParts(mean[k], spread[k], A, U, np.zeros_like(A), M)
            out.append(never_negative(self.estimate, parts))
        return np.stack(out)


def augmented_regression(
    fit: Fit, part: Regression, candidates: Array, targets: Array
) -> AugmentedRegression:
    """A regression before anything new is measured."""
    estimate = fit.estimates[0]
    name = ESTIMATES[estimate].pairing
    pair = part.forms[name]
    if isinstance(pair.shared, JackknifeForm):
        raise ValueError(
            "hc='HC3-exact' has a noise matrix that is not diagonal, to which no row can be added; "
            "use hc='HC3', whose estimates are nearly the same."
        )

    def coordinates(X: Array) -> Array:
        blocks = [part.smoother.coordinates(h) for h in features(fit.ensemble.layer, X)]
        return namespace(*blocks).concat(blocks, axis=2)

    t, q = coordinates(targets), coordinates(candidates) * fit.mean_weight**0.5
    # The forms of constant noise are in units of its variance.
    noise = np.ones((1, q.shape[2]))
    if name != COMMON.name:
        noise = fit.unit_noise(candidates)[list(part.outputs)]
    points = [MemberPredictions(a, member_values(part.smoother, a)) for a in (q, t)]
    return AugmentedRegression(part, estimate, q, like(noise, q), *points)


def updated_sums(t: Array, applied: PairSums, step: Array, terms: Array, b: Array) -> PairSums:
    """Both sums at each target once one more candidate is measured, each (c, p).

    Parameters
    ----------
    t : array of shape (M, N', p)
        Coordinates of the targets.
    applied : PairSums of arrays of shape (M, N', p)
        Sums over l of K_ml t_l.
    step : array of shape (M, N', c)
        Coordinates t(q) of the candidates.
    terms : array of shape (M, M, c)
        t_m(q)' K_ml t_l(q) + D_ml.
    b : array of shape (M, c, p)
        Entries of the smoother rows of the targets for the new row.
    """
    xp, by_candidate = namespace(t), namespace(t).permute_dims(b, (1, 0, 2))

    def moved(w: Array, kept: Array) -> Array:
        square = xp.permute_dims(terms * kept[:, :, None], (2, 0, 1)) @ by_candidate
        change = xp.permute_dims(square, (1, 0, 2)) - 2 * (transposed(step) @ w)
        return column_sums(t, w) + xp.sum(b * change, axis=0)

    same = xp.eye(t.shape[0], dtype=t.dtype, device=t.device)
    return PairSums(moved(applied.single, same), moved(applied.distinct, 1 - same))
