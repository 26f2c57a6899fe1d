r"""Predictions of new observations from the fit and the kriged noise of the rows.

If noise is correlated, the residuals of rows predict the noise at a nearby location. With the
weights w of simple kriging the prediction is

.. math:: \hat f(x_0) + w'(y - \hat f(X)) = a(\hat f) + w'y, \qquad
          a(f) = f(x_0) - \sum_i w_i f(x_i).

Its error is :math:`\epsilon_0 - w'\epsilon - z_a'\epsilon`, up to bias, with :math:`a(\hat f) =
z_a'y`. Since :math:`\Sigma w = c`, the error of kriging is uncorrelated with the noise of the rows,
and two variances add up: that of an observation less :math:`c'w`, and :math:`z_a'\Sigma z_a` of the
functional a.

The covariance :math:`\Sigma` is that of rows multiplied by the square roots of their weights; a new
observation has its own weight, or their mean weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, namespace, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, Piece, portion, portions
from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.kriging_weights import noise_weights
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.variance.estimates import never_negative
from ulmus.exceptions import InputError

# Smaller correlations do not change predictions visibly.
LEAST_CORRELATION = 1e-6
# Largest number of rows, evenly spaced, whose leave-one-out errors calibrate prediction intervals.
MAX_CALIBRATION_ROWS = 2000


def fitted_covariances(fit: Fit) -> tuple[CovarianceEstimate, ...]:
    """Noise covariance of each output; an error if the fit estimates none."""
    if not fit.covariances:
        text = "requires noise with a parametric covariance"
        suggestion = "fit with noise=AR1(), Exponential() or Matern() of ulmus.noise"
        raise _error("no-covariance", text, suggestion)
    return fit.covariances


def training_locations(fit: Fit) -> Locations:
    """Locations of the training rows; an error if the fit does not keep them."""
    if fit.rows is None or fit.rows.locations is None:
        text = (
            "requires the training rows and their locations, which compress() drops and a streamed "
            "fit does not keep"
        )
        raise _error("no-training-rows", text, "fit in memory")
    return fit.rows.locations


def _error(code: str, text: str, suggestion: str) -> InputError:
    return covariance_error(code, text, suggestion, parameter="residual_kriging", value=True)


def axes_out_of_reach(fit: Fit, new_locations: Locations) -> list[str]:
    """Axes along which all points are uncorrelated with all rows."""
    correlated = [one for one in fit.covariances if not one.independent]
    if not correlated:
        return []
    rows, axes = training_locations(fit), []
    for j, term in enumerate(correlated[0].structure.terms):
        longest = max(one.scales[j] for one in correlated)
        largest = np.max(term.kernel(term.gaps(rows, new_locations), longest), initial=0.0)
        axes += [term.axis] if largest < LEAST_CORRELATION else []
    return axes


class KrigedPoints(NamedTuple):
    """Some points of one output, from the fit and the noise of the rows."""

    points: np.ndarray  # (b,): indices of the points
    functionals: Functionals  # the functionals a
    offset: np.ndarray  # (b,): w'y
    explained: np.ndarray  # (b,): variance of a new observation that the noise of the rows explains


def kriged_points(
    fit: Fit, X: Array, new_locations: Locations, k: int, weight: np.ndarray | None = None
) -> Iterator[KrigedPoints]:
    """All points X (p, d) at their locations, in chunks, for output k.

    New observations have the weights (p,), or the mean weight of the rows.
    """
    rows = _KrigingRows(fit, k)
    for points, weights, explained in noise_weights(rows.covariance, rows.locations, new_locations):
        own = np.full(len(points), fit.mean_weight) if weight is None else weight[points]
        w = scipy.sparse.csr_array(rows.scaled(weights) @ scipy.sparse.diags_array(own**-0.5))
        identity = scipy.sparse.csr_array(scipy.sparse.eye_array(len(points), format="csr"))
        a = Functionals((Piece(_taken(X, points), identity), rows.piece(-w)))
        yield KrigedPoints(points, a, w.T @ rows.y, explained / own)


class LeaveOneOutErrors(NamedTuple):
    """Leave-one-out errors of kriged predictions, and their variances, each (q,).

    Rows are multiplied by the square roots of their weights.
    """

    error: np.ndarray
    variance: np.ndarray


def leave_one_out_errors(fit: Fit, k: int) -> LeaveOneOutErrors:
    r"""Errors of output k at rows that are excluded from the fit and from kriging, in closed form.

    With :math:`K = \Sigma^{-1}` and the functional a of the weights :math:`K_{ij} / K_{ii}`, the
    error of kriging without row i is :math:`a(y - \hat f)`. Excluding the row from member m lowers
    its prediction at row j by :math:`t_{mi}'t_{mj} L_{mi}`, with the leave-one-out residuals L,
    which adds the mean over members of :math:`L_{mi} t_{mi}'t_{ma}`. Variances are those of the
    whole fit.
    """
    rows = _KrigingRows(fit, k)
    index, parts = rows.calibration, []
    new_locations = rows.locations.taken(index)
    for few, weights, explained in noise_weights(
        rows.covariance, rows.locations, new_locations, own=index
    ):
        own = scipy.sparse.csr_array(
            (np.ones(len(few)), (index[few], np.arange(len(few)))), shape=weights.shape
        )
        a = rows.scaled(own - weights)
        functionals = Functionals((rows.piece(a),))
        moments = fit.parts(functionals)
        shift = rows.leave_one_out_shift(index[few], functionals)
        remaining = np.maximum(rows.noise - explained, 0.0)
        variance = remaining + never_negative(fit.estimates[0], moments)[:, k]
        parts.append((a.T @ rows.y - moments.mean[:, k] + shift, variance))
    return LeaveOneOutErrors(*(np.concatenate(values) for values in zip(*parts, strict=True)))


class _KrigingRows:
    """Rows of positive weight in the order of their locations, for one output."""

    def __init__(self, fit: Fit, k: int) -> None:
        self.fit, self.k, self.covariance = fit, k, fitted_covariances(fit)[k]
        locations = training_locations(fit)
        rows: Any = fit.rows
        self.data = rows.data
        self.index = locations.order[rows.data.used[locations.order]]
        self.locations = locations.taken(self.index)
        self._calibrates = rows.calibration_rows[self.index]

    @property
    def y(self) -> np.ndarray:
        """Outputs in the units of y, shape (n,)."""
        return self.data.y[self.k, self.index]

    @property
    def noise(self) -> float:
        """Noise variance of a row of weight 1, in the units of y."""
        residual = self.fit.per_regression(lambda part: part.noise_variance.residual)
        return float(residual[self.k] * self.fit.ensemble.unit[self.k] ** 2)

    @property
    def calibration(self) -> np.ndarray:
        """Positions of the calibration rows, evenly spaced if there are many."""
        rows = np.flatnonzero(self._calibrates)
        few = min(len(rows), MAX_CALIBRATION_ROWS)
        return rows[np.linspace(0, len(rows) - 1, few).astype(int)]

    def scaled(self, weights: Any) -> Any:
        """Weights of the noise as weights of the rows, shape (n, p)."""
        root = self.data.root_weight
        if root is None:
            return scipy.sparse.csr_array(weights)
        scale = scipy.sparse.diags_array(root[self.index])
        return scipy.sparse.csr_array(scale @ weights)

    def piece(self, weights: Any) -> Piece:
        """Rows with their weights in functionals."""
        return Piece(_taken(self.data.X, self.index), weights)

    def leave_one_out_shift(self, rows: np.ndarray, functionals: Functionals) -> np.ndarray:
        """Change of the error of each functional if its row is excluded from the fit, (q,)."""
        ensemble, shifts = self.fit.ensemble, []
        i = next(i for i, p in enumerate(ensemble.regressions) if self.k in p.outputs)
        part = ensemble.regressions[i]
        for few in portions(ensemble.layer, functionals):
            block = self.data.block(self.index[rows[few]])
            ((_, fits),) = ensemble.row_fits([block])
            own = fits[i].weighted
            t = part.exact.coordinates(portion(ensemble.layer, functionals, few))
            xp, loo = namespace(t), own.loo[:, part.outputs.index(self.k), :]
            shifts.append(to_numpy(xp.mean(loo * xp.sum(own.t * t, axis=1), axis=0)))
        return np.concatenate(shifts) * ensemble.unit[self.k]


def _taken(X: Any, index: np.ndarray) -> Any:
    """Points by their positions among some rows of X."""
    return lambda rows: taken_rows(X, index[rows])
