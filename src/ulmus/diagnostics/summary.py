"""The summary of a fit: its numbers, read and computed from the fit.

A brief summary contains only what requires no computation. The complete one includes the
diagnostics and the components of the variance of predictions at some training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, FloatArray, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import leave_one_out_accuracy, noiseless
from ulmus.core.variance.estimates import never_negative, sufficient_members
from ulmus.diagnostics.check import diagnostic_report
from ulmus.diagnostics.checks.fit_checks import (
    MEMBER_POINTS,
    MORE_MEMBERS,
    QUANTILE,
    TOLERANCE,
)
from ulmus.diagnostics.checks.residual_correlation import correlation_text
from ulmus.diagnostics.leave_one_out import LeaveOneOutRows
from ulmus.diagnostics.noise_estimate import noise_sd, noise_sd_interval
from ulmus.diagnostics.relevance import grouped_relevance
from ulmus.diagnostics.summary_target import (
    family_fields,
    link_moments,
    of_regression,
    response_accuracy,
    response_noise_sd,
    target_moments,
)
from ulmus.diagnostics.summary_value import FeatureRelevance, NoiseShare, Summary, VarianceShares
from ulmus.messages import Message, Setting

COVERAGE_LEVEL = 0.95

NO_ROWS = (
    "leave-one-out accuracy and diagnostics: the fit keeps no training rows (streamed or "
    "compressed)."
)
NO_POINTS = "variance components: the fit keeps no rows to compute them at."
NOT_COMPUTED = "leave-one-out accuracy and diagnostics; summary() computes them."
NOT_CHECKED = "diagnostics; summary() computes them."


def fit_summary(
    fit: Fit,
    title: str,
    names: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    brief: bool = False,
) -> Summary:
    """The summary of a fit, as :meth:`ulmus.ELMEnsembleRegressor.summary` returns it.

    Parameters
    ----------
    fit : Fit
        The fit.
    title : str
        Title of the summary.
    names : sequence of str
        Names of the inputs.
    columns : sequence of str, optional
        Column of the original table that each input was derived from. The relevance of the inputs
        of one column is summed.
    brief : bool, default=False
        Whether to omit all that has to be computed.

    Returns
    -------
    summary : Summary
        To print, or with its fields to read.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> from ulmus.diagnostics import fit_summary
    >>> print(str(fit_summary(model.fitted_, "A sine", ["angle"], brief=True)).splitlines()[0])
    A sine: 60 rows, 1 input.
    """
    basics = _basics(fit, title, names if columns is None else columns)
    if brief:
        if fit.rows is None:
            return replace(basics, notes=(NO_ROWS,))
        if fit.needs_refits:
            return replace(basics, notes=(NOT_COMPUTED,))
        return replace(basics, **_leave_one_out_fields(fit, fit.rows), notes=(NOT_CHECKED,))
    parts: dict[str, Any] = {"notes": (NO_ROWS,)}
    if fit.rows is not None:
        # First: it computes what error bars require, and its warnings become findings.
        findings = diagnostic_report(fit, names=names).findings
        flagged = tuple(f for f in findings if f.severity != "ok")
        parts = {"warnings": flagged, "notes": (), **_leave_one_out_fields(fit, fit.rows)}
    points = _some_rows(fit)
    if points.shape[0] == 0:
        parts["notes"] += (NO_POINTS,)
    else:
        parts |= _variance_fields(fit, points)
    whole = replace(basics, **parts)
    return replace(whole, advice=tuple(_advice(whole)))


# ---------------------------------------------------------------- read from the fit


def _basics(fit: Fit, title: str, names: Sequence[str]) -> Summary:
    """Fields that require no computation."""
    ensemble, activation = fit.ensemble, fit.ensemble.layer.activation
    (mean, sd), (_, link_sd) = target_moments(fit), link_moments(fit)
    sigma2 = fit.sigma2 / fit.mean_weight
    phrases = None if fit.noise_covariance is None else map(correlation_text, fit.noise_covariance)
    share = None if link_sd is None else sigma2 / np.where(link_sd > 0, link_sd, np.nan) ** 2
    interval = noise_sd_interval(fit)
    return Summary(
        title=title,
        n_rows=fit.n_rows,
        n_features=len(set(names)),
        n_outputs=None if fit.one_output else ensemble.n_outputs,
        target_mean=_each(fit, mean),
        target_sd=_each(fit, sd),
        n_estimators=ensemble.n_members,
        n_neurons=int(ensemble.layer.W.shape[1]),
        activation=activation if isinstance(activation, str) else _name(activation),
        input_map=None if fit.input_map is None else fit.input_map.structure,
        alpha=_each(fit, ensemble.per_output(p.smoother.alpha for p in ensemble.regressions)),
        dof=_each(fit, fit.gamma),
        noise_sd=_one_or_all(fit, response_noise_sd(fit)),
        noise_sd_interval=None if interval is None else _of_noise(fit, interval.T),
        noise_modelled=_noise_modelled(fit),
        noise_range=_noise_range(fit),
        mean_weight=fit.mean_weight if fit.weights_differ else None,
        noise_share=None if share is None else _of_noise(fit, share),
        noise_covariance=None if phrases is None else _one_or_all(fit, phrases),
        relevance=_relevance(fit, names),
        coverage_level=COVERAGE_LEVEL,
        **{name: _one_or_all(fit, values) for name, values in family_fields(fit).items()},
    )


def _noise_modelled(fit: Fit) -> Any:
    """Whether the noise of each output is a function of the inputs."""
    model = fit.noise_model
    varies = np.zeros(fit.ensemble.n_outputs) if model is None else np.isnan(model.flat)
    return _one_or_all(fit, (bool(one) for one in of_regression(fit, varies)))


def _noise_range(fit: Fit) -> Any:
    """Range of the noise standard deviation of each output that differs between rows."""
    K, model = fit.ensemble.n_outputs, fit.noise_model
    varies = np.zeros(K, bool) if model is None else model.varies
    if not (fit.weights_differ or np.any(varies)):
        return None if model is None else _one_or_all(fit, [None] * K)
    if fit.rows is None and fit.noise_model is not None and fit.gap_points.shape[0] == 0:
        return None  # nothing is left to predict the noise variance at
    noise = _row_noise(fit)
    sd = np.sqrt(noise)
    ranges = [
        (float(np.min(values)), float(np.max(values))) if one or fit.weights_differ else None
        for values, one in zip(sd, varies, strict=True)
    ]
    return _one_or_all(fit, of_regression(fit, ranges))


def _row_noise(fit: Fit) -> np.ndarray:
    """Noise variance of the rows that are kept, by their weights if these differ, (K, n).

    Without rows, those of the smallest and the largest weight at the points that are kept.
    """
    rows, weights = fit.rows, fit.scale.weight_range
    if rows is None:
        if not fit.weights_differ:
            return fit.noise_variance(fit.gap_points).T
        if fit.noise_model is None:
            return np.stack([fit.sigma2 / weight for weight in weights], axis=1)
        each = (np.full(fit.gap_points.shape[0], weight) for weight in weights)
        return np.concatenate([fit.noise_variance(fit.gap_points, w).T for w in each], axis=1)
    used, root, weight = rows.data.used, rows.data.root_weight, np.array(fit.mean_weight)
    if root is not None and fit.weights_differ:
        weight = root[used] ** 2
    sigma2 = fit.per_regression(lambda part: part.noise_variance.sigma2)
    varies = np.zeros(len(sigma2), bool) if fit.noise_model is None else fit.noise_model.varies
    noise = np.where(varies[:, None], rows.noise[:, used], sigma2[:, None])
    return noise / weight * fit.ensemble.unit[:, None] ** 2


def _relevance(fit: Fit, names: Sequence[str]) -> tuple[FeatureRelevance, ...]:
    """Shares of the inputs, summed over those of the same name."""
    distinct = {name: i for i, name in enumerate(dict.fromkeys(map(str, names)))}
    found = grouped_relevance(fit, [distinct[str(name)] for name in names], len(distinct))
    if found is None:
        return ()
    shares = [
        FeatureRelevance(name, float(share), float(sd))
        for name, share, sd in zip(distinct, *found, strict=True)
    ]
    return tuple(sorted(shares, key=lambda relevance: -relevance.share))


# ---------------------------------------------------------------- computed


def _leave_one_out_fields(fit: Fit, rows: TrainingRows) -> dict[str, Any]:
    """Leave-one-out accuracy of the rows, and the coverage of their intervals."""
    found = LeaveOneOutRows.of(fit, rows)
    levels, K = (COVERAGE_LEVEL,), len(found.observed)
    covered = np.array([np.mean(found.coverage(k, levels)) for k in range(K)])
    values = {**response_accuracy(fit, rows, found)._asdict(), "coverage": covered}
    fields = {name: _each(fit, value) for name, value in values.items()}
    least = None if fit.response is None else _one_or_all(fit, map(bool, found.randomised))
    link_rmse = leave_one_out_accuracy(fit, rows).rmse
    shares = {"noise_share_of_error": _noise_in_errors(fit, link_rmse)}
    return fields | shares | {"coverage_at_least": least}


def _noise_in_errors(fit: Fit, rmse: FloatArray) -> Any:
    """Estimated noise variance over the mean squared leave-one-out error, with an interval.

    Both are on the scale of the regression.
    """
    interval = noise_sd_interval(fit)
    if interval is None or np.any(noiseless(fit)):
        return None
    shares = np.minimum((np.stack([noise_sd(fit), *interval]) / rmse) ** 2, 1.0)
    each = [NoiseShare(*map(float, share)) for share in shares.T]
    return _one_or_all(fit, of_regression(fit, each))


def _some_rows(fit: Fit) -> Array:
    """Training rows at equal steps, or the rows that a stream keeps."""
    if fit.rows is None:
        return fit.gap_points
    return taken_rows(fit.rows.data.X, fit.rows.data.evenly_spaced(MEMBER_POINTS))


def _variance_fields(fit: Fit, X: Array) -> dict[str, Any]:
    """Mean components of the variance of predictions, its forms, and how many members suffice."""
    parts = fit.parts(X)
    M, choice = parts.n_members, fit.choice_variance(X)
    members = parts.spread / M
    data = np.maximum(never_negative(fit.estimates[0], parts) - members, 0.0)
    sums = np.stack([np.sum(part, axis=0) for part in (data, members, choice)])
    total = np.sum(sums, axis=0)
    defined = (total > 0) & ~noiseless(fit)
    shares = [
        VarianceShares(*map(float, sums[:, k] / total[k])) if defined[k] else None
        for k in range(len(total))
    ]
    enough = sufficient_members(parts, TOLERANCE, QUANTILE) if M > 1 else None
    low_rank = fit.low_rank
    return {
        "variance_shares": _one_or_all(fit, shares),
        "variance_rank": None if low_rank is None else low_rank.rank,
        "variance_tolerance": None if low_rank is None else low_rank.tolerance,
        "suggested_n_estimators": enough,
    }


def _advice(summary: Summary) -> Iterable[Message]:
    """What the numbers of a summary suggest, besides its warnings."""
    enough, M = summary.suggested_n_estimators, summary.n_estimators
    warned = {finding.code for finding in summary.warnings or ()}
    if M == 1:
        text = "standard errors exclude the variance of the random weights"
        yield Message("one-network", text, suggestions=("fit an ELMEnsembleRegressor",))
    elif enough is not None and enough > MORE_MEMBERS * M and "members" not in warned:
        text = "predictions depend visibly on the seed"
        yield Message("few-members", text, suggestions=(Setting("n_estimators", enough),))


def _each(fit: Fit, values: Any) -> Any:
    """A number if y had one axis, else a tuple of one for each output; None stays None."""
    return None if values is None else _one_or_all(fit, map(float, to_numpy(values)))


def _of_noise(fit: Fit, values: FloatArray) -> Any:
    """Numbers (K,) or pairs (K, 2) of the noise of each output; None for other distributions."""
    plain = [tuple(map(float, one)) if np.ndim(one) else float(one) for one in values]
    return _one_or_all(fit, of_regression(fit, plain))


def _one_or_all(fit: Fit, values: Iterable[Any]) -> Any:
    """The only value if y had one axis, else a tuple."""
    return next(iter(values)) if fit.one_output else tuple(values)


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
