"""Tables of 20,000 to 100,000 rows: error of default fits over that of boosting, and time.

``--data`` names a folder with california.npz, diamonds.npz and nycflights.npz (arrays ``X`` and
``y``; StatLib, ggplot2, nycflights13). A random tenth of the rows is the test set, and of the
others at most 100,000 are the training set. Missing inputs are the median of the training rows.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import report
from report import Row
from sklearn.ensemble import HistGradientBoostingRegressor
from timing import dgemm, one_thread

from ulmus import ELMEnsembleRegressor

Array = np.ndarray
MOST_ROWS = 100_000
# Root mean squared errors over those of boosting that a default fit is to reach, in seconds.
GOALS = {"california": 0.93, "diamonds": 0.96, "nycflights": 0.91}
GOAL_SECONDS = 30.0


class Table(NamedTuple):
    """Training and test rows."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def table(folder: Path, name: str) -> Table:
    with np.load(folder / f"{name}.npz") as arrays:
        X, y = (arrays[key].astype(float) for key in ("X", "y"))
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: int(0.9 * len(y))][:MOST_ROWS], order[int(0.9 * len(y)) :]
    X = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
    return Table(X[train], y[train], X[test], y[test])


def error(model: object, data: Table) -> tuple[float, float]:
    """Error of a model on the test rows, and processor seconds of its fit."""
    start = time.process_time()
    model.fit(data.X, data.y)
    seconds = time.process_time() - start
    return float(np.sqrt(np.mean((model.predict(data.X_test) - data.y_test) ** 2))), seconds


def rows(folder: Path, name: str) -> Iterator[Row]:
    data = table(folder, name)
    boosting, seconds = error(HistGradientBoostingRegressor(random_state=0), data)
    more_trees, _ = error(HistGradientBoostingRegressor(max_iter=500, random_state=0), data)
    model = ELMEnsembleRegressor(random_state=0)
    ours, our_seconds = error(model, data)
    M, N, *_ = model.coef_.shape
    source = f"{len(data.y)} rows, {data.X.shape[1]} inputs, {M} members of {N - 1} units"
    yield Row(f"{name}: RMSE over boosting's", ours / boosting, "rate", source, "<=", GOALS[name])
    yield Row(f"{name}: RMSE of boosting with 500 trees", more_trees / boosting, "rate", source)
    yield Row(f"{name}: fit", our_seconds, "s", source, "<=", GOAL_SECONDS)
    yield Row(f"{name}: fit of boosting", seconds, "s", source)
    start = time.process_time()
    intervals = model.predict_interval(data.X_test[:1000], 0.9)
    seconds, y = time.process_time() - start, data.y_test[:1000]
    inside = float(np.mean((intervals[:, 0] <= y) & (y <= intervals[:, 1])))
    yield Row(f"{name}: coverage of 90 % intervals", inside, "rate", "1000 test rows")
    yield Row(f"{name}: these intervals", seconds, "s", "1000 test rows")


def main() -> None:
    options = report.parser(__doc__, GOALS)
    options.add_argument("--data", type=Path, required=True, help="folder with the tables")
    chosen = options.parse_args()
    threads = one_thread()
    parts: list[Callable[[], Iterator[Row]]] = [dgemm]
    for name in GOALS:
        part = partial(rows, chosen.data, name)
        part.__name__ = name  # type: ignore[attr-defined]
        parts.append(part)
    report.print_parts("large_tables.py", chosen, [report.machine(), threads], parts)


if __name__ == "__main__":
    sys.exit(main())
