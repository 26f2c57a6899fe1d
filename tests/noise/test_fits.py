"""Fits with correlated noise, against textbook programs and against independent noise."""

import numpy as np
import pytest
import statsmodels.api as sm
from models import plain_ensemble as unseeded_ensemble
from models import plain_member

import ulmus
from ulmus.exceptions import CorrelatedErrorsWarning
from ulmus.noise import AR1, Clustered, Conley, Exponential, Matern, NeweyWest


def plain_ensemble(*sizes, **parameters):
    """An ensemble of the same hidden layers in every call."""
    return unseeded_ensemble(*sizes, random_state=0, **parameters)


def autocorrelated_sine(n=120, phi=0.7, seed=0, sd=0.3):
    """Times, inputs and outputs with autocorrelated noise."""
    rng = np.random.default_rng(seed)
    noise = np.zeros(n)
    for i in range(n):
        before = noise[i - 1] if i else 0.0
        noise[i] = phi * before + np.sqrt(1 - phi**2) * rng.standard_normal()
    t = np.arange(n)
    return t, t[:, None] / n, np.sin(6 * t / n) + sd * noise


def locations(n=150, seed=0):
    """Coordinates, inputs and outputs."""
    rng = np.random.default_rng(seed)
    coords = rng.random((n, 2))
    return coords, coords, np.sin(4 * coords[:, 0]) + 0.2 * rng.standard_normal(n)


def least_squares(X, y, noise, hc="HC0", **where):
    """One member without ridge, and its hidden features."""
    model = plain_member(5, alpha=0.0, noise=noise, hc=hc, weight_scale=4.0, random_state=0).fit(
        X, y, **where
    )
    layer = np.tanh if model.activation == "tanh" else lambda a: 1 / (1 + np.exp(-a))
    inputs = (X - X.mean(axis=0)) / X.std(axis=0) if model.standardize else X
    H = layer(inputs @ model.hidden_weights_[0] + model.hidden_biases_[0])
    # An orthonormal basis of the same columns, so that the other program has no lost digits.
    return model, np.linalg.qr(np.column_stack([np.ones(len(X)), H]))[0]


@pytest.mark.parametrize("lags", [0, 3, 11])
def test_one_member_by_least_squares_has_the_newey_west_errors_of_statsmodels(lags):
    _, X, y = autocorrelated_sine()
    model, H = least_squares(X, y, NeweyWest(bandwidth=lags + 1))
    theirs = sm.OLS(y, H).fit(cov_type="HAC", cov_kwds={"maxlags": lags})
    wanted = np.einsum("ij,jk,ik->i", H, theirs.cov_params(), H)
    np.testing.assert_allclose(model.predict_var(X, component="model"), wanted, rtol=1e-8)


@pytest.mark.parametrize("correction", [False, True])
def test_one_member_by_least_squares_has_the_cluster_errors_of_statsmodels(correction):
    _, X, y = autocorrelated_sine()
    groups = np.random.default_rng(1).integers(0, 9, len(y))
    model, H = least_squares(X, y, Clustered(), hc="HC0", groups=groups)
    theirs = sm.OLS(y, H).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": correction}
    )
    wanted = np.einsum("ij,jk,ik->i", H, theirs.cov_params(), H)
    n, k = H.shape
    factor = model.noise_covariance_.small_sample * n / (n - k) if correction else 1.0
    ours = factor * model.predict_var(X, component="model")
    np.testing.assert_allclose(ours, wanted, rtol=1e-8)


def test_cluster_errors_of_hc2_residuals_are_corrected_for_few_clusters():
    _, X, y = autocorrelated_sine()
    n, G = len(y), 9
    groups = np.random.default_rng(1).integers(0, G, n)
    model, H = least_squares(X, y, Clustered(), hc="HC2", groups=groups)
    r = (y - H @ (H.T @ y)) / np.sqrt(1 - np.sum(H**2, axis=1))
    scores = np.stack([r[groups == g] @ H[groups == g] for g in range(G)])
    wanted = G / (G - 1) * (n - 1) / n * np.sum((H @ scores.T) ** 2, axis=1)
    np.testing.assert_allclose(model.predict_var(X, component="model"), wanted, rtol=1e-8)


