r"""A fit as a linear model of few coefficients: directions of its coordinates, with a covariance.

A prediction is linear in the coordinates t(x) of all members, so that its covariance is a
quadratic form, :math:`\operatorname{cov}(f(x), f(u)) = t(x)' K t(u)`. Noise reaches the fit
through the rows Q of the training data alone: a direction v of a member with Qv = 0 carries
nothing, and one of a small :math:`\lambda = v'Q'Qv` carries the share lambda of the noise at
coordinates of length one. The directions that remain are far fewer than the hidden units of a
smooth fit, and the same ones serve all points and all estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from ulmus.core.backend import Array, like, to_numpy, transposed
from ulmus.core.ensemble import Regression, member_values
from ulmus.core.fit import Fit
from ulmus.core.functionals import features
from ulmus.core.variance import ESTIMATES

# Standard errors within the range of the data then change by less than 1e-8 (test_directions.py).
LEAST_SHARE = 1e-10


@dataclass(frozen=True)
class Directions:
    """The directions in which the only output of a fit can err.

    Parameters
    ----------
    fit : Fit
        The fit, of one output.
    basis : tuple of M ndarrays of shape (N', r_m)
        Orthonormal directions of each member's coordinates.
    """

    fit: Fit
    basis: tuple[np.ndarray, ...]

    @property
    def n_directions(self) -> int:
        """Number of directions of all members, and of folds."""
        return sum(part.shape[1] for part in self.basis) + self._n_folds

    def columns(self, X: Array) -> np.ndarray:
        """Components of the rows of X along all directions, shape (p, r), one column each."""
        blocks = [self._components(h) for h in features(self.fit.ensemble.layer, X)]
        folds = self.fit.map_shifts(X)[: self._n_folds, 0]
        return np.concatenate([np.concatenate(blocks, axis=1), folds]).T

    def covariance(self, estimate: str) -> np.ndarray:
        """Covariance of the coefficients of these columns, shape (r, r), in the units of y.

        With ``R = columns(X)``, the covariance of the predictions at X is ``R @ it @ R.T``.
        """
        part, M, t = self._regression, self.fit.ensemble.n_members, self._coordinates()
        chosen = ESTIMATES[estimate]
        single, distinct = part.forms[chosen.pairing].means(t, t)
        K = chosen.part(to_numpy(single)[0], to_numpy(distinct)[0], M)
        members = to_numpy(member_values(part.smoother, t))[:, 0, :]
        deviations = members - members.mean(axis=0)
        K = K + deviations.T @ deviations / max(M * (M - 1), 1)
        shifts = to_numpy(transposed(part.alpha_vectors) @ t)[:, :, 0, :].mean(axis=1)
        K = K + np.outer(shifts[0], shifts[0]) - np.outer(shifts[1], shifts[1])
        return block_diag(K * self.fit.ensemble.unit[0] ** 2, np.eye(self._n_folds))

    @property
    def _regression(self) -> Regression:
        return self.fit.ensemble.regressions[0]

    @property
    def _n_folds(self) -> int:
        return len(self.fit.folds) if self.fit.folded else 0

    def _components(self, h: Array) -> np.ndarray:
        """Components of features along the directions of the members, shape (r, p)."""
        t = to_numpy(self._regression.smoother.coordinates(h))
        return np.concatenate([v.T @ t_m for v, t_m in zip(self.basis, t, strict=True)])

    def _coordinates(self) -> Array:
        """Each direction as coordinates of all members, shape (M, N', r)."""
        starts = np.cumsum([0, *(part.shape[1] for part in self.basis)])
        out = np.zeros((len(self.basis), self.basis[0].shape[0], starts[-1]))
        for m, part in enumerate(self.basis):
            out[m, :, starts[m] : starts[m + 1]] = part
        return like(out, self._regression.smoother.q)


def error_directions(fit: Fit, least_share: float = LEAST_SHARE) -> Directions:
    """The directions of a fit of one output that carry at least a share of the noise."""
    basis = []
    for own in to_numpy(fit.ensemble.regressions[0].smoother.own).astype(float):
        share, vectors = np.linalg.eigh(own)
        basis.append(vectors[:, share > least_share])
    return Directions(fit, tuple(basis))
