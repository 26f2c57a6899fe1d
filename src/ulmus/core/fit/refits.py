"""Refits behind maps that were optimised without a fold of the rows.

A row influences the optimised map, so that its leave-one-out residual given the map is too small,
and a standard error given the map excludes the variance due to its choice. Both are estimated when
the map is optimised again without a fold of the rows: leave-one-out residuals of the fold then do
not depend on it, and predictions behind the maps of different folds differ by the effect of the
choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, dense, like, namespace, taken_rows, to_numpy
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.scaling import checked_feature_scale, feature_scale
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import fitted_rows
from ulmus.core.fit.layer import Importances, InputImportances, MapSearch, hidden_layer
from ulmus.core.fit.spec import FitSpec, LayerSpec
from ulmus.core.layer.functionals import Points, by_features
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.structure import CovarianceStructure
from ulmus.core.noise_model.forms import RowVariances, with_modelled_noise
from ulmus.core.ridge.member_pairs import COMMON, MODELLED
from ulmus.progress import counted, stage

if TYPE_CHECKING:
    from ulmus.core.fit.fit import Fit


# Folds, each excluded from optimising a map once.
N_FOLDS = 5
# Largest number of rows for which folds enter the error bars. Above it the influence of a row on
# the map is small (benchmarks/coverage.py, part "tuned"), and five optimisations are expensive.
MOST_FOLDED_ROWS = 400


def refitted(fit: Fit) -> Ensemble:
    """The ensemble of a fit in memory with its forms, computed again from the rows.

    Layer, ridge parameters and noise variances are those of the fit.
    """
    assert fit.rows is not None  # the caller's condition
    data, spec, parts = fit.rows.data, fit.spec.regression, []
    dual = fit.spec.keeps_coordinates(data.n_rows, fit.ensemble.layer)
    for part in fit.ensemble.regressions:
        rows = replace(data, y=data.y[list(part.outputs), :])
        again = fitted_rows(
            rows, fit.ensemble.layer, replace(spec, alpha=part.smoother.alpha), dual=dual
        )
        (regression,) = again.ensemble.regressions
        forms, common = dict(regression.forms), regression.forms.get(COMMON.name)
        if common is not None:
            forms[COMMON.name] = replace(common, scale=part.noise_variance.sigma2)
        parts.append(replace(part, smoother=regression.smoother, forms=forms))
    ensemble, model = replace(fit.ensemble, regressions=tuple(parts)), fit.noise_model
    if model is None or MODELLED.name not in spec.pairings:
        return ensemble
    variances = RowVariances(fit.rows.noise)
    return with_modelled_noise(ensemble, data, model.varies, variances, exact=spec.exact)


@dataclass(frozen=True)
class Fold:
    """A predictor behind a map that was optimised without some of the rows."""

    rows: np.ndarray  # (f,): the rows excluded from the map
    residuals: np.ndarray  # (K, f): their leave-one-out or held-out residuals, in the units of y
    layer: HiddenLayer  # hidden units behind the map
    coefficients: np.ndarray  # (M, N', K): coefficients of the features, in the units of y
    shift: np.ndarray  # (K,): constant of each output

    def mean(self, X: Points) -> np.ndarray:
        """Prediction at the rows of X, or of functionals, shape (K, p)."""
        layer = self.layer
        M, width, K = self.coefficients.shape
        weights = like(self.coefficients.reshape(M * width, K).T / M, layer.W)

        def mean_of(h: Array) -> np.ndarray:
            shift = self.shift[:, None] * to_numpy(layer.shares(h))
            return to_numpy(weights @ namespace(h).reshape(h, (M * width, -1))) + shift

        return np.concatenate(by_features(mean_of, layer, X), axis=1)


@dataclass(frozen=True)
class Refits:
    """Refits behind maps that were optimised without a fold."""

    folds: tuple[Fold, ...]  # regressions on all rows, with leave-one-out residuals of the fold
    held_out: tuple[Fold, ...]  # regressions without the fold, with its held-out residuals


def refitted_folds(
    data: RowBlocks,
    spec: FitSpec,
    ensemble: Ensemble,
    importances: tuple[np.ndarray, ...],
    structure: CovarianceStructure | None,
    locations: Locations | None,
) -> tuple[Fold, ...]:
    """For each fold, a fit of all rows behind a map that was optimised without it.

    It has the ridge parameters of the fit, and as many members and units. Searches may also start
    from importances of the columns for each fold. Correlated noise has a covariance structure and
    locations of the rows.
    """
    assert isinstance(spec.layer, LayerSpec)  # a map was optimised
    n_members, n_neurons = ensemble.layer.b.shape
    regression = replace(spec.regression.without_estimates, alpha=ensemble.alphas)
    layer_spec = replace(spec.layer, n_members=n_members, n_neurons=n_neurons)
    parts = fold_rows(data, layer_spec.map_seed)

    def refitted(i: int) -> Fold:
        rows = parts[i]
        others = _others(data, rows)
        covariance = None
        if structure is not None and locations is not None:
            covariance = CovarianceSpec(structure, locations.taken(others))
        known = _Known(importances[i]) if importances else None
        search = MapSearch(importances=known, relevance=False)
        behind_map = _layer_without(data, others, layer_spec, covariance, search)
        fitted = fitted_rows(data, behind_map, regression)
        fold = fitted.ensemble
        loo = fold.ordered([record["loo"] for record in fitted.records], axis=1)
        residuals = loo[:, :, rows].mean(axis=0) * fold.unit[:, None]
        return Fold(rows, residuals, behind_map, fold.coefficients, fold.shift)

    with stage("Refits for error bars, each without a fifth of the rows") as done:
        return tuple(mapped(counted(refitted, len(parts), done), range(len(parts))))


@dataclass(frozen=True)
class _Known:
    """Importances of inputs from those of their columns."""

    values: np.ndarray  # (d,): importance of each column

    def __call__(self, Z: np.ndarray, y: np.ndarray, origin: np.ndarray) -> Importances | None:
        """Importances of the inputs that belong to the columns ``origin`` (d',)."""
        values = self.values[origin]
        return Importances(values, explained=0.0) if np.any(values > 0) else None


def fold_importances(
    data: RowBlocks, spec: LayerSpec, importances: InputImportances
) -> tuple[np.ndarray, ...]:
    """For each fold, importances (d,) of the columns that are computed without it."""
    X = to_numpy(dense(data.X)).astype(float)
    columns = np.arange(X.shape[1])

    def of_fold(rows: np.ndarray) -> np.ndarray:
        others = _others(data, rows)
        found = importances(X[others], data.y[:, others].T, columns)
        return np.zeros(len(columns)) if found is None else found.values

    return tuple(mapped(of_fold, fold_rows(data, spec.map_seed)))


def _layer_without(
    data: RowBlocks,
    others: np.ndarray,
    spec: LayerSpec,
    covariance: CovarianceSpec | None,
    search: MapSearch | None,
) -> HiddenLayer:
    source = data.taken(others)
    scale = checked_feature_scale(source.reduce(feature_scale))
    # The number of rows decides about structure and expansions, which stay those of the fit.
    scale = replace(scale, n_rows=int(np.sum(data.used)))
    return hidden_layer(source, spec, scale, data.reference, covariance, search).layer


@stage("Refits for held-out residuals")
def held_out_folds(data: RowBlocks, spec: FitSpec, folds: tuple[Fold, ...]) -> tuple[Fold, ...]:
    """The same folds, excluded from the regressions as well."""
    return tuple(mapped(lambda fold: _held_out(data, spec, fold), folds))


def _held_out(data: RowBlocks, spec: FitSpec, fold: Fold) -> Fold:
    others = data.taken(_others(data, fold.rows))
    ensemble = fitted_rows(others, fold.layer, spec.regression.without_estimates).ensemble
    held = replace(fold, coefficients=ensemble.coefficients, shift=ensemble.shift)
    residuals = data.y[:, fold.rows] - held.mean(taken_rows(data.X, fold.rows))
    return replace(held, residuals=residuals)


def fold_rows(data: RowBlocks, seed: int) -> list[np.ndarray]:
    """Rows of each fold; rows of a block are in the same fold."""
    order = value_order(data)
    block_index = data.block_index[order]
    # Blocks by their first rows: ids are numbered in the order of the table.
    blocks = block_index[np.sort(np.unique(block_index, return_index=True)[1])]
    parts = np.array_split(np.random.default_rng(seed).permutation(blocks), N_FOLDS)
    return [np.sort(order[np.isin(block_index, part)]) for part in parts]


def value_order(data: RowBlocks) -> np.ndarray:
    """Rows of positive weight in an order that does not depend on that of the table."""
    used = np.flatnonzero(data.used)
    # Outputs by their distance from the median: invariant to units, sign and origin.
    order = np.lexsort([np.abs(y - np.median(y)) for y in data.y[:, used]])
    X = taken_rows(data.X, used)
    # The last key sorts first: outputs decide only where inputs are equal.
    if not scipy.sparse.issparse(X):
        return used[order[np.lexsort(to_numpy(X)[order].T)]]
    for column in X.T.tocsr():  # one in memory at a time
        values = column.toarray().ravel()
        order = order[np.argsort(values[order], kind="stable")]
    return used[order]


def _others(data: RowBlocks, rows: np.ndarray) -> np.ndarray:
    """Rows of positive weight outside a fold."""
    return np.setdiff1d(np.flatnonzero(data.used), rows)


def out_of_fold(folds: tuple[Fold, ...], residuals: np.ndarray) -> np.ndarray:
    """Leave-one-out residuals (K, n), replaced by those of the folds."""
    out = residuals.copy()
    for fold in folds:
        out[:, fold.rows] = fold.residuals
    return out


def map_shifts(folds: tuple[Fold, ...], X: Points) -> np.ndarray:
    """Deviations of the folds' predictions from their mean, in the units of y, (folds, K, p).

    Their squares sum to the variance due to the choice of the map: the sample variance between
    folds. The jackknife's factor for leaving out a fifth of the rows holds for smooth functions of
    the rows; the selection of inputs is none, and with the factor standard errors are 1.1 to 1.8
    times the true ones, without it 0.9 to 1.3 times.
    """
    # Squares of the units of y may exceed single precision.
    means = np.stack(mapped(lambda fold: fold.mean(X), folds)).astype(float)
    return (means - means.mean(axis=0)) / np.sqrt(len(folds) - 1)
