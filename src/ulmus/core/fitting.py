"""The passes over the data that make a model.

Each pass is a function of blocks of rows whose result merges with ``+``. A source of blocks
says how it is carried out: one block after another, on several threads, or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from ulmus.core.backend import Array, double_precision, like, namespace, to_numpy
from ulmus.core.basis import Basis, gram_basis
from ulmus.core.forms import (
    COMMON,
    Form,
    JackknifeForm,
    PairGram,
    PairWeights,
    lone_members,
    member_groups,
    row_form,
)
from ulmus.core.hidden import HiddenLayer
from ulmus.core.model import Model, TrainingRecorder, row_fits
from ulmus.core.moments import Block, Moments, row_moments
from ulmus.core.noise import (
    FitSummary,
    RowFit,
    ensemble_omega,
    member_omega,
    pilot_noise,
    residual_noise,
)
from ulmus.core.selection import alpha_grid, best_alpha, gcv_scores, loo_scores
from ulmus.core.variance import ESTIMATES
from ulmus.core.whitening import Whitening, sample_whitening
from ulmus.core.wide import wide_path


class Source(Protocol):
    """Blocks of rows, and a way to run a pass over them."""

    def reduce(self, row_pass: Callable[[Iterable[Block]], Any]) -> Any:
        """Run a pass over all blocks and merge its results with ``+``."""


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
    wide : bool
        Keep what intervals for the function need, also where not all pairs are summed.
    """

    alpha: float | str
    noise_variance: str | np.ndarray
    hc: str
    estimates: tuple[str, ...]
    keep_rows: bool
    wide: bool

    @property
    def weights(self) -> list[PairWeights]:
        """Kinds of weights wanted, each once; ensemble residuals are made from the common one."""
        wanted = {ESTIMATES[name].weights for name in self.estimates}
        if self.hc == "ensemble" and wanted - {COMMON}:
            wanted.add(COMMON)
        return sorted(wanted, key=lambda weights: weights.name)

    @property
    def all_pairs(self) -> bool:
        """Whether the first pass must sum over all pairs of members."""
        return COMMON in self.weights and not self.keep_rows

    def groups(self, M: int) -> list[slice]:
        """Groups of members whose pairs the first pass must sum over."""
        groups = member_groups(M)
        if self.all_pairs:
            return [slice(0, M)]
        if self.wide:
            return groups
        if isinstance(self.noise_variance, str) and self.noise_variance == "pilot":
            return [groups[0], *lone_members(M, groups[0].stop)]
        return lone_members(M)


def fitted_model(
    source: Source,
    sample: Block,
    layer: HiddenLayer,
    settings: Settings,
    recorder: TrainingRecorder | None = None,
) -> Model:
    """Fit an ensemble from a source of rows.

    ``sample`` sets the preconditioner; a ``recorder`` is shown the rows of the last pass.
    """
    whitening, y_shift = started_fit(sample, layer)
    moments = source.reduce(FirstPass(whitening, y_shift, settings.groups(layer.n_members)))
    return moments_model(moments, whitening, y_shift, settings, source, recorder)


def started_fit(sample: Block, layer: HiddenLayer) -> tuple[Whitening, Array]:
    """What a sample of rows sets for all passes: the preconditioner and a shift of y.

    With an intercept, subtracting the sample's mean output changes no result.
    """
    xp = namespace(sample.y)
    whitening = sample_whitening(layer, sample.X, sample.root_weight)
    y_shift = xp.mean(sample.y, axis=1) if layer.constant else xp.zeros_like(sample.y[:, 0])
    return whitening, y_shift


