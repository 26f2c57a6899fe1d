"""Coverage of 90 % intervals at later times, in new groups, and for means over a region.

The simulations of ``docs/which_error_bar.md``: each compares a fit with the noise covariance of the
data with one that assumes independent rows.
"""

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import report
from report import Row
from timing import dgemm, one_thread

from ulmus import ELMEnsembleRegressor
from ulmus.noise import AR1, Clustered, Exponential

Array = np.ndarray
LEVEL, REPLICATIONS = 0.9, 40
STEPS = 6  # observations to predict after a series of 300


def rows(results: dict[str, list[tuple[float, float]]]) -> Iterator[Row]:
    """Mean coverage of each fit, with its standard error over the tables, and mean width."""
    for name, values in results.items():
        covered, width = np.array(values).T
        error = np.std(covered, ddof=1) / np.sqrt(len(covered))
        source = f"+- {error:.3f}, mean width {np.mean(width):.2f}, {len(covered)} tables"
        yield Row(
            f"{name}: coverage of {LEVEL:.0%} intervals", float(np.mean(covered)), "rate", source
        )


def judged(bounds: Array, truth: Array) -> tuple[float, float]:
    """Share of values within their bounds, and mean width."""
    low, high = bounds.T
    return float(np.mean((low <= truth) & (truth <= high))), float(np.mean(high - low))


def autoregression(rng: np.random.Generator, n: int, correlation: float = 0.8) -> Array:
    fresh = rng.standard_normal(n)
    noise = fresh.copy()
    for i in range(1, n):
        noise[i] = correlation * noise[i - 1] + np.sqrt(1 - correlation**2) * fresh[i]
    return noise


def future() -> Iterator[Row]:
    """The next six observations of a series; the inputs are a season and stay in their range."""
    n, found = 300, dict[str, list[tuple[float, float]]]()
    time = np.arange(n + STEPS)
    X = np.column_stack([np.cos(2 * np.pi * time / 50), np.sin(2 * np.pi * time / 50)])
    for seed in range(REPLICATIONS):
        y = 2 * X[:, 1] + X[:, 0] ** 2 + autoregression(np.random.default_rng(seed), len(X))
        model = ELMEnsembleRegressor(noise=AR1(), input_map=None, random_state=0)
        model.fit(X[:n], y[:n], time=time[:n])
        kriging = {"residual_kriging": True, "time": time[n:]}
        for name, how in (("function alone", {}), ("residual kriging", kriging)):
            bounds = model.predict_interval(X[n:], LEVEL, **how)
            found.setdefault(f"next {STEPS}, {name}", []).append(judged(bounds, y[n:]))
    yield from rows(found)


def patients(rng: np.random.Generator, n: int, visits: int) -> tuple[pd.DataFrame, Array, Array]:
    """Inputs, responses and patients; two inputs are constant within a patient."""
    patient = np.repeat(np.arange(n), visits)
    age, dose, deviation = rng.uniform(20, 80, n), rng.uniform(size=n), rng.standard_normal(n)
    X = pd.DataFrame({"age": age[patient], "dose": dose[patient]})
    X["time"] = rng.uniform(size=len(X))
    y = np.sin(X.age / 15) + X.dose + X.time + deviation[patient]
    return X, np.asarray(y + 0.5 * rng.standard_normal(len(X))), patient


def groups() -> Iterator[Row]:
    """Visits of new patients, after fits to 60 patients with eight visits each."""
    found = dict[str, list[tuple[float, float]]]()
    for seed in range(REPLICATIONS):
        rng = np.random.default_rng(seed)
        X, y, patient = patients(rng, 60, 8)
        X_new, y_new, _ = patients(rng, 200, 2)
        clustered = ELMEnsembleRegressor(noise=Clustered(), random_state=0)
        clustered.fit(X, y, groups=patient)
        fits = {"Clustered()": clustered}
        fits["independent rows"] = ELMEnsembleRegressor(random_state=0).fit(X, y)
        for name, model in fits.items():
            bounds = model.predict_interval(X_new, LEVEL)
            found.setdefault(f"new patients, {name}", []).append(judged(bounds, y_new))
    yield from rows(found)


def region() -> Iterator[Row]:
    """The mean of the function over a ninth of the area, with noise correlated over one unit."""
    found = dict[str, list[tuple[float, float]]]()
    steps = np.linspace(5.5, 8.5, 7)
    grid = pd.DataFrame({"east": np.repeat(steps, 7), "north": np.tile(steps, 7)})
    truth = np.array([np.mean(np.sin(grid.east / 3))])
    for seed in range(REPLICATIONS):
        rng = np.random.default_rng(seed)
        coords = rng.uniform(0, 10, (250, 2))
        distance = np.linalg.norm(coords[:, None] - coords, axis=-1)
        root = np.linalg.cholesky(np.exp(-distance) + 1e-9 * np.eye(250))
        X = pd.DataFrame(coords, columns=["east", "north"])
        y = np.sin(X.east / 3) + root @ rng.standard_normal(250)
        spatial = ELMEnsembleRegressor(noise=Exponential(), random_state=0)
        fits = {"Exponential()": spatial.fit(X, y, coords=coords)}
        fits["independent rows"] = ELMEnsembleRegressor(random_state=0).fit(X, y)
        for name, model in fits.items():
            mean = model.average(grid, confidence_level=LEVEL)
            bounds = mean[["conf_low", "conf_high"]].to_numpy()
            found.setdefault(f"mean over a region, {name}", []).append(judged(bounds, truth))
    yield from rows(found)


def main() -> None:
    parts: list[Callable[[], Iterator[Row]]] = [future, groups, region]
    chosen = report.parser(__doc__, [part.__name__ for part in parts]).parse_args()
    header = [report.machine(), one_thread()]
    warnings.simplefilter("ignore")
    report.print_parts("new_observations.py", chosen, header, [dgemm, *parts])


if __name__ == "__main__":
    main()
