"""Error bars in the reports of skore: scores of intervals and distributions, and our check.

skore evaluates a model on rows that it has not seen, and lets others register metrics and checks on
its reports. Here are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np

from ulmus.estimators._parameters import checked_levels
from ulmus.estimators._presentation import DOCUMENTATION
from ulmus.honesty import Finding
from ulmus.metrics import coverage, crps_quantiles, interval_score, mean_width
from ulmus.pipelines import answers

try:
    from skore import CheckNotApplicable
except ImportError as error:
    raise ImportError(
        "ulmus.skore needs the package skore, which is not installed; run `pip install skore`."
    ) from error

__all__ = ["add_checks", "add_metrics"]

# Levels of the quantiles that the CRPS is summed over.
QUANTILES = np.arange(1, 200) / 200
OURS_ONLY = "the model has no error bars of ulmus."


def add_metrics(report: Any, confidence_level: float = 0.95) -> None:
    """Add scores of error bars to the metrics of a report.

    Parameters
    ----------
    report : skore.EstimatorReport, CrossValidationReport or ComparisonReport
        A report about an ELMEnsembleRegressor, an ELMRegressor, or a Pipeline or search that ends
        in one. In a comparison, other models score NaN, as they have no error bars.
    confidence_level : float, default=0.95
        Level of the prediction intervals.

    Notes
    -----
    ===================== ====================================================================
    name                  what it is
    ===================== ====================================================================
    ``interval_coverage`` share of observations in their prediction intervals; best at the level
    ``interval_width``    mean width of the intervals, in units of the target
    ``interval_score``    width, and a penalty for each miss; lower is better
    ``crps``              of ``predict_dist``, from 199 of its quantiles; lower is better
    ``log_score``         mean log density of ``predict_dist``; higher is better
    ===================== ====================================================================

    ``report.metrics.summarize()`` has them, for the test rows; scores of training rows
    (``data_source="train"``) flatter every model. Several outputs are averaged. skore knows only
    metrics that should be large or small: coverage is neither, and is marked so.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skore import evaluate
    >>> from ulmus import ELMEnsembleRegressor
    >>> import ulmus.skore
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ELMEnsembleRegressor(n_neurons=50, input_map=None, random_state=0)
    >>> report = evaluate(model, X, y, splitter=0.2)
    >>> ulmus.skore.add_metrics(report, confidence_level=0.9)
    >>> bool(report.metrics.get("interval_coverage") > 0.8)
    True
    """
    (level,) = checked_levels([confidence_level])
    for name, words, better, metric in (
        ("interval_coverage", f"Coverage of {level:.4g} intervals", None, interval_coverage),
        ("interval_width", f"Width of {level:.4g} intervals", False, interval_width),
        ("interval_score", f"Score of {level:.4g} intervals", False, score_of_intervals),
    ):
        _add(report, metric, name, words, better, confidence_level=level)
    _add(report, crps, "crps", "CRPS", False)
    _add(report, log_score, "log_score", "Log score", True)


def add_checks(report: Any) -> None:
    """Add what ``check`` finds about the error bars to the checks of a report.

    Parameters
    ----------
    report : skore.EstimatorReport, CrossValidationReport or ComparisonReport
        A report about an ELMEnsembleRegressor, an ELMRegressor, or a Pipeline or search that ends
        in one. The checks do not apply to other models of a comparison.

    Notes
    -----
    ``report.checks.summarize()`` has them: ``ULM001``, an issue, if a light is red, and ``ULM002``,
    a tip, if one is yellow, with the findings and their remedies. The test rows are asked. skore
    gives a check one severity and one text, so that findings of a colour come together; a report
    of cross-validation names the split of each. They count as slow, and skore runs them when
    ``summarize`` is called, not when a notebook shows the report.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skore import evaluate
    >>> from ulmus import ELMEnsembleRegressor
    >>> import ulmus.skore
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ELMEnsembleRegressor(n_neurons=50, input_map=None, random_state=0)
    >>> report = evaluate(model, X, y, splitter=0.2)
    >>> ulmus.skore.add_checks(report)
    >>> report.checks.available()[-2:]
    ['ULM001 - Error bars contradict the data', 'ULM002 - Error bars are doubtful']
    """
    report.checks.add([HonestyCheck(*parts) for parts in CHECKS])


def _add(
    report: Any,
    metric: Callable[..., float],
    name: str,
    words: str,
    better: bool | None,
    **options: Any,
) -> None:
    report.metrics.add(
        metric, name=name, verbose_name=words, greater_is_better=better, position="last", **options
    )


# ---------------------------------------------------------------- scores, as skore calls them


def _of_ours(score: Callable[..., Any]) -> Callable[..., float]:
    """A score of models that answer, and NaN for all others."""

    @wraps(score)
    def scored(estimator: Any, X: Any, y: Any, **options: Any) -> float:
        model = _answering(estimator)
        if model is None:
            return float("nan")
        return float(score(model, X, np.asarray(y, dtype=float), **options))

    return scored


@_of_ours
def interval_coverage(model: Any, X: Any, y: Any, confidence_level: float) -> Any:
    """Share of observations in their prediction intervals."""
    return coverage(y, model.predict_interval(X, confidence_level))


@_of_ours
def interval_width(model: Any, X: Any, y: Any, confidence_level: float) -> Any:
    """Mean width of prediction intervals."""
    return mean_width(model.predict_interval(X, confidence_level))


@_of_ours
def score_of_intervals(model: Any, X: Any, y: Any, confidence_level: float) -> Any:
    """Mean interval score of prediction intervals."""
    return interval_score(y, model.predict_interval(X, confidence_level), confidence_level)


@_of_ours
def crps(model: Any, X: Any, y: Any) -> float:
    """Continuous ranked probability score of the predictive distribution."""
    levels = QUANTILES.reshape(-1, *[1] * y.ndim)
    quantiles = np.moveaxis(model.predict_dist(X).ppf(levels), 0, -1)
    return crps_quantiles(y, quantiles, QUANTILES)


@_of_ours
def log_score(model: Any, X: Any, y: Any) -> float:
    """Mean log density of the predictive distribution."""
    return np.mean(model.predict_dist(X).logpdf(y))


def _answering(estimator: Any) -> Any:
    """The model as one that answers; None if it is not ours."""
    try:
        return answers(estimator)
    except ValueError:
        return None


# ---------------------------------------------------------------- checks, as skore calls them


@dataclass
class HonestyCheck:
    """Findings of one light, as a check of skore.

    Parameters
    ----------
    code, title : str
        What skore calls it.
    light : {"red", "yellow"}
        Light of the findings.
    severity : {"issue", "tip"}
        How skore lists them.
    """

    code: str
    title: str
    light: str
    severity: str
    report_types: list[str] = field(default_factory=lambda: ["estimator", "cross-validation"])
    docs_url: str = f"{DOCUMENTATION}/guide/honesty.html"
    slow: bool = True

    def check_function(self, report: Any) -> str | None:
        """The findings in words; None if there are none.

        Parameters
        ----------
        report : skore.EstimatorReport or CrossValidationReport
            The report.

        Returns
        -------
        explanation : str or None
            What was found.
        """
        splits = getattr(report, "reports_", None)
        if splits is None:
            return " ".join(map(_words, self._findings(report))) or None
        found = [
            f"Split {i}: {_words(finding)}"
            for i, split in enumerate(splits)
            for finding in self._findings(split)
        ]
        return " ".join(found) or None

    def _findings(self, report: Any) -> list[Finding]:
        asked = _answering(report.estimator_)
        if asked is None:
            raise CheckNotApplicable(OURS_ONLY)
        findings = asked.check(report.X_test, report.y_test).findings
        return [finding for finding in findings if finding.light == self.light]


CHECKS = (
    ("ULM001", "Error bars contradict the data", "red", "issue"),
    ("ULM002", "Error bars are doubtful", "yellow", "tip"),
)


def _words(finding: Finding) -> str:
    return f"{finding.name}: {finding.says} Remedy: {finding.remedy}"
