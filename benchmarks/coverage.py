"""Coverage of intervals, accuracy of standard errors, and the cost of jackknife+.

Fifteen simulations, compared with the paper or another package; ``--only NAME`` runs one of them.
It is a report, not a test: its exit status is 0 whether or not a target is reached. Functions,
noises and designs are in settings.py, predictive distributions in shapes.py, noise that varies in
noise.py, and default fits in interval_coverage.py.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import interval_coverage
import numpy as np
import report
import shapes
from mapie.regression import CrossConformalRegressor
from noise import BINS, CONSTANT, VARYING, model_scores
from plain import plain_ensemble
from replication import replicate
from report import Row
from scipy import special
from settings import (
    FRIEDMAN,
    HILL,
    HOLD_OUTS,
    KINK,
    LEAST_SQUARES,
    NOISES,
    NORMAL,
    PAPER_SETTINGS,
    SPREAD_CASES,
    Array,
    Setting,
    SpreadCase,
)
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import LeaveOneOut

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage, interval_score, mean_width

Report = Iterator[str | Row]


# --- many rows: leave-one-out predictions or predictions --------------------------------------


def many_rows(n: int, r: int) -> Array:
    """Coverage and width at 90 % with and without the shifts by single rows, and their gap."""
    rng = np.random.default_rng([n, r])
    X, points = rng.uniform(-1, 1, (n, 5)), rng.uniform(-1, 1, (400, 5))
    sd = 0.3 + 0.2 * X[:, 0]
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + sd * rng.standard_normal(n)
    noise = (0.3 + 0.2 * points[:, 0]) * rng.standard_normal(400)
    target = np.sin(3 * points[:, 0]) + points[:, 1] * points[:, 2] + noise
    model = plain_ensemble(10, noise="heteroskedastic", random_state=r).fit(X, y)
    bounds = []
    for limit in (0, 10**9):
        with mock.patch("ulmus.intervals.prediction.MANY_ROWS", limit):
            bounds.append(model.predict_interval(points, 0.9))
    gap = np.max(np.abs(bounds[0] - bounds[1])) / np.mean(mean_width(bounds[1]))
    return np.array([*(coverage(target, b) for b in bounds), *map(mean_width, bounds), gap])


def many(jobs: int, replications: int | None) -> Report:
    R = replications or 20
    yield f"'auto' with and without the shifts by single rows, {R} replications\n"
    for n in (6000, 12000):
        runs = np.array(replicate(jobs, many_rows, n, times=R))
        without, shifted, width, shifted_width, _ = runs.mean(axis=0)
        source = f"coverage {without:.4f}, {shifted:.4f} with shifts"
        yield Row(f"n = {n}: width without shifts over with", width / shifted_width, "rate", source)
        name = f"n = {n}: largest gap of a bound over the width"
        yield Row(name, runs[:, 4].max(), "rate", source)


# --- prediction intervals --------------------------------------------------------------------

LEVELS = (0.90, 0.95)
METHODS = ("auto", "jackknife+", "gaussian")


def prediction_scores(setting: Setting, r: int) -> Array:
    """Coverage, width and interval score, shape (3, methods, levels), on new X and y."""
    rng = setting.rng(r)
    X, points = setting.inputs(rng, setting.n), setting.inputs(rng, 500)
    y, target = setting.outputs(rng, X), setting.outputs(rng, points)
    model = plain_ensemble(random_state=r, **setting.noise.model).fit(X, y)
    bounds = [model.predict_interval(points, list(LEVELS), method=m) for m in METHODS]
    scores = [
        (coverage(target, b), mean_width(b), interval_score(target, b, LEVELS)) for b in bounds
    ]
    return np.swapaxes(scores, 0, 1)


def prediction(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"Prediction intervals, n = 300, plain layer; {R} replications, new X each time,"
    yield "500 test points. a: auto, j+: jackknife+, j: jackknife, g: gaussian\n"
    group = "{:>6} {:>6} {:>6} {:>6}".format("a", "j+", "j", "g")
    heads = " | ".join(f"{head:^27}" for head in ("coverage", "mean width", "interval score"))
    yield f"{'':<31} {'level':>5} | {heads} |"
    yield f"{'function, noise':<37} | {group} | {group} | {group} | a/j+"
    gaps, ratios = [], []
    for function in (FRIEDMAN, HILL, KINK):
        for noise in NOISES:
            setting = Setting(function, noise, 300)
            means = np.mean(replicate(jobs, prediction_scores, setting, times=R), axis=0)
            name = f"{function.name}, {noise.name}"
            for k, level in enumerate(LEVELS):
                ratio = means[2, 0, k] / means[2, 1, k]
                gaps.append((abs(means[0, 0, k] - level), f"{name}, {level:.0%}"))
                ratios.append((ratio, f"{name}, {level:.0%}"))
                groups = (" ".join(f"{v:6.3f}" for v in means[i, :, k]) for i in range(3))
                yield f"{name:<31} {level:>5.0%} | {' | '.join(groups)} | {ratio:.3f}"
    (gap, gap_cell), (ratio, ratio_cell) = max(gaps), max(ratios)
    yield Row("auto: |coverage - level|, worst cell", gap, "rate", gap_cell, "<=", 0.015)
    name = "auto: interval score / jackknife+'s, worst cell"
    yield Row(name, ratio, "rate", ratio_cell, "<=", 1.02)


# --- confidence intervals --------------------------------------------------------------------

CONFIDENCE_POINTS = 200


class Confidence(NamedTuple):
    """95 % intervals (p, 2) for f and for E[f_hat], and f_hat (p,), of one replication."""

    function: Array
    expectation: Array
    fit: Array


def plain_intervals(setting: Setting, hc: str, r: int) -> Confidence:
    X, points = setting.fixed_inputs(CONFIDENCE_POINTS)
    y = setting.outputs(setting.rng(r), X)
    model = plain_ensemble(hc=hc, random_state=r, **setting.noise.model).fit(X, y)
    function = model.predict_interval(points, kind="confidence")
    expectation = model.predict_interval(points, kind="confidence", target="expectation")
    return Confidence(function, expectation, model.predict(points))


def paper_intervals(setting: Setting, r: int) -> Confidence:
    """Mean plus and minus 1.96 standard errors, for f and for E[f_hat] alike."""
    X, points = setting.fixed_inputs(CONFIDENCE_POINTS)
    y = setting.outputs(setting.rng(r), X)
    parameters = setting.noise.model | setting.paper
    model = plain_ensemble(random_state=r, **parameters).fit(X, y)
    ends = model.predict_interval(points, kind="confidence", target="expectation", method="normal")
    return Confidence(ends, ends, model.predict(points))


def pointwise(truth: Array, intervals: Array) -> Array:
    """Median, 5 % quantile and minimum over points of coverage, and mean width."""
    low, high = intervals[:, :, 0], intervals[:, :, 1]
    covered = np.mean((low <= truth) & (truth <= high), axis=0)
    return np.array([*np.quantile(covered, [0.5, 0.05, 0]), np.mean(high - low)])


def confidence_summary(setting: Setting, runs: list[Confidence]) -> tuple[Array, Array]:
    """Pointwise coverage of f and of E[f_hat], the latter taken as the mean of all f_hat."""
    function, expectation, fit = (np.stack(arrays) for arrays in zip(*runs, strict=True))
    truth = setting.function.f(setting.fixed_inputs(CONFIDENCE_POINTS)[1])
    return pointwise(truth, function), pointwise(np.mean(fit, axis=0), expectation)


def confidence(jobs: int, replications: int | None) -> Report:
    R = replications or 150
    yield f"Confidence intervals, 95 %; fixed X, new noise and weights in {R} replications;"
    yield f"coverage at {CONFIDENCE_POINTS} points of the input distribution. E[f_hat] is the mean"
    yield "over all replications of f_hat, alpha being chosen anew in each. For 150 replications an"
    yield "exact interval would show a 5 % quantile of about .92.\n"
    group = "{:>6} {:>6} {:>6} {:>6}".format("median", "5 %", "min", "width")
    yield f"{'':<36} | {'coverage of f':^27} | {'coverage of E[f_hat]':^27}"
    yield f"{'setting, interval':<36} | {group} | {group}"
    for setting in (*PAPER_SETTINGS, *HOLD_OUTS):
        flat = setting.noise.model["noise"] == "homoskedastic"
        for hc in ("pooled",) if flat else ("pooled", "HC2"):
            runs = replicate(jobs, plain_intervals, setting, hc, times=R)
            name = f"{setting.name}, ulmus" + ("" if flat else f" {hc}")
            f, expectation = confidence_summary(setting, runs)
            yield confidence_line(name, f, expectation)
            yield from confidence_rows(name, f, expectation, bool(setting.paper))
        if setting.paper:
            runs = replicate(jobs, paper_intervals, setting, times=R)
            yield confidence_line(f"{setting.name}, paper", *confidence_summary(setting, runs))


def confidence_line(name: str, *summaries: Array) -> str:
    return " | ".join([f"{name:<36}", *(" ".join(f"{v:6.3f}" for v in s) for s in summaries)])


def confidence_rows(name: str, f: Array, expectation: Array, aimed: bool) -> Iterator[Row]:
    """Medians between .93 and .97 and a quantile are aimed at in the paper's settings only."""
    median, low = (("<=", 0.02), (">=", 0.88)) if aimed else ((), ())
    for target, summary in (("f", f), ("E[f_hat]", expectation)):
        source = f"{summary[0]:.3f}, width {summary[3]:.3f}"
        gap = round(abs(summary[0] - 0.95), 6)
        yield Row(f"{name}: {target}, |median coverage - .95|", gap, "rate", source, *median)
    source = f"minimum {f[2]:.3f}"
    yield Row(f"{name}: f, 5 % quantile of coverage", f[1], "rate", source, *low)


