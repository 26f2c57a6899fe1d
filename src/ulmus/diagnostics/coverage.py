"""What covered and missed rows say: coverage of all rows, and of rows in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.diagnostics.calibration_data import LEVELS, Evidence
from ulmus.diagnostics.finding import CoverageRow, Finding
from ulmus.metrics import quantile_groups

FloatArray = npt.NDArray[np.float64]

# The level at which groups are compared.
GROUP_LEVEL = 0.9
PLACE = LEVELS.index(GROUP_LEVEL)
# A count of covered rows that honest intervals give less often than these is yellow, or red.
YELLOW, RED = 0.01, 0.001
# With many rows everything is significant; deviations below these shares of the standard
# deviation of one hit, sqrt(c (1 - c)), matter to nobody: .03 and .06 at 90 %.
YELLOW_SHARE, RED_SHARE = 0.1, 0.2
# An interval in a group of points rests on fewer residuals than one for all: the prediction is off
# by much the same at all of them. Simulated honest fits alarm rarely with this share.
LOCAL_SHARE = 0.5
# Rows are cut into fifths, or fewer parts, so that a part has at least so many of them.
PARTS, FEWEST_ROWS = 5, 20
# Inputs with at most so many values are groups.
MOST_VALUES = 10
# Predictions of the noise that differ by less than this share are one constant.
CONSTANT_SHARE = 1e-6
# Smaller rank correlations of the sizes of errors with an input are left by a good noise model.
YELLOW_TREND, RED_TREND = 0.25, 0.3

BY_NOISE = (
    "the predicted noise does not tell where noise is large; use noise='auto' or "
    "'heteroskedastic', or give the inputs that it depends on."
)
BY_LEVERAGE = (
    "rows far from the others have other errors than the rest; add rows there, or use more "
    "n_estimators and another input_map."
)
BY_INPUT = (
    "noise or misfit follows an input; use noise='auto' or 'heteroskedastic', or more n_neurons."
)
OVERALL = (
    "the given rows differ from the training rows, or the intervals are too sure of a map or "
    "alpha chosen on few rows; fit with rows like these, or use method='cv+'."
)


class Group(NamedTuple):
    """Rows that are judged together."""

    label: str
    rows: npt.NDArray[np.intp]


class Verdict(NamedTuple):
    """Light of a count of covered rows, and a bound of its p-value, which may exceed one."""

    light: str
    p_value: float


class Judge(NamedTuple):
    """How unusual counts of covered rows are.

    Parameters
    ----------
    evidence : Evidence
        The rows.
    n_judges : float
        Residuals that the intervals were made of, less what the fit spent.
    worth : float
        Independent rows that a row is worth: less than one where noise hangs together.
    """

    evidence: Evidence
    n_judges: float
    worth: float = 1.0

    def counted(self, rows: float) -> int:
        """So many rows as independent ones."""
        return round(self.worth * rows)

    def verdict(self, covered: npt.NDArray[np.bool_], i: int, k: int, tests: int) -> Verdict:
        """Light of the rows of a group, at a level and for an output, as one of so many tests.

        Given rows: hits of an interval between order statistics are beta-binomial, as the
        interval varies with the training rows. Left-out rows: their total is fixed, so that hits
        in a group are hypergeometric. Too wide is never worse than yellow.
        """
        count, m, level = int(np.sum(covered)), len(covered), LEVELS[i]
        hits, alone = self.counted(count), max(self.counted(m), 1)
        if self.evidence.left_out:
            everything = self.evidence.covered[k, i]
            total, covered_rows = self.counted(len(everything)), self.counted(np.sum(everything))
            law = stats.hypergeom(max(total, alone), covered_rows, alone)
        else:
            n = self.n_judges if m == self.evidence.n_rows else LOCAL_SHARE * self.n_judges
            law = stats.betabinom(alone, level * n, (1 - level) * n)
        under, over = float(law.cdf(hits)), float(law.sf(hits - 1))
        p = 2 * tests * min(under, over)
        gap = abs(count / m - level) / np.sqrt(level * (1 - level))
        if p < RED and gap > RED_SHARE and under < over:
            return Verdict("red", p)
        return Verdict("yellow" if p < YELLOW and gap > YELLOW_SHARE else "green", p)


def overall(judge: Judge, k: int) -> tuple[Finding, list[CoverageRow]]:
    """Coverage of all rows at every level."""
    evidence = judge.evidence
    covered = evidence.covered[k]
    table = [
        CoverageRow("all", level, covered.shape[1], float(np.mean(covered[i])))
        for i, level in enumerate(LEVELS)
    ]
    at = table[PLACE].coverage
    if evidence.left_out:
        says = "right by construction for left-out rows: only groups tell, or new data."
        return Finding("coverage", "green", at, says), table
    if evidence.silent[k]:
        says = "all errors are round-off; there is no noise to cover."
        return Finding("coverage", "green", at, says), table
    verdicts = [judge.verdict(covered[i], i, k, len(LEVELS)) for i in range(len(LEVELS))]
    light = _worst(verdicts)
    shares = ", ".join(f"{row.coverage:.2f} at {row.level:g}" for row in table)
    says = f"{shares} of {covered.shape[1]} given rows."
    return Finding("coverage", light, at, says, OVERALL if light != "green" else ""), table


def by_groups(
    judge: Judge, k: int, name: str, groups: Sequence[Group], remedy: str, nothing: str
) -> tuple[Finding, list[CoverageRow]]:
    """Coverage of each group, all of them one finding."""
    hits = judge.evidence.covered[k, PLACE]
    table = [
        CoverageRow(g.label, GROUP_LEVEL, len(g.rows), float(np.mean(hits[g.rows]))) for g in groups
    ]
    if not groups or judge.evidence.silent[k]:
        return Finding(name, "green", float(np.mean(hits)), nothing), table
    verdicts = [judge.verdict(hits[g.rows], PLACE, k, len(groups)) for g in groups]
    worst = min(range(len(groups)), key=lambda g: verdicts[g].p_value)
    light, row = _worst(verdicts), table[worst]
    shares = [r.coverage for r in table]
    says = (
        f"{min(shares):.2f} to {max(shares):.2f} at 0.9; oddest {row.coverage:.2f} of {row.n} in "
        f"{row.group}, p = {min(verdicts[worst].p_value, 1.0):.2g}."
    )
    return Finding(name, light, row.coverage, says, remedy if light != "green" else ""), table


def group_findings(
    judge: Judge, k: int, names: Sequence[str], training: FloatArray
) -> list[tuple[Finding, list[CoverageRow]]]:
    """Coverage by noise, by leverage, by groups of the inputs, and along the other inputs."""
    e = judge.evidence
    discrete = discrete_columns(training)
    levels, along = [], parts(e.mean[k], "prediction")
    for j, name in enumerate(names):
        if discrete[j]:
            levels += values_of(e.inputs[:, j], name)
        else:
            along += parts(e.inputs[:, j], name)
    few = f"{e.n_rows} rows are too few to split, or all alike."
    varies = np.ptp(e.noise[k]) > CONSTANT_SHARE * np.max(e.noise[k])
    by_noise = parts(e.noise[k], "noise") if varies else []
    constant = few if varies else "the predicted noise is the same everywhere."
    none = "no input has few values with enough rows each."
    return [
        by_groups(judge, k, "coverage by noise", by_noise, BY_NOISE, constant),
        by_groups(
            judge, k, "coverage by leverage", parts(e.leverage[k], "leverage"), BY_LEVERAGE, few
        ),
        by_groups(judge, k, "coverage by group", levels, BY_INPUT, none),
        by_groups(judge, k, "coverage by input", along, BY_INPUT, few),
    ]


def spread_finding(judge: Judge, k: int, names: Sequence[str]) -> Finding:
    """Whether errors grow along an input or the prediction, by rank correlations.

    Where noise has a trend this shows long before coverages of parts do. The size of an error is
    the distance of its place in the predictive distribution from the median.
    """
    e, name = judge.evidence, "spread by input"
    size = np.abs(e.pit[k] - 0.5)
    values = {"the prediction": e.mean[k]} | dict(zip(names, e.inputs.T, strict=True))
    values = {label: v for label, v in values.items() if np.ptp(v) > 0}
    if e.n_rows < FEWEST_ROWS or e.silent[k] or not values or not np.ptp(size) > 0:
        return Finding(name, "green", 0.0, f"{e.n_rows} rows are too few to tell, or all alike.")
    trend = {label: float(stats.spearmanr(v, size).statistic) for label, v in values.items()}
    label = max(trend, key=lambda label: abs(trend[label]))
    rho, n = trend[label], judge.worth * e.n_rows
    n = n if e.left_out else n * judge.n_judges / (n + judge.n_judges)
    p = min(1.0, 2 * len(trend) * float(stats.norm.sf(abs(rho) * np.sqrt(n))))
    light = "green"
    if p < YELLOW and abs(rho) > YELLOW_TREND:
        light = "red" if p < RED and abs(rho) > RED_TREND else "yellow"
    says = f"sizes of errors have rank correlation {rho:.2f} with {label}, p = {p:.2g}."
    return Finding(name, light, rho, says, BY_INPUT if light != "green" else "")


def parts(values: FloatArray, name: str) -> list[Group]:
    """Rows in up to five parts of nearly equal counts, none if they cannot be split."""
    n_parts = min(PARTS, len(values) // FEWEST_ROWS)
    if n_parts < 2:
        return []
    code = quantile_groups(values, n_parts)
    count = int(np.max(code)) + 1
    rows = [np.flatnonzero(code == i) for i in range(count)]
    groups = [Group(f"{name} {i + 1}/{count}", rows[i]) for i in range(count)]
    large = [group for group in groups if len(group.rows) >= FEWEST_ROWS]
    return large if len(large) > 1 else []


def values_of(values: FloatArray, name: str) -> list[Group]:
    """Rows of each value, where these are not few."""
    groups = [Group(f"{name} = {v:.4g}", np.flatnonzero(values == v)) for v in np.unique(values)]
    if len(groups) < 2:
        return []
    return [group for group in groups if len(group.rows) >= FEWEST_ROWS]


def discrete_columns(training: FloatArray) -> npt.NDArray[np.bool_]:
    """Inputs with at most ten values among the rows of a table (n, d), shape (d,)."""
    return np.array([len(np.unique(column)) <= MOST_VALUES for column in training.T], dtype=bool)


def _worst(verdicts: Sequence[Verdict]) -> str:
    lights = [verdict.light for verdict in verdicts]
    return next(light for light in ("red", "yellow", "green") if light in lights)