def test_a_fitted_autoregression_gives_the_sandwich_of_its_covariance():
    _, X, y = autocorrelated_sine()
    model, H = least_squares(X, y, AR1(nugget=False))
    found = model.noise_covariance_
    distance = np.abs(np.subtract.outer(np.arange(len(y)), np.arange(len(y))))
    Sigma = found.sill * np.exp(-distance / found.scales[0])
    bread = np.linalg.pinv(H)
    wanted = np.einsum("ij,jk,ik->i", H, bread @ Sigma @ bread.T, H)
    np.testing.assert_allclose(model.predict_var(X, component="model"), wanted, rtol=1e-7)


def test_products_of_single_rows_are_the_estimate_s2():
    _, X, y = autocorrelated_sine()
    with pytest.warns(CorrelatedErrorsWarning, match="AR1"):
        alone = plain_ensemble(5, 20, alpha=0.01, noise="heteroskedastic", hc="pooled").fit(X, y)
    for noise in (NeweyWest(bandwidth=1), Conley(cutoff=0.5)):
        where = {"coords": np.arange(len(y))[:, None]} if isinstance(noise, Conley) else {}
        model = plain_ensemble(5, 20, alpha=0.01, noise=noise).fit(X, y, **where)
        got, wanted = (m.predict_var(X, component="model") for m in (model, alone))
        np.testing.assert_allclose(got, wanted, rtol=1e-8)


def test_noise_that_is_found_independent_costs_nothing():
    rng = np.random.default_rng(3)
    X = np.arange(150)[:, None] / 150
    y = np.sin(6 * X[:, 0]) + 0.3 * rng.standard_normal(150)
    alone = plain_ensemble(5, 30, alpha=0.01, noise="homoskedastic").fit(X, y)
    model = plain_ensemble(5, 30, alpha=0.01, noise=AR1()).fit(X, y)
    assert model.noise_covariance_.independent
    for kind in ({"component": "model"}, {"component": "model", "estimate": "BR"}):
        wanted = alone.predict_var(X, component="model")
        np.testing.assert_allclose(model.predict_var(X, **kind), wanted, rtol=1e-8)


@pytest.mark.parametrize("wide", [False, True], ids=["through features", "through rows"])
def test_both_forms_agree_with_matrices_written_out(wide):
    _, X, y = autocorrelated_sine(n=100)
    N = 40 if wide else 10
    model = plain_ensemble(3, N, alpha=0.01, noise=AR1()).fit(X, y)
    found, Z = model.noise_covariance_, smoother_rows(model, X)
    distance = np.abs(np.subtract.outer(np.arange(100), np.arange(100)))
    Sigma = found.structured_variance * np.exp(-distance / found.scales[0])
    Sigma += found.nugget_variance * np.eye(100)
    pairs = [z @ Sigma @ w.T for i, z in enumerate(Z) for j, w in enumerate(Z) if i != j]
    members = np.stack([z @ (y - y.mean()) for z in Z])
    spread = np.var(members, axis=0, ddof=1) / 3
    wanted = np.mean([np.diag(pair) for pair in pairs], axis=0) + spread
    np.testing.assert_allclose(model.predict_var(X, component="model"), wanted, rtol=1e-7)


def smoother_rows(model, X):
    """Rows z of each member's smoother at the training points, by explicit inverses, (M, n, n)."""
    inputs = (X - X.mean(axis=0)) / X.std(axis=0) if model.standardize else X
    n, out = len(X), []
    for W, b in zip(model.hidden_weights_, model.hidden_biases_, strict=True):
        act = np.tanh if model.activation == "tanh" else lambda a: 1 / (1 + np.exp(-a))
        H = act(inputs @ W + b)
        C = H - H.mean(axis=0) if model.fit_intercept else H
        P = C @ np.linalg.inv(C.T @ C + model.alpha_ * np.eye(C.shape[1])) @ C.T
        out.append(P + (1 / n if model.fit_intercept else 0.0))
    return np.stack(out)