# --- standard deviations ---------------------------------------------------------------------

TRUTH_BATCHES, BATCH_MEMBERS = 20, 200


def member_sums(case: SpreadCase, batch: int) -> tuple[Array, ...]:
    """Sums over members, drawn without ulmus, of z(x), z'z, z'f and (z'f)^2."""
    X, points = case.setting.fixed_inputs(CONFIDENCE_POINTS)
    f, N = case.setting.function.f(X), case.parameters["n_neurons"]
    rng = case.setting.rng(batch, 1)
    sums = np.zeros((len(X), len(points))), *np.zeros((3, len(points)))
    for _ in range(BATCH_MEMBERS):
        W, b = rng.uniform(-1, 1, (X.shape[1], N)), rng.uniform(-1, 1, N)
        U, s, Vt = np.linalg.svd(special.expit(X @ W + b), full_matrices=False)
        kept = s > np.finfo(float).eps ** 0.5 * s[0]
        gain = np.where(kept, s / (s**2 + case.alpha), 0)
        z = (U * gain) @ (Vt @ special.expit(points @ W + b).T)
        for total, value in zip(sums, (z, np.sum(z**2, axis=0), f @ z, (f @ z) ** 2), strict=True):
            total += value
    return sums


def true_sd(jobs: int, case: SpreadCase) -> Array:
    """sqrt(s2 mu'mu + (s2 tr C + f'Cf) / M) with mu and C, mean and covariance of z, from draws.

    The noise is integrated out exactly, and the excess tr C / L of the mean's square removed.
    """
    batches = replicate(jobs, member_sums, case, times=TRUTH_BATCHES)
    L = TRUTH_BATCHES * BATCH_MEMBERS
    z, z2, zf, zf2 = (sum(parts) / L for parts in zip(*batches, strict=True))
    mean2 = np.sum(z**2, axis=0)
    trace = (z2 - mean2) * L / (L - 1)
    bias_variation = (zf2 - zf**2) * L / (L - 1)
    s2, M = case.setting.function.variance, case.parameters["n_estimators"]
    return np.sqrt(s2 * (mean2 - trace / L) + (s2 * trace + bias_variation) / M)


