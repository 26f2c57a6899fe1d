"""The noise variance as a function of the inputs, against the same steps with loops."""

import numpy as np
import oracles
import pytest
from fit_comparison import cut
from models import member_or_ensemble
from numpy.testing import assert_allclose
from parametrisations import weightings
from scipy import stats

from ulmus.core.data.source import Block
from ulmus.core.layer.inputs import plain_inputs
from ulmus.core.noise_model import model as noise_model
from ulmus.core.noise_model.model import (
    calibration_sums,
    corrected_squares,
    relative_errors,
    residual_logs,
    residual_squares,
    score_gains,
    working_response,
)
from ulmus.core.ridge.alpha import RELATIVE_GRID

# The library's choices, written down again: five members, logarithms kept finite by a ten
# thousandth of the mean noise, predictions held within three standard deviations, and shares of
# the logarithm that are tried.
MEMBERS, OFFSET, RANGE, SHARES = 5, 1e-4, 3.0, (0.25, 0.5, 0.75, 1.0)


def noisy_table(n=150, seed=0):
    """Rows whose noise grows with the first input, weights, and points inside the range."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    X[0], X[1] = -1, 1
    y = 3 + np.sin(2 * X[:, 0]) + np.exp(1.5 * X[:, 0] - 1) * rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2, n), rng.uniform(-0.9, 0.9, (12, 2))


def left_out(H, y, alpha, intercept, w):
    """Leave-one-out residuals (n,) and squared errors expected of them (n,), means over members."""
    n = len(y)
    residual, norm = np.zeros(n), np.zeros(n)
    for H_m in H:
        for i in range(n):
            rest = np.arange(n) != i
            w_rest = None if w is None else w[rest]
            arguments = ([H_m[rest]], [H_m[i : i + 1]])
            prediction = oracles.predictions(*arguments, y[rest], alpha, intercept, w_rest)[0, 0]
            residual[i] += (y[i] - prediction) / len(H)
            norm[i] += oracles.expected_errors(*arguments, alpha, intercept, w_rest)[0, 0] / len(H)
    return residual, norm


def gcv_alpha(H, y):
    """Ridge parameter of least generalised cross-validation, with an intercept."""
    largest = max(np.linalg.norm(H_m - H_m.mean(axis=0), 2) for H_m in H)
    grid = RELATIVE_GRID * largest**2
    return grid[np.argmin([oracles.gcv_score(H, y, a, True) for a in grid])]


def noise_features(model, X, labels):
    """Function of points: hidden features (n, N) of each member of the second ensemble."""
    inputs = plain_inputs(model.fitted_.scale, True, X)
    second = noise_model.noise_layer(inputs, Block(X, labels[None, :], None))

    def features(points):
        Z = (points - inputs.offset) / inputs.scale
        return [np.tanh(Z @ W.T + b) for W, b in zip(second.W, second.b, strict=True)]

    return features


def sharper(u2, g):
    """Labels of the second regression, row by row."""
    g = np.clip(g, np.log(OFFSET), -np.log(OFFSET))
    sizes = [np.sqrt(square) / np.exp(log / 2) / 1.506 for square, log in zip(u2, g, strict=True)]
    return np.array([log + 2 * (min(size, 5) - 1) for size, log in zip(sizes, g, strict=True)])


def row_scores(u2, variance):
    """Log score of each squared residual, up to a constant."""
    return -0.5 * (np.log(variance) + u2 / variance)


def corrected(u2, error, g, mean):
    """Squares whose predictions have errors of at least the mean noise, row by row."""
    ratios = [max(1.0, np.exp(mean) / np.exp(log)) for log in g]
    pairs = zip(u2, error, ratios, strict=True)
    return np.array([square * (1 + e) / (1 + e * ratio) for square, e, ratio in pairs])


def best_share(u2, g):
    """Gain over a constant of the best share, its standard error, the share and its factor."""
    constant, tried = row_scores(u2, np.mean(u2)), []
    for share in SHARES:
        factor = np.mean(u2 / np.exp(share * g))
        gain = row_scores(u2, factor * np.exp(share * g)) - constant
        tried.append((np.mean(gain), np.std(gain) / np.sqrt(len(u2)), share, factor))
    return max(tried)


def expected_noise(model, H, points, X, y, w):
    """Noise variance at the points, step by step; None for a constant one."""
    residual, norm = left_out(H[:MEMBERS], y, model.alpha_, model.fit_intercept, w)
    weight = np.ones(len(y)) if w is None else w
    u2 = weight * residual**2 / (1 + weight * norm) / model.noise_variance_
    labels = np.log(u2 + OFFSET)
    features = noise_features(model, X, labels)
    F = features(X)
    # The second ensemble always has an intercept: logarithms shift with the units of y.
    alpha = gcv_alpha(F, labels)
    fitted = np.mean(oracles.predictions(F, F, labels, alpha, True), axis=0)
    g = labels - left_out(F, labels, alpha, True, None)[0]
    own = corrected(u2, weight * norm, g, np.log(np.mean(np.exp(fitted))))
    labels = sharper(own, g)
    alpha = gcv_alpha(F, labels)
    g = labels - left_out(F, labels, alpha, True, None)[0]
    gain, error, _, _ = best_share(u2, g)
    if gain <= {"auto": 2.5, "heteroskedastic": 0}[model.noise] * error:
        return None
    _, _, share, factor = best_share(own, g)
    center, spread = np.mean(g), np.std(g)
    predicted = oracles.predictions(F, features(points), labels, alpha, True)
    inside = np.clip(np.mean(predicted, axis=0), center - RANGE * spread, center + RANGE * spread)
    return model.noise_variance_ * factor * np.exp(share * inside) / np.mean(weight)


@pytest.fixture
def few_units(monkeypatch):
    """A small second ensemble, for the oracle's many inverses."""
    monkeypatch.setattr(noise_model, "NOISE_UNITS", 10)


