"""Fits of the core without an estimator: layers, blocks of rows and specifications by hand."""

import functools
import operator

import numpy as np

from ulmus.core.data.source import Block, RowBlocks
from ulmus.core.ensemble.regression import RegressionSpec
from ulmus.core.fit.build import build
from ulmus.core.fit.spec import FitSpec
from ulmus.core.ridge.member_pairs import CORRELATED, MODELLED
from ulmus.core.variance.estimates import ESTIMATES

# Estimates for independent noise.
OTHER_PASSES = (CORRELATED.name, MODELLED.name)
INDEPENDENT = tuple(name for name, e in ESTIMATES.items() if e.pairing not in OTHER_PASSES)


class Blocks(list):
    """Blocks of rows that make each pass on their own, as on a cluster.

    The sample that sets units and preconditioner is the first block, or another one.
    """

    def __init__(self, blocks, sample=None):
        super().__init__(blocks)
        self.first = self[0] if sample is None else sample

    def reduce(self, row_pass):
        return functools.reduce(operator.add, [row_pass([block]) for block in self])

    def sample(self, n_rows):
        return self.first

    def for_width(self, width):
        return self


def blocks_of(X, y, size=50):
    """Blocks of some rows each."""
    starts = range(0, len(X), size)
    return Blocks(Block(X[i : i + size], y[None, i : i + size], None) for i in starts)


def core_fit(layer, blocks, sample=None, *, alpha, hc="HC3", dual=False):
    """A fit with every such estimate and the paper's noise, streamed unless it keeps its rows."""
    spec = FitSpec(layer, RegressionSpec(alpha, "residual", hc, INDEPENDENT), dual=dual)
    return build(joined(blocks) if dual else Blocks(blocks, sample), spec)


def joined(blocks):
    """Blocks as rows in memory."""
    root = [block.root_weight for block in blocks]
    return RowBlocks(
        np.concatenate([block.X for block in blocks]),
        np.concatenate([block.y for block in blocks], axis=1),
        None if root[0] is None else np.concatenate(root),
        np.empty(0),
    )
