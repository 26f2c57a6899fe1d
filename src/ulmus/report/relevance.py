"""Relevance of the original columns: their shares in the prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import FloatArray
from ulmus.diagnostics.relevance import grouped_relevance, relevance_text
from ulmus.report.report_input import ReportInput

IntArray = npt.NDArray[np.intp]

# Inputs that are drawn.
MOST_INPUTS = 12
# Predictions do not depend visibly on inputs of a smaller share.
LEAST_SHARE = 0.001
# Rows whose values are exchanged, and fewer where columns are many.
EXCHANGED_ROWS, EXCHANGES = 500, 50_000


@dataclass(frozen=True)
class RelevanceShares:
    """Shares of the inputs in the prediction, in decreasing order."""

    columns: IntArray  # (d,): indices of the columns
    names: tuple[str, ...]  # their names
    shares: FloatArray  # (d,): share of each
    deviations: FloatArray  # (d,): standard deviation of each
    from_map: bool  # whether they are those of the input map

    @property
    def relevant(self) -> IntArray:
        """The columns that predictions depend on, at most so many as are drawn."""
        depended_on = self.columns[self.shares >= LEAST_SHARE]
        return depended_on[:MOST_INPUTS]

    def text_of(self, name: str) -> str:
        """The share of an input and its standard deviation."""
        i = self.names.index(name)
        return relevance_text(float(self.shares[i]), float(self.deviations[i]))


def relevance(report_input: ReportInput) -> RelevanceShares:
    """Relevance of the original columns.

    That of the learned input map, as in ``summary``, where each input is derived from one column;
    behind other transformers, and without a map, the total effects of exchanging the values of a
    column between rows.
    """
    names, origins = report_input.names, report_input.origins
    found = None if origins is None else grouped_relevance(report_input.fit, origins, len(names))
    from_map = found is not None
    if found is None:
        most = min(EXCHANGED_ROWS, max(50, EXCHANGES // report_input.table.shape[1]))
        where = report_input.sample(most)
        found = exchange_shares(report_input.predict, report_input.table.iloc[where])
    shares, deviations = found
    order = np.argsort(-shares, kind="stable")
    return RelevanceShares(
        order, tuple(names[j] for j in order), shares[order], deviations[order], from_map
    )


def exchange_shares(
    predict: Callable[[Any], FloatArray], table: Any
) -> tuple[FloatArray, FloatArray]:
    r"""Share of each column in the prediction, by exchanging its values between rows; and its sd.

    The total effect of a column (Jansen, 1999) is half the mean squared change of the prediction
    when its value is replaced by that of another row,

    .. math:: T_j = \tfrac{1}{2n} \sum_i \bigl(f(x_i) - f(x_i^{(j)})\bigr)^2,

    and its share is :math:`T_j / \sum_k T_k`; equal shares if no prediction changes. Standard
    deviations are those of the sample of rows, by the delta method.
    """
    # Each row takes the value of another one: a cycle through a random order.
    order = np.random.default_rng(0).permutation(len(table))
    others = np.empty_like(order)
    others[order] = np.roll(order, 1)
    n, d = table.shape
    before, changes = predict(table), np.zeros((n, d))
    for j in range(d):
        changed = table.copy()
        changed.isetitem(j, table.iloc[others, j].to_numpy())
        changes[:, j] = (predict(changed) - before) ** 2 / 2
    effects = np.mean(changes, axis=0)
    total = np.sum(effects)
    if not total > 0:
        return np.full(d, 1 / d), np.zeros(d)
    shares = effects / total
    influence = (changes - shares * np.sum(changes, axis=1, keepdims=True)) / total
    return shares, np.std(influence, axis=0) / np.sqrt(n)
