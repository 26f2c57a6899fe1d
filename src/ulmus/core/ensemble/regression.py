"""Regressions of rows in memory: a ridge regression of y on the features of each member.

Passes over the rows are functions of blocks whose results merge with ``+``: sums of whitened
features (``ridge/moments.py``), leave-one-out errors (``ridge/alpha.py``), and :class:`SecondPass`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.data.scaling import OutputUnits, output_units
from ulmus.core.data.source import Block, RowBlocks, Source
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.noise import NOISES, NoiseSums, ResidualNoise
from ulmus.core.noise.constant import NoiseVariance, noise_variance
from ulmus.core.noise.per_row import PerRowNoise
from ulmus.core.ridge.alpha import chosen_alphas
from ulmus.core.ridge.factor import Factor, factor_of_moments, factor_of_rows
from ulmus.core.ridge.member_pairs import COMMON, lone_members, member_groups
from ulmus.core.ridge.moments import FirstPass
from ulmus.core.ridge.preconditioner import Whitening, sample_rows, sample_whitening
from ulmus.core.ridge.residuals import RowFit, pooled_omega
from ulmus.core.ridge.sampled_pairs import ALL_ROWS, AllPairs, PairSampling, pair_sampling
from ulmus.core.ridge.smoother import Smoother, smoother
from ulmus.core.variance.estimates import CONSTANT_NOISE, ESTIMATES
from ulmus.core.variance.quadratic_forms import PairForms, PairwiseForm, common_forms, row_form
from ulmus.core.variance.undersmoothing import first_group_path
from ulmus.exceptions import NoResidualDofError
from ulmus.messages import Message, Setting


@dataclass(frozen=True)
class RegressionSpec:
    """Ridge parameter, noise variance and variance estimates of a regression.

    The defaults are those of a regression without error bars, not those of the estimators.
    """

    # Ridge parameter of all outputs or of each, or the criterion by which each output chooses its
    # own. ``"block-loo"`` requires rows with block ids.
    alpha: float | str | tuple[float, ...]
    # (K,): estimate of the noise variance at weight 1, or its known value.
    noise_variance: str | np.ndarray = "residual"
    hc: str = "HC2"  # correction of squared residuals in the heteroskedastic estimates
    estimates: tuple[str, ...] = ()  # names in ``ESTIMATES``, the default first
    # Whether products between members are summed over all rows, however many there are.
    exact: bool = False

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
        names = [name for name in sorted(self.pairings) if NOISES[name].by_member]
        return [PerRowNoise(name, self.hc) for name in names]

    @property
    def pilot(self) -> bool:
        """Whether the noise variance is that of an undersmoothed network."""
        return isinstance(self.noise_variance, str) and self.noise_variance == "pilot"

    def in_units(self, units: OutputUnits) -> RegressionSpec:
        """The same with a known noise variance in the fit's units of y."""
        if isinstance(self.noise_variance, str):
            return self
        return replace(self, noise_variance=self.noise_variance / to_numpy(units.unit) ** 2)

    @property
    def records_omega(self) -> bool:
        """Whether intervals for the function require the noise variance of each row."""
        default = self.estimates[:1]
        return any(NOISES[ESTIMATES[name].pairing].by_member for name in default)

    @property
    def with_constant_noise(self) -> RegressionSpec:
        """The same with estimates of constant noise in place of those of modelled noise."""
        names = (CONSTANT_NOISE.get(name, name) for name in self.estimates)
        return replace(self, estimates=tuple(dict.fromkeys(names)))

    @property
    def without_estimates(self) -> RegressionSpec:
        """The same ridge rule without variance estimates."""
        return replace(self, noise_variance="residual", estimates=())


@dataclass(frozen=True)
class SampleScaling:
    """Units of y and preconditioner, computed from a sample of rows."""

    units: OutputUnits
    whitening: Whitening


def sample_scaling(sample: Block, layer: HiddenLayer) -> SampleScaling:
    """Units and preconditioner of a sample."""
    return SampleScaling(output_units(sample, layer.constant), sample_whitening(layer, sample))


