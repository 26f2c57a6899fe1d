"""Indicators of the levels of a category among the inputs, and rows whose level is unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Sum of squares of indicators, above which one of them is one up to round-off.
KNOWN = 1 - 1e-6


@dataclass(frozen=True)
class LevelBlock:
    """The inputs that are indicators of the levels of one category.

    In a row whose level is unknown they are the shares of the levels, and none of them is one.
    """

    start: int  # the first of these inputs
    shares: np.ndarray  # (L,): share of each level in the training rows

    @property
    def inputs(self) -> slice:
        """The inputs."""
        return slice(self.start, self.start + len(self.shares))

    def unknown(self, X: np.ndarray) -> np.ndarray:
        """Whether the level of each row of X (n, d) is unknown, shape (n,)."""
        return np.max(X[:, self.inputs], axis=1) < KNOWN

    def drawn(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows with each level that occurs in turn, (L', n, d), and its share, (L',)."""
        present = np.flatnonzero(self.shares > 0)
        rows = np.repeat(X[None], len(present), axis=0)
        rows[:, :, self.inputs] = np.eye(len(self.shares))[present][:, None, :]
        return rows, self.shares[present] / np.sum(self.shares)
