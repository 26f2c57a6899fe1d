"""What the variance is made of, and what more members would gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ulmus.core.variance.estimates import enough_members, variance_at
from ulmus.diagnostics.fit_checks import QUANTILE, TOLERANCE
from ulmus.plot._size import ENDLESS, member_counts
from ulmus.plot._variance import MODEL, OBSERVATION, model_parts, positive_stack
from ulmus.report.subject import Subject

FloatArray = npt.NDArray[np.float64]

SAMPLE_ROWS = 500


@dataclass(frozen=True)
class Parts:
    """Mean variances over a sample of rows.

    Parameters
    ----------
    prediction : dict of str to float
        Parts of the variance of a prediction, by what they come from.
    noise : float
        Variance of a new observation around the function.
    n_rows : int
        Rows of the sample.
    """

    prediction: dict[str, float]
    noise: float
    n_rows: int

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the parts in the variance of a prediction."""
        total = sum(self.prediction.values())
        return {name: v / total if total > 0 else 0.0 for name, v in self.prediction.items()}

    @property
    def observation_shares(self) -> dict[str, float]:
        """Shares of the parts and the noise in the variance of a new observation."""
        everything = self.prediction | {OBSERVATION: self.noise}
        total = sum(everything.values())
        return {name: v / total if total > 0 else 0.0 for name, v in everything.items()}


@dataclass(frozen=True)
class Members:
    """Variance of the prediction against the number of members, mean over a sample of rows."""

    counts: tuple[int, ...]
    variance: FloatArray
    limit: float
    fitted: int
    suggested: int


def parts(subject: Subject) -> Parts:
    """What the variance at a sample of rows is made of."""
    where = subject.sample(SAMPLE_ROWS)
    table, asked = subject.rows(where), subject.asked
    if subject.fit.ensemble.n_members > 1:
        found = positive_stack(model_parts(asked, table, 0))
    else:
        found = {MODEL: np.asarray(asked.predict_var(table, component="model"))}
    noise = np.mean(asked.predict_var(table, component="noise"))
    means = {name: float(np.mean(values)) for name, values in found.items()}
    return Parts(means, float(noise), len(where))


def members(subject: Subject) -> Members | None:
    """What other numbers of members would give; None for a single member."""
    fitted = subject.fit.ensemble.n_members
    if fitted < 2:
        return None
    table = subject.rows(subject.sample(SAMPLE_ROWS))
    of_members = subject.fit.parts(subject.asked._points_of(table))
    suggested = enough_members(of_members, TOLERANCE, QUANTILE)
    counts = tuple(int(n) for n in member_counts(max(4 * fitted, 2 * suggested)))
    *variance, limit = (float(np.mean(variance_at(of_members, n))) for n in (*counts, ENDLESS))
    return Members(counts, np.array(variance), limit, fitted, suggested)
