"""From a source of rows and a specification to the regressions of a fit.

The passes, each a function of blocks whose result merges with ``+``: sums of whitened features
(moments.py), leave-one-out errors (selection.py), and rows as the fit sees them (second_pass.py).
Rows in memory are seen by all three; a stream makes only those that its estimates need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.data.scaling import OutputUnits, output_units
from ulmus.core.data.source import Block, RowBlocks, Source
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.ensemble.row_pass import AllSums, SecondPass
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise import NOISES, ResidualNoise, noise_of_estimate
from ulmus.core.noise.constant import ConstantNoise, NoiseVariance, noise_variance
from ulmus.core.noise.per_row import PerRowNoise
from ulmus.core.ridge.alpha import chosen_alphas
from ulmus.core.ridge.factor import Factor, factor_of_moments, factor_of_rows
from ulmus.core.ridge.member_pairs import COMMON, lone_members, member_groups
from ulmus.core.ridge.moments import FirstPass, Moments
from ulmus.core.ridge.preconditioner import Whitening, sample_rows, sample_whitening
from ulmus.core.ridge.residuals import RowFit
from ulmus.core.ridge.smoother import Smoother, smoother
from ulmus.core.variance.estimates import ESTIMATES
from ulmus.core.variance.quadratic_forms import PairForms, common_forms
from ulmus.core.variance.undersmoothing import first_group_path


@dataclass(frozen=True)
class Specification:
    """How to fit.

    Parameters
    ----------
    alpha : float, "loo", "block-loo" or "gcv"
        Ridge parameter, or how each output chooses its own. ``"block-loo"`` needs rows with
        labels of blocks.
    noise_variance : "pilot", "residual" or an array of shape (K,)
        Estimate of the noise variance at weight 1, or its known value.
    hc : str
        How residuals are discounted in the heteroskedastic estimates.
    estimates : tuple of str
        Names in ``ESTIMATES``, the default first.
    dual : bool
        Keep the coordinates of the training rows, and use them for the forms.
    """

    alpha: float | str
    noise_variance: str | np.ndarray
    hc: str
    estimates: tuple[str, ...]
    dual: bool = False

    @property
    def pairings(self) -> set[str]:
        """Pairings of the estimates, and those that their noise assumptions require."""
        own = {ESTIMATES[name].pairing for name in self.estimates}
        return own.union(*(NOISES[name].requires for name in own))

    @property
    def constant_noise(self) -> bool:
        """Whether an estimate assumes one noise variance for all rows."""
        return COMMON.name in self.pairings

    @property
    def residual_noises(self) -> list[ResidualNoise]:
        """Noise assumptions whose forms are sums over rows in any order."""
        return [
            PerRowNoise(name, self.hc)
            for name in sorted(self.pairings)
            if NOISES[name].heteroskedastic
        ]

    @property
    def pilot(self) -> bool:
        """Whether the noise variance comes from a wider network."""
        return isinstance(self.noise_variance, str) and self.noise_variance == "pilot"

    def in_units(self, units: OutputUnits) -> Specification:
        """The same with a known noise variance in the fit's units of y."""
        if isinstance(self.noise_variance, str):
            return self
        return replace(self, noise_variance=self.noise_variance / to_numpy(units.unit) ** 2)

    @property
    def records_omega(self) -> bool:
        """Whether intervals for the function need the noise variance of each row."""
        return bool(self.estimates) and noise_of_estimate(self.estimates[0]).heteroskedastic


@dataclass(frozen=True)
class Start:
    """What a sample of rows sets for all passes: the units of y and the preconditioner."""

    units: OutputUnits
    whitening: Whitening


def started(sample: Block, layer: HiddenLayer) -> Start:
    """Units and preconditioner from a sample."""
    return Start(output_units(sample, layer.constant), sample_whitening(layer, sample))


def first_groups(M: int, n_neurons: int, spec: Specification, *, streamed: bool) -> list[slice]:
    """Groups of members whose pairs the first pass must sum over.

    Rows in memory are seen again, when the coordinates of the fit are known; a stream sums the
    pairs of constant noise at once, and those of the pilot's group.
    """
    if not streamed:
        return lone_members(M)
    if spec.constant_noise:
        return [slice(0, M)]
    if spec.pilot:
        group = member_groups(M, n_neurons)[0]
        return [group, *lone_members(M, group.stop)]
    return lone_members(M)


