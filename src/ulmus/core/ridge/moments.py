"""First pass over the rows: sums of whitened features and outputs, which merge with ``+``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import ClassVar

from ulmus.core.arrays.backend import Array, namespace
from ulmus.core.data.scaling import OutputUnits
from ulmus.core.data.source import Block
from ulmus.core.ridge.preconditioner import Whitening
from ulmus.core.ridge.sampled_pairs import ALL_ROWS, AllPairs, PairSampling


@dataclass
class Moments:
    """Sums of the whitened features phi and the outputs y over rows."""

    # Sums of phi phi' within members, and between members of a group or all members.
    gram: AllPairs
    cross: Array  # (M, N', K): sums of phi y
    y_square: Array  # (K,): sums of y^2
    n_rows: int  # rows of positive weight
    mass: float  # sum of the row weights

    def __add__(self, other: Moments) -> Moments:
        """Moments of the rows of both."""
        return Moments(
            add(self.gram, other.gram),
            self.cross + other.cross,
            self.y_square + other.y_square,
            self.n_rows + other.n_rows,
            self.mass + other.mass,
        )

    def add(self, phi: Array, block: Block, sampling: PairSampling = ALL_ROWS) -> None:
        """Add the rows of a block with their whitened features phi (M, N', n)."""
        xp, y = namespace(phi), block.weighted_y
        sampling.add(self.gram, phi, sampling.rows(block))
        self.cross += phi @ y.T
        self.y_square += xp.sum(y**2, axis=1)
        self.n_rows += block.n_observed
        root = block.root_weight
        self.mass += float(y.shape[1]) if root is None else float(xp.sum(root**2))


@dataclass(frozen=True)
class FirstPass:
    """Computes the moments, with products between the members of each group, and of a sample."""

    title: ClassVar[str] = "Fitting networks: sums of features"

    whitening: Whitening
    units: OutputUnits
    groups: list[slice]
    sampling: PairSampling = ALL_ROWS

    def __call__(self, blocks: Iterable[Block]) -> Moments:
        """Moments of the blocks."""
        P = self.whitening.P
        xp, (M, N, _) = namespace(P), P.shape
        K = self.units.unit.shape[0]

        def zeros(*shape: int) -> Array:
            return xp.zeros(shape, dtype=P.dtype, device=P.device)

        gram = self.sampling.zeros(N, self.groups, like=P)
        total = Moments(gram, zeros(M, N, K), zeros(K), 0, 0.0)
        for block in self.units.blocks(blocks):
            total.add(self.whitening(block), block, self.sampling)
        return total
