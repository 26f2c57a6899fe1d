"""An estimator for skpro: the short import path of :mod:`ulmus.integrations.skpro`."""

from ulmus.integrations.skpro import ELMProbaRegressor

__all__ = ["ELMProbaRegressor"]
