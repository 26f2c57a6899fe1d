"""Sums over the members of an ensemble, from which all variance estimates are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from reproduction.members import Members
from ulmus.core.arrays.backend import Array, namespace

# Columns of members that wait for one product over rows: fewer pass over its result too often.
WAITING_COLUMNS = 1_000


class Coordinates(NamedTuple):
    """Members (g, s) in short precision: t (g, s, P, N), and Omega (g, s, n) if it is wanted."""

    t: Array
    omega: Array


@dataclass
class EnsembleSums:
    """Sums over members that grow as members are added, for g ensembles at P points.

    Parameters
    ----------
    y : array of shape (g, n)
        Outputs; the first n points are the training rows.
    heteroskedastic : bool
        Whether estimates from the residuals of single rows are wanted.
    product_dtype : dtype
        Of the products over rows, the bulk of the work.
    """

    y: Array
    heteroskedastic: bool
    product_dtype: Any

    def __post_init__(self) -> None:
        self.n_members = 0
        self.predictions: list[Array] = []
        self.waiting: list[Coordinates] = []
        self.kept: list[Array] = []
        self.rss: Array = 0.0
        self.residual_dof: Array = 0.0
        self.z: Array = 0.0
        self.squares: Array = 0.0
        self.omega: Array = 0.0
        self.weighted_z: Array = 0.0
        self.own: Array = 0.0

    def add(self, members: Members, h: Array) -> None:
        """Add members (g, s) with features h (g, s, P, N) at the points."""
        xp, y, n = namespace(h), self.y[:, None, :], self.y.shape[-1]
        t = h @ members.T
        Q = t[:, :, :n, :]
        prediction = (t @ (Q.mT @ y[..., None]))[..., 0]
        self.n_members += h.shape[1]
        self.predictions.append(prediction)
        r = y - prediction[..., :n]
        gram = members.gram
        trace = xp.sum(xp.linalg.diagonal(gram), axis=-1)
        self.rss = self.rss + xp.sum(r**2, axis=(1, 2))
        dof = 2 * trace - xp.sum(gram**2, axis=(-2, -1))
        self.residual_dof = self.residual_dof + xp.sum(n - dof, axis=1)
        # HC3 (MacKinnon & White, 1985): squares of exact leave-one-out residuals.
        omega = (r / (1 - xp.vecdot(Q, Q))) ** 2 if self.heteroskedastic else None
        t = xp.astype(t, self.product_dtype)
        gram_t = t if members.alpha == 0 else t @ xp.astype(gram, t.dtype)
        self.squares = self.squares + _sums_over_members(gram_t, t, self.y)
        self._keep(t, omega)

    def _keep(self, t: Array, omega: Array | None) -> None:
        """Keep members in short precision, until there are enough for a product."""
        xp = namespace(t)
        if omega is not None:
            self.omega = self.omega + xp.sum(omega, axis=1)
            omega = xp.astype(omega, self.product_dtype)
            self.own = self.own + _quadratic(omega, t, self.y)
            self.kept.append(t)
        self.waiting.append(Coordinates(t, omega))
        if sum(part.t.shape[1] * part.t.shape[3] for part in self.waiting) >= WAITING_COLUMNS:
            self._sum_waiting()

    def _sum_waiting(self) -> None:
        """Add the waiting members to the sums of z = Q t and Omega z, (g, n, P)."""
        if not self.waiting:
            return
        xp, n = namespace(self.y), self.y.shape[-1]
        t = _side_by_side([part.t for part in self.waiting])
        # On training rows t is Q: a product with itself, which costs half.
        Q, rest = t[:, :n, :], t[:, n:, :]
        self.z = self.z + xp.concat([Q @ Q.mT, Q @ rest.mT], axis=-1)
        if self.heteroskedastic:
            weighted = [part.omega[..., None] * part.t[:, :, :n, :] for part in self.waiting]
            self.weighted_z = self.weighted_z + _side_by_side(weighted) @ t.mT
        self.waiting = []

    @property
    def prediction(self) -> Array:
        """Mean of the members, (g, P)."""
        xp = namespace(self.y)
        return xp.mean(xp.concat(self.predictions, axis=1), axis=1)

    def variances(self, names: tuple[str, ...]) -> Array:
        """Estimates of the variance of the mean, (g, len(names), P); none is negative."""
        self._sum_waiting()
        xp = namespace(self.y)
        M, z = self.n_members, self.z
        spread = xp.var(xp.concat(self.predictions, axis=1), axis=1, correction=1)
        sigma2 = (self.rss / self.residual_dof)[:, None]
        total = _row_sums(z * z, self.y)
        parts = {
            "NHo": sigma2 * total / M**2,
            "BR": sigma2 * (total - self.squares) / (M * (M - 1)),
        }
        if self.heteroskedastic:
            own, every = self.own, _row_sums(z * self.weighted_z, self.y)
            parts["S1"] = own / M
            parts["NHe"] = every / M**2
            parts["S2"] = (every - own) / (M * (M - 1))
            if "S3" in names:
                triples = self._common_pairs() - 2 * (every - own)
                parts["S3"] = triples / (M * (M - 1) * (M - 2))
        stacked = xp.stack([parts[name] + spread / M for name in names], axis=1)
        return xp.clip(stacked, min=0.0)

    def _common_pairs(self) -> Array:
        """Sum over distinct pairs of z_m' (sum of all Omega) z_l, (g, P)."""
        xp = namespace(self.y)
        omega = xp.astype(self.omega, self.product_dtype)
        pairs = _row_sums(self.z**2 * omega[..., None], self.y)
        for t in self.kept:
            pairs = pairs - _quadratic(omega[:, None, :], t, self.y)
        return pairs


def _side_by_side(parts: list[Array]) -> Array:
    """Members (g, s, k, N) next to each other, (g, k, s N): their sum is one product."""
    xp = namespace(*parts)
    flat = []
    for part in parts:
        g, s, k, N = part.shape
        flat.append(xp.reshape(xp.permute_dims(part, (0, 2, 1, 3)), (g, k, s * N)))
    return xp.concat(flat, axis=-1)


def _row_sums(products: Array, reference: Array) -> Array:
    """Sums over training rows in the precision of the reference, (g, n, P) to (g, P)."""
    return namespace(products).sum(products, axis=1, dtype=reference.dtype)


def _quadratic(omega: Array, t: Array, reference: Array) -> Array:
    """Sum over members of z' Omega z, weights (g, s, n) and t (g, s, P, N) to (g, P)."""
    Q = t[:, :, : omega.shape[-1], :]
    return _sums_over_members(t @ (Q.mT @ (omega[..., None] * Q)), t, reference)


def _sums_over_members(a: Array, b: Array, reference: Array) -> Array:
    """Sums of a'b at each point, (g, s, P, N) to (g, P)."""
    xp = namespace(a)
    return xp.sum(xp.vecdot(a, b), axis=1, dtype=reference.dtype)
