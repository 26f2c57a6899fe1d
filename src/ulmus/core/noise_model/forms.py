"""Forms of an ensemble for the noise variances that a model predicts at its training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ulmus.core.data.source import Block, Source
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.noise.modelled import ModelledNoise, ModelledSums
from ulmus.core.ridge.member_pairs import COMMON
from ulmus.core.ridge.sampled_pairs import PairSampling, pair_sampling
from ulmus.core.variance.quadratic_forms import PairForms, RowForm

# Noise variances (K, n) of a block of training rows, each by a model fitted without the row.
BlockVariances = Callable[[Block], np.ndarray]


@dataclass(frozen=True)
class RowVariances:
    """Noise variances of rows in memory."""

    variance: np.ndarray  # (K, n): variance of each row

    def __call__(self, block: Block) -> np.ndarray:
        """Variances of the rows of a block, shape (K, b)."""
        return self.variance[:, block.rows]


def with_modelled_noise(
    ensemble: Ensemble,
    source: Source,
    varies: np.ndarray,
    variances: BlockVariances,
    *,
    exact: bool,
) -> Ensemble:
    """The same ensemble with the forms of noise whose variance varies for some outputs (K,).

    ``exact``: pairs of members are summed over all rows.
    """
    stored = [regression.forms[COMMON.name].shared for regression in ensemble.regressions]
    parts: list[PairForms] = []
    if isinstance(variances, RowVariances) and all(isinstance(one, RowForm) for one in stored):
        for regression, rows in zip(ensemble.regressions, stored, strict=True):
            noise, variance = _noise(regression, varies), _taken(variances.variance, regression)
            sigma2 = regression.noise_variance.sigma2
            assert isinstance(rows, RowForm)
            parts.append(noise.dual(rows, variance, sigma2))
    else:
        sampling = pair_sampling(ensemble.n_rows, ensemble.layer, exact=exact)
        totals = source.reduce(ModelledNoisePass(ensemble, varies, variances, sampling)).parts
        for regression, common, sums in zip(ensemble.regressions, stored, totals, strict=True):
            sigma2 = regression.noise_variance.sigma2
            parts.append(_noise(regression, varies).pair_forms(sums.grams, common, sigma2))
    regressions = tuple(
        replace(regression, forms=regression.forms | {forms.pairing: forms})
        for regression, forms in zip(ensemble.regressions, parts, strict=True)
    )
    return replace(ensemble, regressions=regressions)


def _noise(regression: Regression, varies: np.ndarray) -> ModelledNoise:
    return ModelledNoise(varies[list(regression.outputs)])


def _taken(variance: np.ndarray, regression: Regression) -> np.ndarray:
    return variance[list(regression.outputs)]


@dataclass
class EnsembleModelledSums:
    """The sums of every regression; they merge with ``+``."""

    parts: list[ModelledSums]

    def __add__(self, other: EnsembleModelledSums) -> EnsembleModelledSums:
        """Sums over the rows of both."""
        both = zip(self.parts, other.parts, strict=True)
        return EnsembleModelledSums([a + b for a, b in both])


@dataclass(frozen=True)
class ModelledNoisePass:
    """Products of the coordinates of rows, weighted by their noise variances."""

    title: ClassVar[str] = "Noise model: standard errors"

    ensemble: Ensemble
    varies: np.ndarray  # (K,): outputs whose variance varies
    variances: BlockVariances
    sampling: PairSampling

    def __call__(self, blocks: Iterable[Block]) -> EnsembleModelledSums:
        """Sums over the blocks."""
        regressions = self.ensemble.regressions
        totals = EnsembleModelledSums([self._empty(regression) for regression in regressions])
        for block in blocks:
            variance, sampled = self.variances(block), self.sampling.rows(block)
            ((_, fits),) = self.ensemble.row_fits([block])
            for sums, fit, regression in zip(totals.parts, fits, regressions, strict=True):
                sums.add(fit.weighted.t, _taken(variance, regression), sampled)
        return totals

    def _empty(self, regression: Regression) -> ModelledSums:
        smoother = regression.exact
        like = smoother.to_t[:, : smoother.n_strong, :]
        groups = self.sampling.groups(*smoother.center.shape)
        return _noise(regression, self.varies).sums(like, groups, self.sampling)
