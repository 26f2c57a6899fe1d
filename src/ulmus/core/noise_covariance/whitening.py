r"""Solves with covariances :math:`S = \sum_j w_j R_j + (1 - \sum_j w_j) I` of variance one.

``whitening(scales, shares, Y)`` is :math:`V Y` with :math:`V' V = S^{-1}`, and the log determinant
of S. Rows are in the order of their locations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.linalg

from ulmus.core.noise_covariance.locations import Locations, group_starts
from ulmus.core.noise_covariance.structure import MOST_DENSE, CovarianceStructure
from ulmus.core.noise_covariance.vecchia import NeighbourRoot

# Added to the diagonal, so that smooth kernels without a nugget have a Cholesky factor.
JITTER = 1e-10

Numbers = Sequence[float]


class NoiseWhitening(Protocol):
    """Whitened columns and the log determinant; LinAlgError if S is not positive definite."""

    def __call__(self, scales: Numbers, shares: Numbers, Y: np.ndarray) -> tuple[np.ndarray, float]:
        """V Y (n, k) and log|S|."""


def noise_whitening(structure: CovarianceStructure, locations: Locations) -> NoiseWhitening:
    """The cheapest exact method; nearest neighbours for many rows in space."""
    if structure.serial:
        return SerialWhitening(locations)
    if locations.n <= MOST_DENSE:
        return DenseWhitening(structure, locations)
    return NeighbourWhitening(structure, locations)


class SerialWhitening:
    r"""A continuous-time AR(1) process and a nugget, by banded matrices.

    With F the matrix that subtracts :math:`\phi_i` times the preceding row from each row, and
    :math:`D = \operatorname{diag}(1 - \phi_i^2)`, :math:`F R F' = D`. So
    :math:`F S F' = w D + (1 - w) F F'` is tridiagonal with a bidiagonal Cholesky factor C, and
    :math:`V = C^{-1} F`; the determinant of F is one.
    """

    def __init__(self, locations: Locations) -> None:
        self._steps = np.diff(locations.times, prepend=-np.inf)
        self._steps[group_starts(locations.codes)] = np.inf

    def __call__(self, scales: Numbers, shares: Numbers, Y: np.ndarray) -> tuple[np.ndarray, float]:
        """V Y (n, k) and log|S|."""
        C, phi = self._factor(scales, shares)
        FY = _differences(phi, Y)
        (tbtrs,) = scipy.linalg.get_lapack_funcs(("tbtrs",), (C, FY))
        white, _ = tbtrs(C, FY, uplo="L", overwrite_b=True)
        return white, 2 * float(np.sum(np.log(C[0])))

    def solved(self, scales: Numbers, shares: Numbers, Y: np.ndarray) -> np.ndarray:
        """The inverse of S times Y, shape (n, k)."""
        C, phi = self._factor(scales, shares)
        X = scipy.linalg.cho_solve_banded((C, True), _differences(phi, Y))
        X[:-1] -= phi[1:, None] * X[1:]
        return X

    def _factor(self, scales: Numbers, shares: Numbers) -> tuple[np.ndarray, np.ndarray]:
        """C in band storage (2, n), and the correlations of rows with the preceding ones (n,)."""
        (scale,), (w,) = scales, shares
        phi, phi2 = np.exp(-self._steps / scale), np.exp(-2 * self._steps / scale)
        band = np.zeros((2, len(phi)))
        band[0] = w * -np.expm1(-2 * self._steps / scale) + (1 - w) * (1 + phi2)
        band[1, :-1] = -(1 - w) * phi[1:]
        return scipy.linalg.cholesky_banded(band, lower=True), phi


def _differences(phi: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """F Y."""
    FY = Y.copy(order="F")
    FY[1:] -= phi[1:, None] * Y[:-1]
    return FY


class DenseWhitening:
    """Any sum of terms, by a Cholesky factor of the whole matrix."""

    def __init__(self, structure: CovarianceStructure, locations: Locations) -> None:
        self._kernels = [term.kernel for term in structure.terms]
        self._distances = [term.distances(locations) for term in structure.terms]
        self._same_series = [term.same_series(locations) for term in structure.terms]

    def __call__(self, scales: Numbers, shares: Numbers, Y: np.ndarray) -> tuple[np.ndarray, float]:
        """V Y (n, k) and log|S|."""
        S = np.zeros_like(self._distances[0])
        parts = zip(self._kernels, self._distances, self._same_series, scales, shares, strict=True)
        for kernel, distance, same_series, scale, share in parts:
            S += share * kernel(distance, scale) * same_series
        S[np.diag_indices_from(S)] = 1 + JITTER
        L = scipy.linalg.cholesky(S, lower=True, overwrite_a=True, check_finite=False)
        white = scipy.linalg.solve_triangular(L, Y, lower=True, check_finite=False)
        return white, 2 * float(np.sum(np.log(np.diagonal(L))))


class NeighbourWhitening:
    """One term in space and a nugget, by the approximation of Vecchia (1988)."""

    def __init__(self, structure: CovarianceStructure, locations: Locations) -> None:
        (term,) = structure.terms
        self._kernel, self._neighbours = term.kernel, locations.neighbours

    def __call__(self, scales: Numbers, shares: Numbers, Y: np.ndarray) -> tuple[np.ndarray, float]:
        """V Y (n, k) and log|S|."""
        (scale,), (w,) = scales, shares
        root = NeighbourRoot(self._neighbours, lambda d: w * self._kernel(d, scale), nugget=1 - w)
        return root.whitened(Y), root.log_det
