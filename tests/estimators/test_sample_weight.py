"""Only ratios of weights matter, and weights that cannot be used are refused."""

import numpy as np
import pytest
from interval_methods import every_interval
from messages import mentions
from models import autoregressive, small_ensemble
from numpy.testing import assert_allclose

from ulmus.exceptions import SampleWeightWarning
from ulmus.noise import AR1


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("factor", [4.0, 1e-60, 1e60])
def test_a_constant_factor_of_the_weights_does_not_matter(normal_rows, noise, factor):
    X, y = normal_rows
    w = np.random.default_rng(0).uniform(0.5, 2, 600)
    for weight in (np.ones(600), w):
        one, other = (
            small_ensemble(5, 20, noise=noise).fit(X, y, c * weight) for c in (1.0, factor)
        )
        assert_allclose(other.predict_var(X[:9]), one.predict_var(X[:9]), rtol=1e-7)
        expected = every_interval(one, X[:9], 0.9)
        for name, intervals in every_interval(other, X[:9], 0.9).items():
            assert_allclose(intervals, expected[name], rtol=1e-6, atol=1e-8, err_msg=name)


def test_weights_of_four_are_no_weights(normal_rows):
    X, y = normal_rows
    none, four = small_ensemble(5, 20).fit(X, y), small_ensemble(5, 20).fit(X, y, np.full(600, 4.0))
    assert_allclose(four.predict_interval(X[:9]), none.predict_interval(X[:9]), rtol=1e-8)


def test_weights_that_overflow_are_refused(normal_rows):
    X, y = normal_rows
    for value in (1e300, 1e-300):
        for way in (small_ensemble(5, 20).fit, small_ensemble(5, 20).partial_fit):
            with pytest.raises(ValueError, match=mentions("sample_weight", "divide them")):
                way(X, y, np.full(600, value))
        with pytest.raises(ValueError, match=mentions("sample_weight of block 0", "divide them")):
            small_ensemble(5, 20).fit_blocks([(X, y, np.full(600, value))])


def test_complex_weights_and_dates_are_refused(normal_rows):
    X, y = normal_rows
    with pytest.raises(ValueError, match=mentions("sample_weight", "complex")):
        small_ensemble(5, 20).fit(X, y, np.ones(600) + 1j)
    with pytest.raises(ValueError, match="dates"):
        small_ensemble(5, 20).fit(X.astype("M8[s]"), y)


# ---------------------------------------------------------------- weights of new rows


@pytest.fixture(scope="module")
def weighted():
    """A fit whose rows have noise of standard deviation 0.1 to 1, new points and their weights."""
    rng = np.random.default_rng(0)
    X, sd = rng.uniform(-1, 1, (150, 2)), rng.uniform(0.1, 1, 150)
    y = np.sin(2 * X[:, 0]) + sd * rng.standard_normal(150)
    return small_ensemble(4, 20).fit(X, y, 1 / sd**2), X[:8] * 0.9, np.geomspace(1, 100, 8)


def per_point(call, X, weight):
    """Results of single points with their weights, joined."""
    return np.concatenate([call(X[i : i + 1], weight[i : i + 1]) for i in range(len(X))])


