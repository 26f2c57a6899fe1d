"""Residual correlation in ``check``, ``summary`` and the report."""

import re
from html import unescape
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from models import autoregressive, plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.noise_covariance.diagnostics import correlogram, serial_correlation
from ulmus.core.noise_covariance.locations import Locations
from ulmus.diagnostics.calibration_data import n_calibration_residuals
from ulmus.diagnostics.correlogram import residual_correlation
from ulmus.diagnostics.coverage import CoverageTest
from ulmus.noise import AR1, Clustered, Conley, Exponential, NeweyWest

pytestmark = [
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.CorrelatedErrorsWarning"),
]
N = 250


def correlated_frame(phi=0.0, reach=0.0, seed=0):
    """Inputs and outputs whose noise is an autoregression, or exponential in space."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=["x", "z"])
    e = rng.standard_normal(N)
    if reach:
        distance = np.hypot(*(X[c].to_numpy()[:, None] - X[c].to_numpy() for c in X))
        e = np.linalg.cholesky(np.exp(-distance / reach) + 1e-9 * np.eye(N)) @ e
    return X, np.sin(2 * X["x"].to_numpy()) + 0.5 * autoregressive(e, phi)


def fit_ensemble(X, y, noise="homoskedastic", **locations):
    return plain_ensemble(4, 20, noise=noise, weight_scale=2.0, random_state=0).fit(
        X, y, **locations
    )


def finding(model, name="residual correlation"):
    return next(f for f in model.check().findings if f.name == name)


# ---------------------------------------------------------------- the correlogram


def test_the_correlogram_is_a_mean_over_pairs_of_a_group():
    rng = np.random.default_rng(0)
    e, groups, time = rng.standard_normal(40), rng.integers(0, 3, 40), rng.permutation(40) / 7
    c = e - e.mean()
    found = correlogram(e, Locations(time, groups=groups), 3)
    for lag in (1, 2, 3):
        products = []
        for g in range(3):
            rows = sorted(np.flatnonzero(groups == g), key=lambda i: time[i])
            products += [c[i] * c[j] for i, j in zip(rows, rows[lag:], strict=False)]
        assert_allclose(found.correlations[lag - 1], np.mean(products) / np.mean(c**2))
        scale = np.sqrt(np.sum(np.square(products))) / len(products) / np.mean(c**2)
        assert_allclose(found.deviations[lag - 1], scale)


def test_it_begins_with_the_serial_correlation_and_ends_with_the_groups():
    e = np.random.default_rng(1).standard_normal(30)
    locations = Locations(groups=np.arange(30) // 4)
    found, first = correlogram(e, locations, 9), serial_correlation(e, locations)
    assert_array_equal(found.lags, [1, 2, 3])
    assert_allclose(found.correlations[0], first.correlation)
    assert_allclose(found.correlations[0] / found.deviations[0], first.z)


def test_residuals_that_are_all_the_same():
    found = correlogram(np.ones(12), Locations(n=12), 3)
    assert_array_equal(found.correlations, 0)
    assert_array_equal(found.deviations, 0)


def test_chance_leaves_one_lag_in_twenty_outside_the_band():
    outside = []
    for seed in range(200):
        e = np.random.default_rng(seed).standard_t(4, 120)
        found = correlogram(e, Locations(n=120), 10)
        outside.append(np.abs(found.correlations) > 1.96 * found.deviations)
    assert 0.035 < np.mean(outside) < 0.065


# ---------------------------------------------------------------- check


@pytest.mark.parametrize(("phi", "severity"), [(0.0, "ok"), (0.25, "warning"), (0.8, "error")])
def test_rows_taken_as_independent(phi, severity):
    found = finding(fit_ensemble(*correlated_frame(phi)))
    assert found.severity == severity
    assert "successive rows" in found.message
    assert ("noise=AR1()" in found.suggestion) == (severity != "ok")


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (AR1(), "decays along time over"),
        (NeweyWest(bandwidth=7), "any correlation up to a distance of 7"),
        (NeweyWest(bandwidth=7) * Clustered(), "a distance of 7 within 25 groups"),
        (Clustered(), "any correlation within 25 groups"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_correlated_noise_that_is_modelled_is_ok(noise, message):
    groups = {"groups": np.arange(N) // 10} if "groups" in noise.names() else {}
    found = finding(fit_ensemble(*correlated_frame(0.8), noise, **groups))
    assert found.severity == "ok"
    assert "error bars account for it" in found.message
    assert message in found.message


def test_neighbours_in_space():
    X, y = correlated_frame(reach=0.3)
    for noise in (Exponential(("x", "z")), Conley(("x", "z"), cutoff=0.5)):
        found = finding(fit_ensemble(X, y, noise))
        assert found.severity == "ok"
        assert "nearest neighbours" in found.message
        assert "error bars account for it" in found.message


def test_noise_of_the_wrong_axis_is_noticed():
    # Rows along time, and noise that is correlated in space.
    X, y = correlated_frame(0.8)
    model = fit_ensemble(X, y, Exponential(("x", "z")))
    assert model.noise_covariance_.independent
    found = finding(model)
    assert found.severity == "warning"
    assert "AR1()" in found.suggestion
    calm = finding(fit_ensemble(*correlated_frame(), Exponential(("x", "z"))))
    assert calm.severity == "ok"


def test_no_noise_and_no_rows():
    X, y = correlated_frame()
    assert finding(fit_ensemble(X, np.ones(N))).message.startswith("errors are at round-off level")
    small = fit_ensemble(X, y).compress()
    assert not [f for f in small.check(X, y).findings if f.code == "residual-correlation"]


def test_each_output_is_named():
    X, y = correlated_frame(0.8)
    model = fit_ensemble(X, np.stack([y, np.random.default_rng(2).standard_normal(N)], axis=1))
    assert finding(model, "residual correlation, output 0").severity == "error"
    assert finding(model, "residual correlation, output 1").severity == "ok"


# ---------------------------------------------------------------- summary


def lines(model):
    """Entries about the noise covariance, unwrapped."""
    unwrapped = re.sub(r"\n +", " ", str(model.summary()))
    return [line for line in unwrapped.splitlines() if line.startswith("noise covariance")]


def test_the_summary_has_a_line_with_parameters_and_their_errors():
    X, y = correlated_frame(0.8)
    model = fit_ensemble(X, y, AR1())
    scale, error = model.noise_covariance_.values[0], model.noise_covariance_.standard_errors[0]
    (line,) = lines(model)
    assert line.startswith("noise covariance ")
    assert f"along time over {scale:.3g} units of time (standard error {error:.2g})" in line
    assert model.summary().to_dict()["noise_covariance"] in line
    assert "independent errors" in lines(fit_ensemble(*correlated_frame(), AR1()))[0]
    assert not lines(fit_ensemble(*correlated_frame()))
    two = fit_ensemble(X, np.stack([y, y], axis=1), AR1())
    assert len([line for line in lines(two) if line.startswith("noise covariance, output")]) == 2


def test_the_share_of_a_nugget_is_reported():
    X, y = correlated_frame(0.95)
    y = y + 0.3 * np.random.default_rng(5).standard_normal(N)
    words = fit_ensemble(X, y, AR1()).summary().noise_covariance
    assert "(standard error" in words.split("of the noise")[0]
    assert words.endswith("the remainder is uncorrelated")


# ---------------------------------------------------------------- the report


@pytest.fixture(scope="module")
def report():
    """Function that writes a report and returns its page."""
    pytest.importorskip("jinja2", reason="reports need jinja2")
    from ulmus.report import report_html

    return report_html


def test_the_correlogram_is_that_of_the_leave_one_out_residuals():
    X, y = correlated_frame(0.8)
    model = fit_ensemble(X, y)
    found = residual_correlation(model.fitted_)
    assert_array_equal(found.serial.lags, np.arange(1, 25))
    assert found.serial.correlations[0] > 0.6
    expected = correlogram(model.loo_residuals_, Locations(n=N), 24)
    assert_allclose(found.serial.correlations, expected.correlations, rtol=1e-8)
    assert_allclose(found.serial.deviations, expected.deviations, rtol=1e-8)
    assert found.spatial is None
    assert all(a >= b - 0.15 for a, b in pairwise(found.serial.correlations[:6]))


def test_the_report_draws_the_correlogram(report):
    X, y = correlated_frame(0.8)
    page = report(fit_ensemble(X, y), X, y)
    assert 'id="figure-correlogram"' in page
    assert 'id="figure-variogram"' not in page
    checks = page.split('id="checks"')[1].split("</table>")[0]
    assert "successive rows have correlation 0." in checks
    assert "✗ error" in checks
    assert "residual correlation:</span>" in page.split("</section>")[0]


def test_the_report_draws_a_variogram_where_coordinates_are_known(report):
    X, y = correlated_frame(reach=0.3)
    model = fit_ensemble(X, y, Exponential(("x", "z")))
    found = residual_correlation(model.fitted_).spatial
    assert found.semivariances[0] < 0.7 * found.variance
    page = report(model, X, y)
    assert 'id="figure-variogram"' in page
    assert "decays in space" in page
    assert "from ulmus.noise import Exponential" in page


def test_the_code_of_a_report_names_the_locations_passed_to_fit(report):
    X, y = correlated_frame(0.8)
    model = fit_ensemble(X, y, AR1() * Clustered(), time=np.arange(N), groups=np.arange(N) // 50)
    code = unescape(report(model, X, y))
    assert "from ulmus.noise import AR1, Within" in code
    assert "model.fit(X, y, time=table['time'], groups=table['groups'])" in code


def test_without_rows_the_part_is_marked_as_empty(report):
    X, y = correlated_frame(0.8)
    page = report(fit_ensemble(X, y).compress(), X, y)
    assert 'id="figure-correlogram"' not in page
    assert "residual correlation requires the training rows" in page


# ---------------------------------------------------------------- effective rows


@pytest.mark.parametrize("leave_one_out", [True, False])
def test_a_group_of_correlated_rows_is_weaker_evidence(leave_one_out):
    covered = np.ones((1, 4, 300), dtype=bool)
    covered[0, :, ::3] = False  # 20 of the first 60 rows
    covered[0, :, 60:] = np.arange(240) % 15 > 0
    data = SimpleNamespace(
        leave_one_out=leave_one_out,
        covered=covered,
        all_covered=None,
        n_rows=300,
        randomised=np.array([False]),
    )
    severities = [
        CoverageTest(data, 280.0, share)(covered[0, 2, :60], 2, 0, 5).severity
        for share in (1.0, 0.1)
    ]
    assert severities == ["error", "ok"]


def test_calibration_residuals_are_the_degrees_of_freedom_of_the_noise():
    X, y = correlated_frame(phi=0.8)
    fit = fit_ensemble(X, y, AR1()).fitted_
    assert fit.noise_dof[0] < 0.4 * N
    assert_allclose(n_calibration_residuals(fit), fit.noise_dof)
    alone = fit_ensemble(X, y).fitted_
    assert_allclose(n_calibration_residuals(alone), N - alone.gamma)
