"""Numbers of units and members that are chosen from the rows."""

import math

import numpy as np
import pytest
from messages import mentions
from numpy.testing import assert_array_equal

from ulmus import ELMEnsembleRegressor
from ulmus.core.fit.sizes import GPU, HOST, dof_of_function

rules = pytest.mark.parametrize("rule", [HOST, GPU], ids=["host", "gpu"])
ROWS = [1, 50, 300, 1000, 4000, 20_000, 100_000, 10**6, 10**8]


def test_few_degrees_of_freedom_need_few_units():
    assert HOST.n_units(1000, 50.0) == 300
    assert HOST.n_units(1000, 0.0) == 200
    # Without a map the degrees of freedom are unknown.
    assert HOST.n_units(1000, None) == int(20 * 1000**0.5)


def test_units_are_bounded_by_the_rows():
    assert HOST.n_units(300, 1000.0) == int(20 * 300**0.5)
    assert HOST.n_units(6000, math.inf) == int(134 * 6000**0.25)
    assert HOST.n_units(4, math.inf) == 100


@rules
@pytest.mark.parametrize("n", ROWS)
def test_sizes_stay_within_the_budget(rule, n):
    N = rule.n_units(n, math.inf)
    M = rule.n_members(n, N)
    assert N == 100 or n * M * N**2 <= rule.products
    assert rule.members[0] <= M <= rule.members[2]
    assert rule.members[0] >= 3  # as every estimate of a variance requires


def test_members_become_fewer_as_rows_become_many():
    assert HOST.n_members(300, 300) == 8
    members = [HOST.n_members(n, 500) for n in (1000, 3000, 4000, 20_000)]
    assert members == [6, 4, 3, 3]


def test_sizes_of_a_gpu_do_not_depend_on_degrees_of_freedom():
    for n in ROWS:
        assert GPU.n_units(n, 10.0) == GPU.n_units(n, None)
        assert GPU.n_members(n, GPU.n_units(n, None)) == 8


def test_degrees_of_freedom_exceed_those_of_a_small_network_on_few_rows():
    assert dof_of_function(10.0, 10**6, 4000, 4000) == pytest.approx(10.0, rel=1e-4)
    assert dof_of_function(100.0, 400, 4000, 4000) == pytest.approx(100 / 0.75)
    assert dof_of_function(100.0, 10**9, 1000, 8000) == pytest.approx(200.0)
    assert dof_of_function(100.0, 10**9, 1000, 500) == pytest.approx(100.0)
    assert math.isfinite(dof_of_function(400.0, 400, 1000, 1000))


def small_table(n=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(n)


def test_a_larger_ensemble_contains_the_members_of_the_automatic_one():
    X, y = small_table()
    chosen = ELMEnsembleRegressor(random_state=1).fit(X, y)
    M = len(chosen.coef_)
    larger = ELMEnsembleRegressor(M + 2, random_state=1).fit(X, y)
    assert_array_equal(larger.hidden_weights_[:M], chosen.hidden_weights_)
    assert_array_equal(larger.hidden_biases_[:M], chosen.hidden_biases_)


def test_folds_have_the_members_and_units_of_the_fit():
    X, y = small_table(120)
    model = ELMEnsembleRegressor(random_state=1).fit(X, y)
    shape = model.fitted_.ensemble.layer.b.shape
    assert all(fold.layer.b.shape == shape for fold in model.fitted_.folds)


@pytest.mark.parametrize("variance", ["S3", "all", ["BR", "S2"]])
def test_automatic_members_suffice_for_every_estimate(variance):
    X, y = small_table(100)
    model = ELMEnsembleRegressor(
        variance=variance, noise="heteroskedastic", n_neurons=20, input_map=None, random_state=0
    )
    assert len(model.fit(X, y).coef_) >= 3


@pytest.mark.parametrize("value", ["many", 0, 2.5])
def test_other_numbers_of_members_are_refused(value):
    X, y = small_table(100)
    with pytest.raises(ValueError, match=mentions("n_estimators", repr(value))):
        ELMEnsembleRegressor(value).fit(X, y)
