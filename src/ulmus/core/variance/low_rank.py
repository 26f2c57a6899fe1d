r"""Quadratic forms of low rank: all variances of a regression from few coordinates of the features.

Every variance estimate is a bilinear form :math:`K_f(x, x')` in the coordinates t of functionals.
Let P be basis points, K a kernel that sums such forms, and W diagonal weights that give each point
a kernel of about one. With the eigendecomposition and the leading r eigenvalues of

.. math:: W K(P, P) W = V D V', \qquad B = t(P)\, W V D^{-1/2}, \qquad
          c(x) = D^{-1/2} V' W K(P, x) = C h(x),

c are r coordinates, linear in the features h because K is bilinear, and B c(x) is the projection
of t(x) on the span of the basis points in the metric of K. The forms become

.. math:: K_f(x, x') \approx c(x)' G_f\, c(x'), \qquad G_f = B' K_f B.

If a form is positive semidefinite, so is its G. C and G are in single precision where this
suffices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.linalg

from ulmus.core.arrays.backend import (
    Array,
    contracted,
    like,
    namespace,
    to_numpy,
    transposed,
)
from ulmus.core.arrays.linalg import eigh
from ulmus.core.ridge.member_pairs import PAIRINGS, PairSums
from ulmus.core.ridge.smoother import Smoother
from ulmus.core.variance.quadratic_forms import PairForms, PairwiseForm
from ulmus.core.variance.undersmoothing import UndersmoothedNetworks

# Eigenvalues below this share of the largest, in double and in single precision, are round-off.
ROUND_OFF = (1e-12, 1e-5)
# Ridge of the map from few features to coordinates, relative to their mean square.
SMALL_RIDGE = 1e-10
# Largest number of points that determine which features are kept.
PIVOT_POINTS = 800


def in_single(array: Array) -> Array:
    """The array in single precision."""
    xp = namespace(array)
    return xp.astype(array, xp.float32)


def bilinear(G: Array, c: Array, e: Array | None, reference: Array) -> Array:
    """c'Gc of each column of c (r, p), shape (p,), or c'Ge of all pairs, (p, p').

    The latter is computed in the precision of ``reference``, in which covariances are
    semidefinite.
    """
    if e is None:
        return like(contracted(c, G @ c, joint=False), reference)
    c, G, e = (like(a, reference) for a in (c, G, c if e is c else e))
    return contracted(c, G @ e, joint=True)


def _coordinates(C: Array, h: Array) -> Array:
    """Coordinates c of features h (M, N', p), shape (r, p)."""
    return C @ like(namespace(h).reshape(h, (C.shape[1], -1)), C)


# ------------------------------------------------------------ forms


@dataclass(frozen=True)
class LowRankPairs:
    """Means of a pairing over members and over distinct members, for each output."""

    single: Array  # (F, r, r): mean over members, F = 1 if it is common to all outputs
    distinct: Array  # (F, r, r): mean over distinct members
    scale: Array  # (K,): factors of the forms

    def means(self, c: Array, e: Array | None = None) -> PairSums:
        """Means for coordinates c (r, p), with themselves or with e (r, p'), each (K, ...)."""
        return PairSums(self._mean(self.single, c, e), self._mean(self.distinct, c, e))

    def _mean(self, G: Array, c: Array, e: Array | None) -> Array:
        xp, K = namespace(c), self.scale.shape[0]
        parts = [bilinear(G[f, :, :], c, e, self.scale) for f in range(G.shape[0])]
        stacked = xp.stack(parts * (K if len(parts) == 1 else 1))
        return stacked * xp.reshape(self.scale, (-1, *[1] * (stacked.ndim - 1)))

    def rounded(self) -> LowRankPairs:
        """The same in single precision."""
        return replace(self, single=in_single(self.single), distinct=in_single(self.distinct))


@dataclass(frozen=True)
class LowRankForms:
    """All forms of a regression in r coordinates."""

    C: Array  # (r, M N'): map from features to coordinates
    lengths: Array  # (r, r): mean over members of t't
    pairs: dict[str, LowRankPairs]  # by pairing

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return int(self.C.shape[0])

    def coordinates(self, h: Array) -> Array:
        """Coordinates c of features h (M, N', p), shape (r, p)."""
        return _coordinates(self.C, h)

    def leverage(self, c: Array) -> Array:
        """Squared lengths t't, mean over members, shape (p,)."""
        lengths = bilinear(self.lengths, c, None, c)
        return namespace(c).clip(lengths, min=0.0)

    def rounded(self) -> LowRankForms:
        """The same in single precision."""
        pairs = {name: one.rounded() for name, one in self.pairs.items()}
        return LowRankForms(in_single(self.C), in_single(self.lengths), pairs)


def low_rank_forms(kernel: MemberKernel, forms: dict[str, PairForms], basis: Array) -> LowRankForms:
    """All forms of a regression in the coordinates of a basis (M N', r)."""
    M, B, pairs = kernel.smoother.n_members, kernel.by_member(basis), {}
    scaled = basis * (kernel.leverage / M)
    for name, pair in forms.items():
        single, distinct = [], []
        for form, share in zip(pair.forms, kernel.shares(pair), strict=True):
            assert isinstance(form, PairwiseForm)  # others have no basis
            sums = form.applied(B)
            if pair is kernel.pairs:
                scaled = scaled + share * _flat(sums.single + sums.distinct)
            products = PairSums(*(contracted(B, a, joint=True) for a in sums))
            means = PAIRINGS[name].means(products, M)
            single.append(means.single)
            distinct.append(means.distinct)
        xp = namespace(basis)
        pairs[name] = LowRankPairs(xp.stack(single), xp.stack(distinct), pair.scale)
    return LowRankForms(kernel.adjoint(scaled).T, basis.T @ basis / M, pairs)


def with_few_features(forms: LowRankForms, h: Array, n_features: int) -> LowRankForms:
    """Forms whose coordinates are linear in at most so many of the features.

    Smooth features are nearly linear combinations of some of them, which are the first pivots of a
    QR factorisation of the features h (M, N', p) of points. The map from these to the coordinates
    is that of least squares relative to the size of the coordinates, with a small ridge.
    """
    C = to_numpy(forms.C).astype(float)
    H = to_numpy(h).astype(float).reshape(C.shape[1], -1)
    size = np.sqrt(np.sum((C @ H) ** 2, axis=0))
    H /= np.maximum(size, ROUND_OFF[0] * max(float(np.max(size)), 1.0))
    # Some points determine the first pivots; the others are any further features.
    _, pivots = scipy.linalg.qr(H[:, :PIVOT_POINTS].T, mode="r", pivoting=True)
    chosen = np.sort(pivots[:n_features])
    few = H[chosen]
    gram = few @ few.T
    gram[np.diag_indices_from(gram)] += SMALL_RIDGE * np.trace(gram) / len(gram)
    out = np.zeros_like(C)
    out[:, chosen] = scipy.linalg.solve(gram, few @ (C @ H).T, assume_a="pos").T
    return replace(forms, C=like(out, forms.C))


@dataclass(frozen=True)
class LowRankNetworks:
    """The undersmoothed networks of one output in r coordinates."""

    C: Array  # (r, M N'): map from features to coordinates
    groups: Array  # (G, M N'): coefficients of the features in the mean of each group
    noise: Array  # (r, r): variance of the mean given the hidden weights
    null_space: Array  # (r, r): prior variance along directions without training rows

    def rounded(self) -> LowRankNetworks:
        """The same in single precision, apart from the predictions of the groups."""
        matrices = (in_single(a) for a in (self.noise, self.null_space))
        return LowRankNetworks(in_single(self.C), self.groups, *matrices)

    def coordinates(self, h: Array) -> Array:
        """Coordinates c of features h (M, N', p), shape (r, p)."""
        return _coordinates(self.C, h)

    def predictions(self, h: Array) -> Array:
        """Predictions of the groups, shape (G, 1, p)."""
        return (self.groups @ namespace(h).reshape(h, (self.C.shape[1], -1)))[:, None, :]

    def variances(self, c: Array, e: Array | None = None) -> tuple[Array, Array]:
        """Variance due to noise and in the null space, or covariances, (p,) or (p, p')."""
        noise, null_space = (bilinear(G, c, e, self.groups) for G in (self.noise, self.null_space))
        return noise, null_space


def low_rank_networks(kernel: NetworkKernel, basis: Array) -> LowRankNetworks:
    """The undersmoothed networks of an output in the coordinates of a basis (w, r)."""
    noise, null_space = kernel.parts(basis)
    C = kernel.adjoint(kernel.applied(basis)).T
    return LowRankNetworks(C, kernel.group_coefficients, noise, null_space)


# ------------------------------------------------------------ kernels and their basis


class VarianceKernel(Protocol):
    """A bilinear form of functionals with stacked coordinates (w, p)."""

    def coordinates(self, h: Array) -> Array:
        """Stacked coordinates (w, p) of features h (M, N', p)."""

    def spread(self, h: Array) -> Array:
        """Variance of the prediction between members, which is not part of the kernel, (p,)."""

    def gram(self, t: Array) -> Array:
        """The kernel of all pairs of functionals, shape (p, p)."""


@dataclass(frozen=True)
class KernelSpectrum:
    """Eigendecomposition of a kernel at basis points, weighted by the inverse of their variance."""

    t: Array  # (w, p): stacked coordinates of the points
    weights: Array  # (p,): factors that make relative errors of standard errors alike
    values: Array  # (p,): eigenvalues, in descending order
    vectors: Array  # (p, p): eigenvectors, one per column

    def leading(self, rank: int) -> Array:
        """Stacked coordinates (w, r) of the leading eigenvectors; one of them if all are zero."""
        largest = float(self.values[0])
        real = to_numpy(self.values) > ROUND_OFF[0] * largest
        kept = min(rank, max(1, int(np.count_nonzero(real))))
        scaled = self.vectors[:, :kept] / (self.values[:kept] ** 0.5 if largest > 0 else 1.0)
        return self.t @ (self.weights[:, None] * scaled)

    def basis(self, rank: int, negligible: float) -> Array | None:
        """Stacked coordinates (w, r) of a basis.

        The part of the kernel beyond the basis is negligible at every point, in units of the
        variance. None if the points require more than the given rank, or the kernel is zero.
        """
        kept = _sufficient_rank(to_numpy(self.values), to_numpy(self.vectors), negligible)
        if not 0 < kept <= rank:
            return None
        leading = self.vectors[:, :kept] / self.values[:kept] ** 0.5
        return self.t @ (self.weights[:, None] * leading)


def kernel_spectrum(kernel: VarianceKernel, h: Array) -> KernelSpectrum:
    """The spectrum of a kernel at points with features h (M, N', p)."""
    t = kernel.coordinates(h)
    gram = kernel.gram(t)
    xp = namespace(gram)
    variance = xp.linalg.diagonal(gram) + kernel.spread(h)
    w = xp.where(variance > 0, variance, xp.ones_like(variance)) ** -0.5
    values, vectors = eigh(gram * w * w[:, None])
    return KernelSpectrum(t, w, xp.flip(values, axis=0), xp.flip(vectors, axis=1))


def _sufficient_rank(values: np.ndarray, vectors: np.ndarray, negligible: float) -> int:
    """Number of leading eigenvectors that leave a negligible part of the kernel at every point."""
    real = values > ROUND_OFF[0 if values.dtype == np.float64 else 1] * values[0]
    missing = np.cumsum((vectors**2 * np.maximum(values, 0.0))[:, ::-1], axis=1)[:, ::-1]
    needed = int(np.count_nonzero(np.max(missing, axis=0) > negligible))
    return min(needed, int(np.count_nonzero(real)))


@dataclass(frozen=True)
class MemberKernel:
    """The sum over members of a variance estimate, and a share of the leverage."""

    smoother: Smoother
    pairs: PairForms  # forms of the estimate
    leverage: Array  # factor of the mean leverage of the members

    def coordinates(self, h: Array) -> Array:
        """Stacked coordinates (M N', p) of features h (M, N', p)."""
        return _flat(self.smoother.coordinates(h))

    def by_member(self, t: Array) -> Array:
        """Stacked coordinates (M N', p) as those of each member, (M, N', p)."""
        return namespace(t).reshape(t, (self.smoother.n_members, -1, t.shape[1]))

    def spread(self, h: Array) -> Array:
        """Variance of the prediction due to the hidden weights, mean over outputs, (p,)."""
        values = transposed(self.smoother.beta) @ h
        xp, M = namespace(values), values.shape[0]
        mean = xp.mean(values, axis=0)
        return xp.mean(xp.sum((values - mean) ** 2, axis=0), axis=0) / (max(M - 1, 1) * M)

    def gram(self, t: Array) -> Array:
        """The kernel of all pairs of functionals, shape (p, p)."""
        by_member, shares = self.by_member(t), self.shares(self.pairs)
        terms = zip(shares, self.pairs.forms, strict=True)
        total = sum(share * form.total(by_member, by_member) for share, form in terms)
        return total + (self.leverage / self.smoother.n_members) * (t.T @ t)

    def adjoint(self, a: Array) -> Array:
        """Vectors (M N', p) whose products with features are those of a with coordinates."""
        return _flat(transposed(self.smoother.to_t) @ self.by_member(a))

    def shares(self, pairs: PairForms) -> list[Array]:
        """Factors of some forms in the mean variance of the outputs."""
        K, M, scale = pairs.scale.shape[0], self.smoother.n_members, pairs.scale
        whole = [namespace(scale).sum(scale)] if len(pairs.forms) == 1 else list(scale)
        return [share / (K * M**2) for share in whole]


@dataclass(frozen=True)
class NetworkKernel:
    """Variance of the undersmoothed networks of one output, without that between groups."""

    smoother: Smoother
    networks: UndersmoothedNetworks
    form: PairwiseForm  # form of the noise
    scale: Array  # its factor
    k: int  # index of the output in the regression

    def coordinates(self, h: Array) -> Array:
        """Undersmoothed coordinates, and the null space component below them, (w, p)."""
        t, beyond = self.networks.coordinates(h, self.k)
        return namespace(h).concat([_flat(t), beyond])

    def split(self, t: Array) -> tuple[Array, Array]:
        """Stacked coordinates (w, p) as those of members, (M, r, p), and of the null space."""
        size = sum(left.shape[0] for left in self.networks.left)
        shape = self.smoother.n_members, -1, t.shape[1]
        return namespace(t).reshape(t[:size, :], shape), t[size:, :]

    def spread(self, h: Array) -> Array:
        """Variance of the mean between groups, shape (p,)."""
        xp, G = namespace(h), self.networks.n_groups
        values = self.group_coefficients @ _flat(h)
        mean = xp.mean(values, axis=0)
        return xp.sum((values - mean) ** 2, axis=0) / (max(G - 1, 1) * G)

    @cached_property
    def group_coefficients(self) -> Array:
        """Coefficients of the features in the mean of each group, shape (G, M N')."""
        (one, *_), networks = self.networks.left, self.networks
        M, q = self.smoother.n_members, self.smoother.q[:, :, self.k]
        groups, xp = networks.groups(M), namespace(q)
        width = one.shape[0] // (groups[0].stop - groups[0].start)
        columns = xp.zeros((M, width, len(groups)), dtype=q.dtype, device=q.device)
        for g, members in enumerate(groups):
            columns[members, :, g] = q[members, :width]
        none = sum(int(null) for null in networks.null_sizes)
        beyond = xp.zeros((none, len(groups)), dtype=q.dtype, device=q.device)
        return self.adjoint(xp.concat([_flat(columns), beyond])).T

    def parts(self, t: Array) -> tuple[Array, Array]:
        """Noise and null space parts of the kernel for all pairs, each (p, p)."""
        t, beyond = self.split(t)
        G = self.networks.n_groups
        return self.form.total(t, t) * (self.scale / G**2), beyond.T @ beyond / G

    def gram(self, t: Array) -> Array:
        """The kernel of all pairs of functionals, shape (p, p)."""
        return sum(self.parts(t))

    def applied(self, t: Array) -> Array:
        """The matrix of the kernel times coordinates (w, p)."""
        t, beyond = self.split(t)
        sums, G = self.form.applied(t), self.networks.n_groups
        noise = _flat(sums.single + sums.distinct) * (self.scale / G**2)
        return namespace(t).concat([noise, beyond / G])

    def adjoint(self, a: Array) -> Array:
        """Vectors (M N', p) whose products with features are those of a with coordinates."""
        return _flat(self.networks.adjoint(*self.split(a), self.k))


def _flat(a: Array) -> Array:
    """Members side by side, (M, N', p) to (M N', p)."""
    return namespace(a).reshape(a, (-1, a.shape[2]))