def moments_model(
    moments: Moments,
    whitening: Whitening,
    y_shift: Array,
    settings: Settings,
    source: Source | None,
    recorder: TrainingRecorder | None = None,
) -> Model:
    """Model from the sums of the first pass; a second one is made only if it is needed."""
    if moments.n_rows < 2:
        raise ValueError(
            f"the data hold {moments.n_rows} row of positive weight; give at least two."
        )
    basis = gram_basis(moments.gram.single, whitening)
    q = basis.to_q @ moments.cross
    alpha = _chosen_alpha(settings.alpha, source, whitening, y_shift, basis, q, moments)
    trace = namespace(q).sum(basis.filters(alpha), axis=1)
    fit = FitSummary(moments.n_rows, basis.dof(alpha), trace)
    _require_residuals(fit, alpha, basis)
    gram = moments.gram.rotated(basis.to_q)
    sigma2, residual2 = _noise(settings.noise_variance, basis, q, gram, moments, alpha)
    stacks: list[Array] = []
    if settings.all_pairs or settings.wide:
        stacks = [gram.stacked(group) for group in member_groups(q.shape[0])]
    forms: dict[str, list[Form]] = {"common": [gram]} if settings.all_pairs else {}
    model = Model(
        whitening, basis, alpha, q, y_shift, moments.y_square, sigma2, residual2, fit, stacks, forms
    )
    if source is not None:
        _add_row_forms(model, source, settings, recorder)
    return model


@dataclass(frozen=True)
class FirstPass:
    """Sums of whitened features and outputs."""

    title: ClassVar[str] = "sums of features"

    whitening: Whitening
    y_shift: Array
    groups: list[slice]

    def __call__(self, blocks: Iterable[Block]) -> Moments:
        """Moments of the blocks."""
        return row_moments(shifted_blocks(blocks, self.y_shift), self.whitening, self.groups)


@dataclass(frozen=True)
class LeaveOneOutPass:
    """Squared leave-one-out errors for each alpha and output."""

    title: ClassVar[str] = "leave-one-out errors"

    whitening: Whitening
    y_shift: Array
    basis: Basis
    q: Array
    n_rows: int
    alphas: np.ndarray

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Sums over the blocks, shape (A, K)."""
        shifted = shifted_blocks(blocks, self.y_shift)
        return loo_scores(shifted, self.whitening, self.basis, self.q, self.n_rows, self.alphas)


@dataclass
class WeightedGrams:
    """Weighted Gram matrices of Q for each kind of weights and output; merges with ``+``."""

    grams: dict[str, list[PairGram]]
    c: list[Array]

    def __add__(self, other: WeightedGrams) -> WeightedGrams:
        """Sums over the rows of both."""
        grams = {
            name: [a + b for a, b in zip(mine, other.grams[name], strict=True)]
            for name, mine in self.grams.items()
        }
        return WeightedGrams(grams, [a + b for a, b in zip(self.c, other.c, strict=True)])


@dataclass(frozen=True)
class WeightedPass:
    """Sums of Q D Q' with weights made from squared residuals."""

    title: ClassVar[str] = "residual-weighted sums"

    model: Model
    hc: str
    kinds: list[PairWeights]
    recorder: TrainingRecorder | None

    def __call__(self, blocks: Iterable[Block]) -> WeightedGrams:
        """Weighted sums over the blocks."""
        M, N, K = self.model.q.shape
        every = [slice(0, M)]
        grams = {
            w.name: [PairGram.zeros(N, every, like=self.model.q) for _ in range(K)]
            for w in self.kinds
        }
        c: list[Array] = [0.0] * K
        for block, raw in row_fits(self.model, blocks):
            if self.recorder is not None:
                self.recorder.record(self.model, block, raw)
            rows = raw.weighted
            omega = row_omega(self.hc, self.model, rows)
            for k in range(K):
                for w in self.kinds:
                    grams[w.name][k].add(rows.Q, w, omega[:, k, :])
                if self.hc == "HC3-exact":
                    c[k] = c[k] + rows.Q @ rows.loo[:, k, :].T
        return WeightedGrams(grams, c)


def shifted_blocks(blocks: Iterable[Block], y_shift: Array) -> Iterable[Block]:
    """Blocks with a constant subtracted from the outputs."""
    for block in blocks:
        yield block._replace(y=block.y - y_shift[:, None])


def row_omega(hc: str, model: Model, rows: RowFit) -> Array:
    """Squared residuals of rows as the HC variant wants them, shape (M, K, n)."""
    if hc != "ensemble":
        return member_omega(hc, rows, model.fit)
    d = model.basis.filters(model.alpha)[:, :, None]
    smoothed = model.forms["common"][0].sums(d * rows.Q)
    return ensemble_omega(rows, (smoothed.single + smoothed.distinct) / model.n_members**2)


