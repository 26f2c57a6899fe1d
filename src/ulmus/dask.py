"""Fitting and predicting Dask collections: short path of :mod:`ulmus.integrations.dask`."""

from ulmus.integrations.dask import fit, predict, predict_var

__all__ = ["fit", "predict", "predict_var"]
