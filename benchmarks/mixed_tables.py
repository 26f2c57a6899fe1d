"""Tables with categories, missing values and dates: errors and intervals beside boosting.

``make bench-mixed DATA=folder`` runs it on one thread. mixed_data.py reads the tables from
installed packages, mixed_models.py has the models. Each table has five random splits, 80 % for
training (three above 3000 rows), CatBoost the first two. The folder, which uci.py describes, is for
the part ``removed`` alone: the first 3000 training rows of three splits of each set, with 30 % of
the cells missing at random, of training and of test rows. Each fit is written at once to a JSON
file, and a run skips what is there: it can be stopped, and goes on where it was; ``--again ulmus``
measures a model anew. ``--quick`` takes one split of small tables. The part ``describe`` prints
what the tables are like and fits nothing.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import report
from mixed_data import (
    SERIES,
    TABLES,
    Source,
    Table,
    description,
    rare_rows,
    seasonal_features,
    simulated_levels,
)
from mixed_models import MODELS, scores
from mixed_results import Results, log_ratio, shares, total
from report import Row
from timing import dgemm, one_thread
from uci import SETS, names, read_sets, wanted_splits

from ulmus import ELMEnsembleRegressor
from ulmus.noise import AR1

Array = np.ndarray
PARTS = ("describe", "real", "removed", "dates", "levels")
RARE = 5  # training rows of a rare level, at most
REMOVED = 0.3  # share of removed cells
MANY_ROWS = 3000
N_LEVELS = (50, 500, 5000)
NOISE = {"default noise": "auto", "AR1": AR1(time="date")}
INSIDE = "random rows"
PERIODICITY = "residual-periodicity"


# --- parts --------------------------------------------------------------------------------------


def available(sources: dict[str, Source], options: argparse.Namespace) -> dict[str, Source]:
    """Sources whose packages are installed, with a message about the others."""
    chosen = {name: source for name, source in sources.items() if name in options.tables}
    chosen = chosen or sources
    for name, source in chosen.items():
        if not source.installed:
            options.printer(f"{name} is omitted: the package {source.package} is not installed")
    return {name: source for name, source in chosen.items() if source.installed}


def split_rows(n: int, split: int) -> tuple[Array, Array]:
    """Rows for training, 80 %, and for test."""
    rows = np.random.default_rng([split, n]).permutation(n)
    return np.sort(rows[: round(0.8 * n)]), np.sort(rows[round(0.8 * n) :])


def taken(table: Table, rows: Array) -> Table:
    return Table(table.X.iloc[rows].reset_index(drop=True), table.y[rows])


def with_target(table: Table) -> Table:
    return taken(table, np.flatnonzero(np.isfinite(table.y)))


def describe(results: Results) -> Iterator[Row]:
    titles = ("table", "package", "target", "rows", "numbers", "categories", "dates", "most levels")
    lines = [(*titles, "missing cells", "rows with missing cells"), ("---",) * 10]
    for name, source in available(TABLES, results.options).items():
        read = with_target(source.read())
        lines.append((name, source.package, source.target, *description(read.X)))
    results.options.printer("\n".join(f"| {' | '.join(line)} |" for line in lines))
    yield from ()


def compare(results: Results, part: str, name: str, split: int, train: Table, test: Table) -> None:
    """Scores of all models for one split."""
    groups = {"missing": test.X.isna().any(axis=1).to_numpy()}
    groups["rare"] = rare_rows(train.X, test.X, RARE)
    for model in results.options.models:
        if model == "catboost" and split >= 2:
            continue
        run = partial(scores, MODELS[model].run, train, test, groups, split)
        results.score(part, name, model, split, run)


def real(results: Results) -> Iterator[Row]:
    """Tables of packages."""
    sources = available(TABLES, results.options)
    if results.options.quick:
        sources = {name: sources[name] for name in ("penguins", "births") if name in sources}
    for name, source in sources.items():
        read = with_target(source.read())
        n_splits = 1 if results.options.quick else 5 if len(read.y) < MANY_ROWS else 3
        for split in range(n_splits):
            train, test = (taken(read, rows) for rows in split_rows(len(read.y), split))
            compare(results, "real", name, split, train, test)
    yield from total(results, "real", list(sources), 0.9)


def removed(results: Results) -> Iterator[Row]:
    """Standard tables with cells removed at random."""
    options = results.options
    sets = ["yacht"] if options.quick else [name for name in SETS if name in options.tables] or SETS
    splits = {name: wanted_splits(name, "reported", 1 if options.quick else 3) for name in sets}
    for name, data in read_sets(options.data, sets, splits).items():
        for split in splits[name]:
            rng = np.random.default_rng([split, 30])
            X = np.where(rng.random(data.X.shape) < REMOVED, np.nan, data.X)
            frame = pd.DataFrame(X).add_prefix("x")
            read = Table(frame, data.y)
            train = taken(read, data.train_idx[split][:MANY_ROWS])
            test = taken(read, data.test_idx[split][:MANY_ROWS])
            compare(results, "removed", name, split - splits[name][0], train, test)
    yield from total(results, "removed", sets, 1.0)


def levels(results: Results) -> Iterator[Row]:
    """Simulated tables with many levels; the rows say how far the best predictions are."""
    cases = [(n, zipf) for n in N_LEVELS for zipf in (False, True)]
    titles = {f"{n} levels, {'Zipf' if zipf else 'balanced'}": (n, zipf) for n, zipf in cases}
    for title, (n, zipf) in list(titles.items())[: 1 if results.options.quick else None]:
        for split in range(1 if results.options.quick else 2):
            data = simulated_levels(n, zipf, split)
            compare(results, "levels", title, split, data.train, data.test)
            best = float(np.sqrt(np.mean((data.test.y - data.best) ** 2)))
            results.score("levels", title, "best", split, partial(dict, rmse=best, seconds=1.0))
    for title in titles:
        for model in MODELS:
            pairs = results.pairs("levels", title, model, "best")
            if pairs:
                ratio = float(np.exp(log_ratio(pairs)))
                source = f"best {np.mean([best['rmse'] for _, best in pairs]):.3f}"
                yield Row(f"{title}: RMSE of {model} over the best", ratio, "ratio", source)
    yield from total(results, "levels", list(titles), 1.0)


def dates(results: Results) -> Iterator[Row]:
    """Series as a table of dates, beside seasonal features made by hand."""
    sources = available(SERIES, results.options)
    if results.options.quick:
        sources = {"monthly CO2": sources["monthly CO2"]}
    for name, source in sources.items():
        read = source.read()
        by_hand = Table(pd.DataFrame(seasonal_features(read.X)).add_prefix("f"), read.y)
        n = len(read.y)
        for split in range(1 if results.options.quick else 3):
            train, test = split_rows(n, split)
            series_scores(results, f"{name}, {INSIDE}", read, by_hand, train, test, split)
        last = round(0.9 * n)
        ends = np.arange(last), np.arange(last, n)
        series_scores(results, f"{name}, last tenth", read, by_hand, *ends, 0)
        for noise, value in NOISE.items() if "ulmus" in results.options.models else ():
            results.score("dates", name, noise, 0, partial(periods, read, value))
    titles = [f"{name}, {rows}" for name in sources for rows in (INSIDE, "last tenth")]
    for line in (line for title in [*titles, *sources] for line in results.errors("dates", title)):
        results.options.printer(line)
    for title in titles:
        yield from series_rows(results, title)
    for name in sources:
        yield from period_rows(results, name)


def series_scores(
    results: Results, title: str, read: Table, by_hand: Table, train: Array, test: Array, split: int
) -> None:
    """Scores of dates and of features by hand, and what the diagnostics say about periods."""
    groups: dict[str, Array] = {}
    for model, table in {"ulmus": read, "by hand": by_hand}.items():
        if "ulmus" in results.options.models:
            arguments = MODELS["ulmus"].run, taken(table, train), taken(table, test), groups, split
            results.score("dates", title, model, split, partial(scores, *arguments))
    if "boosting" in results.options.models:
        arguments = MODELS["boosting"].run, taken(read, train), taken(read, test), groups, split
        results.score("dates", title, "boosting", split, partial(scores, *arguments))


def periods(read: Table, noise: Any) -> dict[str, Any]:
    """What the diagnostics of a fit to all rows say about periods of residuals.

    ``explained`` are adjusted shares of the variance of the leave-one-out residuals that means by
    month of the year, day of the week and hour explain.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = ELMEnsembleRegressor(random_state=0, noise=noise).fit(read.X, read.y)
            found = [item for item in model.check().findings if item.code == PERIODICITY]
            residuals = np.asarray(model.loo_residuals_).ravel()
        except Exception as error:  # the other series have their turn
            return {"error": f"{type(error).__name__}: {error}"}
    date = read.X["date"].dt
    units = {"month": date.month, "weekday": date.dayofweek, "hour": date.hour}
    shares = {name: explained(residuals, unit) for name, unit in units.items() if np.ptp(unit)}
    return {"findings": [f"{item.severity}: {item.message}" for item in found], "explained": shares}


