"""Diagnostics: coverages against loops, each finding where it is due, and few false alarms."""

import sys
from dataclasses import FrozenInstanceError
from itertools import pairwise
from threading import Thread

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from models import plain_member, sine_table, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import NotFittedError

from ulmus import ELMEnsembleRegressor
from ulmus.diagnostics import CoverageRow, DiagnosticReport
from ulmus.diagnostics.calibration_data import LEVELS, point_leverage
from ulmus.diagnostics.checks.fit_checks import bias_finding
from ulmus.diagnostics.coverage import discrete_columns, quantile_parts, value_groups
from ulmus.diagnostics.finding import CHECKS, SEVERITIES, TOPICS, finding
from ulmus.diagnostics.leave_one_out import leave_one_out_coverage
from ulmus.exceptions import DegenerateFitWarning, DuplicateRowsWarning, warn
from ulmus.messages import Setting


def severities(report):
    """Severity of each finding that is not ok, by name."""
    return {f.name: f.severity for f in report.findings if f.severity != "ok"}


@pytest.fixture(scope="module")
def model():
    return small_ensemble(10, 60).fit(*sine_table(300))


# ---------------------------------------------------------------- coverage, by loops


def loop_cover(errors, level, signed):
    """Each error against the conformal interval of the others."""
    hits = []
    for i, e in enumerate(errors):
        others = np.delete(errors, i)
        n = len(others)
        if signed:
            tail = (1 - level) / 2
            low = np.sort(others)[int(np.floor(np.round(tail * (n + 1), 9))) - 1]
            high = np.sort(others)[int(np.ceil(np.round((1 - tail) * (n + 1), 9))) - 1]
            hits.append(low <= e <= high)
        else:
            rank = int(np.ceil(np.round(level * (n + 1), 9)))
            hits.append(rank > n or abs(e) <= np.sort(np.abs(others))[rank - 1])
    return np.array(hits)


@pytest.mark.parametrize("n", [2, 5, 40, 200])
def test_leave_one_out_coverage_is_that_of_intervals_from_the_other_rows(n):
    errors = np.random.default_rng(n).standard_normal(n)
    covered = leave_one_out_coverage(errors, LEVELS)
    for i, level in enumerate(LEVELS):
        assert_array_equal(covered[i], loop_cover(errors, level, signed=False))
        assert covered[i].sum() == np.ceil(np.round(level * n, 9))


def test_skewed_residuals_have_asymmetric_intervals():
    errors = np.random.default_rng(0).exponential(size=300)
    for level, covered in zip(LEVELS, leave_one_out_coverage(errors, LEVELS), strict=True):
        assert_array_equal(covered, loop_cover(errors, level, signed=True))


def test_coverages_of_new_rows_are_those_of_predict_interval(model):
    X, y = sine_table(200, seed=1)
    report = model.check(X, y)
    low, high = model.predict_interval(X, list(LEVELS)).transpose(1, 0, 2)
    expected = np.mean((low <= y[:, None]) & (y[:, None] <= high), axis=0)
    rows = {(r.group, r.level): r for r in report.coverage}
    assert_allclose([rows["all", level].coverage for level in LEVELS], expected)
    inside = (low[:, 2] <= y) & (y <= high[:, 2])
    order = np.argsort(X[:, 0])
    for part in range(5):
        few = order[40 * part : 40 * (part + 1)]
        row = rows[f"x0 {part + 1}/5", 0.9]
        assert row == CoverageRow(row.group, 0.9, 40, np.mean(inside[few]))


def test_groups_are_parts_of_equal_counts_and_values_with_enough_rows():
    values = np.random.default_rng(0).standard_normal(103)
    groups = quantile_parts(values, "x")
    assert len(groups) == 5
    assert_array_equal(np.sort(np.concatenate([g.rows for g in groups])), np.arange(103))
    for one, next_one in pairwise(groups):
        assert values[one.rows].max() < values[next_one.rows].min()
    assert quantile_parts(values[:39], "x") == []
    assert quantile_parts(np.ones(100), "x") == []
    codes = np.repeat([0.0, 1.0, 2.5], [50, 30, 5])
    assert [(g.label, len(g.rows)) for g in value_groups(codes, "x")] == [
        ("x: 0", 50),
        ("x: 1", 30),
    ]
    assert_array_equal(discrete_columns(np.column_stack([codes, values[:85]])), [True, False])


