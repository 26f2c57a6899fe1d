"""Checks of constructor parameters; each message names parameter, value and remedy."""

from __future__ import annotations

import numbers
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ulmus.core.ensemble.regression import RegressionSpec
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer import MAP_STRUCTURES
from ulmus.core.fit.sizes import HOST
from ulmus.core.fit.spec import FitSpec, LayerSpec
from ulmus.core.layer.hidden_layer import ACTIVATIONS, DISTRIBUTIONS, HiddenLayer, UnitDistribution
from ulmus.core.layer.inputs import EXPANSIONS
from ulmus.core.layer.levels import level_block
from ulmus.core.noise import NOISES
from ulmus.core.ridge.member_pairs import COMMON
from ulmus.core.ridge.residuals import HC_DIVISORS
from ulmus.core.variance.estimates import ESTIMATES
from ulmus.estimators._target import target_spec
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting, invalid, named
from ulmus.noise import CorrelatedNoise
from ulmus.noise.assumptions import INDEPENDENT, noise_assumption
from ulmus.tables.schema import MISSING_RULES, UNKNOWN_RULES, Schema


def checked_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < minimum:
        raise InputError(invalid(name, f"must be a whole number >= {minimum}", value))
    return int(value)


def checked_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of several names."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise InputError(invalid(name, f"must be one of {_listed(choices)}", value))
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def checked_number(name: str, value: Any, minimum: float, *, strict: bool = False) -> float:
    """Return a finite number not below a minimum."""
    relation = ">" if strict else ">="
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not np.isfinite(value) or value < minimum or (strict and value == minimum):
        raise InputError(invalid(name, f"must be a finite number {relation} {minimum:g}", value))
    return float(value)


