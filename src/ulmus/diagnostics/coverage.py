"""Tests of coverage: how unlikely the number of covered rows of a group is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.diagnostics.calibration_data import LEVELS, CalibrationData
from ulmus.metrics import quantile_groups

# Adjusted p-values below these are a warning, or an error.
WARNING_P, ERROR_P = 0.01, 0.001
# With many rows everything is significant; deviations below these multiples of the standard
# deviation of one hit, sqrt(c (1 - c)), are irrelevant in practice: .03 and .06 at 90 %.
WARNING_SHARE, ERROR_SHARE = 0.1, 0.2
# The interval at a group of points rests on fewer residuals than one for all rows, as the errors of
# the predictions there are similar. Simulated calibrated fits rarely warn with this share.
LOCAL_SHARE = 0.5
# Rows are divided into fifths, or fewer parts, so that a part has at least so many of them.
PARTS, FEWEST_ROWS = 5, 20
# The values of inputs with at most so many of them are groups.
MOST_VALUES = 10
# Sign between a column and its category in the name of an input.
CATEGORY = "="


class RowGroup(NamedTuple):
    """Rows whose coverage is tested together."""

    label: str
    rows: npt.NDArray[np.intp]


class CoverageResult(NamedTuple):
    """Severity of a number of covered rows, and a bound of its p-value, which may exceed one."""

    severity: str
    p_value: float


class CoverageTest(NamedTuple):
    """The null distribution of the number of covered rows."""

    data: CalibrationData  # the rows
    # Residuals that the intervals are computed from, less the degrees of freedom of the fit.
    n_residuals: float
    # Effective number of independent rows per row, below one for correlated errors.
    effective_share: float = 1.0

    @property
    def sample_size(self) -> float:
        """Effective number of rows; new rows and residuals count as those of a two-sample test."""
        n = self.effective_share * self.data.n_rows
        return n if self.data.leave_one_out else n * self.n_residuals / (n + self.n_residuals)

    def effective(self, rows: float) -> int:
        """Effective number of independent rows."""
        return round(self.effective_share * rows)

    def of_all(self, i: int, k: int) -> CoverageResult:
        """Test all rows; where values have a positive probability, only for undercoverage."""
        covered = self.data.covered[k, i]
        if self.data.randomised[k] and np.mean(covered) >= LEVELS[i]:
            return CoverageResult("ok", 1.0)
        return self(covered, i, k, len(LEVELS))

    def __call__(
        self, covered: npt.NDArray[np.bool_], i: int, k: int, n_tests: int
    ) -> CoverageResult:
        """Test the rows of a group, at level i for output k, as one of several tests.

        New rows: the hits of an interval between order statistics are beta-binomial, as the
        interval varies with the training rows. Leave-one-out rows: their total is fixed, so that
        hits in a group are hypergeometric. That of randomised intervals is not. Overcoverage is at
        most a warning.
        """
        count, m, level = int(np.sum(covered)), len(covered), LEVELS[i]
        hits, n_effective = self.effective(count), max(self.effective(m), 1)
        if self.data.leave_one_out and not self.data.randomised[k]:
            hits_of_all = self.data.all_covered
            everything = (self.data.covered if hits_of_all is None else hits_of_all)[k, i]
            total, n_covered = self.effective(len(everything)), self.effective(np.sum(everything))
            law = stats.hypergeom(max(total, n_effective), n_covered, n_effective)
        else:
            n = self.n_residuals if m == self.data.n_rows else LOCAL_SHARE * self.n_residuals
            law = stats.betabinom(n_effective, level * n, (1 - level) * n)
        under, over = float(law.cdf(hits)), float(law.sf(hits - 1))
        p = 2 * n_tests * min(under, over)
        gap = abs(count / m - level) / np.sqrt(level * (1 - level))
        if p < ERROR_P and gap > ERROR_SHARE and under < over:
            return CoverageResult("error", p)
        return CoverageResult("warning" if p < WARNING_P and gap > WARNING_SHARE else "ok", p)


def quantile_parts(values: FloatArray, name: str) -> list[RowGroup]:
    """Rows in up to five parts of nearly equal counts, none if they cannot be split."""
    n_parts = min(PARTS, len(values) // FEWEST_ROWS)
    if n_parts < 2:
        return []
    code = quantile_groups(values, n_parts)
    count = int(np.max(code)) + 1
    rows = [np.flatnonzero(code == i) for i in range(count)]
    groups = [RowGroup(f"{name} {i + 1}/{count}", rows[i]) for i in range(count)]
    large = [group for group in groups if len(group.rows) >= FEWEST_ROWS]
    return large if len(large) > 1 else []


def value_groups(values: FloatArray, name: str) -> list[RowGroup]:
    """Rows of each value that has enough of them."""
    found, label = np.unique(values), input_label(name)
    if len(found) < 2:
        return []
    if CATEGORY in name and set(found) <= {
        0.0,
        1.0,
    }:  # the other rows are those of other categories
        groups = [RowGroup(label, np.flatnonzero(values == 1.0))]
    else:
        groups = [RowGroup(f"{label}: {v:.4g}", np.flatnonzero(values == v)) for v in found]
    return [group for group in groups if len(group.rows) >= FEWEST_ROWS]


def input_label(name: str) -> str:
    """What an encoded input is called: that of a category is "sex=a", called "sex: a"."""
    return name.replace(CATEGORY, ": ", 1)


def discrete_columns(training: FloatArray) -> npt.NDArray[np.bool_]:
    """Inputs with at most ten values among the rows of a table (n, d), shape (d,)."""
    return np.array([len(np.unique(column)) <= MOST_VALUES for column in training.T], dtype=bool)
