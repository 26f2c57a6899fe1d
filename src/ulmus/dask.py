"""Fitting and predicting Dask collections: the short import path of :mod:`ulmus.integrations.dask`."""

from ulmus.integrations.dask import fit, predict, predict_var

__all__ = ["fit", "predict", "predict_var"]
