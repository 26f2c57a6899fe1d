"""Tables and plot of what uci.py has measured, beside published results and targets."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from uci_published import BEST, DUPLICATES, METHODS, PUBLISHED, TARGETS

MEASURES = {
    "rmse": "RMSE",
    "ll": "mean log density of the test rows, more is better",
    "crps": "CRPS of a normal distribution, less is better",
    "coverage": "coverage of 95 % intervals",
    "width": "mean width of 95 % intervals",
    "seconds": "seconds of a fit",
}
REFERENCE, JUDGED = "hgb", "ulmus"
REMARKS = (
    "All tables: mean (standard error over splits) [number of splits, if not all].",
    f"Over {REFERENCE}: geometric mean of RMSE / RMSE of {REFERENCE}, splits and sets of both.",
    DUPLICATES,
)

# What was measured: for a set and a model, for a split, a number for each of MEASURES.
Results = dict[tuple[str, str], dict[int, dict[str, float]]]

# Okabe and Ito's colours, safe for the colour-blind, with grey for their yellow.
STYLES = {
    "ulmus": ("#000000", "o"),
    "ulmus-none": ("#56B4E9", "s"),
    "ulmus-ard": ("#0072B2", "D"),
    "ulmus-full": ("#CC79A7", "^"),
    "forest": ("#009E73", "v"),
    "bayesian-ridge": ("#E69F00", "P"),
    "gpr-ard": ("#D55E00", "X"),
    "neo-ls-svm": ("#808080", "<"),
}


@dataclass
class Table:
    """Cells of text, with remarks under them."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    remarks: tuple[str, ...] = ()


class Study:
    """Results of some sets and models on the splits that are wanted.

    Parameters
    ----------
    results : Results
        What was measured, on these splits and perhaps on others.
    splits : dict of str to range
        For each set, in the order of the tables, the wanted splits.
    models : list of str
        Models in the order of the tables; those without results are omitted.
    """

    def __init__(self, results: Results, splits: dict[str, range], models: list[str]) -> None:
        self.splits = splits
        self.results = {
            (name, model): {split: rows[split] for split in splits[name] if split in rows}
            for (name, model), rows in results.items()
            if name in splits
        }
        self.models = [m for m in models if any(self.rows(name, m) for name in splits)]

    def rows(self, name: str, model: str) -> dict[int, dict[str, float]]:
        return self.results.get((name, model), {})

    def values(self, name: str, model: str, measure: str) -> np.ndarray:
        """One number for each split on which the model did not fail."""
        values = [row[measure] for row in self.rows(name, model).values()]
        return np.array([v for v in values if not np.isnan(v)])

    def mean(self, name: str, model: str, measure: str) -> float:
        values = self.values(name, model, measure)
        return np.mean(values) if len(values) else np.nan

    def log_ratios(
        self, name: str, model: str, measure: str = "rmse", reference: str = REFERENCE
    ) -> np.ndarray:
        """Logarithms of a measure over that of the reference, on the splits that both have."""
        ours, theirs = self.rows(name, model), self.rows(name, reference)
        both = [split for split in ours if split in theirs]
        logs = np.array([np.log(ours[s][measure] / theirs[s][measure]) for s in both])
        return logs[~np.isnan(logs)]

    def compared(self) -> list[str]:
        """Sets on which some other model can be compared with the reference."""
        others = [model for model in self.models if model != REFERENCE]
        return [name for name in self.splits if any(len(self.log_ratios(name, m)) for m in others)]

    def ratio(
        self, model: str, measure: str = "rmse", reference: str = REFERENCE
    ) -> tuple[float, int]:
        """Geometric mean over sets of a measure over the reference's, and how many they are."""
        per_set = [self.log_ratios(name, model, measure, reference) for name in self.splits]
        means = [np.mean(logs) for logs in per_set if len(logs)]
        return (np.exp(np.mean(means)) if means else np.nan), len(means)

    def relative(self, model: str) -> str:
        """RMSE over that of the reference, and the number of sets."""
        ratio, count = self.ratio(model)
        return f"{ratio:.3f} ({count} sets)" if count else "-"

    def cell(self, name: str, model: str, measure: str) -> str:
        """Mean, standard error in round brackets, splits in square ones unless all are there."""
        if not self.rows(name, model):
            return "-"
        values = self.values(name, model, measure)
        if not len(values):
            return "failed"
        text = with_error(np.mean(values), standard_error(values))
        return text if len(values) == len(self.splits[name]) else f"{text} [{len(values)}]"

    def coverage_cells(self, model: str, level: float) -> tuple[str, str]:
        """Mean over sets, and the set that is farthest from the level."""
        measured = [name for name in self.splits if self.rows(name, model)]
        covered = {name: self.mean(name, model, "coverage") for name in measured}
        worst = max(covered, key=lambda name: abs(covered[name] - level))
        return number(np.mean(list(covered.values()))), f"{number(covered[worst])} ({worst})"