def estimated_sd(case: SpreadCase, noise_variance: str, r: int) -> Array:
    X, points = case.setting.fixed_inputs(CONFIDENCE_POINTS)
    y = case.setting.outputs(case.setting.rng(r), X)
    parameters = case.parameters | {"noise_variance": noise_variance, "random_state": r}
    model = plain_ensemble(**parameters).fit(X, y)
    return np.append(np.sqrt(model.predict_var(points, "model")), model.noise_variance_)


def spread(jobs: int, replications: int | None) -> Report:
    R = replications or 150
    members = TRUTH_BATCHES * BATCH_MEMBERS
    yield "Standard deviation of f_hat by BR: re_k, the median over points of |sd_hat - sd| / sd,"
    yield f"mean and standard deviation of {R} replications; sd from {members} drawn members\n"
    yield f"{'setting, noise_variance':<36} {'re_k':>6} {'(sd)':>7} {'paper':>6} {'s2_hat/s2':>10}"
    for case in SPREAD_CASES:
        sd = true_sd(jobs, case)
        for choice in ("pilot", "residual"):
            runs = np.array(replicate(jobs, estimated_sd, case, choice, times=R))
            errors = np.median(np.abs(runs[:, :-1] / sd - 1), axis=1)
            noise = np.mean(runs[:, -1]) / case.setting.function.variance
            name = f"{case.name}, M = {case.parameters['n_estimators']}, {choice}"
            value = f"{np.mean(errors):6.3f} ({np.std(errors):.3f})"
            yield f"{name:<36} {value} {case.paper:6.3f} {noise:10.3f}"
            if choice == "pilot" and case.target:
                source = f"paper {case.paper:.3f}"
                yield Row(f"re_k, {name}", np.mean(errors), "rate", source, "<", case.target)


