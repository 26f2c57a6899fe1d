r"""Undersmoothed networks: ridge regressions on the hidden units of groups of members.

An average of members of N neurons has the bias of one of them. A ridge regression on the kN
neurons of a group of k members can smooth much less, as required by the noise estimate and by
confidence intervals for the function. The centred hidden matrix of a member is Q T, with its
coordinates Q and the inverse T of their map, so that the Gram matrix of a group is computed from
products of Q. With its eigenvalues :math:`\lambda` and eigenvectors V, a group has the smoother row

.. math:: z(x) = Q t(x), \qquad t(x) = T V (\lambda + \alpha)^{-1} V' h(x),

and these undersmoothed coordinates replace those of the members in every quadratic form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, row_major, to_numpy, transposed
from ulmus.core.arrays.linalg import eigh, inverted_triangle
from ulmus.core.ridge.member_pairs import member_groups
from ulmus.core.ridge.smoother import RESOLUTION, Smoother

# alpha over the largest eigenvalue. Eigenvalues have a relative error of about 1e-16 of the
# largest, so that a smaller alpha would fit round-off.
STEPS_PER_DECADE = 4
UNDERSMOOTHING_GRID = 10.0 ** (np.arange(-42, 9) / STEPS_PER_DECADE)


@dataclass(frozen=True)
class UndersmoothingPath:
    """Ridge path of one group over a grid of alpha."""

    alphas: np.ndarray  # (A,): the grid
    trace: np.ndarray  # (A,): tr(P), without the constant
    dof: np.ndarray  # (A,): tr(2P - P^2), without the constant
    rss: np.ndarray  # (A, K): residual sums of squares
    gcv: np.ndarray  # (A, K): generalised cross-validation scores
    prior: np.ndarray  # (K,): prior variance of an output weight, by maximum marginal likelihood
    n: int  # number of rows, minus one with an intercept

    @property
    def best(self) -> np.ndarray:
        """Index of the smallest score in the grid, for each output."""
        return np.argmin(self.gcv, axis=0)


class GroupEigen(NamedTuple):
    """Eigendecomposition of the Gram matrix of the centred hidden units of a group."""

    values: Array  # (kN,): eigenvalues, ascending and non-negative
    vectors: Array  # (kN, kN): eigenvectors, one per column


def factored_group(gram: Array) -> GroupEigen:
    """Eigendecomposition of a group, for every ridge parameter."""
    values, vectors = eigh(gram)
    return GroupEigen(namespace(values).clip(values, min=0.0), vectors)


def undersmoothing_path(
    group: GroupEigen, cross: Array, y_square: Array, n: int
) -> UndersmoothingPath:
    """Ridge path of a group.

    ``cross`` (kN, K) are products of its centred hidden units with the outputs, ``y_square`` (K,)
    sums of squares of the centred outputs, and n is less by one with an intercept.
    """
    lam = to_numpy(group.values)
    u2 = to_numpy((group.vectors.T @ cross) ** 2)
    # For a constant output, round-off of either sign.
    total = np.maximum(to_numpy(y_square), 0.0)
    alphas = UNDERSMOOTHING_GRID * (lam[-1] if lam[-1] > 1e-250 else 1.0)  # 1: constant units
    shrink = lam + alphas[:, None]
    d = lam / shrink
    trace, dof = np.sum(d, axis=1), np.sum(d * (2 - d), axis=1)
    rss = np.clip(total - ((2 - d) / shrink) @ u2, 0, None)
    residual_dof = (n - trace)[:, None]
    valid = residual_dof > 1e-3 * n
    gcv = np.where(valid, n * rss / np.where(valid, residual_dof, 1.0) ** 2, np.inf)
    prior = _prior_variance(lam, u2, total, alphas, n)
    return UndersmoothingPath(alphas, trace, dof, rss, gcv, prior, n)


def _prior_variance(
    lam: np.ndarray, u2: np.ndarray, y_square: np.ndarray, alphas: np.ndarray, n: int
) -> np.ndarray:
    r"""Prior variance of an output weight by maximum marginal likelihood, shape (K,).

    Ridge regression is the mean of a Gaussian process with kernel HH'. Its marginal likelihood,
    maximised over the noise variance s2, is largest at the alpha that minimises
    :math:`n \log(y'(HH' + \alpha I)^{-1} y) + \log\det(HH' + \alpha I)`, where the variance is
    s2 / alpha.
    """
    shrink = lam + alphas[:, None]
    form = np.clip(y_square - (1 / shrink) @ u2, 1e-12 * y_square, None)  # alpha y'(...)^-1 y
    log_det = np.sum(np.log1p(lam / alphas[:, None]), 1)[:, None]
    score = n * np.log(np.where(form > 0, form, 1.0)) + log_det
    best = np.argmin(score, axis=0)
    return np.array([form[b, k] / (n * alphas[b]) for k, b in enumerate(best)])


def undersmoothing_alpha(paths: list[UndersmoothingPath], k: int) -> float:
    """A ridge parameter below the one of best prediction for output k.

    It is the smaller of two: the smallest alpha that raises the GCV score by at most 5 percent,
    and the alpha that doubles the degrees of freedom, or spends 90 percent of the rows.
    """
    alphas = np.mean([path.alphas for path in paths], axis=0)
    gcv = np.mean([path.gcv[:, k] for path in paths], axis=0)
    trace = np.mean([path.trace for path in paths], axis=0)
    best = int(np.argmin(gcv))
    tolerated = int(np.argmax(gcv <= 1.05 * gcv[best]))
    limit = min(2.0 * trace[best], 0.9 * paths[0].n)
    doubled = int(np.argmax(trace <= max(limit, trace[-1])))
    return float(alphas[min(tolerated, doubled)])


@dataclass(frozen=True)
class UndersmoothedNetworks:
    """Eigendecompositions of all groups, and an undersmoothing ridge parameter for each output."""

    values: tuple[Array, ...]  # (kN,): eigenvalues of each group
    # (kr, kN): map from eigenvectors to the r coordinates of each member, including the constant.
    left: tuple[Array, ...]
    # (kN, kN'): map from hidden units to eigenvectors, which subtracts the centre.
    right: tuple[Array, ...]
    alphas: np.ndarray  # (K,): ridge parameter of each output
    prior: np.ndarray  # (K,): prior variance of an output weight
    dof: np.ndarray  # (K,): degrees of freedom of a group
    constant: bool  # whether there is an intercept
    mass: float  # sum of the row weights

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.values)

    def groups(self, M: int) -> list[slice]:
        """Members of each group."""
        widths = [v.shape[0] for v in self.values]
        edges = np.cumsum([0, *widths]) // (sum(widths) // M)
        return [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def coordinates(self, h: Array, k: int) -> tuple[Array, Array]:
        """Coordinates t (M, r, p) for output k, and the null space component of h, (null, p).

        The latter is the part of h along directions in which no training row has a component,
        times the prior standard deviation of an output weight.
        """
        xp, coordinates, null_space = namespace(h), [], []
        alpha, prior = float(self.alphas[k]), float(self.prior[k])
        parts = zip(self.groups(h.shape[0]), self.values, self.left, self.right, strict=True)
        for group, values, left, right in parts:
            along, null = right @ xp.reshape(h[group, :, :], (right.shape[1], -1)), _null(values)
            t = left[:, null:] @ (along[null:, :] / (values + alpha)[null:, None])
            members = group.stop - group.start
            t = xp.reshape(t, (members, -1, h.shape[2]))
            if self.constant:
                # The constant of the group is shared equally by its members.
                t[:, 0, :] = self.mass**-0.5 / members * h[group, 0, :]
            coordinates.append(t)
            null_space.append(prior**0.5 * along[:null, :])
        return xp.concat(coordinates), xp.concat(null_space)

    @property
    def null_sizes(self) -> list[int]:
        """Dimension of the null space of each group."""
        return [_null(values) for values in self.values]

    def adjoint(self, a: Array, b: Array, k: int) -> Array:
        """Vectors (M, N', p) whose products with h are a't + b'u, with the coordinates t and u.

        The arguments are (M, r, p) and (null, p).
        """
        xp, parts, start = namespace(a), [], 0
        alpha, prior = float(self.alphas[k]), float(self.prior[k])
        groups = zip(self.groups(a.shape[0]), self.values, self.left, self.right, strict=True)
        for group, values, left, right in groups:
            null, members = _null(values), group.stop - group.start
            stacked = xp.reshape(a[group, :, :], (left.shape[0], -1))
            along = (left[:, null:].T @ stacked) / (values + alpha)[null:, None]
            along = xp.concat([prior**0.5 * b[start : start + null, :], along])
            part = xp.reshape(right.T @ along, (members, -1, a.shape[2]))
            if self.constant:
                part[:, :1, :] += self.mass**-0.5 / members * a[group, :1, :]
            parts.append(part)
            start += null
        return xp.concat(parts)


def _null(values: Array) -> int:
    """Number of leading eigenvalues that are round-off; they ascend."""
    xp = namespace(values)
    return int(xp.sum(xp.astype(values <= 1e-12 * values[-1], xp.int64)))


def undersmoothed_networks(
    fit: Smoother, y_square: Array, stacked: Callable[[slice], Array]
) -> UndersmoothedNetworks:
    """Undersmoothed networks of all groups of an ensemble.

    ``y_square`` (K,) are sums of squares of the centred outputs; ``stacked`` returns the products
    of the coordinates Q of a group, shape (k N', k N').
    """
    first, T = int(fit.constant), _inverse_maps(fit)
    values, left, right, paths = [], [], [], []
    for members in member_groups(fit.n_members, T.shape[2]):
        stack = stacked(members)
        few = _strong(fit, T[members, :, :], stack)
        group, path = _factored(fit, few, stack, members, y_square)
        rows, columns = _block_diagonal(few) @ group.vectors, row_major(group.vectors.T)
        if first:
            rows = _with_constant_rows(rows, few.shape[0])
            columns = _centring(columns, fit.center[members, :])
        paths.append(path)
        values.append(group.values)
        left.append(rows)
        right.append(columns)
    alphas = np.array([undersmoothing_alpha(paths, k) for k in range(fit.q.shape[2])])
    return UndersmoothedNetworks(
        tuple(values),
        tuple(left),
        tuple(right),
        alphas,
        np.mean([path.prior for path in paths], axis=0),
        np.array([_mean_dof(values, alpha) for alpha in alphas]),
        fit.constant,
        fit.mass,
    )


def first_group_path(
    fit: Smoother, y_square: Array, stacked: Callable[[slice], Array]
) -> UndersmoothingPath:
    """Ridge path of the first group; arguments as for ``undersmoothed_networks``."""
    members = member_groups(fit.n_members, fit.center.shape[1])[0]
    stack = stacked(members)
    T = _strong(fit, _inverse_maps(fit.members(members)), stack)
    return _factored(fit, T, stack, members, y_square)[1]


def _factored(
    fit: Smoother, T: Array, stack: Array, members: slice, y_square: Array
) -> tuple[GroupEigen, UndersmoothingPath]:
    """A group with its ridge path, from T (k, r, N) and the products of Q."""
    xp, (k, r, N), first = namespace(T), T.shape, int(fit.constant)
    inner = xp.reshape(stack, (k, r + first, k, r + first))[:, first:, :, first:]
    flat, inner = _block_diagonal(T), xp.reshape(inner, (k * r, k * r))
    gram = flat.T @ inner @ flat
    cross = xp.reshape(transposed(T) @ fit.q[members, first : first + r, :], (k * N, -1))
    group = factored_group(0.5 * (gram + gram.T))
    # Units that are constant up to round-off span no direction.
    size = fit.mass * float(xp.sum(fit.center[members, :] ** 2))
    if float(group.values[-1]) <= (RESOLUTION * float(xp.finfo(T.dtype).eps)) ** 2 * size:
        group, cross = group._replace(values=xp.zeros_like(group.values)), xp.zeros_like(cross)
    return group, undersmoothing_path(group, cross, y_square, fit.n_rows - first)


def _inverse_maps(fit: Smoother) -> Array:
    """Maps T (M, N, N) with centred hidden units Q T, without constants."""
    xp, first = namespace(fit.to_t), int(fit.constant)
    maps = fit.to_t[:, first:, first:]
    if not fit.spectral:
        return transposed(inverted_triangle(maps))
    # Along singular vectors the rows of the map are orthogonal, and zero if dropped.
    norm = xp.sum(maps**2, axis=2, keepdims=True)
    return maps / xp.where(norm > 0, norm, xp.ones_like(norm))


def _strong(fit: Smoother, T: Array, stack: Array) -> Array:
    """The rows of T (k, N, N) of the coordinates in the products of Q."""
    return T[:, : stack.shape[0] // T.shape[0] - int(fit.constant), :]


def _block_diagonal(T: Array) -> Array:
    """Block diagonal matrix of matrices (k, r, N), shape (k r, k N)."""
    xp, (k, r, N) = namespace(T), T.shape
    out = xp.zeros((k, r, k, N), dtype=T.dtype, device=T.device)
    for i in range(k):
        out[i, :, i, :] = T[i, :, :]
    return xp.reshape(out, (k * r, k * N))


def _with_constant_rows(rows: Array, k: int) -> Array:
    """Rows (k r, c) with a leading zero row for the constant of each member."""
    xp, c = namespace(rows), rows.shape[1]
    parts = xp.reshape(rows, (k, -1, c))
    return xp.reshape(xp.concat([xp.zeros_like(parts[:, :1, :]), parts], axis=1), (-1, c))


def _centring(rows: Array, center: Array) -> Array:
    """The map of all units (c, k N') for a map (c, k N) of units centred by (k, N)."""
    xp, (k, N) = namespace(rows), center.shape
    parts = xp.reshape(rows, (-1, k, N))
    shift = -xp.sum(parts * center, axis=2, keepdims=True)
    return xp.reshape(xp.concat([shift, parts], axis=2), (rows.shape[0], k * (N + 1)))


def _mean_dof(values: list[Array], alpha: float) -> float:
    filters = [to_numpy(v) / (to_numpy(v) + alpha) for v in values]
    return float(np.mean([np.sum(d * (2 - d)) for d in filters]))
