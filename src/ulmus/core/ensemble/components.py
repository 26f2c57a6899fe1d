"""Means and variances of an ensemble and its undersmoothed networks for features h.

Features are those of points or of functionals. Means are linear in h and variances quadratic; with
the features of other functionals, variances are covariances, bilinear in both.
"""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, contracted, namespace, to_numpy, transposed
from ulmus.core.ensemble.ensemble import (
    Ensemble,
    Regression,
    mean_and_spread,
    mean_leverage,
    member_values,
)
from ulmus.core.ridge.member_pairs import PairSums
from ulmus.core.variance.estimates import PointParts, UndersmoothedParts
from ulmus.core.variance.low_rank import LowRankForms, LowRankNetworks
from ulmus.core.variance.quadratic_forms import PairForms
from ulmus.core.variance.undersmoothing import UndersmoothedNetworks
from ulmus.exceptions import InputError
from ulmus.messages import Message


def point_parts(
    ensemble: Ensemble,
    pairing: str,
    h: Array,
    other: Array | None = None,
    low_rank: tuple[LowRankForms, ...] | None = None,
) -> PointParts:
    """Mean, spread and both means of the form for features h (M, N', p), each (p, K).

    With other features (M, N', p') all but the mean have shape (p', p, K). The forms are those of
    the regressions, or their approximation of low rank.
    """
    columns = []
    for i, regression in enumerate(ensemble.regressions):
        if low_rank is None:
            values, means, lengths = _exact_terms(regression, pairing, h, other)
        else:
            values, means, lengths = _low_rank_terms(regression, low_rank[i], pairing, h, other)
        mean, spread = mean_and_spread(*values)
        leverage = np.repeat(lengths[None, :], len(regression.outputs), axis=0)
        parts = (leverage, mean, spread, means.single, means.distinct)
        columns.append([to_numpy(a) for a in parts])
    leverage, mean, *squares = (ensemble.ordered(a) for a in zip(*columns, strict=True))
    spread, A, U = (_in_units(ensemble, a).T for a in squares)
    return PointParts(_shifted(ensemble, h, mean).T, spread, A, U, leverage.T, ensemble.n_members)


def leverages(
    ensemble: Ensemble, h: Array, low_rank: tuple[LowRankForms, ...] | None = None
) -> np.ndarray:
    """Squared lengths of the coordinates of h (M, N', p), mean over members, shape (K, p)."""
    parts = []
    for i, regression in enumerate(ensemble.regressions):
        if low_rank is None:
            lengths = mean_leverage(regression.exact.coordinates(h))
        else:
            lengths = to_numpy(low_rank[i].leverage(low_rank[i].coordinates(h)))
        parts.append(np.repeat(lengths[None, :], len(regression.outputs), axis=0))
    return ensemble.ordered(parts)


Terms = tuple[tuple[Array, Array | None], PairSums, np.ndarray]


def _exact_terms(regression: Regression, pairing: str, h: Array, other: Array | None) -> Terms:
    """Predictions of members (M, K, p), at h and elsewhere, means of the form, and leverage."""
    smoother = regression.exact
    t = smoother.coordinates(h)
    u = t if other is h or other is None else smoother.coordinates(other)
    elsewhere = None if other is None else member_values(smoother, u)
    means = regression.forms[pairing].means(t, None if other is None else u)
    return (member_values(smoother, t), elsewhere), means, mean_leverage(t)


def _low_rank_terms(
    regression: Regression, forms: LowRankForms, pairing: str, h: Array, other: Array | None
) -> Terms:
    """The same by forms of low rank; predictions of members are exact."""
    beta = transposed(regression.smoother.beta)
    c = forms.coordinates(h)
    e = c if other is h or other is None else forms.coordinates(other)
    elsewhere = None if other is None else beta @ other
    means = forms.pairs[pairing].means(c, None if other is None else e)
    if other is None:
        means = PairSums(namespace(c).clip(means.single, min=0.0), means.distinct)
    return (beta @ h, elsewhere), means, to_numpy(forms.leverage(c))


def undersmoothed_parts(
    ensemble: Ensemble,
    networks: tuple[UndersmoothedNetworks, ...],
    forms: tuple[PairForms, ...],
    h: Array,
    other: Array | None = None,
) -> UndersmoothedParts:
    """Mean and variance of the undersmoothed networks for features h, in the same shapes."""
    columns = []
    for regression, network, pairs in zip(ensemble.regressions, networks, forms, strict=True):
        each = [
            _undersmoothed_output(regression, network, pairs, h, other, k)
            for k in range(len(regression.outputs))
        ]
        columns.append([np.stack(a) for a in zip(*each, strict=True)])
    dof = ensemble.ordered([network.dof for network in networks])
    return _undersmoothed(ensemble, columns, h, networks[0].n_groups, dof)


