"""Thin scikit-learn shells around the core: parameters, validation, attributes."""

from ulmus.estimators.ensemble import ELMEnsembleRegressor
from ulmus.estimators.single import ELMRegressor

__all__ = ["ELMEnsembleRegressor", "ELMRegressor"]
