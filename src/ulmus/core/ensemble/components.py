"""Means and variances of an ensemble and its undersmoothed networks for features h.

Features are those of points or of functionals. Means are linear in h and variances quadratic; with
the features of other functionals, variances are covariances, bilinear in both.
"""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, contracted, namespace, to_numpy
from ulmus.core.ensemble.ensemble import (
    Ensemble,
    Regression,
    mean_and_spread,
    mean_leverage,
    member_values,
)
from ulmus.core.variance.estimates import PointParts, UndersmoothedParts
from ulmus.core.variance.quadratic_forms import PairForms
from ulmus.core.variance.undersmoothing import UndersmoothedNetworks
from ulmus.exceptions import InputError
from ulmus.messages import Message


def point_parts(
    ensemble: Ensemble, pairing: str, h: Array, other: Array | None = None
) -> PointParts:
    """Mean, spread and both means of the form for features h (M, N', p), each (p, K).

    With other features (M, N', p') all but the mean have shape (p', p, K).
    """
    columns = []
    for regression in ensemble.regressions:
        t = regression.smoother.coordinates(h)
        u = t if other is h or other is None else regression.smoother.coordinates(other)
        values = member_values(regression.smoother, t)
        elsewhere = None if other is None else member_values(regression.smoother, u)
        mean, spread = mean_and_spread(values, elsewhere)
        means = regression.forms[pairing].means(t, None if other is None else u)
        leverage = np.repeat(mean_leverage(t)[None, :], len(regression.outputs), axis=0)
        parts = (leverage, mean, spread, means.single, means.distinct)
        columns.append([to_numpy(a) for a in parts])
    leverage, mean, *squares = (ensemble.ordered(a) for a in zip(*columns, strict=True))
    spread, A, U = (_in_units(ensemble, a).T for a in squares)
    return PointParts(_shifted(ensemble, h, mean).T, spread, A, U, leverage.T, ensemble.n_members)


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
    mean, *squares = (ensemble.ordered(a) for a in zip(*columns, strict=True))
    spread, noise, unseen = (_in_units(ensemble, a).T for a in squares)
    dof = ensemble.ordered([network.dof for network in networks])
    center = _shifted(ensemble, h, mean).T
    return UndersmoothedParts(center, spread, noise, unseen, networks[0].n_groups, dof)


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
        members = member_values(regression.smoother, coordinates)[:, k, :]
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
        scaled = squares.astype(float) * unit**2
    if np.any(np.isinf(scaled) & np.isfinite(squares)):
        text = "a variance is beyond the range of float64"
        remedy = "multiply y, or the column of a slope, by a factor that brings it near 1"
        raise InputError(Message("variance-overflow", text, suggestions=(remedy,)))
    return scaled
