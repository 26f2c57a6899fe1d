"""The second pass: rows as the fitted members see them, and the forms they add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.data.source import Block
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.noise import NoiseSums, ResidualNoise
from ulmus.core.ridge.member_pairs import PairGram
from ulmus.core.ridge.residuals import RowFit, pooled_omega
from ulmus.core.ridge.smoother import Smoother


@dataclass
class RowRecords:
    """Results of single rows, in parts that merge with ``+``: places of the rows and arrays."""

    parts: list[tuple[np.ndarray, dict[str, Any]]]

    def __add__(self, other: RowRecords) -> RowRecords:
        """Both parts."""
        return RowRecords(self.parts + other.parts)

    def joined(self) -> dict[str, Any]:
        """All rows in their order, by name; the rows are the last axis."""
        parts = sorted(self.parts, key=lambda part: part[0][0])
        locations = np.concatenate([rows for rows, _ in parts])
        order = None if np.all(np.diff(locations) > 0) else np.argsort(locations)
        return {
            name: _in_order([arrays[name] for _, arrays in parts], order) for name in parts[0][1]
        }


def _in_order(parts: list[Array], order: np.ndarray | None) -> Array:
    """Arrays joined along their last axis, whose entries may have to be put in order."""
    xp = namespace(parts[0])
    joined = xp.concat(parts, axis=-1)
    if order is None:
        return joined
    return xp.take(joined, xp.asarray(order, device=joined.device), axis=-1)


@dataclass
class RegressionSums:
    """Sums over rows for one regression: products of pairs, forms in the making, the rows."""

    pairs: PairGram | None
    forms: list[NoiseSums]
    records: RowRecords

    def __add__(self, other: RegressionSums) -> RegressionSums:
        """Sums over the rows of both."""
        forms: list[NoiseSums] = [a + b for a, b in zip(self.forms, other.forms, strict=True)]
        pairs = None
        if self.pairs is not None and other.pairs is not None:
            pairs = self.pairs + other.pairs
        return RegressionSums(pairs, forms, self.records + other.records)

    def pairs_of(self, fit: Smoother) -> PairGram | None:
        """The products of pairs, with those within members as the fit knows them."""
        if self.pairs is None:
            return None
        N = self.pairs.single.shape[1]
        return PairGram(fit.own[: len(self.pairs.upper), :N, :N], self.pairs.upper)


@dataclass
class AllSums:
    """The sums of every regression."""

    parts: list[RegressionSums] = field(default_factory=list)

    def __add__(self, other: AllSums) -> AllSums:
        """Sums over the rows of both."""
        return AllSums([a + b for a, b in zip(self.parts, other.parts, strict=True)])


@dataclass(frozen=True)
class SecondPass:
    """Forms and results of rows, as the fitted members see them.

    Parameters
    ----------
    ensemble : Ensemble
        The fitted members.
    groups : list of slice
        Groups of the first members whose products are summed; none if empty.
    noises : list of Noise
        Kinds of noise whose forms are summed.
    records : tuple of str
        Results of single rows to keep.
    """

    title: ClassVar[str] = "residuals and their sums"

    ensemble: Ensemble
    groups: list[slice]
    noises: list[ResidualNoise]
    records: tuple[str, ...]

    def __call__(self, blocks: Iterable[Block]) -> AllSums:
        """Sums over the blocks."""
        totals = AllSums([self._empty(part) for part in self.ensemble.regressions])
        for block, fits in self.ensemble.row_fits(blocks):
            for total, fit in zip(totals.parts, fits, strict=True):
                self._add(total, fit, block.rows)
        return totals

    def _empty(self, part: Regression) -> RegressionSums:
        to_t = part.smoother.to_t[:, : part.smoother.n_strong, :]
        pairs = PairGram.zeros(to_t.shape[1], self.groups, like=to_t) if self.groups else None
        sums = [noise.sums(to_t, len(part.outputs)) for noise in self.noises]
        return RegressionSums(pairs, sums, RowRecords([]))

    def _add(self, total: RegressionSums, fit: RowFit, locations: np.ndarray | None) -> None:
        rows = fit.weighted
        for sums in total.forms:
            sums.add(rows)
        if total.pairs is not None:
            # Products within members are known from the fit.
            total.pairs.add_pairs(rows.t[: len(total.pairs.upper), :, :])
        if self.records:
            assert locations is not None  # only rows in memory are recorded
            total.records.parts.append((locations, recorded(fit, rows, self.records)))


def recorded(fit: RowFit, rows: RowFit, names: tuple[str, ...]) -> dict[str, Any]:
    """Results of rows by name, from the rows as they are and weighted."""
    makers: dict[str, Callable[[], Any]] = {
        "t": lambda: rows.t,
        "residual": lambda: rows.residual,
        "leverage": lambda: to_numpy(rows.square_length),
        "loo": lambda: to_numpy(fit.loo),
        "norm": lambda: to_numpy(fit.leave_out_leverage),
        "omega": lambda: to_numpy(pooled_omega("HC2", rows)),
    }
    return {name: makers[name]() for name in names}
