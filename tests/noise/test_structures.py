"""Noise objects as values: compared, copied, stored, and passed on by other libraries."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from messages import mentions
from models import autoregressive, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ulmus
from ulmus.model_file import model_document
from ulmus.noise import AR1, Clustered, Conley, Exponential, Matern, NeweyWest

NOISES = {
    "AR1": AR1(nugget=False, time="t"),
    "NeweyWest": NeweyWest("qs", bandwidth=4.5),
    "NeweyWest, irregular": NeweyWest(time="t"),
    "Exponential": Exponential(["x", "z"]),
    "Matern": Matern(("x", "z"), nu=2.5, nugget=False),
    "Conley": Conley(("x", "z"), cutoff=0.4),
    "Clustered": Clustered("site"),
    "product": AR1(time="t") * Clustered("site"),
    "product of a kernel": NeweyWest(bandwidth=3) * Clustered("site"),
    "sum": AR1(time="t") + Exponential(("x", "z"), nugget=False),
}
noises = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


@pytest.fixture(scope="module")
def correlated_rows():
    """Rows in time, in space and in groups; y is a function of x alone."""
    n, rng = 120, np.random.default_rng(0)
    x, z = rng.uniform(-1, 1, (2, n))
    e = autoregressive(rng.standard_normal(n), 0.6, scale=1.0)
    columns = {"x": x, "z": z, "t": np.arange(n) * 0.5, "site": np.arange(n) // 12}
    return pd.DataFrame(columns), np.sin(3 * x) + 0.3 * e


# ---------------------------------------------------------------- values


@noises
def test_they_are_equal_by_value_and_show_how_they_are_made(noise):
    made = eval(repr(noise), vars(ulmus.noise.structures))
    assert made == noise
    assert hash(made) == hash(noise)
    assert pickle.loads(pickle.dumps(noise)) == noise


def test_coordinates_may_be_named_in_any_sequence():
    assert Exponential(["x", "z"]) == Exponential(("x", "z"))
    assert Matern("depth").coords == ("depth",)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: AR1("day"), ("nugget", "'day'", "AR1(time='day')")),
        (lambda: Exponential("east", "north"), ("nugget", "'north'", "coords=(")),
        (lambda: AR1(time=np.arange(3)), ("time", "ndarray", "to fit")),
        (lambda: Clustered(groups=["a", "b"]), ("groups", "list", "to fit")),
        (lambda: Exponential(np.eye(2)), ("coords", "ndarray", "to fit")),
        (lambda: Exponential(()), ("coords=()", "one or more")),
        (lambda: Exponential([0, 1]), ("coords=[0, 1]", "names", "to fit")),
        (lambda: Exponential(3), ("coords", "int", "to fit")),
        (lambda: AR1() + AR1(nugget=False), ("two components along the same axis",)),
        (lambda: Matern(nu="1.5").structure(), ("nu", "'1.5'", "a number")),
        (
            lambda: small_ensemble(3, 8, noise=AR1()).set_params(noise__nugget=False),
            ("noise__nugget", "set_params("),
        ),
    ],
)
def test_invalid_parameters_raise(made, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        made()


# ---------------------------------------------------------------- model files


@pytest.mark.slow
@noises
@pytest.mark.parametrize("rows", [True, False])
def test_a_model_file_keeps_them(correlated_rows, tmp_path, noise, rows):
    X, y = correlated_rows
    fitted = small_ensemble(3, 8, noise=noise).fit(X, y)
    fitted.save(tmp_path / "model.ulmus", rows=rows)
    again = ulmus.load(tmp_path / "model.ulmus")
    assert again.noise == noise
    assert str(again.noise_covariance_) == str(fitted.noise_covariance_)
    for ask in (fitted.predict_var, again.predict_var):
        assert_array_equal(ask(X, component="model"), fitted.predict_var(X, component="model"))
    assert_array_equal(again.average(X).std_error, fitted.average(X).std_error)
    if rows:
        assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))
        assert_array_equal(again.fit(X, y).predict(X), fitted.predict(X))


def test_a_streamed_model_is_kept(correlated_rows, tmp_path):
    X, y = correlated_rows
    blocks = [(X[:50], y[:50]), (X[50:], y[50:])]
    fitted = small_ensemble(3, 8, noise=AR1(time="t")).fit_blocks(blocks)
    fitted.save(tmp_path / "model.ulmus")
    again = ulmus.load(tmp_path / "model.ulmus")
    assert_array_equal(again.predict(X, return_std=True), fitted.predict(X, return_std=True))
    assert str(again.noise_covariance_) == str(fitted.noise_covariance_)


def test_a_model_file_contains_the_noise_as_plain_values(correlated_rows, tmp_path):
    small_ensemble(3, 8, noise=AR1() * Clustered("site")).fit(*correlated_rows).save(
        tmp_path / "model.ulmus"
    )
    document = model_document(tmp_path / "model.ulmus")
    assert document["format"] == 2
    assert document["parameters"]["noise"] == {
        "class": "Within",
        "fields": {
            "noise": {"class": "AR1", "fields": {"nugget": True, "time": None}},
            "groups": "site",
        },
    }


def test_noise_of_other_classes_is_not_saved(correlated_rows, tmp_path):
    class Mine(AR1):
        pass

    fitted = small_ensemble(3, 8, noise=Mine()).fit(*correlated_rows)
    with pytest.raises(ValueError, match=mentions("noise=", "cannot be saved", "plain values")):
        fitted.save(tmp_path / "model.ulmus")


# ---------------------------------------------------------------- scikit-learn


@noises
def test_clones_and_parameters(noise):
    first = small_ensemble(3, 8, noise=noise)
    second = clone(first)
    assert second.get_params() == first.get_params()
    assert second.noise == noise
    assert "".join(repr(noise).split()) in "".join(repr(first).split())
    assert first.set_params(noise="auto").noise == "auto"


def test_a_fitted_model_is_pickled(correlated_rows):
    X, y = correlated_rows
    fitted = small_ensemble(3, 8, noise=AR1(time="t")).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))
    assert str(again.noise_covariance_) == str(fitted.noise_covariance_)


def test_grid_search_over_noise(correlated_rows):
    X, y = correlated_rows
    noises = ["homoskedastic", AR1(), NeweyWest(bandwidth=4), Clustered("site")]
    folds = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(
        small_ensemble(3, 8, noise="auto", alpha=0.1), {"noise": noises}, cv=folds
    ).fit(X, y)
    assert search.best_params_["noise"] in noises
    # The ridge parameter is given, so that noise changes error bars and no predictions.
    scores = search.cv_results_["mean_test_score"]
    assert_allclose(scores, scores[0])


@pytest.fixture
def routing():
    """Metadata routing, switched on."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_times_reach_the_last_step_of_a_pipeline(correlated_rows, routing):
    X, y = correlated_rows
    time = X["t"].to_numpy() ** 1.1
    inner = small_ensemble(3, 8, noise=AR1()).set_fit_request(time=True)
    pipe = make_pipeline(StandardScaler(), inner).fit(X[["x", "z"]], y, time=time)
    scaled = StandardScaler().fit_transform(X[["x", "z"]])
    expected = small_ensemble(3, 8, noise=AR1()).fit(scaled, y, time=time)
    assert str(pipe[-1].noise_covariance_) == str(expected.noise_covariance_)
    assert_array_equal(pipe.predict(X[["x", "z"]]), expected.predict(scaled))
    assert str(expected.noise_covariance_) != str(
        small_ensemble(3, 8, noise=AR1()).fit(scaled, y).noise_covariance_
    )


