"""Passes over blocks give sums that merge, travel and scale the inputs."""

import functools
import operator
import pickle

import numpy as np
import pytest
import scipy.sparse
from fit_comparison import cut
from hypothesis import given
from hypothesis import strategies as st
from models import every_estimate_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import weightings
from sklearn.preprocessing import StandardScaler

from ulmus import ELMEnsembleRegressor
from ulmus.core.arrays.threads import thread_pool
from ulmus.core.data.scaling import feature_scale
from ulmus.core.data.source import Block, reduced
from ulmus.core.ensemble.regression import SecondPass, sample_scaling
from ulmus.core.noise.per_row import PerRowNoise
from ulmus.core.ridge.alpha import LeaveOneOutPass
from ulmus.core.ridge.factor import factor_of_moments, spectrum
from ulmus.core.ridge.moments import FirstPass

# ---------------------------------------------------------------- sums


@pytest.fixture(scope="module")
def passes(make_table):
    """Passes of a fit, by name, with the blocks of its rows."""
    X, y, w, _ = make_table(60)
    fitted = every_estimate_ensemble(3, 6, hc="HC3-exact").fit_blocks(cut(X, y, w)).fitted_.ensemble
    rows = [Block(a, b[None, :], np.sqrt(c)) for a, b, c in cut(X, y, w, size=9)]
    start = sample_scaling(Block(X, y[None, :], np.sqrt(w)), fitted.layer)
    moments = FirstPass(start.whitening, start.units, [slice(0, 3)])
    factor = factor_of_moments(moments(rows), start.whitening)
    noises = [PerRowNoise(name, "HC3-exact") for name in ("own", "others")]
    known = (factor.center, factor.y_constant, factor.mass)
    return rows, {
        "moments": moments,
        "grams": SecondPass(fitted, [slice(0, 2)], noises, ()),
        "errors": LeaveOneOutPass(
            fitted.layer, start.units, spectrum(factor), *known, np.array([0.01, 1.0])
        ),
        "scale": feature_scale,
    }


def numbers(sums):
    """All numbers of a result that merges, in a row."""
    if isinstance(sums, dict):
        sums = list(sums.values())
    if isinstance(sums, (list, tuple)):
        return np.concatenate([np.empty(0), *(numbers(part) for part in sums)])
    if isinstance(sums, (str, type(None))):
        return np.empty(0)
    if isinstance(sums, (int, float, np.ndarray)):
        return np.ravel(np.asarray(sums, dtype=float))
    return numbers(list(vars(sums).values()))


@given(data=st.data())
@pytest.mark.parametrize("name", ["moments", "grams", "errors", "scale"])
def test_sums_merge_in_any_order_and_grouping(passes, name, data):
    rows, by_name = passes
    regroup_blocks = by_name[name](rows)
    parts = [by_name[name]([block]) for block in data.draw(st.permutations(rows))]
    while len(parts) > 1:  # merge two neighbours at a time
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    size = np.abs(numbers(regroup_blocks)).mean()
    assert_allclose(numbers(parts[0]), numbers(regroup_blocks), rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("name", ["moments", "grams", "scale"])
def test_sums_travel_and_still_merge(passes, name):
    rows, by_name = passes
    one, two = (by_name[name]([block]) for block in rows[:2])
    sent = pickle.loads(pickle.dumps(one)) + pickle.loads(pickle.dumps(two))
    assert_array_equal(numbers(sent), numbers(one + two))


def test_passes_travel(passes):
    rows, by_name = passes
    for row_pass in by_name.values():
        sent = pickle.loads(pickle.dumps(row_pass))
        assert_array_equal(numbers(sent(rows)), numbers(row_pass(rows)))


@pytest.mark.parametrize("n_threads", [2, 3, 20])
@pytest.mark.parametrize("name", ["moments", "grams", "errors", "scale"])
def test_threads_share_the_blocks(passes, name, n_threads):
    rows, by_name = passes
    regroup_blocks = numbers(by_name[name](rows))
    with thread_pool(n_threads):
        shared = numbers(reduced(by_name[name], rows))
    assert_allclose(shared, regroup_blocks, rtol=1e-10, atol=1e-12 * np.abs(regroup_blocks).mean())


# ---------------------------------------------------------------- scale of the inputs


@pytest.mark.parametrize("sparse", [False, True])
@weightings
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, -1e3])
def test_the_scale_is_that_of_scikit_learn(make_table, sparse, weighted, constant):
    X, y, w, _ = make_table(100, d=4)
    X = np.where(np.abs(X) > 0.2, X, 0.0) * [1.0, 1e-3, 1e4, 1.0]
    X[:, 3] = constant
    root = np.sqrt(w) if weighted else None
    blocks = [
        Block(scipy.sparse.csr_array(a) if sparse else a, b[None, :], c)
        for a, b, c in cut(X, y, root)
    ]
    # Weighted, scikit-learn itself stumbles over a constant; its scale is 1 there.
    varying = StandardScaler().fit(X[:, :3], sample_weight=w if weighted else None)
    for scale in (
        feature_scale(blocks),
        functools.reduce(operator.add, [feature_scale([block]) for block in blocks]),
    ):
        assert_allclose(scale.mean, [*varying.mean_, constant], rtol=1e-10, atol=1e-12)
        assert_allclose(scale.sd, [*varying.scale_, 1], rtol=1e-10)
        assert_allclose(scale.mass, w.sum() if weighted else 100)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_scale_of_inputs_far_from_zero(make_table, sparse):
    X, y, _, _ = make_table(100)
    X = X + 1e5
    blocks = [
        Block(scipy.sparse.csr_array(a) if sparse else a, b[None, :], None) for a, b in cut(X, y)
    ]
    scale = feature_scale(blocks)
    assert_allclose(scale.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(scale.sd, X.std(axis=0), rtol=1e-9)


def test_an_estimator_scales_its_blocks(make_table):
    X, y, _, _ = make_table(100)
    X[:, 1] = 0.1
    expected = StandardScaler().fit(X)
    inputs = every_estimate_ensemble().fit_blocks(cut(X, y)).fitted_.ensemble.layer.inputs
    assert_allclose(inputs.offset, expected.mean_, rtol=1e-10, atol=1e-12)
    assert_allclose(inputs.scale, expected.scale_, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("size", [700, 1999])
def test_a_map_learned_from_a_sample_does_not_depend_on_the_blocks(size):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4500, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] + (0.1 + 0.3 * X[:, 0]) * rng.standard_normal(4500)
    regroup_blocks = ELMEnsembleRegressor(3, 30, random_state=0).fit(X, y)
    blocks = [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]
    streamed = ELMEnsembleRegressor(3, 30, random_state=0).fit_blocks(blocks)
    for component in ("model", "noise"):
        got, expected = (
            m.predict_var(X[:50], component=component) for m in (streamed, regroup_blocks)
        )
        np.testing.assert_allclose(got, expected, rtol=1e-7)
