"""Prediction intervals of other packages beside those of the default ensemble, on standard tables.

``make bench-peers DATA=folder`` runs it on one thread; uci.py describes the folder. The
splits are the first five that uci.py reports; tables are cut to their first 3000 training rows.
Every model is called as its users would call it. The docstring of its function, which is printed
below the tables, describes the call; none of them is tuned to these splits. Each fit is written at
once to a JSON file, and a run skips what is there: it can be stopped, and goes on where it was.
``--table-only`` prints what there is.
"""

import argparse
import inspect
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import uci_table
from mapie.regression import CrossConformalRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler
from uci import SETS, DataSet, header, names, read_sets, wanted_splits
from uci_rivals import LEVEL, RIVALS, gaussian_process, normal
from uci_table import Study, Table, number, print_table
from UncELMe.elm_ensemble import ELMEnsemble, ELMEnsembleRidgeCV

from ulmus import ELMEnsembleRegressor
from ulmus.atomic_write import atomic_write
from ulmus.metrics import coverage, interval_score, mean_width

Array = np.ndarray
REFERENCE = "ulmus"
MOST_ROWS = 3000
DEFAULT_SETS = ["yacht", "boston", "energy", "concrete", "wine-red", "kin8nm"]
MEASURES = {
    **{measure: uci_table.MEASURES[measure] for measure in ("rmse", "coverage", "width")},
    "score": "interval score of 95 % intervals: width and a penalty for misses, less is better",
    "seconds": "processor seconds of a fit and its intervals, one thread",
}
REMARKS = (
    "All tables: mean (standard error over splits) [number of splits, if not all].",
    f"Over {REFERENCE}: geometric mean over splits and sets of both.",
    f"Worst coverage: of the table whose mean coverage is farthest from {LEVEL}.",
)


class Forecast(NamedTuple):
    """Means (p,) and intervals (p, 2) of new observations."""

    mean: Array
    intervals: Array


# --- models: from training rows, points and a seed to means and intervals ---------------------


def ensemble(X: Array, y: Array, points: Array, seed: int) -> Forecast:
    """ELMEnsembleRegressor with its defaults; `predict_interval` with its defaults."""
    model = ELMEnsembleRegressor(random_state=seed).fit(X, y)
    return Forecast(model.predict(points), model.predict_interval(points, LEVEL))


def least_squares(X: Array, y: Array, points: Array, seed: int) -> Forecast:
    """UncELMe 1.1: ELMEnsemble, the class of its examples, with 20 members of 100 units.

    Sizes are its defaults. Inputs and target are standardised; the mean plus and minus 1.96 times
    the root of its bias-reduced homoskedastic variance plus its noise variance.
    """
    return standardised_uncelme(ELMEnsemble(random_state=seed), X, y, points)


def ridge(X: Array, y: Array, points: Array, seed: int) -> Forecast:
    """UncELMe 1.1: ELMEnsembleRidgeCV, ridge by its own GCV, with 20 members of 200 units.

    The rest is as before. It chooses among 17 ridge parameters from 1e-6 to 100. With 100 units and
    these, or its default of 0.1, 1 and 10, it was worse than least squares on the first two
    development splits of each of the five smallest tables.
    """
    model = ELMEnsembleRidgeCV(n_neurons=200, alphas=np.logspace(-6, 2, 17), random_state=seed)
    return standardised_uncelme(model, X, y, points)


def standardised_uncelme(model: Any, X: Array, y: Array, points: Array) -> Forecast:
    """Prediction of UncELMe, whose variances are those of the points predicted last."""
    scaler, centre, spread = StandardScaler().fit(X), np.mean(y), np.std(y)
    model.fit(scaler.transform(X), (y - centre) / spread)
    mean = model.predict(scaler.transform(points))
    variance, noise = model.homoskedastic_variance()
    prediction = normal(centre + spread * mean, spread * np.sqrt(variance + noise))
    return Forecast(prediction.mean, prediction.intervals)


def histogram_boosting(X: Array, y: Array, points: Array, seed: int) -> Forecast:
    """MAPIE's CrossConformalRegressor, CV+ with ten folds, on HistGradientBoostingRegressor.

    All other parameters are the defaults; MAPIE's documentation advises cross-conformal methods
    for small tables.
    """
    return cross_conformal(HistGradientBoostingRegressor(random_state=seed), X, y, points, seed)


def boosting(X: Array, y: Array, points: Array, seed: int) -> Forecast:
    """The same on GradientBoostingRegressor, which scikit-learn advises for small tables.

    A leaf of the other one has at least 20 rows, and with few rows one row more or less decides
    whether a level of an input has a leaf of its own.
    """
    return cross_conformal(GradientBoostingRegressor(random_state=seed), X, y, points, seed)


def cross_conformal(estimator: Any, X: Array, y: Array, points: Array, seed: int) -> Forecast:
    model = CrossConformalRegressor(estimator, LEVEL, cv=10, random_state=seed)
    mean, intervals = model.fit_conformalize(X, y).predict_interval(points)
    return Forecast(mean, intervals[:, :, 0])


def process(X: Array, y: Array, points: Array, seed: int) -> Forecast:
    """scikit-learn's GaussianProcessRegressor, a length scale for each standardised input.

    Constant times RBF plus white kernel, `normalize_y=True`, one restart of the optimiser. Tables
    of more than 1500 rows are omitted.
    """
    prediction = gaussian_process(X, y)(points)
    return Forecast(prediction.mean, prediction.intervals)


