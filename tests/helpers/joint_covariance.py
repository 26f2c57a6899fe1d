"""Joint covariance of the predictions of a fit at all pairs of points, term by term."""

import numpy as np

from ulmus.core.ensemble.ensemble import member_values
from ulmus.core.variance.estimates import ESTIMATES


def joint_covariance(fit, X, estimate=None):
    """Covariance of the predictions of the only output at the rows of X, shape (p, p)."""
    name = fit.estimates[0] if estimate is None else estimate
    X = np.asarray(X, dtype=float)
    h, M = fit.features(X), fit.ensemble.n_members
    (part,) = fit.ensemble.regressions
    t = part.smoother.coordinates(h)
    single, distinct = part.forms[ESTIMATES[name].pairing].means(t, t)
    total = ESTIMATES[name].part(single[0], distinct[0], M)
    if M > 1:
        total = total + np.cov(member_values(part.smoother, t)[:, 0], rowvar=False) / M
    first, second = fit.ensemble.alpha_shifts(X)[:, 0]
    total = total * fit.ensemble.unit[0] ** 2 + np.outer(first, first) - np.outer(second, second)
    if fit.folded:
        total = total + np.cov([fold.mean(X)[0] for fold in fit.folds], rowvar=False)
    return total


def standard_error(A, covariance):
    """Standard errors of the linear combinations A (k, p) of predictions."""
    return np.sqrt([a @ covariance @ a for a in np.atleast_2d(A)])