@pytest.mark.slow
@weightings
@pytest.mark.usefixtures("few_units")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("members", [3, 7])
def test_the_noise_model_is_its_definition(hidden, members, intercept, weighted):
    X, y, w, points = noisy_table(60)
    w = w if weighted else None
    model = member_or_ensemble(
        members, 10, noise="heteroskedastic", alpha=0.3, fit_intercept=intercept
    ).fit(X, y, w)
    expected = expected_noise(model, hidden(model, X, X, w), points, X, y, w)
    assert expected is not None
    assert_allclose(model.predict_var(points, component="noise"), expected, rtol=1e-6)


@pytest.mark.usefixtures("few_units")
def test_predictions_are_held_within_the_range_seen(hidden):
    X, y, _, _ = noisy_table(60)
    model = member_or_ensemble(5, 10, noise="heteroskedastic", alpha=0.3).fit(X, y)
    points = np.array([[-40.0, 0.0], [40.0, 0.0], [0.0, 300.0], [-1e3, -1e3]])
    expected = expected_noise(model, hidden(model, X, X), points, X, y, None)
    with pytest.warns(UserWarning, match="outside the range"):
        ours = model.predict_var(points, component="noise")
    assert_allclose(ours, expected, rtol=1e-6)
    # Some of them are at the bounds.
    wild = member_or_ensemble(5, 10, noise="heteroskedastic", alpha=0.3, activation="identity").fit(
        X, y
    )
    with pytest.warns(UserWarning, match="outside the range"):
        low, high = wild.predict_var([[-1e4, 0.0], [1e4, 0.0]], component="noise")
    logs = np.log(wild.predict_var(X, component="noise"))
    assert np.log(high / low) < 2 * RANGE * np.std(logs) * 1.5


@pytest.mark.slow
@pytest.mark.usefixtures("few_units")
@pytest.mark.parametrize("noise", ["auto", "heteroskedastic"])
def test_a_constant_noise_variance_is_that_of_the_residuals(hidden, noise):
    # The noise is constant where leave-one-out rows are no better predicted than by a constant.
    flat = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (40, 2))
        y = X[:, 0] + 0.3 * rng.standard_normal(40)
        model = member_or_ensemble(3, 8, noise=noise, alpha=0.3).fit(X, y)
        one = member_or_ensemble(3, 8, alpha=0.3).fit(X, y)
        ours = model.predict_var(X, component="noise")
        is_flat = expected_noise(model, hidden(model, X, X), X, X, y, None) is None
        assert (np.ptp(ours) == 0) == is_flat
        if is_flat:
            assert_allclose(ours, one.predict_var(X, component="noise"), rtol=1e-9)
        flat.append(is_flat)
    if noise == "heteroskedastic":
        assert 2 <= sum(flat) <= 10  # both happen
    else:
        assert sum(flat) >= 11


