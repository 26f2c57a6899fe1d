"""Nine standard data sets: errors and error bars of the ensembles beside other models.

``make bench-uci DATA=folder`` runs it on one thread. The folder holds the sets as NAME.npz with
arrays X (rows, inputs), y (rows,), train_idx and test_idx (splits, rows of a split); the project
ships none. The first splits, ``--splits development``, are there to choose parameters by, the
others, ``reported``, to report. Each fit is written at once to a CSV file for its set and model,
and a run skips what is there: it can be stopped, and goes on where it was. A model that fails
leaves a row of NaN; take the row out to try again. ``--table-only`` prints what there is. It is a
report, not a test: its exit status is 0 whether or not a target is reached.
"""

import argparse
import csv
import datetime
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn
from report import machine
from timing import dgemm, one_thread
from uci_rivals import LEVEL, RIVALS, Model, Predict, Prediction
from uci_table import MEASURES, Results, Study, plot, print_table, tables

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage, crps_normal, mean_width

Array = np.ndarray
# By their number of rows.
SETS = ["yacht", "boston", "energy", "concrete", "wine-red", "kin8nm", "power", "naval", "protein"]
ENSEMBLES: dict[str, dict[str, Any]] = {
    "ulmus": {},
    "ulmus-none": {"input_map": None, "expand_inputs": None},
    "ulmus-ard": {"input_map": "ard"},
    "ulmus-full": {"input_map": "full"},
}
MODELS = [*ENSEMBLES, *RIVALS]
MISSING = """{problem}
--data needs a folder with {files}.
Each holds the arrays X (rows, inputs), y (rows,), train_idx (splits, training rows) and
test_idx (splits, test rows), with 20 splits, protein with 5: the regression sets of
Hernandez-Lobato and Adams (2015). The project ships no data."""


class DataSet(NamedTuple):
    """Rows X (n, d), y (n,), and the rows of each split for training and test."""

    X: Array
    y: Array
    train_idx: Array
    test_idx: Array


def read_sets(folder: str, names: list[str], splits: dict[str, range]) -> dict[str, DataSet]:
    """The sets by name; ends the program with a message where one is not as it should be."""
    files = ", ".join(f"{name}.npz" for name in names)
    sets = {}
    for name in names:
        file = Path(folder or ".") / f"{name}.npz"
        if not file.is_file():
            raise SystemExit(MISSING.format(problem=f"There is no file {file}.", files=files))
        with np.load(file) as arrays:
            absent = [field for field in DataSet._fields if field not in arrays]
            if absent:
                problem = f"{file} lacks {', '.join(absent)}."
                raise SystemExit(MISSING.format(problem=problem, files=files))
            sets[name] = DataSet(*(arrays[field] for field in DataSet._fields))
        if len(sets[name].train_idx) < splits[name].stop:
            problem = f"{file} has {len(sets[name].train_idx)} splits."
            raise SystemExit(MISSING.format(problem=problem, files=files))
    return sets


def wanted_splits(name: str, kind: str, first: int | None) -> range:
    development, count = (1, 5) if name == "protein" else (5, 20)
    splits = range(development) if kind == "development" else range(development, count)
    return splits[:first]


def ensemble(parameters: dict[str, Any], device: str | None) -> Model:
    """The estimator as it comes, but for these parameters."""

    def fit(X: Array, y: Array) -> Predict:
        model = ELMEnsembleRegressor(random_state=0, device=device, **parameters).fit(X, y)

        def predict(points: Array) -> Prediction:
            mean, sd = model.predict(points, return_std=True)
            intervals = model.predict_interval(points, LEVEL)
            return Prediction(mean, sd, intervals, model.predict_dist(points))

        return predict

    @cache
    def prepare() -> None:
        """What only the first fit of a process pays: late imports, the start of a device."""
        X = np.random.default_rng(0).standard_normal((200, 3))
        fit(X, X[:, 0])(X)

    return Model(fit, prepare=prepare)


def scores(model: Model, data: DataSet, split: int) -> dict[str, float]:
    """A number for each of ``MEASURES``, by a model fitted to the training rows of a split."""
    train, test = data.train_idx[split], data.test_idx[split]
    start = time.perf_counter()
    predict = model.fit(data.X[train], data.y[train])
    wall = time.perf_counter() - start
    mean, sd, intervals, distribution = predict(data.X[test])
    y = data.y[test]
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "ll": float(np.mean(distribution.logpdf(y))),
        "crps": float(crps_normal(y, mean, sd)),
        "coverage": float(coverage(y, intervals)),
        "width": float(mean_width(intervals)),
        "seconds": wall,
    }


