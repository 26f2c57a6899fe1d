"""Whether left-out residuals of neighbouring rows agree."""

from __future__ import annotations

from dataclasses import dataclass

from ulmus.core.noise_covariance.diagnostics import Correlogram, Variogram, correlogram
from ulmus.core.noise_covariance.locations import Locations
from ulmus.diagnostics.residual_correlation import space_variogram
from ulmus.report.subject import Subject

# Lags that are drawn, but no more than this share of the rows.
MOST_LAGS, SHARE = 24, 0.25


@dataclass(frozen=True)
class Neighbours:
    """Agreement of neighbours in the order of the rows, and in space.

    Parameters
    ----------
    serial : Correlogram
        By how many rows are between them, in the order of their times where these are known.
    in_space : Variogram or None
        By distance, where coordinates are known.
    """

    serial: Correlogram
    in_space: Variogram | None


def neighbours(subject: Subject) -> Neighbours | None:
    """Agreement of the training rows of a model; None where it keeps none."""
    rows = subject.fit.rows
    if rows is None:
        return None
    used = rows.data.used
    locations = (rows.locations or Locations(n=rows.data.n_rows)).taken(used)
    n_lags = max(1, min(MOST_LAGS, int(SHARE * locations.n)))
    serial = correlogram(rows.weighted_residuals[0, used], locations, n_lags)
    return Neighbours(serial, space_variogram(subject.fit, 0))
