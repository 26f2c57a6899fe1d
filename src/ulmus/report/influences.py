"""Which inputs matter: the relevance of each, and the function along the most relevant ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ulmus.plot._curves import feature_columns
from ulmus.plot._points import FEW_VALUES
from ulmus.report.columns import DATES, NUMBERS, column_kind
from ulmus.report.subject import Subject

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Inputs that are drawn.
MOST_INPUTS = 12
# Rows that a curve is averaged over, values of its grid, and the quantiles that it lies between.
CURVE_ROWS, CURVE_POINTS, ENDS = 300, 30, (0.02, 0.98)
MOST_CATEGORIES = 20
# Rows whose values are exchanged, and fewer where columns are many.
EXCHANGED_ROWS, EXCHANGES = 500, 50_000


@dataclass(frozen=True)
class Relevance:
    """Shares of the inputs in the prediction, the largest first.

    Parameters
    ----------
    columns : ndarray of int, shape (d,)
        Numbers of the columns.
    names : tuple of str
        Their names.
    shares : ndarray of shape (d,)
        Share of each.
    deviations : ndarray of shape (d,) or None
        Standard deviations, where the map has them.
    """

    columns: IntArray
    names: tuple[str, ...]
    shares: FloatArray
    deviations: FloatArray | None


@dataclass(frozen=True)
class Dependence:
    """The mean prediction along one input.

    Parameters
    ----------
    name : str
        The input.
    values : tuple
        Its values, numbers or categories.
    estimate, low, high : ndarray of shape (p,)
        Mean prediction there, with its 95% band.
    connected : bool
        Whether a line through the values makes sense.
    """

    name: str
    values: tuple[Any, ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    connected: bool


def relevance(subject: Subject) -> Relevance:
    """Relevance of the original columns.

    That of the learned map where the columns are the inputs themselves; behind transformers, and
    without a map, the total effects of exchanging the values of a column between rows.
    """
    deviations = None
    learned = getattr(subject.fit.input_map, "relevance", None)
    if learned is not None and subject.model is subject.outer:
        shares, deviations = learned, subject.model.feature_relevance_std_
    else:
        most = min(EXCHANGED_ROWS, max(50, EXCHANGES // subject.table.shape[1]))
        where = subject.sample(most)
        shares = exchange_shares(_prediction(subject), subject.table.iloc[where])
    order = np.argsort(-shares, kind="stable")
    names = subject.names
    return Relevance(
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

    and its share is :math:`T_j / \sum_k T_k`; equal shares where nothing changes at all.

    Parameters
    ----------
    predict : callable
        From a data frame to predictions (n,).
    table : pandas.DataFrame of shape (n, d)
        Rows that exchange values.
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


def _prediction(subject: Subject) -> Callable[[Any], FloatArray]:
    def predict(table: Any) -> FloatArray:
        given = table if subject.framed else table.to_numpy()
        return np.asarray(subject.asked.predict(given), dtype=float)

    return predict


def dependences(subject: Subject, columns: IntArray) -> tuple[Dependence, ...]:
    """The function along some columns, averaged over a sample of rows."""
    table, out = subject.rows(subject.sample(CURVE_ROWS)), []
    for j in columns:
        grid = _grid(subject.table.iloc[:, int(j)])
        if len(grid) < 2:
            continue
        frame = subject.asked.partial_dependence(table, int(j), grid=grid)
        (name,) = feature_columns(frame)
        numbers = isinstance(grid[0], float)
        estimate, low, high = (
            np.asarray(frame[each], dtype=float) for each in ("estimate", "conf_low", "conf_high")
        )
        out.append(
            Dependence(
                subject.names[int(j)],
                tuple(frame[name]),
                estimate,
                low,
                high,
                numbers and len(grid) > FEW_VALUES,
            )
        )
    return tuple(out)


def _grid(column: Any) -> list[Any]:
    """Values of a column at which the function is drawn; none for dates."""
    known, kind = column.dropna(), column_kind(column)
    if kind == DATES:
        return []
    if kind != NUMBERS:
        counts = known.value_counts()
        kept = set(counts.index[:MOST_CATEGORIES])
        ordered = getattr(getattr(column, "cat", None), "categories", None)
        among = sorted(kept, key=str) if ordered is None else [v for v in ordered if v in kept]
        return [value for value in among if counts[value] > 0]
    values = np.unique(known.to_numpy(dtype=float))
    if len(values) > FEW_VALUES:
        low, high = np.quantile(known.to_numpy(dtype=float), ENDS)
        if low == high:
            low, high = values[0], values[-1]
        values = np.linspace(low, high, CURVE_POINTS)
    return [float(v) for v in values]
