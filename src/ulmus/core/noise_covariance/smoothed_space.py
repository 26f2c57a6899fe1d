r"""Directions of the rows that the smoother retains.

The mean smoother of the members is :math:`P = C'C / M` with C the coordinates of the rows in all
members, stacked. It retains directions of eigenvalue one entirely, and others in part: there, y is
the sum of signal and noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.arrays.linalg import eigh, svd

# Along directions of smaller eigenvalue the function is negligible.
SMALLEST_SHARE = 0.01
# Along directions of at least this eigenvalue the outputs are signal, whatever the noise.
FIXED_SHARE = 0.97
# Up to this many rows, P is decomposed directly.
MAX_EXACT_ROWS = 600
# Up to this many features of all members together, C C' is.
MOST_FEATURES = 2000
# Columns of the first subspace; their number doubles until an eigenvalue falls below the threshold.
FIRST_COLUMNS = 64
# Passes over the rows for each number of columns, and the change of the eigenvalues above the
# threshold at which the iteration has converged.
PASSES, TOLERANCE = 12, 1e-4

Blocks = Callable[[], Iterable[Array]]


@dataclass(frozen=True)
class SmoothedSpace:
    """Eigenvectors of P, and their eigenvalues: the shares of the outputs that P retains."""

    directions: np.ndarray  # (n, k): orthonormal columns
    shares: np.ndarray  # (k,): eigenvalues in [0, 1], descending

    @property
    def n_fixed(self) -> int:
        """Number of directions along which the function is unrestricted."""
        return int(np.sum(self.shares >= FIXED_SHARE))

    @property
    def odds(self) -> np.ndarray:
        """Prior variance of the function along the other directions, up to a factor."""
        shares = self.shares[self.n_fixed :]
        return shares / (1 - shares)

    def ordered(self, order: np.ndarray) -> SmoothedSpace:
        """The same for rows in another order."""
        return SmoothedSpace(self.directions[order], self.shares)

    def leading(self, k: int) -> SmoothedSpace:
        """The k directions of largest share, or fewer."""
        return SmoothedSpace(self.directions[:, :k], self.shares[:k])


def smoothed_directions(
    coordinates: Blocks, n_members: int, threshold: float = SMALLEST_SHARE
) -> SmoothedSpace:
    """Eigenvectors of P with eigenvalues of at least ``threshold``.

    ``coordinates`` returns an iterator of blocks (M N', b) of C, in the order of the rows.
    """
    blocks = [to_numpy(block) for block in _first(coordinates, MAX_EXACT_ROWS)]
    if sum(block.shape[1] for block in blocks) <= MAX_EXACT_ROWS:
        C = np.concatenate(blocks, axis=1)
        values, vectors = eigh(C.T @ C / n_members)
        kept = values >= threshold
        return SmoothedSpace(vectors[:, kept][:, ::-1], values[kept][::-1])
    few = blocks[0].shape[0] <= MOST_FEATURES
    W = (_eigenvectors if few else _subspace)(coordinates, n_members, threshold)
    reached = [to_numpy(block.T @ W) for block in coordinates()]
    (U,), (s,), _ = svd((np.concatenate(reached) / n_members**0.5)[None])
    # An eigenvalue at the threshold must not be dropped here by round-off.
    kept = s**2 >= threshold * (1 - 1e-9)
    return SmoothedSpace(U[:, kept], s[kept] ** 2)


def _first(coordinates: Blocks, most_rows: int) -> Iterable[Array]:
    """Blocks until they contain more rows than this."""
    n = 0
    for block in coordinates():
        yield block
        n += block.shape[1]
        if n > most_rows:
            return


def _eigenvectors(coordinates: Blocks, n_members: int, threshold: float) -> Array:
    """Eigenvectors (M N', k) of C C' / M with eigenvalues of at least ``threshold``."""
    product = sum(block @ block.T for block in coordinates())
    values, vectors = eigh(to_numpy(product) / n_members)
    return like(vectors[:, values >= threshold], product)


def _subspace(coordinates: Blocks, n_members: int, threshold: float) -> Array:
    """Orthonormal columns (M N', r) near the leading eigenvectors of C C' / M, r above k."""
    rng, n_columns = np.random.default_rng(0), FIRST_COLUMNS
    first = next(iter(coordinates()))
    W, values = first[:, :0], np.empty(0)
    while True:
        W = _extended(coordinates, W, min(n_columns, first.shape[0]), rng)
        for _ in range(PASSES):
            before = values
            W, values = _power_iteration(coordinates, W, n_members)
            if _converged(before, values, threshold):
                break
        if values[-1] < threshold or W.shape[1] == first.shape[0]:
            return W
        n_columns *= 2


def _extended(coordinates: Blocks, W: Array, n_columns: int, rng: np.random.Generator) -> Array:
    """W with random columns beside it, orthonormal.

    They are random sums of rows, so that the space does not depend on the coordinates, which differ
    between streams and rows in memory.
    """
    xp, k = namespace(W), n_columns - W.shape[1]
    sums = sum(
        block @ like(rng.standard_normal((block.shape[1], k)), block) for block in coordinates()
    )
    return xp.linalg.qr(xp.concat([W, sums], axis=1)).Q


def _power_iteration(coordinates: Blocks, W: Array, n_members: int) -> tuple[Array, np.ndarray]:
    """W after one more product with C C' / M, and its eigenvalues within W, descending."""
    xp = namespace(W)
    product = xp.zeros_like(W)
    for block in coordinates():
        product += block @ (block.T @ W)
    product = product / n_members
    values = eigh(to_numpy(W.T @ product))[0][::-1]
    return xp.linalg.qr(product).Q, values


def _converged(before: np.ndarray, after: np.ndarray, threshold: float) -> bool:
    """Whether the eigenvalues above the threshold are as many as before, and hardly changed."""
    above = after[after >= threshold]
    if np.sum(before >= threshold) != len(above) or len(before) != len(after):
        return False
    return bool(np.all(np.abs(above - before[: len(above)]) <= TOLERANCE))
