"""Diagnostics of transformed targets, point masses and counts are on the scale of y."""

import json

import numpy as np
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from response_tables import observations
from scipy import stats

from ulmus.core.fit.target_suggestion import suggested_transform
from ulmus.core.query.row_lookup import trained_rows
from ulmus.core.response.transforms import Log, Logit, Sqrt, YeoJohnson
from ulmus.diagnostics import fit_summary
from ulmus.diagnostics.calibration_data import LEVELS, given_data, leave_one_out_data, new_data
from ulmus.diagnostics.given_rows import GivenRows
from ulmus.diagnostics.leave_one_out import LeaveOneOutRows, leave_one_out_coverage
from ulmus.diagnostics.target_text import link_name, transformed_name
from ulmus.intervals.bounds import quantile_rank
from ulmus.intervals.observations import calibrated_error
from ulmus.intervals.randomised_pit import middle_pit, quantile_residuals, randomised_pit
from ulmus.intervals.response import leave_one_out_links

GIVEN = {
    "log": {"target_transform": "log"},
    "count": {"target_kind": "count"},
    "rain": {"target_transform": "log"},
}


def drawn(kind, n, seed=0):
    """Inputs, and lognormal amounts, Poisson counts or rain with the same linear predictor."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    eta = np.sin(2 * np.pi * X[:, 0]) + 1.5 * (X[:, 1] - 0.5)
    return X, observations(kind, eta, rng, mean=1.5, sd=0.5)


def fitted(kind, n=300, seed=0, n_neurons=60, **parameters):
    X, y = drawn(kind, n, seed)
    model = small_ensemble(6, n_neurons, **GIVEN[kind] | parameters)
    return model.fit(X, y), X, y


@pytest.fixture(scope="module", params=list(GIVEN))
def example(request):
    return request.param, *fitted(request.param)


# ---------------------------------------------------------------- summary


def test_accuracy_and_moments_are_those_of_y(example):
    kind, model, _, y = example
    summary, errors = model.summary(), y - model.loo_predictions_
    assert_allclose(summary.rmse, np.sqrt(np.mean(errors**2)))
    assert_allclose(summary.rmse_of_mean, np.std(y))
    assert_allclose(summary.r2, 1 - np.mean(errors**2) / np.var(y))
    assert_allclose([summary.target_mean, summary.target_sd], [np.mean(y), np.std(y)])
    assert summary.target_transform == model.target_transform_
    assert summary.target_gain is None
    assert summary.coverage >= 0.95 - 1 / len(y)
    assert summary.coverage_at_least == (kind != "log")
    assert json.loads(json.dumps(summary.to_dict()))["fitted_target"] == summary.fitted_target


def test_weights_of_the_user_count():
    X, y = drawn("log", 200)
    w = np.random.default_rng(1).uniform(0.2, 3, 200)
    w[:3] = 0
    model = small_ensemble(4, 40, target_transform="log").fit(X, y, w)
    summary = model.summary()
    assert_allclose(summary.target_mean, np.average(y, weights=w))
    square = np.average((y - model.loo_predictions_) ** 2, weights=w)
    assert_allclose(summary.rmse, np.sqrt(square))


def test_the_text_names_the_target_and_the_scale_of_the_noise(example):
    kind, model, _, y = example
    text = " ".join(str(model.summary()).split())
    if kind == "log":
        assert "fitted as log(y)." in text
        assert "on the log scale (95% interval" in text
        assert "of the mean squared error on the log scale" in text
        assert "(nominal by construction)" in text
    elif kind == "count":
        assert "fitted as counts, Poisson." in text
        assert "the variance of a count is its mean (Poisson)" in text
    else:
        assert f"with a point mass at 0 ({np.mean(y == 0):.0%} of the rows)" in text
        assert "above the point mass, at the mean prediction" in text
    if kind != "log":
        assert "(at least nominal by construction)" in text
        assert "estimated noise variance" not in text


def test_a_chosen_transformation_is_named_with_its_gain():
    X, y = drawn("log", 250)
    model = small_ensemble(4, 40, target_transform="auto").fit(X, y)
    summary, text = model.summary(), " ".join(str(model.summary()).split())
    chosen = next(one for one in model.fitted_.target_scores if one.chosen)
    assert summary.target_gain == chosen.margin == (chosen.confirmed_gain, chosen.confirmed_error)
    gain = f"{chosen.confirmed_gain:+.2g}"
    assert f"fitted as log(y), chosen by predictive density ({gain} a row" in text
    normal = small_ensemble(4, 40, target_transform="auto").fit(X, np.log(y))
    assert "no transformation predicts significantly better" in " ".join(
        str(normal.summary()).split()
    )


def test_counts_have_dispersion_instead_of_noise():
    rng = np.random.default_rng(3)
    X = rng.random((400, 2))
    mean = np.exp(1 + np.sin(4 * X[:, 0]))
    y = rng.poisson(mean * rng.gamma(2, 0.5, 400)).astype(float)
    summary = small_ensemble(4, 40, target_kind="count").fit(X, y).summary()
    assert summary.noise_sd is summary.noise_sd_interval is summary.noise_share is None
    assert summary.noise_share_of_error is None
    assert 0.3 < summary.dispersion < 0.7
    assert summary.extra_zeros == 0
    poisson = fitted("count")[0].summary()
    assert poisson.dispersion == 0


def test_several_outputs_have_fields_of_their_own():
    X, y = drawn("log", 200)
    model = small_ensemble(4, 40, target_transform="log").fit(X, np.column_stack([y, y**2]))
    summary = model.summary()
    assert summary.fitted_target == ("log(y)", "log(y)")
    assert_allclose(summary.target_mean, [np.mean(y), np.mean(y**2)])
    assert_allclose(summary.rmse[0], np.sqrt(np.mean((y - model.loo_predictions_[:, 0]) ** 2)))


def test_streams_are_described_by_their_families(example):
    _, model, X, y = example
    stream = model.__class__(**model.get_params()).fit_blocks(lambda: iter([(X, y)]))
    summary = stream.summary()
    assert summary.target_mean is None
    expected = model.summary().fitted_target.split(" (")[0]
    assert summary.fitted_target.split(" (")[0].split(" with dispersion")[0] == expected


def test_a_target_that_is_not_transformed_has_no_new_text():
    X, y = drawn("log", 100)
    summary = small_ensemble(3, 20).fit(X, np.log(y)).summary()
    assert summary.target_transform == "identity"
    fields = ("fitted_target", "target_gain", "noise_scale", "dispersion", "extra_zeros")
    assert all(getattr(summary, name) is None for name in (*fields, "coverage_at_least"))
    assert "fitted as" not in str(summary)


@pytest.mark.parametrize(
    ("transform", "name"),
    [
        (Log(), "log(y)"),
        (Log(2.0), "log(y - 2)"),
        (Log(0.0, 0.25), "log(y + 0.25)"),
        (Sqrt(), "sqrt(y)"),
        (Logit(), "logit(y)"),
        (Logit(0.0, 10.0), "logit(y in 0 to 10)"),
        (YeoJohnson(0.5), "the Yeo-Johnson transform of y with power 0.5"),
    ],
)
def test_names_of_transformed_targets(transform, name):
    assert transformed_name(transform) == name


def test_names_of_what_is_regressed(example):
    kind, model, _, _ = example
    expected = "log(price)" if kind == "log" else "log(mean price)"
    assert link_name(model.fitted_.response[0], "price") == expected


# ---------------------------------------------------------------- leave-one-out rows


def test_probabilities_are_those_of_the_predictive_distribution_without_the_row(example):
    kind, model, _, y = example
    fit = model.fitted_
    found = LeaveOneOutRows.of(fit, fit.rows)
    assert_allclose(found.mean[0], model.loo_predictions_)
    assert_array_equal(found.observed[0], y)
    if kind == "log":
        assert_array_equal(
            found.coverage(0, LEVELS), leave_one_out_coverage(found.errors[0], LEVELS)
        )
        return
    family, link = fit.response[0], leave_one_out_links(fit)[0]
    below, mass = family.cdf(y, link), family.point_mass(y, link)
    assert np.all((below - mass - 1e-12 <= found.pit[0]) & (found.pit[0] <= below + 1e-12))
    assert_allclose(found.middle_pit[0], below - mass / 2, atol=1e-12)


def test_coverage_of_a_row_is_calibrated_by_the_others(example):
    kind, model, _, y = example
    if kind == "log":
        return
    fit = model.fitted_
    family, link = fit.response[0], leave_one_out_links(fit)[0]
    below = family.cdf(y, link)
    score = np.clip(2 * np.minimum(below, 1 - below + family.point_mass(y, link)), 0, 1)
    covered = LeaveOneOutRows.of(fit, fit.rows).coverage(0, LEVELS)
    for level, hits in zip(LEVELS, covered, strict=True):
        for i in range(len(y)):
            error = calibrated_error(np.sort(np.delete(score, i)), level)
            error = min(error, 1 - level) if family.is_discrete else error
            assert hits[i] == (score[i] >= error)


@pytest.mark.parametrize("n", [4, 12])
def test_few_rows_have_a_calibrated_coverage(n):
    X, y = drawn("count", 60)
    model = small_ensemble(3, 10, target_kind="count").fit(X, y)
    found = LeaveOneOutRows.of(model.fitted_, model.fitted_.rows)
    assert quantile_rank(n - 1, 0.05, upper=False) == 0
    assert np.mean(found.coverage(0, (0.95,))) >= 0.95


def test_rows_at_a_bound_are_covered_by_intervals_that_are_cut_off_there():
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y = np.minimum(np.sin(3 * X[:, 0]) + 0.4 * rng.standard_normal(200), 1.2)
    model = small_ensemble(4, 40, target_range=(None, 1.2)).fit(X, y)
    fit = model.fitted_
    found = LeaveOneOutRows.of(fit, fit.rows)
    plain = leave_one_out_coverage(found.errors[0], LEVELS)
    at_bound, above = y == 1.2, found.errors[0] < 0
    assert np.sum(at_bound) > 10
    assert_array_equal(found.coverage(0, LEVELS), plain | (at_bound & above))
    assert found.randomised.all()
    # PIT values of rows at the bound lie between the distribution function there and one.
    u, z = found.pit[0], stats.t.cdf(found.errors[0], fit.n_rows - fit.gamma[0])
    assert np.all(u[at_bound] >= z[at_bound] - 0.1)
    assert stats.kstest(u, "uniform").pvalue > 0.01


@pytest.mark.statistics
@pytest.mark.parametrize("new", [False, True])
def test_randomised_pit_values_of_poisson_counts_are_uniform(new):
    model, X, y = fitted("count", 800, seed=5)
    if new:
        X, y = drawn("count", 800, seed=6)
        data = new_data(model.fitted_, X, y[None])
    else:
        data = leave_one_out_data(model.fitted_, model.fitted_.rows)
    assert data.randomised.all()
    # New rows and training rows count as two samples.
    size = len(y) / 2 if new else len(y)
    distance = stats.kstest(data.pit[0], "uniform").statistic
    assert stats.kstwobign.sf(distance * np.sqrt(size)) > 0.05
    # Without random draws they are far from uniform.
    below = model.predict_dist(X).cdf(y)
    assert stats.kstest(below, "uniform").pvalue < 1e-6


def test_randomised_pit_of_distributions():
    law, y = stats.poisson(np.full(2000, 0.7)), np.random.default_rng(0).poisson(0.7, 2000)
    u = randomised_pit(law, y)
    assert stats.kstest(u, "uniform").pvalue > 0.05
    assert_array_equal(u, randomised_pit(law, y))
    assert np.all((law.cdf(y) - law.pmf(y) <= u) & (u <= law.cdf(y)))
    assert_allclose(middle_pit(law, y), law.cdf(y) - law.pmf(y) / 2)
    continuous = stats.norm(np.zeros(3))
    assert_allclose(randomised_pit(continuous, [0.0, 1, 2]), continuous.cdf([0.0, 1, 2]))
    assert_allclose(quantile_residuals(np.array([0.5, 0.975])), [0, 1.96], atol=1e-3)
    assert np.all(np.isfinite(quantile_residuals(np.array([0.0, 1.0]))))


# ---------------------------------------------------------------- new rows and training rows


def test_rows_are_found_by_y_as_it_was_given(example):
    _, model, X, y = example
    rows = model.fitted_.rows
    assert_array_equal(trained_rows(rows, X, y[None]), np.arange(len(y)))
    single = X.astype(np.float32), y[None].astype(np.float32)
    assert_array_equal(trained_rows(rows, *single), np.arange(len(y)))
    assert np.all(trained_rows(rows, X, y[None] + 0.5) == -1)


def test_a_table_of_training_rows_is_checked_as_the_training_rows(example):
    _, model, X, y = example
    own, given = model.check(), model.check(X, y)
    assert own == given
    fit = model.fitted_
    some = np.arange(0, len(y), 3)
    part = given_data(fit, X[some], y[None, some], GivenRows.of(fit, X[some], y[None, some]))
    whole = leave_one_out_data(fit, fit.rows)
    for name in ("pit", "mean", "covered", "leverage"):
        assert_array_equal(getattr(part, name), getattr(whole, name)[..., some])


def test_new_rows_are_on_the_scale_of_y(example):
    kind, model, _, _ = example
    X, y = drawn(kind, 200, seed=9)
    data = new_data(model.fitted_, X, y[None])
    low, high = model.predict_interval(X, list(LEVELS)).transpose(1, 2, 0)
    assert_array_equal(data.covered[0], (low <= y) & (y <= high))
    assert_allclose(data.mean[0], model.predict(X))
    distribution = model.predict_dist(X)
    assert np.all(data.pit[0] <= distribution.cdf(y) + 1e-12)
    assert np.all(data.pit[0] >= distribution.cdf(y) - distribution.pmf(y) - 1e-12)
    report = model.check(X, y)
    coverage = [row.coverage for row in report.coverage if row.group == "all"]
    assert_allclose(coverage, data.covered[0].mean(axis=1))


def test_impossible_values_are_an_error(example):
    kind, model, _, _ = example
    X, y = drawn(kind, 100, seed=8)
    y[:4] = -1.0
    found = [one for one in model.check(X, y).findings if one.code == "target"]
    assert [one.severity for one in found] == ["error"]
    assert found[0].message.startswith("4 of 100 values of y are")
    counts = [one for one in fitted("count")[0].check(X, y + 0.5).findings if one.code == "target"]
    assert "no whole numbers" in counts[0].message


# ---------------------------------------------------------------- findings


@pytest.mark.statistics
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(GIVEN))
def test_correct_models_have_no_errors(kind):
    warned = 0
    for seed in range(10):
        model, *_ = fitted(kind, 300, seed, n_neurons=100)
        reports = model.check(), model.check(*drawn(kind, 300, seed + 100))
        for report in reports:
            assert report.severity != "error", str(report)
            calibration = [f for f in report.about("calibration") if f.severity != "ok"]
            warned += bool(calibration)
    assert warned <= 4


def test_a_wrong_distribution_is_found():
    rng = np.random.default_rng(0)
    X = rng.random((600, 2))
    dispersion = np.where(X[:, 0] > 0.5, 3.0, 0.05)
    y = rng.poisson(5 * rng.gamma(1 / dispersion, dispersion)).astype(float)
    model = small_ensemble(4, 40, target_kind="count").fit(X, y)
    found = {one.code: one for one in model.check().findings}
    for code in ("coverage-by-input", "error-scale"):
        assert found[code].severity != "ok"
        assert "add the inputs that it depends on" in found[code].suggestion
        assert "noise=" not in found[code].suggestion
        assert "target_transform" not in found[code].suggestion


def test_messages_name_the_scale(example):
    kind, model, _, _ = example
    found = {one.code: one.message for one in model.check().findings}
    if kind == "log":
        assert found["residual-distribution"].startswith("residuals of log(y): ")
        assert "randomised" not in found["coverage-by-input"]
        return
    assert "the predictive distribution is that of" in found["residual-distribution"]
    assert "of randomised intervals" in found["coverage-by-input"]
    assert found["coverage-by-noise"] == (
        "not applicable: the variance of y follows from its prediction."
    )
    assert found["coverage"].startswith("at least nominal by construction")


# ---------------------------------------------------------------- suggestions


def scale_findings(model):
    return [one for one in model.check().findings if one.code == "target-scale"]


@pytest.mark.parametrize("seed", range(3))
def test_a_logarithm_is_suggested_for_lognormal_data(seed):
    X, y = drawn("log", 300, seed)
    (found,) = scale_findings(small_ensemble(4, 40).fit(X, y))
    assert found.severity == "warning"
    assert "y is positive and skewed: the scale 'log' raises" in found.message
    assert found.suggestion == "use target_transform='auto'."
    assert found.statistic > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_suggested_for_poisson_data(seed):
    model = small_ensemble(4, 40).fit(*drawn("count", 300, seed))
    (found,) = scale_findings(model)
    assert found.message.startswith("y is a count: a distribution of counts raises")
    assert found.suggestion == "use target_kind='count'."
    assert found in model.summary().warnings


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_suggested_for_normal_data(seed):
    X, y = drawn("log", 300, seed)
    rng = np.random.default_rng(seed)
    y = 12 + 2 * np.sin(6 * X[:, 0]) + rng.standard_normal(300)
    assert not scale_findings(small_ensemble(4, 40).fit(X, y))
    assert not scale_findings(small_ensemble(4, 40).fit(X, np.round(10 * y)))
    assert not scale_findings(small_ensemble(4, 40).fit(X, y - 12))


def test_a_point_mass_is_suggested_for_rain():
    X, y = drawn("rain", 300)
    model = small_ensemble(4, 40).fit(X, y)
    (found,) = scale_findings(model)
    assert found.message.startswith(f"{np.mean(y == 0):.0%} of the values of y are 0")
    assert found.suggestion == "use target_transform='auto', or use target_range=(0, None)."
    assert suggested_transform(model.fitted_) is None


def test_suggestions_need_rows_and_an_unspecified_target(example):
    _, model, X, y = example
    assert suggested_transform(model.fitted_) is None
    assert not scale_findings(model)
    plain = small_ensemble(4, 40)
    assert suggested_transform(plain.fit_blocks(lambda: iter([(X, y)])).fitted_) is None
    assert suggested_transform(plain.fit(X, y).compress().fitted_) is None


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_suggestions_never_fail():
    X, y = drawn("log", 60)
    for target in (np.ones(60), y[:, None] ** [1, 2], y**8, np.round(y) > 1, y * 1e150):
        model = small_ensemble(3, 20).fit(X, np.asarray(target, dtype=float))
        for k in range(model.fitted_.ensemble.n_outputs):
            suggested_transform(model.fitted_, k)
    few = small_ensemble(3, 80, alpha=1e-12).fit(X[:12], y[:12])
    assert suggested_transform(few.fitted_) is None
    weighted = small_ensemble(3, 20).fit(X, y, np.arange(60) % 3)
    suggested_transform(weighted.fitted_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["log", "count"])
def test_suggestions_for_tensors(kind, dtype):
    torch = pytest.importorskip("torch")
    X, y = drawn(kind, 300)
    tensors = [torch.tensor(part, dtype=getattr(torch, dtype)) for part in (X, y)]
    weight = np.where(np.arange(300) % 5, 1.0, 0.0)
    model = small_ensemble(4, 40, dtype=dtype).fit(*tensors, weight)
    found = suggested_transform(model.fitted_)
    assert found is not None
    assert found.name == kind


def test_a_brief_summary_compares_nothing(monkeypatch):
    X, y = drawn("log", 100)
    model = small_ensemble(3, 20).fit(X, y)
    monkeypatch.setattr("ulmus.diagnostics.checks.target_checks.suggested_transform", pytest.fail)
    assert fit_summary(model.fitted_, "Model", list("abc"), brief=True).warnings is None


def test_intervals_of_a_positive_target_that_begin_below_zero_are_a_finding():
    """Where no other scale is clearly better, the range is named."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 1))
    y = np.abs(0.5 + X[:, 0] + 0.45 * rng.standard_normal(120))
    report = small_ensemble(4, 20).fit(X, y).check()
    (found,) = [one for one in report.findings if one.code == "target-scale"]
    assert "begin below 0" in found.message
    assert "target_range=(0, None)" in found.suggestion
    bounded = small_ensemble(4, 20, target_range=(0, None)).fit(X, y).check()
    assert "target-scale" not in {one.code for one in bounded.findings}
