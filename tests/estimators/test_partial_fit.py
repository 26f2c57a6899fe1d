"""Rows added call by call give the fit of all of them."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from fit_comparison import assert_same_fit
from hypothesis import given
from hypothesis import strategies as st
from messages import mentions
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from ulmus.exceptions import NeedsTwoPassesError

# Results of fits with different weights are compared at the mean weight.


def unscaled_ensemble(**parameters):
    """A small ensemble whose inputs stay as they are, with both homoskedastic estimates."""
    parameters = {
        "alpha": 0.1,
        "weight_scale": 2.0,
        "standardize": False,
        "variance": ["BR", "NHo"],
        "random_state": 0,
    } | parameters
    return plain_ensemble(6, 8, **parameters)


def added(model, *columns, edges):
    """The model after a call for the rows between each two edges."""
    for a, b in itertools.pairwise(edges):
        model.partial_fit(*(column[a:b] for column in columns))
    return model


# ---------------------------------------------------------------- the same as one fit


@pytest.mark.parametrize("alpha", [0.0, 0.1, "gcv"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("noise_variance", ["pilot", "residual", 0.1])
def test_all_calls_together_are_one_fit(make_table, alpha, intercept, weighted, noise_variance):
    data = make_table(90)
    columns = data[:3] if weighted else data[:2]
    model = unscaled_ensemble(alpha=alpha, fit_intercept=intercept, noise_variance=noise_variance)
    expected = clone(model).fit(*columns)
    assert_same_fit(added(model, *columns, edges=[0, 40, 70, 90]), expected, data.X_new)


@given(data=st.data())
def test_the_order_and_size_of_calls_do_not_matter(make_table, data):
    X, y, w, X_new = make_table(60)
    order = data.draw(st.permutations(range(60)))
    cuts = data.draw(st.lists(st.integers(20, 59), max_size=6, unique=True))
    model = added(
        unscaled_ensemble(), X[order], y[order], w[order], edges=[0, *sorted({15, *cuts}), 60]
    )
    expected = unscaled_ensemble().fit(X, y, w)
    assert_allclose(model.predict(X_new), expected.predict(X_new), rtol=1e-8)
    variances = [m.predict_var(X_new, component="model") for m in (model, expected)]
    assert_allclose(*variances, rtol=1e-8)
    assert_allclose(model.noise_variance_, expected.noise_variance_, rtol=1e-8)


def test_calls_of_one_row(make_table):
    X, y, w, X_new = make_table(60)
    model = added(unscaled_ensemble(), X, y, w, edges=[0, 30, *range(31, 61)])
    assert_same_fit(model, unscaled_ensemble().fit(X, y, w), X_new)


def test_one_call_is_a_fit(make_table):
    X, y, w, X_new = make_table(60)
    model = unscaled_ensemble(standardize=True)
    expected = clone(model).fit(X, y, w)
    assert_same_fit(model.partial_fit(X, y, w), expected, X_new)


def test_every_call_is_a_fit_of_the_rows_so_far(make_table):
    X, y, _, X_new = make_table(90)
    model = unscaled_ensemble()
    for stop in (30, 31, 60, 90):
        start = {30: 0, 31: 30, 60: 31, 90: 60}[stop]
        assert model.partial_fit(X[start:stop], y[start:stop]) is model
        assert_same_fit(model, unscaled_ensemble().fit(X[:stop], y[:stop]), X_new)


@pytest.mark.slow
def test_several_outputs(make_table):
    X, y, w, X_new = make_table(90)
    Y = np.stack([y, 100 - 3 * X[:, 0]], axis=1)
    model = added(unscaled_ensemble(), X, Y, w, edges=[0, 50, 51, 90])
    assert_same_fit(model, unscaled_ensemble().fit(X, Y, w), X_new)
    assert model.predict(X_new).shape == (7, 2)


def test_one_member(make_table):
    X, y, w, X_new = make_table(60)
    model = plain_member(8, alpha=0.1, standardize=False, random_state=0)
    expected = clone(model).fit(X, y, w)
    assert_same_fit(added(model, X, y, w, edges=[0, 30, 60]), expected, X_new)


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, np.ndarray.tolist])
def test_sparse_rows_and_lists(make_table, form):
    X, y, _, X_new = make_table(60)
    X = np.where(np.abs(X) > 0.3, X, 0.0)
    model = unscaled_ensemble().partial_fit(form(X[:40]), y[:40]).partial_fit(form(X[40:]), y[40:])
    assert_same_fit(model, unscaled_ensemble().fit(X, y), X_new)


def test_threads_do_not_matter(make_table):
    X, y, w, X_new = make_table(90)
    model = added(unscaled_ensemble(n_jobs=2), X, y, w, edges=[0, 50, 90])
    assert_same_fit(model, unscaled_ensemble().fit(X, y, w), X_new)


def test_the_first_call_sets_the_standardisation(make_table):
    X, y, _, X_new = make_table(120)
    model = added(unscaled_ensemble(standardize=True), X, y, edges=[0, 60, 120])
    inputs = model.fitted_.ensemble.layer.inputs
    assert_allclose(inputs.offset, X[:60].mean(axis=0))
    assert_allclose(inputs.scale, X[:60].std(axis=0))
    scaled, points = ((table - inputs.offset) / inputs.scale for table in (X, X_new))
    expected = unscaled_ensemble().fit(scaled, y)
    assert_allclose(model.predict(X_new), expected.predict(points), rtol=1e-8)


def test_leave_one_out_is_replaced_by_generalised_cross_validation(make_table):
    X, y, w, X_new = make_table(90)
    model = added(unscaled_ensemble(alpha="loo"), X, y, w, edges=[0, 40, 90])
    assert_same_fit(model, unscaled_ensemble(alpha="gcv").fit(X, y, w), X_new)


def test_rows_of_weight_zero_are_excluded(make_table):
    X, y, w, X_new = make_table(60)
    model = unscaled_ensemble().partial_fit(X[:40], y[:40], w[:40])
    model.partial_fit(np.full((2, 3), 0.5), [1e3, -1e3], [0.0, 0.0])
    model.partial_fit(X[40:], y[40:], w[40:])
    assert_same_fit(model, unscaled_ensemble().fit(X, y, w), X_new)
    with pytest.raises(ValueError, match=mentions("sample_weight", "at least 2 rows")):
        unscaled_ensemble().partial_fit(X, y, np.zeros(60))


def test_the_range_of_the_inputs_grows(make_table):
    X, y, _, _ = make_table(60)
    low = X[:, 0] < 0
    model = unscaled_ensemble().partial_fit(X[low], y[low]).partial_fit(X[~low], y[~low])
    model.predict_var(X)  # no point is an extrapolation


# ---------------------------------------------------------------- going on


@pytest.mark.parametrize("n", [30, 80], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("how", ["fit", "pickled", "partial_fit"])
def test_going_on_from_a_fit(make_table, how, n):
    X, y, w, X_new = make_table(100)
    model = unscaled_ensemble()
    start = model.partial_fit if how == "partial_fit" else model.fit
    start(X[:n], y[:n], w[:n])
    if how == "pickled":
        model = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[n:], y[n:], w[n:])
    assert_same_fit(model, unscaled_ensemble().fit(X, y, w), X_new)
    assert not hasattr(model, "leverage_")
    assert not hasattr(model, "loo_residuals_")


def test_a_fit_forgets_the_rows_before(make_table):
    X, y, w, X_new = make_table(90)
    model = added(unscaled_ensemble(), X, 5 - y, w, edges=[0, 50, 90])
    assert_same_fit(model.fit(X, y, w), unscaled_ensemble().fit(X, y, w), X_new)
    assert len(model.leverage_) == 90
    blocks = [(X[:50], y[:50], w[:50]), (X[50:], y[50:], w[50:])]
    model = added(unscaled_ensemble(), X, 5 - y, w, edges=[0, 50, 90])
    assert_same_fit(model.fit_blocks(blocks), unscaled_ensemble().fit(X, y, w), X_new)


def test_a_clone_starts_anew(make_table):
    X, y, w, X_new = make_table(90)
    model = unscaled_ensemble().partial_fit(X[:50], y[:50], w[:50])
    fresh = clone(model).partial_fit(X, y, w)
    assert_same_fit(fresh, unscaled_ensemble().fit(X, y, w), X_new)


def test_a_copy_of_the_model_does_not_share_its_sums(make_table):
    X, y, w, X_new = make_table(90)
    model = unscaled_ensemble().partial_fit(X[:50], y[:50], w[:50])
    copy = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[50:70], y[50:70], w[50:70])
    copy.partial_fit(X[50:], y[50:], w[50:])
    assert_same_fit(copy, unscaled_ensemble().fit(X, y, w), X_new)


@pytest.mark.filterwarnings("ignore:leave-one-out residuals of neighbouring rows")
def test_intervals_after_partial_fit(make_table):
    X, y, _, X_new = make_table(90)
    how = {"variance": "auto"}
    model, expected = (
        added(unscaled_ensemble(**how), X, y, edges=[0, 50, 90]),
        unscaled_ensemble(**how).fit(X, y),
    )
    for ask in (
        {"method": "gaussian"},
        {"kind": "confidence", "target": "function"},
        {"kind": "confidence", "target": "expectation"},
    ):
        both = [m.predict_interval(X_new, **ask) for m in (model, expected)]
        if ask.get("target") == "function":
            # Signs of misfit widen intervals where rows are kept.
            both[1] = both[1] + expected.fitted_.misfit_allowance(X_new) * [1, -1]
        assert_allclose(*both, rtol=1e-8, err_msg=str(ask))
    with pytest.raises(ValueError, match=mentions("'jackknife+'", "'gaussian'")):
        model.predict_interval(X_new, method="jackknife+")


# ---------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize(
    "how",
    [
        {"noise": "heteroskedastic", "variance": "auto"},
        {"variance": "S2"},
        {"variance": ["BR", "S1"]},
        {"variance": "all"},
    ],
    ids=str,
)
def test_heteroskedastic_estimates_need_two_passes(make_table, how):
    X, y, _, _ = make_table(60)
    model = unscaled_ensemble(**how)
    assert not hasattr(model, "partial_fit")
    assert hasattr(unscaled_ensemble(), "partial_fit")
    for error in (ValueError, AttributeError, NeedsTwoPassesError):
        with pytest.raises(error, match=mentions("fit_blocks", "two passes", "'homoskedastic'")):
            model.partial_fit(X, y)
    model.fit_blocks([(X, y)])  # the suggestion works
    assert hasattr(model.set_params(noise="homoskedastic", variance="auto"), "partial_fit")


BAD_CALLS = {
    "narrow X": (lambda X, y, w: (X[:, :2], y, w), ["2 features", "3"]),
    "NaN in X": (lambda X, y, w: (np.where(X > 0.5, np.nan, X), y, w), ["X", "NaN"]),
    "NaN in y": (lambda X, y, w: (X, np.full_like(y, np.nan), w), ["y", "no row", "NaN"]),
    "outputs": (lambda X, y, w: (X, np.stack([y, y], axis=1), w), ["2 outputs", "1"]),
    "short y": (lambda X, y, w: (X, y[1:], w), ["inconsistent"]),
    "short w": (lambda X, y, w: (X, y, w[1:]), ["inconsistent"]),
    "negative w": (lambda X, y, w: (X, y, -w), ["sample_weight", "negative"]),
    "no rows": (lambda X, y, w: (X[:0], y[:0], w[:0]), ["0 sample"]),
}


@pytest.mark.parametrize("bad", BAD_CALLS)
@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_a_failed_call_leaves_the_fit_as_it_was(make_table, bad, start):
    change, words = BAD_CALLS[bad]
    X, y, w, X_new = make_table(90)
    model = unscaled_ensemble()
    getattr(model, start)(X[:50], y[:50], w[:50])
    before = model.predict(X_new, return_std=True)
    with pytest.raises(ValueError, match=mentions(*words)):
        model.partial_fit(*change(X[50:], y[50:], w[50:]))
    assert_array_equal(model.predict(X_new, return_std=True), before)
    assert hasattr(model, "leverage_") == (start == "fit")
    model.partial_fit(X[50:], y[50:], w[50:])
    assert_same_fit(model, unscaled_ensemble().fit(X, y, w), X_new)


def test_a_failed_first_call_leaves_nothing(make_table):
    X, y, _, _ = make_table(60)
    model = unscaled_ensemble()
    with pytest.raises(ValueError, match="no values"):
        model.partial_fit(X * np.nan, y)
    assert not any(name.endswith("_") for name in vars(model))
    with pytest.raises(ValueError, match=mentions("1 sample", "2 is required")):
        model.partial_fit(X[:1], y[:1])


@pytest.mark.parametrize("way", ["compress", "fit_blocks"])
def test_rows_that_are_gone_cannot_be_added_to(make_table, way):
    X, y, _, X_new = make_table(90)
    model = unscaled_ensemble()
    if way == "compress":
        model.fit(X[:50], y[:50]).compress()
    else:
        model.fit_blocks([(X[:50], y[:50])])
    before = model.predict(X_new)
    words = ["compress", "fit_blocks", "start a new estimator", "fit again"]
    with pytest.raises(ValueError, match=mentions(*words)):
        model.partial_fit(X[50:], y[50:])
    assert_array_equal(model.predict(X_new), before)
