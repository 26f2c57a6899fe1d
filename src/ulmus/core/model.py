"""A fitted ensemble, and the passes over the data that make one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ulmus.core.backend import Array, like, namespace, row_blocks, to_numpy
from ulmus.core.basis import Basis, gram_basis
from ulmus.core.forms import COMMON, Form, JackknifeForm, PairGram, PairWeights, RowForm, row_form
from ulmus.core.hidden import HiddenLayer
from ulmus.core.moments import Block, Moments, row_moments
from ulmus.core.noise import (
    PILOT_MEMBERS,
    FitSummary,
    RowFit,
    ensemble_omega,
    member_omega,
    pilot_noise,
    residual_noise,
)
from ulmus.core.selection import alpha_grid, best_alpha, gcv_scores, loo_scores
from ulmus.core.variance import ESTIMATES, PointParts
from ulmus.core.whitening import Whitening, sample_whitening, scaled_rows


@dataclass(frozen=True)
class Settings:
    """How to fit: ridge, noise, and which kinds of weights the estimates will ask for.

    Parameters
    ----------
    alpha : float, "loo" or "gcv"
        Ridge parameter or how to choose it.
    noise_variance : "pilot", "residual" or an array of shape (K,)
        Estimate of the noise variance, or its known value.
    hc : str
        Squared residuals used by the heteroskedastic estimates.
    estimates : tuple of str
        Names in ``ESTIMATES``.
    keep_rows : bool
        Keep Q and use the dual forms.
    """

    alpha: float | str
    noise_variance: str | np.ndarray
    hc: str
    estimates: tuple[str, ...]
    keep_rows: bool

    @property
    def pilot(self) -> bool:
        """Whether the pilot noise estimate is wanted."""
        return isinstance(self.noise_variance, str) and self.noise_variance == "pilot"

    @property
    def weights(self) -> list[PairWeights]:
        """Kinds of weights wanted, each once; ensemble residuals are made from the common one."""
        wanted = {ESTIMATES[name].weights for name in self.estimates}
        if self.hc == "ensemble" and wanted - {COMMON}:
            wanted.add(COMMON)
        return sorted(wanted, key=lambda weights: weights.name)


@dataclass(frozen=True)
class Model:
    """A fitted ensemble of constant size, or with its training rows in the dual form.

    Parameters
    ----------
    whitening : Whitening
        The hidden layer and its centre.
    alpha : float
        Ridge parameter.
    to_t : array of shape (M, N, N)
        Map from centred features to t(x).
    q : array of shape (M, N, K)
        Q'y of each member.
    to_q : array of shape (M, N, N)
        Map from centred features to rows of Q.
    d : array of shape (M, N)
        Filter factors.
    y_shift : array of shape (K,)
        What was subtracted from the outputs.
    sigma2 : array of shape (K,)
        Noise variance at unit weight.
    fit : FitSummary
        Totals over rows.
    rank : array of shape (M,)
        Rank of each member.
    forms : dict
        For each kind of weights, a form per output; ``common`` has a single one.
    """

    whitening: Whitening
    alpha: float
    to_t: Array
    to_q: Array
    q: Array
    d: Array
    y_shift: Array
    sigma2: Array
    fit: FitSummary
    rank: Array
    forms: dict[str, list[Form]]

    @property
    def n_members(self) -> int:
        """Number of members."""
        return self.whitening.layer.n_members

    @property
    def beta(self) -> Array:
        """Coefficients of the centred features, shape (M, N, K)."""
        return namespace(self.q).permute_dims(self.to_t, (0, 2, 1)) @ self.q

    def mean(self, X: Array) -> Array:
        """Prediction of the ensemble, shape (K, n)."""
        xp = namespace(self.q)
        beta = xp.reshape(self.beta, (-1, self.q.shape[2])) / self.n_members
        parts = []
        for rows in row_blocks(X.shape[0], self.whitening.layer.size):
            H = self.whitening.centered(X[rows])
            parts.append(beta.T @ xp.reshape(H, (beta.shape[0], -1)))
        return xp.concat(parts, axis=1) + self.y_shift[:, None]

    def point_parts(self, X: Array, weights: PairWeights) -> PointParts:
        """Mean, spread and both means of the form at the rows of X, in blocks."""
        blocks = row_blocks(X.shape[0], self.whitening.layer.size)
        parts = [self._block_parts(X[rows], weights) for rows in blocks]
        mean, spread, A, U = (
            np.concatenate([to_numpy(a) for a in arrays], axis=1).T
            for arrays in zip(*parts, strict=True)
        )
        return PointParts(mean, spread, A, U, self.n_members)

    def _block_parts(self, X: Array, weights: PairWeights) -> tuple[Array, ...]:
        """The same for one block of points, each (K, p)."""
        xp, M = namespace(self.q), self.n_members
        t = self.to_t @ self.whitening.centered(X)
        members = xp.permute_dims(self.q, (0, 2, 1)) @ t
        mean = xp.mean(members, axis=0)
        spread = xp.sum((members - mean) ** 2, axis=0) / max(M - 1, 1)
        means = [weights.means(form.sums(t), M) for form in self.forms[weights.name]]
        A = xp.stack([m.single for m in means])
        U = xp.stack([m.distinct for m in means])
        scale = self.sigma2[:, None] if weights is COMMON else 1.0
        return mean + self.y_shift[:, None], spread, A * scale, U * scale

    def compressed(self) -> Model:
        """The same model with every form in its primal shape."""
        forms = {name: [_primal(form) for form in forms] for name, forms in self.forms.items()}
        return replace(self, forms=forms)


def _primal(form: Form) -> Form:
    if isinstance(form, RowForm):
        return form.gram()
    if isinstance(form, JackknifeForm):
        return replace(form, diagonal=_primal(form.diagonal))
    return form


class Training(NamedTuple):
    """Row-wise results of an in-memory fit, in the units of y.

    Parameters
    ----------
    leverage : array of shape (M, n)
        Leverage of each row in each member.
    residual, loo : arrays of shape (M, K, n)
        Residuals and leave-one-out residuals of each member.
    """

    leverage: Array
    residual: Array
    loo: Array


def fitted_model(
    blocks: Iterable[Block], sample: Block, layer: HiddenLayer, settings: Settings
) -> Model:
    """Fit an ensemble from re-iterable blocks of rows; ``sample`` sets the preconditioner."""
    whitening = sample_whitening(layer, sample.X, sample.root_weight)
    y_shift = _shift(sample, layer.constant)
    shifted = _ShiftedBlocks(blocks, y_shift)
    kinds = settings.weights
    pairs = COMMON in kinds and not settings.keep_rows
    stacked = PILOT_MEMBERS if settings.pilot else 0
    moments = row_moments(shifted, whitening, pairs=pairs, stacked=stacked)
    basis = gram_basis(moments.gram.single, whitening)
    q = basis.to_q @ moments.cross
    alpha = _chosen_alpha(settings.alpha, shifted, whitening, basis, q, moments)
    fit = FitSummary(
        moments.n_rows, basis.dof(alpha), namespace(q).sum(basis.filters(alpha), axis=1)
    )
    _require_residuals(fit, alpha, basis)
    model = Model(
        whitening,
        alpha,
        basis.to_t(alpha),
        basis.to_q @ whitening.P,
        q,
        basis.filters(alpha),
        y_shift,
        _noise(settings.noise_variance, basis, q, moments, alpha),
        fit,
        basis.rank(alpha),
        forms={},
    )
    if pairs:
        moments.gram.rotate(basis.to_q)
        model.forms["common"] = [moments.gram]
    return _with_row_forms(model, shifted, settings)


def row_fit(model: Model, block: Block) -> RowFit:
    """Q, residuals and leverages of a block whose outputs are already shifted."""
    xp = namespace(model.q)
    Q = model.to_q @ scaled_rows(model.whitening.centered(block.X), block.root_weight)
    d = model.d[:, :, None]
    fitted = xp.permute_dims(model.q * d, (0, 2, 1)) @ Q
    both = xp.permute_dims(xp.concat([d, d**2], axis=2), (0, 2, 1)) @ Q**2
    return RowFit(Q, block.target - fitted, both[:, 0, :], both[:, 1, :])


def training_rows(model: Model, blocks: Iterable[Block]) -> Training:
    """Leverages and residuals of all training rows, in the units of y."""
    xp = namespace(model.q)
    parts = []
    for block in _ShiftedBlocks(blocks, model.y_shift):
        unweighted = row_fit(model, block._replace(root_weight=None))
        weight = 1.0 if block.root_weight is None else block.root_weight**2
        rows = unweighted._replace(leverage=unweighted.leverage * weight)
        parts.append(Training(rows.leverage, rows.residual, rows.loo))
    return Training(*(xp.concat(list(arrays), axis=-1) for arrays in zip(*parts, strict=True)))


@dataclass(frozen=True)
class _ShiftedBlocks:
    """Blocks with a constant subtracted from the outputs; iterable as often as they are."""

    blocks: Iterable[Block]
    y_shift: Array

    def __iter__(self) -> Iterator[Block]:
        for block in self.blocks:
            yield block._replace(y=block.y - self.y_shift[:, None])


def _shift(sample: Block, constant: bool) -> Array:
    """Mean output of the sample: with an intercept, subtracting it changes no result."""
    xp = namespace(sample.y)
    return xp.mean(sample.y, axis=1) if constant else xp.zeros_like(sample.y[:, 0])


def _chosen_alpha(
    alpha: float | str,
    blocks: Iterable[Block],
    whitening: Whitening,
    basis: Basis,
    q: Array,
    moments: Moments,
) -> float:
    if not isinstance(alpha, str):
        return float(alpha)
    alphas = alpha_grid(basis)
    if alpha == "gcv":
        scores = gcv_scores(basis, q, moments.y_square, moments.n_rows, alphas)
    else:
        scores = loo_scores(blocks, whitening, basis, q, alphas)
    explained = q[0, 0, :] ** 2 if basis.constant else 0.0
    return best_alpha(alphas, scores, to_numpy(moments.y_square - explained))


def _noise(
    choice: str | np.ndarray, basis: Basis, q: Array, moments: Moments, alpha: float
) -> Array:
    if not isinstance(choice, str):
        return like(choice, q)
    if choice == "residual":
        return residual_noise(basis, q, moments.y_square, moments.n_rows, alpha)
    rotation = _block_diagonal(basis.to_q, moments.stack.shape[0])
    stack = rotation @ moments.stack @ rotation.T
    return pilot_noise(basis, q, stack, moments.y_square, moments.n_rows)


def _block_diagonal(matrices: Array, side: int) -> Array:
    """The first matrices of a stack as the blocks of one square matrix."""
    xp, N = namespace(matrices), matrices.shape[1]
    out = xp.zeros((side, side), dtype=matrices.dtype, device=matrices.device)
    for m in range(side // N):
        out[m * N : (m + 1) * N, m * N : (m + 1) * N] = matrices[m, :, :]
    return out


def _require_residuals(fit: FitSummary, alpha: float, basis: Basis) -> None:
    rank = int(namespace(basis.s).max(basis.rank(alpha)))
    if alpha == 0 and rank >= fit.n:
        raise ValueError(
            f"alpha=0 leaves no residual degrees of freedom: the hidden layer has rank {rank} "
            f"and there are {fit.n} rows. Use alpha='loo', fewer n_neurons or more rows."
        )


def _with_row_forms(model: Model, blocks: Iterable[Block], settings: Settings) -> Model:
    """Add the forms that need a second pass over the rows."""
    kinds = [w for w in settings.weights if w.name not in model.forms]
    if not kinds:
        return model
    if settings.keep_rows:
        return _with_dual_forms(model, blocks, settings, kinds)
    M, N, K = model.q.shape
    grams = {
        w.name: [PairGram.zeros(M, N, pairs=True, like=model.q) for _ in range(K)] for w in kinds
    }
    c = [0.0] * K
    for block in blocks:
        rows = row_fit(model, block)
        omega = _omega(settings.hc, model, rows)
        for k in range(K):
            for w in kinds:
                grams[w.name][k].add(rows.Q, w, omega[:, k, :])
            if settings.hc == "HC3-exact":
                c[k] = c[k] + rows.Q @ rows.loo[:, k, :].T
    for w in kinds:
        forms: list[Form] = list(grams[w.name])
        model.forms[w.name] = _exact_forms(forms, c, w, model, settings.hc)
    return model


def _with_dual_forms(
    model: Model, blocks: Iterable[Block], settings: Settings, kinds: list[PairWeights]
) -> Model:
    """Keep the rows Q and their squared residuals."""
    xp, K = namespace(model.q), model.q.shape[2]
    fits = [row_fit(model, block) for block in blocks]
    rows = RowFit(*(xp.concat(list(arrays), axis=-1) for arrays in zip(*fits, strict=True)))
    for w in kinds:
        if w is COMMON:
            model.forms["common"] = [row_form(rows.Q, COMMON)]
            continue
        omega = _omega(settings.hc, model, rows)
        forms: list[Form] = [row_form(rows.Q, w, omega[:, k, :]) for k in range(K)]
        c = [rows.Q @ rows.loo[:, k, :].T for k in range(K)]
        model.forms[w.name] = _exact_forms(forms, c, w, model, settings.hc)
    return model


def _exact_forms(
    forms: list[Form], c: list[Array], weights: PairWeights, model: Model, hc: str
) -> list[Form]:
    if hc != "HC3-exact":
        return forms
    return [
        JackknifeForm(form, c_k, model.fit.n, weights.degree)
        for form, c_k in zip(forms, c, strict=True)
    ]


def _omega(hc: str, model: Model, rows: RowFit) -> Array:
    if hc != "ensemble":
        return member_omega(hc, rows, model.fit)
    smoothed = model.forms["common"][0].sums(model.d[:, :, None] * rows.Q)
    smoother2 = (smoothed.single + smoothed.distinct) / model.n_members**2
    return ensemble_omega(rows, smoother2)