CALLS = {
    "predict": lambda m, X, w: m.predict(X, return_std=True, sample_weight=w)[1],
    "total": lambda m, X, w: m.predict_var(X, sample_weight=w),
    "noise": lambda m, X, w: m.predict_var(X, "noise", sample_weight=w),
    "auto": lambda m, X, w: m.predict_interval(X, sample_weight=w),
    "jackknife+": lambda m, X, w: m.predict_interval(X, method="jackknife+", sample_weight=w),
    "cv+": lambda m, X, w: m.predict_interval(X, method="cv+", sample_weight=w),
    "gaussian": lambda m, X, w: m.predict_interval(X, method="gaussian", sample_weight=w),
    "quantiles": lambda m, X, w: m.predict_quantiles(X, [0.1, 0.9], sample_weight=w),
    "dist": lambda m, X, w: m.predict_dist(X, sample_weight=w).std(),
    "frame": lambda m, X, w: m.summary_frame(X, sample_weight=w).to_numpy(),
    "exceedance": lambda m, X, w: m.exceedance(X, 0.5, sample_weight=w),
    "covariance": lambda m, X, w: np.diag(m.predict_cov(X, component="total", sample_weight=w)),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_new_row_has_its_own_weight(weighted, name):
    model, X, weight = weighted
    call = CALLS[name]
    joint = call(model, X, weight)
    assert_allclose(joint, per_point(lambda x, w: call(model, x, w), X, weight), rtol=1e-5)
    mean = np.full(len(X), model.fitted_.mean_weight)
    assert not np.allclose(joint, call(model, X, mean))


def test_the_noise_variance_is_divided_by_the_weight(weighted):
    model, X, weight = weighted
    noise = model.predict_var(X, "noise", sample_weight=weight)
    assert_allclose(noise * weight, model.predict_var(X, "noise", sample_weight=np.ones(8)))
    total = model.predict_var(X, sample_weight=weight)
    assert_allclose(total, noise + model.predict_var(X, "model"))
    draws = model.simulate(X, 4000, of="observation", sample_weight=weight, random_state=0)
    assert_allclose(draws.std(axis=0), np.sqrt(total), rtol=0.1)


def test_a_modelled_noise_variance_is_divided_by_the_weight():
    rng = np.random.default_rng(3)
    X, w = rng.uniform(-1, 1, (400, 1)), rng.uniform(0.5, 2, 400)
    y = np.sin(2 * X[:, 0]) + np.exp(1.5 * X[:, 0]) / np.sqrt(w) * rng.standard_normal(400)
    model = small_ensemble(5, 30, noise="auto").fit(X, y, w)
    assert np.all(model.fitted_.noise_model.varies)
    one, four = (model.predict_var(X, "noise", sample_weight=np.full(400, c)) for c in (1.0, 4.0))
    assert_allclose(one, 4 * four)
    assert np.ptp(one) > 0


def test_the_mean_weight_is_the_default_with_a_warning(weighted):
    model, X, _ = weighted
    with pytest.warns(
        SampleWeightWarning, match=mentions("mean weight", "sample_weight")
    ) as caught:
        default = model.summary_frame(X)
    assert len(caught) == 1
    mean = np.full(len(X), model.fitted_.mean_weight)
    assert_allclose(default, model.summary_frame(X, sample_weight=mean))
    for quiet in (model.predict, lambda X: model.predict_var(X, "model")):
        quiet(X)
    model.predict_interval(X, kind="confidence", target="expectation")


def test_nearly_equal_weights_do_not_warn(normal_rows):
    X, y = normal_rows
    model = small_ensemble(4, 20).fit(X, y, np.random.default_rng(0).uniform(1, 1.4, 600))
    model.predict_interval(X[:5])


@pytest.mark.parametrize("way", ["compress", "blocks"])
def test_weights_of_new_rows_without_training_rows(weighted, way):
    model, X, weight = weighted
    rows = model.fitted_.rows.data
    other = small_ensemble(4, 20)
    if way == "blocks":
        w = rows.root_weight**2
        halves = [(rows.X[part], rows.y[0, part], w[part]) for part in (slice(70), slice(70, 150))]
        other.fit_blocks(halves)
    else:
        other.fit(rows.X, rows.y[0], rows.root_weight**2).compress()
    own = other.predict_var(X, sample_weight=weight)
    assert_allclose(own, model.predict_var(X, sample_weight=weight), rtol=1e-5)
    width = np.ptp(other.predict_interval(X, sample_weight=weight), axis=1)
    assert np.all(np.diff(width) < 0)
    with pytest.warns(SampleWeightWarning):
        other.predict_interval(X)
    assert other.summary().noise_range == pytest.approx(model.summary().noise_range)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(3), ["8 rows", "3 numbers in sample_weight"]),
        (np.zeros(8), ["sample_weight", "zero in row 0", "positive"]),
        (-np.ones(8), ["sample_weight", "negative"]),
        (np.full(8, np.nan), ["sample_weight", "NaN"]),
        (np.ones((8, 2)), ["sample_weight", "axes"]),
    ],
)
def test_weights_of_new_rows_that_cannot_be_used_are_refused(weighted, weight, words):
    model, X, _ = weighted
    with pytest.raises(ValueError, match=mentions(*words)):
        model.predict_interval(X, sample_weight=weight)


