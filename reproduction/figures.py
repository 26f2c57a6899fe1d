"""The paper's figures, drawn from results already computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from reproduction.runs import Result
from ulmus.datasets import FloatArray

Results = Mapping[str, Result]
Z = 1.96
DIAGONAL = "diagonal distance from the origin"
COLOURS = {"BR": "purple", "S2": "green", "S1": "red"}
TRUTH_STYLE: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 1}


def curve_axis(result: Result) -> FloatArray:
    """Position along the curve: the input, or the distance from the origin in maximum norm."""
    position: FloatArray = result.design.inputs[result.design.curve, 0] * result.study.scale
    return position


def standardised_errors(result: Result) -> FloatArray:
    """Prediction minus truth over its standard deviation, at the paper's point, (E,)."""
    centre, curve = result.study.centre, result.truth.curve[:, 0]
    f = result.design.f[result.design.curve]
    errors: FloatArray = (curve - f)[:, centre] / np.std(curve[:, centre], ddof=1)
    return errors


def coverage(result: Result, estimate: str | None) -> FloatArray:
    """Share of the intervals, 1.96 standard errors each way, that hold f on the curve, (C,).

    Without an estimate, of those with the true standard deviation around the ensembles of the
    ground truth.
    """
    f = result.design.f[result.design.curve]
    if estimate is None:
        prediction = result.truth.curve[:, 0]
        sd = np.std(prediction, axis=0, ddof=1)
    else:
        prediction = result.prediction[:, 0]
        sd = np.sqrt(result.variance[:, 0, result.study.estimates.index(estimate)])
    share: FloatArray = np.mean(np.abs(prediction - f) <= Z * sd, axis=0)
    return share


def _band(ax: Any, x: FloatArray, mean: FloatArray, sd: FloatArray, **style: Any) -> None:
    label = style.pop("label", None)
    ax.plot(x, mean, label=label, **style)
    for sign in (-1, 1):
        ax.plot(x, mean + sign * Z * sd, **(style | {"linewidth": 0.6}))


def _prediction(ax: Any, result: Result, estimate: str, colour: str) -> None:
    """One replication with its band, the ground truth with its own, and f."""
    x, j = curve_axis(result), result.study.estimates.index(estimate)
    sd = np.sqrt(result.variance[0, 0, j])
    mean = result.prediction[0, 0]
    ax.fill_between(x, mean - Z * sd, mean + Z * sd, color=colour, alpha=0.25, linewidth=0)
    ax.plot(x, mean, color=colour, label=f"one ensemble, ±{Z} sd ({estimate})")
    curve = result.truth.curve[:, 0]
    _band(ax, x, curve.mean(0), curve.std(0, ddof=1), label="ground truth", **TRUTH_STYLE)
    ax.plot(x, result.design.f[result.design.curve], color="black", label="f")


def _variances(ax: Any, result: Result, colours: Mapping[str, str]) -> None:
    """Mean estimates over replications, with their spread, and the ground truth."""
    x, truth = curve_axis(result), result.truth.curve[:, 0].var(0, ddof=1)
    for estimate, colour in colours.items():
        values = result.variance[:, 0, result.study.estimates.index(estimate)]
        mean, sd = values.mean(0), values.std(0, ddof=1)
        ax.fill_between(x, mean - Z * sd, mean + Z * sd, color=colour, alpha=0.2, linewidth=0)
        ax.plot(x, mean, color=colour, label=estimate)
    ax.plot(x, truth, label="ground truth", **TRUTH_STYLE)
    ax.set_ylabel("variance")
    # Bands may reach below zero, where a log axis is undefined.
    ax.set_yscale("log", nonpositive="clip")
    ax.set_ylim(bottom=truth.min() / 3)


def figure1(results: Results) -> Any:
    """Prediction with bands, and mean estimate against ground truth on a log axis."""
    figure, (left, right) = _axes(2)
    result = results["sine60"]
    _prediction(left, result, "BR", "magenta")
    _variances(right, result, {"BR": "magenta"})
    return _finished(figure, "x")


def figure2(results: Results) -> Any:
    """The same along the diagonal of the cube, with noise that depends on the inputs."""
    figure, (left, right) = _axes(2)
    result = results["heteroskedastic"]
    _prediction(left, result, "S2", "green")
    noise = result.design.variance[result.design.curve]
    left.plot(curve_axis(result), noise, color="black", linestyle="-.", label="noise variance")
    _variances(right, result, {name: COLOURS[name] for name in ("S2", "S1", "BR")})
    return _finished(figure, DIAGONAL)


def figure3(results: Results) -> Any:
    """Kernel densities of the standardised errors, beside Gaussians of unit variance."""
    figure, axes = _axes(3)
    titles = {
        "sine60": "one dimension, x0 = π/4",
        "friedman": "five dimensions, centre of the cube",
        "wide": "the same, N = 300, ridge",
    }
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        errors = standardised_errors(results[name])
        x = np.linspace(errors.mean() - 4, errors.mean() + 4, 201)
        ax.plot(x, scipy.stats.gaussian_kde(errors)(x), color="purple", label="kernel density")
        ax.plot(x, scipy.stats.norm.pdf(x, errors.mean()), label="Gaussian", **TRUTH_STYLE)
        ax.axvline(errors.mean(), **TRUTH_STYLE)
        ax.set_title(title)
    return _finished(figure, "g(x0)")


def figure4(results: Results) -> Any:
    """Coverage of f along the curve, with estimated and with true standard errors."""
    figure, axes = _axes(3)
    panels = {
        "sine60": ("BR", "one dimension", "x"),
        "friedman": ("BR", "five dimensions, homoskedastic", DIAGONAL),
        "heteroskedastic": ("S2", "five dimensions, heteroskedastic", DIAGONAL),
    }
    for ax, (name, (estimate, title, label)) in zip(axes, panels.items(), strict=True):
        result = results[name]
        x = curve_axis(result)
        ax.axhline(0.95, color="black", linestyle=":", linewidth=1)
        ax.plot(x, coverage(result, estimate), color=COLOURS[estimate], label=estimate)
        ax.plot(x, coverage(result, None), label="true sd", **TRUTH_STYLE)
        if name == "friedman":
            wide = coverage(results["wide"], "BR")
            ax.plot(x, wide, color="blue", label="BR, N = 300, ridge")
        ax.set_ylim(0, 1.02)
        ax.set_title(f"{title}, M = {result.study.figure_members}")
        ax.set_xlabel(label)
    axes[0].set_ylabel("coverage of f")
    return _finished(figure)


DRAWINGS: dict[str, Callable[[Results], Any]] = {
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
}


def _axes(count: int) -> tuple[Any, Any]:
    # No global state of pyplot: figures are made for files.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * count, 4), layout="constrained")
    return figure, figure.subplots(1, count)


def _finished(figure: Any, label: str | None = None) -> Any:
    for ax in figure.axes:
        if label is not None:
            ax.set_xlabel(label)
        ax.legend(fontsize="small")
    return figure


def write_figure(name: str, figure: Any, folder: Path) -> list[Path]:
    """Write a figure as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths
