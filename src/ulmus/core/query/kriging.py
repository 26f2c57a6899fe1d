r"""Predictions of new observations near the rows: the fit, and the noise that the rows tell.

Where noise hangs together, residuals of rows nearby say what the noise at a new place will be, and
with the weights w of simple kriging the prediction is

.. math:: \hat f(x_0) + w'(y - \hat f(X)) = a(\hat f) + w'y, \qquad
          a(f) = f(x_0) - \sum_i w_i f(x_i).

Its error is :math:`\epsilon_0 - w'\epsilon - z_a'\epsilon`, up to bias, with :math:`a(\hat f) =
z_a'y`. As :math:`\Sigma w = c`, what kriging leaves of the noise is uncorrelated with the noise of
the rows, so that both parts add up: the variance of an observation less :math:`c'w`, and the
variance :math:`z_a'\Sigma z_a` of the functional a.

Rows have noise of covariance :math:`\Sigma` after they are multiplied by the roots of their
weights, and a new observation is of mean weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, namespace, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals, Piece, portion, portions
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.kriging_weights import left_out_weights, noise_weights
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.variance.estimates import never_negative

ROWS_NOT_KEPT = (
    "residual_kriging=True needs the training rows and their places, which compress() dropped or a "
    "streamed fit never kept; fit in memory."
)
# Smaller correlations change nothing that can be seen.
LEAST_CORRELATION = 1e-6
# Rows that are left out for prediction intervals, evenly spaced.
MOST_JUDGES = 2000


def fitted_covariances(fit: Fit) -> tuple[CovarianceEstimate, ...]:
    """Covariances of the noise of each output, or a reason why there are none."""
    found = fit.covariances
    if not found:
        raise ValueError(
            "residual_kriging=True needs noise with a covariance, by which rows tell the noise "
            "nearby; fit with noise=AR1(), Exponential() or Matern() of ulmus.noise."
        )
    return found


def training_locations(fit: Fit) -> Locations:
    """Where the rows are that a fit keeps."""
    if fit.rows is None or fit.rows.locations is None:
        raise ValueError(ROWS_NOT_KEPT)
    return fit.rows.locations


def axes_out_of_reach(fit: Fit, at: Locations) -> list[str]:
    """Axes along which all points are too far from the rows for residuals to tell anything."""
    found = [one for one in fit.covariances if not one.independent]
    if not found:
        return []
    trained, axes = training_locations(fit), []
    for j, term in enumerate(found[0].structure.terms):
        longest = max(one.scales[j] for one in found)
        largest = np.max(term.kernel(term.gaps(trained, at), longest), initial=0.0)
        axes += [term.axis] if largest < LEAST_CORRELATION else []
    return axes


class Kriged(NamedTuple):
    """Some points of one output, by the fit and the noise of the rows.

    Parameters
    ----------
    points : ndarray of shape (b,)
        Which points.
    functionals : Functionals
        The functionals a.
    offset : ndarray of shape (b,)
        w'y.
    explained : ndarray of shape (b,)
        Variance of a new observation that the noise of the rows explains.
    """

    points: np.ndarray
    functionals: Functionals
    offset: np.ndarray
    explained: np.ndarray


def kriged(fit: Fit, X: Array, at: Locations, k: int) -> Iterator[Kriged]:
    """All points X (p, d) at their places, in portions, for output k."""
    rows = _OrderedRows(fit, k)
    for points, weights, explained in noise_weights(rows.found, rows.locations, at):
        w = rows.scaled(weights, fit.mean_weight**-0.5)
        here = scipy.sparse.eye_array(len(points), format="csr")
        new = Piece(_taken(X, points), scipy.sparse.csr_array(here))
        a = Functionals((new, rows.piece(-w)))
        yield Kriged(points, a, w.T @ rows.y, explained / fit.mean_weight)


class LeaveOneOutErrors(NamedTuple):
    """Errors of kriged predictions of rows without themselves, and their variances, each (q,).

    Rows are multiplied by the roots of their weights.
    """

    error: np.ndarray
    variance: np.ndarray


def leave_one_out_errors(fit: Fit, k: int) -> LeaveOneOutErrors:
    r"""Errors of output k at rows that are left out of the fit and of kriging, in closed form.

    With :math:`K = \Sigma^{-1}` and the functional a of the weights :math:`K_{ij} / K_{ii}`,
    kriging without row i errs by :math:`a(y - \hat f)`. Without the row, member m predicts
    :math:`t_{mi}'t_{mj} L_{mi}` less at row j, with L the left-out residuals, so that
    :math:`L_{mi} t_{mi}'t_{ma}` is added, the mean over members. Variances are those of the
    whole fit.
    """
    rows = _OrderedRows(fit, k)
    judges, parts = rows.judges, []
    for few, weights, explained in left_out_weights(rows.found, rows.locations, judges):
        own = scipy.sparse.csr_array(
            (np.ones(len(few)), (judges[few], np.arange(len(few)))), shape=weights.shape
        )
        a = rows.scaled(own - weights)
        functionals = Functionals((rows.piece(a),))
        seen = fit.parts(functionals)
        error = a.T @ rows.y - seen.mean[:, k] + rows.pulls(judges[few], functionals)
        left = np.maximum(rows.noise - explained, 0.0)
        parts.append((error, left + never_negative(fit.estimates[0], seen)[:, k]))
    return LeaveOneOutErrors(*(np.concatenate(values) for values in zip(*parts, strict=True)))


class _OrderedRows:
    """Rows of positive weight in the order of their places, as one output sees them."""

    def __init__(self, fit: Fit, k: int) -> None:
        self.fit, self.k, self.found = fit, k, fitted_covariances(fit)[k]
        locations = training_locations(fit)
        rows: Any = fit.rows
        self.data = rows.data
        self.index = locations.order[rows.data.used[locations.order]]
        self.locations = locations.taken(self.index)
        self._judging = rows.judges[self.index]

    @property
    def y(self) -> np.ndarray:
        """Outputs in the units of y, shape (n,)."""
        return self.data.y[self.k, self.index]

    @property
    def noise(self) -> float:
        """Variance of the noise of a row of weight 1, in the units of y."""
        residual = self.fit.per_regression(lambda part: part.variance.residual)
        return float(residual[self.k] * self.fit.ensemble.unit[self.k] ** 2)

    @property
    def judges(self) -> np.ndarray:
        """Positions of rows that judge predictions, evenly spaced where there are many."""
        judges = np.flatnonzero(self._judging)
        few = min(len(judges), MOST_JUDGES)
        return judges[np.linspace(0, len(judges) - 1, few).astype(int)]

    def scaled(self, weights: Any, factor: float = 1.0) -> Any:
        """Weights of noise as weights of the rows, shape (n, p)."""
        root = self.data.root_weight
        if root is None:
            return scipy.sparse.csr_array(weights * factor)
        scale = scipy.sparse.diags_array(root[self.index] * factor)
        return scipy.sparse.csr_array(scale @ weights)

    def piece(self, weights: Any) -> Piece:
        """Rows with their weights in functionals."""
        return Piece(_taken(self.data.X, self.index), weights)

    def pulls(self, rows: np.ndarray, functionals: Functionals) -> np.ndarray:
        """What leaving out each of some rows adds to the error of its functional, shape (q,)."""
        ensemble, pulls = self.fit.ensemble, []
        for few in portions(ensemble.layer, functionals):
            block = self.data.block(self.index[rows[few]])
            ((_, fits),) = ensemble.row_fits([block])
            i = next(i for i, p in enumerate(ensemble.regressions) if self.k in p.outputs)
            seen, part = fits[i].weighted, ensemble.regressions[i]
            t = part.smoother.coordinates(portion(ensemble.layer, functionals, few))
            xp, left_out = namespace(t), seen.loo[:, part.outputs.index(self.k), :]
            pulls.append(to_numpy(xp.mean(left_out * xp.sum(seen.t * t, axis=1), axis=0)))
        return np.concatenate(pulls) * ensemble.unit[self.k]


def _taken(X: Any, index: np.ndarray) -> Any:
    """Points by their numbers among some rows of X."""
    return lambda rows: taken_rows(X, index[rows])
