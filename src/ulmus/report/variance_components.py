"""Components of the variance of predictions, and its dependence on the ensemble size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.variance.estimates import sufficient_members, variance_at
from ulmus.diagnostics.checks.fit_checks import QUANTILE, TOLERANCE
from ulmus.plot._ensemble_size import INFINITE, member_counts
from ulmus.plot._link_scale import variance_factor
from ulmus.plot._variance import (
    CHOICE,
    MODEL,
    OBSERVATION,
    OWN,
    SHARED,
    WEIGHTS,
    model_components,
    positive_stack,
)
from ulmus.report.drawing import Figure, Grid, axes, dashes, marked_line, numbers
from ulmus.report.numbers import number, share
from ulmus.report.report_input import ReportInput

SAMPLE_ROWS = 500
PATTERN = {"fgcolor": "--ink", "fillmode": "overlay", "size": 6, "solidity": 0.25}
# Adjacent components differ in lightness and in their pattern.
LOOKS = {
    SHARED: ("--blue", ""),
    OWN: ("--sky", "/"),
    WEIGHTS: ("--vermilion", "x"),
    CHOICE: ("--yellow", "."),
    MODEL: ("--blue", ""),
    OBSERVATION: ("--pale", ""),
}


@dataclass(frozen=True)
class MeanVarianceComponents:
    """Mean variances over a sample of rows."""

    prediction: dict[str, float]  # components of the variance of a prediction, by their source
    noise: float  # noise variance of a new observation
    n_rows: int  # rows of the sample

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the components in the variance of a prediction."""
        total = sum(self.prediction.values())
        return {name: v / total if total > 0 else 0.0 for name, v in self.prediction.items()}

    @property
    def observation_shares(self) -> dict[str, float]:
        """Shares of the components and the noise in the variance of a new observation."""
        everything = self.prediction | {OBSERVATION: self.noise}
        total = sum(everything.values())
        return {name: v / total if total > 0 else 0.0 for name, v in everything.items()}


@dataclass(frozen=True)
class EnsembleSizeCurve:
    """Variance of the prediction against the number of members, mean over a sample of rows."""

    counts: tuple[int, ...]
    variance: FloatArray
    limit: float
    fitted: int
    suggested: int


def variance_components(report_input: ReportInput) -> MeanVarianceComponents:
    """Variance components at a sample of rows."""
    where = report_input.sample(SAMPLE_ROWS)
    table, inference = report_input.rows(where), report_input.inference
    if report_input.fit.ensemble.n_members > 1:
        found = positive_stack(model_components(inference, table, 0))
    else:
        found = {MODEL: np.asarray(inference.predict_var(table, component="model"))}
    # At the mean weight of the training rows; counts and point masses have none.
    fit = report_input.fit
    weight = None if fit.has_working_weights else np.full(len(where), fit.mean_weight)
    noise = np.mean(inference.predict_var(table, component="noise", sample_weight=weight))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return MeanVarianceComponents(means, float(noise), len(where))


def ensemble_size_curve(report_input: ReportInput) -> EnsembleSizeCurve | None:
    """Variance for other numbers of members; None for a single one."""
    fitted = report_input.fit.ensemble.n_members
    if fitted < 2:
        return None
    table = report_input.rows(report_input.sample(SAMPLE_ROWS))
    of_members = report_input.fit.parts(report_input.inference._table_points(table))
    suggested = sufficient_members(of_members, TOLERANCE, QUANTILE)
    counts = tuple(int(n) for n in member_counts(max(4 * fitted, 2 * suggested)))
    factor = variance_factor(report_input.inference, table, 0)
    *variance, limit = (
        float(np.mean(factor * variance_at(of_members, n)[:, 0])) for n in (*counts, INFINITE)
    )
    return EnsembleSizeCurve(counts, np.array(variance), limit, fitted, suggested)


def variance_figure(components: MeanVarianceComponents) -> Figure:
    """Stacked bars of the variance of a new observation and of the prediction."""
    shares = components.observation_shares, components.shares
    bars = dict(zip(("a new observation", "the prediction"), shares, strict=True))
    traces = []
    for name in components.observation_shares:
        color, pattern = LOOKS[name]
        heights = [each.get(name, 0.0) for each in bars.values()]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": numbers(heights),
                "y": [0, 1],
                "name": name,
                "marker": {
                    "color": color,
                    "line": {"color": "--ink", "width": 0.5},
                    "pattern": PATTERN | {"shape": pattern},
                },
                "hovertemplate": f"{name}: %{{x:.1%}}<extra></extra>",
            }
        )
    x_axis = {"tickformat": ".0%", "range": [0, 1.02], "nticks": 6, "tickangle": 0}
    layout = axes("share of the variance", "", x_axis)
    layout["yaxis"] |= {"tickvals": [0, 1], "ticktext": list(bars)}
    layout |= {"barmode": "stack", "height": 300}
    listed = ", ".join(f"{share(v)} {name}" for name, v in components.shares.items())
    rows = [
        (name, *(f"{each[name]:.1%}" if name in each else "" for each in bars.values()))
        for name in components.observation_shares
    ]
    return Figure(
        f"Stacked bars of variance components. The prediction: {listed}. A new observation: "
        f"{share(components.observation_shares[OBSERVATION])} is its own noise.",
        traces,
        layout,
        Grid(("component", *(f"of {name}" for name in bars)), tuple(rows)),
    )


def ensemble_size_figure(sizes: EnsembleSizeCurve) -> Figure:
    """Variance of the prediction against the number of members."""
    x = np.array(sizes.counts, dtype=float)
    top = 1.15 * max(float(np.max(sizes.variance)), sizes.limit)
    curve = marked_line(x, sizes.variance, "variance", "%{x} members: %{y:.4g}")
    limit = dashes([x[0], x[-1]], [sizes.limit] * 2, "infinitely many members")
    fitted = {
        "x": [sizes.fitted] * 2,
        "y": [0, top],
        "mode": "lines",
        "line": {"color": "--vermilion", "width": 2},
        "name": f"fitted: {sizes.fitted}",
        "hoverinfo": "skip",
    }
    ticks = [k * 10**e for e in range(6) for k in (1, 2, 5) if x[0] <= k * 10**e <= x[-1]]
    axis = {"type": "log", "tickvals": ticks, "ticktext": [number(v) for v in ticks]}
    rows = [(str(n), number(v)) for n, v in zip(sizes.counts, sizes.variance, strict=True)]
    here = float(np.interp(sizes.fitted, x, sizes.variance))
    return Figure(
        f"Mean variance of the prediction against the number of members: {number(here)} with the "
        f"{sizes.fitted} fitted ones, and {number(sizes.limit)} with infinitely many.",
        [curve, limit, fitted],
        axes("members", "variance of the prediction", axis, {"range": [0, top or 1]}),
        Grid(("members", "variance"), tuple(rows)),
    )
