"""Random parameters on degenerate tables: every answer is finite, or refused in words."""

import warnings

import numpy as np
import pytest

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import UlmusWarning
from ulmus.noise import AR1, Clustered, Conley, Exponential, Matern, NeweyWest

LEVELS = [0.5, 0.8, 0.95]
NOISES = {
    "AR1": (AR1(), "time"),
    "Exponential": (Exponential(), "coords"),
    "Matern": (Matern(), "coords"),
    "Conley": (Conley(cutoff=1.0), "coords"),
    "Clustered": (Clustered(), "groups"),
    "NeweyWest": (NeweyWest(), "time"),
}
# What makes a table of normal inputs X and outputs y degenerate.
TABLES = {
    "one point": lambda X, y: (np.repeat(X[:1], len(X), axis=0), y),
    "two points": lambda X, y: (X[np.arange(len(X)) % 2], y),
    "constant y": lambda X, y: (X, np.full(len(y), 3.7)),
    "zero y": lambda X, y: (X, np.zeros(len(y))),
    "constant column": lambda X, y: (np.column_stack([np.full(len(X), 1e3), X]), y),
    "constant inputs": lambda X, y: (np.full_like(X, 5.5), y),
    "collinear": lambda X, y: (np.outer(X[:, 0], np.ones(3)), y),
    "nearly collinear": lambda X, y: (X[:, :1] + 1e-9 * X, y),
    "huge X": lambda X, y: (1e149 * X, y),
    "tiny X": lambda X, y: (1e-149 * X, y),
    "huge y": lambda X, y: (X, 1e150 * y),
    "tiny y": lambda X, y: (X, 1e-150 * y),
    "float32": lambda X, y: (X.astype(np.float32), y),
    "offset": lambda X, y: (X + 1e9, y + 1e9),
    "outlier": lambda X, y: (np.vstack([X[:-1], X[-1:] * 1e8]), np.append(y[:-1], 1e12)),
    "repeated rows": lambda X, y: (np.repeat(X, 2, axis=0)[: len(X)], y),
    "binary": lambda X, y: ((X > 0).astype(float), (y > 0).astype(float)),
    "no noise": lambda X, y: (X, 2 * X[:, 0]),
}


def random_case(seed, table):
    """An unfitted estimator and its data."""
    rng = np.random.default_rng([seed, list(TABLES).index(table)])
    n, d = int(rng.choice([2, 3, 5, 8, 12, 25, 40])), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d))
    X, y = TABLES[table](X, np.sin(X.sum(axis=1)) + 0.1 * rng.standard_normal(n))
    values = {
        "time": np.arange(n),
        "coords": rng.uniform(size=(n, 2)),
        "groups": rng.integers(0, max(2, n // 3), n),
    }
    noise = rng.choice(["auto", "homoskedastic", "heteroskedastic", *NOISES])
    noise, axis = NOISES.get(noise, (str(noise), None))
    parameters = {
        "n_estimators": int(rng.choice([1, 2, 3, 5])),
        "n_neurons": ["auto", 1, 3, 20, 60][rng.integers(5)],
        "alpha": ["loo", "gcv", 0.0, 1e-8, 1.0, 1e10][rng.integers(6)],
        "activation": ["identity", "tanh", "relu", "cos", "logistic"][rng.integers(5)],
        "input_map": [None, None, "auto", "full"][rng.integers(4)],
        "variance": ["auto", "all"][rng.integers(2)],
        "standardize": bool(rng.random() < 0.8),
        "fit_intercept": bool(rng.random() < 0.7),
        "dtype": ["float64", "float64", "float32"][rng.integers(3)],
    }
    model = ELMEnsembleRegressor(noise=noise, random_state=0, **parameters)
    return model, X, y, {} if axis is None else {axis: values[axis]}


def check_bounds(bounds):
    """Finite intervals (p, 2, levels), ordered and nested."""
    assert np.all(np.isfinite(bounds))
    low, high = bounds[:, 0], bounds[:, 1]
    round_off = 1e-9 * np.max(np.abs(bounds))
    assert np.all(low <= high)
    assert np.all(np.diff(low, axis=1) <= round_off)
    assert np.all(np.diff(high, axis=1) >= -round_off)


def check_frame(frame):
    assert np.all(np.isfinite(frame.estimate))
    assert np.all(np.isfinite(frame.std_error) & (frame.std_error >= 0))
    assert np.all(frame.conf_low <= frame.conf_high)


def check_variances(values):
    assert np.all(np.isfinite(values) & (values >= 0))


def check_design(frame):
    total = np.append(frame.attrs["before"][0], frame["variance"])
    assert np.all(np.diff(total) <= 1e-8 * total[0])


def check_finite(values):
    assert np.all(np.isfinite(values))


def questions(model, X, y):
    """Every method with the check of its answer."""
    points, cut = np.concatenate([X[:4], 1.5 * X[:1]]), float(np.mean(y))
    values = {0: (float(X[0, 0]), float(X[-1, 0]) + 1)}
    for how in (
        *({"method": method} for method in ("auto", "jackknife+", "cv+", "gaussian")),
        {"tails": "shortest"},
        *({"kind": "confidence", "target": target} for target in ("function", "expectation")),
    ):
        yield check_bounds, lambda how=how: model.predict_interval(points, LEVELS, **how)
    yield check_variances, lambda: model.predict_var(points, component="model")
    yield check_variances, lambda: np.diagonal(model.predict_cov(points))
    yield check_frame, lambda: model.average(X, by="row", simultaneous=True)
    yield check_frame, lambda: model.average(X, target="function")
    yield check_frame, lambda: model.compare(X, values)
    yield check_frame, lambda: model.slope(X)
    yield check_frame, lambda: model.partial_dependence(X, 0, grid_resolution=5, simultaneous=True)
    yield check_finite, lambda: model.exceedance(X, cut)
    yield check_finite, lambda: model.simulate(points, 3, random_state=0)
    yield check_design, lambda: model.next_points(X, n=2)
    yield str, lambda: model.check()
    yield str, lambda: model.summary()


def answered(ask, check):
    """Whether there is an answer; a refusal names what to do instead."""
    try:
        check(ask())
    except np.linalg.LinAlgError:
        raise
    except ValueError as error:
        if ";" not in str(error):
            raise
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_answer_is_finite_or_refused(table):
    """Warnings of NumPy are errors."""
    for seed in range(4):
        model, X, y, given = random_case(seed, table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UlmusWarning)
            if answered(lambda m=model, a=(X, y), k=given: m.fit(*a, **k), str):
                for check, ask in questions(model, X, y):
                    answered(ask, check)
