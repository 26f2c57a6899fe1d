"""Targets that are positive, counted or bounded: error, predictive distributions, effects.

``python benchmarks/targets.py PART`` prints a Markdown table. ``distributions`` simulates the
families of target_families.py, with new rows and new observations in each replication, beside an
oracle that knows the family, and beside the true law: its central 90 % intervals cover more where
single values have a probability. KS is the distance of the probability integral transform of 1000
new observations to uniform, about 0.027 if they are from the law. ``effects`` simulates standard
errors of averages and contrasts; rows are the same in all replications, observations and hidden
weights are drawn anew. ``kriging`` and ``tables`` need ``--data``: the folder of kriging.py or of
uci.py. A fit that fails is reported on standard error, and the others have their turn.
"""

import argparse
import datetime
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import kriging
import numpy as np
from plain import plain_ensemble
from pykrige.ok import OrdinaryKriging
from replication import quietly, replicate
from report import machine
from target_families import FAMILIES, Array, Family, Law
from timing import one_thread
from uci import SETS, DataSet, names, read_sets, wanted_splits
from uci_table import number

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage, interval_score, mean_width
from ulmus.noise import Exponential

Cells = Iterator[tuple[str, ...]]
LEVEL, N_POINTS = 0.9, 1000
QUANTILES = (np.arange(200)[:, None] + 0.5) / 200
AUTO = {"target_transform": "auto"}
ARMS = ("given", "auto", "none")
FITS = {"plain": partial(plain_ensemble, 10, 100, noise="auto"), "defaults": ELMEnsembleRegressor}


def parameters(family: Family, arm: str) -> dict[str, Any]:
    """What is told about the target: what a user would give, "auto", or nothing."""
    return {"given": family.given, "auto": AUTO, "none": {}}[arm]


def chosen_transform(model: ELMEnsembleRegressor) -> str:
    return str(getattr(model, "target_transform_", "identity"))


def attempted(what: str, function: Callable, *args: Any) -> Any:
    """Result without warnings; None if it fails, with the error: other rows have their turn."""
    try:
        return quietly(function, *args)
    except Exception as error:
        print(f"{what}: {error!r}", file=sys.stderr, flush=True)
        return None


def counted(texts: Iterable[str]) -> str:
    """Texts with their frequencies, the most frequent first."""
    return ", ".join(f"{text} {count}" for text, count in Counter(texts).most_common())


def with_error(values: Array) -> str:
    """Mean and its standard error."""
    if len(values) < 2:
        return f"{np.mean(values):.3f}"
    return f"{np.mean(values):.3f} ({np.std(values, ddof=1) / len(values) ** 0.5:.3f})"


def ratio_with_error(values: Array, reference: Array) -> str:
    """Ratio of two means over the same replications, and its standard error."""
    ratio = np.mean(values) / np.mean(reference)
    if len(values) < 2:
        return f"{ratio:.3f}"
    error = np.std(values - ratio * reference, ddof=1) / np.mean(reference) / len(values) ** 0.5
    return f"{ratio:.3f} ({error:.3f})"


# --- distributions ----------------------------------------------------------------------------


class Prediction(NamedTuple):
    """Means (p,), intervals (p, 2) and distributions of new observations."""

    mean: Array
    bounds: Array
    law: Law


class Scores(NamedTuple):
    """Scores of one fit, and the transform of the target."""

    coverage: float = np.nan
    width: float = np.nan
    outside: float = np.nan
    crps: float = np.nan
    rmse: float = np.nan
    ks: float = np.nan
    seconds: float = np.nan
    transform: str = "failed"


def of_law(law: Law) -> Prediction:
    low, high = law.ppf(np.array([[0.5 - LEVEL / 2], [0.5 + LEVEL / 2]]))
    return Prediction(law.mean(), np.stack([low, high], axis=1), law)


def of_model(model: ELMEnsembleRegressor, points: Array) -> Prediction:
    bounds = model.predict_interval(points, LEVEL)
    return Prediction(model.predict(points), bounds, model.predict_dist(points))


def below(law: Law, y: Array) -> Array:
    """Probability of a value less than y."""
    return law.cdf(np.nextafter(y, -np.inf))


def ks_distance(law: Law, y: Array, rng: np.random.Generator) -> float:
    """Kolmogorov-Smirnov distance of the randomised probability integral transform to uniform."""
    low, high = below(law, y), law.cdf(y)
    pit = np.sort(low + rng.random(len(y)) * (high - low))
    steps = np.arange(len(y) + 1) / len(y)
    return float(max(np.max(steps[1:] - pit), np.max(pit - steps[:-1])))


