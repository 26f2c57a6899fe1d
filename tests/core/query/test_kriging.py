"""Residual kriging against explicit matrices and refits."""

import json
from dataclasses import replace

import numpy as np
import pytest
from messages import mentions
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.noise_covariance import kriging_weights as weights_module
from ulmus.core.query.kriging import leave_one_out_errors
from ulmus.exceptions import ExtrapolationWarning
from ulmus.model_file.container import DTYPES
from ulmus.model_file.serialisation import from_arrays, to_arrays
from ulmus.noise import AR1, Clustered, Conley, Exponential, Matern, NeweyWest

N, P = 90, 15
ALPHA = 0.3
KINDS = ["time", "series", "space", "smooth space", "both"]


class Problem:
    """Rows and points with correlated noise, and the components of the noise."""

    def __init__(self, kind, seed=0):
        rng = np.random.default_rng(seed)
        n = N + P
        self.kind = kind
        self.time = np.cumsum(rng.choice([0.5, 1.0, 2.5], n)) if kind != "space" else None
        self.coords = rng.uniform(0, 4, (n, 2))
        self.groups = np.array(["b", "a", "c"])[np.arange(n) % 3] if kind == "series" else None
        self.noise = {
            "time": AR1(),
            "series": AR1() * Clustered(),
            "space": Exponential(),
            "smooth space": Matern(nu=1.5),
            "both": AR1() + Exponential(),
        }[kind]
        S = self.along_time(12.0) if kind in ("time", "series") else self.in_space(0.7)
        e = np.linalg.cholesky(S + 0.1 * np.eye(n)) @ rng.standard_normal(n)
        self.X = rng.uniform(-1, 1, (n, 2))
        self.y = np.sin(2 * self.X[:, 0]) + e
        order = rng.permutation(n)
        self.rows, self.points = order[:N], order[N:]

    def locations(self, rows):
        """Arguments of fit and predict."""
        axes = {
            "time": ["time"],
            "series": ["time", "groups"],
            "both": ["time", "coords"],
        }.get(self.kind, ["coords"])
        return {axis: getattr(self, axis)[rows] for axis in axes}

    def along_time(self, scale):
        together = 1.0 if self.groups is None else self.groups[:, None] == self.groups
        return np.exp(-np.abs(self.time[:, None] - self.time) / scale) * together

    def in_space(self, scale):
        h = np.linalg.norm(self.coords[:, None] - self.coords, axis=-1) / scale
        if self.kind != "smooth space":
            return np.exp(-h)
        return (1 + np.sqrt(3) * h) * np.exp(-np.sqrt(3) * h)

    def covariance(self, found):
        """Covariance of all rows and points by what was found, without the nugget."""
        makers = {"time": self.along_time, "space": self.in_space}
        terms = zip(found.structure.terms, found.scales, found.structured_variances, strict=True)
        return sum(v * makers[term.axis](scale) for term, scale, v in terms)

    def fit(self, weight=None, n_members=1, y=None, **settings):
        settings = {"input_map": None, "alpha": ALPHA, "random_state": 0} | settings
        y = self.y if y is None else y
        if n_members == 1:
            model = ELMRegressor(12, noise=self.noise, **settings)
        else:
            model = ELMEnsembleRegressor(n_members, 12, noise=self.noise, **settings)
        weight = None if weight is None else weight[self.rows]
        locations = self.locations(self.rows)
        return model.fit(self.X[self.rows], y[self.rows], weight, **locations)

    def kriged(self, model, return_std=True, points=None, **settings):
        points = self.points if points is None else points
        locations = self.locations(points)
        return model.predict(
            self.X[points], return_std, residual_kriging=True, **locations, **settings
        )

    def smoother(self, model, weight):
        """Rows of the smoother at all rows and points, by fits to unit vectors."""
        plain = model.__class__(**(model.get_params() | {"noise": "homoskedastic"}))
        used = None if weight is None else weight[self.rows]
        return plain.fit(self.X[self.rows], np.eye(N), used).predict(self.X)


