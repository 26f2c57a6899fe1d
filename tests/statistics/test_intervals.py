"""What intervals cover: noise that varies, skewed noise, and simulated coverage."""

import numpy as np
import pytest
from interval_methods import every_interval
from models import plain_ensemble
from numpy.testing import assert_allclose

from ulmus.intervals import is_skewed

# ---------------------------------------------------------------- noise that varies


def noisy(n, seed, sd):
    """Rows with noise of the given standard deviation, a function of X."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + sd(X) * rng.standard_normal(n)


def growing(X):
    return 0.3 * np.exp(1.2 * X[:, 0])


def constant(X):
    return np.full(len(X), 0.3)


def heteroskedastic(M=8, N=40, **parameters):
    return plain_ensemble(M, N, noise="heteroskedastic", random_state=0, **parameters)


def test_a_varying_noise_variance_is_recovered():
    X, y = noisy(400, 0, growing)
    X_new, _ = noisy(200, 1, growing)
    model = heteroskedastic().fit(X, y)
    variance = model.predict_var(X_new * 0.95, component="noise")
    truth = growing(X_new * 0.95) ** 2
    assert np.corrcoef(variance, truth)[0, 1] > 0.7
    assert 0.7 < np.mean(variance) / np.mean(truth) < 1.4


def test_constant_noise_is_mostly_recognised():
    flat = []
    for seed in range(40):
        X, y = noisy(150, seed, constant)
        model = heteroskedastic(5, 25).fit(X, y)
        variance = model.predict_var(X, component="noise")
        flat.append(np.ptp(variance) == 0)
        if flat[-1]:
            one_for_all = plain_ensemble(5, 25, random_state=0).fit(X, y)
            assert_allclose(variance, one_for_all.predict_var(X, component="noise"), rtol=1e-8)
    assert np.mean(flat) > 0.5


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("outputs", ["growing", "without noise", "constant", "huge", "tiny"])
def test_the_noise_variance_is_positive_and_finite_everywhere(outputs):
    X, y = noisy(150, 0, growing)
    y = {
        "growing": y,
        "without noise": X[:, 0],
        "constant": np.ones(150),
        "huge": 1e150 * y,
        "tiny": 1e-150 * y,
    }[outputs]
    model = heteroskedastic(4, 20).fit(X, y)
    anywhere = np.random.default_rng(0).uniform(-50, 50, (200, 2))
    variance = model.predict_var(np.vstack([X, anywhere]), component="noise")
    assert np.all(variance >= 0 if outputs == "constant" else variance > 0)
    assert np.all(np.isfinite(variance))
    assert np.all(np.isfinite(model.predict_interval(anywhere)))


@pytest.mark.filterwarnings("ignore:leave-one-out residuals of neighbouring rows")
def test_rows_of_weight_zero_have_no_part_in_the_noise():
    X, y = noisy(160, 0, growing)
    used = np.arange(160) % 2 == 0
    settings = {"alpha": 0.1, "standardize": False}
    weighted = heteroskedastic(4, 10, **settings).fit(X, y, sample_weight=used.astype(float))
    alone = heteroskedastic(4, 10, **settings).fit(X[used], y[used])
    expected = alone.predict_var(X[used], component="noise")
    assert_allclose(weighted.predict_var(X[used], component="noise"), expected, rtol=1e-6)
    for name, intervals in every_interval(alone, X[used], 0.8).items():
        ours = every_interval(weighted, X[used], 0.8)[name]
        assert_allclose(ours, intervals, rtol=1e-4, atol=1e-4, err_msg=name)


# ---------------------------------------------------------------- skewness


@pytest.mark.parametrize(
    ("draw", "skewed"),
    [
        (lambda rng: rng.exponential(size=200), True),
        (lambda rng: -rng.exponential(size=200), True),
        (lambda rng: rng.gamma(4, size=200), True),
        (lambda rng: rng.standard_normal(200), False),
        (lambda rng: rng.laplace(size=200), False),
        (lambda rng: rng.standard_t(3, 200), False),
    ],
    ids=["exponential", "-exponential", "gamma", "normal", "Laplace", "t3"],
)
def test_skewed_residuals_are_distinguished_from_symmetric_ones(draw, skewed):
    found = np.mean([is_skewed(draw(np.random.default_rng(seed))) for seed in range(200)])
    # Three standard errors from zero, so nearly never where there is no skewness.
    assert (found > 0.8) if skewed else (found < 0.05), found


def test_too_few_or_equal_residuals_are_not_skewed():
    assert not is_skewed(np.random.default_rng(0).exponential(size=19))
    assert not is_skewed(np.ones(200))


def test_skewed_noise_gets_unequal_sides():
    X, mean = noisy(300, 0, lambda X: 0)
    rng = np.random.default_rng(1)
    ratios = []
    for error in (rng.exponential(size=300) - 1, rng.standard_normal(300)):
        model = plain_ensemble(5, 20, random_state=0).fit(X, mean + 0.3 * error)
        low, high = model.predict_interval(X, 0.9).T
        f = model.predict(X)
        ratios.append(np.median((high - f) / (f - low)))
    assert ratios[0] > 1.4
    assert 0.9 < ratios[1] < 1.1


# ---------------------------------------------------------------- nested levels


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("method", ["auto", "jackknife+"])
def test_low_levels_lie_inside_higher_ones(method):
    # Where the ends of jackknife+ cross, their middle could lie outside the next wider interval.
    levels = np.arange(0.02, 0.6, 0.04)
    points = 0
    for seed in range(40):
        X, y = noisy(20, seed, constant)
        model = plain_ensemble(6, 30, random_state=seed).fit(X, y)
        X_new, _ = noisy(100, seed + 1000, constant)
        low, high = np.moveaxis(model.predict_interval(X_new, levels, method=method), 1, 0)
        assert np.all(np.diff(low) <= 1e-12)
        assert np.all(np.diff(high) >= -1e-12)
        points += np.sum(low == high)
    assert points > 0


# ---------------------------------------------------------------- coverage
# Fixed seeds. Thirty replications of 200 points: coverage given the training rows varies by
# about 0.03 around its mean, so three points are more than five standard errors.

R, POINTS = 30, 200


def mean_of(X):
    return 2 * np.sin(np.pi * X[:, 0] * X[:, 1]) + X[:, 2]


# Errors with mean zero; the last factor of the second is a standard deviation that varies.
ERRORS = {
    "homoskedastic": lambda rng, X: 0.5 * rng.standard_normal(len(X)),
    "heteroskedastic": lambda rng, X: (0.1 + 0.9 * X[:, 0] ** 2) * rng.standard_normal(len(X)),
    "t3": lambda rng, X: 0.4 * rng.standard_t(3, len(X)),
    "skewed": lambda rng, X: 0.5 * (rng.exponential(size=len(X)) - 1),
}


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("kind", ERRORS)
def test_prediction_intervals_cover_new_observations(kind):
    noise = "heteroskedastic" if kind == "heteroskedastic" else "homoskedastic"
    inside = {"auto": [], "jackknife+": []}
    where_noisy = []
    for r in range(R):
        rng = np.random.default_rng(r)
        X, X_new = rng.uniform(0, 1, (150, 3)), rng.uniform(0, 1, (POINTS, 3))
        y, y_new = (mean_of(A) + ERRORS[kind](rng, A) for A in (X, X_new))
        model = plain_ensemble(8, 50, noise=noise, random_state=r).fit(X, y)
        for method, covered in inside.items():
            low, high = model.predict_interval(X_new, 0.9, method=method).T
            covered.append((low <= y_new) & (y_new <= high))
        where_noisy.append(X_new[:, 0] > 2 / 3)
    for method, covered in inside.items():
        assert abs(np.mean(covered) - 0.9) < 0.03, method
    if kind == "heteroskedastic":
        # Plain jackknife+ has one width everywhere; the model of the noise widens its intervals
        # where they miss. Both are evaluated at the same 2,000 points (standard error 0.01).
        plus, auto = (np.mean(np.array(inside[m])[where_noisy]) for m in ("jackknife+", "auto"))
        assert plus + 0.05 < auto < 0.93


def test_confidence_intervals_cover_the_function():
    # Sixty replications: at a point that is covered with probability 0.95, the share has a
    # standard error of 0.028, and the median over points far less.
    X = np.random.default_rng(0).uniform(0, 1, (60, 1))
    points = np.linspace(0.05, 0.95, 60)[:, None]
    truth = np.sin(2 * np.pi * points[:, 0])
    inside = []
    for r in range(60):
        rng = np.random.default_rng(r)
        y = np.sin(2 * np.pi * X[:, 0]) + 0.3 * rng.standard_normal(60)
        model = plain_ensemble(10, 30, random_state=r).fit(X, y)
        low, high = model.predict_interval(points, kind="confidence").T
        inside.append((low <= truth) & (truth <= high))
    assert 0.9 <= np.median(np.mean(inside, axis=0)) <= 0.99
