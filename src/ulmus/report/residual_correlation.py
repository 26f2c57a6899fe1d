"""Correlation of leave-one-out residuals of neighbouring rows, in order and in space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.noise_covariance.diagnostics import Correlogram, Variogram, correlogram
from ulmus.core.noise_covariance.locations import Locations
from ulmus.diagnostics.checks.residual_correlation import space_variogram
from ulmus.report.drawing import Figure, Grid, axes, band, dashes, marked_line, numbers
from ulmus.report.numbers import number
from ulmus.report.report_input import ReportInput

# Lags that are drawn, but no more than this share of the rows.
MOST_LAGS, SHARE = 24, 0.25
# The 97.5 % quantile of the normal distribution.
TWO_SIDED = 1.96


@dataclass(frozen=True)
class ResidualCorrelation:
    """Correlogram and variogram of the residuals."""

    serial: Correlogram  # by lag, in the order of the times where these are known, else of the rows
    spatial: Variogram | None  # by distance, where coordinates are known


def residual_correlation(report_input: ReportInput) -> ResidualCorrelation | None:
    """Residual correlation of the training rows; None for a fit that keeps none."""
    rows = report_input.fit.rows
    if rows is None:
        return None
    used = rows.data.used
    locations = (rows.locations or Locations(n=rows.data.n_rows)).taken(used)
    n_lags = max(1, min(MOST_LAGS, int(SHARE * locations.n)))
    serial = correlogram(rows.weighted_residuals[0, used], locations, n_lags)
    return ResidualCorrelation(serial, space_variogram(report_input.fit, 0))


def correlogram_figure(found: Correlogram) -> Figure:
    """Autocorrelation of residuals by lag."""
    lags, r, reach = found.lags, found.correlations, TWO_SIDED * found.deviations
    bars = {
        "type": "bar",
        "x": numbers(lags),
        "y": numbers(r),
        "width": numbers(np.full(len(lags), 0.35)),
        "marker": {"color": "--blue", "line": {"color": "--ink", "width": 0.5}},
        "name": "correlation",
        "hovertemplate": "lag %{x}: %{y:.2f}<extra></extra>",
    }
    rows = [
        (str(lag), f"{value:.3f}", f"±{width:.3f}")
        for lag, value, width in zip(lags, r, reach, strict=True)
    ]
    outside = int(np.sum(np.abs(r) > reach))
    first = f"{r[0]:.2f} at lag 1; " if len(lags) else ""
    return Figure(
        f"Autocorrelation of leave-one-out residuals by lag in rows: {first}{outside} of "
        f"{len(lags)} lags lie outside the 95% band of independent rows.",
        [*band(lags.astype(float), -reach, reach, "95% band if independent"), bars],
        axes("lag (rows)", "autocorrelation", {"range": [0, len(lags) + 0.6]}),
        Grid(("lag", "autocorrelation", "95% band"), tuple(rows)),
    )


def variogram_figure(found: Variogram) -> Figure:
    """Semivariance of residuals by distance."""
    x, y = found.distances, found.semivariances
    hover = "distance %{x:.3g}: %{y:.4g}, %{customdata} pairs"
    marks = marked_line(x, y, "semivariance", hover)
    marks["customdata"] = [int(n) for n in found.counts]
    ends = [0.0, float(np.max(x, initial=0.0))]
    whole = dashes(ends, [found.variance] * 2, "variance of all rows")
    columns = zip(x, y, found.counts, strict=True)
    rows = [(number(a), number(b), str(int(n))) for a, b, n in columns]
    near = f"{number(y[0] / found.variance, 2)} of it" if len(y) and found.variance > 0 else "none"
    from_zero = {"rangemode": "tozero"}
    return Figure(
        "Semivariance of leave-one-out residuals by distance, compared with their variance of "
        f"{number(found.variance)}: at the shortest distance it is {near}.",
        [marks, whole],
        axes("distance", "semivariance", from_zero, from_zero),
        Grid(("distance", "semivariance", "pairs"), tuple(rows)),
    )
