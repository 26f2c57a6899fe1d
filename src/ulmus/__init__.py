"""Regression by ensembles of Extreme Learning Machines with error bars in closed form."""

from ulmus.estimators import ELMEnsembleRegressor, ELMRegressor
from ulmus.files import load
from ulmus.pipelines import answers

__version__ = "0.2.0.dev0"

__all__ = ["ELMEnsembleRegressor", "ELMRegressor", "__version__", "answers", "load"]
