"""Training rows of a page: where they are, for the distance of a point, and its start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import dense, taken_rows, to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.misfit import mapped
from ulmus.explore.controls import Columns
from ulmus.intervals.response import observed_outputs
from ulmus.tables import BooleanColumn

# Largest number of mapped inputs of all rows that a page contains: half a megabyte.
MOST_ELEMENTS = 2**17
SEED = 0


@dataclass(frozen=True)
class ShownRows:
    """Some training rows."""

    index: np.ndarray  # (s,): their positions in the table of the fit
    codes: np.ndarray  # (s, columns): codes of their cells
    y: np.ndarray  # (s,): observations
    mapped: np.ndarray  # (s, d'): inputs behind the map, whose distances the prediction depends on


def shown_rows(fit: Fit, columns: Columns, k: int, most_rows: int) -> ShownRows | None:
    """At most so many of the rows, drawn at random; None for a fit without rows."""
    if fit.rows is None:
        return None
    used = np.flatnonzero(fit.rows.data.used)
    most = min(most_rows, MOST_ELEMENTS // max(1, fit.ensemble.layer.W.shape[2]))
    if len(used) > most:
        used = np.sort(np.random.default_rng(SEED).permutation(used)[:most])
    X = to_numpy(dense(taken_rows(fit.rows.data.X, used))).astype(float)
    y = observed_outputs(fit)[k, used]
    return ShownRows(used, columns.codes(X), y, mapped(fit.ensemble, X, fit.map_matrix))


def start_codes(fit: Fit, columns: Columns, rows: ShownRows | None) -> np.ndarray:
    """Codes of a typical row: the training row that is nearest to the median of all.

    Missing cells have typical values, and without rows all cells have.
    """
    typical = np.array([_typical(fit, columns, j) for j in range(len(columns.columns))])
    if rows is None or not len(rows.index):
        return typical
    distance = np.abs(rows.mapped - np.median(rows.mapped, axis=0)).sum(axis=1)
    complete = np.isfinite(rows.codes).sum(axis=1)
    best = np.lexsort((distance, -complete))[0]
    return np.where(np.isfinite(rows.codes[best]), rows.codes[best], typical)


def _typical(fit: Fit, columns: Columns, j: int) -> float:
    """The most frequent category, or the mean of a column."""
    column = columns.columns[j]
    if column.categorical:
        return float(np.argmax(column.shares))  # type: ignore[attr-defined]
    mean = float(fit.scale.mean[columns.starts[j]])
    return float(np.round(mean)) if isinstance(column, BooleanColumn) else mean
