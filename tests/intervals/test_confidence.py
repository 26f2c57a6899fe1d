"""Confidence intervals for the function and its expectation, and the undersmoothing gap."""

import numpy as np
import oracles
import pytest
from interval_methods import LEVELS, TARGETS, every_interval
from models import member_or_ensemble, plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import intercepts, members, noises, weightings
from scipy import stats

from ulmus.core.ridge.member_pairs import member_groups
from ulmus.core.variance.undersmoothing import UNDERSMOOTHING_GRID
from ulmus.exceptions import BiasWarning
from ulmus.intervals import satterthwaite_dof

# ---------------------------------------------------------------- confidence intervals


@noises
@members
def test_intervals_for_the_expectation_are_the_papers(fit_with_oracle, M, noise):
    model, _, X = fit_with_oracle(M, noise=noise, alpha=0.3)
    mean, variance = model.predict(X), model.predict_var(X, component="model")
    weights = model.predict_var(X, component="weights")
    ours = {
        method: model.predict_interval(
            X, 0.9, kind="confidence", target="expectation", method=method
        )
        for method in ("normal", "t", "auto")
    }

    def expected(quantile):
        half = quantile * np.sqrt(variance)
        return np.column_stack([mean - half, mean + half])

    # Satterthwaite's degrees of freedom for the sum of two variances.
    noise_part = variance - np.minimum(weights, variance)
    spent = noise_part**2 / (40 - model.dof_) + (variance - noise_part) ** 2 / max(M - 1, 1)
    assert_allclose(ours["normal"], expected(stats.norm.ppf(0.95)), rtol=1e-10)
    assert_allclose(ours["t"], expected(stats.t.ppf(0.95, variance**2 / spent)), rtol=1e-10)
    assert_array_equal(ours["auto"], ours["t"])
    assert np.all(np.diff(ours["t"]) > np.diff(ours["normal"]))


def test_satterthwaite_of_one_variance_alone():
    one = np.ones(3)
    assert_allclose(satterthwaite_dof(one, 0 * one, 20.0, 4), 20)
    assert_allclose(satterthwaite_dof(0 * one, one, 20.0, 4), 4)
    assert_allclose(satterthwaite_dof(one, one, 20.0, 4), 4 / (1 / 20 + 1 / 4))
    assert np.all(np.isinf(satterthwaite_dof(0 * one, 0 * one, 20.0, 4)))


# More neurons in a group than rows: the undersmoothed networks require a ridge.
MANY_NEURONS = {"n": 60, "N": 30, "alpha": 0.1, "weight_scale": 3.0}


def undersmoothed_alpha(model):
    """Ridge parameter of the undersmoothed networks, selected by the library."""
    (networks,) = model.fitted_.undersmoothing.networks
    return networks.alphas[0]


def prior_variance(H, y, intercept, w):
    """Variance of an output weight by the largest likelihood of a Gaussian process."""
    center = np.average(H, axis=0, weights=w) if intercept else 0.0
    root = oracles.root_weights(len(H), w)
    used = root > 0
    A = (root[:, None] * (H - center))[used]
    b = root * (y - (np.average(y, weights=w) if intercept else 0.0))
    b, n = b[used], int(used.sum()) - intercept
    scores = []
    for alpha in UNDERSMOOTHING_GRID * np.linalg.norm(A, 2) ** 2:
        K = A @ A.T / alpha + np.eye(len(A))
        s2 = b @ np.linalg.solve(K, b) / n
        scores.append((n * np.log(s2) + np.linalg.slogdet(K)[1], s2 / alpha))
    return min(scores)[1]


def unseen_squares(H, h, intercept, w):
    """Squared length of h outside of the span of the (centred, weighted) rows of H, (p,)."""
    center = np.average(H, axis=0, weights=w) if intercept else 0.0
    root = oracles.root_weights(len(H), w)[:, None]
    _, s, Vt = np.linalg.svd(root * (H - center), full_matrices=True)
    s = np.concatenate([s, np.zeros(len(Vt) - len(s))])
    return np.sum(((h - center) @ Vt[s**2 <= 1e-12 * s[0] ** 2].T) ** 2, axis=1)


def side_by_side(H):
    """Hidden matrices of each group of members as one."""
    return [np.hstack(H[group]) for group in member_groups(len(H), H[0].shape[1])]


@intercepts
def test_undersmoothed_networks_smooth_less_than_the_best_predictor(fit_with_oracle, intercept):
    model, (H, _, y, *_), _ = fit_with_oracle(5, fit_intercept=intercept, **MANY_NEURONS)
    scores, traces, grid = [], [], []
    for H_g in side_by_side(H):
        centred = H_g - H_g.mean(axis=0) if intercept else H_g
        alphas = UNDERSMOOTHING_GRID * np.linalg.norm(centred, 2) ** 2
        hat = [oracles.hat_matrix([H_g], a, intercept) for a in alphas]
        scores.append([oracles.gcv_score([H_g], y, a, intercept) for a in alphas])
        traces.append([np.trace(P[0]) - intercept for P in hat])
        grid.append(alphas)
    scores, traces, grid = (np.mean(a, axis=0) for a in (scores, traces, grid))
    best = np.argmin(scores)
    tolerated = np.flatnonzero(scores <= 1.05 * scores[best])[0]
    doubled = np.flatnonzero(traces <= 2 * traces[best])[0]
    assert 0 < min(tolerated, doubled) < best
    assert_allclose(undersmoothed_alpha(model), grid[min(tolerated, doubled)], rtol=1e-8)


