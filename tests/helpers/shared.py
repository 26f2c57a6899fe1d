"""What several test files need where fixtures cannot be used: marks, settings, questions."""

import re
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from plain import plain_ensemble, plain_member

from reproduction import STUDIES

# The paper's settings with few test points and small ensembles.
MINIATURES = {
    "sine60": {"members": (5, 10), "n_test": 100},
    "sine100": {"members": (5, 10), "n_test": 100},
    "friedman": {"members": (5, 10), "n_test": 60},
    "heteroskedastic": {"members": (5,), "n_test": 200},
    "wide": {"n_test": 60},
}
LEVELS = [0.5, 0.8, 0.9]
PREDICTION_METHODS = ["auto", "jackknife+", "gaussian"]
TARGETS = ["function", "expectation"]

# The same examples in every run: what fails here fails everywhere.
few = settings(max_examples=12, deadline=None, derandomize=True)
moderate_floats = st.floats(-50, 50)

alphas = pytest.mark.parametrize("alpha", [0.0, 0.3])
intercepts = pytest.mark.parametrize("intercept", [False, True])
members = pytest.mark.parametrize("M", [1, 4])
noises = pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
weightings = pytest.mark.parametrize("weighted", [False, True])


def ensemble(M=4, N=6, **parameters):
    """An unfitted ensemble, or one network for M = 1."""
    parameters = {"weight_scale": 2.0, "random_state": 0, **parameters}
    return plain_member(N, **parameters) if M == 1 else plain_ensemble(M, N, **parameters)


def paper_miniature(name):
    """A study of the paper, made small."""
    return replace(STUDIES[name], **MINIATURES[name])


def every_interval(model, X, levels):
    """Intervals of each kind and method, by name."""
    out = {m: model.predict_interval(X, levels, method=m) for m in PREDICTION_METHODS}
    for target in TARGETS:
        for method in ("t", "normal"):
            out[f"{target}, {method}"] = model.predict_interval(
                X, levels, kind="confidence", target=target, method=method
            )
    return out


def three(n_neurons, **parameters):
    """An ensemble of three."""
    return plain_ensemble(3, n_neurons, **parameters)


both = pytest.mark.parametrize("make", [plain_member, three])


def says(*words):
    """Pattern of a message that holds all the words, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(word)})" for word in words)


def pinball(y, q, tau):
    """Loss of the quantile q of level tau."""
    return tau * (y - q) if y >= q else (1 - tau) * (q - y)