def fitted_rows(rows: RowBlocks, layer: HiddenLayer, spec: Specification) -> FittedRows:
    """Fit rows in memory; every row is seen once more at the end."""
    rows = rows.for_width(layer.width)
    n_used = int(np.sum(rows.used))
    sample = rows.sample(sample_rows(layer.n_units))
    if sample.y.shape[1] == n_used:
        units = output_units(sample, layer.constant)
        factor = factor_of_rows(layer, next(units.blocks([sample])))
    else:
        start = started(sample, layer)
        units = start.units
        groups = first_groups(layer.n_members, layer.W.shape[1], spec, streamed=False)
        moments = rows.reduce(FirstPass(start.whitening, units, groups))
        factor = factor_of_moments(moments, start.whitening)
    spec = spec.in_units(units)
    parts = [part for part, _ in regressions(factor, layer, units, spec, rows)]
    ensemble = Ensemble(layer, units, tuple(parts))
    return FittedRows(*_kept_rows(ensemble, rows, spec))


def fitted_stream(
    source: Source, layer: HiddenLayer, spec: Specification, start: Start
) -> Ensemble:
    """Fit rows that are not kept."""
    source = source.for_width(layer.width)
    groups = first_groups(layer.n_members, layer.W.shape[1], spec, streamed=True)
    moments = source.reduce(FirstPass(start.whitening, start.units, groups))
    ensemble = fitted_moments(moments, start, layer, spec, source)
    if spec.residual_noises:
        totals = source.reduce(SecondPass(ensemble, [], spec.residual_noises, ()))
        ensemble = _with_residual_noises(ensemble, totals, spec.residual_noises)
    return ensemble


def fitted_moments(
    moments: Moments, start: Start, layer: HiddenLayer, spec: Specification, source: Source | None
) -> Ensemble:
    """Fit from the sums of the first pass alone; a source lets leave-one-out choose alpha."""
    if moments.n_rows < 2:
        raise ValueError(
            f"the data hold {moments.n_rows} row of positive weight; give at least two."
        )
    factor = factor_of_moments(moments, start.whitening)
    spec = spec.in_units(start.units)
    parts = []
    for part, from_phi in regressions(factor, layer, start.units, spec, source):
        assert from_phi is not None  # the factor is one of whitened features
        gram = moments.gram.rotated(from_phi[:, : part.smoother.n_strong, :])
        variance = _noise(part, spec, gram)
        forms = {}
        if spec.constant_noise:
            forms[COMMON.name] = common_forms(gram, variance.sigma2)
        parts.append(replace(part, variance=variance, forms=forms))
    return Ensemble(layer, start.units, tuple(parts))


def regressions(
    factor: Factor,
    layer: HiddenLayer,
    units: OutputUnits,
    spec: Specification,
    source: Source | None,
) -> Iterable[tuple[Regression, Array | None]]:
    """A regression for each ridge parameter, and its map from whitened features."""
    choice = chosen_alphas(spec.alpha, factor, layer, units, source)
    for alpha in sorted(set(choice.alphas)):
        outputs = tuple(k for k, chosen in enumerate(choice.alphas) if chosen == alpha)
        few = list(outputs)
        deviation, response = choice.deviation[few], choice.response[few]
        fit, from_phi = smoother(_some_outputs(factor, outputs), alpha)
        _require_residuals(fit)
        y_square = _taken(factor.y_square - factor.y_constant**2, outputs)
        nothing = namespace(fit.q).zeros_like(y_square)
        unknown = NoiseVariance(nothing, nothing)
        yield Regression(outputs, fit, y_square, unknown, deviation, response), from_phi


def _some_outputs(factor: Factor, outputs: tuple[int, ...]) -> Factor:
    return replace(
        factor,
        y=_taken(factor.y, outputs, axis=2),
        beyond=_taken(factor.beyond, outputs, axis=1),
        y_constant=_taken(factor.y_constant, outputs),
    )


def _taken(values: Array, outputs: tuple[int, ...], axis: int = 0) -> Array:
    xp = namespace(values)
    return xp.take(values, xp.asarray(list(outputs), device=values.device), axis=axis)


