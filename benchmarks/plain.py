"""The estimator that the benchmarks measure, spelled out so that its figures stay comparable."""

from typing import Any

from ulmus import ELMEnsembleRegressor

PLAIN = {
    "input_map": None,
    "expand_inputs": None,
    "activation": "logistic",
    "weight_distribution": "uniform",
    "weight_scale": 1.0,
    "noise": "homoskedastic",
}


def plain_ensemble(
    n_estimators: int = 20, n_neurons: int = 100, **parameters: Any
) -> ELMEnsembleRegressor:
    """An ensemble on the plain layer, of constant noise by default."""
    return ELMEnsembleRegressor(n_estimators, n_neurons, **PLAIN | parameters)
