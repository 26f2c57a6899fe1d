"""The units in which a fit works with the outputs: a shift, and a power of two.

Squares of outputs in extreme units overflow. A power of two divides them without rounding, so
that results are the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.data.source import Block

# Squares of larger and smaller spreads than these cannot be told from infinity and zero.
LARGEST_SPREAD, SMALLEST_SPREAD = 1e152, 1e-152


@dataclass(frozen=True)
class OutputUnits:
    """What is subtracted from each output, and what then divides it, arrays of shape (K,)."""

    shift: Array
    unit: Array

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks whose outputs are in these units."""
        for block in blocks:
            yield block._replace(y=(block.y - self.shift[:, None]) / self.unit[:, None])

    def outputs(self, few: Iterable[int]) -> OutputUnits:
        """Units of some of the outputs."""
        xp, wanted = namespace(self.unit), list(few)
        if wanted == list(range(self.unit.shape[0])):
            return self
        index = xp.asarray(wanted, device=self.unit.device)
        return OutputUnits(xp.take(self.shift, index), xp.take(self.unit, index))


def output_units(sample: Block, constant: bool) -> OutputUnits:
    """Units from a sample of rows; only with an intercept may the outputs be shifted."""
    y = to_numpy(sample.y).astype(float)
    if not np.all(np.isfinite(y)):
        raise ValueError(
            "y is beyond the range of dtype='float32'; multiply it by a factor that brings it near "
            "1, or use dtype='float64'."
        )
    with np.errstate(over="ignore"):
        shift = np.mean(y, axis=1) if constant else np.zeros(len(y))
    spread = np.max(np.abs(y - shift[:, None]), axis=1)
    # What is left of a constant is round-off.
    spread = np.where(spread > 10 * np.finfo(float).eps * np.abs(shift), spread, 0.0)
    for size in spread[spread > 0]:
        if not SMALLEST_SPREAD < size < LARGEST_SPREAD:
            raise ValueError(
                f"y varies by {size:.1g}, and its variance is beyond the range of numbers; "
                "multiply y by a factor that brings it near 1."
            )
    unit = np.exp2(np.round(np.log2(np.where(spread > 0, spread, 1.0))))
    return OutputUnits(like(shift, sample.y), like(unit, sample.y))
