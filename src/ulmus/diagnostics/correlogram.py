"""Correlogram and variogram of the leave-one-out residuals of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from ulmus.core.fit.fit import Fit
from ulmus.core.noise_covariance.diagnostics import Correlogram, Variogram, correlogram
from ulmus.core.noise_covariance.locations import Locations
from ulmus.diagnostics.checks.residual_correlation import space_variogram

# Lags that are computed, but no more than this share of the rows.
MOST_LAGS, SHARE = 24, 0.25


@dataclass(frozen=True)
class ResidualCorrelation:
    """Correlogram and variogram of the residuals of an output."""

    serial: Correlogram  # by lag, in the order of the times where these are known, else of the rows
    spatial: Variogram | None  # by distance, where coordinates are known


def residual_correlation(fit: Fit, k: int = 0) -> ResidualCorrelation | None:
    """Residual correlation of the training rows; None for a fit that keeps none."""
    rows = fit.rows
    if rows is None:
        return None
    used = rows.data.used
    locations = (rows.locations or Locations(n=rows.data.n_rows)).taken(used)
    n_lags = max(1, min(MOST_LAGS, int(SHARE * locations.n)))
    serial = correlogram(rows.weighted_residuals[k, used], locations, n_lags)
    return ResidualCorrelation(serial, space_variogram(fit, k))
