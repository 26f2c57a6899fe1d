"""Calibration: coverage of all rows and by group, scale of errors, predictive distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.response import LogMean
from ulmus.core.response.residual_distribution import ResidualShape
from ulmus.diagnostics.calibration_data import LEVELS, CalibrationData
from ulmus.diagnostics.checks.fit_checks import ANOTHER_MAP, MORE_NEURONS
from ulmus.diagnostics.coverage import (
    ERROR_P,
    FEWEST_ROWS,
    WARNING_P,
    WARNING_SHARE,
    CoverageTest,
    RowGroup,
    discrete_columns,
    input_label,
    quantile_parts,
    value_groups,
)
from ulmus.diagnostics.finding import CoverageRow, Finding, finding, worst
from ulmus.diagnostics.given_rows import GIVEN, LEAVE_ONE_OUT, NEW
from ulmus.diagnostics.target_text import family_of, fitted_target, link_name, scale_name
from ulmus.messages import Setting

# The level at which groups are compared.
GROUP_LEVEL = 0.9
GROUP_INDEX = LEVELS.index(GROUP_LEVEL)
# Predicted noise that differs by less than this share is constant.
CONSTANT_SHARE = 1e-6
# A good noise model leaves smaller rank correlations of absolute errors with an input.
WARNING_TREND, ERROR_TREND = 0.25, 0.3
# Smaller distances of two distribution functions are irrelevant in practice.
WARNING_DISTANCE, ERROR_DISTANCE = 0.04, 0.08

MODEL_THE_NOISE = (Setting("noise", "auto"), Setting("noise", "heteroskedastic"))
SIMILAR_ROWS = "refit with rows like these"
TRANSFORM = Setting("target_transform", "auto")
OF_FOLDS = Setting("method", "cv+", "compute intervals with {}")
BY_NOISE = (
    "The predicted noise variance does not follow that of the errors.",
    (*MODEL_THE_NOISE, "add the inputs that the noise depends on"),
)
BY_LEVERAGE = (
    "Errors at points far from the other rows differ from the rest.",
    ("add rows there", ANOTHER_MAP),
)
BY_INPUT = (
    "The noise variance, or a misfit, varies along an input.",
    (*MODEL_THE_NOISE, MORE_NEURONS),
)
OVERALL = (
    "The new rows differ from the training rows, or the intervals lack the uncertainty of an "
    "input map and alpha chosen from few rows.",
    (SIMILAR_ROWS, OF_FOLDS),
)
# Where the noise variance is that of a distribution, and no function of the inputs.
BY_DISTRIBUTION = (
    "The distribution of y given its prediction, or a misfit, varies.",
    (MORE_NEURONS, "add the inputs that it depends on", TRANSFORM),
)
OF_A_PART = (
    "The errors of these rows differ from those of the other training rows.",
    (*MODEL_THE_NOISE, MORE_NEURONS),
)
# What rows are called, by how they are predicted.
ROWS = {LEAVE_ONE_OUT: "training rows", NEW: "new rows", GIVEN: "rows"}
ASSUME_NOTHING = "use prediction intervals, which assume no distribution"
NO_NOISE = "errors are at round-off level."

Advice = tuple[str, tuple[str | Setting, ...]]


def coverage_finding(test: CoverageTest, k: int) -> tuple[Finding, list[CoverageRow]]:
    """Coverage of all rows at every level."""
    data = test.data
    covered = data.covered[k]
    table = [
        CoverageRow("all", level, covered.shape[1], float(np.mean(covered[i])))
        for i, level in enumerate(LEVELS)
    ]
    at = table[GROUP_INDEX].coverage
    if data.leave_one_out and not data.is_part:
        least = "at least " if data.randomised[k] else ""
        message = f"{least}nominal by construction; coverage by group, or of new rows, is a test."
        return finding("coverage", "ok", at, message), table
    if data.noiseless[k]:
        return finding("coverage", "ok", at, NO_NOISE), table
    results = [test.of_all(i, k) for i in range(len(LEVELS))]
    shares = ", ".join(f"{row.coverage:.2f} at level {row.level:g}" for row in table)
    message = f"{shares}, of {data.n_rows} {ROWS[data.kind]}."
    severity = worst(result.severity for result in results)
    advice = OF_A_PART if data.is_part else OVERALL
    return finding("coverage", severity, at, message, *advice)._replace(
        limit=coverage_limit()
    ), table


def group_findings(
    test: CoverageTest, k: int, names: Sequence[str], training: FloatArray
) -> list[tuple[Finding, list[CoverageRow]]]:
    """Coverage by noise, by leverage, by values of discrete inputs, and along the other inputs."""
    data = test.data
    discrete = discrete_columns(training)
    values, along = [], quantile_parts(data.mean[k], "prediction")
    for j, name in enumerate(names):
        if discrete[j]:
            values += value_groups(data.inputs[:, j], name)
        else:
            along += quantile_parts(data.inputs[:, j], name)
    few = f"not tested: {data.n_rows} rows are too few to split, or have equal values."
    varies = np.ptp(data.noise[k]) > CONSTANT_SHARE * np.max(data.noise[k])
    by_noise = quantile_parts(_rounded(data.noise[k]), "noise") if varies else []
    constant = few if varies else "not applicable: the predicted noise variance is constant."
    if _is_distribution(data, k):
        constant = "not applicable: the variance of y follows from its prediction."
    advice = BY_DISTRIBUTION if _is_distribution(data, k) else BY_INPUT
    none = "not applicable: no input has few values with enough rows each."
    by_leverage = quantile_parts(data.leverage[k], "leverage")
    return [
        _by_groups(test, k, "coverage-by-noise", by_noise, BY_NOISE, constant),
        _by_groups(test, k, "coverage-by-leverage", by_leverage, BY_LEVERAGE, few),
        _by_groups(test, k, "coverage-by-group", values, advice, none),
        _by_groups(test, k, "coverage-by-input", along, advice, few),
    ]


def _is_distribution(data: CalibrationData, k: int) -> bool:
    """Whether the prediction of an output determines the variance of y."""
    return bool(np.all(np.isnan(data.noise[k])))


def _rounded(values: FloatArray) -> FloatArray:
    """Logarithms of values, to one percent of the values: round-off does not divide equal ones."""
    return np.asarray(np.round(100 * np.log(np.maximum(values, np.finfo(float).tiny))))


def _by_groups(
    test: CoverageTest, k: int, code: str, groups: Sequence[RowGroup], advice: Advice, nothing: str
) -> tuple[Finding, list[CoverageRow]]:
    """Coverage of each group, all of them one finding.

    Where values have a positive probability, intervals of the randomised PIT are tested.
    """
    hits, randomised = test.data.tested(k, GROUP_INDEX), bool(test.data.randomised[k])
    table = _coverage_rows(groups, test.data.covered[k, GROUP_INDEX])
    if not groups or test.data.noiseless[k]:
        return finding(code, "ok", float(np.mean(hits)), nothing if not groups else NO_NOISE), table
    results = [test(hits[g.rows], GROUP_INDEX, k, len(groups)) for g in groups]
    least = min(range(len(groups)), key=lambda g: results[g].p_value)
    tested = _coverage_rows(groups, hits)
    row, shares = tested[least], [r.coverage for r in tested]
    what = ", of randomised intervals" if randomised else ""
    message = (
        f"{min(shares):.2f} to {max(shares):.2f} at level {GROUP_LEVEL:g}{what}; least likely: "
        f"{row.coverage:.2f} of {row.n} rows in {row.group}, adjusted p = "
        f"{min(results[least].p_value, 1.0):.2g}."
    )
    severity = worst(result.severity for result in results)
    return finding(code, severity, row.coverage, message, *advice)._replace(
        limit=coverage_limit()
    ), table


def coverage_limit() -> str:
    """When the coverage of rows is a warning."""
    gap = WARNING_SHARE * np.sqrt(GROUP_LEVEL * (1 - GROUP_LEVEL))
    return (
        f"adjusted p below {WARNING_P:g} and a difference above {gap:.2f} at level {GROUP_LEVEL:g}"
    )


def _coverage_rows(groups: Sequence[RowGroup], hits: npt.NDArray[np.bool_]) -> list[CoverageRow]:
    """Share of hits (n,) in each group."""
    return [
        CoverageRow(g.label, GROUP_LEVEL, len(g.rows), float(np.mean(hits[g.rows]))) for g in groups
    ]


def error_scale_finding(test: CoverageTest, k: int, names: Sequence[str]) -> Finding:
    """Whether absolute errors grow along an input or the prediction, by rank correlations.

    A trend of the noise is visible here long before it is in coverages of parts. The absolute error
    is measured by the distance of the PIT value from one half.
    """
    data, code = test.data, "error-scale"
    size = np.abs(data.pit[k] - 0.5)
    labels = map(input_label, names)
    values = {"the prediction": data.mean[k]} | dict(zip(labels, data.inputs.T, strict=True))
    values = {label: v for label, v in values.items() if np.ptp(v) > 0}
    if data.n_rows < FEWEST_ROWS or data.noiseless[k] or not values or not np.ptp(size) > 0:
        return finding(code, "ok", 0.0, "not tested: too few rows, or errors without variation.")
    trend = {label: float(stats.spearmanr(v, size).statistic) for label, v in values.items()}
    label = max(trend, key=lambda label: abs(trend[label]))
    rho = trend[label]
    p = min(1.0, 2 * len(trend) * float(stats.norm.sf(abs(rho) * np.sqrt(test.sample_size))))
    message = (
        f"largest rank correlation of absolute errors: {rho:.2f}, with {label}; adjusted p = "
        f"{p:.2g}."
    )
    severity = _effect_severity(p, abs(rho), WARNING_TREND, ERROR_TREND)
    advice = BY_DISTRIBUTION if _is_distribution(data, k) else BY_INPUT
    limit = f"adjusted p below {WARNING_P:g} and a correlation above {WARNING_TREND:g}"
    return finding(code, severity, rho, message, *advice)._replace(limit=limit)


def predictive_distribution_finding(test: CoverageTest, k: int) -> Finding:
    """Kolmogorov-Smirnov test of the PIT values against the uniform distribution.

    The predictive distribution at new rows is estimated from as many residuals as in a two-sample
    test. That of leave-one-out rows is estimated from the same rows: the test is conservative.
    """
    data, code = test.data, "predictive-distribution"
    if data.noiseless[k]:
        return finding(code, "ok", 0.0, NO_NOISE)
    distance = float(stats.kstest(data.pit[k], "uniform").statistic)
    p = float(stats.kstwobign.sf(distance * np.sqrt(test.sample_size)))
    return finding(
        code,
        _effect_severity(p, distance, WARNING_DISTANCE, ERROR_DISTANCE),
        distance,
        f"PIT values of {data.n_rows} {data.kind} rows are up to {distance:.3f} from uniform "
        f"(Kolmogorov-Smirnov), p = {p:.2g}.",
        "The predictive distribution is off in location, scale or shape.",
        (SIMILAR_ROWS, TRANSFORM, ASSUME_NOTHING),
        f"p below {WARNING_P:g} and a distance above {WARNING_DISTANCE:g}",
    )


def residual_distribution_finding(fit: Fit, shape: ResidualShape | None, k: int) -> Finding:
    """Whether the predictive distribution follows the shape of the residuals."""
    family = family_of(fit, k)
    if isinstance(family, LogMean):
        message = f"the predictive distribution is that of {fitted_target(family, None)}."
        return finding("residual-distribution", "ok", 0.0, message)
    shaped = shape is not None and bool(shape.shaped[k])
    if shaped:
        message = "not normal; the predictive distribution has the estimated shape."
    elif fit.rows is None and fit.residual_shape is None:
        message = "not estimated: the fit keeps no residuals; predictions are Student's t."
    else:
        message = "no departure from normality detected."
    if scale_name(family) is not None:
        message = f"residuals of {link_name(family)}: {message}"
    return finding("residual-distribution", "ok", float(shaped), message)


def _effect_severity(p: float, size: float, warning: float, error: float) -> str:
    """Severity of an effect by its p-value and its size."""
    if p < ERROR_P and size > error:
        return "error"
    return "warning" if p < WARNING_P and size > warning else "ok"
