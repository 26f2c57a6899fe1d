"""The statistical claims, by simulation over new noise and new weights at fixed inputs.

Seeds are fixed, so a test either always passes or always fails. Bands are three standard
errors of the simulation; where the claim is "nearly", the tolerance is added to them.
"""

import numpy as np
import oracles
import pytest
from models import plain_ensemble
from scipy.special import expit

R = 800  # replications
# Rough units and much noise, so that every term of the variance counts.
N, M, ALPHA, SCALE = 8, 5, 1e-3, 10.0
NOISE = 0.6

X = np.sort(np.random.default_rng(0).uniform(0, 1, 60))
POINTS = np.linspace(0.1, 0.9, 9)
TRUTH = np.sin(2 * np.pi * X)
# Noise standard deviation of each row, the same in all and growing along x.
SPREADS = {"constant": np.full(60, NOISE), "growing": 0.1 + 0.9 * X}


def mean_and_error(values):
    """Mean over the first axis, and its standard error."""
    return np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def member_rows(n_members, seed):
    """Smoother rows z(x) of members drawn here, without ulmus, shape (n_members, 9, 60)."""
    rng = np.random.default_rng(seed)
    x, points = ((v - X.mean()) / X.std() for v in (X, POINTS))
    W, b = rng.uniform(-SCALE, SCALE, (2, n_members, 1, N))
    H, h = (list(expit(v[:, None] * W + b)) for v in (x, points))
    return oracles.smoother_rows(H, h, ALPHA, intercept=True)


def variance_terms(z, sd):
    """mu'S mu, tr(S C) and f'Cf at each point, unbiased over the draws z; shape (3, 9)."""
    L, noisy = len(z), z * sd
    single = np.sum(noisy**2, axis=(0, 2)) / L
    pairs = (np.sum(np.sum(noisy, axis=0) ** 2, axis=1) - L * single) / (L * (L - 1))
    return np.stack([pairs, single - pairs, np.var(z @ TRUTH, axis=0, ddof=1)])


@pytest.fixture(scope="module")
def exact_terms():
    """For each kind of noise, the three terms of the variance and their standard errors.

    The terms of equation 5 need no simulated noise, only many members (Rao-Blackwell).
    """
    batches = [member_rows(250, seed) for seed in range(12)]
    return {
        kind: mean_and_error([variance_terms(z, sd) for z in batches])
        for kind, sd in SPREADS.items()
    }


def exact_variance(terms, n_members):
    """Variance of an ensemble over noise and weights, and its standard error."""
    mean, error = terms
    factors = np.array([1, 1 / n_members, 1 / n_members])[:, None]
    return np.sum(factors * mean, axis=0), np.sqrt(np.sum((factors * error) ** 2, axis=0))


def replications(kind, n_members, seed, results, **parameters):
    """Results of R ensembles fitted to new noise with new weights."""
    rng = np.random.default_rng(seed)
    runs = []
    for r in range(R):
        y = TRUTH + SPREADS[kind] * rng.standard_normal(60)
        model = plain_ensemble(
            n_members, N, alpha=ALPHA, weight_scale=SCALE, random_state=seed + r, **parameters
        ).fit(X[:, None], y)
        runs.append(results(model, POINTS[:, None]))
    return np.array(runs)


@pytest.fixture(scope="module")
def known_noise():
    """BR, NHo, and BR's variance of 20 members, of ensembles of five; (R, 3, 9)."""

    def results(model, x):
        ours = [model.predict_var(x, "model", name) for name in ("BR", "NHo")]
        return [*ours, model.variance_at(x, 20, "BR")]

    return replications(
        "constant", M, 1000, results, noise_variance=NOISE**2, variance=["BR", "NHo"]
    )


def test_simulated_variance_is_the_sum_of_the_three_terms(exact_terms):
    # The yardstick itself: formula against the empirical variance of the predictions.
    f = replications("constant", M, 2000, lambda model, x: model.predict(x))
    squares = (f - f.mean(axis=0)) ** 2 * R / (R - 1)
    exact, exact_error = exact_variance(exact_terms["constant"], M)
    difference, error = mean_and_error(np.mean(squares - exact, axis=1))
    assert abs(difference) < 3 * np.hypot(error, np.mean(exact_error))
    assert error < 0.05 * np.mean(exact)