MODELS = {
    REFERENCE: ensemble,
    "UncELMe": least_squares,
    "UncELMe-ridge": ridge,
    "MAPIE-HistGB": histogram_boosting,
    "MAPIE-GB": boosting,
    "GP": process,
}
MOST_ROWS_OF = {"GP": RIVALS["gpr-ard"].most_rows}


# --- the run ----------------------------------------------------------------------------------


def scores(model: str, data: DataSet, split: int) -> dict[str, float]:
    """A number for each of ``MEASURES``. Warnings are suppressed."""
    train, test = data.train_idx[split], data.test_idx[split]
    y = data.y[test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        mean, intervals = MODELS[model](data.X[train], data.y[train], data.X[test], split)
        seconds = time.process_time() - start
    return {
        "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
        "coverage": float(coverage(y, intervals)),
        "width": float(mean_width(intervals)),
        "score": float(interval_score(y, intervals, LEVEL)),
        "seconds": seconds,
    }


def prepare(models: list[str]) -> None:
    """Pay for what only the first fit of a process pays: late imports."""
    X = np.random.default_rng(0).standard_normal((250, 2))
    rows = np.arange(250)[None]
    for model in models:
        scores(model, DataSet(X, X[:, 0] + X[:, 1] ** 2, rows, rows), 0)


def read_results(file: Path) -> dict[str, Any]:
    """Lines about runs, and scores by set, model and split, which is a text in JSON."""
    return json.loads(file.read_text()) if file.exists() else {"runs": [], "scores": {}}


def write_results(file: Path, results: dict[str, Any]) -> None:
    with atomic_write(file) as temporary:
        temporary.write_text(json.dumps(results, indent=1))


def run(sets: dict[str, DataSet], splits: dict[str, range], models: list[str], file: Path) -> None:
    """Fit every model to every split that has no scores yet."""
    prepare(models)
    results = read_results(file)
    results["runs"].append("; ".join([*header(None), ", ".join(models)]))
    print(results["runs"][-1], flush=True)
    for name, data in sets.items():
        for model in models:
            if data.train_idx.shape[1] > MOST_ROWS_OF.get(model, MOST_ROWS):
                continue
            rows = results["scores"].setdefault(name, {}).setdefault(model, {})
            for split in (split for split in splits[name] if str(split) not in rows):
                rows[str(split)] = found = scores(model, data, split)
                said = ", ".join(f"{measure} {value:.4g}" for measure, value in found.items())
                print(f"{name}, {model}, split {split}: {said}", flush=True)
                write_results(file, results)


# --- tables -----------------------------------------------------------------------------------


def measure_table(study: Study, measure: str) -> Table:
    """A row for each model, a column for each set."""
    table = Table(MEASURES[measure], ("model", *study.splits))
    for model in study.models:
        table.rows.append((model, *(study.cell(name, model, measure) for name in study.splits)))
    return table


def summary_table(study: Study) -> Table:
    """All sets together; all but coverage relative to the ensemble."""
    head = ("model", "tables", "RMSE", "coverage", "worst coverage", "width", "interval score")
    settings = (f"{model}: {inspect.getdoc(MODELS[model])}" for model in study.models)
    texts = tuple(" ".join(text.split()) for text in settings)
    table = Table(f"over {REFERENCE}", (*head, "time"), remarks=(*REMARKS, *texts))
    for model in study.models:
        rmse, width, score, seconds = (
            study.ratio(model, measure, REFERENCE)
            for measure in ("rmse", "width", "score", "seconds")
        )
        cells = (model, str(rmse[1]), number(rmse[0]), *study.coverage_cells(model, LEVEL))
        table.rows.append((*cells, *(number(ratio) for ratio, _ in (width, score, seconds))))
    return table


def show(splits: dict[str, range], file: Path) -> None:
    results = read_results(file)
    measured = {
        (name, model): {int(split): row for split, row in rows.items()}
        for name, models in results["scores"].items()
        for model, rows in models.items()
    }
    study = Study(measured, splits, list(MODELS))
    for measure in MEASURES:
        print_table(measure_table(study, measure), markdown=True)
    print_table(summary_table(study), markdown=True)
    print("\nRuns that took these times:\n", *results["runs"], sep="\n")


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default="", help="folder of the data sets, NAME.npz")
    options.add_argument("--sets", type=names(SETS), default=DEFAULT_SETS, help="yacht,boston")
    options.add_argument("--models", type=names(list(MODELS)), default=list(MODELS))
    options.add_argument("--first", type=int, default=5, help="take so many splits")
    options.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "uci-results" / "peers.json"
    )
    options.add_argument("--table-only", action="store_true", help="fit nothing")
    chosen = options.parse_args(arguments)
    splits = {name: wanted_splits(name, "reported", chosen.first) for name in chosen.sets}
    if not chosen.table_only:
        sets = read_sets(chosen.data, chosen.sets, splits)
        cut = {
            n: data._replace(train_idx=data.train_idx[:, :MOST_ROWS]) for n, data in sets.items()
        }
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        run(cut, splits, chosen.models, chosen.out)
    show(splits, chosen.out)


if __name__ == "__main__":
    main()
