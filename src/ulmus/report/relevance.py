"""Relevance of the original columns: their shares in the prediction, and the figure of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import FloatArray
from ulmus.diagnostics.relevance import grouped_relevance
from ulmus.report.drawing import Figure, Grid, axes, numbers, plain
from ulmus.report.numbers import share
from ulmus.report.report_input import ReportInput

IntArray = npt.NDArray[np.intp]

# Inputs that are drawn.
MOST_INPUTS = 12
# Rows whose values are exchanged, and fewer where columns are many.
EXCHANGED_ROWS, EXCHANGES = 500, 50_000


@dataclass(frozen=True)
class RelevanceShares:
    """Shares of the inputs in the prediction, in decreasing order."""

    columns: IntArray  # (d,): indices of the columns
    names: tuple[str, ...]  # their names
    shares: FloatArray  # (d,): share of each
    # (d,): standard deviations, where the shares are those of the input map.
    deviations: FloatArray | None


def relevance(report_input: ReportInput) -> RelevanceShares:
    """Relevance of the original columns.

    That of the learned input map, as in ``summary``, where each input is derived from one column;
    behind other transformers, and without a map, the total effects of exchanging the values of a
    column between rows.
    """
    names, origins = report_input.names, report_input.origins
    found = None if origins is None else grouped_relevance(report_input.fit, origins, len(names))
    if found is None:
        most = min(EXCHANGED_ROWS, max(50, EXCHANGES // report_input.table.shape[1]))
        where = report_input.sample(most)
        shares = exchange_shares(report_input.predict, report_input.table.iloc[where])
        deviations = None
    else:
        shares, deviations = found
    order = np.argsort(-shares, kind="stable")
    return RelevanceShares(
        order,
        tuple(names[j] for j in order),
        shares[order],
        None if deviations is None else deviations[order],
    )


def exchange_shares(predict: Callable[[Any], FloatArray], table: Any) -> FloatArray:
    r"""Share of each column in the prediction, by exchanging its values between rows.

    The total effect of a column (Jansen, 1999) is half the mean squared change of the prediction
    when its value is replaced by that of another row,

    .. math:: T_j = \tfrac{1}{2n} \sum_i \bigl(f(x_i) - f(x_i^{(j)})\bigr)^2,

    and its share is :math:`T_j / \sum_k T_k`; equal shares if no prediction changes.
    """
    # Each row takes the value of another one: a cycle through a random order.
    order = np.random.default_rng(0).permutation(len(table))
    others = np.empty_like(order)
    others[order] = np.roll(order, 1)
    before, effects = predict(table), np.zeros(table.shape[1])
    for j in range(table.shape[1]):
        changed = table.copy()
        changed.isetitem(j, table.iloc[others, j].to_numpy())
        effects[j] = np.mean((predict(changed) - before) ** 2) / 2
    total = np.sum(effects)
    return effects / total if total > 0 else np.full(len(effects), 1 / len(effects))


def relevance_figure(found: RelevanceShares) -> Figure:
    """Shares of the most relevant inputs in the prediction."""
    n = min(MOST_INPUTS, len(found.names))
    names, shares = found.names[:n], found.shares[:n]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "x": numbers(shares),
        "y": list(range(n)),
        "marker": {"color": "--sky", "line": {"color": "--ink", "width": 0.5}},
        "hovertemplate": "%{x:.1%}<extra></extra>",
    }
    if found.deviations is not None:
        error = found.deviations[:n]
        bars["error_x"] = {
            "array": numbers(error),
            # A share is never negative.
            "arrayminus": numbers(np.minimum(error, shares)),
            "color": "--ink",
            "thickness": 1.2,
        }
    ticks = {
        "tickvals": list(range(n)),
        "ticktext": [plain(name) for name in names],
        "range": [n - 0.4, -0.6],
    }
    shares_axis = {"tickformat": ".0%", "rangemode": "tozero", "nticks": 4, "tickangle": 0}
    layout = axes("share", "", shares_axis, ticks)
    layout["height"] = 110 + 26 * n
    listed = ", ".join(f"{name} {share(s)}" for name, s in zip(names[:5], shares, strict=False))
    sd = found.deviations
    rows = [
        (name, f"{s:.1%}", "" if sd is None else f"{sd[i]:.1%}")
        for i, (name, s) in enumerate(zip(names, shares, strict=True))
    ]
    return Figure(
        f"Bars of the share of each input in the prediction: {listed}.",
        [bars],
        layout,
        Grid(("input", "share", "standard deviation"), tuple(rows)),
    )
