"""What was fitted, in words: the numbers of a summary, read from a fit.

A light summary holds only what is known without computing. The whole one asks ``check`` as well,
and takes the variance of predictions apart at some training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import Array, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_data import TrainingRows
from ulmus.core.query.leave_out import leave_one_out_accuracy, scaled_residuals
from ulmus.core.variance.estimates import enough_members, never_negative
from ulmus.diagnostics.calibration_data import left_out_cover, noiseless
from ulmus.diagnostics.check import diagnostic_report
from ulmus.diagnostics.fit_checks import (
    MEMBER_POINTS,
    MORE_MEMBERS,
    QUANTILE,
    ROWS_PER_DOF,
    TOLERANCE,
)
from ulmus.diagnostics.residual_correlation import correlation_text
from ulmus.diagnostics.summary_value import Relevance, Summary, VarianceShares

COVERAGE_LEVEL = 0.95
# Where noise makes up so much of the error, neither rows nor members lower it much.
MOSTLY_NOISE = 0.9
SIGNS_OF_MISFIT = ("misfit", "step", "hidden units", "bias")

NO_ROWS = (
    "left-out rows and checks, as this fit keeps no training rows (compress() drops them, streams "
    "never have them); model.check(X, y) asks about rows that you give."
)
NO_POINTS = "what the variance is made of, as there are no rows to ask about."
NOT_ASKED = "left-out rows and checks, which take longer; model.summary() has them."
NOT_CHECKED = "checks, which take longer; model.summary() has them."
CHECKS = "print(model.check()) has all checks; model.check(X_new, y_new) is the honest test."
GIVEN_CHECKS = "print(model.check(X_new, y_new)) asks whether error bars are honest."
INTERVALS = "model.predict_interval(X) covers new observations."


def fit_summary(
    fit: Fit,
    title: str,
    names: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    light: bool = False,
) -> Summary:
    """What was fitted, in words.

    Parameters
    ----------
    fit : Fit
        The fit.
    title : str
        What to call it.
    names : sequence of str
        Names of the inputs.
    columns : sequence of str, optional
        Column of the original table that each input was made from. Inputs of one column are
        added up.
    light : bool, default=False
        Whether to leave out all that has to be computed.

    Returns
    -------
    summary : Summary
        ``print`` it, or read its fields.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.summary : The same for an estimator.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> from ulmus.diagnostics import fit_summary
    >>> print(str(fit_summary(model.fitted_, "A sine", ["angle"], light=True)).splitlines()[0])
    A sine: 100 rows, 1 input.
    """
    basics = _basics(fit, title, names if columns is None else columns)
    if light:
        if fit.rows is None:
            return replace(basics, notes=(NO_ROWS,))
        if fit.awaits_folds:
            return replace(basics, notes=(NOT_ASKED,))
        return replace(basics, **_left_out(fit, fit.rows), notes=(NOT_CHECKED,))
    parts: dict[str, Any] = {"notes": (NO_ROWS,)}
    if fit.rows is not None:
        # Before all else: it learns what error bars need, and keeps warnings to itself.
        findings = diagnostic_report(fit, names=names).findings
        bad = tuple(f for f in findings if f.light != "green")
        parts = {"warnings": bad, "notes": (), **_left_out(fit, fit.rows)}
    points = _some_rows(fit)
    if points.shape[0] == 0:
        parts["notes"] += (NO_POINTS,)
    else:
        parts |= _variance(fit, points)
    whole = replace(basics, **parts)
    return replace(whole, advice=tuple(_advice(whole, fit)))


# ---------------------------------------------------------------- what is known


def _basics(fit: Fit, title: str, names: Sequence[str]) -> Summary:
    """What every fit knows."""
    ensemble, activation = fit.ensemble, fit.ensemble.layer.activation
    target = _target(fit)
    sigma2 = fit.sigma2 / fit.mean_weight
    share = None if target is None else sigma2 / np.where(target.sd > 0, target.sd, np.nan) ** 2
    return Summary(
        title=title,
        n_rows=fit.n_rows,
        n_features=len(set(names)),
        n_outputs=None if fit.one_output else ensemble.n_outputs,
        target_mean=_each(fit, None if target is None else target.mean),
        target_sd=_each(fit, None if target is None else target.sd),
        n_members=ensemble.n_members,
        n_units=int(ensemble.layer.W.shape[1]),
        activation=activation if isinstance(activation, str) else _name(activation),
        input_map=None if fit.input_map is None else fit.input_map.kind,
        alpha=_each(fit, ensemble.per_output(p.smoother.alpha for p in ensemble.regressions)),
        dof=_each(fit, fit.gamma),
        noise_sd=_each(fit, np.sqrt(sigma2)),
        noise_modelled=_noise_modelled(fit),
        noise_range=_noise_range(fit),
        noise_share=_each(fit, share),
        dependence=_dependence(fit),
        relevance=_relevance(fit, names),
        coverage_level=COVERAGE_LEVEL,
    )


class Target(NamedTuple):
    """Mean and standard deviation of the outputs, each of shape (K,)."""

    mean: np.ndarray
    sd: np.ndarray


def _target(fit: Fit) -> Target | None:
    """Moments of y: of the rows, or of the sums of a stream, which know them by the intercept."""
    ensemble, unit = fit.ensemble, fit.ensemble.unit
    if fit.rows is not None:
        used, root = fit.rows.data.used, fit.rows.data.root_weight
        y = fit.rows.data.y[:, used] / unit[:, None]
        weight = np.ones(y.shape[1]) if root is None else root[used] ** 2
        mean = np.average(y, axis=1, weights=weight)
        sd = np.sqrt(np.average((y - mean[:, None]) ** 2, axis=1, weights=weight))
        return Target(unit * mean, unit * np.where(np.ptp(y, axis=1) > 0, sd, 0.0))
    if not ensemble.layer.constant:
        return None
    mass = ensemble.regressions[0].smoother.mass
    first = fit.per_regression(lambda part: part.smoother.q[0, 0, :])
    square = np.maximum(fit.per_regression(lambda part: part.y_square), 0.0)
    return Target(ensemble.shift + unit * first / np.sqrt(mass), unit * np.sqrt(square / mass))


def _noise_modelled(fit: Fit) -> Any:
    """Whether the noise of each output is a function of the inputs."""
    model = fit.noise_model
    varies = np.zeros(fit.ensemble.n_outputs) if model is None else np.isnan(model.flat)
    return bool(varies[0]) if fit.one_output else tuple(map(bool, varies))


def _noise_range(fit: Fit) -> Any:
    """Smallest and largest standard deviation of the noise of each output that models it."""
    if fit.noise_model is None or (fit.rows is None and fit.points.shape[0] == 0):
        return None
    if fit.rows is None:
        noise = fit.noise_variance(fit.points).T
    else:
        scale = fit.ensemble.unit[:, None] ** 2 / fit.mean_weight
        noise = fit.rows.noise[:, fit.rows.data.used] * scale
    sd = np.sqrt(noise)
    ranges = [
        (float(np.min(values)), float(np.max(values))) if np.isnan(flat) else None
        for values, flat in zip(sd, fit.noise_model.flat, strict=True)
    ]
    return ranges[0] if fit.one_output else tuple(ranges)


def _dependence(fit: Fit) -> Any:
    """How the noise of each output hangs together, in words."""
    if fit.noise_covariance is None:
        return None
    phrases = tuple(map(correlation_text, fit.noise_covariance))
    return phrases[0] if fit.one_output else phrases


def _relevance(fit: Fit, names: Sequence[str]) -> tuple[Relevance, ...]:
    """Shares of the inputs, those of the same name added up, as if these were independent."""
    found = fit.input_map
    if found is None or found.relevance is None or found.deviation is None:
        return ()
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        groups.setdefault(str(name), []).append(j)
    shares = [
        Relevance(
            name,
            float(np.sum(found.relevance[inputs])),
            float(np.sqrt(np.sum(found.deviation[inputs] ** 2))),
        )
        for name, inputs in groups.items()
    ]
    return tuple(sorted(shares, key=lambda relevance: -relevance.share))


# ---------------------------------------------------------------- what is computed


def _left_out(fit: Fit, rows: TrainingRows) -> dict[str, Any]:
    """Errors of the rows left out, and how many of them their intervals cover."""
    found = leave_one_out_accuracy(fit, rows)
    errors = scaled_residuals(fit, rows)
    covered = np.array([np.mean(left_out_cover(e, (COVERAGE_LEVEL,))) for e in errors])
    values = {**found._asdict(), "coverage": covered}
    return {name: _each(fit, value) for name, value in values.items()}


def _some_rows(fit: Fit) -> Array:
    """Training rows spread over the table, or those that a stream keeps."""
    if fit.rows is None:
        return fit.points
    return taken_rows(fit.rows.data.X, fit.rows.data.spread_out(MEMBER_POINTS))


def _variance(fit: Fit, X: Array) -> dict[str, Any]:
    """What the variance of predictions is made of, on average, and how many members suffice."""
    parts = fit.parts(X)
    M, choice = parts.n_members, fit.choice_variance(X)
    members = parts.spread / M
    data = np.maximum(never_negative(fit.estimates[0], parts) - members, 0.0)
    sums = np.stack([np.sum(part, axis=0) for part in (data, members, choice)])
    total = np.sum(sums, axis=0)
    known = (total > 0) & ~noiseless(fit)
    shares = [
        VarianceShares(*map(float, sums[:, k] / total[k])) if known[k] else None
        for k in range(len(total))
    ]
    enough = enough_members(parts, TOLERANCE, QUANTILE) if M > 1 else None
    return {
        "variance_shares": shares[0] if fit.one_output else tuple(shares),
        "enough_members": enough,
    }


def _advice(summary: Summary, fit: Fit) -> Iterable[str]:
    """What to do next."""
    enough, M = summary.enough_members, summary.n_members
    if M == 1:
        yield "error bars of an ELMEnsembleRegressor hold what other random weights would change."
    elif enough is not None and enough > MORE_MEMBERS * M:
        yield f"n_estimators={enough} would make predictions depend less on random_state."
    if _is_mostly_noise(summary, fit):
        yield (
            "left-out errors are mostly noise: neither rows nor members will lower them much, "
            "inputs that explain the noise would."
        )
    yield CHECKS if fit.rows is not None else GIVEN_CHECKS
    yield INTERVALS


def _is_mostly_noise(summary: Summary, fit: Fit) -> bool:
    """Whether a better fit of the same inputs would hardly have smaller errors.

    What looks like noise may be misfit, so that signs of it, or too few rows to see them, say no.
    """
    if summary.rmse is None or summary.warnings is None or np.any(noiseless(fit)):
        return False
    if any(finding.name.startswith(SIGNS_OF_MISFIT) for finding in summary.warnings):
        return False
    noise, rmse = np.atleast_1d(summary.noise_sd), np.atleast_1d(summary.rmse)
    enough = fit.n_rows >= ROWS_PER_DOF * np.max(fit.gamma)
    return bool(enough and np.all(noise >= MOSTLY_NOISE * rmse))


def _each(fit: Fit, values: Any) -> Any:
    """A number if y had one axis, else a tuple of one for each output; None stays None."""
    if values is None:
        return None
    numbers = tuple(float(value) for value in to_numpy(values))
    return numbers[0] if fit.one_output else numbers


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
