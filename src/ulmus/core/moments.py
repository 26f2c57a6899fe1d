"""What a fit needs from the data, as sums over row blocks that merge with ``+``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ulmus.core.backend import Array, namespace
from ulmus.core.forms import COMMON, PairGram
from ulmus.core.whitening import Whitening


class Block(NamedTuple):
    """Rows of data: X (n, d), y (K, n), and the square roots of the row weights (n,) or None.

    ``start`` is the number of the first row in an in-memory table.
    """

    X: Array
    y: Array
    root_weight: Array | None
    start: int = 0

    @property
    def target(self) -> Array:
        """The outputs, scaled by the square roots of the weights, shape (K, n)."""
        return self.y if self.root_weight is None else self.y * self.root_weight

    @property
    def n_observed(self) -> int:
        """Rows that count: those of positive weight."""
        if self.root_weight is None:
            return int(self.y.shape[1])
        xp = namespace(self.root_weight)
        return int(xp.sum(xp.astype(self.root_weight > 0, xp.int64)))


@dataclass
class Moments:
    """Sums of the whitened features phi and the outputs y over rows.

    Parameters
    ----------
    gram : PairGram
        Sums of phi phi' within members, and between those of a group.
    cross : array of shape (M, N, K)
        Sums of phi y.
    y_square : array of shape (K,)
        Sums of y^2.
    n_rows : int
        Rows of positive weight.
    """

    gram: PairGram
    cross: Array
    y_square: Array
    n_rows: int

    def __add__(self, other: Moments) -> Moments:
        """Moments of the rows of both."""
        return Moments(
            self.gram + other.gram,
            self.cross + other.cross,
            self.y_square + other.y_square,
            self.n_rows + other.n_rows,
        )

    def add(self, phi: Array, target: Array, n_rows: int) -> None:
        """Add whitened rows phi (M, N, n) and scaled outputs (K, n)."""
        xp = namespace(phi)
        self.gram.add(phi, COMMON)
        self.cross += phi @ target.T
        self.y_square += xp.sum(target**2, axis=1)
        self.n_rows += n_rows


def row_moments(blocks: Iterable[Block], whitening: Whitening, groups: list[slice]) -> Moments:
    """Moments of all blocks, with the sums between the members of each group."""
    xp, (M, N, _) = namespace(whitening.P), whitening.P.shape

    def zeros(*shape: int) -> Array:
        return xp.zeros(shape, dtype=whitening.P.dtype, device=whitening.P.device)

    total: Moments | None = None
    for block in blocks:
        if total is None:
            K = block.y.shape[0]
            gram = PairGram.zeros(N, groups, like=whitening.P)
            total = Moments(gram, zeros(M, N, K), zeros(K), 0)
        total.add(whitening(block.X, block.root_weight), block.target, block.n_observed)
    if total is None:
        raise ValueError("blocks holds no rows; give at least two rows of data.")
    return total
