"""Default fits with prediction intervals over boosting: processor time, by function and rows.

A fit and the intervals of 1000 points are compared with six fits of boosting with predictions,
which is what CV+ around boosting costs. The functions depend on four of eight inputs.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import report
from report import Row
from sklearn.ensemble import HistGradientBoostingRegressor
from timing import dgemm, one_thread

from ulmus import ELMEnsembleRegressor

Array = np.ndarray
N_POINTS, N_BOOSTING = 1000, 6
# Time over that of boosting that a fit with intervals is to reach, by rows.
GOALS = {300: 2.0, 1000: 2.0, 4000: 2.0, 20_000: 3.0}


def additive(X: Array) -> Array:
    return np.sin(3 * X[:, 0]) + X[:, 1] ** 2 / 2 + np.tanh(2 * X[:, 2]) + X[:, 3] / 2


def products(X: Array) -> Array:
    return X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2] * X[:, 3])


def mixed(X: Array) -> Array:
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3])


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "additive": additive,
    "mixed": mixed,
    "products": products,
}


def table(name: str, n: int) -> tuple[Array, Array, Array]:
    """Training rows, and points."""
    rng = np.random.default_rng(7)
    X, points = rng.normal(size=(n, 8)), rng.normal(size=(N_POINTS, 8))
    f = FUNCTIONS[name](X)
    return X, f + 0.3 * np.std(f) * rng.normal(size=n), points


def processor_seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def boosting(X: Array, y: Array, points: Array) -> None:
    for seed in range(N_BOOSTING):
        HistGradientBoostingRegressor(random_state=seed).fit(X, y).predict(points)


def rows(name: str, n: int) -> Iterator[Row]:
    X, y, points = table(name, n)
    peer = processor_seconds(lambda: boosting(X, y, points))
    model = ELMEnsembleRegressor(random_state=0)
    fit = processor_seconds(lambda: model.fit(X, y))
    intervals = processor_seconds(lambda: model.predict_interval(points))
    M, N = model.coef_.shape
    source = f"fit {fit:.2f} s, intervals {intervals:.2f} s, {M} x {N} units"
    total = (fit + intervals) / peer
    yield Row(f"{name}, n={n}: over six fits of boosting", total, "x", source, "<=", GOALS[n])


def rows_of(n: int) -> Iterator[Row]:
    for name in FUNCTIONS:
        yield from rows(name, n)


def warm_up() -> None:
    """What only the first fit of a process pays."""
    X, y, points = table("mixed", 100)
    boosting(X, y, points)
    ELMEnsembleRegressor(random_state=0).fit(X, y).predict_interval(points)


def main() -> None:
    chosen = report.parser(__doc__, [f"n{n}" for n in GOALS]).parse_args()
    threads = one_thread()
    warnings.simplefilter("ignore")
    warm_up()
    parts: list[Callable[[], Iterator[Row]]] = [dgemm]
    for n in GOALS:
        part = partial(rows_of, n)
        part.__name__ = f"n{n}"  # type: ignore[attr-defined]
        parts.append(part)
    report.print_parts("speed.py", chosen, [report.machine(), threads], parts)


if __name__ == "__main__":
    main()