def low_rank_undersmoothed_parts(
    ensemble: Ensemble,
    parts: tuple[tuple[LowRankNetworks, ...], ...],
    dof: tuple[np.ndarray, ...],
    h: Array,
    other: Array | None = None,
) -> UndersmoothedParts:
    """The same by forms of low rank, for each output of each regression."""
    columns = []
    for outputs in parts:
        each = [_low_rank_output(one, h, other) for one in outputs]
        columns.append([np.stack(a) for a in zip(*each, strict=True)])
    n_groups = int(parts[0][0].groups.shape[0])
    return _undersmoothed(ensemble, columns, h, n_groups, ensemble.ordered(dof))


def _undersmoothed(
    ensemble: Ensemble, columns: list[list[np.ndarray]], h: Array, n_groups: int, dof: np.ndarray
) -> UndersmoothedParts:
    """Parts in the units of y and the order of the outputs."""
    mean, *squares = (ensemble.ordered(a) for a in zip(*columns, strict=True))
    spread, noise, unseen = (_in_units(ensemble, a).T for a in squares)
    return UndersmoothedParts(_shifted(ensemble, h, mean).T, spread, noise, unseen, n_groups, dof)


def _low_rank_output(one: LowRankNetworks, h: Array, other: Array | None) -> tuple[np.ndarray, ...]:
    """Mean (p,), and spread, noise and unseen part of one output, (p,) or (p, p')."""
    joint, c, values = other is not None, one.coordinates(h), one.predictions(h)
    same = other is h or other is None
    e, elsewhere = (c, values) if same else (one.coordinates(other), one.predictions(other))
    mean, spread = mean_and_spread(values, elsewhere if joint else None)
    noise, unseen = one.variances(c, e if joint else None)
    if not joint:
        noise, unseen = (namespace(c).clip(a, min=0.0) for a in (noise, unseen))
    return tuple(to_numpy(a) for a in (mean[0, ...], spread[0, ...], noise, unseen))


def _undersmoothed_output(
    regression: Regression,
    network: UndersmoothedNetworks,
    forms: PairForms,
    h: Array,
    other: Array | None,
    k: int,
) -> tuple[np.ndarray, ...]:
    """Mean (p,), and spread, noise and unseen part of one output, (p,) or (p, p')."""
    xp, joint = namespace(h), other is not None
    t, beyond = network.coordinates(h, k)
    u, unseen = (t, beyond) if other is h or other is None else network.coordinates(other, k)

    def groups(coordinates: Array) -> Array:
        """Predictions of the groups, shape (G, 1, p)."""
        members = member_values(regression.exact, coordinates)[:, k, :]
        sums = [xp.sum(members[few, :], axis=0) for few in network.groups(members.shape[0])]
        return xp.stack(sums)[:, None, :]

    mean, spread = mean_and_spread(groups(t), groups(u) if joint else None)
    noise = forms.total(t, u if joint else None)[k, ...] / network.n_groups**2
    hidden = contracted(beyond, unseen, joint=joint) / network.n_groups
    return tuple(to_numpy(a) for a in (mean[0, ...], spread[0, ...], noise, hidden))


def _shifted(ensemble: Ensemble, h: Array, mean: np.ndarray) -> np.ndarray:
    """Means (K, p) in the units of y."""
    shares = to_numpy(ensemble.layer.shares(h))
    return ensemble.shift[:, None] * shares + ensemble.unit[:, None] * mean


def _in_units(ensemble: Ensemble, squares: np.ndarray) -> np.ndarray:
    """Variances (K, p) or covariances (K, p, p') in the units of y."""
    unit = ensemble.unit.reshape(-1, *[1] * (squares.ndim - 1)).astype(float)
    with np.errstate(over="ignore"):
        scaled: np.ndarray = np.multiply(squares, unit**2, dtype=float)
    overflows = not np.all(np.isfinite(scaled))
    if overflows and np.any(np.isinf(scaled) & np.isfinite(squares)):
        text = "a variance is beyond the range of float64"
        remedy = "multiply y, or the column of a slope, by a factor that brings it near 1"
        raise InputError(Message("variance-overflow", text, suggestions=(remedy,)))
    return scaled