def test_weights_of_the_function_are_refused(weighted):
    model, X, weight = weighted
    with pytest.raises(ValueError, match=mentions("sample_weight", "kind='prediction'")):
        model.predict_interval(X, kind="confidence", sample_weight=weight)
    for call in (model.exceedance, model.simulate):
        with pytest.raises(ValueError, match=mentions("sample_weight", "of='observation'")):
            call(X, 5, of="mean", sample_weight=weight)
    with pytest.raises(ValueError, match=mentions("sample_weight", "give X and y")):
        model.check(sample_weight=weight)


def test_summary_and_check_state_that_noise_differs_by_weight(weighted):
    model, *_ = weighted
    summary = model.summary()
    low, high = summary.noise_range
    w = model.fitted_.rows.data.root_weight**2
    sigma = np.sqrt(model.noise_variance_)
    assert (low, high) == pytest.approx((sigma / np.sqrt(w.max()), sigma / np.sqrt(w.min())))
    assert summary.mean_weight == pytest.approx(w.mean())
    assert "proportional to 1/sqrt(weight)" in str(summary)
    (found,) = (one for one in model.check().findings if one.code == "sample-weight")
    assert found.severity == "ok"
    assert "sample_weight" in found.message


def test_check_of_new_rows_tests_their_own_weights():
    rng = np.random.default_rng(7)
    X, sd = rng.uniform(-1, 1, (800, 2)), np.geomspace(0.1, 1, 800)[rng.permutation(800)]
    y = X[:, 0] + sd * rng.standard_normal(800)
    model = small_ensemble(4, 20).fit(X[:400], y[:400], 1 / sd[:400] ** 2)
    own = model.check(X[400:], y[400:], sample_weight=1 / sd[400:] ** 2)
    mean = model.check(X[400:], y[400:])
    codes = {one.code: one.severity for one in own.findings}
    assert codes["coverage"] == codes["sample-weight"] == "ok"
    codes = {one.code: one.severity for one in mean.findings}
    assert codes["coverage"] == "error"
    assert codes["sample-weight"] == "warning"


def test_kriged_residuals_have_the_weight_of_the_new_row():
    rng = np.random.default_rng(6)
    time, w = np.arange(120.0), rng.uniform(0.5, 4, 120)
    X = rng.uniform(-1, 1, (120, 1))
    y = X[:, 0] + autoregressive(rng.standard_normal(120), 0.9) / np.sqrt(w)
    model = small_ensemble(3, 10, noise=AR1()).fit(X, y, w, time=time)
    at = {"time": time[:4] + 0.5, "residual_kriging": True}
    one, four = (
        model.predict(X[:4], return_std=True, sample_weight=np.full(4, c), **at) for c in (1.0, 4.0)
    )
    function = model.predict(X[:4])
    # The noise is predicted in units of its standard deviation, up to the error of the function.
    ratio = (one[0] - function) / (four[0] - function)
    assert_allclose(ratio, 2, rtol=1e-8)
    assert np.all(one[1] > four[1])
    interval = model.predict_interval(X[:4], sample_weight=np.full(4, 4.0), **at)
    assert np.all(np.ptp(interval, axis=1) > 0)