def test_leverage_of_training_points_is_the_fit_s_own(model):
    X, _ = sine_table(300)
    assert_allclose(point_leverage(model.fitted_, X)[0], model.leverage_, rtol=1e-6)


# ---------------------------------------------------------------- training rows among those given


def test_noise_that_was_learned_by_heart_is_no_skill():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (80, 3)), rng.standard_normal(80)
    model = small_ensemble(4, 100, alpha=1e-9).fit(X, y)
    order = rng.permutation(80)
    report, expected = model.check(X[order], y[order]), model.check()
    assert report == expected
    assert report.title == "diagnostics from 80 training rows, leave-one-out."


@pytest.mark.parametrize("kind", [np.float32, scipy.sparse.csr_array], ids=["single", "sparse"])
def test_training_rows_are_found_in_other_arrays(model, kind):
    X, y = sine_table(300)
    given = X.astype(kind) if kind is np.float32 else kind(X)
    y = y.astype(kind) if kind is np.float32 else y
    assert model.check(given[::-1], y[::-1]).coverage == model.check().coverage


def test_some_training_rows_are_tested_against_the_others(model):
    X, y = sine_table(300)
    worst_rows = np.argsort(-np.abs(model.loo_residuals_))[:30]
    report = model.check(np.repeat(X[worst_rows], 2, axis=0), np.repeat(y[worst_rows], 2))
    assert report.title.startswith("diagnostics from 30 training rows, leave-one-out; 30 repeated")
    assert severities(report)["coverage"] == "error"
    assert report.coverage[2].coverage == 0
    few = model.check(X[:100], y[:100])
    assert few.severity == "ok"
    assert "of 100 training rows" in few.findings[0].message


def test_training_rows_among_new_ones(model):
    X, y = sine_table(300)
    X_new, y_new = sine_table(200, seed=1)
    report = model.check(np.vstack([X, X_new]), np.concatenate([y, y_new]))
    alone, own = model.check(X_new, y_new), model.check()
    assert report.title == (
        "diagnostics from 300 training rows, leave-one-out, and 200 new rows, out-of-sample."
    )
    for both, new, trained in zip(
        report.coverage[:4], alone.coverage[:4], own.coverage[:4], strict=True
    ):
        assert_allclose(both.coverage, 0.4 * new.coverage + 0.6 * trained.coverage)
    # The same inputs with other observations are new rows.
    assert "300 new rows" in model.check(X, y + 0.1).title


def test_rows_without_leave_one_out_prediction_are_not_judged():
    X, y = sine_table(300)
    weight = np.where(np.arange(300) < 40, 0.0, 1.0)
    fit = small_ensemble(10, 60).fit(X, y, weight)
    assert fit.check(X, y).coverage == fit.check().coverage
    with pytest.raises(ValueError, match="give other rows"):
        fit.check(X[:40], y[:40])


def test_without_rows_it_is_not_known_which_are_new():
    X, y = sine_table(300)
    report = small_ensemble(10, 60).fit(X, y).compress().check(X, y)
    assert "not known whether these are new" in report.title
    assert "new" not in report.findings[0].message


# ---------------------------------------------------------------- each finding where it is due