@pytest.mark.slow
@weightings
def test_a_streamed_noise_model_is_the_one_in_memory(weighted):
    X, y, w, points = noisy_table()
    w = w if weighted else None
    for outputs in (y, np.column_stack([y, X[:, 1] + y**2])):
        kept = member_or_ensemble(7, 10, noise="heteroskedastic").fit(X, outputs, w)
        streamed = member_or_ensemble(7, 10, noise="heteroskedastic").fit_blocks(cut(X, outputs, w))
        both = [m.predict_var(points, component="noise") for m in (kept, streamed)]
        assert_allclose(*both, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-150, 1e-3, 7.0, 1e150])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_noise_model_follows_the_units_of_the_outputs(intercept, factor):
    X, y, _, points = noisy_table()
    one, other = (
        member_or_ensemble(5, 10, noise="heteroskedastic", fit_intercept=intercept).fit(X, c * y)
        for c in (1.0, factor)
    )
    expected = factor * np.sqrt(one.predict_var(points, component="noise"))
    assert_allclose(np.sqrt(other.predict_var(points, component="noise")), expected, rtol=1e-6)


def test_outputs_without_noise_have_the_known_variance():
    # Every leave-one-out residual is zero, or round-off.
    X, _, _, points = noisy_table()
    model = member_or_ensemble(5, 10, noise="heteroskedastic", noise_variance=0.1).fit(
        X, np.ones(150)
    )
    assert_allclose(model.predict_var(points, component="noise"), 0.1)
    assert np.all(np.isfinite(model.predict(points, return_std=True)))


def test_rows_of_weight_zero_are_excluded_from_the_noise_model():
    X, y, w, points = noisy_table()
    used = np.arange(150) % 4 > 0
    wild = np.where(used, y, 1e3)
    how = {"noise": "heteroskedastic", "standardize": False, "alpha": 0.3}
    dropped = member_or_ensemble(5, 10, **how).fit(X[used], y[used], w[used])
    expected = dropped.predict_var(points, component="noise")
    assert np.ptp(expected) > 0
    zero = member_or_ensemble(5, 10, **how).fit(X, wild, np.where(used, w, 0.0))
    assert_allclose(zero.predict_var(points, component="noise"), expected, rtol=1e-6)
    streamed = member_or_ensemble(5, 10, **how).fit_blocks(cut(X, wild, np.where(used, w, 0.0)))
    assert_allclose(streamed.predict_var(points, component="noise"), expected, rtol=1e-6)


def test_labels_of_rows():
    rng = np.random.default_rng(0)
    loo, norm = rng.standard_normal((3, 2, 8)), rng.uniform(0, 1, (3, 2, 8))
    root, unit = rng.uniform(0.5, 2, 8), np.array([0.1, 0.2])
    error = relative_errors(norm, root)
    u2 = residual_squares(loo, error, root, unit)
    logs, g = residual_logs(u2), rng.normal(0, 6, (2, 8))
    for k in range(2):
        for i in range(8):
            square = root[i] ** 2 * loo[:, k, i].mean() ** 2
            square = square / (1 + root[i] ** 2 * norm[:, k, i].mean()) / unit[k]
            assert_allclose(u2[k, i], square)
            assert_allclose(logs[k, i], np.log(square + OFFSET))
        assert_allclose(working_response(u2, g)[k], sharper(u2[k], g[k]))
        one = slice(k, k + 1)
        ours = corrected_squares(u2[one], error[one], g[one] / 3, 0.7)[0]
        assert_allclose(ours, corrected(u2[k], error[k], g[k] / 3, 0.7))


def test_the_normal_ratio_makes_working_response_unbiased():
    # Where g is the mean of log u^2 for normal u, labels are g on average.
    u2 = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)[None, :] ** 2
    g = np.full_like(u2, np.mean(np.log(u2)))
    assert_allclose(np.mean(working_response(u2, g) - g), 0, atol=2e-3)
    assert_allclose(np.var(working_response(u2, g)), 2 * np.pi - 4, rtol=0.01)


def test_sums_and_gains_of_rows():
    rng = np.random.default_rng(1)
    u2, g = rng.chisquare(1, (2, 30)), rng.normal(0, 0.5, (2, 30))
    used = (np.arange(30) % 3 > 0).astype(float)
    sums = calibration_sums(u2, g, used)
    halves = [calibration_sums(u2[:, h], g[:, h], used[h]) for h in (slice(11), slice(11, 30))]
    assert_allclose(halves[0] + halves[1], sums)
    gains, errors, factors = score_gains(sums)
    for k in range(2):
        u, logs = u2[k, used > 0], g[k, used > 0]
        for j, share in enumerate(SHARES):
            factor = np.mean(u / np.exp(share * logs))
            each = row_scores(u, factor * np.exp(share * logs)) - row_scores(u, np.mean(u))
            assert_allclose(factors[j, k], factor)
            assert_allclose(gains[j, k], np.mean(each))
            assert_allclose(errors[j, k], np.std(each) / np.sqrt(len(u)))