@dataclass(frozen=True)
class FittedRows:
    """An ensemble fitted in memory, and the recorded results of its rows by regression."""

    ensemble: Ensemble
    records: list[dict[str, Any]]


def fitted_rows(
    rows: RowBlocks, layer: HiddenLayer, spec: RegressionSpec, *, dual: bool = False
) -> FittedRows:
    """Fit rows in memory.

    ``dual``: forms keep the coordinates of the training rows instead of their products.
    """
    rows = rows.for_width(layer.width)
    sample = rows.sample(sample_rows(layer.n_units))
    if sample.y.shape[1] == int(np.sum(rows.used)):
        units = output_units(sample, layer.constant)
        factor = factor_of_rows(layer, next(units.blocks([sample])))
    else:
        scaling = sample_scaling(sample, layer)
        units = scaling.units
        groups = lone_members(layer.n_members)
        moments = rows.reduce(FirstPass(scaling.whitening, units, groups))
        factor = factor_of_moments(moments, scaling.whitening)
    spec = spec.in_units(units)
    parts = tuple(regression for regression, _ in regressions(factor, layer, units, spec, rows))
    ensemble = Ensemble(layer, units, parts)
    names = ("leverage", "loo", "loo_leverage", *(["omega"] if spec.records_omega else []))
    if dual:
        return _with_dual_forms(ensemble, rows, spec, names)
    return _with_primal_forms(ensemble, rows, spec, names)


def regressions(
    factor: Factor,
    layer: HiddenLayer,
    units: OutputUnits,
    spec: RegressionSpec,
    source: Source | None,
) -> Iterable[tuple[Regression, Array | None]]:
    """A regression for each ridge parameter, and its map from whitened features."""
    choice = chosen_alphas(spec.alpha, factor, layer, units, source)
    for alpha in sorted(set(choice.alphas)):
        outputs = tuple(k for k, chosen in enumerate(choice.alphas) if chosen == alpha)
        few = list(outputs)
        fit, from_phi = smoother(_some_outputs(factor, outputs), alpha)
        _require_residual_dof(fit)
        # The difference may be negative round-off for a constant output.
        square = factor.y_square - factor.y_constant**2
        y_square = _taken(namespace(square).clip(square, min=0.0), outputs)
        zero = namespace(fit.q).zeros_like(y_square)
        regression = Regression(
            outputs=outputs,
            smoother=fit,
            y_square=y_square,
            noise_variance=NoiseVariance(sigma2=zero, residual=zero),
            alpha_deviation=choice.deviation[few],
            alpha_response=choice.response[few],
        )
        yield regression, from_phi


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


def _require_residual_dof(fit: Smoother) -> None:
    rank = int(np.max(fit.rank))
    if fit.alpha == 0 and rank >= fit.n_rows:
        cause = (
            f"leaves no residual degrees of freedom: the hidden layer has rank {rank} and there "
            f"are {fit.n_rows} rows"
        )
        smaller = Setting("n_neurons", phrase="use a smaller {}")
        suggestions = (Setting("alpha", "loo"), smaller, "use more rows")
        raise NoResidualDofError(Message("no-residual-dof", cause, "alpha", 0, suggestions))


def regression_noise(
    regression: Regression, spec: RegressionSpec, form: PairwiseForm | None
) -> NoiseVariance:
    """Noise variance of a regression; ``form`` has the products of Q of the first group."""
    choice = spec.noise_variance
    if not isinstance(choice, str):
        choice = np.asarray(choice)[list(regression.outputs)]
    path = None
    if spec.pilot and form is not None:
        path = first_group_path(regression.exact, regression.y_square, form.stacked)
    return noise_variance(choice, regression.exact, path)