def standard_error(values: np.ndarray) -> float:
    return np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without trailing zeros."""
    size = abs(value)
    if size >= 1000:
        return f"{value:.0f}"
    if 0 < size < 1e-3:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-")
    return f"{value:#.{digits}g}".rstrip(".")


def with_error(mean: float, error: float) -> str:
    """A mean and its standard error, to as many digits; empty for NaN."""
    text = number(mean)
    if np.isnan(error):
        return text
    if "e" in text:
        return f"{text} ({number(error, 2)})"
    return f"{text} ({error:.{len(text.partition('.')[2])}f})"


def tables(study: Study) -> Iterator[Table]:
    """A table for each measure, and the targets if the model they are set for was run."""
    for measure in MEASURES:
        yield measure_table(study, measure)
    if JUDGED in study.models:
        yield target_table(study)


def measure_table(study: Study, measure: str) -> Table:
    names = list(study.splits)
    head, remarks = ("model", *names), ()
    if measure == "rmse":
        head, remarks = (*head, f"over {REFERENCE}"), REMARKS
    table = Table(MEASURES[measure], head, remarks=remarks)
    for model in study.models:
        cells = [model] + [study.cell(name, model, measure) for name in names]
        table.rows.append((*cells, study.relative(model)) if measure == "rmse" else tuple(cells))
    if measure in PUBLISHED:
        table.rows.append(("published:",) + ("",) * (len(head) - 1))
        table.rows += published_rows(names, measure)
    return table


def published_rows(names: list[str], measure: str) -> Iterator[tuple[str, ...]]:
    """Rows for methods in print, and for the least RMSE of any."""
    last = ("-",) if measure == "rmse" else ()
    for i, method in enumerate(METHODS):
        yield (method, *(f"{PUBLISHED[measure][name][i]:.2f}" for name in names), *last)
    if measure == "rmse":
        for i, title in enumerate(("best of all", "its method")):
            yield (title, *(BEST[name][i] for name in names), *last)


def target_table(study: Study) -> Table:
    head = ("set", "RMSE", "at most", "reached", "log density", "at least", "reached")
    table = Table(f"targets of {JUDGED}", (*head, "coverage", "within", "reached"))
    low, high = TARGETS["coverage"]
    for name in study.splits:
        means = {m: study.mean(name, JUDGED, m) for m in MEASURES}
        most, least = TARGETS["rmse"][name], TARGETS["ll"].get(name)
        cells = [name, number(means["rmse"]), number(most), verdict(means["rmse"] <= most)]
        cells += [number(means["ll"]), "-", "-"]
        if least is not None:
            cells[-2:] = number(least), verdict(means["ll"] >= least)
        inside = low <= means["coverage"] <= high
        cells += [number(means["coverage"]), f"{low} to {high}", verdict(inside)]
        table.rows.append(tuple(cells))
    return table


def verdict(reached: bool) -> str:
    return "yes" if reached else "NO"


def print_table(table: Table, markdown: bool) -> None:
    """Print in columns, or as Markdown where that is wanted or rich is not installed."""
    if markdown or find_spec("rich") is None:
        print(f"\n### {table.title}\n")
        for row in (table.head, ("---",) * len(table.head), *table.rows):
            print(f"| {' | '.join(row)} |")
    else:
        print_columns(table)
    for remark in table.remarks:
        print(f"\n{remark}" if markdown else remark)


def print_columns(table: Table) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Columns

    shown = Columns(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, title in enumerate(table.head):
        shown.add_column(title, justify="right" if i else "left", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    print()
    Console(width=250, highlight=False, markup=False).print(shown)


def plot(study: Study, file: Path) -> None:
    """RMSE relative to the reference for each set, a dot with its standard error per model."""
    from matplotlib.figure import Figure

    names = study.compared()
    models = [model for model in study.models if model != REFERENCE]
    figure = Figure(figsize=(8, 1.6 + 0.7 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    for i, model in enumerate(models):
        draw_model(axes, study, names, model, shift=0.7 * ((i + 0.5) / len(models) - 0.5))
    axes.axvline(1, color="#808080", linewidth=1, zorder=0)
    for border in np.arange(len(names) - 1) + 0.5:
        axes.axhline(border, color="#dddddd", linewidth=0.8, zorder=0)
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel=f"RMSE relative to {REFERENCE} (log scale)")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    ratio_axis(axes)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(file, dpi=150)


def draw_model(axes: Any, study: Study, names: list[str], model: str, shift: float) -> None:
    """Dots at geometric means over splits, bars one standard error of the logarithm long."""
    logs = {i: study.log_ratios(name, model) for i, name in enumerate(names)}
    logs = {i: values for i, values in logs.items() if len(values)}
    centre = np.array([np.mean(values) for values in logs.values()])
    error = np.nan_to_num([standard_error(values) for values in logs.values()])
    dots = np.exp(centre)
    bars = np.abs(np.exp([centre - error, centre + error]) - dots)
    colour, marker = STYLES[model]
    axes.errorbar(
        dots,
        np.array(list(logs)) + shift,
        xerr=bars,
        color=colour,
        marker=marker,
        markersize=6,
        linestyle="none",
        label=model,
    )


def ratio_axis(axes: Any) -> None:
    """A logarithmic axis with plain numbers at it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
