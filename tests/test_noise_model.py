"""The noise variance as a function of the inputs, against the same steps with loops."""

import numpy as np
import oracles
import pytest
from fit_comparison import cut
from numpy.testing import assert_allclose
from shared import ensemble, weightings

from ulmus.core.noise.model import calibration_sums, residual_logs
from ulmus.core.selection import RELATIVE_GRID

# The library's choices, written down again: five members, logarithms kept finite by a ten
# thousandth of the mean noise, predictions held within three standard deviations.
MEMBERS, OFFSET, RANGE = 5, 1e-4, 3.0


def noisy_table(n=150, seed=0):
    """Rows whose noise grows with the first input, weights, and points inside the range."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    X[0], X[1] = -1, 1
    y = 3 + np.sin(2 * X[:, 0]) + np.exp(1.5 * X[:, 0] - 1) * rng.standard_normal(n)
    return X, y, rng.uniform(0.5, 2, n), rng.uniform(-0.9, 0.9, (12, 2))


def left_out(H, y, alpha, intercept, w):
    """Left-out residuals (n,) and z'z of left-out predictions (n,), means over members."""
    n = len(y)
    residual, norm = np.zeros(n), np.zeros(n)
    for H_m in H:
        for i in range(n):
            rest = np.arange(n) != i
            w_rest = None if w is None else w[rest]
            arguments = ([H_m[rest]], [H_m[i : i + 1]])
            z = oracles.smoother_rows(*arguments, alpha, intercept, w_rest, weighted=True)[0, 0]
            prediction = oracles.predictions(*arguments, y[rest], alpha, intercept, w_rest)[0, 0]
            residual[i] += (y[i] - prediction) / len(H)
            norm[i] += z @ z / len(H)
    return residual, norm


def gcv_alpha(H, y):
    """Ridge parameter of least generalised cross-validation, with an intercept."""
    largest = max(np.linalg.norm(H_m - H_m.mean(axis=0), 2) for H_m in H)
    grid = RELATIVE_GRID * largest**2
    return grid[np.argmin([oracles.gcv_score(H, y, a, True) for a in grid])]


def expected_noise(model, H, h, y, w):
    """Noise variance at the points, step by step."""
    few, few_points = H[:MEMBERS], h[:MEMBERS]
    residual, norm = left_out(few, y, model.alpha_, model.fit_intercept, w)
    weight = np.ones(len(y)) if w is None else w
    u2 = weight * residual**2 / (1 + weight * norm)
    offset = OFFSET * model.noise_variance_
    logs = np.log(u2 + offset)
    # The second ensemble always has an intercept: logarithms shift with the units of y.
    alpha = gcv_alpha(few, logs)
    without = logs - left_out(few, logs, alpha, True, None)[0]
    n = len(y)
    error, mean = np.mean((logs - without) ** 2), np.mean(logs)
    # Left out of its own mean, a row deviates from it by n / (n - 1) times as much.
    if error >= np.mean(((logs - mean) * n / (n - 1)) ** 2):
        return None
    factor = np.mean(u2 / np.exp(without))
    center, spread = np.mean(without), np.std(without)
    predicted = np.mean(oracles.predictions(few, few_points, logs, alpha, True), axis=0)
    inside = np.clip(predicted, center - RANGE * spread, center + RANGE * spread)
    return factor * np.exp(inside) / np.mean(weight)


@weightings
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("members", [3, 7])
def test_the_noise_model_is_its_definition(hidden, members, intercept, weighted):
    X, y, w, points = noisy_table(60)
    w = w if weighted else None
    model = ensemble(members, 10, noise="heteroskedastic", alpha=0.3, fit_intercept=intercept).fit(
        X, y, w
    )
    H, h = (hidden(model, A, X, w) for A in (X, points))
    expected = expected_noise(model, H, h, y, w)
    assert expected is not None
    assert_allclose(model.predict_var(points, component="noise"), expected, rtol=1e-6)


def test_predictions_are_held_within_the_range_seen(hidden):
    X, y, _, _ = noisy_table(60)
    model = ensemble(5, 10, noise="heteroskedastic", alpha=0.3).fit(X, y)
    points = np.array([[-40.0, 0.0], [40.0, 0.0], [0.0, 300.0], [-1e3, -1e3]])
    H, h = (hidden(model, A, X) for A in (X, points))
    expected = expected_noise(model, H, h, y, None)
    with pytest.warns(UserWarning, match="outside the range"):
        ours = model.predict_var(points, component="noise")
    assert_allclose(ours, expected, rtol=1e-6)
    # Some of them are at the bounds.
    wild = ensemble(5, 10, noise="heteroskedastic", alpha=0.3, activation="identity").fit(X, y)
    with pytest.warns(UserWarning, match="outside the range"):
        low, high = wild.predict_var([[-1e4, 0.0], [1e4, 0.0]], component="noise")
    logs = np.log(wild.predict_var(X, component="noise"))
    assert np.log(high / low) < 2 * RANGE * np.std(logs) * 1.5