def _with_primal_forms(
    ensemble: Ensemble, rows: RowBlocks, spec: RegressionSpec, names: tuple[str, ...]
) -> FittedRows:
    """Noise variances and forms by products of coordinates, summed over the rows."""
    constant, noises = spec.constant_noise, spec.residual_noises
    M, n_neurons = ensemble.layer.b.shape
    sampling = pair_sampling(ensemble.n_rows, ensemble.layer, exact=spec.exact)
    groups = list[slice]()
    if constant:
        groups = sampling.groups(M, n_neurons)
    elif spec.pilot:
        groups = member_groups(M, n_neurons)[:1]
    totals = rows.reduce(SecondPass(ensemble, groups, noises, names, sampling))
    parts = []
    for regression, total in zip(ensemble.regressions, totals.parts, strict=True):
        pairs = total.pairs_of(regression.smoother)
        variance, forms = regression_noise(regression, spec, pairs), {}
        if constant and pairs is not None:
            forms[COMMON.name] = common_forms(pairs, variance.sigma2)
        parts.append(replace(regression, noise_variance=variance, forms=forms))
    ensemble = replace(ensemble, regressions=tuple(parts))
    ensemble = with_residual_noises(ensemble, totals, noises)
    return FittedRows(ensemble, [total.records.joined() for total in totals.parts])


def with_residual_noises(
    ensemble: Ensemble, totals: EnsembleSums, noises: list[ResidualNoise]
) -> Ensemble:
    """Add the forms that are sums over residuals."""
    parts = []
    for regression, total in zip(ensemble.regressions, totals.parts, strict=True):
        forms = dict(regression.forms)
        for noise, sums in zip(noises, total.forms, strict=True):
            forms[noise.name] = sums.forms(
                regression.smoother.n_rows, regression.noise_variance.sigma2
            )
        parts.append(replace(regression, forms=forms))
    return replace(ensemble, regressions=tuple(parts))


def _with_dual_forms(
    ensemble: Ensemble, rows: RowBlocks, spec: RegressionSpec, names: tuple[str, ...]
) -> FittedRows:
    """Noise variances and forms that keep the coordinates of the rows."""
    totals = rows.reduce(SecondPass(ensemble, [], [], (*names, "t", "residual")))
    parts, records = [], []
    for regression, total in zip(ensemble.regressions, totals.parts, strict=True):
        arrays = total.records.joined()
        row_fit = RowFit(regression.exact, arrays.pop("t"), arrays.pop("residual"), None)
        common = row_form(row_fit.t, COMMON)
        variance = regression_noise(regression, spec, common)
        forms: dict[str, PairForms] = {}
        if spec.constant_noise:
            forms[COMMON.name] = common_forms(common, variance.sigma2)
        for noise in spec.residual_noises:
            forms[noise.name] = noise.dual(row_fit, variance.sigma2)
        parts.append(replace(regression, noise_variance=variance, forms=forms))
        records.append(arrays)
    return FittedRows(replace(ensemble, regressions=tuple(parts)), records)


# ------------------------------------------------------------ the pass over residuals


@dataclass
class RowRecords:
    """Results of single rows in parts that merge with ``+``: row numbers, and arrays by name."""

    parts: list[tuple[np.ndarray, dict[str, Any]]]

    def __add__(self, other: RowRecords) -> RowRecords:
        """Both parts."""
        return RowRecords(self.parts + other.parts)

    def joined(self) -> dict[str, Any]:
        """All rows in their order, by name; the rows are the last axis."""
        parts = sorted(self.parts, key=lambda part: part[0][0])
        rows = np.concatenate([numbers for numbers, _ in parts])
        order = None if np.all(np.diff(rows) > 0) else np.argsort(rows)
        return {
            name: _in_order([arrays[name] for _, arrays in parts], order) for name in parts[0][1]
        }


def _in_order(parts: list[Array], order: np.ndarray | None) -> Array:
    """Arrays joined along their last axis, with entries in the given order."""
    xp = namespace(parts[0])
    joined = xp.concat(parts, axis=-1)
    if order is None:
        return joined
    return xp.take(joined, xp.asarray(order, device=joined.device), axis=-1)


