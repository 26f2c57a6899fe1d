"""ulmus inside scikit-learn's tools, MAPIE, skpro and uncertainty-toolbox."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from ulmus import metrics

EXAMPLE = Path(__file__).parents[2] / "examples" / "ecosystem.py"
elm = plain_ensemble(4, 15, random_state=0)


@pytest.fixture
def data(make_table):
    return make_table(80, p=30)


def python(code):
    """What a new interpreter prints, errors included, when it runs the code."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    return done.stdout + done.stderr


# ---------------------------------------------------------------- scikit-learn


def test_a_pipeline_passes_return_std_on(data):
    pipe = make_pipeline(PowerTransformer(), elm).fit(data.X, data.y)
    Z, Z_new = (pipe[:-1].transform(X) for X in (data.X, data.X_new))
    alone = clone(elm).fit(Z, data.y)
    mean, std = pipe.predict(data.X_new, return_std=True)
    expected = alone.predict(Z_new, return_std=True)
    assert_array_equal(mean, expected[0])
    assert_array_equal(std, expected[1])
    # A pipeline has no other method of its last step; slices of it have all.
    assert not hasattr(pipe, "predict_interval")
    ours = pipe[-1].predict_interval(Z_new, 0.9)
    assert_array_equal(ours, alone.predict_interval(Z_new, 0.9))


def test_a_pipeline_passes_weights_on(data):
    pipe = make_pipeline(StandardScaler(), elm)
    pipe.fit(data.X, data.y, elmensembleregressor__sample_weight=data.w)
    Z = pipe[:-1].transform(data.X)
    alone = clone(elm).fit(Z, data.y, sample_weight=data.w)
    assert_array_equal(pipe[-1].coef_, alone.coef_)


def test_metadata_routing_carries_weights_and_return_std(data):
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(elm).set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True).set_predict_request(return_std=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, routed).fit(data.X, data.y, sample_weight=data.w)
        mean, std = pipe.predict(data.X_new, return_std=True)
        search = GridSearchCV(routed, {"n_neurons": [5, 15]}, cv=3)
        search.fit(data.X, data.y, sample_weight=data.w)
    Z, Z_new = (pipe[:-1].transform(X) for X in (data.X, data.X_new))
    expected = clone(elm).fit(Z, data.y, data.w).predict(Z_new, return_std=True)
    assert_array_equal(mean, expected[0])
    assert_array_equal(std, expected[1])
    best = clone(elm).set_params(**search.best_params_).fit(data.X, data.y, data.w)
    assert_array_equal(search.best_estimator_.coef_, best.coef_)


def test_search_and_cross_validation(data):
    def crps(model, X, y):
        return -metrics.crps_normal(y, *model.predict(X, return_std=True))

    grid = {"n_neurons": [2, 15], "noise": ["homoskedastic", "heteroskedastic"]}
    search = GridSearchCV(elm, grid, scoring=crps, cv=3).fit(data.X, data.y)
    assert search.best_params_["n_neurons"] == 15
    assert search.best_estimator_.predict_interval(data.X_new).shape == (30, 2)
    expected = [
        clone(elm).fit(data.X[train], data.y[train]).score(data.X[test], data.y[test])
        for train, test in KFold(3).split(data.X)
    ]
    assert_array_equal(cross_val_score(elm, data.X, data.y, cv=3), expected)
    with pytest.raises(TypeError, match="return_std"):  # scikit-learn's predict takes X alone
        search.predict(data.X_new, return_std=True)


def test_a_transformed_target_needs_intervals_of_the_inner_model(data):
    model = TransformedTargetRegressor(elm, func=np.log, inverse_func=np.exp)
    model.fit(data.X, np.exp(data.y))
    inner = clone(elm).fit(data.X, data.y)
    assert_allclose(model.predict(data.X_new), np.exp(inner.predict(data.X_new)))
    # scikit-learn transforms what predict returns, which must not be a tuple.
    with pytest.raises(AttributeError, match="tuple"):
        model.predict(data.X_new, return_std=True)
    assert not hasattr(model, "predict_interval")
    # A monotone function of the bounds keeps what they cover.
    intervals = model.regressor_.predict_interval(data.X_new, 0.8)
    assert_allclose(intervals, inner.predict_interval(data.X_new, 0.8))
    y_new = inner.predict(data.X_new) + 0.3
    covered = metrics.coverage(np.exp(y_new), np.exp(intervals))
    assert covered == metrics.coverage(y_new, intervals)


# ---------------------------------------------------------------- MAPIE


