"""Data and libraries shared by the tests, and the bridge from a fitted model to the oracles.

Helpers are fixtures that return functions, of session scope where hypothesis uses them.
"""

import os
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import is_hypothesis_test, settings
from models import member_or_ensemble
from oracle_problems import N_ROWS, hidden_matrices, noisy_table
from scipy import special

from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import Inputs

# Their assertions show their values, as those of test files do.
pytest.register_assert_rewrite("fit_comparison", "onnx_comparison")

# By default the same few examples in every run: a failure is repeatable. The search draws new ones.
settings.register_profile("repeatable", max_examples=12, derandomize=True, deadline=None)
settings.register_profile(
    "search", max_examples=300, derandomize=False, deadline=None, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# Definitions of the activations, written without ulmus.
REFERENCE_ACTIVATIONS = {
    "logistic": special.expit,
    "tanh": np.tanh,
    "relu": lambda u: np.maximum(u, 0),
    "erf": special.erf,
    "cos": np.cos,
    "rbf": lambda u: np.exp(-(u**2)),
    "identity": lambda u: u,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark every test of hypothesis, so that none is missed by the search."""
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("properties")


class Table(NamedTuple):
    """Training rows X (n, d), y (n,), weights w (n,), and points X_new (p, d) among them."""

    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    X_new: np.ndarray


@pytest.fixture(scope="session")
def make_table():
    """Function that draws a table; the noise grows with the first input."""

    def make_table(n=60, d=3, p=7, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (n, d))
        X[0], X[1] = -1, 1  # the new points never lie outside the range
        noise = rng.standard_normal(n) * (0.3 + 0.15 * X[:, 0])
        y = 2 + np.sin(3 * X[:, 0]) + X[:, -1] * X[:, d // 2] + noise
        return Table(X, y, rng.uniform(0.3, 3, n), rng.uniform(-0.8, 0.8, (p, d)))

    return make_table


@pytest.fixture(scope="session")
def reference_activations():
    """Activation functions by name."""
    return REFERENCE_ACTIVATIONS


@pytest.fixture(scope="session")
def hidden():
    """Function that returns the hidden matrices of a fitted estimator, M arrays (p, N).

    It uses public attributes only; ``X_train`` and ``w`` are what the estimator was fitted to,
    and give the mean and the standard deviation of each input.
    """

    def hidden(model, X, X_train, w=None):
        if model.standardize:
            mean = np.average(X_train, axis=0, weights=w)
            sd = np.sqrt(np.average((X_train - mean) ** 2, axis=0, weights=w))
            X = (X - mean) / sd
        g = REFERENCE_ACTIVATIONS[model.activation]
        W, b = model.hidden_weights_, model.hidden_biases_
        return [g(X @ W_m + b_m) for W_m, b_m in zip(W, b, strict=True)]

    return hidden


@pytest.fixture(scope="session")
def make_layer():
    """Function that draws a hidden layer of the core; inputs are not scaled."""

    def make_layer(M, N, d, *, seed=1, scale=2.0, activation="logistic", constant=False):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(-scale, scale, (M, N, d))
        biases = rng.uniform(-scale, scale, (M, N))
        return HiddenLayer(weights, biases, Inputs(np.zeros(d), np.ones(d)), activation, constant)

    return make_layer


@pytest.fixture(scope="session")
def units():
    """Function that turns a layer's features into matrices for the oracles, M arrays (n, N)."""

    def units(layer, X):
        H = layer(X)[:, int(layer.constant) :, :]
        return [H_m.T for H_m in H]

    return units


@pytest.fixture
def fit_with_oracle(make_table, hidden):
    """Function that fits, and returns the model with the oracles' arguments and the points."""

    def fit_with_oracle(M=4, N=6, *, n=40, weighted=False, y=None, **parameters):
        data = make_table(n)
        w = np.where(np.arange(n) % 9 == 4, 0, data.w) if weighted else None  # some rows dropped
        model = member_or_ensemble(M, N, **parameters).fit(data.X, data.y if y is None else y, w)
        H, h = (hidden(model, X, data.X, w) for X in (data.X, data.X_new))
        arguments = (data.y if y is None else y, model.alpha_, model.fit_intercept, w)
        return model, (H, h, *arguments), data.X_new

    return fit_with_oracle


@pytest.fixture
def normal_rows():
    """Standard normal X (600, 3) and y = sin x0 + x1 + noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(600)


@pytest.fixture
def rng():
    """A generator of random numbers, the same in each test."""
    return np.random.default_rng(20)


@pytest.fixture
def normal_targets(rng):
    """Heteroskedastic normal targets with their true mean and sd, and row weights."""
    mean = rng.normal(size=300)
    std = rng.uniform(0.3, 3.0, size=300)
    return rng.normal(mean, std), mean, std, rng.uniform(0.0, 2.0, size=300)


@pytest.fixture
def oracle_problem():
    """H, h, y."""
    X, y, X_new = noisy_table()
    return hidden_matrices(X), hidden_matrices(X_new), y


@pytest.fixture
def row_weights():
    """Weights between 0.3 and 3 of the rows of an oracle problem."""
    return np.random.default_rng(2).uniform(0.3, 3, N_ROWS)


@pytest.fixture(scope="module", params=["torch", "array_api_strict"])
def xp(request):
    """An array library other than NumPy."""
    return pytest.importorskip(request.param, reason=f"needs {request.param}")


@pytest.fixture(scope="module")
def torch():
    """The library, where it is installed."""
    return pytest.importorskip("torch", reason="needs torch")


@pytest.fixture
def figures(monkeypatch):
    """The module pyplot without a screen; a test that shows a figure fails, and all are closed."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="needs matplotlib")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("a figure was shown"))
    yield plt
    plt.close("all")
