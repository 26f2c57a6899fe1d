"""The paper's tables: records with the published numbers, and their layout."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reproduction.measures import ERROR_MEASURES, FIT_MEASURES
from reproduction.runs import Options, Result
from reproduction.settings import (
    PAPER_ENSEMBLES,
    PAPER_REPLICATIONS,
    TABLES,
    Column,
)

if TYPE_CHECKING:
    from rich.table import Table

SPLITS = ("train", "test")
KEYS = ("table", "setting", "n_estimators", "split", "measure", "estimate")
LABELS = {"se": "se_k", "e": "e_k", "re": "re_k", "mse": "MSE", "relative_mse": "RE"}
# The paper prints three decimals.
ROUNDING = 0.001 / np.sqrt(12)


class Record(NamedTuple):
    """One number of a table: ours, with its standard deviation over replications, and theirs."""

    table: str
    setting: str
    n_estimators: int
    split: str
    measure: str
    estimate: str
    mean: float
    sd: float | None
    paper_mean: float | None
    paper_sd: float | None


@cache
def published() -> dict[tuple[str, ...], tuple[float, float | None]]:
    """Mean and standard deviation of every number in the paper's tables, by its row."""
    file = resources.files("reproduction") / "published.csv"
    with file.open(encoding="utf-8") as lines:
        return {
            tuple(row[key] for key in KEYS): (
                float(row["mean"]),
                float(row["sd"]) if row["sd"] else None,
            )
            for row in csv.DictReader(lines)
        }


def records(name: str, results: Mapping[str, Result]) -> list[Record]:
    """All numbers of a table."""
    return [
        record
        for column in TABLES[name]
        for record in _column_records(name, column, results[column.study])
    ]


def _column_records(table: str, column: Column, result: Result) -> list[Record]:
    study, found = result.study, []
    for M in column.members:
        if M not in study.members:
            continue
        k = study.members.index(M)
        for s, split in enumerate(SPLITS):
            row = (table, column.setting, M, split)
            for name, values in _samples(column, result, k, s).items():
                mean, sd = float(np.mean(values)), float(np.std(values, ddof=1))
                found.append(_record((*row, *name), mean, sd))
            points = result.design.train if s == 0 else result.design.test
            truth = float(np.median(result.truth.sd[column.alpha, k, points]))
            found.append(_record((*row, "se", "truth"), truth, None))
    return found


def _samples(column: Column, result: Result, k: int, s: int) -> dict[tuple[str, str], Any]:
    """Values of all replications by measure and estimate."""
    estimates = column.estimates or result.study.estimates
    samples = {}
    for measure in column.measures:
        if measure in FIT_MEASURES:
            index = FIT_MEASURES.index(measure)
            samples[measure, estimates[0]] = result.fits[:, column.alpha, k, s, index]
            continue
        for estimate in estimates:
            j = result.study.estimates.index(estimate)
            errors = result.errors[:, column.alpha, k, j, s]
            samples[measure, estimate] = errors[:, ERROR_MEASURES.index(measure)]
    return samples


def _record(key: tuple[Any, ...], mean: float, sd: float | None) -> Record:
    paper_mean, paper_sd = published().get(tuple(map(str, key)), (None, None))
    return Record._make((*key, mean, sd, paper_mean, paper_sd))


def monte_carlo_errors(record: Record, options: Options) -> float | None:
    """Difference from the paper in standard errors of both simulations and its rounding.

    The standard deviation of E Gaussian predictions has a relative error of 1/sqrt(2E). The
    inputs are another draw than the paper's, which this does not count.
    """
    if record.paper_mean is None:
        return None
    if record.sd is None:
        counts = 1 / options.ensembles + 1 / PAPER_ENSEMBLES
        variance = record.mean**2 * counts / 2
    else:
        paper_sd = record.sd if record.paper_sd is None else record.paper_sd
        variance = record.sd**2 / options.replications + paper_sd**2 / PAPER_REPLICATIONS
    return float((record.mean - record.paper_mean) / np.sqrt(variance + ROUNDING**2))


def printed_table(name: str, found: list[Record], options: Options) -> Table:
    """The table in the paper's layout; each cell has ours, the paper's and the difference."""
    from rich.table import Table

    columns = list(dict.fromkeys((r.setting, r.estimate) for r in found))
    caption = "mean (sd); below, the paper's and the difference in Monte-Carlo standard errors"
    table = Table(title=f"{name}: {caption}")
    for title in ("M", "points", "measure"):
        table.add_column(title)
    for setting, estimate in columns:
        table.add_column(f"{setting}\n{estimate}", no_wrap=True)
    cells = {(r.n_estimators, r.split, r.measure, r.setting, r.estimate): r for r in found}
    previous = None
    for M, split, measure in dict.fromkeys(key[:3] for key in cells):
        if previous not in (None, (M, split)):
            table.add_section()
        previous = (M, split)
        row = [cells.get((M, split, measure, *column)) for column in columns]
        texts = [_cell(record, options) for record in row]
        table.add_row(str(M), split, LABELS[measure], *texts)
    return table


def _cell(record: Record | None, options: Options) -> str:
    if record is None:
        return "---"
    ours = f"{record.mean:.3f}" + ("" if record.sd is None else f" ({record.sd:.3f})")
    if record.paper_mean is None:
        return ours
    sd = "" if record.paper_sd is None else f" ({record.paper_sd:.3f})"
    return f"{ours}\n{record.paper_mean:.3f}{sd} {monte_carlo_errors(record, options):+.1f}"


def write_json(rows: Sequence[NamedTuple], path: Path) -> None:
    """Write records as a JSON list of objects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([row._asdict() for row in rows], indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def write_csv(rows: Sequence[NamedTuple], path: Path) -> None:
    """Write records as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)