def test_mapie_scales_its_scores_by_our_standard_deviation(data):
    regression = pytest.importorskip("mapie.regression")
    model = clone(elm).set_params(noise="heteroskedastic").fit(data.X[:50], data.y[:50])
    X, y = data.X[50:], data.y[50:]
    conformal = regression.SplitConformalRegressor(
        model, [0.5, 0.8], conformity_score="std_normalized"
    ).conformalize(X, y)
    mean, intervals = conformal.predict_interval(data.X_new)
    _, std = model.predict(data.X_new, return_std=True)
    assert_allclose(mean, model.predict(data.X_new), rtol=1e-12)
    # The ceil(level (n + 1))-th smallest of the scaled residuals, times our sd. MAPIE 1.6 rounds
    # the rank down for the lower end, so that only its shape is asserted.
    fitted, sd = model.predict(X, return_std=True)
    scores = np.sort(np.abs(y - fitted) / sd)
    for j, level in enumerate([0.5, 0.8]):
        rank = int(np.ceil(level * (len(y) + 1)))
        assert_allclose((intervals[:, 1, j] - mean) / std, scores[rank - 1])
        below = (mean - intervals[:, 0, j]) / std
        assert_allclose(below, below[0])
        assert scores[rank - 2] - 1e-9 < below[0] < scores[rank - 1] + 1e-9


def test_mapie_refits_us_for_its_own_jackknife(make_table):
    # The whole estimator is refitted here, scaling of inputs included, so only nearly ours.
    regression = pytest.importorskip("mapie.regression")
    data = make_table(60, p=30)
    fixed = clone(elm).set_params(alpha=0.3)
    intervals = [
        regression.CrossConformalRegressor(
            fixed, 0.8, conformity_score=score, cv=LeaveOneOut()
        ).fit_conformalize(data.X, data.y)
        for score in ("absolute", "std_normalized")
    ]
    plain, scaled = (c.predict_interval(data.X_new)[1][..., 0] for c in intervals)
    model = fixed.fit(data.X, data.y)
    _, sd = model.predict(data.X_new, return_std=True)
    plus = model.predict_interval(data.X_new, 0.8, method="jackknife+")
    assert np.max(np.abs(plain - plus) / sd[:, None]) < 0.1
    auto = model.predict_interval(data.X_new, 0.8)
    assert np.max(np.abs(scaled - auto) / sd[:, None]) < 0.2


# ---------------------------------------------------------------- skpro