def test_rows_in_another_order_have_the_same_error_bars():
    t, X, y = autocorrelated_sine(n=100)
    shuffled = np.random.default_rng(1).permutation(100)
    model = plain_ensemble(4, 20, noise=AR1()).fit(X, y, time=t)
    other = plain_ensemble(4, 20, noise=AR1()).fit(X[shuffled], y[shuffled], time=t[shuffled])
    np.testing.assert_allclose(
        other.predict_var(X, component="model"), model.predict_var(X, component="model"), rtol=1e-4
    )
    np.testing.assert_allclose(other.loo_residuals_, model.loo_residuals_[shuffled], rtol=1e-6)


def test_series_of_a_panel_are_independent_of_each_other():
    t, X, y = autocorrelated_sine(n=120)
    groups = np.repeat([0, 1, 2], 40)
    within = plain_ensemble(4, 20, alpha=0.01, noise=AR1() * Clustered()).fit(
        X, y, time=t, groups=groups
    )
    plain = plain_ensemble(4, 20, alpha=0.01, noise=AR1()).fit(X, y, time=t, groups=groups)
    np.testing.assert_allclose(
        within.predict_var(X, component="model"), plain.predict_var(X, component="model")
    )
    together = plain_ensemble(4, 20, alpha=0.01, noise=AR1()).fit(X, y, time=t)
    assert within.noise_covariance_.log_likelihood != together.noise_covariance_.log_likelihood


@pytest.mark.parametrize(
    "noise", [Exponential(), Matern(nu=1.5), Conley(cutoff=0.2), Exponential(nugget=False)]
)
def test_noise_in_space_gives_finite_ordered_error_bars(noise):
    coords, X, y = locations()
    model = plain_ensemble(4, 30, noise=noise).fit(X, y, coords=coords)
    bounds = model.predict_interval(X, [0.5, 0.9])
    assert np.all(np.isfinite(bounds))
    assert np.all(np.diff(bounds[:, :, 0], axis=1) > 0)
    assert np.all(bounds[:, 0, 1] <= bounds[:, 0, 0])


def test_units_of_time_space_and_outputs_do_not_matter():
    t, X, y = autocorrelated_sine(n=100)
    model = plain_ensemble(4, 20, noise=AR1()).fit(X, y, time=t)
    other = plain_ensemble(4, 20, noise=AR1()).fit(X, 1000 * y, time=3600.0 * t + 1e6)
    got, wanted = (m.predict_var(X, component="model") for m in (other, model))
    np.testing.assert_allclose(got, 1e6 * wanted, rtol=1e-4)
    assert other.noise_covariance_.scales[0] == pytest.approx(
        3600 * model.noise_covariance_.scales[0], rel=1e-3
    )
    assert other.noise_covariance_.sill == pytest.approx(
        1e6 * model.noise_covariance_.sill, rel=1e-3
    )


def test_averages_over_a_period_are_wider_than_for_independent_noise():
    _, X, y = autocorrelated_sine(phi=0.8)
    model = plain_ensemble(5, 30, noise=AR1()).fit(X, y)
    with pytest.warns(CorrelatedErrorsWarning, match="AR1"):
        alone = plain_ensemble(5, 30, alpha=model.alpha_, noise="homoskedastic").fit(X, y)
    assert model.average(X).std_error[0] > 1.8 * alone.average(X).std_error[0]


def test_a_compressed_and_a_stored_fit_keep_their_error_bars(tmp_path):
    _, X, y = autocorrelated_sine()
    model = plain_ensemble(4, 30, noise=AR1()).fit(X, y)
    wanted = model.predict_var(X[:5], component="model")
    np.testing.assert_allclose(model.compress().predict_var(X[:5], component="model"), wanted)
    fresh = plain_ensemble(4, 30, noise=AR1()).fit(X, y)
    fresh.save(tmp_path / "model.ulmus")
    loaded = ulmus.load(tmp_path / "model.ulmus")
    np.testing.assert_array_equal(loaded.predict_var(X[:5], component="model"), wanted)
    assert loaded.noise == AR1()
    assert str(loaded.noise_covariance_) == str(fresh.noise_covariance_)


