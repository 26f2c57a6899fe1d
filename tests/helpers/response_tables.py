"""Observations of counts, amounts and rain with the same linear predictor."""

import numpy as np
from scipy import special


def observations(kind, eta, rng, *, mean=2.0, sd=0.4):
    """Poisson counts, lognormal amounts, or amounts many of which are zero, shape (n,)."""
    if kind == "count":
        return rng.poisson(mean * np.exp(eta)).astype(float)
    amounts = np.exp(eta + sd * rng.standard_normal(len(eta)))
    if kind == "rain":
        amounts[rng.random(len(eta)) < special.expit(-0.7 - eta)] = 0.0
    return amounts
