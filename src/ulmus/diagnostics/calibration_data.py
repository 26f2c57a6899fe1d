"""Rows that calibrate or test a fit, with their intervals and predictive distributions.

Without new rows these are the training rows, leave-one-out: the interval of a row is computed from
the scaled residuals of the others, so that the overall coverage is nominal by construction and only
the coverage of groups is a test. New rows are an out-of-sample test. Rows of a table that the fit
was trained on are found by their values, and are predicted leave-one-out as well. Observations and
predictions are on the scale of y, also where the regression is that of a transformed target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ulmus.core.arrays.backend import Array, FloatArray, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import round_off
from ulmus.core.response import Transformed
from ulmus.diagnostics.given_rows import GIVEN, LEAVE_ONE_OUT, NEW, GivenRows
from ulmus.diagnostics.leave_one_out import LeaveOneOutRows, has_atoms
from ulmus.intervals.distribution import predictive_distribution
from ulmus.intervals.observations import prediction_bounds
from ulmus.intervals.randomised_pit import randomised_pit
from ulmus.intervals.response import response_mean

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

LEVELS = (0.5, 0.8, 0.9, 0.95)
# Inputs that rows are grouped by: the most relevant ones of a learned map, else the first.
MOST_INPUTS = 20
# Fields of ``CalibrationData`` whose last axis is that of the rows.
BY_ROW = ("covered", "pit", "noise", "leverage", "mean")


@dataclass(frozen=True)
class CalibrationData:
    """Rows with predictions that do not depend on their y."""

    kind: str  # ``LEAVE_ONE_OUT``, ``NEW`` or ``GIVEN``
    covered: BoolArray  # (K, levels, n): whether the interval of each of ``LEVELS`` covers the row
    # (K, n): probability integral transform: the predictive distribution function at y.
    pit: FloatArray
    # (K, n): predicted standard deviation of the noise on the scale of the regression; NaN for
    # counts and point masses, whose variance follows from the prediction
    noise: FloatArray
    leverage: FloatArray  # (K, n): leverage, mean over members
    mean: FloatArray  # (K, n): predicted mean of y
    columns: IntArray  # (few,): inputs that rows are grouped by
    inputs: FloatArray  # (n, few): their values
    noiseless: BoolArray  # (K,): outputs whose errors are all round-off
    # (K,): outputs with values of positive probability: their PIT values are randomised, and their
    # intervals cover at least their level.
    randomised: BoolArray
    # (K, levels, n'): the same as ``covered`` for all training rows, where these are some of them.
    all_covered: BoolArray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.pit.shape[1]

    @property
    def leave_one_out(self) -> bool:
        """Whether all rows are training rows, each predicted without it."""
        return self.kind == LEAVE_ONE_OUT

    @property
    def is_part(self) -> bool:
        """Whether they are some of the training rows, whose coverage is not nominal."""
        return self.all_covered is not None and self.all_covered.shape[2] > self.n_rows

    def tested(self, k: int, i: int) -> BoolArray:
        """Rows in central intervals of level i, whose coverage is nominal if calibrated, (n,).

        Where values have a positive probability, these are intervals of the randomised PIT.
        """
        if not self.randomised[k]:
            return self.covered[k, i]
        return np.abs(2.0 * self.pit[k] - 1.0) <= LEVELS[i]

    def taken(self, rows: IntArray) -> CalibrationData:
        """Some of the training rows, by index."""
        parts = {name: getattr(self, name)[..., rows] for name in BY_ROW}
        return replace(self, inputs=self.inputs[rows], all_covered=self.covered, **parts)

    def joined(self, other: CalibrationData) -> CalibrationData:
        """The rows of both, as rows of a table."""
        parts = {
            name: np.concatenate([getattr(self, name), getattr(other, name)], axis=-1)
            for name in BY_ROW
        }
        return replace(
            self,
            kind=GIVEN,
            inputs=np.concatenate([self.inputs, other.inputs]),
            noiseless=self.noiseless & other.noiseless,
            randomised=self.randomised | other.randomised,
            all_covered=None,
            **parts,
        )


def given_data(
    fit: Fit, X: Array, y: FloatArray, given: GivenRows, weight: FloatArray | None = None
) -> CalibrationData:
    """The judged rows of a table X (p, d), y (K, p): training rows first, leave-one-out.

    New rows have the weights (p,), or the mean weight of the training rows.
    """
    is_trained, parts = given.judged_as_trained, []
    if fit.rows is not None and np.any(is_trained):
        index = calibration_index(fit.rows, given.trained[given.judged[is_trained]])  # type: ignore[index]
        parts.append(leave_one_out_data(fit, fit.rows).taken(index))
    if not np.all(is_trained):
        new = given.judged[~is_trained]
        own = None if weight is None else weight[new]
        parts.append(replace(new_data(fit, taken_rows(X, new), y[:, new], own), kind=given.kind))
    return parts[0] if len(parts) == 1 else parts[0].joined(parts[1])


def calibration_index(rows: TrainingRows, index: IntArray) -> IntArray:
    """Positions of training rows among the calibration rows."""
    return np.searchsorted(np.flatnonzero(rows.calibration_rows), index)


def leave_one_out_data(fit: Fit, rows: TrainingRows) -> CalibrationData:
    """The calibration rows of the fit, each predicted without it."""
    used, found = rows.calibration_rows, LeaveOneOutRows.of(fit, rows)
    columns = grouping_inputs(fit, rows.data.X)
    return CalibrationData(
        kind=LEAVE_ONE_OUT,
        covered=np.stack([found.coverage(k, LEVELS) for k in range(len(found.observed))]),
        pit=found.pit,
        noise=_row_noise_sd(fit, rows)[:, used],
        leverage=rows.leverage[:, used],
        mean=found.mean,
        columns=columns,
        inputs=input_values(rows.data.X, columns)[used],
        noiseless=round_off(found.residuals, rows.data.y[:, used]),
        randomised=found.randomised,
    )


def _row_noise_sd(fit: Fit, rows: TrainingRows) -> FloatArray:
    """Standard deviation of the noise of each row, (K, n)."""
    root = rows.data.root_weight
    weight = None if root is None else np.where(root > 0, root, 1.0) ** 2
    # Groups of rows by their noise without the row would sort those of equal noise by the size of
    # their own residuals.
    return _noise_sd(fit, rows.data.X, weight)


def _noise_sd(fit: Fit, X: Array, weight: FloatArray | None) -> FloatArray:
    """Standard deviation of the noise of an observation on the scale of the regression, (K, n).

    It is NaN where the predictive distribution of y does not depend on it.
    """
    sd = np.sqrt(fit.noise_variance(X, weight)).T
    for k, family in enumerate(fit.response or ()):
        if not isinstance(family, Transformed):
            sd[k] = np.nan
    return sd


def new_data(
    fit: Fit, X: Array, y: FloatArray, weight: FloatArray | None = None
) -> CalibrationData:
    """New rows X (n, d), y (K, n), with their predicted intervals and distributions.

    They have the weights (n,), or the mean weight of the training rows.
    """
    bounds = prediction_bounds(fit, X, LEVELS, "auto", weight=weight)
    low, high = (bound.transpose(2, 0, 1) for bound in bounds)
    mean = response_mean(fit, X, weight).T
    pit = randomised_pit(predictive_distribution(fit, X, weight), y.T).T
    columns = grouping_inputs(fit, X)
    families = fit.response or (None,) * len(y)
    atoms = [
        one is not None and has_atoms(one, part) for one, part in zip(families, y, strict=True)
    ]
    return CalibrationData(
        kind=NEW,
        covered=(low <= y[:, None, :]) & (y[:, None, :] <= high),
        pit=np.asarray(pit),
        noise=_noise_sd(fit, X, weight),
        leverage=point_leverage(fit, X),
        mean=mean,
        columns=columns,
        inputs=input_values(X, columns),
        noiseless=round_off(y - mean, y),
        randomised=np.array(atoms),
    )


def n_calibration_residuals(fit: Fit) -> FloatArray:
    """Residuals of the calibration rows, less the degrees of freedom of the fit, shape (K,)."""
    most = fit.n_rows if fit.rows is None else int(np.sum(fit.rows.calibration_rows))
    return np.minimum(np.maximum(fit.noise_dof, 1.0), most)


def point_leverage(fit: Fit, X: Array) -> FloatArray:
    """Leverage of points, mean over members, shape (K, p)."""
    return fit.leverage(X)


def grouping_inputs(fit: Fit, X: Array) -> IntArray:
    """Inputs whose values rows are grouped by."""
    relevance = None if fit.input_map is None else fit.input_map.relevance
    if relevance is not None and fit.encoded_columns is not None:
        relevance = relevance[fit.encoded_columns]  # an input has the relevance of its column
    order = np.arange(X.shape[1]) if relevance is None else np.argsort(-relevance, kind="stable")
    return np.sort(order[:MOST_INPUTS])


def input_values(X: Array, columns: IntArray) -> FloatArray:
    """Values of some inputs as a dense NumPy array, shape (n, few)."""
    values = X[:, columns].toarray() if scipy.sparse.issparse(X) else to_numpy(X)[:, columns]
    return np.asarray(values, dtype=float)
