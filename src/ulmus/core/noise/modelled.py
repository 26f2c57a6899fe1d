r"""Modelled noise: a variance for each row, predicted by a model of its inputs.

All members share the variance of a row, so that with :math:`\Sigma = diag(\sigma^2(x_i))` the
products of members are :math:`Q_m \Sigma Q_l'`. Outputs whose variance is constant keep the form of
constant noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace
from ulmus.core.ridge.member_pairs import COMMON, MODELLED
from ulmus.core.ridge.sampled_pairs import AllPairs, PairSampling
from ulmus.core.variance.quadratic_forms import Form, PairForms, RowForm, row_form


@dataclass(frozen=True)
class ModelledNoise:
    """Noise whose variance is a function of the inputs for some outputs of a regression."""

    varies: np.ndarray  # (K,): whether the variance of an output differs between rows

    name: ClassVar[str] = MODELLED.name
    # Without a second pass there is no model, and the variance is constant.
    needs_residuals: ClassVar[bool] = False
    needs_order: ClassVar[bool] = False
    heteroskedastic: ClassVar[bool] = True
    by_member: ClassVar[bool] = False
    # Undersmoothed networks are factored from the products of Q.
    requires: ClassVar[tuple[str, ...]] = (COMMON.name,)

    def dual(self, rows: RowForm, variance: Array, sigma2: Array) -> PairForms:
        """Forms that share the coordinates of the rows, for their noise variances (K, n)."""
        each: list[Form | None] = [
            row_form(rows.Q, MODELLED, like(variance[k][None, :], rows.Q)) if one else None
            for k, one in enumerate(self.varies)
        ]
        return self.pair_forms(each, rows, sigma2)

    def sums(self, like: Array, groups: list[slice], sampling: PairSampling) -> ModelledSums:
        """Empty sums over rows for coordinates of the shape (M, N', n) of ``like``."""
        grams = [
            sampling.zeros(like.shape[1], groups, like=like) if one else None for one in self.varies
        ]
        return ModelledSums(grams, sampling)

    def pair_forms(self, forms: Sequence[Form | None], common: Form, sigma2: Array) -> PairForms:
        """Forms of each output, those of constant noise where it has none."""
        xp = namespace(sigma2)
        varies = xp.asarray(self.varies, device=sigma2.device)
        each = tuple(common if form is None else form for form in forms)
        return PairForms(self.name, each, xp.where(varies, xp.ones_like(sigma2), sigma2))


@dataclass
class ModelledSums:
    """Products of the rows of each output whose variance varies; they merge with ``+``."""

    grams: list[AllPairs | None]
    sampling: PairSampling

    def add(self, t: Array, variance: Array, sampled: np.ndarray | None) -> None:
        """Add weighted rows t (M, N', b) of noise variances (K, b), of which some are sampled."""
        for gram, each in zip(self.grams, variance, strict=True):
            if gram is not None:
                self.sampling.add(gram, t * like(each, t) ** 0.5, sampled)

    def __add__(self, other: ModelledSums) -> ModelledSums:
        """Sums over the rows of both."""
        pairs = zip(self.grams, other.grams, strict=True)
        both = [None if a is None or b is None else add(a, b) for a, b in pairs]
        return ModelledSums(both, self.sampling)
