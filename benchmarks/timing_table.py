"""Processor time of default fits by rows and inputs, and what each option that saves time costs.

The table is that of ``docs/guide/timing.md``. The function depends on four inputs; a fit of
HistGradientBoosting with its predictions is the reference, and so is the rate of matrix products.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import report
from report import Row
from sklearn.ensemble import HistGradientBoostingRegressor
from speed import mixed
from timing import dgemm, one_thread

from ulmus import ELMEnsembleRegressor
from ulmus.noise import AR1

Array = np.ndarray
Options = dict[str, object]
ROWS = (100, 300, 1000, 5000, 20_000, 100_000)
INPUTS = (5, 10, 20)
N_POINTS, NOISE = 1000, 0.3
# Sizes at which options are compared, and the options: of the estimator, and of the interval.
OPTION_ROWS = (300, 1000, 5000, 20_000)
OPTIONS: dict[str, tuple[Options, Options]] = {
    "defaults": ({}, {}),
    "input_map=None": ({"input_map": None}, {}),
    'input_map="ard"': ({"input_map": "ard"}, {}),
    "expand_inputs=None": ({"expand_inputs": None}, {}),
    'noise="homoskedastic"': ({"noise": "homoskedastic"}, {}),
    "n_neurons=100": ({"n_neurons": 100}, {}),
    "exact=True": ({"exact": True}, {}),
    'method="gaussian"': ({}, {"method": "gaussian"}),
    'method="cv+"': ({}, {"method": "cv+"}),
    'kind="confidence"': ({}, {"kind": "confidence"}),
    "noise=AR1()": ({"noise": AR1()}, {}),
}


def table(n: int, n_inputs: int) -> tuple[Array, Array, Array, Array, Array]:
    """Training rows X, y; points, their observations and their means, in standard deviations."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n + N_POINTS, n_inputs))
    mean = mixed(X)
    mean = (mean - np.mean(mean)) / np.std(mean)
    y = mean + NOISE * rng.normal(size=len(X))
    return X[:n], y[:n], X[n:], y[n:], mean[n:]


def processor_seconds(task: Callable[[], object]) -> tuple[float, object]:
    """The time of a task, and what it returns."""
    start = time.process_time()
    value = task()
    return time.process_time() - start, value


def boosting_seconds(X: Array, y: Array, points: Array) -> float:
    model = HistGradientBoostingRegressor(random_state=0)
    return processor_seconds(lambda: model.fit(X, y).predict(points))[0]


def sizes() -> Iterator[Row]:
    """Default fits by rows and inputs."""
    for n in ROWS:
        for n_inputs in INPUTS:
            X, y, points, _, _ = table(n, n_inputs)
            peer = boosting_seconds(X, y, points)
            model = ELMEnsembleRegressor(random_state=0)
            fit, _ = processor_seconds(partial(model.fit, X, y))
            first, _ = processor_seconds(partial(model.predict_interval, points))
            again, _ = processor_seconds(partial(model.predict_interval, points))
            members, units = model.coef_.shape
            source = f"fit {fit:.2f} s, first intervals {first:.2f} s, again {again:.2f} s; "
            source += f"{members} x {units} units; boosting {peer:.2f} s"
            measure = f"{n} rows, {n_inputs} inputs: over one fit of boosting"
            yield Row(measure, (fit + first) / peer, "x", source)


def options() -> Iterator[Row]:
    """Fits with other options, of ten inputs: time, error and coverage."""
    for n in OPTION_ROWS:
        X, y, points, observed, mean = table(n, 10)
        whole = 0.0
        for name, (settings, how) in OPTIONS.items():
            model = ELMEnsembleRegressor(random_state=0, **settings)
            fit, _ = processor_seconds(partial(model.fit, X, y))
            interval = partial(model.predict_interval, points, 0.9, **how)
            first, bounds = processor_seconds(interval)
            low, high = np.asarray(bounds).T
            of = mean if how.get("kind") == "confidence" else observed
            covered = np.mean((low <= of) & (of <= high))
            error = np.sqrt(np.mean((model.predict(points) - mean) ** 2))
            whole = whole or fit + first
            source = f"fit {fit:.2f} s, intervals {first:.2f} s; error {error:.3f} sd, "
            source += f"coverage {covered:.3f}, width {np.mean(high - low):.2f} sd"
            measure = f"{n} rows, {name}: over the defaults"
            yield Row(measure, (fit + first) / whole, "ratio", source)


def warm_up() -> None:
    """What only the first fit of a process pays."""
    X, y, points, _, _ = table(100, 5)
    boosting_seconds(X, y, points)
    ELMEnsembleRegressor(random_state=0).fit(X, y).predict_interval(points)


def main() -> None:
    chosen = report.parser(__doc__, ["sizes", "options"]).parse_args()
    header = [report.machine(), one_thread()]
    warnings.simplefilter("ignore")
    warm_up()
    report.print_parts("timing_table.py", chosen, header, [dgemm, sizes, options])


if __name__ == "__main__":
    main()
