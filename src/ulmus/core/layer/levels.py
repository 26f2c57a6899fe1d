"""Levels of a category among the inputs, and rows whose level is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# Difference of the inputs of equal levels, relative to the range of the levels.
ROUND_OFF = 1e-6


# Of more levels, neighbours are joined to so many.
MAX_DRAWN = 100


class Levels(NamedTuple):
    """The levels of a category as values of some inputs."""

    values: np.ndarray  # (L, w): inputs of each level
    shares: np.ndarray  # (L,): share of each level in the training rows
    unknown: np.ndarray  # (w,): inputs of an unknown level


def level_block(start: int, levels: Levels) -> LevelBlock:
    """The inputs from ``start`` on as those of a category; many levels are joined in groups."""
    values, shares = levels.values, levels.shares
    if len(values) > MAX_DRAWN:
        order = np.argsort(values[:, 0])
        values, shares = values[order], shares[order]
        group = np.minimum((np.cumsum(shares) - shares / 2) * MAX_DRAWN, MAX_DRAWN - 1).astype(int)
        joined = np.bincount(group, shares, MAX_DRAWN)
        sums = np.stack([np.bincount(group, shares * v, MAX_DRAWN) for v in values.T], axis=1)
        values, shares = sums[joined > 0] / joined[joined > 0][:, None], joined[joined > 0]
    return LevelBlock(start, values, shares, levels.unknown)


@dataclass(frozen=True)
class LevelBlock:
    """The inputs that encode the levels of one category."""

    start: int  # the first of these inputs
    values: np.ndarray  # (L, w): inputs of each level
    shares: np.ndarray  # (L,): share of each level in the training rows
    unknown_inputs: np.ndarray  # (w,): inputs of an unknown level, which are those of no level

    @property
    def inputs(self) -> slice:
        """The inputs."""
        return slice(self.start, self.start + len(self.unknown_inputs))

    def unknown(self, X: np.ndarray) -> np.ndarray:
        """Whether the level of each row of X (n, d) is unknown, shape (n,)."""
        scale = np.max(np.abs(self.values), axis=0)
        gap = np.abs(X[:, self.inputs] - self.unknown_inputs)
        return np.asarray(np.all(gap <= ROUND_OFF * scale, axis=1))

    def drawn(self, X: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
        """The rows (n, d) with each level that occurs in turn, and its share."""
        for values, share in zip(self.values, self.shares, strict=True):
            if share > 0:
                rows = X.copy()
                rows[:, self.inputs] = values
                yield rows, float(share / np.sum(self.shares))