def _chosen_alpha(
    alpha: float | str,
    source: Source | None,
    whitening: Whitening,
    y_shift: Array,
    basis: Basis,
    q: Array,
    moments: Moments,
) -> float:
    if not isinstance(alpha, str):
        return float(alpha)
    alphas = alpha_grid(basis)
    if alpha == "gcv" or source is None:
        scores = gcv_scores(basis, q, moments.y_square, moments.n_rows, alphas)
    else:
        row_pass = LeaveOneOutPass(whitening, y_shift, basis, q, moments.n_rows, alphas)
        scores = source.reduce(row_pass)
    explained = q[0, 0, :] ** 2 if basis.constant else 0.0
    return best_alpha(alphas, scores, to_numpy(moments.y_square - explained))


def _noise(
    choice: str | np.ndarray, basis: Basis, q: Array, gram: PairGram, moments: Moments, alpha: float
) -> tuple[Array, Array]:
    """Noise variance for standard errors, and that of a new observation, each (K,)."""
    if not isinstance(choice, str):
        return like(choice, q), like(choice, q)
    y_square, n = moments.y_square, moments.n_rows
    residual = residual_noise(basis, q, y_square, n, alpha)
    # The pilot's small ridge parameters are below the round-off of single precision.
    if choice == "residual" or not double_precision(q):
        return residual, residual
    group = member_groups(q.shape[0])[0]
    pilot = like(pilot_noise(wide_path(basis, q, group, gram.stacked(group), y_square, n)), q)
    return pilot, namespace(q).maximum(residual, pilot)


def _require_residuals(fit: FitSummary, alpha: float, basis: Basis) -> None:
    rank = int(namespace(basis.s).max(basis.rank(alpha)))
    if alpha == 0 and rank >= fit.n:
        raise ValueError(
            f"alpha=0 leaves no residual degrees of freedom: the hidden layer has rank {rank} "
            f"and there are {fit.n} rows. Use alpha='loo', fewer n_neurons or more rows."
        )


def _add_row_forms(
    model: Model, source: Source, settings: Settings, recorder: TrainingRecorder | None
) -> None:
    """Add the forms that need a second pass over the rows."""
    kinds = [w for w in settings.weights if w.name not in model.forms]
    if not kinds:
        return
    if settings.keep_rows:
        _add_dual_forms(model, cast(Iterable[Block], source), settings.hc, kinds)
        return
    sums = source.reduce(WeightedPass(model, settings.hc, kinds, recorder))
    for w in kinds:
        model.forms[w.name] = _exact_forms(sums.grams[w.name], sums.c, w, model, settings.hc)


def _add_dual_forms(
    model: Model, source: Iterable[Block], hc: str, kinds: list[PairWeights]
) -> None:
    """Keep the rows Q and their squared residuals."""
    xp, K = namespace(model.q), model.q.shape[2]
    fits = [rows.weighted[:-1] for _, rows in row_fits(model, source)]
    parts = [xp.concat(list(arrays), axis=-1) for arrays in zip(*fits, strict=True)]
    Q, residual, leverage, leverage2 = parts
    rows = RowFit(Q, residual, leverage, leverage2, None)
    for w in kinds:
        if w is COMMON:
            model.forms["common"] = [row_form(rows.Q, COMMON)]
            continue
        omega = row_omega(hc, model, rows)
        forms = [row_form(rows.Q, w, omega[:, k, :]) for k in range(K)]
        c = [rows.Q @ rows.loo[:, k, :].T for k in range(K)]
        model.forms[w.name] = _exact_forms(forms, c, w, model, hc)


def _exact_forms(
    forms: Iterable[Form], c: list[Array], weights: PairWeights, model: Model, hc: str
) -> list[Form]:
    if hc != "HC3-exact":
        return list(forms)
    return [
        JackknifeForm(form, c_k, model.fit.n, weights.degree)
        for form, c_k in zip(forms, c, strict=True)
    ]