def test_bias_reduced_estimate_is_unbiased(known_noise, exact_terms):
    exact, exact_error = exact_variance(exact_terms["constant"], M)
    mean, error = mean_and_error(known_noise[:, 0])
    band = np.hypot(error, exact_error)
    # At each of nine points within four standard errors, on average within three.
    assert np.all(np.abs(mean - exact) < 4 * band)
    overall, overall_error = mean_and_error(np.mean(known_noise[:, 0], axis=1))
    band = np.hypot(overall_error, np.mean(exact_error))
    assert abs(overall - np.mean(exact)) < 3 * band
    # Enough replications to notice a bias of a twentieth.
    assert 3 * band < 0.05 * np.mean(exact)


def test_naive_estimate_is_too_large_by_the_trace(known_noise, exact_terms):
    # Section 3.2: E[NHo] - Var = sigma2 tr(C) / M.
    terms, errors = exact_terms["constant"]
    excess, error = mean_and_error(known_noise[:, 1] - known_noise[:, 0])
    assert np.all(np.abs(excess - terms[1] / M) < 4 * np.hypot(error, errors[1] / M))
    exact, exact_error = exact_variance(exact_terms["constant"], M)
    overall, overall_error = mean_and_error(np.mean(known_noise[:, 1], axis=1))
    band = np.hypot(overall_error, np.mean(exact_error))
    assert overall - np.mean(exact) > 3 * band


@pytest.mark.parametrize("hc", ["HC2"])
def test_s2_is_nearly_unbiased_when_the_noise_grows(exact_terms, hc):
    exact, exact_error = exact_variance(exact_terms["growing"], M)
    ours = replications(
        "growing",
        M,
        3000,
        lambda model, x: model.predict_var(x, "model"),
        variance="S2",
        hc=hc,
    )
    overall, error = mean_and_error(np.mean(ours, axis=1))
    band = 3 * np.hypot(error, np.mean(exact_error))
    assert abs(overall / np.mean(exact) - 1) < 0.05 + band / np.mean(exact)
    assert band < 0.1 * np.mean(exact)
    # It follows the noise along x, where an estimate of one noise variance cannot.
    low, high = np.mean(ours[:, [1, -2]], axis=0)
    assert high / low == pytest.approx(exact[-2] / exact[1], rel=0.25)
    assert exact[-2] > 3 * exact[1]


def test_variance_at_another_size_is_that_of_actual_ensembles(known_noise):
    f = replications("constant", 20, 4000, lambda model, x: model.predict(x))
    squares = np.mean((f - f.mean(axis=0)) ** 2 * R / (R - 1), axis=1)
    actual, actual_error = mean_and_error(squares)
    predicted, predicted_error = mean_and_error(np.mean(known_noise[:, 2], axis=1))
    assert abs(predicted - actual) < 3 * np.hypot(predicted_error, actual_error)
    assert 3 * actual_error < 0.2 * actual


@pytest.mark.parametrize("n_neurons", [3, 10])
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_residual_noise_is_unbiased_when_the_function_lies_in_the_span(n_neurons):
    # Linear units and a linear function; with ten units for three inputs the rank counts.
    rng = np.random.default_rng(5)
    inputs = rng.uniform(-1, 1, (30, 3))
    model = plain_ensemble(2, n_neurons, alpha=0, activation="identity", noise_variance="residual")
    noise = []
    for r in range(R):
        y = 2 + inputs @ [1.0, -2.0, 0.5] + NOISE * rng.standard_normal(30)
        noise.append(model.set_params(random_state=r).fit(inputs, y).noise_variance_)
    # sigma2 chi2 / (n - 4) has the standard deviation sigma2 sqrt(2 / 26).
    error = NOISE**2 * np.sqrt(2 / 26 / R)
    assert abs(np.mean(noise) - NOISE**2) < 3 * error
    assert np.std(noise) == pytest.approx(error * np.sqrt(R), rel=0.15)
