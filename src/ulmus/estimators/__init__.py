"""Estimators with the scikit-learn interface: parameters, validation and attributes."""

from ulmus.estimators.ensemble import ELMEnsembleRegressor
from ulmus.estimators.single import ELMRegressor

__all__ = ["ELMEnsembleRegressor", "ELMRegressor"]
