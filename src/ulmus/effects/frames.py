"""Effects as a table, with the columns that users of marginaleffects know."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.query.sequential_design import DesignChoice
from ulmus.effects.bands import Band, band
from ulmus.effects.columns import Table
from ulmus.effects.estimands import free_name
from ulmus.effects.hypotheses import Wald, combined, holm
from ulmus.effects.inference import Answer
from ulmus.intervals.confidence import in_standard_errors

FloatArray = npt.NDArray[np.float64]


class InferenceOptions(NamedTuple):
    """How answers are given.

    Parameters
    ----------
    level : float
        Confidence level.
    target : {"expectation", "function"}
        What intervals are for.
    simultaneous : bool
        Whether the intervals of all rows hold together.
    hypothesis : "pairwise", "equal", matrix or None
        Combinations of the rows to ask for instead.
    adjust : "holm" or None
        Whether p-values are adjusted for their number.
    one_output : bool
        Whether y has a single axis.
    """

    level: float
    target: str
    simultaneous: bool
    hypothesis: Any
    adjust: str | None
    one_output: bool

    @property
    def together(self) -> bool:
        """Whether the joint covariance is needed."""
        return self.simultaneous or self.hypothesis is not None


class Covariance(np.ndarray):
    """A covariance that compares as one thing, as pandas asks of what a frame carries along."""

    def __eq__(self, other: object) -> Any:
        return np.array_equal(np.asarray(self), np.asarray(other), equal_nan=True)

    def __ne__(self, other: object) -> Any:
        return not self == other

    __hash__ = None


def framed(given: Answer, how: InferenceOptions) -> Any:
    """Effects as a data frame, one row for each, and for each output."""
    tests: list[Wald] = []
    if how.hypothesis is not None:
        given, tests = combined(given, how.hypothesis)
    bands = _bands(given, how)
    statistic, p_value = _tests(given, how, tests)
    low, high = _bounds(given, how, bands)
    values = {
        "estimate": given.errors.center,
        "std_error": np.sqrt(given.errors.variance),
        "statistic": statistic,
        "p_value": p_value,
        "conf_low": low,
        "conf_high": high,
    }
    frame = _frame(given.labels, values, how.one_output)
    frame.attrs["confidence_level"] = how.level
    frame.attrs["target"] = how.target
    frame.attrs["df"] = given.errors.dof.T.ravel().tolist()
    if given.covariance is not None:
        frame.attrs["covariance"] = _joint(given.covariance).view(Covariance)
    if bands:
        frame.attrs["simultaneous"] = [part._asdict() for part in bands]
    if tests:
        frame.attrs["wald"] = [test._asdict() for test in tests]
    return frame


def placed(placement: DesignChoice, table: Table) -> Any:
    """New measurements as a data frame, one row for each."""
    labels, n = list(table.index), len(placement.rows)
    columns: dict[str, Any] = {
        "step": list(range(1, n + 1)),
        "row": [labels[i] for i in placement.rows],
    }
    left = placement.variance.sum(axis=1)
    names = ["variance"] if left.shape[1] == 1 else [f"variance_{k}" for k in range(left.shape[1])]
    for name in table.features:
        column = table.column(name)
        assert column is not None  # a feature
        columns[free_name(name, [*columns, *names])] = column[placement.rows]
    for name, values in zip(names, left.T, strict=True):
        columns[name] = values
    frame = _pandas().DataFrame(columns)
    frame.attrs["before"] = placement.before.sum(axis=0).tolist()
    return frame


def _frame(labels: dict[str, list[Any]], values: dict[str, FloatArray], one_output: bool) -> Any:
    q, K = values["estimate"].shape
    ours: dict[str, Any] = {name: each.T.ravel() for name, each in values.items()}
    if not one_output:
        ours = {"output": np.repeat(np.arange(K), q)} | ours
    columns: dict[str, Any] = {}
    for name, each in labels.items():
        columns[free_name(name, [*columns, *ours])] = list(each) * K
    return _pandas().DataFrame(columns | ours)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "answers come as data frames of pandas, which is not installed; install "
            "ulmus[effects], or use predict_cov and predict, which return arrays."
        ) from error
    return pandas


def _bands(given: Answer, how: InferenceOptions) -> list[Band]:
    """The band of each output; all outputs together hold by Bonferroni's inequality."""
    if not how.simultaneous or given.covariance is None:
        return []
    K = len(given.covariance)
    return [band(part, 1 - (1 - how.level) / K) for part in given.covariance]


def _bounds(given: Answer, how: InferenceOptions, bands: list[Band]) -> FloatArray:
    """Lower and upper bounds, shape (2, q, K)."""
    if not bands:
        return given.errors.bounds([how.level])[:, 0]
    each = [given.errors.bounds([part.pointwise_level])[:, 0, :, k] for k, part in enumerate(bands)]
    return np.stack(each, axis=2)


def _tests(
    given: Answer, how: InferenceOptions, tests: list[Wald]
) -> tuple[FloatArray, FloatArray]:
    """Test statistics and p-values of single answers, or those of joint tests, each (q, K)."""
    errors = given.errors
    if np.all(np.isnan(errors.center)):
        joint = np.array([[(test.statistic, test.p_value) for test in tests]])
        return joint[:, :, 0], joint[:, :, 1]
    away, se = errors.center - given.null, np.sqrt(errors.variance)
    # What an interval allows for, a test allows for too.
    beyond = np.maximum(np.abs(away) - errors.allowance, 0.0)
    p_value = 2 * stats.t.sf(in_standard_errors(beyond, se), errors.dof)
    return in_standard_errors(away, se), holm(p_value) if how.adjust == "holm" else p_value


def _joint(covariance: FloatArray) -> FloatArray:
    """Covariance of all rows (K q, K q); between outputs nothing is known."""
    K, q, _ = covariance.shape
    if K == 1:
        return covariance[0].copy()
    out = np.full((K, q, K, q), np.nan)
    for k in range(K):
        out[k, :, k, :] = covariance[k]
    return out.reshape(K * q, K * q)
