"""Components of the variance of predictions, and its dependence on the ensemble size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.variance.estimates import sufficient_members, variance_at
from ulmus.diagnostics.checks.fit_checks import QUANTILE, TOLERANCE
from ulmus.plot._ensemble_size import INFINITE, member_counts
from ulmus.plot._link_scale import variance_factor
from ulmus.plot._variance import (
    MODEL,
    OBSERVATION,
    model_components,
    positive_stack,
)
from ulmus.report.report_input import ReportInput

SAMPLE_ROWS = 500


@dataclass(frozen=True)
class MeanVarianceComponents:
    """Mean variances over a sample of rows."""

    prediction: dict[str, float]  # components of the variance of a prediction, by their source
    noise: float  # noise variance of a new observation
    n_rows: int  # rows of the sample

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the components in the variance of a prediction."""
        total = sum(self.prediction.values())
        return {name: v / total if total > 0 else 0.0 for name, v in self.prediction.items()}

    @property
    def observation_shares(self) -> dict[str, float]:
        """Shares of the components and the noise in the variance of a new observation."""
        everything = self.prediction | {OBSERVATION: self.noise}
        total = sum(everything.values())
        return {name: v / total if total > 0 else 0.0 for name, v in everything.items()}


@dataclass(frozen=True)
class EnsembleSizeCurve:
    """Variance of the prediction against the number of members, mean over a sample of rows."""

    counts: tuple[int, ...]
    variance: FloatArray
    limit: float
    fitted: int
    suggested: int


def variance_components(report_input: ReportInput) -> MeanVarianceComponents:
    """Variance components at a sample of rows."""
    where = report_input.sample(SAMPLE_ROWS)
    table, inference = report_input.rows(where), report_input.inference
    if report_input.fit.ensemble.n_members > 1:
        found = positive_stack(model_components(inference, table, 0))
    else:
        found = {MODEL: np.asarray(inference.predict_var(table, component="model"))}
    # At the mean weight of the training rows; counts and point masses have none.
    fit = report_input.fit
    weight = None if fit.has_working_weights else np.full(len(where), fit.mean_weight)
    noise = np.mean(inference.predict_var(table, component="noise", sample_weight=weight))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return MeanVarianceComponents(means, float(noise), len(where))


def ensemble_size_curve(report_input: ReportInput) -> EnsembleSizeCurve | None:
    """Variance for other numbers of members; None for a single one."""
    fitted = report_input.fit.ensemble.n_members
    if fitted < 2:
        return None
    table = report_input.rows(report_input.sample(SAMPLE_ROWS))
    of_members = report_input.fit.parts(report_input.inference._table_points(table))
    suggested = sufficient_members(of_members, TOLERANCE, QUANTILE)
    counts = tuple(int(n) for n in member_counts(max(4 * fitted, 2 * suggested)))
    factor = variance_factor(report_input.inference, table, 0)
    *variance, limit = (
        float(np.mean(factor * variance_at(of_members, n)[:, 0])) for n in (*counts, INFINITE)
    )
    return EnsembleSizeCurve(counts, np.array(variance), limit, fitted, suggested)
