"""noise="auto": intervals follow a noise that varies, and nothing changes where it does not."""

import pickle

import numpy as np
import pytest
from fit_comparison import cut
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.noise_model.model import noise_scales
from ulmus.core.query.leave_out import prediction_moments, row_sd

BINS = 5
# Standard deviations that vary tenfold over inputs in the unit cube.
PROFILES = {
    "slope": lambda X: X[:, 0],
    "last": lambda X: X[:, -1],
    "bump": lambda X: np.exp(-(((X[:, 0] - 0.5) / 0.2) ** 2)),
}


def mean(X):
    """A mean that does not depend on the last input, unless there is only one."""
    return np.sin(2 * np.pi * X[:, 0])


def sd_of(profile, X):
    return 0.3 * 10 ** (PROFILES[profile](X) - 0.5)


def noise_profile_table(n=500, d=1, profile="slope", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, mean(X) + sd_of(profile, X) * rng.standard_normal(n)


def constant_table(n, d, seed, draw=np.random.Generator.standard_normal):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, mean(X) + 0.3 * draw(rng, size=n)


def auto(seed=0, **parameters):
    return plain_ensemble(5, 50, noise="auto", random_state=seed, **parameters)


def uses_model(model):
    """Whether each output has a noise variance that is a function of the inputs."""
    return np.isnan(model.fitted_.noise_model.flat)


def binned_coverage(model, profile, d):
    """Probability that a 90 % interval covers, in bins of equal count by the true noise."""
    points = 0.005 + 0.99 * np.random.default_rng(99).random((400, d))
    sd = sd_of(profile, points)
    bounds = model.predict_interval(points, 0.9)
    low, high = ((bounds[:, i] - mean(points)) / sd for i in (0, 1))
    covered = (stats.norm.cdf(high) - stats.norm.cdf(low))[np.argsort(sd)]
    return covered.reshape(BINS, -1).mean(axis=1)


# --- the statistical claim -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("d", "profile"), [(1, "slope"), (1, "bump"), (2, "last"), (2, "bump"), (6, "last")]
)
def test_intervals_cover_where_noise_is_large_and_where_it_is_small(d, profile):
    coverage = []
    for seed in range(16):
        model = auto(seed).fit(*noise_profile_table(500, d, profile, seed))
        assert uses_model(model)
        coverage.append(binned_coverage(model, profile, d))
    assert np.all(np.mean(coverage, axis=0) > 0.85)
    assert np.all(np.mean(coverage, axis=0) < 0.95)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_default_follows_an_input_that_its_map_leaves_out():
    model = ELMEnsembleRegressor(3, random_state=0).fit(*noise_profile_table(300, 2, "last"))
    assert model.feature_relevance_[1] < 0.05
    assert uses_model(model)
    assert np.all(binned_coverage(model, "last", 2) > 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "t3"])
@pytest.mark.parametrize(("n", "d"), [(60, 2), (100, 6), (300, 2)])
def test_constant_noise_is_left_constant(n, d, noise):
    # Of 12 tables at most one may be taken to vary, whatever the tails.
    draws = {"normal": np.random.Generator.standard_normal, "t3": student}
    used = [uses_model(auto(s).fit(*constant_table(n, d, s, draws[noise]))) for s in range(12)]
    assert np.sum(used) <= 1


def student(rng, size):
    return rng.standard_t(3, size) / np.sqrt(3)


def test_where_noise_is_constant_all_is_as_without_a_model():
    X, y = constant_table(200, 2, 0)
    ours, plain = (
        plain_ensemble(5, 50, noise=n, random_state=0) for n in ("auto", "homoskedastic")
    )
    ours.fit(X, y), plain.fit(X, y)
    assert not uses_model(ours)
    points = X[:20]
    assert_allclose(ours.predict_interval(points), plain.predict_interval(points), rtol=1e-12)
    assert_array_equal(ours.predict(points), plain.predict(points))
    for a, b in zip(*(m.predict(points, return_std=True) for m in (ours, plain)), strict=True):
        assert_allclose(a, b, rtol=1e-12)


# --- what it is made of ----------------------------------------------------------------------


def test_the_default_is_auto_and_its_estimates_follow_the_noise_that_it_finds():
    for model in (ELMEnsembleRegressor(), ELMRegressor()):
        assert model.noise == "auto"
        assert hasattr(model, "partial_fit")
    X, y = noise_profile_table()
    assert auto().fit(X, y).variance_estimates_ == ("BM", "BR")
    flat = mean(X) + 0.3 * np.random.default_rng(1).standard_normal(500)
    assert auto().fit(X, flat).variance_estimates_ == ("BR",)


def test_each_output_decides():
    X, y = noise_profile_table()
    flat = mean(X) + 0.3 * np.random.default_rng(1).standard_normal(500)
    model = auto().fit(X, np.column_stack([y, flat, 7 * y]))
    assert_array_equal(uses_model(model), [True, False, True])
    variance = model.predict_var(X, component="noise")
    assert np.ptp(variance[:, 1]) == 0
    assert_allclose(49 * variance[:, 0], variance[:, 2], rtol=1e-6)
    assert np.max(variance[:, 0]) > 20 * np.min(variance[:, 0])


