"""Maps of the inputs that were learned without a part of the rows, and fits behind them.

A row pulls the learned map towards itself, so that its left-out residual, for a given map, is too
small, and a standard error for a given map leaves out what choosing it costs. Both are seen when
the map is learned again without a fold of the rows: a row is then left out of the regression behind
a map that never saw it, and the predictions behind the maps of different folds differ by what the
choice of a map is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ulmus.core.backend import Array, taken_rows
from ulmus.core.ensemble import Ensemble
from ulmus.core.fitting import Specification, fitted_rows
from ulmus.core.recipe import Recipe
from ulmus.core.scaling import FeatureScale
from ulmus.core.source import RowBlocks

# Folds, each left out of learning a map once.
N_FOLDS = 5
# Tables with at most so many rows get folds without being asked. Beyond it a row's pull on the
# map is small (benchmarks/coverage.py, part "tuned"), and learning a map five times is not cheap.
MOST_FOLDED_ROWS = 400


@dataclass(frozen=True)
class Fold:
    """A fit of all rows behind a map that was learned without some of them.

    Parameters
    ----------
    rows : ndarray of shape (f,)
        The rows that the map has not seen.
    ensemble : Ensemble
        The members behind it.
    loo : ndarray of shape (M, K, f)
        Left-out residuals of these rows by each member, in the ensemble's units of y.
    """

    rows: np.ndarray
    ensemble: Ensemble
    loo: np.ndarray

    @property
    def residuals(self) -> np.ndarray:
        """Left-out residuals of the ensemble in the units of y, shape (K, f)."""
        return self.loo.mean(axis=0) * self.ensemble.unit[:, None]


@dataclass(frozen=True)
class Retuning:
    """What is needed to learn the map again.

    Parameters
    ----------
    recipe : Recipe
        Parameters of the hidden layer.
    scale : FeatureScale
        Scale of the inputs of all rows.
    spec : Specification
        How to fit.
    """

    recipe: Recipe
    scale: FeatureScale
    spec: Specification

    def folds(self, data: RowBlocks) -> tuple[Fold, ...]:
        """A fit for each fold of the rows."""
        used = np.flatnonzero(data.used)
        shuffled = np.random.default_rng(self.recipe.map_seed).permutation(used)
        return tuple(self._fold(data, np.sort(part)) for part in np.array_split(shuffled, N_FOLDS))

    def _fold(self, data: RowBlocks, rows: np.ndarray) -> Fold:
        others = np.setdiff1d(np.flatnonzero(data.used), rows)
        layer, _ = self.recipe.layer(some_rows(data, others), self.scale, data.reference)
        fitted = fitted_rows(
            data, layer, replace(self.spec, estimates=(), noise_variance="residual")
        )
        loo = fitted.ensemble.ordered([record["loo"] for record in fitted.records], axis=1)
        return Fold(rows, fitted.ensemble, loo[:, :, rows])


def some_rows(data: RowBlocks, rows: np.ndarray) -> RowBlocks:
    """Rows in memory, by index."""
    weight = None if data.root_weight is None else data.root_weight[rows]
    return replace(data, X=taken_rows(data.X, rows), y=data.y[:, rows], root_weight=weight)


def unpulled(folds: tuple[Fold, ...], residuals: np.ndarray) -> np.ndarray:
    """Left-out residuals (K, n) with those of the folds in the place of each row's own."""
    out = residuals.copy()
    for fold in folds:
        out[:, fold.rows] = fold.residuals
    return out


def map_variance(folds: tuple[Fold, ...], X: Array) -> np.ndarray:
    """Variance of the prediction that choosing a map costs, in the units of y, shape (K, p).

    It is the sample variance between the folds. The jackknife's factor for leaving out a fifth of
    the rows would hold for a smooth function of the rows; which inputs are kept is none, and with
    the factor standard errors come out at 1.1 to 1.8 of the truth, without it at 0.9 to 1.3.
    """
    return np.var([fold.ensemble.mean(X) for fold in folds], axis=0, ddof=1)
