"""The figures of a report: displays of ``ulmus.plot``, with descriptions and the data of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.plot import (
    CalibrationDisplay,
    CorrelogramDisplay,
    Curve,
    EnsembleSizeDisplay,
    PartialDependenceDisplay,
    PredictionErrorDisplay,
    RelevanceDisplay,
    ResidualsDisplay,
    VarianceDisplay,
)
from ulmus.plot._calibration import LEVELS, chance_band
from ulmus.plot._correlogram import TWO_SIDED
from ulmus.plot._style import shortened
from ulmus.plot._variance import OBSERVATION
from ulmus.report.contents import ReportContents
from ulmus.report.evaluation import Evaluation
from ulmus.report.numbers import capitalised, fixed, number, plural, share
from ulmus.report.relevance import MOST_INPUTS, RelevanceShares
from ulmus.report.report_input import LEAVE_ONE_OUT
from ulmus.report.svg import HEIGHT, WIDTH, svg_figure
from ulmus.report.tables import Grid, relevance_table, variance_table
from ulmus.report.variance_components import EnsembleSizeCurve, MeanVarianceComponents

PIT_BINS = 10
# Heights in inches: of the picture of predictions, of a frame, and of each bar in it.
TALL, FRAME, BAR = 3.6, 0.7, 0.22


@dataclass(frozen=True)
class Figure:
    """One figure."""

    name: str  # its identifier in the page
    caption: str
    alt: str  # description with numbers, for readers who do not see it
    svg: str  # the drawing
    data: Grid | None = None  # the same as a table, where it is small


def report_figures(contents: ReportContents) -> dict[str, Figure]:
    """All figures of a report by their names."""
    evaluation, name = contents.evaluation, contents.target_name
    parts: list[Figure] = []
    if evaluation is not None:
        leave_one_out = contents.evaluated_on == LEAVE_ONE_OUT
        parts += [
            prediction_figure(evaluation, name),
            coverage_figure(evaluation),
            pit_figure(evaluation),
            residuals_figure(evaluation, name, leave_one_out=leave_one_out),
        ]
    if contents.residual_correlation is not None:
        parts += correlation_figures(contents)
    parts += [relevance_figure(contents.relevance), variance_figure(contents.variance)]
    parts += curve_figures(contents)
    if contents.ensemble_size is not None:
        parts.append(ensemble_size_figure(contents.ensemble_size))
    return {one.name: one for one in parts}


def prediction_figure(evaluation: Evaluation, target_name: str) -> Figure:
    """Observations against predictions that do not use them, with intervals."""
    drawn = evaluation.drawn
    display = PredictionErrorDisplay(
        predictions=evaluation.predicted[drawn],
        observed=evaluation.observed[drawn],
        bounds=evaluation.bounds[drawn],
        y_name=target_name,
    )
    n_in, n = int(np.sum(display.inside)), len(drawn)
    return Figure(
        "predictions",
        f"Observed against predicted {target_name}",
        f"Observed against predicted values of {target_name} for {n} rows that their predictions "
        f"do not use, with 95% prediction intervals: {n_in} of the {n} observations are in their "
        "intervals. The dashed line is the identity.",
        svg_figure("predictions", lambda ax: display.plot(ax), TALL),
    )


def curve_figures(contents: ReportContents) -> list[Figure]:
    """Partial dependence on each of the most relevant inputs, on one scale."""
    y_label = f"mean {shortened(contents.target_name)}"
    ends = np.concatenate([curve.bounds for curve in contents.curves] or [np.zeros((1, 2))])
    limits = float(np.min(ends)), float(np.max(ends))
    pairs = zip(contents.curves, contents.curve_values, strict=True)
    return [
        _curve_figure(i, curve, values, contents, y_label, limits)
        for i, (curve, values) in enumerate(pairs)
    ]


def _curve_figure(
    i: int,
    curve: Curve,
    values: list[str],
    contents: ReportContents,
    y_label: str,
    limits: tuple[float, float],
) -> Figure:
    least, most = int(np.argmin(curve.estimate)), int(np.argmax(curve.estimate))
    columns = (curve.estimate, *curve.bounds.T)
    rows = [(value, *map(number, each)) for value, *each in zip(values, *columns, strict=True)]
    display = PartialDependenceDisplay(terms=[curve], y_label=y_label)
    margin = 0.05 * (limits[1] - limits[0]) or 1.0

    def draw(ax: Any) -> None:
        display.plot([ax])
        ax.set_ylim(limits[0] - margin, limits[1] + margin)
        ax.get_legend().remove()  # the text above the curves says what the bands are
        if curve.labels:
            ax.set_xticks(curve.grid, [shortened(label) for label in curve.labels])
            _rotate_long_labels(ax, curve.labels)

    return Figure(
        f"curve-{i}",
        f"{curve.name}: relevance {contents.relevance.text_of(curve.name)}",
        f"Partial dependence of {contents.target_name} on {curve.name}: minimum "
        f"{number(curve.estimate[least])} at {values[least]}, maximum "
        f"{number(curve.estimate[most])} at {values[most]}, with 95% bands.",
        svg_figure(f"curve-{i}", draw),
        Grid((curve.name, "mean prediction", "low", "high"), tuple(rows)),
    )


def _rotate_long_labels(ax: Any, labels: tuple[str, ...]) -> None:
    """Labels of categories that do not fit beside each other are at an angle."""
    if sum(min(len(label), 30) for label in labels) > 40:
        ax.tick_params("x", labelrotation=30)
        for label in ax.get_xticklabels():
            label.set_horizontalalignment("right")


def coverage_figure(evaluation: Evaluation) -> Figure:
    """Coverage of central predictive intervals against their level."""
    inside = np.abs(2 * evaluation.pit - 1)
    covered = np.array([np.mean(inside <= level) for level in LEVELS])
    largest = int(np.argmax(np.abs(covered - LEVELS)))
    display = CalibrationDisplay(pit=evaluation.pit, levels=LEVELS, coverage=covered)
    rows = [(share(a), f"{b:.1%}") for a, b in zip(LEVELS, covered, strict=True)]
    return Figure(
        "coverage",
        "Coverage of central predictive intervals",
        "Empirical coverage of central predictive intervals against their nominal level. The "
        f"largest difference is {100 * abs(covered[largest] - LEVELS[largest]):.1f} percentage "
        f"points: {covered[largest]:.1%} at {share(LEVELS[largest])}. The grey band contains 95% "
        "of samples of calibrated intervals.",
        svg_figure("coverage", lambda ax: display.plot([ax], panels=["coverage"])),
        Grid(("level", "coverage"), tuple(rows)),
    )


def pit_figure(evaluation: Evaluation) -> Figure:
    """Histogram of the probability integral transform."""
    counts, edges = np.histogram(evaluation.pit, np.linspace(0, 1, PIT_BINS + 1))
    heights = counts / len(evaluation.pit)
    low, high = chance_band(len(evaluation.pit), 1 / PIT_BINS)
    display = CalibrationDisplay(pit=evaluation.pit, levels=LEVELS, coverage=LEVELS)
    rows = [
        (f"{a:.1f} to {b:.1f}", f"{h:.1%}")
        for a, b, h in zip(edges[:-1], edges[1:], heights, strict=True)
    ]
    return Figure(
        "pit",
        "Probability integral transform (PIT)",
        "Histogram of the probability integral transform (PIT) of the observations, which is "
        f"uniform for calibrated distributions: each of {PIT_BINS} bins contains "
        f"{np.min(heights):.1%} to {np.max(heights):.1%} of the rows; 95% of samples of uniform "
        f"values lie between {low:.1%} and {high:.1%}.",
        svg_figure("pit", lambda ax: display.plot([ax], panels=["pit"], n_bins=PIT_BINS)),
        Grid(("PIT", "rows"), tuple(rows)),
    )


def residuals_figure(evaluation: Evaluation, target_name: str, *, leave_one_out: bool) -> Figure:
    """Standardised errors, or quantile residuals, against predictions."""
    name, drawn = evaluation.residual_name, evaluation.drawn
    display = ResidualsDisplay(
        predictions=evaluation.predicted[drawn],
        residuals=evaluation.scaled[drawn],
        labels=[shortened(evaluation.labels[i]) for i in drawn],
        y_name=target_name,
        residual_name=name,
        prediction_name="leave-one-out prediction" if leave_one_out else "prediction",
    )
    beyond = float(np.mean(np.abs(evaluation.scaled) > 2))
    return Figure(
        "residuals",
        f"{capitalised(plural(name))} against predictions",
        f"{capitalised(plural(name))} against predictions for {len(drawn)} rows: {beyond:.1%} "
        f"exceed 2 in absolute value, the largest is {np.max(np.abs(evaluation.scaled)):.1f}.",
        svg_figure("residuals", lambda ax: display.plot(ax)),
    )


def correlation_figures(contents: ReportContents) -> list[Figure]:
    """Autocorrelation of residuals by lag, and their variogram."""
    found = contents.residual_correlation
    assert found is not None  # the caller's condition
    serial, spatial = found.serial, found.spatial
    lags, r, reach = serial.lags, serial.correlations, TWO_SIDED * serial.deviations
    columns = zip(lags, r, reach, strict=True)
    rows = [(str(lag), fixed(value), f"±{fixed(width)}") for lag, value, width in columns]
    first = f"{r[0]:.2f} at lag 1; " if len(lags) else ""
    display = CorrelogramDisplay(correlogram=serial)
    parts = [
        Figure(
            "correlogram",
            "Correlogram of leave-one-out residuals",
            f"Autocorrelation of leave-one-out residuals by lag in rows: {first}"
            f"{int(np.sum(np.abs(r) > reach))} of {len(lags)} lags lie outside the 95% band of "
            "independent rows.",
            svg_figure("correlogram", lambda ax: display.plot(ax)),
            Grid(("lag", "autocorrelation", "95% band"), tuple(rows)),
        )
    ]
    if spatial is None:
        return parts
    y, total = spatial.semivariances, spatial.variance
    near = f"{number(y[0] / total, 2)} of it" if len(y) and total > 0 else "none"
    each = zip(spatial.distances, y, spatial.counts, strict=True)
    pairs = [(number(a), number(b), str(int(n))) for a, b, n in each]
    variogram = Figure(
        "variogram",
        "Variogram of leave-one-out residuals",
        "Semivariance of leave-one-out residuals by distance, compared with their variance of "
        f"{number(total)}: at the shortest distance it is {near}.",
        svg_figure("variogram", lambda ax: display.draw_variogram(ax, spatial)),
        Grid(("distance", "semivariance", "pairs"), tuple(pairs)),
    )
    return [*parts, variogram]


def relevance_figure(found: RelevanceShares) -> Figure:
    """Shares of the most relevant inputs in the prediction."""
    n = min(MOST_INPUTS, len(found.names))
    listed = ", ".join(f"{name} {found.text_of(name)}" for name in found.names[:5])
    display = RelevanceDisplay(
        names=found.names, relevance=found.shares, deviation=found.deviations
    )
    return Figure(
        "relevance",
        "Relevance of the inputs",
        f"Bars of the share of each input in the prediction: {listed}.",
        svg_figure("relevance", lambda ax: display.plot(ax, max_features=n), FRAME + BAR * n),
        relevance_table(found, n),
    )


def variance_figure(components: MeanVarianceComponents) -> Figure:
    """Stacked bars of the variance of the prediction and of a new observation."""
    listed = ", ".join(f"{share(v)} {name}" for name, v in components.shares.items())
    own = components.observation_shares
    names = list(components.prediction)
    display = VarianceDisplay(
        x=np.arange(2.0),
        parts={name: np.array([components.shares[name], own[name]]) for name in names},
        noise=np.array([0.0, own[OBSERVATION]]),
        connected=False,
        x_categories=("the prediction", "a new observation"),
        x_label="",
        y_label="share of the variance",
    )

    def draw(ax: Any) -> None:
        display.plot(ax)
        ax.set_yticks(np.linspace(0, 1, 5))
        ax.yaxis.set_major_formatter("{x:.0%}")

    return Figure(
        "variance",
        f"Variance components, mean over {components.n_rows} rows in the training range",
        f"Stacked bars of variance components. The prediction: {listed}. A new observation: "
        f"{share(own[OBSERVATION])} is its own noise.",
        svg_figure("variance", draw, HEIGHT, 1.15 * WIDTH),  # for its wide legend
        variance_table(components),
    )


def ensemble_size_figure(sizes: EnsembleSizeCurve) -> Figure:
    """Variance of the prediction against the number of members."""
    display = EnsembleSizeDisplay(
        n_estimators=np.array(sizes.counts),
        variance=sizes.variance,
        limit=sizes.limit,
        fitted=sizes.fitted,
        suggested=sizes.suggested,
    )
    rows = [(str(n), number(v)) for n, v in zip(sizes.counts, sizes.variance, strict=True)]
    here = float(np.interp(sizes.fitted, np.array(sizes.counts, dtype=float), sizes.variance))
    return Figure(
        "ensemble-size",
        "Variance of the prediction by ensemble size",
        f"Mean variance of the prediction against the number of members: {number(here)} with the "
        f"{sizes.fitted} fitted ones, and {number(sizes.limit)} with infinitely many.",
        svg_figure("ensemble-size", lambda ax: display.plot(ax)),
        Grid(("members", "variance"), tuple(rows)),
    )
