"""Forms over pairs of members in a graph.

They follow ``core/variance/quadratic_forms.py`` and ``core/ridge/member_pairs.py``. No training row
is written: a form over rows is replaced by the triangular factor of the rows, or by its matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.member_pairs import COMMON, MODELLED, OWN, PAIRINGS, PairGram, PairSums
from ulmus.core.ridge.sampled_pairs import SampledPairs
from ulmus.core.variance.low_rank import LowRankForms
from ulmus.core.variance.quadratic_forms import JackknifeForm, PairForms, RowForm
from ulmus.integrations.onnx.graph import GraphBuilder
from ulmus.integrations.onnx.layer import stacked_linear


@dataclass(frozen=True)
class CoordinateNodes:
    """Coordinates t of the points, with the sizes of their axes."""

    t: str  # coordinates by member, (M, p, N')
    n_members: int  # M
    n_units: int  # N'

    def stacked(self, graph: GraphBuilder) -> str:
        """The members side by side, shape (p, M N')."""
        by_point = graph("Transpose", self.t, perm=[1, 0, 2])
        return graph("Reshape", by_point, np.array([-1, self.n_members * self.n_units]))

    def leading(self, graph: GraphBuilder, n_units: int) -> CoordinateNodes:
        """The first coordinates of each member alone."""
        if n_units == self.n_units:
            return self
        few = graph("Slice", self.t, np.array([0]), np.array([n_units]), np.array([2]))
        return replace(self, t=few, n_units=n_units)


def means(graph: GraphBuilder, pair: PairForms, where: CoordinateNodes) -> PairSums:
    """Means over members and over distinct members, each (p, K), as ``PairForms.means``."""
    parts = [sums(graph, form, where) for form in pair.forms]
    single, distinct = (graph.joined(list(a)) for a in zip(*parts, strict=True))
    share = PAIRINGS[pair.pairing].means(PairSums(1.0, 1.0), where.n_members)
    scale = to_numpy(pair.scale).astype(float)
    return PairSums(
        graph("Mul", single, share.single * scale), graph("Mul", distinct, share.distinct * scale)
    )


def low_rank_means(
    graph: GraphBuilder, h: str, layer: HiddenLayer, forms: LowRankForms, pairing: str
) -> PairSums:
    """The same for features h (M, p, N) by forms of low rank, as ``LowRankPairs.means``."""
    c = stacked_linear(graph, h, layer, to_numpy(forms.C).T)
    pairs = forms.pairs[pairing]
    scale = to_numpy(pairs.scale).astype(float)

    def each(matrices: Any) -> str:
        parts = (graph("MatMul", c, G) for G in to_numpy(matrices).astype(float))
        joined = graph.joined([_row_sum(graph, graph("Mul", part, c)) for part in parts])
        return graph("Mul", joined, scale)

    return PairSums(graph("Max", each(pairs.single), 0.0), each(pairs.distinct))


def sums(graph: GraphBuilder, form: Any, where: CoordinateNodes) -> PairSums:
    """Sums over members and over distinct members, each (p, 1)."""
    if isinstance(form, JackknifeForm):
        return jackknife_sums(graph, form, where)
    factor = row_factor(form) if isinstance(form, RowForm) else None
    if factor is not None:
        return row_sums(graph, form, factor, where)
    form = form.primal()
    if isinstance(form, SampledPairs):
        return sampled_sums(graph, form, where)
    return gram_sums(graph, form, where)


def row_factor(form: RowForm) -> np.ndarray | None:
    """The triangular factor of the rows, (M N', r); none where noise differs between members.

    Its product with its transpose is the sum over rows; rows with the same products share it.
    """
    Q = to_numpy(form.Q).astype(float)
    if form.pairing in (OWN.name, MODELLED.name):
        omega = to_numpy(form.omega)
        if np.any(omega != omega[:1]):
            return None
        Q = Q * np.sqrt(omega[0])
    elif form.pairing != COMMON.name:
        return None
    R: Any = np.linalg.qr(Q.reshape(-1, Q.shape[2]).T, mode="r")
    return R.T


def row_sums(
    graph: GraphBuilder, form: RowForm, factor: np.ndarray, where: CoordinateNodes
) -> PairSums:
    """Sums through the factor of the rows, as ``RowForm.sums``."""
    z = graph("MatMul", where.stacked(graph), factor)
    single = own_sums(graph, form.single, where)
    return PairSums(single, graph("Sub", _row_sum(graph, graph.square(z)), single))


def gram_sums(graph: GraphBuilder, form: PairGram, where: CoordinateNodes) -> PairSums:
    """Sums by matrices, the upper half of them, as ``PairGram.sums``."""
    where = where.leading(graph, form.single.shape[1])
    single, side = own_sums(graph, form.single, where), where.n_units
    stacked, products = where.stacked(graph), []
    for m, row in enumerate(form.upper):
        if row.shape[1] == 0:
            continue
        edges = m * side, (m + 1) * side, (m + 1) * side + row.shape[1]
        own, after = (
            graph("Slice", stacked, *(np.array([v]) for v in (a, b, 1))) for a, b in pairwise(edges)
        )
        product = graph("MatMul", own, to_numpy(row).astype(float))
        products.append(_row_sum(graph, graph("Mul", product, after)))
    if not products:
        return PairSums(single, graph("Mul", single, 0.0))
    return PairSums(single, graph("Mul", graph.added(products), 2.0))


def sampled_sums(graph: GraphBuilder, form: SampledPairs, where: CoordinateNodes) -> PairSums:
    """Sums over distinct pairs from a sample of rows, as ``SampledPairs.sums``."""
    total = graph.added(list(gram_sums(graph, form.combined, where)))
    single = own_sums(graph, form.single, where.leading(graph, form.single.shape[1]))
    return PairSums(single, graph("Sub", total, single))


def own_sums(graph: GraphBuilder, single: Any, where: CoordinateNodes) -> str:
    """Sum over members of t' S t with matrices S (M, N', N'), shape (p, 1)."""
    product = graph("MatMul", where.t, to_numpy(single).astype(float))
    return _row_sum(graph, graph.sum(graph("Mul", product, where.t), 0))


def jackknife_sums(graph: GraphBuilder, form: JackknifeForm, where: CoordinateNodes) -> PairSums:
    """Sums with the paper's jackknife matrices, as ``JackknifeForm.sums``."""
    base, n = sums(graph, form.diagonal, where), float(form.n)
    g = graph("MatMul", where.t, to_numpy(form.c).astype(float))
    own = graph.sum(graph("Mul", g, np.eye(where.n_members)[:, None, :]), 0)
    total = graph.sum(g, 0)
    own_own = _row_sum(graph, graph.square(own))
    if form.degree == 2:
        single = own_own
        distinct = graph("Sub", _row_sum(graph, graph("Mul", own, total)), own_own)
    else:
        single = graph("Sub", _row_sum(graph, graph.sum(graph.square(g), 0)), own_own)
        others = graph.square(graph("Sub", total, own))
        distinct = graph("Sub", _row_sum(graph, others), single)

    def corrected(sum_: str, rank_one: str) -> str:
        return graph("Mul", graph("Sub", sum_, graph("Div", rank_one, n)), (n - 1) / n)

    return PairSums(corrected(base.single, single), corrected(base.distinct, distinct))


def _row_sum(graph: GraphBuilder, x: str) -> str:
    return graph.sum(x, 1, keepdims=True)
