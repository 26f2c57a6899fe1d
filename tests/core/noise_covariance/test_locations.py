"""Where the rows are: their order, their clock, and what is refused."""

import numpy as np
import pytest
from messages import mentions
from numpy.testing import assert_array_equal

from ulmus.core.noise_covariance.locations import Locations


def test_rows_are_ordered_by_group_then_time_and_ties_stay():
    locations = Locations([3.0, 1, 2, 1, 1], groups=[1, 1, 0, 0, 1])
    assert_array_equal(locations.order, [3, 2, 1, 4, 0])
    ordered = locations.ordered
    assert_array_equal(ordered.time, [1, 2, 1, 1, 3])
    assert_array_equal(ordered.groups, [0, 0, 1, 1, 1])
    assert_array_equal(ordered.order, np.arange(5))


def test_rows_alone_are_a_series():
    locations = Locations(n=4)
    assert_array_equal(locations.order, range(4))
    assert_array_equal(locations.times, range(4))
    assert_array_equal(locations.codes, 0)
    assert_array_equal(Locations(coords=np.zeros((3, 2))).order, range(3))


def test_rows_of_a_group_are_a_series_of_their_own():
    locations = Locations(groups=[5, -1, 5, 5, -1])
    assert_array_equal(locations.order, [1, 4, 0, 2, 3])
    assert_array_equal(locations.times, [0, 0, 1, 2, 1])


def test_an_excluded_row_leaves_a_gap():
    locations = Locations(groups=[0, 0, 0, 1, 1]).taken([0, 2, 4])
    assert_array_equal(locations.times, [0, 2, 1])
    assert locations.n == 3


def test_coordinates_may_be_one_column():
    assert Locations(coords=[1.0, 2.0]).coords.shape == (2, 1)
    assert Locations(coords=[[1.0, 2.0]]).taken([0]).coords.shape == (1, 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, ["locations", "number of rows n"]),
        ({"time": [0.0, np.nan]}, ["time", "row 1", "nan", "finite"]),
        ({"coords": [[0.0, 1.0], [np.inf, 0.0]]}, ["coords", "row 1", "inf"]),
        ({"time": [[0.0]]}, ["time", "(1, 1)", "(n,)"]),
        ({"coords": np.zeros((1, 1, 1))}, ["coords", "(n, c)"]),
        ({"groups": [0.5, 1.0]}, ["groups", "float64", "integer codes"]),
        ({"groups": [["a"]]}, ["groups", "integer codes"]),
        ({"time": [0.0, 1.0], "groups": [1]}, ["time of 2", "groups of 1", "each row"]),
        ({"time": [0.0, 1.0], "n": 3}, ["time of 2", "n of 3"]),
    ],
)
def test_invalid_locations_raise(given, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        Locations(**given)