def _require_residuals(fit: Smoother) -> None:
    rank = int(np.max(fit.rank))
    if fit.alpha == 0 and rank >= fit.n_rows:
        raise ValueError(
            f"alpha=0 leaves no residual degrees of freedom: the hidden layer has rank {rank} "
            f"and there are {fit.n_rows} rows. Use alpha='loo', fewer n_neurons or more rows."
        )


def _noise(part: Regression, spec: Specification, form: Any) -> NoiseVariance:
    """Noise variance of a regression; ``form`` has the products of Q of the first group."""
    choice = spec.noise_variance
    if not isinstance(choice, str):
        choice = np.asarray(choice)[list(part.outputs)]
    path = first_group_path(part.smoother, part.y_square, form.stacked) if spec.pilot else None
    return noise_variance(choice, part.smoother, path)


@dataclass(frozen=True)
class FittedRows:
    """An ensemble fitted in memory, and by regression the recorded results of its rows."""

    ensemble: Ensemble
    records: list[dict[str, Any]]


def _kept_rows(
    ensemble: Ensemble, rows: RowBlocks, spec: Specification
) -> tuple[Ensemble, list[dict[str, Any]]]:
    """Noise variances and forms of rows in memory, and what is recorded of each row."""
    names = ("leverage", "loo", "norm", *(["omega"] if spec.records_omega else []))
    if spec.dual:
        return _with_dual_forms(ensemble, rows, spec, names)
    constant, noises = spec.constant_noise, spec.residual_noises
    M, n_neurons = ensemble.n_members, ensemble.layer.W.shape[1]
    groups = [slice(0, M)] if constant else member_groups(M, n_neurons)[:1] if spec.pilot else []
    totals = rows.reduce(SecondPass(ensemble, groups, noises, names))
    ensemble = _with_constant_noise(ensemble, totals, spec, constant)
    ensemble = _with_residual_noises(ensemble, totals, noises)
    return ensemble, [total.records.joined() for total in totals.parts]


def _with_constant_noise(
    ensemble: Ensemble, totals: AllSums, spec: Specification, constant: bool
) -> Ensemble:
    """Add the noise variance and, if wanted, the form of constant noise."""
    parts = []
    for part, total in zip(ensemble.regressions, totals.parts, strict=True):
        pairs = total.pairs_of(part.smoother)
        variance = _noise(part, spec, pairs)
        forms = {}
        if constant and pairs is not None:
            forms[COMMON.name] = common_forms(pairs, variance.sigma2)
        parts.append(replace(part, variance=variance, forms=forms))
    return replace(ensemble, regressions=tuple(parts))


def _with_residual_noises(
    ensemble: Ensemble, totals: AllSums, noises: list[ResidualNoise]
) -> Ensemble:
    """Add the forms that are made from residuals."""
    parts = []
    for part, total in zip(ensemble.regressions, totals.parts, strict=True):
        forms = dict(part.forms)
        for noise, sums in zip(noises, total.forms, strict=True):
            forms[noise.name] = sums.forms(part.smoother.n_rows, part.variance.sigma2)
        parts.append(replace(part, forms=forms))
    return replace(ensemble, regressions=tuple(parts))


def _with_dual_forms(
    ensemble: Ensemble, source: Source, spec: Specification, names: tuple[str, ...]
) -> tuple[Ensemble, list[dict[str, Any]]]:
    """Forms that keep the coordinates of the rows."""
    totals = source.reduce(SecondPass(ensemble, [], [], (*names, "t", "residual")))
    parts, records = [], []
    for part, total in zip(ensemble.regressions, totals.parts, strict=True):
        arrays = total.records.joined()
        rows = RowFit(part.smoother, arrays.pop("t"), arrays.pop("residual"), None)
        common = ConstantNoise().dual(rows, part.variance.sigma2)
        variance = _noise(part, spec, common.shared)
        forms: dict[str, PairForms] = {}
        if spec.constant_noise:
            forms[COMMON.name] = common_forms(common.shared, variance.sigma2)
        for noise in spec.residual_noises:
            forms[noise.name] = noise.dual(rows, variance.sigma2)
        parts.append(replace(part, variance=variance, forms=forms))
        records.append(arrays)
    return replace(ensemble, regressions=tuple(parts)), records
