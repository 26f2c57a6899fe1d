"""Factories of estimators and tables for the tests; every parameter can be overridden."""

import numpy as np

from ulmus import ELMEnsembleRegressor, ELMRegressor

# A layer that does not depend on the defaults: uniform weights, no map, no expanded inputs.
PLAIN = {
    "input_map": None,
    "expand_inputs": None,
    "activation": "logistic",
    "weight_distribution": "uniform",
    "weight_scale": 1.0,
}


def plain_ensemble(n_estimators=20, n_neurons=100, **parameters):
    """An ensemble on the plain layer; the noise is homoskedastic by default."""
    parameters = PLAIN | {"noise": "homoskedastic"} | parameters
    return ELMEnsembleRegressor(n_estimators, n_neurons, **parameters)


def plain_member(n_neurons=100, **parameters):
    """One network on the plain layer; the noise is homoskedastic by default."""
    return ELMRegressor(n_neurons, **PLAIN | {"noise": "homoskedastic"} | parameters)


def small_ensemble(n_estimators, n_neurons, **parameters):
    """A plain ensemble with random_state 0."""
    return plain_ensemble(n_estimators, n_neurons, **{"random_state": 0} | parameters)


def mapped_ensemble(n_estimators, n_neurons, **parameters):
    """An ensemble on the default layer, which optimises an input map, with random_state 0."""
    return ELMEnsembleRegressor(n_estimators, n_neurons, **{"random_state": 0} | parameters)


def ensemble_of_three(n_neurons, **parameters):
    """A plain ensemble of three members, with the arguments of `plain_member`."""
    return plain_ensemble(3, n_neurons, **parameters)


def member_or_ensemble(n_members=4, n_neurons=6, **parameters):
    """A plain ensemble with weight_scale 2 and random_state 0; one network for n_members = 1."""
    parameters = {"weight_scale": 2.0, "random_state": 0} | parameters
    if n_members == 1:
        return plain_member(n_neurons, **parameters)
    return plain_ensemble(n_members, n_neurons, **parameters)


def every_estimate_ensemble(n_estimators=4, n_neurons=8, **parameters):
    """A small ensemble with weight_scale 2 that computes every estimate of the variance."""
    parameters = {"weight_scale": 2.0, "variance": "all"} | parameters
    return small_ensemble(n_estimators, n_neurons, **parameters)


def autoregressive(innovations, phi, scale=None):
    """Noise e[i] = phi e[i - 1] + scale * innovations[i]; the variance is constant by default."""
    scale = np.sqrt(1 - phi**2) if scale is None else scale
    e = np.array(innovations)
    for i in range(1, len(e)):
        e[i] = phi * e[i - 1] + scale * e[i]
    return e


def autocorrelated_table(n, phi, *, sd, seed=0, scale=None):
    """Two inputs in [-1, 1], and y = sin(3 x0) + sd * autoregressive noise."""
    rng = np.random.default_rng(seed)
    X, innovations = rng.uniform(-1, 1, (n, 2)), rng.standard_normal(n)
    return X, np.sin(3 * X[:, 0]) + sd * autoregressive(innovations, phi, scale)


def sine_table(n, *, low=-2.0, high=2.0, sd=0.3, seed=0):
    """One input in [low, high], and y = sin(x) + normal noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(low, high, (n, 1))
    return X, np.sin(X[:, 0]) + sd * rng.standard_normal(n)


def interaction_table(n, d, *, sd, n_points=0, seed=0):
    """Inputs in [-1, 1], y = sin(2 x0) + x1 x2 + normal noise, and points in [-0.9, 0.9]."""
    rng = np.random.default_rng(seed)
    X, points = rng.uniform(-1, 1, (n, d)), rng.uniform(-0.9, 0.9, (n_points, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + sd * rng.standard_normal(n), points
