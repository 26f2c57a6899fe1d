"""Data frames of effects, with the column names of the marginaleffects packages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.query.sequential_design import DesignChoice
from ulmus.effects.bands import SimultaneousBand, simultaneous_band
from ulmus.effects.columns import Table
from ulmus.effects.covariance import JointCovariance
from ulmus.effects.estimands import unused_name
from ulmus.effects.hypotheses import WaldTest, combined_estimates, holm
from ulmus.effects.inference import Estimates
from ulmus.intervals.confidence import in_standard_errors


class InferenceOptions(NamedTuple):
    """Options of intervals and tests."""

    level: float  # confidence level
    target: str  # quantity that intervals cover, "expectation" or "function"
    simultaneous: bool  # whether intervals cover jointly
    hypothesis: Any  # combinations of the rows to test
    adjust: str | None  # adjustment of the p-values for multiple testing
    one_output: bool  # whether y is one-dimensional
    scale: str  # scale of the results, "response" or "link"

    @property
    def needs_joint(self) -> bool:
        """Whether the joint covariance is required."""
        return self.simultaneous or self.hypothesis is not None


def effects_frame(estimates: Estimates, options: InferenceOptions) -> Any:
    """A data frame with one row for each estimate and output."""
    tests: list[WaldTest] = []
    if options.hypothesis is not None:
        estimates, tests = combined_estimates(estimates, options.hypothesis)
    bands = _bands(estimates, options)
    statistic, p_value = _statistics(estimates, options, tests)
    low, high = _bounds(estimates, options.level, bands)
    values = {
        "estimate": estimates.errors.center,
        "std_error": np.sqrt(estimates.errors.variance),
        "statistic": statistic,
        "p_value": p_value,
        "conf_low": low,
        "conf_high": high,
    }
    frame = _frame(estimates.labels, values, options.one_output)
    frame.attrs["confidence_level"] = options.level
    frame.attrs["target"] = options.target
    frame.attrs["scale"] = options.scale
    frame.attrs["df"] = estimates.errors.dof.T.ravel().tolist()
    if estimates.covariance is not None:
        covariance = _block_diagonal(estimates.covariance)
        frame.attrs["covariance"] = JointCovariance(covariance, frame.index)
    if bands:
        frame.attrs["simultaneous"] = [band._asdict() for band in bands]
    if tests:
        frame.attrs["wald"] = [test._asdict() for test in tests]
    return frame


def design_frame(design: DesignChoice, table: Table) -> Any:
    """A data frame with one row for each new measurement."""
    labels, n = list(table.index), len(design.rows)
    steps, rows = list(range(1, n + 1)), [labels[i] for i in design.rows]
    columns: dict[str, Any] = {"step": steps, "row": rows}
    remaining = design.variance.sum(axis=1)
    K = remaining.shape[1]
    names = ["variance"] if K == 1 else [f"variance_{k}" for k in range(K)]
    for name in table.features:
        column = table.column(name)
        assert column is not None  # a feature
        shown = [table.shown(name, value) for value in column[design.rows].tolist()]
        is_date = any(isinstance(value, str) for value in shown)
        columns[unused_name(name, [*columns, *names])] = shown if is_date else column[design.rows]
    frame = _pandas().DataFrame(columns | dict(zip(names, remaining.T, strict=True)))
    frame.attrs["before"] = design.before.sum(axis=0).tolist()
    return frame


def _frame(labels: dict[str, list[Any]], values: dict[str, FloatArray], one_output: bool) -> Any:
    q, K = values["estimate"].shape
    results: dict[str, Any] = {name: each.T.ravel() for name, each in values.items()}
    if not one_output:
        results = {"output": np.repeat(np.arange(K), q)} | results
    columns: dict[str, Any] = {}
    for name, each in labels.items():
        columns[unused_name(name, [*columns, *results])] = list(each) * K
    return _pandas().DataFrame(columns | results)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "effects are returned as data frames and require pandas; install ulmus[effects], or "
            "use predict and predict_cov, which return arrays."
        ) from error
    return pandas


def _bands(estimates: Estimates, options: InferenceOptions) -> list[SimultaneousBand]:
    """The band of each output; outputs are combined by Bonferroni's inequality."""
    if not options.simultaneous or estimates.covariance is None:
        return []
    K = len(estimates.covariance)
    level = 1 - (1 - options.level) / K
    return [simultaneous_band(part, level) for part in estimates.covariance]


def _bounds(estimates: Estimates, level: float, bands: list[SimultaneousBand]) -> FloatArray:
    """Lower and upper bounds, shape (2, q, K)."""
    errors = estimates.errors
    if bands:
        each = [errors.bounds([b.pointwise_level])[:, 0, :, k] for k, b in enumerate(bands)]
        bounds = np.stack(each, axis=2)
    else:
        bounds = errors.bounds([level])[:, 0]
    return bounds if estimates.limits is None else np.clip(bounds, *estimates.limits)


def _statistics(
    estimates: Estimates, options: InferenceOptions, tests: list[WaldTest]
) -> tuple[FloatArray, FloatArray]:
    """Test statistics and p-values of single estimates, or of joint tests, each (q, K)."""
    errors = estimates.errors
    if np.all(np.isnan(errors.center)):
        joint = np.array([[(test.statistic, test.p_value) for test in tests]])
        return joint[:, :, 0], joint[:, :, 1]
    difference, se = errors.center - estimates.null, np.sqrt(errors.variance)
    # Tests include the same allowance for bias as intervals.
    beyond = np.maximum(np.abs(difference) - errors.allowance, 0.0)
    p_value = 2 * stats.t.sf(in_standard_errors(beyond, se), errors.dof)
    if options.adjust == "holm":
        p_value = holm(p_value)
    return in_standard_errors(difference, se), p_value


def _block_diagonal(covariance: FloatArray) -> FloatArray:
    """Covariance of all rows (K q, K q); NaN between outputs, where it is not estimated."""
    K, q, _ = covariance.shape
    if K == 1:
        return covariance[0].copy()
    out = np.full((K, q, K, q), np.nan)
    for k in range(K):
        out[k, :, k, :] = covariance[k]
    return out.reshape(K * q, K * q)
