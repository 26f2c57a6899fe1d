"""Standard errors and confidence intervals where the noise varies tenfold.

Inputs are the same in all replications; noise and hidden weights are drawn anew. The truth is the
standard deviation of an estimate over replications, in each tenth of the points by their true
noise. Functions live on the unit cube, noise profiles are those of noise.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import report
from noise import in_bins, product, slope
from plain import plain_ensemble
from replication import replicate
from report import Row
from settings import constant

from ulmus import ELMEnsembleRegressor

Array = np.ndarray
Report = Iterator[str | Row]
LEVEL, N_POINTS, MARGIN = 0.95, 200, 0.03
EFFECTS = ("quiet average", "noisy average", "quiet slope", "noisy slope", "difference")


def ridge_line(X: Array) -> Array:
    """A function of the first two inputs."""
    return np.sin(4 * X[:, 0] + 2 * X[:, 1]) + 2 * (X[:, 1] - 0.4) ** 2


def four_inputs(X: Array) -> Array:
    """A function of six inputs that does not depend on the last two."""
    return ridge_line(X) + 1.5 * X[:, 2] * X[:, 3]


@dataclass(frozen=True)
class Setting:
    """A mean on the unit cube, and the profile of its noise: log sd between 0 and log 10."""

    f: Callable[[Array], Array]
    d: int
    n: int
    profile: Callable[[Array], Array]

    @property
    def name(self) -> str:
        return f"{self.d}-D, n = {self.n}, {self.profile.__name__}"

    def sd(self, X: Array) -> Array:
        """Standard deviation of the noise, between 0.1 and 1; 0.3 where it is constant."""
        share = 0.5 if self.profile is constant else self.profile(X)
        return 10.0 ** (share - 1.0) * np.ones(len(X))

    def inputs(self) -> tuple[Array, Array]:
        """Training rows and points inside their range, the same in all replications."""
        rng = np.random.default_rng([self.d, self.n])
        points = rng.uniform(MARGIN, 1 - MARGIN, (N_POINTS, self.d))
        return rng.random((self.n, self.d)), points

    def outputs(self, X: Array, r: int) -> Array:
        """Outputs of replication r."""
        noise = np.random.default_rng([1, r]).standard_normal(self.n)
        return self.f(X) + self.sd(X) * noise


SIZES = ((ridge_line, 2, 300), (ridge_line, 2, 500), (ridge_line, 2, 800))
SIZES += ((four_inputs, 6, 300), (four_inputs, 6, 600), (four_inputs, 6, 2000))
VARYING = tuple(Setting(*size, profile) for size in SIZES for profile in (slope, product))
CONSTANT = tuple(Setting(*size, constant) for size in SIZES)
FITS = {"plain": partial(plain_ensemble, 10, 150, noise="auto"), "defaults": ELMEnsembleRegressor}


class Estimates(NamedTuple):
    """Estimates (q,), standard errors (q,), and bounds (q, 2), of points or of effects."""

    estimate: Array
    se: Array
    expectation: Array  # bounds for the expectation of the estimate
    function: Array | None = None  # bounds for the function, of points


def at_points(model: ELMEnsembleRegressor, points: Array) -> Estimates:
    """Predictions with their standard errors and confidence intervals."""
    se = np.sqrt(model.predict_var(points, component="model"))
    bounds = (
        model.predict_interval(points, LEVEL, kind="confidence", target=target)
        for target in ("expectation", "function")
    )
    return Estimates(model.predict(points), se, *bounds)


def of_effects(model: ELMEnsembleRegressor, points: Array, sd: Array) -> Estimates:
    """Averages and slopes over the quietest and the noisiest third of the points, a difference."""
    order = np.argsort(sd)
    quiet, noisy = points[order[: len(order) // 3]], points[order[-(len(order) // 3) :]]
    frames = [
        model.average(quiet),
        model.average(noisy),
        model.slope(quiet, "x1"),
        model.slope(noisy, "x1"),
        model.functional([[1.0, -1.0]], points[order[[-1, 0]]]),
    ]
    columns = ("estimate", "std_error", ["conf_low", "conf_high"])
    values = (np.concatenate([frame[column] for frame in frames]) for column in columns)
    return Estimates(*values)


def one_run(setting: Setting, how: str, noise: str, r: int) -> tuple[Estimates, Estimates, bool]:
    """Results at points, of effects, and whether a noise model was used."""
    X, points = setting.inputs()
    model = FITS[how](noise=noise, random_state=r).fit(X, setting.outputs(X, r))
    effects = of_effects(model, points, setting.sd(points))
    return at_points(model, points), effects, model.variance_estimates_[0] == "BM"


class Summary(NamedTuple):
    """Results of all replications in tenths of the noise (10,), or for each effect (5,)."""

    ratio: Array  # root mean square standard error over the standard deviation of the estimate
    expectation: Array  # coverage of the mean estimate


def summary(runs: list[Estimates], means: Callable[[Array], Array] = np.asarray) -> Summary:
    """Results of replications; ``means`` averages variances and coverages of points."""
    estimate, se, bounds = (np.array([run[i] for run in runs]) for i in range(3))
    ratio = np.sqrt(means(np.mean(se**2, axis=0)) / means(estimate.var(axis=0, ddof=1)))
    return Summary(ratio, means(covered(bounds, estimate.mean(axis=0))))


def covered(bounds: Array, truth: Array) -> Array:
    """Share of replications whose bounds (R, q, 2) contain the truth (q,)."""
    return np.mean((bounds[:, :, 0] <= truth) & (truth <= bounds[:, :, 1]), axis=0)


def figures(name: str, source: str, rates: dict[str, Array], ratios: dict[str, Array]) -> Report:
    for what, ratio in ratios.items():
        yield Row(f"{name}: least sd ratio, {what}", min(ratio), "ratio", source, ">=", 0.9)
        yield Row(f"{name}: largest sd ratio, {what}", max(ratio), "ratio", source, "<=", 1.12)
    for what, rate in rates.items():
        yield Row(f"{name}: least coverage of {what}", min(rate), "rate", source, ">=", 0.92)
        yield Row(f"{name}: largest coverage of {what}", max(rate), "rate", source, "<=", 0.97)


def varying(how: str, default_times: int, jobs: int, replications: int | None) -> Report:
    """Ratios and coverages in tenths of the noise, and those of effects."""
    times = replications or default_times
    yield f"{how}: sd ratio, and coverage of E f_hat and f, by tenth of the noise; then by effect\n"
    for setting in VARYING:
        runs = replicate(jobs, one_run, setting, how, "auto", times=times)
        points = setting.inputs()[1]
        tenths = partial(in_bins, order=setting.sd(points))
        at, of = summary([run[0] for run in runs], tenths), summary([run[1] for run in runs])
        bounds = np.array([run[0].function for run in runs])
        function = tenths(covered(bounds, setting.f(points)))
        name = f"{how}, {setting.name}"
        yield f"{name}: noise model in {np.mean([run[2] for run in runs]):.0%}"
        for label, values in (("ratio", at.ratio), ("E f_hat", at.expectation), ("f", function)):
            yield f"  {label:<8}" + " ".join(f"{v:6.3f}" for v in values)
        pairs = zip(EFFECTS, of.ratio, of.expectation, strict=True)
        yield "  " + ", ".join(f"{effect} {a:.2f} / {b:.3f}" for effect, a, b in pairs)
        rates = {"E f_hat": at.expectation, "f": function}
        ratios = {"tenths": at.ratio, "effects": of.ratio}
        yield from figures(name, f"{times} replications", rates, ratios)


def sizes(setting: Setting, r: int) -> Array:
    """Root mean square standard error and mean width for f, by default over homoskedastic."""
    both = []
    for noise in ("auto", "homoskedastic"):
        at, _, _ = one_run(setting, "plain", noise, r)
        both.append((np.mean(at.se**2), np.mean(np.ptp(at.function, axis=1))))
    return np.array(both)


def constant_noise(jobs: int, replications: int | None) -> Report:
    """Standard errors and widths of the default beside those of ``noise="homoskedastic"``."""
    times = replications or 100
    for setting in CONSTANT:
        auto, fixed = np.mean(replicate(jobs, sizes, setting, times=times), axis=0)
        ratios = {"standard error": (auto[0] / fixed[0]) ** 0.5, "width for f": auto[1] / fixed[1]}
        for what, ratio in ratios.items():
            measure = f"plain, {setting.name}: {what} over homoskedastic, difference from 1"
            source = f"{ratio:.3f} in {times} replications"
            yield Row(measure, abs(ratio - 1), "share", source, "<=", 0.02)


PARTS = {
    "plain": partial(varying, "plain", 200),
    "defaults": partial(varying, "defaults", 100),
    "constant": constant_noise,
}

if __name__ == "__main__":
    report.simulate("varying_noise.py", __doc__, PARTS)