def explained(values: Array, unit: pd.Series) -> float:
    """Adjusted R squared of the means by unit."""
    means = pd.Series(values).groupby(unit.to_numpy()).transform("mean")
    n, k = len(values), unit.nunique()
    return float(1 - np.sum((values - means) ** 2) / (n - k) / np.var(values, ddof=1))


def series_rows(results: Results, title: str) -> Iterator[Row]:
    inside = title.endswith(INSIDE)  # beyond the training dates, trends are extrapolated
    for other, target in {"by hand": 1.1 if inside else None, "boosting": None}.items():
        pairs = results.pairs("dates", title, "ulmus", other)
        if pairs:
            ratio = float(np.exp(log_ratio(pairs)))
            own, peer = (np.mean([pair[i]["rmse"] for pair in pairs]) for i in (0, 1))
            share = shares(one for one, _ in pairs)["all"][1]
            source = f"{own:.4g} and {peer:.4g}, coverage {share:.3f}"
            bound = "" if target is None else "<="
            yield Row(f"{title}: RMSE over {other}", ratio, "ratio", source, bound, target)


def period_rows(results: Results, name: str) -> Iterator[Row]:
    for noise in NOISE:
        for found in results.successful("dates", name, noise):
            left = [text for text in found["findings"] if not text.startswith("ok")]
            shares = ", ".join(f"{unit} {share:.3f}" for unit, share in found["explained"].items())
            text = "; ".join(found["findings"])
            title = f"{name}, {noise}: periods that check finds"
            yield Row(title, len(left), "times", f"{text} Explained by {shares}", "<=", 0)


