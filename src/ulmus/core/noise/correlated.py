r"""Noise that hangs together: its parameters from the rows, and its forms.

With :math:`\Sigma = LL'` the products of members are :math:`(Q_m L)(Q_l L)'`: coordinates of rows
times a root (``core/dependence/``), and then as for constant noise. Passes go over the rows in the
order of their places, and a root that needs no other rows than those before takes them in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, row_blocks, to_numpy
from ulmus.core.data.source import Block, RowBlocks, used_rows
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.noise.constant import NoiseVariance
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACEstimate, HACSpec
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import covariance_estimate
from ulmus.core.noise_covariance.roots import IdentityRoot, Root, takes_blocks
from ulmus.core.noise_covariance.smoothed_space import KEPT, smoothed_directions
from ulmus.core.noise_covariance.structure import CovarianceStructure
from ulmus.core.ridge.member_pairs import COMMON, DEPENDENT, PairGram
from ulmus.core.ridge.residuals import RowFit, pooled_residual
from ulmus.core.variance.quadratic_forms import Form, PairForms, row_form

Found = CovarianceEstimate | HACEstimate
# The likelihood looks at so many rows at most, in so many stretches of neighbours: a correlation
# over ten rows is known to 5 % by then, and standard errors to half of that.
LIKELIHOOD_ROWS, STRETCHES = 20_000, 4


@dataclass(frozen=True)
class OrderedRows:
    """Rows of positive weight in the order of their places, as often as asked, and the places."""

    blocks: Callable[[], Iterable[Block]]
    locations: Locations

    def part(self, rows: np.ndarray) -> OrderedRows:
        """Some of the rows, by their ascending numbers."""

        def blocks() -> Iterator[Block]:
            seen = 0
            for block in self.blocks():
                first, last = np.searchsorted(rows, [seen, seen + block.y.shape[1]])
                if last > first:
                    yield block.taken(rows[first:last] - seen)
                seen += block.y.shape[1]

        return OrderedRows(blocks, self.locations.taken(rows))


def stretches(n: int) -> np.ndarray:
    """Numbers of the rows that the likelihood looks at: all, or stretches evenly apart."""
    if n <= LIKELIHOOD_ROWS:
        return np.arange(n)
    length = LIKELIHOOD_ROWS // STRETCHES
    starts = np.linspace(0, n - length, STRETCHES).astype(int)
    return (starts[:, None] + np.arange(length)).ravel()


def in_order(rows: RowBlocks, locations: Locations) -> OrderedRows:
    """Rows in memory in the order of their places."""
    order = locations.order[rows.used[locations.order]]
    plain = replace(rows, block_ids=None)

    def blocks() -> Iterator[Block]:
        for few in row_blocks(len(order), rows.width, rows.reference):
            yield plain.block(order[few])

    return OrderedRows(blocks, locations.taken(order))


def streamed_in_order(read: Callable[[], Iterable[Block]], locations: Locations) -> OrderedRows:
    """Rows of a stream, which come in the order of their places; those of weight zero have none."""

    def blocks() -> Iterator[Block]:
        for block in map(used_rows, read()):
            if block.y.shape[1]:
                yield block

    return OrderedRows(blocks, locations)


def require_reading_order(locations: Locations) -> None:
    """Refuse rows of a stream that do not come in the order of their places."""
    back = np.flatnonzero(np.diff(locations.order) < 0)
    if len(back):
        row = int(np.max(locations.order[back[0] : back[0] + 2]))
        raise ValueError(
            f"rows of a stream must come in the order of their places, by group and by time within "
            f"a group, and row {row} does not; sort the table by these columns, or fit in memory."
        )


def estimated_covariance(
    ensemble: Ensemble, ordered: OrderedRows, kind: CovarianceStructure | HACSpec, hc: str
) -> tuple[Found, ...]:
    """How the noise of each output hangs together, in the fit's units of y."""
    kind.require(ordered.locations)
    found: list[tuple[int, Found]] = []
    for i, part in enumerate(ensemble.regressions):
        seen = _Seen(ensemble, i, ordered)
        told: Iterator[Found]
        if isinstance(kind, CovarianceStructure):
            told = _by_likelihood(seen, part, kind)
        else:
            told = _by_residuals(seen, part, kind, _of_products(hc))
        found += zip(part.outputs, told, strict=True)
    return tuple(fit for _, fit in sorted(found, key=lambda pair: pair[0]))


def with_correlated_noise(
    ensemble: Ensemble, ordered: OrderedRows, found: tuple[Found, ...], hc: str, *, dual: bool
) -> Ensemble:
    """The same ensemble with forms of the noise that was found for each output.

    ``dual`` keeps the coordinates of the rows instead of their products.
    """
    parts = []
    for i, part in enumerate(ensemble.regressions):
        fits = [found[k] for k in part.outputs]
        fitted = [one for one in fits if isinstance(one, CovarianceEstimate)]
        if fitted:
            part = replace(part, variance=_noise_variance(part, fitted))
        noises = (_noise(one, part, k, hc) for k, one in enumerate(fits))
        seen = _Seen(ensemble, i, ordered)
        forms = tuple(_form(seen, noise, dual=dual) for noise in noises)
        scale = namespace(part.variance.sigma2).ones_like(part.variance.sigma2)
        pairs = PairForms(COMMON.name, forms, scale)
        parts.append(replace(part, forms=part.forms | {DEPENDENT: pairs}))
    return replace(ensemble, regressions=tuple(parts))


