"""From parameters and a table to a task: the rows, their places, and what is to be made of them.

Functions take the estimator whose parameters are asked for, and change nothing but what
scikit-learn keeps of a table.
"""

from __future__ import annotations

import numbers
import os
import zlib
from dataclasses import replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, reference_array
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.data.source import RowBlocks, Source
from ulmus.core.ensemble.regression import Specification
from ulmus.core.fit.build import Task
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer_spec import FEWEST_ROWS, LayerSpec
from ulmus.core.layer.hidden_layer import UnitDistribution
from ulmus.core.noise.ordered_rows import require_reading_order
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.estimators import _parameters as check
from ulmus.estimators._fit_warnings import told, untold
from ulmus.estimators._validation import checked_table, require_dense
from ulmus.noise import CorrelatedNoise
from ulmus.noise.locations import covariance_spec, default_block_ids
from ulmus.tables.blocks import BlockSource
from ulmus.tables.checks import checked_weight

# Squares of larger numbers are beyond single precision.
LARGEST_SINGLE = 1e18
# Parameters that decide what the hidden layer is; rows added later need the same layer.
LAYER_PARAMETERS = (
    "n_estimators",
    "n_neurons",
    "activation",
    "weight_distribution",
    "weight_scale",
    "input_map",
    "expand_inputs",
    "tuning_fraction",
    "fit_intercept",
    "standardize",
    "random_state",
    "device",
    "dtype",
)


# ------------------------------------------------------------ rows


def rows_in_memory(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
) -> tuple[RowBlocks, bool]:
    """Checked rows as a source, and whether y has one axis."""
    estimates(estimator)
    X, y = checked_table(estimator, X, y, reset=reset)
    weight = checked_weight(sample_weight, X.shape[0], "the table", at_least=2 if reset else 0)
    outputs = np.ascontiguousarray(y.reshape(len(y), -1).T)
    root_weight = None if weight is None else np.sqrt(weight)
    _require_range(estimator, "y", float(np.max(np.abs(outputs))))
    reference = reference_array(X, estimator.device, estimator.dtype)
    require_dense(X, estimator.device, reference)
    rows = RowBlocks(X, outputs, root_weight, reference, X.shape[1], n_threads(estimator))
    return rows, y.ndim == 1


def n_threads(estimator: Any) -> int:
    """Threads that read and compute at once."""
    if estimator.n_jobs is None:
        return 1
    n_jobs = estimator.n_jobs
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs must be None or a whole number, -1 for all, got {n_jobs!r}.")
    cores = os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def _require_range(estimator: Any, what: str, largest: float) -> None:
    if estimator.dtype == "float32" and largest > LARGEST_SINGLE:
        raise ValueError(
            f"{what} reaches {largest:.1g}, too large to be squared in dtype='float32'; use "
            "dtype='float64', or multiply it by a factor that brings it near 1."
        )


def tuning_rows(estimator: Any, rows: RowBlocks) -> np.ndarray | None:
    """Rows set aside for the map, or None where it is learned from all."""
    fraction = check.checked_fraction("tuning_fraction", estimator.tuning_fraction)
    if fraction is None:
        return None
    used = np.flatnonzero(rows.used)
    n_tuned = int(np.ceil(fraction * len(used)))
    if n_tuned < FEWEST_ROWS or len(used) - n_tuned < 2:
        raise ValueError(
            f"tuning_fraction={fraction:g} of {len(used)} rows sets {n_tuned} aside for the "
            f"map, which needs at least {FEWEST_ROWS}, and leaves {len(used) - n_tuned}; use "
            "another fraction, or None."
        )
    seed = check.drawn_seeds(estimator.random_state)[1]
    chosen = np.zeros(rows.n_rows, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(used)[:n_tuned]] = True
    return chosen


def refuse_tuning_fraction(estimator: Any, method: str) -> None:
    """Refuse to set rows aside where no interval would use them."""
    if check.checked_fraction("tuning_fraction", estimator.tuning_fraction) is not None:
        raise ValueError(
            f"tuning_fraction={estimator.tuning_fraction!r} sets rows aside for prediction "
            f"intervals from left-out rows, which {method} does not make; use fit, or "
            "tuning_fraction=None."
        )


# ------------------------------------------------------------ noise that hangs together


def checked_covariance_spec(
    estimator: Any, n_rows: int, columns: Any, given: dict[str, Any]
) -> CovarianceSpec | None:
    """How the noise hangs together and where the rows are; None if it does not."""
    if isinstance(estimator.noise, CorrelatedNoise):
        return covariance_spec(estimator.noise, n_rows, columns, given)
    unused = [axis for axis, values in given.items() if values is not None]
    if unused:
        raise ValueError(
            f"{unused[0]} was given to fit, and noise={estimator.noise!r} takes rows as "
            "independent; use a kind of noise of ulmus.noise, such as AR1(), or leave it out."
        )
    return None


