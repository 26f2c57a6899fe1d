"""Sizes: training rows, ensemble members and hidden units, and how the model was selected."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import Array, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.ridge.alpha import RELATIVE_GRID
from ulmus.core.variance.estimates import sufficient_members
from ulmus.diagnostics.checks.suggestions import MORE_NEURONS, alpha_deviation, select_alpha
from ulmus.diagnostics.finding import Finding, finding
from ulmus.messages import Setting

# Members are few if more than so many times as many are suggested, at most at so many points.
MORE_MEMBERS, MEMBER_POINTS = 2, 500
# Redrawing the weights may add such a share to the variance, at this share of the points.
TOLERANCE, QUANTILE = 0.05, 0.9
# A member should have more units than so many times its degrees of freedom.
UNITS_PER_DOF = 2.0
# An alpha within this factor of the least one tried, less than a step of the grid, is that one.
GRID_END = 1.5
FEW_ROWS = 100
ROWS_PER_DOF, FEWEST_PER_DOF = 5.0, 2.0


def rows_finding(fit: Fit, k: int) -> Finding:
    """Whether there are enough rows for the degrees of freedom of the fit."""
    gamma = float(fit.gamma[k])
    n, ratio = fit.n_rows, fit.n_rows / max(gamma, 1.0)
    severity = "warning" if n < FEW_ROWS or ratio < ROWS_PER_DOF else "ok"
    return finding(
        "rows",
        "error" if ratio < FEWEST_PER_DOF else severity,
        ratio,
        f"{n} rows for {gamma:.1f} effective degrees of freedom, {ratio:.1f} per degree.",
        "Standard errors estimated from few rows are themselves uncertain.",
        ("add rows", *select_alpha(fit)),
    )


def members_finding(fit: Fit, X: Array) -> Finding:
    """Whether more members would make predictions less random, at some of the rows of X."""
    M = fit.ensemble.n_members
    if M < 2:
        message = "one network: standard errors exclude the variance of its random weights."
        return finding("members", "ok", 1.0, message)
    few = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MEMBER_POINTS)).astype(int))
    enough = sufficient_members(fit.parts(taken_rows(X, few)), TOLERANCE, QUANTILE)
    return finding(
        "members",
        "warning" if enough > MORE_MEMBERS * M else "ok",
        float(enough),
        f"{M} members; with {enough}, random weights add {TOLERANCE:.0%} to the variance.",
        "Error bars include it, but predictions depend visibly on the seed.",
        (Setting("n_estimators", enough),),
    )


def units_finding(fit: Fit, k: int) -> Finding:
    """Whether members have enough hidden units to follow the function."""
    smoother = next(p.smoother for p in fit.ensemble.regressions if k in p.outputs)
    N, gamma = int(fit.ensemble.layer.W.shape[1]), float(smoother.gamma)
    chosen = bool(alpha_deviation(fit)[k] > 0)
    at_end = chosen and smoother.alpha <= GRID_END * RELATIVE_GRID[0] * _largest_square(fit, k)
    message = f"{N} hidden units per member for {gamma:.1f} effective degrees of freedom"
    return finding(
        "hidden-units",
        "warning" if UNITS_PER_DOF * gamma > N or at_end else "ok",
        gamma / N,
        message + ("; alpha is the smallest value tried." if at_end else "."),
        "The function may require more hidden units.",
        (MORE_NEURONS,),
    )


def selection_finding(fit: Fit) -> Finding:
    """How alpha and the input map were selected."""
    message = "alpha given; " if not np.any(alpha_deviation(fit)) else "alpha cross-validated; "
    if fit.input_map is None:
        message += "no input map."
    elif fit.rows is not None and fit.rows.map_rows is not None:
        message += "input map learned on rows that are not used for calibration."
    elif fit.folded:
        message += "input map learned without the fold of each residual."
    else:
        message += "input map learned on the same rows."
    return finding("selection", "ok", 0.0, message)


def _largest_square(fit: Fit, k: int) -> float:
    """Largest squared singular value of the hidden features of the first member."""
    smoother = next(p.smoother for p in fit.ensemble.regressions if k in p.outputs)
    first = int(smoother.constant)
    root = to_numpy(smoother.to_t[0, first:, first:])
    least = float(np.min(np.linalg.svd(root, compute_uv=False)))
    return 1 / least**2 if least > 0 else 0.0