@weightings
@intercepts
@noises
@pytest.mark.parametrize("M", [1, 5])
def test_intervals_for_the_function_are_those_of_undersmoothed_networks(
    fit_with_oracle, M, noise, intercept, weighted
):
    model, (H, h, y, _, _, w), X = fit_with_oracle(
        M, noise=noise, fit_intercept=intercept, weighted=weighted, **MANY_NEURONS
    )
    alpha, n, G = undersmoothed_alpha(model), oracles.n_rows(y, w), len(member_groups(M, 30))
    rest = (alpha, intercept, w)
    groups = [([a], [b]) for a, b in zip(side_by_side(H), side_by_side(h), strict=True)]
    f = np.array([oracles.predictions(*group, y, *rest)[0] for group in groups])
    z = np.mean([oracles.smoother_rows(*g, *rest, weighted=True)[0] for g in groups], axis=0)
    omega = np.full(len(y), model.noise_variance_)
    if noise == "heteroskedastic":
        # Residuals of the members, each discounted as HC2 does, averaged before they are squared.
        squares = oracles.omega("HC2", H, y, model.alpha_, intercept, w)
        signs = np.sign(oracles.residuals(H, y, model.alpha_, intercept, w))
        omega = np.mean(signs * np.sqrt(squares), axis=0) ** 2
    noise_part = z**2 @ omega
    from_weights = np.var(f, axis=0, ddof=1) / G if G > 1 else 0 * noise_part
    # What the data say nothing about has its variance before the data are seen.
    outside = [unseen_squares(a[0], b[0], intercept, w) for a, b in groups]
    prior = np.mean([prior_variance(a[0], y, intercept, w) for a, _ in groups])
    unseen = np.mean(outside, axis=0) * prior
    assert (0 < np.max(unseen) < 0.1 * np.max(noise_part)) == (M > 1)
    noise_part = noise_part + unseen
    variance = noise_part + from_weights
    mean, se = np.mean(f, axis=0), np.sqrt(variance)

    def ours(method):
        return model.predict_interval(X, 0.9, kind="confidence", method=method)

    half = stats.norm.ppf(0.95) * se
    assert_allclose(ours("normal"), np.column_stack([mean - half, mean + half]), rtol=1e-6)
    residual_dof = n - np.mean([oracles.dof(H_g, *rest) for H_g, _ in groups])
    spent = noise_part**2 / residual_dof + from_weights**2 / max(G - 1, 1)
    half = stats.t.ppf(0.95, np.maximum(variance**2 / spent, 1)) * se
    assert_allclose(ours("t"), np.column_stack([mean - half, mean + half]), rtol=1e-6)
    assert_array_equal(ours("auto"), ours("t"))


# ---------------------------------------------------------------- bias


@pytest.fixture
def biased():
    """Few neurons for a wiggly function."""
    rng = np.random.default_rng(0)
    X = rng.permutation(np.linspace(-1, 1, 300))[:, None]
    y = np.sin(8 * X[:, 0]) + 0.1 * rng.standard_normal(300)
    return plain_ensemble(8, 5, weight_scale=3.0, random_state=0).fit(X, y), X


def test_bias_raises_the_undersmoothing_gap_and_a_warning(biased):
    model, X = biased
    assert model.undersmoothing_gap_ > 5
    with pytest.warns(BiasWarning, match="more n_neurons") as caught:
        model.predict_interval(X, kind="confidence")
    assert caught[0].filename == __file__


def test_bias_does_not_warn_elsewhere(biased):
    # Warnings are errors: neither fit, nor these, raise one.
    model, X = biased
    model.predict(X, return_std=True)
    model.predict_var(X)
    model.predict_interval(X)
    model.predict_quantiles(X, 0.5)
    model.predict_interval(X, kind="confidence", target="expectation")


def test_no_warning_where_the_neurons_suffice(make_table):
    data = make_table(200)
    model = member_or_ensemble(8, 40, alpha="loo").fit(data.X, data.y)
    assert 0 < model.undersmoothing_gap_ < 5
    model.predict_interval(data.X, kind="confidence")


def test_the_undersmoothing_gap_is_the_largest_distance_in_standard_errors(
    fit_with_oracle, make_table
):
    model, _, _ = fit_with_oracle(n=60)
    X = make_table(60).X
    low, high = model.predict_interval(X, 0.9, kind="confidence", method="normal").T
    se = (high - low) / (2 * stats.norm.ppf(0.95))
    gap = np.abs(model.predict(X) - (low + high) / 2)
    assert_allclose(model.undersmoothing_gap_, np.max(gap / se), rtol=1e-8)


# ---------------------------------------------------------------- without the training rows


def test_a_compressed_model_has_no_jackknife(fit_with_oracle):
    model, _, X = fit_with_oracle()
    with pytest.raises(ValueError, match=r"method='jackknife\+.*compress.*use method='gaussian'"):
        model.compress().predict_interval(X, method="jackknife+")


@noises
@pytest.mark.parametrize("size", [(4, 6), (10, 9)])  # forms of features, forms of rows
def test_compressing_keeps_everything_else(fit_with_oracle, noise, size):
    model, _, X = fit_with_oracle(*size, n=60, noise=noise)
    before, gap = every_interval(model, X, LEVELS), model.undersmoothing_gap_
    after = {"auto": model.compress().predict_interval(X, LEVELS)}
    assert_allclose(after["auto"], before["gaussian"], rtol=1e-8)
    assert_array_equal(after["auto"], model.predict_interval(X, LEVELS, method="gaussian"))
    for target in TARGETS:
        for method in ("t", "normal"):
            ours = model.predict_interval(
                X, LEVELS, kind="confidence", target=target, method=method
            )
            assert_allclose(ours, before[f"{target}, {method}"], rtol=1e-8)
    assert_allclose(model.undersmoothing_gap_, gap, rtol=1e-8)