@pytest.mark.parametrize(
    ("noise", "where", "message"),
    [
        ("auto", {"time": np.arange(60)}, "is independent"),
        (Exponential(), {}, "requires coords"),
        (Clustered(), {}, "requires groups"),
        (Clustered(), {"groups": np.zeros(60)}, "at least 5"),
        (AR1(), {"coords": np.ones((60, 2))}, "is not used by"),
        (AR1(time="day"), {}, "no column 'day'"),
        (AR1(), {"time": np.r_[np.nan, np.arange(59)]}, "time of row 0 is nan"),
        (AR1(), {"time": np.arange(59)}, "59"),
        (AR1(), {"time": np.zeros(60)}, "at least 5"),
        (AR1, {}, "is a class"),
        (Conley(), {"coords": np.ones((60, 2))}, "cutoff"),
        (Conley(cutoff=1.0), {"coords": np.random.default_rng(0).random((60, 4))}, "spherical"),
        (NeweyWest("uniform"), {}, "'bartlett' or 'qs'"),
        (NeweyWest(bandwidth=-1), {}, "bandwidth"),
        ("AR1", {}, "noise must be one of"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_suggestion(noise, where, message):
    _, X, y = autocorrelated_sine(n=60)
    with pytest.raises(ValueError, match=message):
        plain_ensemble(4, 20, noise=noise).fit(X, y, **where)


def test_undefined_products_and_sums_raise():
    with pytest.raises(ValueError, match="only Clustered"):
        AR1() * Exponential()
    with pytest.raises(ValueError, match="covariances that can be added"):
        AR1() + NeweyWest()
    with pytest.raises(ValueError, match="within groups"):
        Exponential() * Clustered()
    with pytest.raises(ValueError, match="same axis"):
        (Exponential() + Matern()).structure()


def test_a_sum_of_noise_in_time_and_in_space_is_fitted():
    t, _, _ = autocorrelated_sine(n=80)
    coords, X, y = locations(n=80)
    model = plain_ensemble(4, 15, noise=AR1() + Exponential()).fit(X, y, time=t, coords=coords)
    assert model.noise_covariance_.names[:2] == ("time scale", "space scale")
    assert np.all(model.predict_var(X, component="model") > 0)


def test_rows_that_turn_out_to_be_independent_are_held_out_one_by_one():
    _, X, y = autocorrelated_sine(phi=0.0)
    assumed = plain_ensemble(5, 40, noise=AR1()).fit(X, y)
    plain = plain_ensemble(5, 40, noise="homoskedastic").fit(X, y)
    assert assumed.noise_covariance_.independent
    np.testing.assert_allclose(assumed.alpha_, plain.alpha_, rtol=1e-12)
    for ask in ("predict", "predict_interval", "predict_var"):
        pair = [getattr(model, ask)(X) for model in (assumed, plain)]
        np.testing.assert_allclose(*pair, rtol=2e-5)
    np.testing.assert_allclose(assumed.loo_residuals_, plain.loo_residuals_, rtol=2e-5)
    streamed = plain_ensemble(5, 40, noise=AR1()).fit_blocks([(X[:50], y[:50]), (X[50:], y[50:])])
    np.testing.assert_allclose(streamed.alpha_, plain.alpha_, rtol=2e-5)


def test_blocks_of_independent_rows_are_held_out_where_requested_by_name():
    _, X, y = autocorrelated_sine(phi=0.0)
    asked = plain_ensemble(5, 40, noise=AR1(), alpha="block-loo").fit(X, y)
    plain = plain_ensemble(5, 40, noise="homoskedastic").fit(X, y)
    assert asked.noise_covariance_.independent
    assert not np.allclose(asked.loo_residuals_, plain.loo_residuals_)
