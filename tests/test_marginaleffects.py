"""The functions of marginaleffects have our estimates and standard errors."""

import subprocess
import sys

import numpy as np
import pytest
from joint_covariance import joint_covariance, standard_error
from numpy.testing import assert_allclose, assert_array_equal
from plain import plain_ensemble
from shared import says

pytest.importorskip("marginaleffects", reason="needs marginaleffects")
import marginaleffects as me
import pandas as pd
import polars as pl
from marginaleffects.datagrid import datagrid
from marginaleffects.settings import autodiff

import ulmus.marginaleffects
from ulmus.marginaleffects import adapted

NAMES = ["a", "b", "c"]
EXACT = {"rtol": 1e-6}
elm = plain_ensemble(6, 60, alpha=0.1, weight_scale=2.0, random_state=0)


@pytest.fixture(scope="module")
def data(make_table):
    """A training table with a binary input, groups and weights."""
    table = make_table(90)
    frame = pd.DataFrame(table.X, columns=NAMES)
    frame["c"] = (frame["c"] > 0).astype(int)
    frame["site"] = pd.Categorical(np.where(frame["a"] > 0.2, "north", "south"))
    return frame.assign(w=table.w, y=table.y)


@pytest.fixture(scope="module")
def est(data):
    return plain_ensemble(**elm.get_params() | {"variance": "all"}).fit(data[NAMES], data["y"])


@pytest.fixture(scope="module")
def model(est, data):
    return adapted(est, data)


@pytest.fixture(params=["exact", "finite"])
def derivatives(request):
    """Derivatives by JAX, which warns where it cannot, and by finite steps."""
    autodiff(request.param == "exact")
    yield request.param
    autodiff(None)


def moved(data, name, by):
    """The inputs with one of them moved."""
    return data[NAMES].assign(**{name: data[name] + by})


def assert_differences(result, est, high, low, A, scale=1.0):
    """Estimates and standard errors of the combinations A of predictions at high less low."""
    points = pd.concat([high, low])
    contrasts = np.hstack([A, -A]) * scale
    assert_allclose(result["estimate"], contrasts @ est.predict(points), rtol=1e-9, atol=1e-9)
    covariance = joint_covariance(est.fitted_, points)
    assert_allclose(result["std_error"], standard_error(contrasts, covariance), **EXACT)


# ---------------------------------------------------------------- predictions


def test_predictions_at_the_rows_of_the_data(model, est, data, derivatives):
    result = me.predictions(model)
    assert_allclose(result["estimate"], est.predict(data[NAMES]), rtol=1e-12)
    variance = est.predict_var(data[NAMES], component="model")
    assert_allclose(result["std_error"], np.sqrt(variance), **EXACT)


@pytest.mark.parametrize("estimate", ["NHo", "BR", "NHe", "S1", "S2", "S3"])
def test_vcov_names_the_estimate(model, est, data, estimate):
    points = data[NAMES].head(20)
    result = me.avg_predictions(model, newdata=points, vcov=estimate)
    average = np.full(20, 1 / 20)
    covariance = joint_covariance(est.fitted_, points, estimate)
    assert_allclose(result["std_error"], standard_error(average, covariance), **EXACT)


@pytest.mark.parametrize("wts", [None, "w"])
def test_averages_by_group(model, est, data, wts, derivatives):
    result = me.avg_predictions(model, by="site", wts=wts)
    weight = np.ones(len(data)) if wts is None else data[wts].to_numpy()
    A = np.stack([weight * (data["site"] == site) for site in result["site"]])
    A = A / A.sum(axis=1, keepdims=True)
    assert_allclose(result["estimate"], A @ est.predict(data[NAMES]), rtol=1e-10)
    covariance = joint_covariance(est.fitted_, data[NAMES])
    assert_allclose(result["std_error"], standard_error(A, covariance), **EXACT)


@pytest.mark.parametrize("newdata", ["mean", "median", "balanced"])
def test_named_grids(model, est, newdata):
    result = me.predictions(model, newdata=newdata)
    points = result.select(NAMES).to_pandas()
    assert_allclose(result["estimate"], est.predict(points), rtol=1e-12)
    variance = est.predict_var(points, component="model")
    assert_allclose(result["std_error"], np.sqrt(variance), **EXACT)