@dataclass(frozen=True)
class _Seen:
    """The rows as one regression sees them."""

    ensemble: Ensemble
    index: int
    ordered: OrderedRows

    @property
    def part(self) -> Regression:
        return self.ensemble.regressions[self.index]

    @property
    def locations(self) -> Locations:
        return self.ordered.locations

    def __iter__(self) -> Iterator[RowFit]:
        for _, fits in self.ensemble.row_fits(self.ordered.blocks()):
            yield fits[self.index].weighted

    def stacked(self) -> Iterator[Array]:
        """Coordinates of all members, one upon the other, (M N', b)."""
        for rows in self:
            yield namespace(rows.t).reshape(rows.t, (-1, rows.t.shape[2]))

    def outputs(self) -> np.ndarray:
        """Weighted outputs in the fit's units, shape (K, n)."""
        q = self.part.smoother.q[0, :, :]
        return np.concatenate(
            [to_numpy(rows.residual[0, :, :] + q.T @ rows.t[0, :, :]) for rows in self], axis=1
        )


# ------------------------------------------------------------ what is found for an output


class _Noise(Protocol):
    """The noise of one output: a root, after each row was scaled."""

    def scaled(self, rows: RowFit) -> Array:
        """Coordinates of rows, in units of what the root is of, (M, N', b)."""

    def root(self, locations: Locations) -> Root:
        """The root."""


@dataclass(frozen=True)
class _Fitted:
    """Noise with parameters; independent noise keeps the variance that the regression has."""

    found: CovarianceEstimate
    part: Regression
    k: int

    def scaled(self, rows: RowFit) -> Array:
        if not self.found.independent:
            return rows.t
        return rows.t * self.part.variance.sigma2[self.k] ** 0.5

    def root(self, locations: Locations) -> Root:
        return IdentityRoot() if self.found.independent else self.found.root(locations)


@dataclass(frozen=True)
class _Products:
    """Products of residuals."""

    found: HACEstimate
    hc: str
    k: int

    def scaled(self, rows: RowFit) -> Array:
        # Raw residuals are those of the textbooks, without any correction.
        factor = 1.0 if self.hc == "HC0" else self.found.small_sample**0.5
        return rows.t * (factor * pooled_residual(self.hc, rows)[self.k, :])

    def root(self, locations: Locations) -> Root:
        return self.found.root(locations)


def _by_likelihood(
    seen: _Seen, part: Regression, family: CovarianceStructure
) -> Iterator[CovarianceEstimate]:
    """Parameters of each output, by what the smoother leaves of it."""
    n, few = seen.locations.n, stretches(seen.locations.n)
    if len(few) < n:
        seen = replace(seen, ordered=seen.ordered.part(few))
    # A direction that all rows share has a part in the few as large as these are of all.
    A = smoothed_directions(seen.stacked, seen.ensemble.n_members, KEPT * len(few) / n)
    for y in seen.outputs()[: len(part.outputs)]:
        yield covariance_estimate(y, A, seen.locations, family)


def _noise_variance(part: Regression, found: list[CovarianceEstimate]) -> NoiseVariance:
    """Variance of the noise of a row."""
    xp, known = namespace(part.variance.sigma2), part.variance
    alone = xp.asarray([fit.independent for fit in found], device=known.sigma2.device)
    values = like(np.array([fit.variance for fit in found]), known.sigma2)
    return NoiseVariance(
        xp.where(alone, known.sigma2, values), xp.where(alone, known.residual, values)
    )


def _noise(found: Found, part: Regression, k: int, hc: str) -> _Noise:
    if isinstance(found, CovarianceEstimate):
        return _Fitted(found, part, k)
    return _Products(found, _of_products(hc), k)


def _of_products(hc: str) -> str:
    """Which residuals make products; those of the members are pooled in any case."""
    return "HC2" if hc == "pooled" else hc


def _by_residuals(seen: _Seen, part: Regression, kind: HACSpec, hc: str) -> Iterator[HACEstimate]:
    """The reach of a kernel for each output."""
    residual = np.concatenate([to_numpy(pooled_residual(hc, rows)) for rows in seen], axis=1)
    for k in range(len(part.outputs)):
        yield kind.fitted(residual[k], seen.locations)


# ------------------------------------------------------------ forms


def _form(seen: _Seen, noise: _Noise, *, dual: bool) -> Form:
    """The form of constant noise for coordinates times a root."""
    if dual:
        columns = list(_columns(seen, noise))
        return row_form(namespace(columns[0]).concat(columns, axis=2), COMMON)
    strong = seen.part.smoother.to_t[:, : seen.part.smoother.n_strong, :]
    gram = PairGram.zeros(strong.shape[1], [slice(0, strong.shape[0])], like=strong)
    for columns_of_some in _columns(seen, noise):
        gram.add(columns_of_some[:, : strong.shape[1], :])
    return gram


def _columns(seen: _Seen, noise: _Noise) -> Iterator[Array]:
    """Coordinates of the rows times the root, in portions."""
    root = noise.root(seen.locations)
    if not takes_blocks(root):
        parts = [noise.scaled(rows) for rows in seen]
        yield root.applied(namespace(parts[0]).concat(parts, axis=2))
        return
    running = root.running()
    for rows in seen:
        complete = running.add(noise.scaled(rows))
        if complete.shape[2]:  # none while a group goes on
            yield complete
    rest = running.last()
    if rest is not None:
        yield rest