@dataclass
class RegressionSums:
    """Sums over rows of a regression: products of pairs, forms, and results of single rows."""

    pairs: AllPairs | None
    forms: list[NoiseSums]
    records: RowRecords

    def __add__(self, other: RegressionSums) -> RegressionSums:
        """Sums over the rows of both."""
        forms: list[NoiseSums] = [a + b for a, b in zip(self.forms, other.forms, strict=True)]
        pairs = None
        if self.pairs is not None and other.pairs is not None:
            pairs = operator.add(self.pairs, other.pairs)
        return RegressionSums(pairs, forms, self.records + other.records)

    def pairs_of(self, fit: Smoother) -> AllPairs | None:
        """The products of pairs, with those within members from the smoother."""
        if self.pairs is None:
            return None
        M, N, _ = self.pairs.single.shape
        return self.pairs.with_single(fit.member_grams[:M, :N, :N])


@dataclass
class EnsembleSums:
    """The sums of every regression."""

    parts: list[RegressionSums] = field(default_factory=list)

    def __add__(self, other: EnsembleSums) -> EnsembleSums:
        """Sums over the rows of both."""
        return EnsembleSums([a + b for a, b in zip(self.parts, other.parts, strict=True)])


@dataclass(frozen=True)
class SecondPass:
    """Forms and results of rows, from the leverages and residuals of the fitted members."""

    title: ClassVar[str] = "Residuals and standard errors"

    ensemble: Ensemble  # the fitted members
    groups: list[slice]  # groups of the first members whose products are summed; none if empty
    noises: list[ResidualNoise]  # noises whose forms are summed
    records: tuple[str, ...]  # names of the results of single rows that are recorded
    # Rows that enter products between members of different groups.
    sampling: PairSampling = ALL_ROWS

    def __call__(self, blocks: Iterable[Block]) -> EnsembleSums:
        """Sums over the blocks."""
        totals = EnsembleSums([self._empty(regression) for regression in self.ensemble.regressions])
        for block, fits in self.ensemble.row_fits(blocks):
            sampled = self.sampling.rows(block)
            for total, fit in zip(totals.parts, fits, strict=True):
                self._add(total, fit, block.rows, sampled)
        return totals

    def _empty(self, regression: Regression) -> RegressionSums:
        smoother = regression.exact
        to_t = smoother.to_t[:, : smoother.n_strong, :]
        (M, N, _), sampling, pairs = to_t.shape, self.sampling, None
        if self.groups:
            # Sums over the first groups alone are over all rows.
            between = sampling if self.groups[-1].stop == M else ALL_ROWS
            pairs = between.zeros(N, self.groups, like=to_t)
        groups, K = sampling.groups(*smoother.center.shape), len(regression.outputs)
        sums = [noise.sums(to_t, K, groups, sampling) for noise in self.noises]
        return RegressionSums(pairs, sums, RowRecords([]))

    def _add(
        self,
        total: RegressionSums,
        fit: RowFit,
        numbers: np.ndarray | None,
        sampled: np.ndarray | None,
    ) -> None:
        rows = fit.weighted
        for sums in total.forms:
            sums.add(rows, sampled)
        if total.pairs is not None:
            # Products within members follow from the smoother.
            t = rows.t[: total.pairs.single.shape[0], :, :]
            self.sampling.add_pairs(total.pairs, t, sampled)
        if self.records:
            assert numbers is not None  # only rows in memory are recorded
            total.records.parts.append((numbers, recorded(fit, rows, self.records)))


def recorded(fit: RowFit, rows: RowFit, names: tuple[str, ...]) -> dict[str, Any]:
    """Results of rows by name, from unweighted and weighted rows."""
    makers: dict[str, Callable[[], Any]] = {
        "t": lambda: rows.t,
        "residual": lambda: rows.residual,
        "leverage": lambda: to_numpy(rows.square_length),
        "loo": lambda: to_numpy(fit.loo),
        "loo_leverage": lambda: to_numpy(fit.leave_out_leverage),
        "omega": lambda: to_numpy(pooled_omega("HC2", rows)),
    }
    return {name: makers[name]() for name in names}