def checked_flag(name: str, value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(invalid(name, "must be True or False", value))
    return bool(value)


def checked_levels(value: Any, name: str = "confidence_level") -> list[float]:
    """Return a list of probabilities."""
    levels = np.atleast_1d(np.asarray(value))
    valid = levels.dtype.kind == "f" and levels.ndim == 1 and len(levels) > 0
    if not valid or not np.all((levels > 0) & (levels < 1)):
        shown = value[0] if isinstance(value, list) and len(value) == 1 else value
        message = invalid(name, "must lie between 0 and 1, exclusive", shown)
        raise InputError(replace(message, suggestions=_shares(levels)))
    return [float(level) for level in levels]


def _shares(levels: np.ndarray) -> tuple[str, ...]:
    """What to write instead of a level in percent, such as 95."""
    if levels.dtype.kind not in "iuf" or levels.size != 1 or not 5 <= levels.item() < 100:
        return ()
    return (f"write {levels.item() / 100:.15g} for {levels.item():g} %",)


def checked_alpha(value: Any, noise: Any) -> float | str:
    """Return a ridge parameter, or the criterion that chooses one."""
    if not isinstance(value, str):
        return checked_number("alpha", value, 0.0)
    if value not in ("loo", "block-loo", "gcv"):
        requirement = "must be a number >= 0, 'loo', 'block-loo' or 'gcv'"
        raise InputError(invalid("alpha", requirement, value))
    if value == "block-loo" and not noise_assumption(noise).correlated:
        text = ("leaves out blocks of correlated rows, and ", named("noise", noise), " has none")
        remedies = ("use a class of ulmus.noise, such as AR1()", Setting("alpha", "loo"))
        raise InputError(Message("blocks-without-noise", text, "alpha", value, remedies))
    return value


def checked_noise(value: Any) -> None:
    """Raise an error unless the value is a noise assumption with valid parameters."""
    if isinstance(value, CorrelatedNoise):
        value.structure()
    elif isinstance(value, type) and issubclass(value, CorrelatedNoise):
        requirement = f"must be an object, {value.__name__}(), and is a class"
        raise InputError(invalid("noise", requirement, value))
    elif not isinstance(value, str) or value not in INDEPENDENT:
        requirement = f"must be one of {_listed(INDEPENDENT)}, or an object of ulmus.noise"
        raise InputError(invalid("noise", requirement, value))


def checked_activation(value: Any) -> Any:
    """Return the name of an activation, or a callable."""
    if not callable(value) and (not isinstance(value, str) or value not in ACTIVATIONS):
        requirement = f"must be one of {_listed(ACTIVATIONS)} or a callable"
        raise InputError(invalid("activation", requirement, value))
    return value


def checked_size(name: str, value: Any) -> int | None:
    """Return a number of members or of hidden units, or None for one that suits the rows."""
    if isinstance(value, str) and value != "auto":
        raise InputError(invalid(name, "must be a whole number >= 1 or 'auto'", value))
    return None if isinstance(value, str) else checked_count(name, value)


def checked_input_map(value: Any, activation: Any) -> Any:
    """Return None, the name of a way to learn a map, or a square matrix."""
    if value is None:
        return None
    structures = f"None, one of {_listed(MAP_STRUCTURES)}"
    requirement = f"must be {structures}, or a square matrix of finite numbers"
    if isinstance(value, str):
        if value not in MAP_STRUCTURES:
            raise InputError(invalid("input_map", requirement, value))
        if value != "auto" and not isinstance(activation, str):
            text = "requires the derivative of the activation, which is unknown for a callable"
            remedies = "use an activation by name", Setting("input_map", None)
            raise InputError(Message("callable-activation", text, "input_map", value, remedies))
        return value
    matrix = np.asarray(value)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    if not square or matrix.dtype.kind not in "fiu" or not np.all(np.isfinite(matrix)):
        raise InputError(invalid("input_map", f"{requirement}, a row for each input", value))
    return matrix.astype(float)


def checked_fraction(name: str, value: Any) -> float | None:
    """Return a share between 0 and 1, exclusive, or None."""
    if value is None:
        return None
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 0 < value < 1:
        raise InputError(invalid(name, "must be None or lie between 0 and 1, exclusive", value))
    return float(value)


def checked_expansions(value: Any) -> Any:
    """Return "auto", or a tuple of names of further inputs."""
    if isinstance(value, str) and value == "auto":
        return value
    names = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or any(name not in EXPANSIONS for name in names):
        requirement = "must be None, 'auto', 'normal_scores', 'one_hot' or a list of the last two"
        raise InputError(invalid("expand_inputs", requirement, value))
    return tuple(dict.fromkeys(names))


def checked_scale(value: Any, n_features: int) -> np.ndarray | None:
    """Return one positive scale per feature, or None for an automatic one."""
    if isinstance(value, str) and value == "auto":
        return None
    scale = _nonnegative(value, n_features)
    if scale is None or not np.any(scale > 0):
        each = f"one non-negative number for each of the {n_features} features"
        requirement = f"must be 'auto', a positive number or {each}"
        raise InputError(invalid("weight_scale", requirement, value))
    return scale


def _nonnegative(value: Any, n: int) -> np.ndarray | None:
    """A finite number >= 0, or n of them, as an array of shape (n,); None for other values."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((), (n,)):
        return None
    valid = np.all(np.isfinite(array)) and np.all(array >= 0)
    return np.broadcast_to(array.astype(float), (n,)) if valid else None


def checked_noise_variance(value: Any, n_outputs: int, noise: Any) -> str | np.ndarray:
    """Return the name of an estimate, or the known variance of each output."""
    if isinstance(value, str):
        return checked_choice("noise_variance", value, ("pilot", "residual"))
    if noise_assumption(noise).estimates_variance:
        text = ("is a known variance, and ", named("noise", noise), " estimates it")
        remedies = (Setting("noise_variance", "pilot"), "use another noise assumption")
        raise InputError(Message("known-variance", text, "noise_variance", value, remedies))
    known = _nonnegative(value, n_outputs)
    if known is None:
        each = f"one number, or one for each of the {n_outputs} outputs"
        requirement = f"must be 'pilot', 'residual' or a known variance >= 0 ({each})"
        raise InputError(invalid("noise_variance", requirement, value))
    return known


def resolved_estimates(variance: Any, noise: Any, n_members: int | None) -> tuple[str, ...]:
    """Return the names of the estimates to compute, the default one first.

    ``n_members`` is None for a number that suits the rows, and then allows every estimate.
    """
    n_members = HOST.members[0] if n_members is None else n_members
    single = n_members == 1
    assumption, independent = noise_assumption(noise), INDEPENDENT["homoskedastic"]
    default = assumption.estimates[single]
    known = _estimates_of(assumption.correlated)
    if isinstance(variance, str) and variance == "auto":
        # The estimate for constant noise is computed for comparison, where its forms are.
        compared = COMMON.name in NOISES[ESTIMATES[default].pairing].requires
        return (default, independent.estimates[single]) if compared else (default,)
    if isinstance(variance, str) and variance == "all":
        usable = [name for name in known if ESTIMATES[name].min_members <= n_members]
        return (default, *(name for name in usable if name != default))
    names = (variance,) if isinstance(variance, str) else variance
    if not isinstance(names, (list, tuple)) or not names:
        requirement = "must be 'auto', 'all', or a list of at least one name of an estimate"
        raise InputError(invalid("variance", requirement, variance))
    for name in names:
        checked_choice("variance", name, ("auto", "all", *ESTIMATES))
        if name not in ESTIMATES:
            text, alone = f"contains {name!r}, which is no estimate", (Setting("variance", name),)
            raise InputError(Message("not-in-a-list", text, "variance", variance, alone))
        if name not in known:
            cause = ("is no estimate for ", named("noise", noise))
            remedies = Setting("variance", "auto"), f"use one of {_listed(known)}"
            raise InputError(Message("other-noise", cause, "variance", name, remedies))
        require_members(name, n_members)
    return tuple(dict.fromkeys(names))


def _estimates_of(correlated: bool) -> list[str]:
    """Estimates for independent noise, or for correlated noise and, to compare, constant noise."""
    noises = {name: NOISES[estimate.pairing] for name, estimate in ESTIMATES.items()}
    if correlated:
        return [name for name, noise in noises.items() if not noise.heteroskedastic]
    return [name for name, noise in noises.items() if not noise.needs_order]


def checked_estimate(estimate: Any, fit: Fit) -> str:
    """Return one of the estimates that a fit has; the first by default."""
    computed, together = fit.estimates, fit.noise_covariance is not None
    if estimate is None:
        return computed[0]
    checked_choice("estimate", estimate, ESTIMATES)
    if estimate not in _estimates_of(together):
        text = f"does not apply to {'correlated' if together else 'independent'} noise"
        remedy = f"use one of those computed in fit: {_listed(computed)}"
        raise InputError(Message("other-noise", text, "estimate", estimate, (remedy,)))
    if estimate not in computed:
        text = f"was not computed in fit, only {_listed(computed)}"
        remedies = (Setting("variance", estimate, "fit again with {}, a list with it, or 'all'"),)
        raise InputError(Message("not-computed", text, "estimate", estimate, remedies))
    return estimate


def fit_on_scale(fit: Fit, scale: Any) -> Fit:
    """The fit whose results are on a scale: that of y, or that of the regression."""
    scale = checked_choice("scale", scale, ("response", "link"))
    return fit.on_link_scale if scale == "link" else fit


def require_members(name: str, n_members: int) -> None:
    """Refuse an estimate that needs more members than there are."""
    needed = ESTIMATES[name].min_members
    if n_members < needed:
        fallback = ESTIMATES[name].fallback if n_members > 1 else "auto"
        text = ("needs ", named("n_estimators"), f" >= {needed}, got {n_members}")
        fix = Setting("variance", fallback)
        raise InputError(Message("too-few-members", text, "variance", name, (fix,)))


def needs_residuals(noise: Any, variance: Any) -> bool:
    """Whether an estimate of the model requires a second pass over the rows."""
    default = noise_assumption(noise).estimates[0]
    names = [default, *(variance if isinstance(variance, (list, tuple)) else [variance])]
    return any(
        name == "all" or (name in ESTIMATES and NOISES[ESTIMATES[name].pairing].needs_residuals)
        for name in names
    )


def drawn_seeds(random_state: Any) -> tuple[int, int]:
    """A seed of the members, and one for a learned map."""
    if random_state is None:
        entropy = None
    elif isinstance(random_state, (int, np.integer)) and random_state >= 0:
        entropy = int(random_state)
    elif isinstance(random_state, np.random.RandomState):
        entropy = int(random_state.randint(2**31))
    elif isinstance(random_state, np.random.Generator):
        entropy = int(random_state.integers(2**63))
    else:
        requirement = "must be None, a whole number >= 0, a numpy Generator or a RandomState"
        raise InputError(invalid("random_state", requirement, random_state))
    root = np.random.SeedSequence(entropy)
    of_map = np.random.SeedSequence(root.entropy, spawn_key=(2**32 - 1,))
    return int(root.entropy), int(of_map.generate_state(1)[0])  # type: ignore[arg-type]


def checked_generator(random_state: Any) -> np.random.Generator:
    """Return a generator of draws."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        requirement = "must be a whole number >= 0, a Generator or None"
        raise InputError(invalid("random_state", requirement, random_state)) from error


# ------------------------------------------------------------ the specification of a fit

# Parameters that may change between calls of partial_fit; the others determine the hidden layer.
FREE_PARAMETERS = {
    "alpha",
    "noise",
    "variance",
    "hc",
    "noise_variance",
    "exact",
    "n_jobs",
    "verbose",
}


def fit_spec(
    estimator: Any,
    n_features: int,
    n_outputs: int,
    one_output: bool,
    layer: LayerSpec | HiddenLayer | None = None,
    schema: Schema | None = None,
) -> FitSpec:
    """The parameters of an estimator, checked; rows added later keep the given layer."""
    checked_noise(estimator.noise)
    checked_choice("missing", estimator.missing, MISSING_RULES)
    checked_choice("unknown", estimator.unknown, UNKNOWN_RULES)
    noise, variance = estimator.noise, estimator._variance_choice()
    regression = RegressionSpec(
        alpha=checked_alpha(estimator.alpha, noise),
        noise_variance=checked_noise_variance(estimator.noise_variance, n_outputs, noise),
        hc=checked_choice("hc", estimator.hc, (*HC_DIVISORS, "pooled")),
        estimates=resolved_estimates(variance, noise, estimator._n_members()),
        exact=checked_flag("exact", estimator.exact),
    )
    return FitSpec(
        layer=_layer_spec(estimator, n_features, schema) if layer is None else layer,
        regression=regression,
        min_gain_in_se=noise_assumption(noise).min_gain_in_se,
        tuning_fraction=checked_fraction("tuning_fraction", estimator.tuning_fraction),
        one_output=one_output,
        levels=() if schema is None else tuple(level_block(*one) for one in schema.level_blocks),
        target=target_spec(estimator),
        parameters=layer_parameters(estimator),
    )


def _layer_spec(estimator: Any, n_features: int, schema: Schema | None) -> LayerSpec:
    activation = checked_activation(estimator.activation)
    seed, map_seed = drawn_seeds(estimator.random_state)
    return LayerSpec(
        seed=seed,
        n_members=estimator._n_members(),
        n_neurons=checked_size("n_neurons", estimator.n_neurons),
        units=UnitDistribution(
            checked_choice("weight_distribution", estimator.weight_distribution, DISTRIBUTIONS),
            checked_scale(estimator.weight_scale, n_features),
            activation,
        ),
        input_map=checked_input_map(estimator.input_map, activation),
        expansions=checked_expansions(estimator.expand_inputs),
        standardize=checked_flag("standardize", estimator.standardize),
        constant=checked_flag("fit_intercept", estimator.fit_intercept),
        map_seed=map_seed,
        columns=None if schema is None else np.array(list(map(schema.names.index, schema.origins))),
    )


def layer_parameters(estimator: Any) -> dict[str, str]:
    """The parameters of the layer as text."""
    values = estimator.get_params(deep=False)
    return {name: _text(value) for name, value in values.items() if name not in FREE_PARAMETERS}


def _text(value: Any) -> str:
    """A parameter as text; of a generator or a function its type, as it may be a copy."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}, checksum {zlib.crc32(value.tobytes())}"
    plain = (str, numbers.Number, type(None), list, tuple)
    return repr(value) if isinstance(value, plain) else type(value).__name__


def require_same_layer(estimator: Any, earlier: Fit) -> None:
    """Refuse rows for another hidden layer than that of the earlier rows."""
    now = layer_parameters(estimator)
    for name, value in earlier.spec.parameters.items():
        if now.get(name) != value:
            text = (
                f"was {value} for the earlier rows and is {now.get(name)} now, and rows can only "
                "be added to the same hidden layer"
            )
            remedies = ("set it back", "start a new estimator")
            raise InputError(Message("another-layer", text, name, suggestions=remedies))
