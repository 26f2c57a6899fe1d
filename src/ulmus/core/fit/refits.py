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
import scipy.sparse

from ulmus.core.arrays.backend import Array, like, namespace, taken_rows, to_numpy
from ulmus.core.data.scaling import feature_scale, checked_feature_scale
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.regression import Specification, fitted_rows
from ulmus.core.fit.layer_spec import LayerSpec
from ulmus.core.layer.functionals import Functionals, features
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.structure import CovarianceStructure

# Folds, each left out of learning a map once.
N_FOLDS = 5
# Tables with at most so many rows get folds without being asked. Beyond it a row's pull on the
# map is small (benchmarks/coverage.py, part "tuned"), and learning a map five times is not cheap.
MOST_FOLDED_ROWS = 400


@dataclass(frozen=True)
class Fold:
    """A fit behind a map that was learned without some of the rows, as a predictor.

    Parameters
    ----------
    rows : ndarray of shape (f,)
        The rows that the map has not seen.
    residuals : ndarray of shape (K, f)
        Their left-out residuals, in the units of y.
    layer : HiddenLayer
        Hidden units behind the map.
    coefficients : ndarray of shape (M, N', K)
        Coefficients of the features, in the units of y.
    shift : ndarray of shape (K,)
        What is added to them.
    """

    rows: np.ndarray
    residuals: np.ndarray
    layer: HiddenLayer
    coefficients: np.ndarray
    shift: np.ndarray

    def mean(self, X: Array | Functionals) -> np.ndarray:
        """Prediction at the rows of X, or of functionals, shape (K, p)."""
        layer, parts = self.layer, []
        M, width, K = self.coefficients.shape
        weights = like(self.coefficients.reshape(M * width, K).T / M, layer.W)
        for h in features(layer, X):
            shift = self.shift[:, None] * to_numpy(layer.shares(h))
            parts.append(to_numpy(weights @ namespace(h).reshape(h, (M * width, -1))) + shift)
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class MapRefit:
    """What is needed to learn the map again.

    Parameters
    ----------
    recipe : LayerSpec
        Of the layer.
    spec : Specification
        How to fit.
    family : Family or None
        The covariance of noise that hangs together, where there is one.
    """

    recipe: LayerSpec
    spec: Specification
    family: CovarianceStructure | None = None

    def folds(self, data: RowBlocks, locations: Locations | None) -> tuple[Fold, ...]:
        """A fit of all rows, at their places, for each fold behind a map learned without it.

        There are none where a fit behind another map is impossible.
        """
        try:
            parts = _parts(data, self.recipe.map_seed)
            return tuple(self._fold(data, locations, part) for part in parts)
        except ValueError:
            # Least squares behind another map may have no residuals left.
            return ()

    def _fold(self, data: RowBlocks, locations: Locations | None, rows: np.ndarray) -> Fold:
        kept = _others(data, rows)
        others, assumed = data.taken(kept), None
        if self.family is not None and locations is not None:
            assumed = CovarianceSpec(self.family, locations.taken(kept))
        # The number of rows decides what is learned, and shall decide as for all of them.
        scale = checked_feature_scale(others.reduce(feature_scale))
        scale = replace(scale, n_rows=int(np.sum(data.used)))
        layer, _ = self.recipe.layer(others, scale, data.reference, assumed)
        fitted = fitted_rows(data, layer, self._plain)
        ensemble = fitted.ensemble
        loo = ensemble.ordered([record["loo"] for record in fitted.records], axis=1)
        residuals = loo[:, :, rows].mean(axis=0) * ensemble.unit[:, None]
        return Fold(rows, residuals, layer, ensemble.coefficients, ensemble.shift)

    def held_out(self, data: RowBlocks, fold: Fold) -> Fold:
        """The same, with the fold left out of the regressions as well."""
        others = data.taken(_others(data, fold.rows))
        ensemble = fitted_rows(others, fold.layer, self._plain).ensemble
        held = replace(fold, coefficients=ensemble.coefficients, shift=ensemble.shift)
        residuals = data.y[:, fold.rows] - held.mean(taken_rows(data.X, fold.rows))
        return replace(held, residuals=residuals)

    @property
    def _plain(self) -> Specification:
        """The same ridge rule without error bars."""
        return replace(self.spec, estimates=(), noise_variance="residual")


def _parts(data: RowBlocks, seed: int) -> list[np.ndarray]:
    """Rows of each fold; those that are left out together are in the same one."""
    order = _by_value(data)
    block_index = data.block_index[order]
    # Blocks by their first rows: labels are numbered as rows are listed.
    blocks = block_index[np.sort(np.unique(block_index, return_index=True)[1])]
    parts = np.array_split(np.random.default_rng(seed).permutation(blocks), N_FOLDS)
    return [np.sort(order[np.isin(block_index, part)]) for part in parts]


def _by_value(data: RowBlocks) -> np.ndarray:
    """Rows of positive weight in an order that does not depend on how they are listed."""
    used = np.flatnonzero(data.used)
    # Outputs by their distance from the middle, so that neither units, sign nor origin matter.
    columns = [np.abs(y - np.median(y)) for y in data.y[:, used]]
    if not scipy.sparse.issparse(data.X):
        # The last columns count first: outputs decide only where inputs are equal.
        columns = [*columns, *to_numpy(taken_rows(data.X, used)).T]
    return used[np.lexsort(columns)]


def _others(data: RowBlocks, rows: np.ndarray) -> np.ndarray:
    """Numbers of all rows of positive weight but those of a fold."""
    return np.setdiff1d(np.flatnonzero(data.used), rows)


def out_of_fold(folds: tuple[Fold, ...], residuals: np.ndarray) -> np.ndarray:
    """Left-out residuals (K, n) with those of the folds in the place of each row's own."""
    out = residuals.copy()
    for fold in folds:
        out[:, fold.rows] = fold.residuals
    return out


def map_shifts(folds: tuple[Fold, ...], X: Array | Functionals) -> np.ndarray:
    """How predictions behind the folds' maps differ from their mean, in the units of y.

    The shape is (folds, K, p), and squares sum to the variance that choosing a map costs: it is the
    sample variance between the folds. The jackknife's factor for leaving out a fifth of
    the rows would hold for a smooth function of the rows; which inputs are kept is none, and with
    the factor standard errors come out at 1.1 to 1.8 of the truth, without it at 0.9 to 1.3.
    """
    means = np.stack([fold.mean(X) for fold in folds])
    return (means - means.mean(axis=0)) / np.sqrt(len(folds) - 1)
