"""Cross-validation blocks: sizes, order, groups, rows of equal location, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.spatial import Delaunay

from ulmus.core.data.cv_blocks import (
    FEWEST_BLOCKS,
    default_rows,
    group_blocks,
    spatial_blocks,
    time_blocks,
)


def sizes(block_ids):
    """Rows of each block; ids are 0, 1, ... without gaps."""
    assert_array_equal(np.unique(block_ids), np.arange(block_ids.max() + 1))
    return np.bincount(block_ids)


# ---------------------------------------------------------------- time


def test_segments_of_rows():
    assert_array_equal(time_blocks(np.arange(200.0), rows=20), np.arange(200) // 20)
    # Numbers of rows are about equal, and none exceeds the limit.
    assert_array_equal(sizes(time_blocks(np.arange(22.0), rows=4)), [4, 4, 3, 4, 4, 3])


def test_times_in_any_order_and_labels_along_time(rng):
    time = rng.permutation(100).astype(float)
    assert_array_equal(time_blocks(time, rows=10), time // 10)


def test_no_segment_has_rows_of_two_groups(rng):
    groups = rng.choice(["b", "a", "c"], 120)
    time = rng.uniform(0, 10, 120)
    for rows in (10, None):
        block_ids = time_blocks(time, groups, rows)
        for block in np.unique(block_ids):
            assert len(set(groups[block_ids == block])) == 1
        # Ids increase along the groups, and along time within them.
        order = np.lexsort((time, groups))
        assert np.all(np.diff(block_ids[order]) >= 0)
    # Groups that are shorter than a segment are segments.
    assert len(sizes(time_blocks(np.arange(30.0), np.arange(30) // 3, rows=10))) == 10


def test_rows_of_equal_time_are_in_one_block():
    time = np.repeat(np.arange(30.0), 3)
    block_ids = time_blocks(time, rows=10)
    assert all(len(set(block_ids[time == t])) == 1 for t in time)
    # The same time in another group is another row.
    block_ids = time_blocks(np.zeros(10), np.arange(10) // 2, rows=2)
    assert_array_equal(block_ids, np.arange(10) // 2)


@given(st.integers(5, 3000))
def test_default_blocks_have_at_most_a_fifth_of_the_rows(n):
    assert default_rows(n) == min(int(np.ceil(3 * n ** (1 / 3))), n // 5)
    for block_ids in (time_blocks(np.arange(n)), spatial_blocks(np.arange(2.0 * n).reshape(n, 2))):
        counts = sizes(block_ids)
        assert len(counts) >= FEWEST_BLOCKS
        assert counts.max() <= -(-n // 5)
        assert counts.max() <= default_rows(n) + 1


# ---------------------------------------------------------------- groups


def test_groups_are_blocks():
    groups = np.array(["north", "east", "west", "south", "here"])[[0, 2, 1, 1, 3, 4, 0]]
    block_ids = group_blocks(groups)
    assert_array_equal(block_ids[:, None] == block_ids, groups[:, None] == groups)
    sizes(block_ids)


# ---------------------------------------------------------------- space


def test_cells_have_about_equal_numbers_of_rows(rng):
    coords = rng.normal(size=(400, 2))
    block_ids = spatial_blocks(coords, rows=40)
    assert_array_equal(sizes(block_ids), [40] * 10)
    assert_array_equal(spatial_blocks(coords, rows=40), block_ids)


def test_cells_do_not_overlap(rng):
    coords = rng.uniform(size=(300, 2))
    block_ids = spatial_blocks(coords, rows=30)
    for k in range(10):
        inside = Delaunay(coords[block_ids == k]).find_simplex(coords) >= 0
        assert set(block_ids[inside]) == {k}


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


MOVED = {
    "rotated": lambda coords: coords @ rotation(0.7),
    "turned": lambda coords: coords @ rotation(np.pi / 2),
    "mirrored": lambda coords: coords * [1, -1],
    "shifted": lambda coords: coords + np.array([4e5, 5e6]),
    "in another unit": lambda coords: coords * 1e-3,
}


@pytest.mark.parametrize("moved", MOVED)
@pytest.mark.parametrize("rows", [7, 13])
def test_cells_do_not_depend_on_the_axes(rng, moved, rows):
    """Cells were split along the axes of the coordinates."""
    coords = rng.uniform(0, 1000, size=(200, 2))
    expected = spatial_blocks(coords, rows)
    assert_array_equal(spatial_blocks(MOVED[moved](coords), rows), expected)
    order = rng.permutation(200)
    assert_array_equal(spatial_blocks(coords[order], rows), expected[order])


def test_cells_of_a_lattice_are_rectangles():
    """A square lattice has no longest axis, and is split along its rows and columns."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(12.0), np.arange(12.0)))
    for coords in (np.column_stack([x, y]), np.column_stack([x, y, np.zeros(144)])):
        block_ids = spatial_blocks(coords, rows=9)
        for k in range(16):
            own = coords[block_ids == k]
            assert len(own) == np.prod(np.ptp(own, axis=0) + 1)


def test_rows_of_equal_location_are_in_one_block(rng):
    coords = np.repeat(rng.uniform(size=(20, 2)), 5, axis=0)
    block_ids = spatial_blocks(coords, rows=8)
    for location in coords:
        assert len(set(block_ids[np.all(coords == location, axis=1)])) == 1


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: time_blocks(np.arange(20), rows=5), r"time gives 4 blocks of 20 rows.*at least 5"),
        (lambda: time_blocks(np.arange(4)), r"time gives 4 blocks.*rows of more different time"),
        (lambda: spatial_blocks(np.zeros((9, 2)), rows=1), r"coords gives 1 blocks"),
        (lambda: spatial_blocks(np.zeros((9, 2))), r"coords gives 1 blocks.*different coords"),
        (lambda: group_blocks([1, 2, 2, 3]), r"groups gives 3 blocks.*different groups"),
    ],
)
def test_blocks_that_cannot_be_made_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
