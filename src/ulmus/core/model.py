"""A fitted ensemble: predictions and everything its error bars are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ulmus.core.backend import Array, namespace, row_blocks, taken_rows, to_numpy
from ulmus.core.basis import Basis
from ulmus.core.forms import (
    COMMON,
    Form,
    JackknifeForm,
    PairWeights,
    RegeneratedForm,
    RowForm,
    member_groups,
)
from ulmus.core.moments import Block
from ulmus.core.noise import FitSummary, RowFit, mean_omega
from ulmus.core.variance import PointParts, WideParts
from ulmus.core.whitening import Whitening, scaled_rows
from ulmus.core.wide import undersmoothing_alpha, wide_map, wide_path


@dataclass(frozen=True)
class Model:
    """A fitted ensemble of constant size, or with its training rows in the dual form.

    Parameters
    ----------
    whitening : Whitening
        The hidden layer and its centre.
    basis : Basis
        Singular values and vectors of each member.
    alpha : float
        Ridge parameter.
    q : array of shape (M, N, K)
        Q'y of each member.
    y_shift, y_square : arrays of shape (K,)
        What was subtracted from the outputs, and their sum of squares after that.
    sigma2 : array of shape (K,)
        Noise variance at unit weight, for the variance of the prediction.
    residual2 : array of shape (K,)
        Variance of an observation around a prediction: the noise and the squared bias that
        the residuals hold.
    fit : FitSummary
        Totals over rows.
    stacks : list of arrays
        Gram matrices of the rows Q of each group of members side by side, where they are kept.
    forms : dict
        For each kind of weights, a form per output; ``common`` has a single one. ``wide`` is
        for wide networks: its weights are the same for all members, whose parts of z cancel.
    """

    whitening: Whitening
    basis: Basis
    alpha: float
    q: Array
    y_shift: Array
    y_square: Array
    sigma2: Array
    residual2: Array
    fit: FitSummary
    stacks: list[Array]
    forms: dict[str, list[Form]]

    @property
    def n_members(self) -> int:
        """Number of members."""
        return self.whitening.layer.n_members

    @property
    def to_t(self) -> Array:
        """Map from features to t(x), shape (M, N, N)."""
        return self.basis.to_t(self.alpha)

    @property
    def beta(self) -> Array:
        """Coefficients of the features, shape (M, N, K)."""
        return namespace(self.q).permute_dims(self.to_t, (0, 2, 1)) @ self.q

    def mean(self, X: Array) -> Array:
        """Prediction of the ensemble, shape (K, n)."""
        xp = namespace(self.q)
        beta = xp.reshape(self.beta, (-1, self.q.shape[2])) / self.n_members
        parts = []
        for rows in row_blocks(X.shape[0], self.whitening.layer.size, self.q):
            H = self.whitening.layer(taken_rows(X, rows))
            parts.append(beta.T @ xp.reshape(H, (beta.shape[0], -1)))
        return xp.concat(parts, axis=1) + self.y_shift[:, None]

    def point_parts(self, X: Array, weights: PairWeights) -> PointParts:
        """Mean, spread and both means of the form at the rows of X, in blocks."""
        to_t = self.to_t
        blocks = row_blocks(X.shape[0], self.whitening.layer.size, self.q)
        parts = [self._block_parts(to_t, taken_rows(X, rows), weights) for rows in blocks]
        mean, spread, A, U = _joined(parts)
        return PointParts(mean, spread, A, U, self.n_members)

    def _block_parts(self, to_t: Array, X: Array, weights: PairWeights) -> tuple[Array, ...]:
        """The same for one block of points, each (K, p)."""
        xp, M = namespace(self.q), self.n_members
        t = to_t @ self.whitening.layer(X)
        members = xp.permute_dims(self.q, (0, 2, 1)) @ t
        mean, spread = _mean_and_spread(members)
        means = [weights.means(form.sums(t), M) for form in self.forms[weights.name]]
        A = xp.stack([m.single for m in means])
        U = xp.stack([m.distinct for m in means])
        scale = self.sigma2[:, None] if weights is COMMON else 1.0
        return mean + self.y_shift[:, None], spread, A * scale, U * scale

    def wide_parts(self, X: Array, weights: PairWeights) -> WideParts:
        """Mean and variance of the undersmoothed wide networks at the rows of X."""
        groups = member_groups(self.n_members)
        n, y_square = self.fit.n, self.y_square
        paths = [
            wide_path(self.basis, self.q, group, stack, y_square, n)
            for group, stack in zip(groups, self.stacks, strict=True)
        ]
        alpha = undersmoothing_alpha(paths)
        maps = [
            wide_map(self.basis, group, path, alpha)
            for group, path in zip(groups, paths, strict=True)
        ]
        dof = [np.sum((d := to_numpy(p.values / (p.values + alpha))) * (2 - d)) for p in paths]
        blocks = row_blocks(X.shape[0], self.whitening.layer.size, self.q)
        parts = [self._block_wide(groups, maps, taken_rows(X, rows), weights) for rows in blocks]
        mean, spread, noise = _joined(parts)
        return WideParts(mean, spread, noise, len(groups), float(np.mean(dof)))

    def _block_wide(
        self, groups: list[slice], maps: list[Array], X: Array, weights: PairWeights
    ) -> tuple[Array, ...]:
        """The same for one block of points, each (K, p)."""
        xp, G = namespace(self.q), len(groups)
        H = self.whitening.layer(X)
        tau = xp.empty_like(H)
        outputs = []
        for group, to_tau in zip(groups, maps, strict=True):
            part = to_tau @ xp.reshape(H[group, :, :], (to_tau.shape[0], -1))
            outputs.append(xp.reshape(self.q[group, :, :], (to_tau.shape[0], -1)).T @ part)
            tau[group, :, :] = xp.reshape(part, tau[group, :, :].shape)
        mean, spread = _mean_and_spread(xp.stack(outputs))
        forms = self.wide_forms(weights)
        noise = xp.stack([sum(form.sums(tau)) for form in forms])
        scale = self.sigma2[:, None] if weights is COMMON else 1.0
        return mean + self.y_shift[:, None], spread, noise * scale / G**2

    def wide_forms(self, weights: PairWeights) -> list[Form]:
        """Forms for wide networks, whose weights must not differ between members."""
        return self.forms["common"] if weights is COMMON else self.forms["wide"]

    def compressed(self) -> Model:
        """The same model with every form in its primal shape."""
        forms = {name: [_primal(form) for form in forms] for name, forms in self.forms.items()}
        return replace(self, forms=forms)


def _mean_and_spread(members: Array) -> tuple[Array, Array]:
    """Mean and sample variance over the first axis."""
    xp, M = namespace(members), members.shape[0]
    mean = xp.mean(members, axis=0)
    return mean, xp.sum((members - mean) ** 2, axis=0) / max(M - 1, 1)


def _joined(parts: list[tuple[Array, ...]]) -> list[np.ndarray]:
    """Blocks of arrays (K, p) as NumPy arrays of shape (points, K)."""
    columns = zip(*parts, strict=True)
    return [np.concatenate([to_numpy(a) for a in arrays], axis=1).T for arrays in columns]


def _primal(form: Form) -> Form:
    if isinstance(form, (RowForm, RegeneratedForm)):
        return form.gram()
    if isinstance(form, JackknifeForm):
        return replace(form, diagonal=_primal(form.diagonal))
    return form


@dataclass(frozen=True)
class RowsOfQ:
    """Blocks of Q made from blocks of training rows, iterable as often as they are."""

    whitening: Whitening
    to_q: Array
    blocks: Iterable[Block]

    def __iter__(self) -> Iterator[Array]:
        for block in self.blocks:
            yield self.to_q @ scaled_rows(self.whitening.layer(block.X), block.root_weight)


def rows_of_q(model: Model, blocks: Iterable[Block]) -> RowsOfQ:
    """Q of the training rows, scaled by the square roots of their weights."""
    return RowsOfQ(model.whitening, model.basis.to_q @ model.whitening.P, blocks)


def row_fits(model: Model, blocks: Iterable[Block]) -> Iterator[tuple[Block, RowFit]]:
    """Each block of training rows with its coordinates, residuals and leverages."""
    xp = namespace(model.q)
    d = model.basis.filters(model.alpha)[:, :, None]
    fitted_map = xp.permute_dims(model.q * d, (0, 2, 1))
    both_d = xp.permute_dims(xp.concat([d, d**2], axis=2), (0, 2, 1))
    to_q = model.basis.to_q @ model.whitening.P
    for block in blocks:
        Q = to_q @ model.whitening.layer(block.X)
        both = both_d @ Q**2
        residual = (block.y - model.y_shift[:, None]) - fitted_map @ Q
        yield block, RowFit(Q, residual, both[:, 0, :], both[:, 1, :], block.root_weight)


def first_members(model: Model, n_members: int) -> Model:
    """The first members of an ensemble as a model of their own, without variance forms."""
    few = slice(n_members)
    whitening, basis = model.whitening, model.basis
    layer = replace(
        whitening.layer,
        weights=whitening.layer.weights[few, :, :],
        biases=whitening.layer.biases[few, :],
    )
    return replace(
        model,
        whitening=Whitening(
            layer,
            whitening.center[few, :],
            whitening.P[few, :, :],
            whitening.P_inverse[few, :, :],
        ),
        basis=replace(
            basis,
            s=basis.s[few, :],
            Vt=basis.Vt[few, :, :],
            to_q=basis.to_q[few, :, :],
            shift=basis.shift[few, :],
        ),
        q=model.q[few, :, :],
        fit=FitSummary(model.fit.n, model.fit.dof[few], model.fit.trace[few]),
        stacks=[],
        forms={},
    )


class Training(NamedTuple):
    """Row-wise results of an in-memory fit, in the units of y.

    Parameters
    ----------
    leverage : ndarray of shape (M, n)
        Leverage of each row in each member.
    loo : ndarray of shape (M, K, n)
        Leave-one-out residuals of each member.
    norm2 : ndarray of shape (M, n)
        z'z of the left-out row: the variance of each member's prediction in units of the noise.
    omega : ndarray of shape (K, n)
        Squared residuals of the ensemble as an HC variant discounts them, scaled by the row's
        weight.
    """

    leverage: np.ndarray
    loo: np.ndarray
    norm2: np.ndarray
    omega: np.ndarray


class TrainingRecorder:
    """Collects the row-wise results of a fit while a pass goes over its rows.

    Parameters
    ----------
    hc : str
        Squared residuals to record.
    """

    def __init__(self, hc: str) -> None:
        self.hc = hc
        self._parts: list[tuple[int, Training]] = []

    def record(self, model: Model, block: Block, rows: RowFit) -> None:
        """Take over the results of one block."""
        weighted = rows.weighted
        parts = (
            to_numpy(weighted.leverage),
            to_numpy(rows.loo),
            to_numpy(rows.left_out_norm2),
            to_numpy(mean_omega(self.hc, weighted, model.fit)),
        )
        self._parts.append((block.start, Training(*parts)))

    def training(self, model: Model, blocks: Iterable[Block]) -> Training:
        """All rows in their order; a pass is made if none was recorded."""
        if not self._parts:
            for block, rows in row_fits(model, blocks):
                self.record(model, block, rows)
        ordered = [part for _, part in sorted(self._parts, key=lambda item: item[0])]
        return Training(*(np.concatenate(a, axis=-1) for a in zip(*ordered, strict=True)))