def test_inputs_that_the_noise_depends_on_get_a_scale():
    X, y = noise_profile_table(500, 6, "last")
    fit = auto().fit(X, y).fitted_
    logs = np.log((y - mean(X)) ** 2)
    block = fit.rows.data.sample(500)._replace(y=logs[None, :])
    scales = noise_scales(fit.noise_model.logs[0].layer.inputs, block)
    assert np.argmax(scales) == 5
    assert_allclose(8 * np.log(scales[5]), np.round(8 * np.log(scales[5])), atol=1e-9)
    # Too few rows, or labels that do not vary, leave nothing to learn.
    inputs = fit.noise_model.logs[0].layer.inputs
    assert noise_scales(inputs, block.taken(np.arange(29))) is None
    assert noise_scales(inputs, block._replace(y=np.zeros((1, 500)))) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_the_scale_of_conformal_intervals_is_local(weighted):
    X, y = noise_profile_table()
    w = np.random.default_rng(5).uniform(0.5, 2, 500) if weighted else None
    fit = auto().fit(X, y, w).fitted_
    (part,), unit = fit.ensemble.regressions, fit.ensemble.unit[0]
    sigma2, residual = float(part.noise_variance.sigma2[0]), float(part.noise_variance.residual[0])
    norm = np.sum(part.smoother.coordinates(fit.features(X)) ** 2, axis=1).mean(axis=0)
    mean_weight = 1.0 if w is None else np.mean(w)
    ours, rows = prediction_moments(fit, X), row_sd(fit, fit.rows)
    variance = fit.noise_model.variance(X)[0]
    for i in range(0, 500, 7):
        ratio = variance[i] / residual
        smoothed = sigma2 * (ratio if ratio > 1 else ratio**0.25)
        expected = unit * np.sqrt(variance[i] / mean_weight + smoothed * norm[i])
        assert_allclose(ours.sd[0, i], expected, rtol=1e-9)
        ratio = fit.rows.noise[0, i] / residual
        smoothed = sigma2 * (ratio if ratio > 1 else ratio**0.25)
        own = fit.rows.noise[0, i] / (1.0 if w is None else w[i])
        expected = unit * np.sqrt(own + smoothed * fit.rows.loo_leverage[0, i])
        assert_allclose(rows[0, i], expected, rtol=1e-9)


# --- every way to fit and to keep a fit ------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3])
def test_rows_in_blocks_give_the_same_noise(d):
    X, y = noise_profile_table(300, d)
    kept, streamed = auto().fit(X, y), auto().fit_blocks(cut(X, y, None, size=70))
    assert uses_model(kept)
    noise = [m.predict_var(X, component="noise") for m in (kept, streamed)]
    assert_allclose(*noise, rtol=1e-6)


def test_rows_that_come_once_have_constant_noise():
    X, y = noise_profile_table(300)
    model = auto().partial_fit(X, y)
    assert model.fitted_.noise_model is None
    assert np.ptp(model.predict_var(X, component="noise")) == 0
    assert auto().fit(X, y).partial_fit(X, y).fitted_.noise_model is None


def test_small_and_stored_fits_keep_the_noise():
    X, y = noise_profile_table(300)
    model = auto().fit(X, y)
    expected = model.predict_var(X, component="noise")
    assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_var(X, component="noise"), expected
    )
    assert_array_equal(model.compress().predict_var(X, component="noise"), expected)


def test_single_precision_follows_the_noise():
    X, y = noise_profile_table(300)
    one, other = auto().fit(X, y), auto(dtype="float32").fit(X, y)
    ratio = other.predict_var(X, component="noise") / one.predict_var(X, component="noise")
    assert np.all((ratio > 0.7) & (ratio < 1.4))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["constant", "line", "two values", "few rows", "one outlier"])
def test_outputs_with_little_to_learn_from_have_finite_variances(kind):
    rng = np.random.default_rng(0)
    X = rng.random((4 if kind == "few rows" else 80, 2))
    y = {
        "constant": np.full(len(X), 3.0),
        "line": X[:, 0],
        "two values": (X[:, 0] > 0.5).astype(float),
        "few rows": X[:, 1] ** 2,
        "one outlier": X[:, 0] + 1e6 * (np.arange(len(X)) == 7),
    }[kind]
    model = auto().fit(X, y)
    assert np.all(np.isfinite(model.predict_interval(X, 0.5)))
    assert np.all(np.isfinite(model.predict(X, return_std=True)))
    assert np.all(model.predict_var(X, component="noise") >= 0)


def test_weights_that_are_the_inverse_variance_leave_nothing_to_model():
    X, y = noise_profile_table(400)
    weighted = auto().fit(X, y, sample_weight=1 / sd_of("slope", X) ** 2)
    assert not uses_model(weighted)
