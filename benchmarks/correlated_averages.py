"""Standard errors of averages over long stretches of a series with autocorrelated noise.

Two parts; ``--only NAME`` runs one of them. In the first the truth is known: trend, season and
AR(1) noise with or without a nugget. In the second it is a fit of monthly carbon dioxide, behind a
learned map or behind scales given by hand, and its estimated noise covariance. Series are simulated
from it and fitted again with either map. Requires statsmodels, for its table.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import report
from correlated_settings import autoregressive, steps
from replication import replicate
from report import Row

from ulmus import ELMEnsembleRegressor
from ulmus.core.noise_covariance.locations import Locations
from ulmus.noise import AR1

Array = np.ndarray
Report = Iterator[str | Row]

# A map that is learned, and hidden weights whose trend may bend within a year or two.
MAPS: dict[str, dict[str, Any]] = {
    "learned map": {},
    "flexible": {"input_map": None, "weight_scale": [6, 0.3, 0.3]},
}
ESTIMANDS = ("mean of the last decade", "difference of two decades", "six months ahead")
DECADE, AHEAD = 120, 6
SD = 0.4


@dataclass(frozen=True)
class Series:
    """Months, the function at them and at a future one, and the covariance of the noise."""

    name: str
    table: pd.DataFrame  # the rows, and the future point
    f: Array  # (n + 1,)
    covariance: Array = field(repr=False)  # (n, n)

    @property
    def functionals(self) -> Array:
        """Weights of the estimands over the points of the table, shape (3, n + 1)."""
        n = len(self.covariance)
        A = np.zeros((3, n + 1))
        A[:2, n - DECADE : n] = 1 / DECADE
        A[1, :DECADE] -= 1 / DECADE
        A[2, n] = 1
        return A

    def outputs(self, r: int) -> Array:
        root = np.linalg.cholesky(self.covariance)
        draw = np.random.default_rng([7, r]).standard_normal(len(root))
        return self.f[:-1] + root @ draw


def months(year: Array) -> pd.DataFrame:
    season = 2 * np.pi * year
    return pd.DataFrame({"year": year, "cos": np.cos(season), "sin": np.sin(season)})


def known_series(n: int, phi: float, share: float) -> Series:
    """Trend and season over n months, with AR(1) noise of a share of the variance."""
    table = months(np.append(np.arange(n), n - 1 + AHEAD) / 12)
    u = 12 * table.year / n
    f = 2 * u + 0.6 * np.sin(2.4 * np.pi * u) + (1 + 0.3 * u) * table.cos + 0.4 * table.sin
    covariance = SD**2 * autoregressive(phi, share)(steps(n))
    return Series(f"AR({phi:g}), share {share:g}", table, f.to_numpy(), covariance)


def co2_series(name: str) -> Series:
    """A fit of carbon dioxide and its noise, as truth."""
    from statsmodels.datasets import co2

    y = co2.load_pandas().data["co2"].resample("MS").mean().dropna()
    year = np.asarray(y.index.year + (y.index.dayofyear - 1) / 365.25)
    table = months(np.append(year, year[-1] + AHEAD / 12))
    model = fitted(table[:-1], y.to_numpy(), name, 0)
    covariance = model.noise_covariance_.covariance(Locations(n=len(y)))
    return Series(f"fit with {name}", table, model.predict(table), covariance)


def fitted(X: pd.DataFrame, y: Array, name: str, r: int) -> ELMEnsembleRegressor:
    return ELMEnsembleRegressor(5, 100, noise=AR1(), random_state=r, **MAPS[name]).fit(X, y)


class Run(NamedTuple):
    """Estimates of the estimands, their standard errors and 95 % bounds for E f_hat, (3,) each."""

    estimate: Array
    se: Array
    low: Array
    high: Array


def one_run(series: Series, name: str, r: int) -> Run:
    model = fitted(series.table[:-1], series.outputs(r), name, r)
    frame = model.functional(series.functionals, series.table)
    return Run(*frame[["estimate", "std_error", "conf_low", "conf_high"]].to_numpy().T)


def rows_of(series: Series, name: str, jobs: int, R: int) -> Iterator[Row]:
    """Standard errors over true deviations, and coverage of E f_hat and of f."""
    runs = Run(*map(np.array, zip(*replicate(jobs, one_run, series, name, times=R), strict=True)))
    ratio = np.sqrt(np.mean(runs.se**2, axis=0)) / runs.estimate.std(axis=0, ddof=1)
    median = np.median(runs.se, axis=0) / runs.estimate.std(axis=0, ddof=1)
    truths = runs.estimate.mean(axis=0), series.functionals @ series.f
    covered = [np.mean((runs.low <= t) & (t <= runs.high), axis=0) for t in truths]
    for k, estimand in enumerate(ESTIMANDS):
        title = f"{series.name}, {name}: {estimand}"
        source = f"of f {covered[1][k]:.3f}; median se over sd {median[k]:.2f}"
        yield Row(f"{title}, se over sd", ratio[k], "ratio", f"{R} series")
        yield Row(f"{title}, coverage of E f_hat", covered[0][k], "rate", source, ">=", 0.90)


def known(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"Trend, season and AR(1) noise, 420 months, {R} replications\n"
    for phi, share in ((0.5, 1.0), (0.8, 1.0), (0.95, 1.0), (0.95, 0.6)):
        for name in MAPS:
            yield from rows_of(known_series(420, phi, share), name, jobs, R)


def co2(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"Series simulated from fits of carbon dioxide, {R} replications\n"
    for truth in MAPS:
        series = co2_series(truth)
        for name in MAPS:
            yield from rows_of(series, name, jobs, R)


PARTS: dict[str, Callable[[int, int | None], Report]] = {"known": known, "co2": co2}


if __name__ == "__main__":
    report.simulate("correlated_averages.py", __doc__, PARTS)