def test_a_grid_of_values(model, est):
    result = me.predictions(model, newdata=datagrid(a=[-0.5, 0.5]))
    points = result.select(NAMES).to_pandas()
    assert_allclose(points["a"], [-0.5, 0.5])
    variance = est.predict_var(points, component="model")
    assert_allclose(result["std_error"], np.sqrt(variance), **EXACT)


def test_intervals_have_the_degrees_of_freedom_of_the_residuals(model, est, data):
    from scipy import stats

    result = me.avg_predictions(model, conf_level=0.9)
    half = stats.t.ppf(0.95, len(data) - est.dof_) * result["std_error"].to_numpy()
    assert_allclose(result["conf_high"] - result["estimate"], half, rtol=1e-10)


def test_no_standard_errors_if_none_are_asked_for(model):
    assert "std_error" not in me.predictions(model, vcov=False).columns


@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt:RuntimeWarning")
def test_a_negative_variance_has_no_square_root():
    # Zero outputs and known noise: the members agree, and BR is sigma2 z_1'z_2 of any sign.
    X = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    wild = {"activation": "cos", "weight_scale": 9.0, "alpha": 0.1, "fit_intercept": False}
    few = plain_ensemble(2, 3, noise_variance=1.0, random_state=6, **wild).fit(X, np.zeros(40))
    negative = np.diag(joint_covariance(few.fitted_, X)) < 0
    assert 0 < np.sum(negative) < len(X)
    result = me.predictions(adapted(few, pd.DataFrame(X, columns=["x"])))
    assert_array_equal(np.isnan(result["std_error"].to_numpy()), negative)


# ---------------------------------------------------------------- differences and slopes


def test_differences_row_by_row(model, est, data, derivatives):
    result = me.comparisons(model, variables={"b": 0.1})
    high, low = moved(data, "b", 0.05), moved(data, "b", -0.05)
    assert_differences(result, est, high, low, np.eye(len(data)))


def test_average_differences_of_a_binary_input_by_group(model, est, data, derivatives):
    result = me.avg_comparisons(model, variables="c", by="site")
    A = np.stack([np.asarray(data["site"] == site, float) for site in result["site"]])
    A = A / A.sum(axis=1, keepdims=True)
    high, low = data[NAMES].assign(c=1), data[NAMES].assign(c=0)
    assert_differences(result, est, high, low, A)


def test_differences_of_two_inputs_at_once(model, est, data):
    result = me.avg_comparisons(model, variables={"a": [-0.4, 0.4], "c": [0, 1]}, cross=True)
    high, low = data[NAMES].assign(a=0.4, c=1), data[NAMES].assign(a=-0.4, c=0)
    assert_differences(result, est, high, low, np.full((1, len(data)), 1 / len(data)))


@pytest.mark.parametrize("average", [False, True])
def test_slopes(model, est, data, average):
    slopes = me.avg_slopes if average else me.slopes
    A = np.full((1, len(data)), 1 / len(data)) if average else np.eye(len(data))
    eps = 1e-3
    result = slopes(model, variables="b", eps=eps)
    high, low = moved(data, "b", eps / 2), moved(data, "b", -eps / 2)
    assert_differences(result, est, high, low, A, scale=1 / eps)


def test_the_default_step_of_slopes_is_resolved(model, est, data):
    points = data[NAMES].head(10)
    result = me.slopes(model, variables="b", newdata=points)
    high, low = moved(points, "b", 0.5e-4), moved(points, "b", -0.5e-4)
    covariance = joint_covariance(est.fitted_, pd.concat([high, low]))
    contrasts = np.hstack([np.eye(10), -np.eye(10)]) / 1e-4
    # Differences of a covariance lose eight digits at this step, and so does their oracle.
    assert_allclose(result["std_error"], standard_error(contrasts, covariance), rtol=1e-5)


def test_ratios_by_the_delta_method(model, est, data, derivatives):
    result = me.avg_comparisons(model, variables="c", comparison="ratio")
    points = pd.concat([data[NAMES].assign(c=1), data[NAMES].assign(c=0)])
    n, prediction = len(data), est.predict(points)
    high, low = prediction[:n].mean(), prediction[n:].mean()
    gradient = np.repeat([1 / low, -high / low**2], n) / n
    covariance = joint_covariance(est.fitted_, points)
    assert_allclose(result["estimate"], [high / low], rtol=1e-10)
    # A finite step has a curvature.
    rtol = 1e-6 if derivatives == "exact" else 1e-4
    assert_allclose(result["std_error"], standard_error(gradient, covariance), rtol=rtol)