def test_groups_and_coordinates_are_routed_too(correlated_rows, routing):
    X, y = correlated_rows
    inputs, locations = X[["x"]], X[["x", "z"]].to_numpy()
    grouped = small_ensemble(3, 8, noise=Clustered()).set_fit_request(groups=True)
    pipe = make_pipeline(StandardScaler(), grouped).fit(inputs, y, groups=X["site"])
    assert pipe[-1].noise_covariance_.n_groups == 10
    spatial = small_ensemble(3, 8, noise=Exponential()).set_fit_request(coords=True)
    pipe = make_pipeline(StandardScaler(), spatial).fit(inputs, y, coords=locations)
    assert pipe[-1].noise_covariance_.names == ("space scale", "space share")


def test_cross_validation_gives_each_fold_its_own_times(correlated_rows, routing):
    X, y = correlated_rows
    seen = []

    class Watched(type(small_ensemble(3, 8, noise=AR1()))):
        def fit(self, X, y, sample_weight=None, time=None, coords=None, groups=None):
            seen.append(time)
            return super().fit(X, y, sample_weight, time, coords, groups)

    watched = Watched(**small_ensemble(3, 8, noise=AR1()).get_params()).set_fit_request(time=True)
    cross_validate(watched, X[["x"]], y, cv=3, params={"time": X["t"].to_numpy()})
    assert [len(time) for time in seen] == [80, 80, 80]
    assert_array_equal(seen[0], X["t"][40:])


def test_times_without_a_request_are_refused(correlated_rows, routing):
    X, y = correlated_rows
    pipe = make_pipeline(StandardScaler(), small_ensemble(3, 8, noise=AR1()))
    with pytest.raises(ValueError, match="time"):
        pipe.fit(X[["x"]], y, time=X["t"])


def test_a_transformed_target(correlated_rows):
    X, y = correlated_rows
    whole = TransformedTargetRegressor(
        small_ensemble(3, 8, noise=AR1(time="t")), func=np.exp, inverse_func=np.log
    )
    assert whole.fit(X, y).regressor_.noise_covariance_.n_rows == len(y)