# --- command line -------------------------------------------------------------------------------


def read_options() -> argparse.Namespace:
    options = report.parser(__doc__, PARTS)
    known = [*TABLES, *SETS, *SERIES]
    options.add_argument("--data", default="", help="folder of the data sets, NAME.npz")
    options.add_argument("--tables", type=names(known), default=[], help="some: ames,loans")
    options.add_argument("--models", type=names(list(MODELS)), default=list(MODELS))
    options.add_argument("--again", type=names(list(MODELS)), default=[], help="measure anew")
    options.add_argument("--quick", action="store_true", help="one split of small tables")
    options.add_argument("--table-only", action="store_true", help="fit nothing")
    default = Path(__file__).parent / "uci-results" / "mixed.json"
    options.add_argument("--out", type=Path, default=default)
    chosen = options.parse_args()
    chosen.printer = partial(print, flush=True)
    for name in list(chosen.models):
        if not MODELS[name].installed:
            chosen.printer(f"{name} is omitted: {MODELS[name].package} is not installed")
            chosen.models.remove(name)
    return chosen


def main() -> None:
    options = read_options()
    threads, results = one_thread(), Results(options)
    parts: list[Callable[[], Iterator[Row]]] = [dgemm]
    for function in (describe, real, removed, dates, levels):
        if function is removed and not options.data and options.only != "removed":
            options.printer("removed is omitted: it requires --data")
            continue
        part = partial(function, results)
        part.__name__ = function.__name__  # type: ignore[attr-defined]
        parts.append(part)
    report.print_parts("mixed_tables.py", options, [report.machine(), threads], parts)


if __name__ == "__main__":
    main()
