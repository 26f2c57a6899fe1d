"""Estimates of functionals, their standard errors and their joint covariance."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.joint_covariance import ROUND_OFF
from ulmus.exceptions import InputError
from ulmus.intervals.confidence import (
    ErrorBars,
    error_bars,
    expectation_error_bars,
    function_covariance,
)
from ulmus.intervals.standard_errors import joint_variance
from ulmus.messages import Message, Setting, named

# Most estimates whose joint covariance is computed by default, and where bands or tests need it.
DEFAULT_JOINT, MAX_JOINT = 500, 5000


class Estimates(NamedTuple):
    """Estimates of q functionals for K outputs."""

    labels: dict[str, list[Any]]  # for each label column, the labels of the q rows
    errors: ErrorBars  # estimates, variances, degrees of freedom and allowances, each (q, K)
    covariance: FloatArray | None  # (K, q, q): joint covariance; None where it was not computed
    null: float = 0.0  # value under the null hypothesis
    limits: FloatArray | None = None  # (2, q, K): bounds of intervals, where they are known


def infer(
    fit: Fit, functionals: Functionals, labels: dict[str, list[Any]], target: str, *, joint: bool
) -> Estimates:
    """Estimates of functionals of a fit; ``joint`` requires their joint covariance."""
    q = functionals.count
    if joint and q > MAX_JOINT:
        limit = f" require the joint covariance of all {q} rows, limited to {MAX_JOINT} rows"
        text = (named("simultaneous", True), " and ", named("hypothesis"), limit)
        remedies = (Setting("by", phrase="average over groups with {}"),)
        raise InputError(Message("too-many-joint-estimates", text, suggestions=remedies))
    if not joint and q > DEFAULT_JOINT:
        return Estimates(labels, error_bars(fit, functionals, target), None)
    if target == "function":
        errors = error_bars(fit, functionals, target)
        return Estimates(labels, errors, function_covariance(fit, functionals, errors))
    variance, covariance = joint_variance(fit, functionals)
    return Estimates(labels, expectation_error_bars(fit, variance), covariance)


def delta_method(
    estimates: Estimates,
    labels: dict[str, list[Any]],
    value: FloatArray,
    jacobian: FloatArray,
    null: float = 0.0,
) -> Estimates:
    """Differentiable functions of estimates, with standard errors by the delta method.

    The r functions have the values (r, K), and the jacobian (K, r, q) by the q estimates.
    """
    assert estimates.covariance is not None
    size = np.swapaxes(np.abs(jacobian), 1, 2)

    def summed(each: FloatArray) -> FloatArray:
        return np.einsum("kqr,qk->rk", size, np.abs(each))

    covariance = jacobian @ estimates.covariance @ np.swapaxes(jacobian, 1, 2)
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    variance = np.diagonal(covariance, axis1=1, axis2=2).T
    # Variances and differences that cancel up to round-off are set to zero.
    uncertain = variance > ROUND_OFF * summed(np.sqrt(estimates.errors.variance)) ** 2
    covariance = np.where(uncertain.T[:, :, None] & uncertain.T[:, None, :], covariance, 0.0)
    resolved = np.abs(value - null) > ROUND_OFF * summed(estimates.errors.center)
    value = np.where(uncertain | resolved, value, null)
    variance = np.where(uncertain, variance, 0)
    allowance = summed(estimates.errors.allowance)
    # The fewest degrees of freedom among the arguments of each function.
    dof = np.where(size > 0, estimates.errors.dof.T[:, :, None], np.inf).min(axis=1).T
    return Estimates(labels, ErrorBars(value, variance, dof, allowance), covariance, null)


def centered(estimates: Estimates) -> Estimates:
    """Estimates less their mean."""
    q, K = estimates.errors.center.shape
    matrix = np.eye(q) - 1 / q
    jacobian = np.broadcast_to(matrix, (K, q, q))
    return delta_method(estimates, estimates.labels, matrix @ estimates.errors.center, jacobian)


def ratios(estimates: Estimates) -> Estimates:
    """Ratios of the first half of the estimates to the second half; the null value is one.

    The labels are those of the ratios already.
    """
    high, low = np.split(estimates.errors.center, 2)
    if not np.all(low != 0):
        text, remedies = "divides by an estimate of zero", (Setting("comparison", "difference"),)
        raise InputError(Message("ratio-to-zero", text, "comparison", "ratio", remedies))
    eye = np.eye(len(low))
    by_high, by_low = ((1 / low).T[:, :, None] * eye, (-high / low**2).T[:, :, None] * eye)
    jacobian = np.concatenate([by_high, by_low], axis=2)
    return delta_method(estimates, estimates.labels, high / low, jacobian, 1.0)