def scores(
    prediction: Prediction, truth: Law, y: Array, support: tuple[float, float], seed: int
) -> Scores:
    """Coverage by the true law, and scores of new observations y."""
    mean, bounds, law = prediction
    quantiles = law.ppf(QUANTILES)
    loss = np.maximum(QUANTILES * (y - quantiles), (QUANTILES - 1) * (y - quantiles))
    ends = np.vstack([bounds.T, quantiles])
    return Scores(
        coverage=float(np.mean(truth.cdf(bounds[:, 1]) - below(truth, bounds[:, 0]))),
        width=float(mean_width(bounds)),
        outside=float(np.mean(np.any((ends < support[0]) | (ends > support[1]), axis=0))),
        crps=float(2 * np.mean(loss)),
        rmse=float(np.sqrt(np.mean((mean - truth.mean()) ** 2))),
        ks=ks_distance(law, y, np.random.default_rng(seed)),
    )


def one_run(name: str, d: int, n: int, arms: tuple[str, ...], r: int) -> dict[str, Scores]:
    """Scores of the true law, of the oracle and of our fits in replication r."""
    family, rng = FAMILIES[name], np.random.default_rng([*name.encode(), d, n, r])
    X, points = rng.random((n, d)), rng.random((N_POINTS, d))
    y, truth = family.law(X).ppf(rng.random(n)), family.law(points)
    target = truth.ppf(rng.random(N_POINTS))

    def ours(arm: str) -> tuple[Prediction, str]:
        model = ELMEnsembleRegressor(random_state=r, **parameters(family, arm)).fit(X, y)
        return of_model(model, points), chosen_transform(model)

    def scored(predict: Callable[[], tuple[Prediction, str]]) -> Scores:
        start = time.process_time()
        prediction, transform = predict()
        found = scores(prediction, truth, target, family.support, r)
        return found._replace(seconds=time.process_time() - start, transform=transform)

    def timed(predict: Callable[[], tuple[Prediction, str]]) -> Scores:
        return attempted(f"{name}, d = {d}, n = {n}, r = {r}", scored, predict) or Scores()

    found = {
        "truth": timed(lambda: (of_law(truth), "")),
        "oracle": timed(lambda: (of_law(family.oracle(X, y, points)), "")),
    }
    return found | {arm: timed(partial(ours, arm)) for arm in arms}


def distribution_cells(runs: list[dict[str, Scores]], fit: str) -> tuple[str, ...]:
    """Means over the replications in which neither this fit nor the oracle failed."""
    used = [run for run in runs if "failed" not in (run[fit].transform, run["oracle"].transform)]
    if not used:
        return ("-",) * 10 + ("failed",)
    ours, oracle, truth = (
        Scores(*map(np.array, zip(*(run[which] for run in used), strict=True)))
        for which in (fit, "oracle", "truth")
    )
    return (
        with_error(ours.coverage),
        number(np.mean(ours.width)),
        number(np.mean(ours.outside)),
        number(np.mean(ours.crps)),
        ratio_with_error(ours.crps, truth.crps),
        ratio_with_error(ours.crps, oracle.crps),
        number(np.mean(ours.rmse)),
        ratio_with_error(ours.rmse, oracle.rmse),
        f"{np.mean(ours.ks):.3f}",
        f"{np.mean(ours.seconds):.2f}",
        counted(run[fit].transform for run in runs) if fit in ARMS else "",
    )


def distributions(options: argparse.Namespace) -> Cells:
    arms = () if options.oracle_only else tuple(options.arms)
    for name in options.families:
        for d in options.inputs:
            for n in options.rows or (100, 300, 1000):
                R = options.replications or 5
                runs = replicate(options.jobs, one_run, name, d, n, arms, times=R)
                for fit in ("truth", "oracle", *arms):
                    yield name, str(d), str(n), fit, *distribution_cells(runs, fit)


# --- standard errors --------------------------------------------------------------------------

CONTRAST = {0: (0.25, 0.75)}
ESTIMANDS = ("average", "difference", "ratio")


class EffectEstimates(NamedTuple):
    """Estimates (3,), standard errors (3,) and 95 % intervals (3, 2) of ``ESTIMANDS``."""

    estimate: Array
    se: Array
    bounds: Array


def effect_inputs(d: int, n: int) -> Array:
    return np.random.default_rng([d, n]).random((n, d))


def true_effects(family: Family, X: Array) -> Array:
    low, high = (
        family.law(np.column_stack([np.full(len(X), value), X[:, 1:]])).mean().mean()
        for value in CONTRAST[0]
    )
    return np.array([family.law(X).mean().mean(), high - low, high / low])