# ---------------------------------------------------------------- hypotheses


@pytest.mark.parametrize("how", ["b0 - b1 = 0", "difference ~ reference", np.array([1.0, -1.0])])
def test_hypotheses_about_groups(model, est, data, how):
    groups = me.avg_predictions(model, by="site")["site"].to_list()
    result = me.avg_predictions(model, by="site", hypothesis=how)
    first, second = (np.asarray(data["site"] == site, float) for site in groups)
    contrast = first / first.sum() - second / second.sum()
    covariance = joint_covariance(est.fitted_, data[NAMES])
    estimate = contrast @ est.predict(data[NAMES])
    assert_allclose(np.abs(result["estimate"]), [abs(estimate)], rtol=1e-9)
    assert_allclose(result["std_error"], standard_error(contrast, covariance), **EXACT)


def test_hypotheses_about_coefficients_are_refused(model):
    with pytest.raises(ValueError, match=says("mean nothing one by one; give hypothesis=")):
        me.hypotheses(model)


# ---------------------------------------------------------------- tables and errors


def test_tables_of_polars_and_of_pandas_are_the_same(model, est, data):
    same = adapted(est, pl.from_pandas(data))
    ours, theirs = (me.avg_predictions(m, by="site") for m in (same, model))
    for column in ("site", "estimate", "std_error"):
        assert ours[column].to_list() == theirs[column].to_list()


def test_a_fit_to_an_array_has_the_columns_of_the_table(est, data, model):
    array = plain_ensemble(**est.get_params()).fit(data[NAMES].to_numpy(), data["y"])
    expected = me.avg_predictions(model)
    for adapter in (
        adapted(array, data, features=NAMES),
        adapted(array, data[NAMES]),
    ):
        result = me.avg_predictions(adapter)
        assert_allclose(result["std_error"], expected["std_error"], rtol=1e-10)


def test_one_output_with_an_axis(data, model, est):
    column = plain_ensemble(**est.get_params()).fit(data[NAMES], data[["y"]])
    result, expected = me.avg_predictions(adapted(column, data)), me.avg_predictions(model)
    assert_allclose(result["std_error"], expected["std_error"], rtol=1e-10)


def test_input_that_cannot_be_used(est, data, monkeypatch):
    two = plain_ensemble(3, 5, random_state=0).fit(data[NAMES], data[["y", "w"]])
    array = plain_ensemble(3, 5, random_state=0).fit(data[NAMES].to_numpy(), data["y"])
    with pytest.raises(ValueError, match=says("estimator has 2 outputs", "fit an estimator")):
        adapted(two, data)
    with pytest.raises(ValueError, match=says("data must be a data frame, got ndarray")):
        adapted(est, data[NAMES].to_numpy())
    with pytest.raises(ValueError, match=says("data has no columns ['c']")):
        adapted(est, data[["a", "b"]])
    with pytest.raises(ValueError, match=says("fitted to 3; name one for each input")):
        adapted(array, data)
    with pytest.raises(ValueError, match=says("estimate must be one of 'NHo'", "got 'HC3'")):
        me.avg_predictions(adapted(est, data), vcov="HC3")
    monkeypatch.setattr(ulmus.marginaleffects, "MOST_DIRECTIONS", 10)
    with pytest.raises(ValueError, match=says("at most 10 are affordable. Use fewer n_neurons")):
        adapted(est, data)


def python(code):
    """What a fresh interpreter prints, errors included."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return run.stdout + run.stderr


def test_marginaleffects_is_loaded_only_when_asked_for():
    names = ["marginaleffects", "polars", "jax"]
    assert python(f"import sys, ulmus; print([n for n in {names} if n in sys.modules])") == "[]\n"


def test_a_missing_marginaleffects_is_named():
    code = "import sys; sys.modules['marginaleffects'] = None; import ulmus.marginaleffects"
    found = python(code)
    assert "ImportError: ulmus.marginaleffects needs the package marginaleffects" in found
    assert "pip install marginaleffects" in found
