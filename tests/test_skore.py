"""Our scores and checks in reports of skore."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from plain import plain_ensemble
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus import metrics

skore = pytest.importorskip("skore", reason="needs skore")
ulmus_skore = pytest.importorskip("ulmus.skore", reason="needs skore")

NAMES = ["interval_coverage", "interval_width", "interval_score", "crps", "log_score"]
SKORES_OWN = [f"SKD{i:03}" for i in range(30)]

# skore starts and ends plots, progress bars and pools of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore:::skore"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning"),
]


def small(**parameters):
    return plain_ensemble(4, 30, **{"random_state": 0} | parameters)


@pytest.fixture(scope="module")
def data():
    """Noise that grows with the second input, which one variance cannot follow."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (500, 2))
    return X, np.sin(X[:, 0]) + np.exp(X[:, 1]) * rng.standard_normal(500) / 2


def ours(report):
    """Our rows of the summary of checks, by code."""
    frame = report.checks.summarize(ignore=SKORES_OWN).frame()
    return frame.set_index("code").loc[["ULM001", "ULM002"]]


def test_metrics_are_those_of_the_model(data):
    report = skore.evaluate(small(), *data, splitter=0.3)
    ulmus_skore.add_metrics(report, confidence_level=0.8)
    model, X, y = report.estimator_, report.X_test, report.y_test
    intervals, law = model.predict_interval(X, 0.8), model.predict_dist(X)
    # The integral of the CRPS on a fine grid.
    t = np.linspace(y.min() - 20, y.max() + 20, 20_001)
    squares = (law.cdf(t[:, None]) - (y <= t[:, None])) ** 2
    expected = [
        metrics.coverage(y, intervals),
        metrics.mean_width(intervals),
        metrics.interval_score(y, intervals, 0.8),
        np.trapezoid(squares.mean(axis=1), t),
        np.mean(np.log(law.pdf(y))),
    ]
    found = [report.metrics.get(name) for name in NAMES]
    assert_allclose(found, expected, rtol=2e-3)
    frame = report.metrics.summarize().frame()
    assert set(NAMES) <= set(frame.index)


def test_a_pipeline_and_several_outputs(data):
    X, y = data
    both = np.column_stack([y, y**2])
    report = skore.evaluate(make_pipeline(StandardScaler(), small()), X, both, splitter=0.3)
    ulmus_skore.add_metrics(report)
    model, Z = report.estimator_[-1], report.estimator_[:-1].transform(report.X_test)
    intervals, law = model.predict_interval(Z, 0.95), model.predict_dist(Z)
    found = report.metrics.get("interval_coverage"), report.metrics.get("log_score")
    expected = metrics.coverage(report.y_test, intervals), np.mean(law.logpdf(report.y_test))
    assert_allclose(found, expected)
    assert np.isfinite(report.metrics.get("crps"))


def test_other_models_of_a_comparison_have_no_error_bars(data):
    report = skore.evaluate({"elm": small(), "ridge": Ridge()}, *data, splitter=0.3)
    ulmus_skore.add_metrics(report)
    ulmus_skore.add_checks(report)
    frame = report.metrics.summarize().frame().loc[NAMES]
    assert np.isfinite(frame["elm"]).all()
    assert frame["ridge"].isna().all()
    assert set(ours(report).loc["ULM001", "explanation"]) == {"elm"}
    alone = skore.evaluate(Ridge(), *data, splitter=0.3)
    ulmus_skore.add_checks(alone)
    assert set(ours(alone).section) == {"not_applicable"}


def test_checks_hold_what_check_finds(data):
    report = skore.evaluate(small(), *data, splitter=0.3)
    ulmus_skore.add_checks(report)
    found = report.estimator_.check(report.X_test, report.y_test).findings
    red = [f for f in found if f.light == "red"]
    assert red
    rows = ours(report)
    assert rows.loc["ULM001", "section"] == "issue"
    for finding in red:
        assert finding.says in rows.loc["ULM001", "explanation"]
        assert finding.remedy in rows.loc["ULM001", "explanation"]
    yellow = [f.says for f in found if f.light == "yellow"]
    assert (rows.loc["ULM002", "section"] == "tip") == bool(yellow)


def test_an_honest_model_passes():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (500, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(500)
    report = skore.evaluate(small(), X, y, splitter=0.3)
    ulmus_skore.add_checks(report)
    assert ours(report).loc["ULM001", "section"] == "passed"


def test_splits_of_a_cross_validation_are_named(data):
    report = skore.evaluate(small(), *data, splitter=3)
    ulmus_skore.add_metrics(report)
    ulmus_skore.add_checks(report)
    assert np.isfinite(report.metrics.summarize().frame().loc[NAMES]).all(axis=None)
    assert "Split 2: " in ours(report).loc["ULM001", "explanation"]


def test_checks_are_slow_and_metrics_can_be_pickled(data):
    report = skore.evaluate(small(), *data, splitter=0.3)
    ulmus_skore.add_metrics(report)
    ulmus_skore.add_checks(report)
    fast = report.checks.summarize(ignore=SKORES_OWN, fast_mode=True).frame(section="skipped")
    assert {"ULM001", "ULM002"} <= set(fast.code)
    again = pickle.loads(pickle.dumps(ulmus_skore.interval_coverage))
    X, y = report.X_test, report.y_test
    assert again(report.estimator_, X, y, confidence_level=0.9) > 0.8


def test_a_level_that_is_none(data):
    report = skore.evaluate(small(), *data, splitter=0.3)
    with pytest.raises(ValueError, match="confidence_level"):
        ulmus_skore.add_metrics(report, confidence_level=95)
