"""Noise covariances of all outputs of an ensemble, and its forms for correlated noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ulmus.core.arrays.backend import like, namespace
from ulmus.core.data.source import Block
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.noise.constant import NoiseVariance
from ulmus.core.noise.correlated import CorrelatedRowNoise, noise_covariances
from ulmus.core.noise.ordered_rows import OrderedFits, OrderedRows
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACSpec
from ulmus.core.noise_covariance.spec import NoiseCovarianceEstimate
from ulmus.core.noise_covariance.structure import CovarianceStructure
from ulmus.core.ridge.residuals import RowFit
from ulmus.core.variance.quadratic_forms import PairForms


def estimated_covariances(
    ensemble: Ensemble, ordered: OrderedRows, structure: CovarianceStructure | HACSpec, hc: str
) -> tuple[NoiseCovarianceEstimate, ...]:
    """Noise covariance of each output, in the units of the fit."""
    structure.require(ordered.locations)
    estimates: dict[int, NoiseCovarianceEstimate] = {}
    for i, regression in enumerate(ensemble.regressions):
        fits = _ordered_fits(ensemble, i, ordered)
        each = noise_covariances(fits, ensemble.n_members, structure, hc)
        estimates.update(zip(regression.outputs, each, strict=True))
    return tuple(estimates[k] for k in sorted(estimates))


def with_correlated_noise(
    ensemble: Ensemble,
    ordered: OrderedRows,
    estimates: tuple[NoiseCovarianceEstimate, ...],
    hc: str,
    *,
    dual: bool,
) -> Ensemble:
    """The same ensemble with the forms of correlated noise.

    ``dual`` keeps the coordinates of the rows instead of their products.
    """
    parts = []
    for i, regression in enumerate(ensemble.regressions):
        own = tuple(estimates[k] for k in regression.outputs)
        regression = replace(regression, noise_variance=_noise_variance(regression, own))
        noise = CorrelatedRowNoise(own, ordered.locations, hc, regression.noise_variance.sigma2)
        fits = _ordered_fits(ensemble, i, ordered)
        forms = (
            _dual_forms(noise, regression, fits) if dual else _primal_forms(noise, regression, fits)
        )
        parts.append(replace(regression, forms=regression.forms | {noise.name: forms}))
    return replace(ensemble, regressions=tuple(parts))


def _ordered_fits(ensemble: Ensemble, i: int, ordered: OrderedRows) -> OrderedFits:
    def fits(blocks: Iterable[Block]) -> Iterator[RowFit]:
        return (each[i] for _, each in ensemble.row_fits(blocks))

    return OrderedFits(ordered, fits)


def _noise_variance(
    regression: Regression, estimates: tuple[NoiseCovarianceEstimate, ...]
) -> NoiseVariance:
    """Variances of a regression; those of a fitted covariance replace the residual ones."""
    fitted = [one for one in estimates if isinstance(one, CovarianceEstimate)]
    if not fitted:
        return regression.noise_variance
    sigma2, residual = regression.noise_variance.sigma2, regression.noise_variance.residual
    xp = namespace(sigma2)
    independent = xp.asarray([one.independent for one in fitted], device=sigma2.device)
    values = like(np.array([one.variance for one in fitted]), sigma2)
    return NoiseVariance(
        xp.where(independent, sigma2, values), xp.where(independent, residual, values)
    )


def _dual_forms(noise: CorrelatedRowNoise, regression: Regression, fits: OrderedFits) -> PairForms:
    blocks = [(rows.t, rows.residual) for rows in fits]
    xp = namespace(regression.exact.q)
    t, residual = (xp.concat(list(arrays), axis=2) for arrays in zip(*blocks, strict=True))
    return noise.dual(RowFit(regression.exact, t, residual, None), regression.noise_variance.sigma2)


def _primal_forms(
    noise: CorrelatedRowNoise, regression: Regression, fits: OrderedFits
) -> PairForms:
    smoother = regression.exact
    sums = noise.sums(smoother.to_t[:, : smoother.n_strong, :], len(regression.outputs))
    for rows in fits:
        sums.add(rows)
    return sums.forms(smoother.n_rows, regression.noise_variance.sigma2)