def scores_or_nan(model: Model, data: DataSet, split: int) -> dict[str, float]:
    """Scores, printed; NaN for a model that fails, with its message. Warnings are suppressed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if model.prepare:
                model.prepare()
            found = scores(model, data, split)
        print(", ".join(f"{measure} {value:.4g}" for measure, value in found.items()), flush=True)
        return found
    except Exception as error:  # whatever one model raises, the others have their turn
        print(f"failed, {type(error).__name__}: {error}", flush=True)
        return dict.fromkeys(MEASURES, np.nan)


# --- files ------------------------------------------------------------------------------------


def results_file(out: Path, name: str, model: str) -> Path:
    return out / f"{name}.{model}.csv"


def read_rows(file: Path) -> dict[int, dict[str, float]]:
    if not file.exists():
        return {}
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {int(row["split"]): {m: float(row[m]) for m in MEASURES} for row in rows}


def write_rows(file: Path, rows: dict[int, dict[str, float]]) -> None:
    """Write all rows anew, to a file beside it that then takes its name."""
    beside = file.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, ["split", *MEASURES])
        writer.writeheader()
        writer.writerows({"split": split, **rows[split]} for split in sorted(rows))
    beside.replace(file)


# --- the run ----------------------------------------------------------------------------------


def run(
    sets: dict[str, DataSet], splits: dict[str, range], models: dict[str, Model], out: Path
) -> None:
    """Fit every model to every split that has no row yet."""
    for name, data in sets.items():
        for title, model in models.items():
            if data.train_idx.shape[1] > model.most_rows:
                continue
            file = results_file(out, name, title)
            for split in splits[name]:
                rows = read_rows(file)
                if split not in rows:
                    print(f"{name}, {title}, split {split}: ", end="", flush=True)
                    rows[split] = scores_or_nan(model, data, split)
                    write_rows(file, rows)


def installed_models(titles: list[str], device: str | None) -> dict[str, Model]:
    """Models by name; those whose package is missing are skipped with a note."""
    ours = {title: ensemble(parameters, device) for title, parameters in ENSEMBLES.items()}
    models = {title: (ours | RIVALS)[title] for title in titles}
    for title, model in models.items():
        if not model.installed:
            print(f"{title} is skipped: the package {model.package} is not installed")
    return {title: model for title, model in models.items() if model.installed}


def header(device: str | None) -> Iterator[str]:
    """What times depend on."""
    threads = one_thread()
    (rate,) = dgemm()
    load = os.getloadavg()[0]
    yield f"{datetime.date.today()}, {machine()}, {threads}, load at the start {load:.1f}"
    yield f"dgemm {rate.value:.1f} Gflop/s, ensembles on {device or 'the processor'}"
    yield f"numpy {np.__version__}, scikit-learn {sklearn.__version__}"


def show(options: argparse.Namespace, splits: dict[str, range], out: Path) -> None:
    pairs = [(name, model) for name in splits for model in options.models]
    results: Results = {pair: read_rows(results_file(out, *pair)) for pair in pairs}
    study = Study(results, splits, options.models)
    for table in tables(study):
        print_table(table, options.markdown)
    runs = out / "runs.txt"
    if runs.exists():
        print("\nRuns that took these times:\n", runs.read_text(), sep="\n")
    if find_spec("matplotlib") and study.compared():
        plot(study, out / "rmse.png")
        print(f"Plot: {out / 'rmse.png'}")


def names(known: list[str]) -> Callable[[str], list[str]]:
    """Reader of an option that lists some of the known names, separated by commas."""

    def read(text: str) -> list[str]:
        unknown = set(text.split(",")) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} not in {', '.join(known)}")
        return [name for name in known if name in text.split(",")]

    return read


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default="", help="folder of the data sets, NAME.npz")
    options.add_argument("--splits", choices=("development", "reported"), default="reported")
    options.add_argument("--first", type=int, help="take only so many of the splits")
    options.add_argument("--sets", type=names(SETS), default=SETS, help="some sets: yacht,boston")
    options.add_argument("--models", type=names(MODELS), default=MODELS, help="some: ulmus,hgb")
    options.add_argument("--device", help="device of the ensembles, such as cuda")
    options.add_argument("--out", type=Path, default=Path(__file__).parent / "uci-results")
    options.add_argument("--table-only", action="store_true", help="fit nothing")
    options.add_argument("--markdown", action="store_true", help="print Markdown tables")
    return options.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = read_options(arguments)
    splits = {name: wanted_splits(name, options.splits, options.first) for name in options.sets}
    if not options.table_only:
        sets = read_sets(options.data, options.sets, splits)
        options.out.mkdir(parents=True, exist_ok=True)
        lines = list(header(options.device))
        print(*lines, "", sep="\n", flush=True)
        with (options.out / "runs.txt").open("a") as runs:
            runs.write("; ".join([*lines, ", ".join(options.models)]) + "\n")
        run(sets, splits, installed_models(options.models, options.device), options.out)
    show(options, splits, options.out)


if __name__ == "__main__":
    main()
