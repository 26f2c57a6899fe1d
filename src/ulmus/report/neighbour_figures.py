"""Figures of how far residuals of neighbouring rows agree."""

from __future__ import annotations

import numpy as np

from ulmus.core.noise_covariance.diagnostics import Correlogram, Variogram
from ulmus.report.drawing import Figure, Grid, axes, band, dashes, numbers
from ulmus.report.figures import CHANCE
from ulmus.report.numbers import number

# Standard deviations that hold 19 of 20 values.
TWO_SIDED = 1.96


def correlogram(found: Correlogram) -> Figure:
    """Correlation of residuals by how many rows they are apart."""
    lags, r, reach = found.lags, found.correlations, TWO_SIDED * found.deviations
    bars = {
        "type": "bar",
        "x": numbers(lags),
        "y": numbers(r),
        "width": numbers(np.full(len(lags), 0.35)),
        "marker": {"color": "--blue", "line": {"color": "--ink", "width": 0.5}},
        "name": "correlation",
        "hovertemplate": "%{x} apart: %{y:.2f}<extra></extra>",
    }
    rows = [
        (str(lag), f"{value:.3f}", f"±{width:.3f}")
        for lag, value, width in zip(lags, r, reach, strict=True)
    ]
    outside = int(np.sum(np.abs(r) > reach))
    said = f"successive rows have {r[0]:.2f}, and " if len(lags) else ""
    return Figure(
        f"Bars of the correlation of left-out residuals by how many rows they are apart: {said}"
        f"{outside} of {len(lags)} lie outside the band of chance.",
        [*band(lags.astype(float), -reach, reach, CHANCE), bars],
        axes("rows apart", "correlation", {"range": [0, len(lags) + 0.6]}),
        Grid(("rows apart", "correlation", "chance, 19 of 20"), tuple(rows)),
    )


def variogram(found: Variogram) -> Figure:
    """Half the mean squared difference of residuals by distance."""
    x, y = found.distances, found.semivariances
    marks = {
        "x": numbers(x),
        "y": numbers(y),
        "mode": "lines+markers",
        "line": {"color": "--blue", "width": 2},
        "name": "rows at a distance",
        "customdata": [int(n) for n in found.counts],
        "hovertemplate": "%{x:.3g} apart: %{y:.4g}, %{customdata} pairs<extra></extra>",
    }
    ends = [0.0, float(np.max(x, initial=0.0))]
    whole = dashes(ends, [found.variance] * 2, "variance of all rows")
    columns = zip(x, y, found.counts, strict=True)
    rows = [(number(a), number(b), str(int(n))) for a, b, n in columns]
    near = f"{number(y[0] / found.variance, 2)} of it" if len(y) and found.variance > 0 else "none"
    return Figure(
        "Half the mean squared difference of left-out residuals by distance, against their "
        f"variance of {number(found.variance)}: the nearest rows have {near}.",
        [marks, whole],
        axes(
            "distance",
            "half the squared difference",
            {"rangemode": "tozero"},
            {"rangemode": "tozero"},
        ),
        Grid(("distance", "half the squared difference", "pairs"), tuple(rows)),
    )
