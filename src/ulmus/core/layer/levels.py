"""Levels of a category among the inputs, and rows whose level is unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Difference of the inputs of equal levels, relative to the range of the levels.
ROUND_OFF = 1e-6


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

    def drawn(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows with each level that occurs in turn, (L', n, d), and its share, (L',)."""
        present = np.flatnonzero(self.shares > 0)
        rows = np.repeat(X[None], len(present), axis=0)
        rows[:, :, self.inputs] = self.values[present][:, None, :]
        return rows, self.shares[present] / np.sum(self.shares)
