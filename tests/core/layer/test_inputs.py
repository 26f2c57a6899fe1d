"""Inputs of the hidden layer: normal scores, one-hot indicators, and their columns."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri
from scipy.stats import rankdata

from ulmus import ELMEnsembleRegressor
from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.source import Block, SamplePass
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import EXPANSIONS, KNOT_STEP, Inputs, NormalScores, OneHot, expanded

N_ROWS = 80


def block(X, weight=None):
    """Rows with outputs that do not matter."""
    root_weight = None if weight is None else np.sqrt(weight)
    return Block(X, np.zeros((1, len(X))), root_weight)


def plain(d):
    return Inputs(np.zeros(d), np.ones(d))


def inputs_of(X, weight=None, expansions=EXPANSIONS):
    """Inputs that are not standardised, expanded by the rows themselves."""
    return expanded(plain(X.shape[1]), block(X, weight), expansions)


def scores_of(x, weight=None):
    """The curve of scores of one column."""
    return inputs_of(x[:, None], weight, ("normal_scores",)).normal_scores[0]


def oracle_scores(x):
    """Normal quantiles of average ranks, of mean zero and variance one."""
    ranks = rankdata(x, method="average")
    scores = [float(ndtri((rank - 0.5) / len(x))) for rank in ranks]
    mean = sum(scores) / len(scores)
    variance = sum((s - mean) ** 2 for s in scores) / len(scores)
    return np.array([(s - mean) / variance**0.5 for s in scores])


@pytest.fixture
def mixed_columns(rng):
    """A continuous column, one with ties, four levels, two values, and a constant."""
    return np.column_stack(
        [
            rng.standard_normal(N_ROWS),
            rng.integers(0, 30, N_ROWS) ** 2.0,
            np.array([1.5, 2.5, 4.0, 7.0])[rng.permutation(np.arange(N_ROWS) % 4)],
            np.arange(N_ROWS) % 2,
            np.full(N_ROWS, 3.0),
        ]
    )


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize("column", [0, 1, 2])
def test_scores_are_normal_quantiles_of_average_ranks(mixed_columns, column):
    x = mixed_columns[:, column]
    curve, expected = scores_of(x), oracle_scores(x)
    ends = [np.argmin(x), np.argmax(x)]
    assert_allclose(curve(x)[ends], expected[ends], rtol=1e-10, atol=1e-12)
    assert_allclose(curve(x), expected, atol=0.3)
    few = np.resize(x[:20], 60)
    assert_allclose(scores_of(few)(few), oracle_scores(few), rtol=1e-10, atol=1e-12)


def test_knots_of_many_values_lie_half_way_between_them(rng):
    x = np.sort(rng.standard_normal(200))
    inner = scores_of(x).knots[1:-1]
    right = np.searchsorted(x, inner)
    assert_allclose(inner, (x[right - 1] + x[right]) / 2, rtol=1e-12)


def test_curves_are_those_of_scipy_with_flat_ends(mixed_columns):
    curve = scores_of(mixed_columns[:, 0])
    # Two more knots at the same height make the tangents at the ends zero.
    knots = np.concatenate([curve.knots[:1] - 1, curve.knots, curve.knots[-1:] + 1])
    heights = np.concatenate([curve.heights[:1], curve.heights, curve.heights[-1:]])
    theirs = PchipInterpolator(knots, heights)
    x = np.linspace(curve.knots[0] - 0.5, curve.knots[-1] + 0.5, 999)
    assert_allclose(curve(x), theirs(x), rtol=1e-10, atol=1e-12)
    assert_allclose(curve.slope(x), theirs(x, 1), rtol=1e-8, atol=1e-10)


def test_a_row_of_weight_two_is_two_rows(mixed_columns, rng):
    x, times = mixed_columns[:, 1], rng.integers(1, 4, N_ROWS)
    weighted, repeated = scores_of(x, times.astype(float)), scores_of(np.repeat(x, times))
    assert_array_equal(weighted.knots, repeated.knots)
    assert_allclose(weighted.heights, repeated.heights, rtol=1e-10, atol=1e-12)
    assert np.max(np.abs(weighted.heights - scores_of(x).heights)) > 0.01


def test_weights_below_round_off_leave_scores_finite():
    x = np.arange(50.0)
    for k in range(3, 50):
        weight = np.ones(k)
        weight[-1] = weight[0] = 1e-20
        heights = scores_of(x[:k], weight).heights
        assert np.all(np.isfinite(heights))
        assert np.all(np.diff(heights) > 0)


def test_knots_of_many_values_are_evenly_spaced_in_scores(rng):
    x = rng.exponential(size=5000) ** 2
    curve = scores_of(x)
    assert (curve.knots[0], curve.knots[-1]) == (x.min(), x.max())
    assert np.all(np.abs(np.diff(curve.heights)[3:-3] - KNOT_STEP) < 0.1)
    assert np.all(np.diff(curve(np.linspace(x.min() - 1, x.max() + 1, 20_000))) >= 0)
    inner = np.argsort(x)[100:-100]
    assert_allclose(curve(x)[inner], oracle_scores(x)[inner], atol=0.05)


def test_slopes_of_scores_do_not_depend_on_how_single_values_lie(rng):
    x = rng.uniform(size=1000)
    there = np.linspace(0.1, 0.9, 50)
    expected = 1 / stats.norm.pdf(stats.norm.ppf(there))
    assert_allclose(scores_of(x).slope(there), expected, rtol=0.5)
    assert_allclose(np.mean(scores_of(x).slope(there) / expected), 1, atol=0.05)


def test_scores_are_flat_outside_the_range(mixed_columns):
    curve = scores_of(mixed_columns[:, 0])
    low, high = curve.knots[0], curve.knots[-1]
    assert_array_equal(curve(np.array([low - 100, low])), curve.heights[[0, 0]])
    assert_allclose(curve(np.array([high, high + 1e9])), curve.heights[[-1, -1]], rtol=1e-14)
    assert_array_equal(curve.slope(np.array([low - 1e-6, high + 1e-6, -1e300])), 0)


def test_slope_is_the_central_difference(mixed_columns):
    curve = scores_of(mixed_columns[:, 0])
    x = np.concatenate([(curve.knots[1:] + curve.knots[:-1]) / 2, curve.knots])
    step = 1e-6
    difference = (curve(x + step) - curve(x - step)) / (2 * step)
    assert_allclose(curve.slope(x), difference, rtol=1e-4, atol=1e-4)


def test_a_stretched_column_has_nearly_the_same_scores(mixed_columns):
    x = mixed_columns[:, 0]
    assert_allclose(scores_of(np.exp(x))(np.exp(x)), scores_of(x)(x), atol=0.05)


def test_values_beside_each_other_have_finite_scores():
    x = np.array([0.0, 1e-310, 1.0, 2.0, 3.0])
    curve = scores_of(x)
    assert_allclose(curve(x), oracle_scores(x), rtol=1e-10, atol=1e-12)
    assert np.all(np.isfinite(curve.slope(x)))
    tiny, plain = scores_of(1e-100 * np.arange(5.0)), scores_of(np.arange(5.0))
    assert_allclose(tiny.slope(np.array([2.5e-100])), plain.slope(np.array([2.5])) * 1e100)


@pytest.mark.parametrize("values", [[1.0], [0.0, 5.0]], ids=["constant", "two values"])
def test_two_values_have_no_scores(values):
    inputs = inputs_of(np.resize(values, 20)[:, None])
    assert (inputs.normal_scores, inputs.one_hot, inputs.expands) == ((), (), False)


# ---------------------------------------------------------------- one-hot indicators


@pytest.mark.parametrize(
    ("n_values", "has_indicators"), [(2, False), (3, True), (10, True), (11, False)]
)
def test_three_to_ten_values_have_indicators(n_values, has_indicators):
    x = 0.1 * np.resize(np.arange(n_values), 60)
    assert bool(inputs_of(x[:, None]).one_hot) == has_indicators
    assert not inputs_of(x[:, None], expansions=("normal_scores",)).one_hot
    assert not inputs_of(x[:, None], expansions=("one_hot",)).normal_scores


def test_an_indicator_is_one_at_its_value(mixed_columns):
    x = mixed_columns[:, 2]
    (indicators,) = inputs_of(x[:, None]).one_hot
    expected = [[1.0 if value == level else 0.0 for value in x] for level in (1.5, 2.5, 4.0, 7.0)]
    assert_array_equal(indicators(x), expected)


def test_indicators_match_values_in_single_precision():
    x = np.tile([0.1, 0.2, 0.3, 0.7], 5)
    (indicators,) = inputs_of(x[:, None]).one_hot
    assert_array_equal(indicators(x.astype(np.float32).astype(float)), indicators(x))


def test_an_unknown_value_has_no_indicator_and_is_counted(mixed_columns):
    inputs = inputs_of(mixed_columns)
    new = mixed_columns[:5].copy()
    new[[1, 3, 4], 2] = [2.0, 8.0, 4.01]
    assert inputs.unknown_values(new) == {2: 3}
    assert inputs.unknown_values(mixed_columns) == {}
    assert_array_equal(np.sum(inputs.one_hot[0](new[:, 2]), axis=0), [1, 0, 1, 0, 0])


# ---------------------------------------------------------------- all of them


def test_inputs_come_in_the_order_of_their_origin(mixed_columns):
    inputs = inputs_of(mixed_columns)
    assert_array_equal(inputs.origin, [0, 1, 2, 3, 4, 0, 1, 2, 2, 2, 2, 2])
    Z = inputs(mixed_columns)
    assert Z.shape == (12, N_ROWS)
    assert_array_equal(Z[:5], mixed_columns.T)
    for j in range(3):
        assert_allclose(Z[5 + j], scores_of(mixed_columns[:, j])(mixed_columns[:, j]), rtol=1e-12)
    assert_array_equal(np.sum(Z[8:], axis=0), 1)


def test_columns_are_standardised_and_scores_are_of_raw_values(mixed_columns):
    d = mixed_columns.shape[1]
    offset, scale = np.arange(d) + 0.5, np.arange(d) + 2.0
    inputs = expanded(Inputs(offset, scale), block(mixed_columns), EXPANSIONS)
    Z = inputs(mixed_columns)
    assert_allclose(Z[:d], ((mixed_columns - offset) / scale).T, rtol=1e-14)
    assert_array_equal(Z[d:], inputs_of(mixed_columns)(mixed_columns)[d:])


def along(X, j):
    """Directions of column j for all rows of X."""
    return np.tile(np.eye(X.shape[1])[j], (len(X), 1))


@pytest.mark.parametrize("constant", [False, True])
def test_features_of_expanded_inputs_change_by_their_derivative(mixed_columns, rng, constant):
    d = mixed_columns.shape[1]
    inputs = expanded(Inputs(np.zeros(d), np.arange(1.0, d + 1)), block(mixed_columns), EXPANSIONS)
    W, b = rng.normal(size=(2, 4, len(inputs.origin))), rng.normal(size=(2, 4))
    layer = HiddenLayer(W, b, inputs, "tanh", constant)
    X = np.array([[0.1234, 70.3, 4.01, 0.5, 3.0], [-0.4321, 200.7, 2.01, 0.1, 2.0]])
    for j in range(d):
        step = 1e-6 * (np.arange(d) == j)
        difference = (layer(X + step) - layer(X - step)) / 2e-6
        assert_allclose(layer.derivative(X, along(X, j)), difference, rtol=1e-5, atol=1e-8)
    # Far away its score no longer changes.
    far = layer.derivative(X + 1e3 * (np.arange(d) == 0), along(X, 0))
    u = layer.inputs(X + 1e3 * (np.arange(d) == 0))
    slope = 1 - np.tanh(np.einsum("mnk,kp->mnp", W, u) + b[:, :, None]) ** 2
    assert_allclose(far[:, int(constant) :], slope * W[:, :, :1], rtol=1e-10, atol=1e-300)


def test_sparse_points_of_an_expanded_layer_are_dense_points(mixed_columns, rng):
    inputs = inputs_of(mixed_columns)
    W, b = rng.normal(size=(2, 4, len(inputs.origin))), rng.normal(size=(2, 4))
    layer, rows = HiddenLayer(W, b, inputs, "tanh", True), scipy.sparse.csr_array(mixed_columns)
    assert_array_equal(layer(rows), layer(mixed_columns))
    directions = along(mixed_columns, 1)
    assert_array_equal(
        layer.derivative(rows, directions), layer.derivative(mixed_columns, directions)
    )


def in_library(inputs, xp, dtype):
    """The same inputs with arrays of another library."""

    def foreign(a):
        return xp.asarray(np.asarray(a), dtype=dtype)

    return Inputs(
        foreign(inputs.offset),
        foreign(inputs.scale),
        tuple(
            NormalScores(s.column, foreign(s.knots), foreign(s.heights))
            for s in inputs.normal_scores
        ),
        tuple(OneHot(part.column, foreign(part.values)) for part in inputs.one_hot),
    )


def test_inputs_in_other_libraries(xp, mixed_columns):
    inputs = inputs_of(mixed_columns)
    X = np.concatenate([mixed_columns, mixed_columns[:3] + 0.01])
    foreign = in_library(inputs, xp, xp.float64)
    made = expanded(
        Inputs(xp.zeros(5, dtype=xp.float64), xp.ones(5, dtype=xp.float64)),
        Block(xp.asarray(mixed_columns), xp.zeros((1, N_ROWS)), None),
        EXPANSIONS,
    )
    for other in (foreign, made):
        assert_allclose(to_numpy(other(xp.asarray(X))), inputs(X), rtol=1e-13, atol=1e-14)
        assert other.unknown_values(xp.asarray(X)) == inputs.unknown_values(X) == {2: 3}
        for j in range(5):
            changes = other.derivative(xp.asarray(X), xp.asarray(along(X, j)))
            assert_allclose(to_numpy(changes), inputs.derivative(X, along(X, j)), rtol=1e-13)


def test_inputs_in_single_precision(mixed_columns):
    single = expanded(
        Inputs(np.zeros(5, np.float32), np.ones(5, np.float32)), block(mixed_columns), EXPANSIONS
    )
    Z = single(mixed_columns)
    assert Z.dtype == np.float32
    assert_allclose(Z, inputs_of(mixed_columns)(mixed_columns), rtol=1e-5, atol=1e-5)
    assert single.unknown_values(mixed_columns) == {}


def test_sparse_tables_are_not_expanded(rng):
    X = np.round(rng.uniform(-2, 2, (60, 3)))
    how = {"input_map": np.eye(3), "expand_inputs": ["normal_scores", "one_hot"], "random_state": 0}
    model = ELMEnsembleRegressor(2, 10, **how).fit(scipy.sparse.csr_array(X), X[:, 0])
    inputs = model.fitted_.ensemble.layer.inputs
    assert not inputs.expands
    assert_array_equal(inputs.origin, [0, 1, 2])


def test_values_that_hardly_repeat_have_no_indicators():
    x = np.repeat(np.arange(5.0), 2)[:, None]
    assert not inputs_of(x).one_hot
    assert inputs_of(np.repeat(x, 2, axis=0)).one_hot


def test_rows_that_come_one_by_one_are_sampled_at_random():
    values = np.sort(np.random.default_rng(0).normal(size=400))
    blocks = [Block(np.full((1, 1), x), np.zeros((1, 1)), None) for x in values]
    sample = SamplePass(40, 0)(blocks)
    assert len(set(sample.keys)) == 40
    assert abs(np.mean(sample.block.X)) < 0.6
    joined = SamplePass(40, 0)(blocks[:150]) + SamplePass(40, 0)(blocks[150:])
    assert_array_equal(joined.block.X, sample.block.X)