def noisy(n=300, seed=0):
    """Inputs in [-2, 2] and standard normal noise."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, (n, 1)), rng.standard_normal(n)


def test_jump_shows_as_step_or_as_misfit():
    X, e = noisy()
    y = np.sign(X[:, 0]) + 0.1 * e
    assert (
        severities(small_ensemble(10, 100, weight_scale=20.0).fit(X, y).check())["step"]
        == "warning"
    )
    assert severities(small_ensemble(10, 30).fit(X, y).check())["misfit"] == "error"


def test_chirp_shows_as_misfit():
    X, e = noisy()
    report = small_ensemble(10, 60).fit(X, np.sin(6 * X[:, 0] ** 2) + 0.1 * e).check()
    assert severities(report)["misfit"] == "error"
    found = next(f for f in report.findings if f.name == "misfit")
    assert "n_neurons" in found.suggestion


def test_varying_noise_under_one_variance_shows_along_the_input():
    X, e = noisy()
    y = np.sin(X[:, 0]) + 0.3 * np.exp(0.8 * X[:, 0]) * e
    assert severities(small_ensemble(10, 60).fit(X, y).check())["coverage by input"] == "error"
    assert small_ensemble(10, 60, noise="auto").fit(X, y).check().severity == "ok"


def test_a_trend_of_the_noise_shows_in_few_new_rows():
    X, e = noisy(300)
    y = np.sin(X[:, 0]) + 0.3 * np.exp(0.5 * X[:, 0]) * e
    report = small_ensemble(10, 60).fit(X[:200], y[:200]).check(X[200:], y[200:])
    found = next(f for f in report.findings if f.code == "error-scale")
    assert found.severity == "error"
    assert found.statistic > 0.3


def test_noise_that_the_model_expects_and_the_data_lack_shows_by_noise():
    X, e = noisy(600)
    model = small_ensemble(10, 60, noise="auto").fit(
        X, np.sin(X[:, 0]) + 0.3 * np.exp(0.8 * X[:, 0]) * e
    )
    new, e = noisy(600, seed=1)
    report = model.check(new, np.sin(new[:, 0]) + 0.3 * np.exp(-0.8 * new[:, 0]) * e)
    assert severities(report)["coverage by noise"] == "error"


def test_noisy_value_of_a_discrete_input_shows_by_group():
    X, e = noisy()
    code = np.random.default_rng(5).integers(0, 3, 300)
    frame = pd.DataFrame({"x": X[:, 0], "site": code})
    y = np.sin(X[:, 0]) + 0.3 * np.where(code == 2, 3.0, 1.0) * e
    report = small_ensemble(10, 60).fit(frame, y).check()
    assert severities(report)["coverage by group"] == "error"
    found = next(f for f in report.findings if f.name == "coverage by group")
    assert "site: 2" in found.message


def test_too_few_neurons_show_in_units_members_and_bias():
    X, e = noisy()
    found = severities(small_ensemble(10, 5).fit(X, np.sin(3 * X[:, 0]) + 0.1 * e).check())
    assert {"hidden units", "members", "bias", "misfit"} <= set(found)


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda rng: 0.3 * (rng.exponential(size=500) - 1), "predictive distribution"),
        (lambda rng: 0.6 * rng.standard_normal(500), "coverage"),
        (lambda rng: 0.3 * rng.standard_normal(500) + 0.3, "predictive distribution"),
    ],
    ids=["exponential", "twice as much noise", "shift"],
)
def test_data_of_another_distribution_are_an_error(model, draw, name):
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (500, 1))
    assert severities(model.check(X, np.sin(X[:, 0]) + draw(rng)))[name] == "error"


def test_intervals_that_are_too_wide_are_a_warning(model):
    X, y = sine_table(500, seed=3, sd=0.1)
    assert severities(model.check(X, y))["coverage"] == "warning"


def test_points_far_away_are_extrapolation(model):
    X, y = sine_table(500, seed=3)
    report = model.check(X + 1.5, y)
    assert severities(report)["extrapolation"] == "error"
    share = next(f for f in report.findings if f.name == "extrapolation").statistic
    seen = sine_table(300)[0]
    assert share == np.mean(seen.max() + 0.1 * np.ptp(seen) < X + 1.5)


def test_few_rows_are_a_warning_and_fewer_than_degrees_of_freedom_an_error():
    X, e = noisy(60)
    assert severities(small_ensemble(10, 60).fit(X, np.sin(X[:, 0]) + 0.3 * e).check()) == {
        "rows": "warning"
    }
    wide = np.random.default_rng(0).standard_normal((60, 5))
    found = severities(small_ensemble(10, 60, alpha=1e-3).fit(wide, e).check())
    assert found["rows"] == "error"


def test_few_residual_degrees_of_freedom_are_a_warning_with_their_uncertainty():
    X, e = noisy(130)
    fit = small_ensemble(10, 150, alpha=1e-9, weight_scale=20.0).fit(X, np.sin(X[:, 0]) + 0.3 * e)
    left = 130 - fit.dof_
    found = next(f for f in fit.check().findings if f.code == "rows")
    low, high = np.sqrt(left / stats.chi2.ppf([0.975, 0.025], left))
    assert f"{left:.1f} remain to estimate the noise" in found.message
    assert f"{low:.2f} to {high:.3g} times the estimate" in found.message
    assert found.severity != "ok"
    known = small_ensemble(10, 150, alpha=1e-9, weight_scale=20.0, noise_variance=0.09)
    assert "remain" not in str(known.fit(X, np.sin(X[:, 0]) + 0.3 * e).check())


@pytest.mark.parametrize(("noise", "present"), [("auto", 1), ("heteroskedastic", 2)])
def test_the_noise_model_of_the_fit_is_no_suggestion(noise, present):
    X, e = noisy()
    model = small_ensemble(10, 60, noise=noise).fit(X, np.sin(X[:, 0]) + 0.3 * e)
    new, e = noisy(600, seed=1)
    report = model.check(new, np.sin(new[:, 0]) + 0.3 * np.exp(-0.8 * new[:, 0]) * e)
    suggestion = next(f for f in report.findings if f.code == "error-scale").suggestion
    assert "noise='auto'" not in suggestion
    assert ("noise='heteroskedastic'" in suggestion) == (present == 1)


def test_leverage_near_one_is_a_warning():
    X, e = noisy(100)
    X[0] = 50.0
    y = np.sin(X[:, 0]) + 0.3 * e
    found = severities(small_ensemble(10, 20, alpha=1e-8, standardize=False).fit(X, y).check())
    assert found["leverage"] in ("warning", "error")


# ---------------------------------------------------------------- odd fits and odd data


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
@pytest.mark.parametrize("n", [40, 300])
def test_constant_outputs_are_named_and_other_values_an_error(n, value):
    X, _ = noisy(n)
    model = small_ensemble(10, 60).fit(X, np.full(n, value))
    for report in (
        model.check(),
        model.check(X, np.full(n, value)),
        model.check(X[:5], [value] * 5),
    ):
        assert severities(report) == {"target": "warning"}
        assert "y is constant" in next(f for f in report.findings if f.code == "target").message
    assert model.check(X, np.full(n, value + 1)).severity == "error"


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows_give_a_report_without_leaking_warnings(n):
    X, y = sine_table(300)
    model = small_ensemble(10, 20).fit(X[:n], y[:n])
    assert "rows" in severities(model.check())
    report = model.check(X[n:], y[n:])
    assert any(f.code == "prediction-warning" and "too few" in f.message for f in report.findings)
    for one in (*model.check().findings, *report.findings):
        assert np.isfinite(one.statistic)
        assert "nan" not in one.message


def test_one_new_row_is_enough(model):
    assert model.check([[0.5]], [0.5]).severity == "ok"


def test_several_outputs_are_named():
    X, e = noisy()
    y = np.sin(X[:, 0]) + 0.3 * e
    Y = np.column_stack([y, np.sin(X[:, 0]) + 0.3 * np.exp(0.8 * X[:, 0]) * e])
    report = small_ensemble(10, 60).fit(X, Y).check()
    expected = {"coverage by input, output 1": "error", "error scale by input, output 1": "error"}
    assert severities(report) == expected
    assert {r.group.split(",")[0] for r in report.coverage} == {"output 0", "output 1"}
    alone = small_ensemble(10, 60).fit(X, y).check()
    assert [f.severity for f in alone.findings if f.code == "predictive-distribution"] == ["ok"]


def test_rows_of_weight_zero_count_for_nothing():
    X, e = noisy()
    weight = np.random.default_rng(1).uniform(0.2, 4, 300)
    weight[:40] = 0
    y = np.sin(X[:, 0]) + 0.3 * e / np.sqrt(np.where(weight > 0, weight, 1))
    y[:40] += 100
    report = small_ensemble(10, 60).fit(X, y, sample_weight=weight).check()
    assert report.coverage[0].n == 260
    assert report.severity == "ok"
    assert any(r.group == "noise 5/5" for r in report.coverage)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_of_y_change_no_severity(factor):
    X, e = noisy()
    y = np.sin(X[:, 0]) + 0.3 * np.exp(0.8 * X[:, 0]) * e
    one, other = small_ensemble(10, 60).fit(X, y), small_ensemble(10, 60).fit(X, factor * y)
    for data, scaled in (((), ()), ((X + 0.1, y), (X + 0.1, factor * y))):
        ours = [(f.name, f.severity) for f in one.check(*data).findings]
        assert ours == [(f.name, f.severity) for f in other.check(*scaled).findings]


def test_fits_without_rows_require_data():
    X, y = sine_table(300)
    streamed = small_ensemble(10, 60).fit_blocks([(X, y)])
    for model in (
        small_ensemble(10, 60).fit(X, y).compress(),
        streamed,
        small_ensemble(10, 60).partial_fit(X, y),
    ):
        with pytest.raises(ValueError, match="give X and y"):
            model.check()
        assert model.check(*sine_table(300, seed=2)).severity == "ok"


def test_other_kinds_of_fit_and_input():
    X, y = sine_table(300)
    assert small_ensemble(10, 60, noise="heteroskedastic").fit(X, y).check().severity == "ok"
    assert plain_member(60, random_state=0).fit(X, y).check().severity == "ok"
    sparse = scipy.sparse.csr_matrix(X)
    report = small_ensemble(10, 60).fit(sparse, y).check(sparse, y)
    dense = small_ensemble(10, 60).fit(X, y).check(X, y)
    assert [f.severity for f in report.findings] == [f.severity for f in dense.findings]


def test_bad_data_are_refused(model):
    X, y = sine_table(20)
    with pytest.raises(ValueError, match="y is missing"):
        model.check(X)
    with pytest.raises(ValueError, match="X is missing"):
        model.check(y=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.check(X, y[:-1])
    with pytest.raises(ValueError, match="features"):
        model.check(np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="y must have 1 output"):
        model.check(X, np.column_stack([y, y]))
    with pytest.raises(NotFittedError):
        small_ensemble(10, 60).check()


def test_a_check_changes_nothing(model):
    X, y = sine_table(50, seed=4)
    before = model.predict_interval(X)
    assert model.check(X, y) == model.check(X, y)
    assert_array_equal(model.predict_interval(X), before)


def test_warnings_of_other_threads_are_no_findings(model, monkeypatch):
    X, y = sine_table(50, seed=4)
    raised = []

    def warn_elsewhere(fit):
        def run():
            with pytest.raises(DegenerateFitWarning) as caught:  # warnings are errors here
                warn("a warning of another fit", DegenerateFitWarning)
            raised.append(caught.value)

        thread = Thread(target=run)
        thread.start()
        thread.join()
        warn("a warning of this check", DegenerateFitWarning)
        return bias_finding(fit)

    monkeypatch.setattr("ulmus.diagnostics.checks.fit_checks.bias_finding", warn_elsewhere)
    report = model.check(X, y)
    found = [one.message for one in report.findings if one.code == "prediction-warning"]
    assert found == ["a warning of this check."]
    assert len(raised) == 1


# ---------------------------------------------------------------- the report


REPORT = DiagnosticReport(
    "a check.",
    (
        finding("coverage", "ok", 0.9, "nominal.", "not shown", ("not shown",)),
        finding("bias", "warning", 6.0, "6 < 7.", "Biased.", (Setting("n_neurons", 9), "add rows")),
    ),
    (CoverageRow("all", 0.9, 10, 0.9),),
)


def test_report_reads_as_aligned_text_and_as_a_table():
    assert str(REPORT).splitlines() == [
        "[warning] a check.",
        "[ok]      coverage  nominal.",
        "[warning] bias      6 < 7. Biased.",
        "                    -> use n_neurons=9, or add rows.",
    ]
    assert "<td>6 &lt; 7. Biased.</td>" in REPORT._repr_html_()
    assert REPORT.severity == "warning"
    with pytest.raises(FrozenInstanceError):
        REPORT.title = "another"


def test_a_front_end_renders_suggestions_with_its_own_names():
    def option(parameter, value, item=None):
        return f"--{parameter.replace('_', '-')} {value}"

    def nothing(parameter, value, item=None):
        return None

    assert "-> use --n-neurons 9, or add rows." in REPORT.format(option)
    assert "-> add rows." in REPORT.format(nothing)
    assert REPORT.findings[1].to_dict(option)["suggestion"] == "use --n-neurons 9, or add rows."


def test_report_becomes_a_frame_or_a_record_array(monkeypatch):
    names = ["name", "code", "topic", "severity", "statistic", "message", "suggestion"]
    frame = REPORT.to_frame()
    assert list(frame.columns) == names
    assert list(frame.severity) == ["ok", "warning"]
    assert list(frame.topic) == ["calibration", "fit"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    records = REPORT.to_frame()
    assert list(records.dtype.names) == names
    assert list(records.suggestion) == ["", "use n_neurons=9, or add rows."]


def test_every_check_is_registered_with_a_topic(model):
    assert {topic for _, topic in CHECKS.values()} == set(TOPICS)
    with pytest.raises(KeyError, match="unregistered"):
        finding("unregistered", "ok", 0.0, "nothing.")
    X, y = sine_table(200, seed=1)
    weighted = small_ensemble(3, 10).fit(X, y, np.linspace(1, 4, len(y)))
    with pytest.warns(DuplicateRowsWarning):
        repeated = small_ensemble(3, 10).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    ran = [*model.check().findings, *model.check(X, y).findings]
    ran += [*weighted.check().findings, *repeated.check().findings]
    others = {"prediction-warning", "target", "target-scale"}
    assert {one.code for one in ran} == set(CHECKS) - others
    for one in ran:
        assert (one.name, one.topic) == CHECKS[one.code]
        assert one.severity in SEVERITIES
    listed = model.check().about(*TOPICS)
    assert listed == model.check().findings


# ---------------------------------------------------------------- few false alarms


@pytest.mark.slow
def test_calibrated_fits_are_mostly_ok():
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (600, 2))
        y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(600)
        model = small_ensemble(10, 100, random_state=seed).fit(X[:300], y[:300])
        found += [model.check().severity, model.check(X[300:], y[300:]).severity]
    assert found.count("error") <= 2
    assert found.count("ok") >= 34


def test_rows_of_equal_noise_are_one_group_of_the_coverage_by_noise():
    """Their noise without the row itself would order them by the size of their own residuals."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.random(500) < 0.2])
    y = X[:, 0] + np.where(X[:, 1] > 0, 1.5, 0.3) * rng.normal(size=500)
    model = small_ensemble(4, 30, noise="heteroskedastic", weight_scale=1.0).fit(X, y)
    found = next(f for f in model.check().findings if f.code == "coverage-by-noise")
    assert found.severity == "ok"
    assert "noise 1/2" in found.message or "noise 2/2" in found.message


def test_a_category_is_one_group_that_is_named_once():
    values = np.repeat([0.0, 1.0], [50, 30])
    assert [(g.label, len(g.rows)) for g in value_groups(values, "sex=a")] == [("sex: a", 30)]


def test_all_categories_of_a_table_are_groups():
    rng = np.random.default_rng(0)
    kinds = ["ash", "elm", "oak", "yew"]
    X = pd.DataFrame({"kind": rng.choice(kinds, 200), "width": rng.uniform(size=200)})
    y = X.width + (X.kind == "elm") + 0.2 * rng.standard_normal(200)
    model = ELMEnsembleRegressor(3, 20, random_state=0).fit(X, y)
    groups = {row.group for row in model.check().coverage}
    assert {f"kind: {kind}" for kind in kinds} <= groups
    assert "width 5/5" in groups
    assert not [group for group in groups if "=" in group]