def oracle(problem, model, weight=None):
    """Mean and variance of new observations with explicit matrices."""
    found, rows, points = model.noise_covariance_, problem.rows, problem.points
    w = np.ones(N) if weight is None else weight[rows]
    used = w > 0
    typical = w[used].mean()
    S = problem.covariance(found)
    root = np.sqrt(w[used])
    Sigma = S[np.ix_(rows, rows)][np.ix_(used, used)] + found.nugget_variance * np.eye(used.sum())
    Sigma = Sigma / np.outer(root, root)
    c = S[np.ix_(rows, points)][used] / root[:, None] / np.sqrt(typical)
    W = np.linalg.solve(Sigma, c)
    Z = problem.smoother(model, weight)[:, used]
    z = Z[points] - W.T @ Z[rows][used]
    y = problem.y[rows][used]
    mean = z @ y + W.T @ y
    left = found.variance / typical - np.sum(c * W, axis=0)
    return mean, left + np.einsum("pi,ij,pj->p", z, Sigma, z)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_and_variance_are_those_of_explicit_matrices(kind, weighted):
    problem = Problem(kind)
    weight = None
    if weighted:
        weight = np.random.default_rng(1).uniform(0.3, 3.0, N + P)
        weight[problem.rows[::9]] = 0.0
    model = problem.fit(weight)
    assert not model.noise_covariance_.independent
    mean, variance = oracle(problem, model, weight)
    kriged, std = problem.kriged(model)
    assert_allclose(kriged, mean, rtol=1e-6, atol=1e-7)
    assert_allclose(std**2, variance, rtol=1e-6)
    assert_allclose(problem.kriged(model, return_std=False), kriged, rtol=1e-12)
    assert not np.allclose(kriged, model.predict(problem.X[problem.points]), atol=0.1)