# --- noise that varies -----------------------------------------------------------------------


def noise(jobs: int, replications: int | None) -> Report:
    R = replications or 20
    yield f"90 % intervals in ten bins of points by their true noise, {R} replications, 'auto';"
    yield "h: noise='homoskedastic'. Width and log density are means over the points\n"
    yield f"{'':<40} {'worst':>6} {'best':>6} {'all':>6} {'width':>6} {'log p':>7} | h: the same"
    for setting in (*VARYING, *CONSTANT):
        for plain in (True, False):
            name = f"{setting.name}, {'plain layer' if plain else 'defaults'}"
            auto, flat = (
                np.mean(replicate(jobs, model_scores, setting, plain, kind, times=R), axis=0)
                for kind in ("auto", "homoskedastic")
            )
            lines = [[s[:BINS].min(), s[:BINS].max(), *s[BINS:]] for s in (auto, flat)]
            cells = " | ".join(" ".join(f"{v:6.3f}" for v in line) for line in lines)
            yield f"{name:<46} {cells}"
            source = f"{flat[:BINS].min():.3f} with one variance"
            if setting in VARYING:
                yield Row(f"{name}: worst bin", lines[0][0], "rate", source, ">=", 0.85)
            else:
                ratio = auto[BINS + 1] / flat[BINS + 1]
                yield Row(f"{name}: width ratio", ratio, "rate", source, "<=", 1.02)


# --- the cost of jackknife+ ------------------------------------------------------------------


