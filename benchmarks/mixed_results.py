"""Scores of mixed_tables.py in a file, and the rows that it prints of them."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from mixed_models import GROUPS, LEVEL, MODELS
from report import Row

from ulmus.atomic_write import atomic_write

# What is measured of a model under other names; features by hand do not depend on tables.
DERIVED = {"ulmus": ("default noise", "AR1")}
Found = dict[str, dict[str, dict[str, Any]]]  # scores by model and split, of each table


class Results:
    """Scores by part, table, model and split in a JSON file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.file = options, options.out
        self.parts: dict[str, Found] = (
            json.loads(self.file.read_text()) if self.file.exists() else {}
        )
        for part in [options.only] if options.only else list(self.parts):
            for name, models in self.parts.get(part, {}).items():
                if options.tables and name.split(",")[0] not in options.tables:
                    continue
                for model in options.again:
                    for measured in (model, *DERIVED.get(model, ())):
                        models.pop(measured, None)

    def score(self, part: str, table: str, model: str, split: int, run: Callable) -> None:
        """Scores of a split, unless they are there."""
        rows = self.parts.setdefault(part, {}).setdefault(table, {}).setdefault(model, {})
        done = "error" not in rows.get(str(split), {"error": "not measured"})
        if self.options.table_only or done:
            return
        rows[str(split)] = found = run()
        said = ", ".join(f"{name} {show(value)}" for name, value in found.items())
        self.options.printer(f"{part} {table}, {model}, split {split}: {said}")
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.file) as temporary:
            temporary.write_text(json.dumps(self.parts, indent=1))

    def pairs(self, part: str, table: str, first: str, second: str) -> list[tuple[dict, dict]]:
        """Scores of two models on the splits where both were successful."""
        models = self.parts.get(part, {}).get(table, {})
        one, other = models.get(first, {}), models.get(second, {})
        both = [(one[split], other[split]) for split in one if split in other]
        return [(a, b) for a, b in both if "error" not in a and "error" not in b]

    def successful(self, part: str, table: str, model: str) -> list[dict[str, Any]]:
        rows = self.parts.get(part, {}).get(table, {}).get(model, {})
        return [row for row in rows.values() if "error" not in row]

    def errors(self, part: str, table: str) -> Iterator[str]:
        for model, rows in self.parts.get(part, {}).get(table, {}).items():
            messages = {row["error"] for row in rows.values() if "error" in row}
            yield from (f"{table}: {model} failed, {message}" for message in messages)


def show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def log_ratio(pairs: Iterable[tuple[dict, dict]], measure: str = "rmse") -> float:
    """Mean logarithm of the ratio of two models; NaN without splits."""
    logs = [np.log(one[measure] / other[measure]) for one, other in pairs]
    return float(np.mean(logs)) if logs else np.nan


def shares(rows: Iterable[dict[str, Any]]) -> dict[str, tuple[int, float]]:
    """Number of rows and coverage by group."""
    rows = list(rows)
    found = {}
    for group in GROUPS:
        n, covered = np.sum([row[group] for row in rows if group in row] or [[0, 0]], axis=0)
        found[group] = int(n), float(covered / n) if n else np.nan
    return found


# --- rows of several tables beside boosting -------------------------------------------------------


def table_rows(results: Results, part: str, tables: list[str], ours: str) -> Iterator[Row]:
    """RMSE over those of the rivals for each table."""
    for name in tables:
        own = results.successful(part, name, ours)
        if not own:
            continue
        ratio = np.exp(log_ratio(results.pairs(part, name, ours, "boosting")))
        others = [
            f"over {rival} {np.exp(log_ratio(results.pairs(part, name, ours, rival))):.3f}"
            for rival in ("catboost", "encoder")
            if rival != ours and results.successful(part, name, rival)
        ]
        covered = (
            f"{group} {share:.3f} of {n}" for group, (n, share) in shares(own).items() if n > 0
        )
        times = np.exp(log_ratio(results.pairs(part, name, ours, "boosting"), "seconds"))
        rmse, seconds = (np.mean([row[measure] for row in own]) for measure in ("rmse", "seconds"))
        own_text = f"RMSE {rmse:.4g}, {seconds:.1f} s ({times:.0f} x)"
        source = "; ".join([own_text, *others, "covered " + ", ".join(covered)])
        yield Row(f"{name}: RMSE over boosting's", float(ratio), "ratio", source)


def total_rows(
    results: Results, part: str, tables: list[str], ours: str, target: float
) -> Iterator[Row]:
    """Geometric means over tables, and coverage of the rows of all of them."""
    for rival, goal in {"boosting": target, "catboost": None, "encoder": None}.items():
        logs = [log_ratio(results.pairs(part, name, ours, rival)) for name in tables]
        measured = [value for value in logs if np.isfinite(value)]
        if rival == ours or not measured:
            continue
        mean = float(np.exp(np.mean(measured)))
        worst = (
            f"{len(measured)} tables, {np.exp(min(measured)):.2f} to {np.exp(max(measured)):.2f}"
        )
        bound = "" if goal is None else "<="
        yield Row(f"{part}: RMSE over {rival}'s, geometric mean", mean, "ratio", worst, bound, goal)
        times = [log_ratio(results.pairs(part, name, ours, rival), "seconds") for name in tables]
        yield Row(
            f"{part}: processor time over {rival}'s", float(np.exp(np.nanmean(times))), "x", ""
        )
    by_table = {name: shares(results.successful(part, name, ours)) for name in tables}
    for group in GROUPS:
        yield from coverage_rows(part, group, by_table)


def coverage_rows(part: str, group: str, by_table: dict) -> Iterator[Row]:
    """Coverage of the rows of a group, each table with the same weight, against .87 and .93."""
    found = {name: share[group] for name, share in by_table.items() if share[group][0] >= 20}
    if not found:
        return
    values = {name: share for name, (_, share) in found.items()}
    mean = float(np.mean(list(values.values())))
    worst = max(values, key=lambda name: abs(values[name] - LEVEL))
    n = sum(n for n, _ in found.values())
    source = f"{n} rows of {len(found)} tables, worst {values[worst]:.3f} ({worst})"
    title = f"{part}: coverage of 90 % intervals, {group} rows"
    yield Row(title, mean, "rate", source, ">=", 0.87)
    yield Row(f"{title}, not above", mean, "rate", "the same", "<=", 0.93)


def total(results: Results, part: str, tables: list[str], target: float) -> Iterator[Row]:
    """Rows of ELMEnsembleRegressor, or of the Pipeline if the former failed everywhere."""
    for name in tables:
        for line in results.errors(part, name):
            results.options.printer(line)
    for ours in ("ulmus", "encoder"):
        measured = [name for name in tables if results.successful(part, name, ours)]
        if measured:
            text = MODELS[ours].run.__doc__ or ""
            results.options.printer(f"\n{ours}: {text.splitlines()[0]}")
            yield from table_rows(results, part, measured, ours)
            yield from total_rows(results, part, measured, ours, target)
            return
