"""Encodings of tables: many categories, missing cells and raw dates, and 5 million rows of Parquet.

``make bench-tables DATA=folder``; the folder holds hl2015/ (standard tables) and
demo/elecdemand.npz (electricity demand), which the project does not ship.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import statsmodels.api as sm
from sklearn.ensemble import HistGradientBoostingRegressor

from ulmus import ELMEnsembleRegressor
from ulmus.tables import from_arrow, training_encoding

TABLES = ("concrete", "energy", "boston", "yacht", "wine-red", "power", "kin8nm")
YEAR = 365.2425


def rmse(error):
    """Root mean square."""
    return float(np.sqrt(np.mean(np.asarray(error) ** 2)))


def scores(X, y, X_new, y_new, **how):
    """RMSE and coverage of 90 % intervals at new rows, and the model's covered rows."""
    model = ELMEnsembleRegressor(random_state=0, **how).fit(X, y)
    low, high = model.predict_interval(X_new, 0.9).T
    covered = (low <= y_new) & (y_new <= high)
    return rmse(model.predict(X_new) - y_new), covered


def table_of_levels(n_levels, n, seed):
    """Effects and slopes by level, with unequal numbers of rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    level = rng.choice(n_levels, n, p=rng.dirichlet(np.full(n_levels, 0.7)))
    effect, slope = rng.normal(size=(2, n_levels))
    X[:, 0] += 0.7 * effect[level]
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + effect[level] + 0.15 * slope[level] * X[:, 2]
    names = np.array([f"l{i}" for i in level])
    return pd.DataFrame(X, columns=list("abc")).assign(k=names), y + 0.5 * rng.normal(size=n)


def many_levels():
    """Means of the target without the row's fold, of all rows, and indicators."""
    encode = training_encoding.TrainingEncoding.encode

    def of_all_rows(self, codes, first_row=0):
        return encode(self._replace(folds=()), codes)

    ways = {
        "without the fold": mock.patch.object(training_encoding, "MAX_INDICATORS", 30),
        "of all rows": mock.patch.object(training_encoding.TrainingEncoding, "encode", of_all_rows),
        "indicators": mock.patch.object(training_encoding, "MAX_INDICATORS", 10**9),
    }
    for n_levels, n in ((50, 1000), (500, 4000), (5000, 12_000)):
        for seed in (0, 1):
            X, y = table_of_levels(n_levels, n + 2000, seed)
            for name in list(ways)[: {50: 3, 500: 2}.get(n_levels, 1)]:
                with ways[name]:
                    error, covered = scores(X[:n], y[:n], X[n:], y[n:])
                print(f"{n_levels} levels, {name}: RMSE {error:.3f}, coverage {covered.mean():.3f}")


def missing_cells(data):
    """A share of 30 % of the cells removed at random, beside boosting."""
    ratios = []
    for name in TABLES:
        stored = np.load(data / "hl2015" / f"{name}.npz")
        X, y = stored["X"].astype(float), stored["y"].astype(float).ravel()
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
        for split in (0, 1):
            train, test = stored["train_idx"][split], stored["test_idx"][split]
            train, test = train[train >= 0][:2000], test[test >= 0]
            error, covered = scores(X[train], y[train], X[test], y[test])
            boosting = HistGradientBoostingRegressor(random_state=0).fit(X[train], y[train])
            ratios.append(error / rmse(boosting.predict(X[test]) - y[test]))
            print(f"{name}: {ratios[-1]:.3f} of boosting, coverage {covered.mean():.3f}")
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.3f}")


def raw_dates(data):
    """A raw date beside features made by hand."""
    co2 = sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean().dropna()
    hours = pd.date_range("2014-01-01", periods=8760, freq="h")
    demand = np.load(data / "demo" / "elecdemand.npz")["demand"][::2]
    for name, dates, y in (("CO2", co2.index, co2.to_numpy()), ("demand", hours, demand)):
        days = (dates - pd.Timestamp(0)) / pd.Timedelta(days=1)
        waves = {f"{f.__name__} year": f(2 * np.pi * days / YEAR) for f in (np.sin, np.cos)}
        if name == "demand":
            waves |= {f"{f.__name__} day": f(2 * np.pi * days) for f in (np.sin, np.cos)}
            waves["weekday"] = dates.dayofweek.astype(str)
        tables = {
            "raw": pd.DataFrame({"date": dates}),
            "by hand": pd.DataFrame({"t": days, **waves}),
        }
        held = np.random.default_rng(0).random(len(y)) < 0.25
        for form, X in tables.items():
            error, covered = scores(X[~held], y[~held], X[held], y[held])
            print(f"{name}, {form}: RMSE {error:.3f}, coverage {covered.mean():.3f}")


def large_file(n_groups=50, group=100_000):
    """Time and memory of a fit to a file of 5 million rows with categories, gaps and dates."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    effect = rng.normal(size=500)
    with tempfile.TemporaryDirectory() as folder:
        path, writer = Path(folder) / "table.parquet", None
        for _ in range(n_groups):
            kind, town = rng.integers(0, 12, group), rng.integers(0, 500, group)
            a, b, c, noise = rng.normal(size=(4, group))
            columns = {
                "a": a,
                "b": pa.array(np.where(rng.random(group) < 0.05, np.nan, b), from_pandas=True),
                "c": c,
                "kind": np.array([f"kind {i}" for i in range(12)])[kind],
                "town": np.array([f"town {i}" for i in range(500)])[town],
                "day": np.datetime64("2015-01-01") + rng.integers(0, 3000, group),
                "y": np.sin(a) + 0.3 * b + (kind == 3) + effect[town] + 0.5 * noise,
            }
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()
        start = time.perf_counter()
        model = ELMEnsembleRegressor(3, 100, noise="homoskedastic", random_state=0)
        model.fit_blocks(from_arrow(path, target="y"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        seconds = time.perf_counter() - start
        print(f"{model.fitted_.n_rows} rows: {seconds:.0f} s, at most {peak:.0f} MB")


def main():
    """Run all of them; the file first, because memory is that of the process so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    warnings.simplefilter("ignore")
    large_file()
    many_levels()
    missing_cells(data)
    raw_dates(data)


if __name__ == "__main__":
    main()