class HiddenRidges(RegressorMixin, BaseEstimator):
    """The same ensemble on hidden features made in advance: M solves, and nothing else."""

    def __init__(self, n_members: int = 10, alpha: float = 1.0) -> None:
        self.n_members, self.alpha = n_members, alpha

    def fit(self, X: Array, y: Array) -> "HiddenRidges":
        H = np.swapaxes(X.reshape(len(X), self.n_members, -1), 0, 1)
        Ht = np.swapaxes(H, 1, 2)
        gram = Ht @ H + self.alpha * np.eye(H.shape[2])
        self.coef_ = np.linalg.solve(gram, (Ht @ y)[:, :, None]).ravel() / self.n_members
        return self

    def predict(self, X: Array) -> Array:
        return X @ self.coef_


def refitted_intervals(estimator: BaseEstimator, X: Array, y: Array, points: Array) -> Array:
    """Jackknife+ by MAPIE: a refit for each row."""
    mapie = CrossConformalRegressor(
        estimator, confidence_level=0.9, method="plus", cv=LeaveOneOut(), n_jobs=1
    )
    return mapie.fit_conformalize(X, y).predict_interval(points)[1][:, :, 0]


def closed_intervals(estimator: ELMEnsembleRegressor, X: Array, y: Array, points: Array) -> Array:
    return estimator.fit(X, y).predict_interval(points, 0.9, method="jackknife+")


def cpu_seconds(function: Callable[..., Array], *args: object) -> tuple[float, Array]:
    start = time.process_time()
    value = function(*args)
    return time.process_time() - start, value


def jackknife(jobs: int, replications: int | None) -> Report:
    n, M, N, alpha = 500, 10, 100, 1e-3
    setting = Setting(FRIEDMAN, NORMAL, n)
    X, points = setting.fixed_inputs(100)
    y = setting.outputs(setting.rng(0), X)
    # Refits must keep the hidden features: fixed weights, and no scale of the inputs.
    shape = LEAST_SQUARES | {"n_estimators": M, "n_neurons": N, "alpha": alpha, "random_state": 0}
    ours = plain_ensemble(**shape | {"noise_variance": "pilot"})
    runs = [cpu_seconds(closed_intervals, ours, X, y, points) for _ in range(5)]
    wall, bounds = float(np.median([run[0] for run in runs])), runs[0][1]
    yield f"Jackknife+: fit and predict 100 points, n = {n}, M = {M}, N = {N}; one thread\n"
    yield f"{'ulmus':<48} {wall:8.3f} s, median of 5"
    W, b = ours.hidden_weights_, ours.hidden_biases_
    hidden, at_points = (np.hstack(special.expit(x @ W + b[:, None, :])) for x in (X, points))
    lean = HiddenRidges(M, alpha), hidden, y, at_points
    rivals = {"MAPIE, ELMEnsembleRegressor": (ours, X, y, points)}
    rivals |= {"MAPIE, solves on hidden features made in advance": lean}
    for name, args in rivals.items():
        seconds, theirs = cpu_seconds(refitted_intervals, *args)
        difference = float(np.max(np.abs(theirs - bounds)))
        yield f"{name:<48} {seconds:8.3f} s, {seconds / wall:.0f} x, difference {difference:.1e}"
        source = f"{seconds:.1f} s / {wall:.3f} s of CPU"
        aim = (">=", 50) if args[0] is ours else ("", None)
        yield Row(f"{name}: slower", seconds / wall, "times", source, *aim)
        source = "largest, of 90 % bounds"
        yield Row(f"{name}: difference", difference, "difference", source, "<=", 1e-8)


PARTS: dict[str, Callable[[int, int | None], Report]] = {
    "prediction": prediction,
    "confidence": confidence,
    "spread": spread,
    "jackknife": jackknife,
    "many": many,
    **shapes.PARTS,
    **interval_coverage.PARTS,
    "noise": noise,
}


if __name__ == "__main__":
    report.simulate("coverage.py", __doc__, PARTS)
