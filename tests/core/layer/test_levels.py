"""Levels of a category among the inputs: unknown ones are recognised, many are joined."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.layer.levels import MAX_DRAWN, Levels, level_block


def indicators(shares):
    return Levels(np.eye(len(shares)), np.array(shares), np.array(shares))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.2, 0.3, 0.5], [0.999, 0.001]])
def test_rows_of_an_unknown_level_are_recognised(dtype, shares):
    block = level_block(1, indicators(shares))
    rows = np.vstack([np.eye(len(shares)), shares])
    X = np.column_stack([np.arange(len(rows)), rows, np.ones(len(rows))]).astype(dtype)
    assert_array_equal(block.unknown(X), [False] * len(shares) + [True])


def test_each_level_is_drawn_with_its_share():
    block = level_block(0, indicators([0.25, 0.0, 0.75]))
    rows, shares = zip(*block.drawn(np.array([[0.25, 0.0, 0.75, 7.0]])), strict=True)
    assert_allclose(shares, [0.25, 0.75])
    assert_array_equal(np.concatenate(rows), [[1, 0, 0, 7], [0, 0, 1, 7]])


def test_many_levels_are_joined_with_the_same_mean_and_nearly_the_same_variance():
    rng = np.random.default_rng(0)
    values, shares = rng.normal(size=(3000, 2)), rng.dirichlet(np.ones(3000))
    block = level_block(0, Levels(values, shares, np.zeros(2)))
    assert len(block.values) <= MAX_DRAWN
    mean = shares @ values
    assert_allclose(block.shares.sum(), 1)
    assert_allclose(block.shares @ block.values, mean)
    before = shares @ (values[:, 0] - mean[0]) ** 2
    assert_allclose(block.shares @ (block.values[:, 0] - mean[0]) ** 2, before, rtol=0.01)
