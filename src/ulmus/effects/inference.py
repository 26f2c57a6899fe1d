"""Effects of a fit to functionals: estimates, standard errors, and how they vary together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals
from ulmus.core.query.joint_covariance import ROUND_OFF
from ulmus.intervals.confidence import (
    Errors,
    expectation_errors,
    function_covariance,
    function_errors,
)
from ulmus.intervals.standard_errors import joint_variance, prediction_variance

FloatArray = npt.NDArray[np.float64]

# Effects up to so many rows come with their joint covariance without being asked for it, and with
# bands or tests that need it up to the second number.
MOST_JOINT, MOST_TOGETHER = 500, 5000


class Answer(NamedTuple):
    """Effects in rows.

    Parameters
    ----------
    labels : dict
        What tells the rows apart: for each name the labels of all rows.
    errors : Errors
        Estimates and what their error bars are made of, each (q, K).
    covariance : ndarray of shape (K, q, q) or None
        Joint covariance; None for more rows than it is made for.
    null : float
        What the estimates are tested against.
    """

    labels: dict[str, list[Any]]
    errors: Errors
    covariance: FloatArray | None
    null: float = 0.0


def answer(
    fit: Fit, asked: Functionals, labels: dict[str, list[Any]], target: str, *, together: bool
) -> Answer:
    """Effects of a fit to functionals.

    Parameters
    ----------
    fit : Fit
        The fit.
    asked : Functionals
        What is asked.
    labels : dict
        What tells the functionals apart.
    target : {"expectation", "function"}
        Whether for the mean of this estimator, or for the true function.
    together : bool
        Whether the joint covariance is needed.
    """
    if together and asked.count > MOST_TOGETHER:
        raise ValueError(
            f"{asked.count} rows are too many for simultaneous=True or hypothesis, which need "
            f"their joint covariance; ask for at most {MOST_TOGETHER}, for example averages by "
            "group."
        )
    joint = together or asked.count <= MOST_JOINT
    if target == "function":
        errors = function_errors(fit, asked)
        return Answer(labels, errors, function_covariance(fit, asked, errors) if joint else None)
    if not joint:
        return Answer(labels, expectation_errors(fit, prediction_variance(fit, asked)), None)
    variance, covariance = joint_variance(fit, asked)
    return Answer(labels, expectation_errors(fit, variance), covariance)


def transformed(
    given: Answer,
    labels: dict[str, list[Any]],
    estimate: FloatArray,
    jacobian: FloatArray,
    null: float = 0.0,
) -> Answer:
    """Effects that are functions of others, by the delta method.

    Parameters
    ----------
    given : Answer
        The others, q of them.
    labels : dict
        What tells the new ones apart.
    estimate : ndarray of shape (r, K)
        Their estimates.
    jacobian : ndarray of shape (K, r, q)
        Derivatives by the others.
    null : float
        What they are tested against.
    """
    assert given.covariance is not None
    size = np.swapaxes(np.abs(jacobian), 1, 2)

    def added(each: FloatArray) -> FloatArray:
        return np.einsum("kqr,qk->rk", size, np.abs(each))

    covariance = jacobian @ given.covariance @ np.swapaxes(jacobian, 1, 2)
    covariance = 0.5 * (covariance + np.swapaxes(covariance, 1, 2))
    variance = np.diagonal(covariance, axis1=1, axis2=2).T
    # What cancels up to round-off is nothing: a curve that is flat has no shape to be tested.
    moving = variance > ROUND_OFF * added(np.sqrt(given.errors.variance)) ** 2
    covariance = np.where(moving.T[:, :, None] & moving.T[:, None, :], covariance, 0.0)
    resolved = np.abs(estimate - null) > ROUND_OFF * added(given.errors.center)
    estimate, variance = np.where(moving | resolved, estimate, null), np.where(moving, variance, 0)
    allowance = added(given.errors.allowance)
    # As few degrees of freedom as the least of those that take part.
    dof = np.where(size > 0, given.errors.dof.T[:, :, None], np.inf).min(axis=1).T
    return Answer(labels, Errors(estimate, variance, dof, allowance), covariance, null)


def centered(given: Answer) -> Answer:
    """Effects less their mean."""
    q, K = given.errors.center.shape
    matrix = np.eye(q) - 1 / q
    jacobian = np.broadcast_to(matrix, (K, q, q))
    return transformed(given, given.labels, matrix @ given.errors.center, jacobian)


def ratios(given: Answer, labels: dict[str, list[Any]]) -> Answer:
    """Ratios of the first half of the answers to the second, tested against one."""
    high, low = np.split(given.errors.center, 2)
    if not np.all(low != 0):
        raise ValueError("comparison='ratio' divides by an estimate of zero; ask for differences.")
    eye = np.eye(len(low))
    by_high, by_low = ((1 / low).T[:, :, None] * eye, (-high / low**2).T[:, :, None] * eye)
    return transformed(given, labels, high / low, np.concatenate([by_high, by_low], axis=2), 1.0)
