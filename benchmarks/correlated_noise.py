"""Correlated errors: coverage and accuracy of standard errors, selection of alpha, and cost.

Eight parts; ``--only NAME`` runs one of them. Settings are those of a study whose tables name
the noise but not the sizes; sizes are such that S2 has about the figures that it has there.
Designs and truths are in correlated_settings.py. It is a report, not a test: its exit status is 0
whether or not a target is reached.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import report
from core import extra_memory, in_fresh_process
from correlated_settings import (
    SPACE,
    TIME,
    VARIANCE,
    Array,
    Setting,
    Truth,
    autoregressive,
    bowl,
    clock,
    exponential,
    hill,
    series,
    square,
    truth,
    wave,
)
from plain import plain_ensemble
from replication import replicate
from report import Row
from scipy.signal import lfilter

from ulmus import ELMEnsembleRegressor
from ulmus.core.noise_covariance import kriging_weights as kriging
from ulmus.core.noise_covariance import structure as covariance_structure
from ulmus.core.noise_covariance import whitening
from ulmus.metrics import coverage, mean_width
from ulmus.noise import AR1, Conley, Exponential, Matern, NeweyWest

Report = Iterator[str | Row]
Kind = dict[str, Any]

INDEPENDENT: Kind = {"noise": "homoskedastic"}
PAPER: Kind = {"noise": "heteroskedastic", "variance": "S2", "hc": "HC3"}
ALONG_TIME: dict[str, Kind] = {
    "BR": INDEPENDENT,
    "S2": PAPER,
    "Bartlett": {"noise": NeweyWest()},
    "QS": {"noise": NeweyWest("qs")},
    "AR1": {"noise": AR1()},
}
IN_SPACE: dict[str, Kind] = {
    "BR": INDEPENDENT,
    "S2": PAPER,
    "Conley": {"noise": Conley(cutoff=0.2)},
    "Exponential": {"noise": Exponential()},
}
# Targets of the parametric kinds: re_k by the name of the setting. Coverage is aimed at in all of
# these, and between .93 and .97 where noise is independent.
LARGEST_ERROR = {"AR(.5)": None, "AR(.8)": 0.26}
LARGEST_ERROR |= {"exponential, range .03": None, "exponential, range .1": 0.32}


def fitted(setting: Setting, kind: Kind, y: Array, r: int) -> ELMEnsembleRegressor:
    """The ensemble of a setting; coordinates are passed to spatial noise covariances."""
    model = plain_ensemble(**setting.parameters | kind, random_state=r)
    wants = isinstance(kind["noise"], (Conley, Exponential))
    return model.fit(setting.X, y, **({"coords": setting.X} if wants else {}))


# --- standard errors and coverage of E f_hat ----------------------------------------------------


class Errors(NamedTuple):
    """Prediction, standard error and 95 % bounds for E f_hat at the rows, of one replication."""

    fit: Array
    se: Array
    low: Array
    high: Array


def one_run(setting: Setting, kind: Kind, r: int) -> Errors:
    model = fitted(setting, kind, setting.outputs(r), r)
    low, high = model.predict_interval(setting.X, kind="confidence", target="expectation").T
    se = np.sqrt(model.predict_var(setting.X, "model"))
    return Errors(model.predict(setting.X), se, low, high)


def replicated_truth(runs: Errors) -> Truth:
    """Mean and standard deviation over replications, where alpha is chosen anew in each."""
    return Truth(runs.fit.mean(axis=0), runs.fit.std(axis=0, ddof=1))


class Scores(NamedTuple):
    """re_k (mean over replications of medians over rows), coverage and mean width."""

    error: float
    coverage: float
    width: float


def scores(runs: Errors, known: Truth) -> Scores:
    error = np.mean(np.median(np.abs(runs.se / known.sd - 1), axis=1))
    covered = np.mean((runs.low <= known.mean) & (known.mean <= runs.high))
    return Scores(float(error), float(covered), float(np.mean(runs.high - runs.low)))


def standard_errors(
    jobs: int, R: int, settings: tuple[Setting, ...], kinds: dict[str, Kind], ours: str
) -> Report:
    """A table of settings by noise covariance, with fixed or selected alpha, and its targets."""
    heads = " | ".join(f"{name:^18}" for name in kinds)
    yield f"{'':<34} | {heads}"
    yield f"{'':<34} | " + " | ".join([" re_k  cover  width"] * len(kinds))
    for setting in settings:
        known = None if setting.chooses else truth(setting)
        found = {}
        for name, kind in kinds.items():
            replicated = replicate(jobs, one_run, setting, kind, times=R)
            runs = Errors(*map(np.array, zip(*replicated, strict=True)))
            found[name] = scores(runs, known or replicated_truth(runs))
        unit = found["BR"].width
        cells = (
            f"{s.error:5.3f}  {s.coverage:5.3f}  {s.width / unit:5.2f}" for s in found.values()
        )
        yield f"{setting.title:<34} | {' | '.join(cells)}"
        yield from aims(setting, found, ours)


def aims(setting: Setting, found: dict[str, Scores], ours: str) -> Iterator[Row]:
    best, paper, flat = found[ours], found["S2"], found["BR"]
    name, source = f"{setting.title}, {ours}", f"S2 {paper.coverage:.3f}, re_k {paper.error:.3f}"
    if setting.name == "independent":
        gap = round(abs(best.coverage - 0.95), 6)
        yield Row(f"{name}: |coverage - .95|", gap, "rate", f"{best.coverage:.3f}", "<=", 0.02)
        ratio = abs(best.width / flat.width - 1)
        yield Row(f"{name}: |width over BR's - 1|", ratio, "rate", source, "<=", 0.05)
    elif setting.name in LARGEST_ERROR:
        yield Row(f"{name}: coverage of E f_hat", best.coverage, "rate", source, ">=", 0.90)
        limit = None if setting.note else LARGEST_ERROR[setting.name]
        yield Row(f"{name}: re_k", best.error, "rate", source, "<=" if limit else "", limit)


def time(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"95 % intervals for E f_hat along time, {R} replications; width over that of BR\n"
    rough = replace(TIME[2], note="rough layer", layer={"weight_scale": 3.0}, n=200)
    chosen = tuple(replace(s, note="alpha chosen", layer={"alpha": "loo"}) for s in TIME[:3])
    yield from standard_errors(jobs, R, (*TIME, rough, *chosen), ALONG_TIME, "AR1")


def space(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"95 % intervals for E f_hat in the unit square, {R} replications; width over BR's\n"
    chosen = tuple(replace(s, note="alpha chosen", layer={"alpha": "loo"}) for s in SPACE)
    yield from standard_errors(jobs, R, (*SPACE, *chosen), IN_SPACE, "Exponential")


# --- the mean over the whole period -------------------------------------------------------------


def period_run(setting: Setting, kind: Kind, r: int) -> Array:
    """Whether the interval covers the mean of f over all rows, and its width."""
    model = fitted(setting, kind, setting.outputs(r), r)
    effect = model.average(setting.X).iloc[0]
    mean = np.mean(setting.f(setting.X))
    return np.array(
        [effect.conf_low <= mean <= effect.conf_high, effect.conf_high - effect.conf_low]
    )


def period(jobs: int, replications: int | None) -> Report:
    R = replications or 200
    yield f"95 % intervals for the mean over the whole period, {R} replications\n"
    limits = {"AR1": (">=", 0.90), "BR": ("<", 0.60)}
    for setting in TIME:
        for name in ("BR", "AR1"):
            runs = replicate(jobs, period_run, setting, ALONG_TIME[name], times=R)
            held, width = np.mean(runs, axis=0)
            yield f"{setting.name:<34} {name:>4} {held:6.3f} width {width:6.3f}"
            aim = limits[name] if setting.name == "AR(.8)" else ()
            yield Row(f"{setting.name}: mean, {name}", held, "rate", f"width {width:.3f}", *aim)


# --- the ridge parameter ------------------------------------------------------------------------

# A layer that can follow the noise, so that a small alpha does harm.
ROUGH = {"n_estimators": 10, "n_neurons": 100, "weight_scale": 10.0}
CHOICES: dict[str, Kind] = {
    "loo": INDEPENDENT | {"alpha": "loo"},
    "gcv": INDEPENDENT | {"alpha": "gcv"},
    "block-loo": {"noise": AR1(), "alpha": "block-loo"},
}


def rough_settings() -> Iterator[Setting]:
    for phi in (0.0, 0.5, 0.8):
        yield Setting(f"AR({phi:.1f})", clock, wave, autoregressive(phi), layer=ROUGH)


def choice_run(setting: Setting, kind: Kind, r: int) -> Array:
    """Effective degrees of freedom and root mean squared error to f."""
    model = fitted(setting, kind, setting.outputs(r), r)
    error = model.predict(setting.X) - setting.f(setting.X)
    return np.array([model.dof_, np.sqrt(np.mean(error**2))])


def alpha(jobs: int, replications: int | None) -> Report:
    R = replications or 60
    yield f"Ridge parameters chosen with a layer that can follow the noise, {R} replications\n"
    yield f"{'':<12} " + " ".join(f"{name:>22}" for name in CHOICES)
    for setting in rough_settings():
        found = {}
        for name, kind in CHOICES.items():
            found[name] = np.mean(replicate(jobs, choice_run, setting, kind, times=R), axis=0)
        cells = (f"dof {dof:5.1f}, error {error:.3f}" for dof, error in found.values())
        yield f"{setting.name:<12} " + " ".join(f"{cell:>22}" for cell in cells)
        blocks, rows = found["block-loo"], found["loo"]
        source = f"dof {blocks[0]:.1f}, {rows[0]:.1f}"
        aim = ("<=", 1.05 if setting.name == "AR(0.0)" else 1.0)
        name = f"{setting.name}: error of block-loo over loo's"
        yield Row(name, blocks[1] / rows[1], "ratio", source, *aim)


# --- learned maps -------------------------------------------------------------------------------

# Newey and West have no covariance to whiten rows by: their map takes rows as independent.
MAPS: dict[str, Kind] = {
    "whitened": {"noise": AR1(), "alpha": "block-loo"},
    "as if independent": {"noise": NeweyWest(), "alpha": "block-loo"},
}


def trend_and_inputs(rng: np.random.Generator, n: int) -> Array:
    return np.column_stack([clock(rng, n), rng.random((n, 2))])


def trend(X: Array) -> Array:
    return np.sin(6 * X[:, 0]) + 2 * X[:, 1] ** 2 + np.sin(3 * X[:, 2])


def mapped_settings() -> Iterator[Setting]:
    for phi in (0.0, 0.8):
        yield Setting(f"AR({phi:.1f}), time alone", clock, wave, autoregressive(phi))
        yield Setting(
            f"AR({phi:.1f}), time and inputs", trend_and_inputs, trend, autoregressive(phi)
        )
        yield Setting(f"AR({phi:.1f}), inputs that are series", series, bowl, autoregressive(phi))


def map_run(setting: Setting, kind: Kind, r: int) -> float:
    """Root mean squared error to f behind a learned map."""
    model = ELMEnsembleRegressor(8, 100, random_state=r, **kind)
    error = model.fit(setting.X, setting.outputs(r)).predict(setting.X) - setting.f(setting.X)
    return float(np.sqrt(np.mean(error**2)))


def maps(jobs: int, replications: int | None) -> Report:
    R = replications or 40
    yield f"Maps learned under correlated noise, n = 300, {R} replications\n"
    for setting in mapped_settings():
        found = {
            name: np.array(replicate(jobs, map_run, setting, kind, times=R))
            for name, kind in MAPS.items()
        }
        ours, theirs = found.values()
        cells = (f"{name} {errors.mean():.3f}" for name, errors in found.items())
        worst = np.max(ours / theirs)
        yield f"{setting.name:<36} error {', '.join(cells)}, largest ratio {worst:.2f}"
        source = f"{ours.mean():.3f} / {theirs.mean():.3f}"
        name = f"{setting.name}: error, whitened over not"
        yield Row(name, ours.mean() / theirs.mean(), "ratio", source, "<=", 1.02)


# --- prediction intervals -----------------------------------------------------------------------


def prediction_run(setting: Setting, kind: Kind, r: int) -> Array:
    """Coverage and width at 90 % of another series of the same function."""
    model = fitted(setting, kind, setting.outputs(r), r)
    bounds = model.predict_interval(setting.X, 0.9)
    return np.array(
        [coverage(setting.f(setting.X) + setting.noise(r, 1), bounds), mean_width(bounds)]
    )


def prediction(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"90 % prediction intervals for another series of the same function, {R} replications\n"
    for setting in rough_settings():
        for name in ("loo", "block-loo"):
            runs = replicate(jobs, prediction_run, setting, CHOICES[name], times=R)
            held, width = np.mean(runs, axis=0)
            yield f"{setting.name:<12} {name:>10} {held:6.3f} width {width:6.3f}"
            source = f"width {width:.3f}, of the noise {2 * 1.645 * VARIANCE**0.5:.3f}"
            yield Row(f"{setting.name}: coverage, {name}", held, "rate", source)


# --- many rows in space -------------------------------------------------------------------------

FIELD_ROWS = 2000


def field_errors(scale: float, kind: Any) -> tuple[Array, Array]:
    """Standard errors at the rows and kriged predictions at new locations, exact and Vecchia."""
    setting = Setting("field", square, hill, exponential(scale), spatial=True, n=FIELD_ROWS)
    X, y, new = setting.X, setting.outputs(0), np.random.default_rng(1).random((500, 2))
    found = []
    for most_dense in (FIELD_ROWS, FIELD_ROWS // 2):
        with ExitStack() as stack:
            for module in (covariance_structure, whitening, kriging):
                stack.enter_context(patch.object(module, "MOST_DENSE", most_dense))
            model = plain_ensemble(10, 50, alpha=1e-3, random_state=0, noise=kind)
            model.fit(X, y, coords=X)
            near = model.predict(new, residual_kriging=True, coords=new)
            found.append((np.sqrt(model.predict_var(X, "model")), near, model.noise_covariance_))
    (se, near, _), (other_se, other_near, _) = found
    return other_se / se - 1, (other_near - near) / np.std(y)


def neighbours(jobs: int, replications: int | None) -> Report:
    yield f"Covariances by nearest neighbours beside exact ones, {FIELD_ROWS} rows in the square\n"
    for scale in (0.03, 0.1, 0.3):
        for kind in (Exponential(), Matern(nu=1.5)):
            se, near = field_errors(scale, kind)
            name = f"range {scale:g}, {type(kind).__name__}"
            source = f"kriged predictions differ by {np.max(np.abs(near)):.4f} sd of y at most"
            worst = float(np.max(np.abs(se)))
            yield Row(f"{name}: largest error of a se", worst, "rate", source, "<=", 0.05)


# --- the cost of many rows ----------------------------------------------------------------------

COST_ROWS = 100_000


def long_series(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n)
    X = rng.uniform(-1, 1, (n, 5))
    noise = lfilter([0.3 * 0.6], [1, -0.8], rng.standard_normal(n))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise


def cost_of_fit(kind: Kind, n: int) -> tuple[float, float]:
    """Peak memory above that of the table (MB), and wall time."""
    model = plain_ensemble(10, 100, alpha=1e-3, random_state=0, **kind)
    model.fit(*long_series(2000))  # what is paid once: BLAS buffers, late imports
    return extra_memory(partial(model.fit, *long_series(n)))


def cost(jobs: int, replications: int | None) -> Report:
    yield f"Fits of {COST_ROWS} rows, M = 10, N = 100, given alpha; one thread\n"
    memory, wall = {}, {}
    for name, n in (
        ("BR", COST_ROWS),
        ("AR1", COST_ROWS),
        ("BR", 2 * COST_ROWS),
        ("AR1", 2 * COST_ROWS),
    ):
        memory[name, n], wall[name, n] = in_fresh_process(cost_of_fit, ALONG_TIME[name], n)
        yield f"{name:<4} {n:>7} rows {wall[name, n]:7.1f} s {memory[name, n]:7.0f} MB"
    once, ours = wall["BR", COST_ROWS], wall["AR1", COST_ROWS]
    source = f"{ours:.1f} s / {once:.1f} s"
    yield Row(f"n = {COST_ROWS}: time of AR1 over BR's", ours / once, "x", source, "<", 10)
    grown = memory["AR1", 2 * COST_ROWS] - memory["AR1", COST_ROWS]
    flat = memory["BR", 2 * COST_ROWS] - memory["BR", COST_ROWS]
    source = f"BR {flat:.0f} MB; AR1 {memory['AR1', COST_ROWS]:.0f} MB before"
    yield Row("memory of AR1 for as many rows again", grown, "MB", source, "<=", 100)


PARTS: dict[str, Callable[[int, int | None], Report]] = {
    "time": time,
    "space": space,
    "period": period,
    "alpha": alpha,
    "maps": maps,
    "prediction": prediction,
    "neighbours": neighbours,
    "cost": cost,
}


if __name__ == "__main__":
    report.simulate("dependence.py", __doc__, PARTS)