def test_a_constant_noise_variance_is_that_of_the_residuals(hidden):
    # The flat answer is given where the left-out error of the model is no better than a mean's.
    flat = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (40, 2))
        y = X[:, 0] + 0.3 * rng.standard_normal(40)
        model = ensemble(3, 8, noise="heteroskedastic", alpha=0.3).fit(X, y)
        one = ensemble(3, 8, alpha=0.3).fit(X, y)
        ours = model.predict_var(X, component="noise")
        H = hidden(model, X, X)
        is_flat = expected_noise(model, H, H, y, None) is None
        assert (np.ptp(ours) == 0) == is_flat
        if is_flat:
            assert_allclose(ours, one.predict_var(X, component="noise"), rtol=1e-9)
        flat.append(is_flat)
    assert 2 <= sum(flat) <= 11  # both happen


@weightings
def test_a_streamed_noise_model_is_the_one_in_memory(weighted):
    X, y, w, points = noisy_table()
    w = w if weighted else None
    for outputs in (y, np.column_stack([y, X[:, 1] + y**2])):
        kept = ensemble(7, 10, noise="heteroskedastic").fit(X, outputs, w)
        streamed = ensemble(7, 10, noise="heteroskedastic").fit_blocks(cut(X, outputs, w))
        both = [m.predict_var(points, component="noise") for m in (kept, streamed)]
        assert_allclose(*both, rtol=1e-7)


@pytest.mark.parametrize("factor", [1e-150, 1e-3, 7.0, 1e150])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_noise_model_follows_the_units_of_the_outputs(intercept, factor):
    X, y, _, points = noisy_table()
    one, other = (
        ensemble(5, 10, noise="heteroskedastic", fit_intercept=intercept).fit(X, c * y)
        for c in (1.0, factor)
    )
    expected = factor * np.sqrt(one.predict_var(points, component="noise"))
    assert_allclose(np.sqrt(other.predict_var(points, component="noise")), expected, rtol=1e-6)


def test_outputs_without_noise_have_the_known_variance():
    # Every left-out residual is zero, or round-off.
    X, _, _, points = noisy_table()
    model = ensemble(5, 10, noise="heteroskedastic", noise_variance=0.1).fit(X, np.ones(150))
    assert_allclose(model.predict_var(points, component="noise"), 0.1)
    assert np.all(np.isfinite(model.predict(points, return_std=True)))


def test_rows_of_weight_zero_are_left_out_of_the_noise_model():
    X, y, w, points = noisy_table()
    used = np.arange(150) % 4 > 0
    wild = np.where(used, y, 1e3)
    how = {"noise": "heteroskedastic", "standardize": False, "alpha": 0.3}
    dropped = ensemble(5, 10, **how).fit(X[used], y[used], w[used])
    expected = dropped.predict_var(points, component="noise")
    assert np.ptp(expected) > 0
    zero = ensemble(5, 10, **how).fit(X, wild, np.where(used, w, 0.0))
    assert_allclose(zero.predict_var(points, component="noise"), expected, rtol=1e-6)
    streamed = ensemble(5, 10, **how).fit_blocks(cut(X, wild, np.where(used, w, 0.0)))
    assert_allclose(streamed.predict_var(points, component="noise"), expected, rtol=1e-6)


def test_labels_and_sums_of_rows():
    rng = np.random.default_rng(0)
    loo, norm = rng.standard_normal((3, 2, 8)), rng.uniform(0, 1, (3, 2, 8))
    root, offset = rng.uniform(0.5, 2, 8), np.array([0.1, 0.2])
    labels = residual_logs(loo, norm, root, offset)
    for k in range(2):
        for i in range(8):
            u2 = root[i] ** 2 * loo[:, k, i].mean() ** 2 / (1 + root[i] ** 2 * norm[:, k, i].mean())
            assert_allclose(labels[k, i], np.log(u2 + offset[k]))
    left_out_logs, used = rng.standard_normal((2, 8)), (np.arange(8) % 3 > 0).astype(float)
    sums = calibration_sums(labels, left_out_logs, used, offset)
    t, g, rows = labels[0], left_out_logs[0], used > 0
    u2 = np.exp(t) - offset[0]
    columns = (np.ones(8), (t - g) ** 2, t, t**2, u2 / np.exp(g), g, g**2)
    assert_allclose(sums[:, 0], [np.sum(column[rows]) for column in columns])