def test_an_ensemble_has_the_same_mean_by_its_mean_smoother():
    problem = Problem("space")
    model = problem.fit(n_members=4)
    assert_allclose(problem.kriged(model)[0], oracle(problem, model)[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_errors_are_those_of_refits(kind, weighted):
    problem = Problem(kind)
    weight = np.random.default_rng(1).uniform(0.3, 3.0, N + P) if weighted else None
    settings = {"n_members": 3, "standardize": False}
    model = problem.fit(weight, **settings)
    errors = leave_one_out_errors(model.fitted_, 0)
    rows = problem.rows
    # Errors are in the order of the locations.
    ordered = rows[model.fitted_.rows.locations.order]
    S = problem.covariance(model.noise_covariance_)
    w = np.ones(N + P) if weight is None else weight
    plain = ELMEnsembleRegressor(**(model.get_params() | {"noise": "homoskedastic"}))
    for i in range(0, N, 13):
        others = rows[rows != ordered[i]]
        plain.fit(problem.X[others], problem.y[others], w[others])
        residual = problem.y - plain.predict(problem.X)
        Sigma = S[np.ix_(others, others)] + model.noise_covariance_.nugget_variance * np.eye(N - 1)
        c = S[others, ordered[i]]
        kriged = np.linalg.solve(Sigma, np.sqrt(w[others]) * residual[others]) @ c
        expected = np.sqrt(w[ordered[i]]) * residual[ordered[i]] - kriged
        assert_allclose(errors.error[i], expected, rtol=1e-5, atol=1e-6)


def test_several_outputs_are_kriged_each_by_its_own_noise():
    problem = Problem("space")
    other = Problem("space", seed=3).y
    both = problem.fit(y=np.column_stack([problem.y, 10 * other]), n_members=3)
    mean, std = problem.kriged(both)
    assert mean.shape == std.shape == (P, 2)
    for k, y in enumerate([problem.y, 10 * other]):
        one, one_std = problem.kriged(problem.fit(y=y, n_members=3))
        assert_allclose(mean[:, k], one, rtol=1e-6)
        assert_allclose(std[:, k], one_std, rtol=1e-6)
    locations = problem.locations(problem.points)
    intervals = both.predict_interval(
        problem.X[problem.points], [0.5, 0.9], residual_kriging=True, **locations
    )
    assert intervals.shape == (P, 2, 2, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_and_orders_change_nothing(kind, monkeypatch):
    problem = Problem(kind)
    model = problem.fit(n_members=3)
    mean, std = problem.kriged(model)
    errors = leave_one_out_errors(model.fitted_, 0)
    backwards = problem.kriged(model, points=problem.points[::-1])
    monkeypatch.setattr(weights_module, "CHUNK_ELEMENTS", 150)
    again = problem.kriged(model)
    for other in ((a[::-1] for a in backwards), again):
        other_mean, other_std = other
        assert_allclose(other_mean, mean, rtol=1e-10)
        assert_allclose(other_std, std, rtol=1e-8)
    assert_allclose(leave_one_out_errors(model.fitted_, 0), errors, rtol=1e-8, atol=1e-10)


def test_many_rows_in_space_are_kriged_from_the_nearest(monkeypatch):
    problem = Problem("space")
    model = problem.fit(n_members=3)
    mean, std = problem.kriged(model)
    errors = leave_one_out_errors(model.fitted_, 0)
    monkeypatch.setattr(weights_module, "MOST_DENSE", 10)
    monkeypatch.setattr(weights_module, "NEAREST", N - 1)
    near_errors = leave_one_out_errors(model.fitted_, 0)
    assert_allclose(near_errors, errors, rtol=1e-6, atol=1e-7)
    monkeypatch.setattr(weights_module, "NEAREST", 25)
    near, near_std = problem.kriged(model)
    assert np.max(np.abs(near - mean)) < 0.02
    assert_allclose(near_std, std, rtol=0.01)
    assert not np.array_equal(near, mean)


@pytest.mark.parametrize("kind", ["time", "series", "space"])
def test_far_away_it_is_the_plain_prediction(kind):
    problem = Problem(kind)
    model = problem.fit(n_members=3)
    far = {"time": np.full(P, 1e5), "coords": np.full((P, 2), 1e5)}
    locations = {k: far.get(k, v) for k, v in problem.locations(problem.points).items()}
    X = problem.X[problem.points]
    with pytest.warns(ExtrapolationWarning, match="residuals do not change predictions"):
        near = model.predict(X, True, residual_kriging=True, **locations)
    assert_allclose(near, model.predict(X, True), rtol=1e-10)


def test_numbers_in_the_place_of_dates_warn():
    rng, dates = np.random.default_rng(0), np.arange("2020-01-01", "2020-03-31", dtype="M8[D]")
    X = rng.uniform(-1, 1, (90, 1))
    y = np.sin(3 * X[:, 0]) + 0.3 * np.cumsum(rng.standard_normal(90))
    model = ELMEnsembleRegressor(3, 8, noise=AR1(), input_map=None, random_state=0)
    model.fit(X, y, time=dates)
    assert not model.noise_covariance_.independent
    model.predict(X[:5], residual_kriging=True, time=dates[-5:] + 5)
    with pytest.warns(ExtrapolationWarning, match="days since 1970"):
        model.predict_interval(X[:5], residual_kriging=True, time=np.arange(90, 95))


def test_a_series_that_was_never_seen_has_the_plain_prediction():
    problem = Problem("series")
    model = problem.fit(n_members=3)
    X, time = problem.X[problem.points], problem.time[problem.points]
    near = model.predict(X, True, residual_kriging=True, time=time, groups=["zz"] * P)
    assert_allclose(near, model.predict(X, True), rtol=1e-10)


@pytest.mark.parametrize("kind", ["time", "space"])
def test_at_a_training_place_without_nugget_it_is_the_value_there(kind):
    problem = Problem(kind)
    problem.noise = replace(problem.noise, nugget=False)
    model = problem.fit(n_members=3)
    mean, std = problem.kriged(model, points=problem.rows)
    assert_allclose(mean, problem.y[problem.rows], atol=1e-6)
    assert np.max(std) < 1e-3 * np.sqrt(model.noise_covariance_.variance)


def test_a_second_observation_at_a_training_place_has_a_nugget_of_its_own():
    problem = Problem("space")
    model = problem.fit(n_members=3)
    std = problem.kriged(model, points=problem.rows)[1]
    assert np.all(std**2 > model.noise_covariance_.nugget_variance)


def test_independent_noise_has_no_weights():
    rng = np.random.default_rng(0)
    X, t = rng.uniform(size=(80, 1)), np.arange(80)
    model = ELMEnsembleRegressor(4, 12, input_map=None, noise=AR1(), random_state=0)
    model.fit(X, np.sin(6 * X[:, 0]) + 0.3 * rng.standard_normal(80))
    assert model.noise_covariance_.independent
    near = model.predict(X, True, residual_kriging=True, time=t)
    assert_allclose(near, model.predict(X, True), rtol=1e-10)
    errors = leave_one_out_errors(model.fitted_, 0)
    plain = ELMEnsembleRegressor(
        **(model.get_params() | {"noise": "homoskedastic", "alpha": float(model.alpha_)})
    )
    plain.fit(X, model.fitted_.rows.data.y[0])
    assert_allclose(errors.error, plain.loo_residuals_, rtol=1e-8)


# ---------------------------------------------------------------- intervals


def test_gaussian_intervals_are_student_quantiles_of_the_deviation():
    problem = Problem("space")
    model = problem.fit(n_members=5)
    mean, std = problem.kriged(model)
    low, high = model.predict_interval(
        problem.X[problem.points],
        0.9,
        method="gaussian",
        residual_kriging=True,
        **problem.locations(problem.points),
    ).T
    assert_allclose((low + high) / 2, mean, rtol=1e-10)
    ratio = (high - low) / 2 / std
    assert np.all((ratio > 1.645) & (ratio < 1.85))


def test_auto_intervals_have_quantiles_of_leave_one_out_errors():
    problem = Problem("space")
    model = problem.fit(n_members=5)
    mean, std = problem.kriged(model)
    errors = leave_one_out_errors(model.fitted_, 0)
    # Of 90 absolute errors, the 82nd covers 90 percent of 91.
    quantile = np.sort(np.abs(errors.error / np.sqrt(errors.variance)))[81]
    low, high = model.predict_interval(
        problem.X[problem.points], 0.9, residual_kriging=True, **problem.locations(problem.points)
    ).T
    assert_allclose((low, high), (mean - quantile * std, mean + quantile * std), rtol=1e-8)


def simulated(kind, seed, n=150, p=60):
    """Coverage and squared errors, kriged and plain, of one table."""
    rng = np.random.default_rng(seed)
    if kind == "time":
        t = np.sort(rng.uniform(0, n + p, n + p))
        locations, h = {"time": t}, np.abs(t[:, None] - t) / 8.0
        X, noise = np.sin(t / 25)[:, None], AR1()
    else:
        s = rng.uniform(size=(n + p, 2))
        locations, h = {"coords": s}, np.linalg.norm(s[:, None] - s, axis=-1) / 0.15
        X, noise = s, Exponential()
    S = np.exp(-h) + 0.2 * np.eye(n + p)
    y = 2 * X[:, 0] + np.linalg.cholesky(S) @ rng.standard_normal(n + p)
    new = rng.permutation(n + p) < p
    model = ELMEnsembleRegressor(6, 30, input_map=None, noise=noise, random_state=seed)
    model.fit(X[~new], y[~new], **{axis: values[~new] for axis, values in locations.items()})
    at = {axis: values[new] for axis, values in locations.items()}
    out = []
    for method in ("auto", "gaussian"):
        low, high = model.predict_interval(
            X[new], 0.9, method=method, residual_kriging=True, **at
        ).T
        out.append(np.mean((low <= y[new]) & (y[new] <= high)))
    kriged, std = model.predict(X[new], True, residual_kriging=True, **at)
    standardised = np.mean((y[new] - kriged) ** 2 / std**2)
    ratio = np.mean((y[new] - kriged) ** 2) / np.mean((y[new] - model.predict(X[new])) ** 2)
    return *out, standardised, ratio


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["time", "space"])
def test_new_observations_are_covered_and_nearer(kind):
    auto, gaussian, standardised, ratio = np.mean([simulated(kind, s) for s in range(20)], axis=0)
    # 1200 observations in 20 tables that each share their noise.
    assert 0.86 < auto < 0.94
    assert 0.86 < gaussian < 0.94
    assert 0.8 < standardised < 1.25
    assert ratio < 0.8


# ---------------------------------------------------------------- files, frames, refusals


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_fit_krigs_the_same(kind):
    problem = Problem(kind)
    model = problem.fit(n_members=3)
    before = problem.kriged(model)
    model.fitted_ = from_arrays(*to_arrays(model.fitted_))
    assert_array_equal(problem.kriged(model), before)


def test_locations_come_from_columns_of_a_frame_by_name():
    pd = pytest.importorskip("pandas")
    problem = Problem("series")
    frame = pd.DataFrame(
        {
            "a": problem.X[:, 0],
            "day": problem.time,
            "site": np.unique(problem.groups, return_inverse=True)[1],
        }
    )
    model = ELMEnsembleRegressor(
        3,
        12,
        input_map=None,
        expand_inputs=None,
        noise=AR1(time="day") * Clustered("site"),
        random_state=0,
    ).fit(frame.iloc[problem.rows], problem.y[problem.rows])
    new = frame.iloc[problem.points]
    named = model.predict(new, True, residual_kriging=True)
    model.set_params(noise=AR1())
    given = model.predict(new, True, residual_kriging=True, time=new.day, groups=new.site)
    assert_array_equal(named, given)


@pytest.mark.parametrize("labels", [[10, 30, 20], [1.5, 0.5, 2.5], ["x", "z", "y"], [True, False]])
def test_labels_of_groups_may_be_of_any_kind(labels):
    problem = Problem("series")
    codes = np.unique(problem.groups, return_inverse=True)[1] % len(labels)
    problem.groups = np.array(labels, dtype=object)[codes]
    by_words = problem.fit(n_members=3)
    assert not by_words.noise_covariance_.independent
    expected = problem.kriged(by_words)
    problem.groups = np.array(labels)[codes]
    model = problem.fit(n_members=3)
    arrays, description = to_arrays(model.fitted_)
    for array in arrays.values():
        assert array.dtype.name in DTYPES.values()  # a model file can contain it
    model.fitted_ = from_arrays(arrays, json.loads(json.dumps(description)))
    assert_allclose(problem.kriged(model), expected, rtol=1e-10)


def test_rows_without_times_are_counted():
    problem = Problem("time")
    X, y = problem.X[:N], problem.y[:N]
    settings = {"input_map": None, "noise": AR1(), "random_state": 0}
    counted = ELMEnsembleRegressor(3, 12, **settings).fit(X, y)
    given = ELMEnsembleRegressor(3, 12, **settings).fit(X, y, time=np.arange(N))
    new = {"residual_kriging": True, "time": np.arange(N, N + P)}
    assert_array_equal(counted.predict(problem.X[N:], **new), given.predict(problem.X[N:], **new))
    with pytest.raises(ValueError, match=r"requires time.*90 training rows.*0, 1"):
        counted.predict(problem.X[N:], residual_kriging=True)


def test_a_pipeline_passes_locations_on():
    problem = Problem("space")
    model = ELMEnsembleRegressor(3, 12, input_map=None, noise=Exponential(), random_state=0)
    pipe = make_pipeline(StandardScaler(), model)
    rows, new = problem.rows, problem.points
    pipe.fit(problem.X[rows], problem.y[rows], elmensembleregressor__coords=problem.coords[rows])
    near = pipe.predict(problem.X[new], residual_kriging=True, coords=problem.coords[new])
    assert np.max(np.abs(near - pipe.predict(problem.X[new]))) > 0.1


def test_predictions_that_cannot_be_kriged_raise():
    problem = Problem("space")
    X, coords = problem.X[problem.points], problem.coords[problem.points]
    model = problem.fit(n_members=3)

    def refused(message, model=model, ask="predict", X=X, **given):
        with pytest.raises(ValueError, match=message):
            getattr(model, ask)(X, **({"residual_kriging": True} | given))

    refused("requires coords")
    refused("time was given to predict.*not used", time=coords[:, 0], coords=coords)
    refused("coords is used by.*residual_kriging=True", coords=coords, residual_kriging=False)
    refused("residual_kriging", residual_kriging="yes")
    refused("coords given to predict has 14 rows", coords=coords[1:])
    interval = {"ask": "predict_interval", "coords": coords}
    refused("kind='confidence'", kind="confidence", **interval)
    refused("method='jackknife", method="jackknife+", **interval)
    for noise, given in [
        ("auto", {}),
        (Conley(cutoff=1.0), {"coords": problem.coords[:N]}),
        (NeweyWest(), {}),
    ]:
        other = ELMEnsembleRegressor(3, 12, input_map=None, noise=noise, random_state=0)
        other.fit(problem.X[:N], problem.y[:N], **given)
        refused("noise with a parametric covariance", other, coords=coords)
    refused("requires the training rows", model.compress(), coords=coords)


def test_labels_of_groups_must_be_of_one_type():
    problem = Problem("series")
    model = problem.fit(n_members=3)
    X, time = problem.X[problem.points], problem.time[problem.points]
    with pytest.raises(ValueError, match="labels of the same type"):
        model.predict(X, residual_kriging=True, time=time, groups=np.arange(P))


@pytest.mark.parametrize(
    ("coords", "words"),
    [
        (np.zeros((P, 1)), ("coords", "1 columns", "2", "the same")),
        (np.zeros((P + 1, 2)), (f"coords given to predict has {P + 1} rows", f"X has {P}")),
    ],
)
def test_other_coordinates_than_those_of_fit_raise(coords, words):
    problem = Problem("space")
    model = problem.fit()
    with pytest.raises(ValueError, match=mentions(*words)):
        model.predict(problem.X[problem.points], residual_kriging=True, coords=coords)
