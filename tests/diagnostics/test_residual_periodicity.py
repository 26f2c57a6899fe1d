"""A season that the model does not have is found, and noise seldom has one."""

import numpy as np
import pandas as pd
import pytest
from models import autoregressive, small_ensemble

from ulmus.diagnostics.checks.residual_periodicity import periodicity_findings
from ulmus.noise import AR1, Clustered, Exponential, NeweyWest

pytestmark = [
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.CorrelatedErrorsWarning"),
]
MONTH = 2 * np.pi / 12


def monthly_table(n=240, seed=0, season=1.0, phi=0.5):
    """Two inputs, and y with a season of 12 rows and autoregressive noise."""
    rng = np.random.default_rng(seed)
    X, t = rng.uniform(-1, 1, (n, 2)), np.arange(n)
    noise = 0.2 * autoregressive(rng.standard_normal(n), phi)
    return X, np.sin(2 * X[:, 0]) + season * np.sin(MONTH * t) + noise


def series_ensemble(noise):
    return small_ensemble(3, 20, noise=noise, weight_scale=2.0)


def finding(model):
    (found,) = periodicity_findings(model.fitted_, 0)
    return found


@pytest.mark.parametrize(
    "noise", ["homoskedastic", "auto", AR1(), NeweyWest()], ids=lambda n: type(n).__name__
)
def test_a_season_that_is_no_input(noise):
    model = series_ensemble(noise).fit(*monthly_table())
    found = next(f for f in model.check().findings if f.code == "residual-periodicity")
    assert found.severity == "error"
    assert "repeat every 12 rows" in found.message
    assert "at lag 12" in found.message
    assert "sine and cosine" in found.suggestion
    assert found.code in {f.code for f in model.summary().warnings}


def test_the_correlation_is_that_of_the_residuals():
    model = series_ensemble(AR1()).fit(*monthly_table())
    found, e = finding(model), model.loo_residuals_ - np.mean(model.loo_residuals_)
    assert (
        f"(correlation {np.mean(e[12:] * e[:-12]) / np.mean(e**2):.2f} at lag 12" in found.message
    )
    assert "decorrelated by the estimated noise covariance)" in found.message


@pytest.mark.parametrize("noise", ["homoskedastic", AR1()], ids=["independent", "AR1"])
def test_a_season_that_is_an_input(noise):
    X, y = monthly_table(phi=0.0 if noise == "homoskedastic" else 0.5)
    t = np.arange(len(y))
    X = np.column_stack([X, np.sin(MONTH * t), np.cos(MONTH * t)])
    assert finding(series_ensemble(noise).fit(X, y)).severity == "ok"


def test_periods_are_also_in_units_of_time():
    X, y = monthly_table()
    dates = pd.date_range("2000-01-01", periods=len(y), freq="MS")
    order = np.random.default_rng(1).permutation(len(y))
    model = series_ensemble(AR1()).fit(X[order], y[order], time=dates[order])
    assert "repeat every 12 rows (372 units of time)" in finding(model).message


def test_stations_that_share_a_season():
    tables = [monthly_table(120, seed=seed) for seed in range(4)]
    X, y = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    time, groups = np.tile(np.arange(120), 4), np.repeat(np.arange(4), 120)
    model = series_ensemble(AR1() * Clustered()).fit(X, y, time=time, groups=groups)
    assert "every 12 steps of time" in finding(model).message


def test_a_season_in_irregular_times():
    rng = np.random.default_rng(0)
    time, X = np.sort(rng.uniform(0, 40, 240)), rng.uniform(-1, 1, (240, 2))
    y = np.sin(2 * X[:, 0]) + np.sin(2 * np.pi * time / 2.5) + 0.3 * rng.standard_normal(240)
    found = finding(series_ensemble(AR1()).fit(X, y, time=time))
    assert found.message.startswith("a sine with a period of 2.49 units of time explains")
    assert found.severity == "error"


def test_rows_without_order_and_without_noise():
    X, y = monthly_table()
    spatial = series_ensemble(Exponential()).fit(X, y, coords=X)
    assert periodicity_findings(spatial.fitted_, 0) == []
    assert finding(series_ensemble("auto").fit(X, np.ones(len(y)))).severity == "ok"
    assert "not tested" in finding(series_ensemble("auto").fit(X[:20], y[:20])).message
    assert periodicity_findings(series_ensemble("auto").fit(X, y).compress().fitted_, 0) == []


def test_rows_of_weight_zero_are_gaps():
    X, y = monthly_table()
    weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)
    for noise in ("homoskedastic", AR1()):
        model = series_ensemble(noise).fit(X, np.where(weight > 0, y, 1e3), weight)
        assert "every 12 rows" in finding(model).message


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("phi", "noise"),
    [(0.0, "homoskedastic"), (0.0, AR1()), (0.5, AR1()), (0.9, AR1())],
    ids=["white", "white, AR1", "AR1(.5)", "AR1(.9)"],
)
def test_fits_without_a_season_seldom_warn(phi, noise):
    warned = 0
    for seed in range(200):
        X, y = monthly_table(120, seed, season=0.0, phi=phi)
        warned += finding(series_ensemble(noise).fit(X, y)).severity != "ok"
    assert warned <= 5  # less than 3 %


def test_a_significant_period_that_explains_little_is_named_but_no_warning():
    rng, t = np.random.default_rng(0), np.arange(3000)
    X = rng.normal(size=(3000, 1))
    y = X[:, 0] + 0.35 * np.sin(2 * np.pi * t / 12) + rng.normal(size=3000)
    model = series_ensemble("homoskedastic").fit(X, y)
    found = finding(model)
    assert found.severity == "ok"
    assert 0.02 < found.statistic < 0.1
    assert "significant but small" in found.message
    assert "12" in found.message
    assert "no period" not in found.message
