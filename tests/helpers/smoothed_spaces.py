"""Directions that a smoother retains entirely."""

import numpy as np

from ulmus.core.noise_covariance.smoothed_space import SmoothedSpace


def fixed(A):
    """The space of orthonormal columns (n, k) along which the function is unrestricted."""
    return SmoothedSpace(A, np.ones(A.shape[1]))