def blocks_with_locations(
    estimator: Any, source: BlockSource, given: dict[str, Any]
) -> tuple[BlockSource, CovarianceSpec | None]:
    """Blocks with labels of rows that are left out together, and the places of their rows."""
    if not isinstance(estimator.noise, CorrelatedNoise):
        return source, checked_covariance_spec(estimator, 0, None, given)
    if not estimator.noise.structure().serial:
        raise ValueError(
            f"noise={estimator.noise!r} needs all rows at once, and fit_blocks sees them block "
            "after block; use AR1(), NeweyWest() or Clustered(), or fit all rows in memory."
        )
    names = [name for name in estimator.noise.names().values() if name is not None]
    columns, used = source.row_columns(names)
    assumed = covariance_spec(estimator.noise, len(used), columns.__getitem__, given)
    require_reading_order(assumed.locations)
    if check.resolved_alpha(estimator.alpha, estimator.noise) == "block-loo":
        source = replace(source, block_ids=default_block_ids(assumed, used))
    return source, replace(assumed, used=used)


# ------------------------------------------------------------ the task


def task(
    estimator: Any,
    source: Source,
    scale: FeatureScale,
    one_output: bool,
    reference: Array,
    *,
    earlier: Fit | None = None,
    assumed: CovarianceSpec | None = None,
) -> Task:
    """What is to be made of rows of a source; rows added later keep the earlier layer."""
    n_outputs = source.sample(1).y.shape[0]
    spec = Specification(
        alpha=check.resolved_alpha(estimator.alpha, estimator.noise),
        noise_variance=check.checked_noise_variance(
            estimator.noise_variance, n_outputs, estimator.noise
        ),
        hc=estimator.hc,
        estimates=estimates(estimator),
    )
    _require_range(estimator, "X", float(max(np.max(-scale.low), np.max(scale.high))))
    recipe = None
    if earlier is None:
        recipe = _recipe(estimator, len(scale.mean))
        layer, input_map = recipe.layer(
            source.for_width(len(scale.mean)), scale, reference, assumed
        )
    else:
        layer, input_map = earlier.ensemble.layer, earlier.input_map
    caution, drawn = check.min_gain_in_se(estimator.noise), _drawn_with(estimator)
    parts = (layer, input_map, scale, spec, caution, one_output, drawn, recipe)
    return Task(*parts, noise_covariance=assumed, keeps_blocks=estimator.alpha == "block-loo")


def estimates(estimator: Any) -> tuple[str, ...]:
    """The estimates asked for, the default first, after checks of what all fits need."""
    check.checked_noise(estimator.noise)
    check.checked_choice("hc", estimator.hc, check.HC_NAMES)
    check.checked_flag("fit_intercept", estimator.fit_intercept)
    check.checked_flag("standardize", estimator.standardize)
    check.checked_choice("dtype", estimator.dtype, ("float64", "float32"))
    return check.resolved_estimates(
        estimator._variance_choice(), estimator.noise, estimator._n_members()
    )


def _recipe(estimator: Any, n_features: int) -> LayerSpec:
    """The parameters of the hidden layer, checked."""
    activation = check.checked_activation(estimator.activation)
    seed, map_seed = check.drawn_seeds(estimator.random_state)
    return LayerSpec(
        seed=seed,
        n_members=estimator._n_members(),
        n_neurons=check.checked_neurons(estimator.n_neurons),
        law=UnitDistribution(
            check.checked_distribution(estimator.weight_distribution),
            check.checked_scale(estimator.weight_scale, n_features),
            activation,
        ),
        input_map=check.checked_input_map(estimator.input_map, activation),
        expansions=check.checked_expansions(estimator.expand_inputs),
        standardize=bool(estimator.standardize),
        constant=bool(estimator.fit_intercept),
        map_seed=map_seed,
        report=told if estimator.verbose else untold,
    )


# ------------------------------------------------------------ the same layer again


def require_same_layer(estimator: Any, earlier: Fit) -> None:
    """Refuse rows for another hidden layer than that of the rows before."""
    now = _drawn_with(estimator)
    for name, value in earlier.drawn.items():
        if now.get(name) != value:
            raise ValueError(
                f"{name} was {value} when the rows before were fitted and is {now.get(name)} "
                "now; rows can only be added to the same hidden layer. Set it back, or start "
                "a new estimator."
            )


def _drawn_with(estimator: Any) -> dict[str, str]:
    """The parameters of the layer as text."""
    known = estimator.get_params(deep=False)
    return {name: _text(known[name]) for name in LAYER_PARAMETERS if name in known}


def _text(value: Any) -> str:
    """A parameter as text; of a generator or a function only its kind, as it may be a copy."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}, checksum {zlib.crc32(value.tobytes())}"
    plain = (str, numbers.Number, type(None), list, tuple)
    return repr(value) if isinstance(value, plain) else type(value).__name__


def require_same_outputs(n_outputs: int, earlier: Fit) -> None:
    """Refuse another number of outputs than the rows before had."""
    if n_outputs != earlier.ensemble.n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, the rows before had {earlier.ensemble.n_outputs}; give "
            "the same ones."
        )