def effect_run(
    name: str, fit: str, arm: str, target: str, d: int, n: int, r: int
) -> EffectEstimates:
    family, X = FAMILIES[name], effect_inputs(d, n)
    y = family.law(X).ppf(np.random.default_rng([*name.encode(), r]).random(n))
    model = FITS[fit](random_state=r, **parameters(family, arm)).fit(X, y)
    frames = [model.average(X, target=target)]
    frames += [model.compare(X, CONTRAST, comparison=kind, target=target) for kind in ESTIMANDS[1:]]
    columns = ("estimate", "std_error", ["conf_low", "conf_high"])
    return EffectEstimates(*(np.concatenate([frame[c] for frame in frames]) for c in columns))


def effects(options: argparse.Namespace) -> Cells:
    """A row for each estimand of each family, fit and arm."""
    for name in options.families:
        for arm in options.arms:
            for n in options.rows or (300,):
                yield from effect_rows(options, name, arm, n)


def effect_rows(options: argparse.Namespace, name: str, arm: str, n: int) -> Cells:
    R, d = options.replications or 100, options.effect_inputs
    truth = true_effects(FAMILIES[name], effect_inputs(d, n))
    settings = (name, options.fit, arm, options.target, d, n)
    simulate = partial(replicate, options.jobs, effect_run, *settings, times=R)
    runs = attempted(f"{name}, n = {n}, {arm}", simulate)
    if runs is None:
        yield name, str(n), arm, "failed", *["-"] * 7
        return
    estimate, se, bounds = map(np.array, zip(*runs, strict=True))
    sd, mean = np.std(estimate, axis=0, ddof=1), np.mean(estimate, axis=0)
    for k, estimand in enumerate(ESTIMANDS):
        low, high = bounds[:, k].T
        covered = [np.mean((low <= value) & (value <= high)) for value in (truth[k], mean[k])]
        sizes = map(number, (truth[k], mean[k], sd[k]))
        rates = ((mean[k] - truth[k]) / sd[k], np.mean(se[:, k]) / sd[k], *covered)
        yield name, str(n), arm, estimand, *sizes, *map("{:.3f}".format, rates)


# --- kriging of transformed targets -----------------------------------------------------------


