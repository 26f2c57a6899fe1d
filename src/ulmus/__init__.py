"""Regression by ensembles of Extreme Learning Machines with error bars in closed form."""

from ulmus.estimators import ELMEnsembleRegressor, ELMRegressor
from ulmus.model_file import load
from ulmus.pipelines import inference
from ulmus.version import __version__

__all__ = ["ELMEnsembleRegressor", "ELMRegressor", "__version__", "inference", "load"]
