r"""Correlated noise: its covariance is estimated from the rows, and its forms follow from a root.

With the noise covariance :math:`\Sigma = LL'`, the products of members are
:math:`(Q_m L)(Q_l L)'`: the coordinates of the rows are multiplied by a root of the covariance and
then combined as for constant noise. Rows are processed in the order of their locations; sequential
roots accept them in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.noise.ordered_rows import OrderedFits, likelihood_rows
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACSpec
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import covariance_estimate
from ulmus.core.noise_covariance.roots import IdentityRoot, Root, Running, takes_blocks
from ulmus.core.noise_covariance.smoothed_space import SMALLEST_SHARE, smoothed_directions
from ulmus.core.noise_covariance.spec import NoiseCovarianceEstimate
from ulmus.core.noise_covariance.structure import CovarianceStructure
from ulmus.core.ridge.member_pairs import COMMON, CORRELATED, PairGram
from ulmus.core.ridge.residuals import RowFit, pooled_residual
from ulmus.core.variance.quadratic_forms import Form, PairForms, row_form


def noise_covariances(
    fits: OrderedFits, n_members: int, structure: CovarianceStructure | HACSpec, hc: str
) -> list[NoiseCovarianceEstimate]:
    """Estimate of the noise covariance of each output of a regression, in the units of the fit."""
    if isinstance(structure, HACSpec):
        variant = _residual_variant(hc)
        parts = [to_numpy(pooled_residual(variant, rows)) for rows in fits]
        return [structure.estimate(e, fits.locations) for e in np.concatenate(parts, axis=1)]
    n, rows = fits.locations.n, likelihood_rows(fits.locations.n)
    part = fits if len(rows) == n else fits.part(rows)
    # A direction shared by all rows has the share len(rows) / n of its square length in the subset.
    subset = len(rows) / n
    space = smoothed_directions(part.stacked, n_members, SMALLEST_SHARE * subset)
    space = replace(space, shares=np.minimum(space.shares / subset, 1.0))
    return [covariance_estimate(y, space, part.locations, structure) for y in part.outputs()]


def _residual_variant(hc: str) -> str:
    """HC variant of the residual products; residuals are pooled over members in any case."""
    return "HC2" if hc == "pooled" else hc


@dataclass(frozen=True)
class CorrelatedRowNoise:
    """Noise that is correlated between rows."""

    # Covariance of the noise of each output of a regression.
    estimates: tuple[NoiseCovarianceEstimate, ...]
    locations: Locations  # locations of the rows, in their order
    hc: str  # leverage correction of residual products
    sigma2: Array  # (K,): noise variance of outputs whose noise is estimated to be independent

    name: ClassVar[str] = CORRELATED.name
    needs_residuals: ClassVar[bool] = True
    needs_order: ClassVar[bool] = True
    heteroskedastic: ClassVar[bool] = False
    by_member: ClassVar[bool] = False
    # Undersmoothed networks are factored from the products of Q.
    requires: ClassVar[tuple[str, ...]] = (COMMON.name,)

    def root(self, k: int) -> Root:
        """Root of the covariance of output k, for rows scaled by :meth:`scaled`."""
        estimate = self.estimates[k]
        return IdentityRoot() if estimate.independent else estimate.root(self.locations)

    def scaled(self, rows: RowFit, k: int) -> Array:
        """Coordinates of rows in the units of the root of output k, shape (M, N', b)."""
        estimate = self.estimates[k]
        if isinstance(estimate, CovarianceEstimate):
            return rows.t * self.sigma2[k] ** 0.5 if estimate.independent else rows.t
        # HC0 is the textbook estimate without any small-sample correction.
        factor = 1.0 if self.hc == "HC0" else estimate.small_sample**0.5
        return rows.t * (factor * pooled_residual(_residual_variant(self.hc), rows)[k, :])

    def dual(self, rows: RowFit, sigma2: Array) -> PairForms:
        """Forms of the weighted training rows, all of them in the order of their locations."""
        outputs = range(len(self.estimates))
        scaled = (self.root(k).applied(self.scaled(rows, k)) for k in outputs)
        return self.pair_forms([row_form(t, COMMON) for t in scaled], sigma2)

    def sums(self, like: Array, n_outputs: int) -> CorrelatedRowSums:
        """Empty sums over rows for coordinates of the shape (M, N', n) of ``like``."""
        every = [slice(0, like.shape[0])]
        grams = [PairGram.zeros(like.shape[1], every, like=like) for _ in range(n_outputs)]
        return CorrelatedRowSums(self, grams)

    def pair_forms(self, forms: Sequence[Form], sigma2: Array) -> PairForms:
        """Forms of each output, which include the variance."""
        return PairForms(self.name, tuple(forms), namespace(sigma2).ones_like(sigma2))


class CorrelatedRowSums:
    """Sums over rows that arrive in the order of their locations."""

    def __init__(self, noise: CorrelatedRowNoise, grams: list[PairGram]) -> None:
        self.noise, self.grams = noise, grams
        self.columns = [RootColumns(noise.root(k)) for k in range(len(grams))]

    def add(self, rows: RowFit) -> None:
        """Add weighted rows, those after the rows added before."""
        for k, (gram, columns) in enumerate(zip(self.grams, self.columns, strict=True)):
            for complete in columns.add(self.noise.scaled(rows, k)):
                gram.add(complete)

    def __add__(self, other: CorrelatedRowSums) -> CorrelatedRowSums:
        """Sums of separate parts of the rows do not merge."""
        return NotImplemented

    def forms(self, n_rows: int, sigma2: Array) -> PairForms:
        """The forms, after all rows."""
        for gram, columns in zip(self.grams, self.columns, strict=True):
            for complete in columns.rest():
                gram.add(complete)
        return self.noise.pair_forms(list(self.grams), sigma2)


class RootColumns:
    """Coordinates of rows times a root, column by column as rows arrive."""

    def __init__(self, root: Root) -> None:
        self._root, self._parts = root, list[Array]()
        self._running: Running | None = root.running() if takes_blocks(root) else None

    def add(self, t: Array) -> Iterator[Array]:
        """Columns that further rows t (M, N', b) complete."""
        if self._running is None:
            self._parts.append(t)
            return
        complete = self._running.add(t)
        if complete.shape[2]:  # an unfinished group completes none
            yield complete

    def rest(self) -> Iterator[Array]:
        """The remaining columns, after all rows."""
        if self._running is None:
            yield self._root.applied(namespace(self._parts[0]).concat(self._parts, axis=2))
            return
        rest = self._running.last()
        if rest is not None:
            yield rest