@pytest.fixture
def frames(data):
    """Frames X, X_new and y with an index and names of their own."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skpro")
    X = pd.DataFrame(data.X, columns=["a", "b", "c"], index=range(100, 180))
    X_new = pd.DataFrame(data.X_new, columns=["a", "b", "c"], index=[f"p{i}" for i in range(30)])
    y = pd.DataFrame({"depth": data.y, "speed": 3 - data.y**2}, index=X.index)
    return X, X_new, y


def test_skpros_adapter_reads_our_standard_deviation(frames):
    from skpro.regression.adapters.sklearn import SklearnProbaReg

    X, X_new, y = frames
    adapter = SklearnProbaReg(elm).fit(X, y[["depth"]])
    model = clone(elm).fit(X, y["depth"])
    mean, std = model.predict(X_new, return_std=True)
    assert_allclose(adapter.predict(X_new)["depth"], mean)
    assert_allclose(adapter.predict_var(X_new)["depth"], std**2)
    # It knows no degrees of freedom, so its quantiles are normal.
    expected = np.column_stack(stats.norm.interval(0.9, mean, std))
    assert_allclose(adapter.predict_interval(X_new, 0.9), expected)


@pytest.mark.parametrize("outputs", [["depth"], ["depth", "speed"]])
@pytest.mark.parametrize("method", ["auto", "gaussian"])
def test_our_adapter_has_our_numbers_in_skpros_frames(frames, outputs, method):
    from ulmus.skpro import ELMProbaRegressor

    X, X_new, y = frames
    y = y[outputs]
    adapter = ELMProbaRegressor(elm, method).fit(X, y)
    model = clone(elm).fit(X, y.to_numpy())  # (n, K): outputs have an axis, even a single one
    levels = [0.8, 0.5]
    intervals = model.predict_interval(X_new, levels, method=method)
    quantiles = model.predict_quantiles(X_new, levels)
    ours = {
        "mean": adapter.predict(X_new),
        "variance": adapter.predict_var(X_new),
        "intervals": adapter.predict_interval(X_new, levels),
        "quantiles": adapter.predict_quantiles(X_new, levels),
    }
    for name, frame in ours.items():
        assert list(frame.index) == list(X_new.index), name
    for k, output in enumerate(outputs):
        assert_allclose(ours["mean"][output], model.predict(X_new)[:, k])
        assert_allclose(ours["variance"][output], model.predict_var(X_new)[:, k])
        for j, level in enumerate(levels):
            bounds = ours["intervals"][output][level]
            assert_allclose(bounds["lower"], intervals[:, k, 0, j])
            assert_allclose(bounds["upper"], intervals[:, k, 1, j])
            assert_allclose(ours["quantiles"][output][level], quantiles[:, k, j])


def test_our_adapters_distribution_is_normal(frames):
    from ulmus.skpro import ELMProbaRegressor

    X, X_new, y = frames
    distribution = ELMProbaRegressor(elm).fit(X, y).predict_proba(X_new)
    mean, std = clone(elm).fit(X, y.to_numpy()).predict(X_new, return_std=True)
    assert_allclose(distribution.mean(), mean)
    assert_allclose(distribution.var(), std**2)
    assert list(distribution.columns) == ["depth", "speed"]
    assert list(distribution.index) == list(X_new.index)


def test_our_adapter_takes_arrays_and_numbered_columns(frames):
    pd = pytest.importorskip("pandas")
    from ulmus.skpro import ELMProbaRegressor

    X, X_new, y = frames
    expected = clone(elm).fit(X, y["depth"]).predict(X_new)
    from_array = ELMProbaRegressor(elm).fit(X.to_numpy(), y["depth"].to_numpy())
    assert_allclose(np.ravel(from_array.predict(X_new.to_numpy())), expected)
    numbered = [pd.DataFrame(a.to_numpy()) for a in (X, X_new)]
    target = pd.DataFrame({0: y["depth"].to_numpy()})
    from_numbered = ELMProbaRegressor(elm).fit(numbered[0], target)
    assert_allclose(np.ravel(from_numbered.predict(numbered[1])), expected)
    assert list(numbered[0].columns) == [0, 1, 2]  # not renamed behind the caller's back


def test_our_adapter_leaves_its_estimator_alone_and_passes_messages_on(frames):
    from ulmus.skpro import ELMProbaRegressor

    X, X_new, y = frames
    estimator = clone(elm)
    adapter = ELMProbaRegressor(estimator, "jackknife+").fit(X, y[["depth"]])
    assert not hasattr(estimator, "coef_")
    assert adapter.get_params()["estimator__n_neurons"] == 15
    with pytest.raises(ValueError, match=r"0\.999 requires at least 999 training rows"):
        adapter.predict_interval(X_new, 0.999)
    wide = adapter.set_params(method="gaussian").fit(X, y[["depth"]])
    assert wide.predict_interval(X_new, 0.999).shape == (30, 2)


# The checks split 50 rows at random, three networks and all.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning")
def test_our_adapter_passes_skpros_checks():
    skpro = pytest.importorskip("skpro.utils")
    from ulmus.skpro import ELMProbaRegressor

    results = skpro.check_estimator(ELMProbaRegressor, raise_exceptions=True, verbose=False)
    assert len(results) > 20
    assert {str(result) for result in results.values()} == {"PASSED"}
    assert {name: answer for name, answer in results.items() if answer != "PASSED"} == {}


@pytest.mark.slow
def test_skpro_is_loaded_on_demand():
    assert python("import sys, ulmus; print('skpro' in sys.modules)") == "False\n"


@pytest.mark.slow
def test_a_missing_skpro_is_named():
    found = python("import sys; sys.modules['skpro'] = None; import ulmus.skpro")
    assert "ImportError: ulmus.skpro needs the package skpro" in found
    assert "pip install skpro" in found


# ---------------------------------------------------------------- metrics


@pytest.mark.slow
def test_uncertainty_toolbox_reads_our_mean_and_standard_deviation(data):
    toolbox = pytest.importorskip("uncertainty_toolbox")
    model = clone(elm).fit(data.X[:50], data.y[:50])
    y = data.y[50:]
    mean, std = model.predict(data.X[50:], return_std=True)
    found = toolbox.get_all_metrics(mean, std, y, verbose=False)
    assert_allclose(metrics.crps_normal(y, mean, std), found["scoring_rule"]["crps"])
    assert_allclose(metrics.log_score(y, mean, std), -found["scoring_rule"]["nll"])
    assert_allclose(np.sqrt(np.mean(std**2)), found["sharpness"]["sharp"])


def test_our_metrics_read_our_predictions(data):
    model = clone(elm).fit(data.X[:50], data.y[:50])
    X, y, levels = data.X[50:], data.y[50:], [0.5, 0.8, 0.9]
    intervals = model.predict_interval(X, levels)
    inside = (intervals[:, 0] <= y[:, None]) & (y[:, None] <= intervals[:, 1])
    assert_allclose(metrics.coverage(y, intervals), inside.mean(axis=0))
    assert_allclose(metrics.mean_width(intervals), np.diff(intervals, axis=1).mean(axis=(0, 1)))
    assert np.all(metrics.interval_score(y, intervals, levels) >= metrics.mean_width(intervals))
    quantiles = np.arange(1, 20) / 20
    predicted = model.predict_quantiles(X, quantiles)
    crps = metrics.crps_normal(y, *model.predict(X, return_std=True))
    assert_allclose(metrics.crps_quantiles(y, predicted, quantiles), crps, rtol=0.15)


# ---------------------------------------------------------------- the example

PACKAGES = {"mapie": "mapie", "skpro": "skpro", "toolbox": "uncertainty_toolbox"}


@pytest.mark.slow
@pytest.mark.parametrize("section", PACKAGES)
def test_the_example_runs_with_other_packages(capsys, section):
    pytest.importorskip(PACKAGES[section])
    sections = {s.__name__: s for s in runpy.run_path(str(EXAMPLE))["SECTIONS"]}
    sections[section]()
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_example_runs_without_them():
    missing = list(PACKAGES.values())
    found = python(
        f"import runpy, sys; sys.modules.update(dict.fromkeys({missing}))\n"
        f"runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    )
    assert "Traceback" not in found, found
    assert found.count("Skipped:") == 3
    assert found.count("mean width") == 6