class Transform(NamedTuple):
    """A transform, its inverse, and the mean of the target given mean and variance of z."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    mean: Callable[[Array, Array], Array]


TRANSFORMS = {
    "none": Transform(np.array, np.array, lambda z, v: z),
    "log": Transform(np.log, np.exp, lambda z, v: np.exp(z + v / 2)),
    "sqrt": Transform(np.sqrt, lambda z: np.maximum(z, 0) ** 2, lambda z, v: z**2 + v),
}
KRIGING_PARAMETERS = {
    "none": {},
    "log": {"target_transform": "log"},
    "sqrt": {"target_transform": "sqrt", "target_range": (0, None)},
}


def ordinary_kriging(name: str, X: Array, y: Array, points: Array, truth: Array) -> Prediction:
    """Kriging of the transformed target, by the variogram with the smaller test error of two."""
    transform, found = TRANSFORMS[name], []
    for variogram in kriging.VARIOGRAMS:
        model = OrdinaryKriging(*X.T, transform.forward(y), variogram_model=variogram)
        z, variance = map(np.asarray, model.execute("points", *points.T))
        ends = (transform.inverse(z + sign * 1.96 * np.sqrt(variance)) for sign in (-1, 1))
        mean = transform.mean(z, variance)
        found.append(Prediction(mean, np.stack(list(ends), axis=1), None))
    return min(found, key=lambda one: kriging.root_mean_square(one.mean - truth))


def residual_kriging(name: str, X: Array, y: Array, points: Array) -> Prediction:
    model = ELMEnsembleRegressor(noise=Exponential(), random_state=0, **KRIGING_PARAMETERS[name])
    model.fit(X, y, coords=X)
    where = {"coords": points, "residual_kriging": True}
    return Prediction(model.predict(points, **where), model.predict_interval(points, **where), None)


def spatial(options: argparse.Namespace) -> Cells:
    for name, (X, y, points, truth) in kriging.tables(options.data).items():
        reference = ordinary_kriging("log", X, y, points, truth)
        least = kriging.root_mean_square(reference.mean - truth)
        for transform in TRANSFORMS:
            found = {"kriging": ordinary_kriging(transform, X, y, points, truth)}
            if not options.oracle_only:
                found["ulmus"] = attempted(name, residual_kriging, transform, X, y, points)
            for title, prediction in found.items():
                if prediction is None:
                    yield name, title, transform, "failed", *["-"] * 5
                    continue
                mean, bounds, _ = prediction
                error = kriging.root_mean_square(mean - truth)
                cells = (number(error), f"{error / least:.3f}", f"{coverage(truth, bounds):.3f}")
                cells += (number(mean_width(bounds)), number(interval_score(truth, bounds, 0.95)))
                yield name, title, transform, *cells, f"{np.mean(bounds[:, 0] < 0):.0%}"


# --- standard tables --------------------------------------------------------------------------


class TableScores(NamedTuple):
    rmse: float
    log_density: float
    coverage: float
    interval_score: float
    transform: str


def table_scores(data: DataSet, split: int, settings: dict[str, Any]) -> TableScores:
    train, test = data.train_idx[split], data.test_idx[split]
    X, y = data.X[test], data.y[test]
    model = ELMEnsembleRegressor(random_state=0, **settings).fit(data.X[train], data.y[train])
    bounds, law = model.predict_interval(X, 0.95), model.predict_dist(X)
    log_density = law.logpmf(y) if chosen_transform(model) == "count" else law.logpdf(y)
    return TableScores(
        kriging.root_mean_square(model.predict(X) - y),
        float(np.mean(log_density)),
        float(coverage(y, bounds)),
        float(interval_score(y, bounds, 0.95)),
        chosen_transform(model),
    )


def standard_tables(options: argparse.Namespace) -> Cells:
    """A row for each table: "auto" compared with no transform."""
    splits = {name: wanted_splits(name, "reported", options.splits) for name in options.sets}
    for name, data in read_sets(str(options.data), options.sets, splits).items():
        cut = data._replace(train_idx=data.train_idx[:, : options.most_rows])
        pairs = [
            [attempted(name, table_scores, cut, split, settings) for settings in (AUTO, {})]
            for split in splits[name]
        ]
        if any(one is None for pair in pairs for one in pair):
            yield name, str(cut.train_idx.shape[1]), "failed", *["-"] * 5
            continue
        auto, none = (
            TableScores(*map(np.array, zip(*one, strict=True))) for one in zip(*pairs, strict=True)
        )
        ratios = (
            f"{np.exp(np.mean(np.log(a / b))):.3f}"
            for a, b in ((auto.rmse, none.rmse), (auto.interval_score, none.interval_score))
        )
        gain = with_error(auto.log_density - none.log_density)
        rates = (f"{np.mean(one.coverage):.3f}" for one in (auto, none))
        yield name, str(cut.train_idx.shape[1]), *ratios, gain, *rates, counted(auto.transform)


# --- command line -----------------------------------------------------------------------------


PARTS: dict[str, tuple[str, Callable[[argparse.Namespace], Cells]]] = {
    "distributions": (
        "family | d | n | fit | 90 % coverage | width | outside | CRPS | CRPS / truth"
        " | CRPS / oracle | RMSE | RMSE / oracle | KS | seconds | transform",
        distributions,
    ),
    "effects": (
        "family | n | fit | estimand | truth | mean | sd | bias / sd | std_error / sd"
        " | covers truth | covers mean",
        effects,
    ),
    "kriging": (
        "table | model | transform | RMSE | over kriging of log | 95 % coverage | width"
        " | interval score | below zero",
        spatial,
    ),
    "tables": (
        "table | rows | RMSE ratio | interval score ratio | log density difference"
        " | 95 % coverage | without | transform",
        standard_tables,
    ),
}


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("part", choices=PARTS)
    options.add_argument("--families", type=names(list(FAMILIES)), default=list(FAMILIES))
    options.add_argument(
        "--arms", type=names(list(ARMS)), default=["given"], help="given,auto,none"
    )
    options.add_argument("--inputs", type=numbers, default=[1, 3, 6], help="numbers of inputs")
    options.add_argument("--rows", type=numbers, help="numbers of training rows")
    options.add_argument("--replications", type=int, help="5, of effects 100")
    options.add_argument("--fit", choices=FITS, default="plain", help="ensemble of effects")
    options.add_argument("--effect-inputs", type=int, default=3, help="inputs of effects")
    options.add_argument("--target", choices=("expectation", "function"), default="expectation")
    options.add_argument("--oracle-only", action="store_true", help="fit the other models only")
    options.add_argument("--data", type=Path, default=Path(), help="folder of the tables")
    options.add_argument("--sets", type=names(SETS), default=SETS, help="some: yacht,boston")
    options.add_argument("--splits", type=int, default=5, help="of each standard table")
    options.add_argument("--most-rows", type=int, default=3000, help="of a standard table")
    options.add_argument("--jobs", type=int, default=1, help="processes")
    return options.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = read_options(arguments)
    print(f"{datetime.date.today()}, {machine()}, {one_thread()}\n", flush=True)
    head, rows = PARTS[options.part]
    print(f"| {head} |\n| {' | '.join('---' for _ in head.split(' | '))} |", flush=True)
    start = time.perf_counter()
    for cells in rows(options):
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
