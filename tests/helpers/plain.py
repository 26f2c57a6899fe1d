"""Estimators whose layer is spelled out, for tests that are not about the defaults."""

from ulmus import ELMEnsembleRegressor, ELMRegressor

PLAIN = {
    "input_map": None,
    "expand_inputs": None,
    "activation": "logistic",
    "weight_distribution": "uniform",
    "weight_scale": 1.0,
}


def plain_ensemble(n_estimators=20, n_neurons=100, **parameters):
    """An ensemble on the plain layer, of constant noise unless told."""
    parameters = PLAIN | {"noise": "homoskedastic"} | parameters
    return ELMEnsembleRegressor(n_estimators, n_neurons, **parameters)


def plain_member(n_neurons=100, **parameters):
    """One network on the plain layer, of constant noise unless told."""
    return ELMRegressor(n_neurons, **PLAIN | {"noise": "homoskedastic"} | parameters)
