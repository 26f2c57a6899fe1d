"""Consistency of a fit that was read from a file: shapes, signs, and one prediction."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.scaling import FeatureScale, OutputUnits
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.ensemble import Regression
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.low_rank import LowRank
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.noise.constant import NoiseVariance
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.hac import HACEstimate
from ulmus.core.noise_model.model import NoiseVarianceModel
from ulmus.core.response.residual_distribution import ResidualShape
from ulmus.core.ridge.smoother import Smoother, SmootherSummary
from ulmus.core.variance.quadratic_forms import PairForms, RegeneratedForm, RowForm
from ulmus.intervals.response import by_output, link_predictions
from ulmus.model_file.response_validation import require_valid_response

# Axes of arrays by their path in a fit: d inputs, n rows, M members, K outputs, None for any size.
SHAPES: dict[str, tuple[str | None, ...]] = {
    "scale.mean": ("d",),
    "scale.deviations": ("d",),
    "scale.low": ("d",),
    "scale.high": ("d",),
    "gap_points": (None, "d"),
    "ensemble.units.shift": ("K",),
    "ensemble.units.unit": ("K",),
    "noise_model.share": ("K",),
    "noise_model.factor": ("K",),
    "noise_model.low": ("K",),
    "noise_model.high": ("K",),
    "noise_model.flat": ("K",),
    "rows.data.X": ("n", "d"),
    "rows.data.y": ("K", "n"),
    "rows.data.root_weight": ("n",),
    "rows.data.block_ids": ("n",),
    "rows.data.copy_of": ("n",),
    "rows.leverage": ("K", "n"),
    "rows.loo": ("M", "K", "n"),
    "rows.loo_leverage": ("K", "n"),
    "rows.noise": ("K", "n"),
    "rows.omega": ("K", "n"),
    "rows.map_rows": ("n",),
    "rows.observed": ("K", "n"),
}
# Size of negative variances and of excesses that are round-off.
ROUND_OFF = 1e-9
# Fields that are never negative, in every value of a class.
NON_NEGATIVE: dict[type, tuple[str, ...]] = {
    CovarianceEstimate: ("values", "sill", "shares", "independent_variance"),
    FeatureScale: ("n_rows", "mass", "deviations", "weight_range"),
    HACEstimate: ("bandwidth",),
    NoiseVariance: ("sigma2", "residual"),
    NoiseVarianceModel: ("share", "factor", "flat"),
    OutputUnits: ("unit",),
    PairForms: ("scale",),
    RegeneratedForm: ("omega",),
    ResidualShape: ("slope",),
    RowForm: ("omega",),
    Regression: ("y_square", "alpha_deviation", "alpha_response"),
    RowBlocks: ("root_weight", "copy_of"),
    Smoother: ("alpha", "rss", "rank", "mass"),
    SmootherSummary: ("alpha", "gamma", "rank", "mass", "largest_square"),
    LowRank: ("tolerance",),
    TrainingRows: ("leverage", "loo_leverage", "noise", "omega"),
}


def require_valid_fit(fit: Fit, n_features: Any) -> None:
    """Refuse a fit whose parts contradict each other or cannot be parts of a fit."""
    K = fit.ensemble.n_outputs
    if len(fit.scale.mean) != n_features or (fit.one_output and K != 1) or not fit.estimates:
        raise ValueError("the numbers of its inputs, outputs and estimates contradict each other")
    _require_shapes(fit)
    outputs = sorted(k for part in fit.ensemble.regressions for k in part.outputs)
    if outputs != list(range(K)):
        raise ValueError(f"its regressions are of the outputs {outputs!r:.80}, not of {K}")
    for value in _values(fit):
        _require_signs(value)
    if fit.noise_model is not None:
        _require_noise_model(fit.noise_model)
    for estimate in fit.covariances:
        if sum(estimate.shares) > 1 + ROUND_OFF:
            raise ValueError(f"its shares of noise variance sum to {sum(estimate.shares):g}")
    require_valid_response(fit)
    _require_prediction(fit)


def _require_shapes(fit: Fit) -> None:
    sizes = {"d": len(fit.scale.mean), "K": fit.ensemble.n_outputs, "M": fit.ensemble.n_members}
    if fit.rows is not None:
        sizes["n"] = n = fit.rows.data.n_rows
        if fit.rows.locations is not None and fit.rows.locations.n != n:
            raise ValueError(f"it has {fit.rows.locations.n} locations of {n} rows")
        if fit.rows.data.copy_of is not None and np.any(fit.rows.data.copy_of >= n):
            raise ValueError(f"its copies are those of more than {n} rows")
    for path, axes in SHAPES.items():
        array: Any = fit
        for name in path.split("."):
            array = None if array is None else getattr(array, name)
        if array is None:
            continue
        found = tuple(array.shape)
        expected = tuple(sizes.get(axis or "") for axis in axes)
        if len(found) != len(expected) or any(
            e not in (None, f) for e, f in zip(expected, found, strict=True)
        ):
            raise ValueError(f"its {path} has the shape {found}, not {expected}")


def _values(value: Any) -> Iterator[Any]:
    """All dataclasses that a value consists of, itself included."""
    if dataclasses.is_dataclass(value):
        yield value
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, dict):
        parts = list(value.values())
    else:
        parts = list(value) if isinstance(value, (list, tuple)) else []
    for part in parts:
        yield from _values(part)


def _require_signs(value: Any) -> None:
    for name in NON_NEGATIVE.get(type(value), ()):
        numbers = getattr(value, name)
        if numbers is not None and np.any(to_numpy(numbers) < 0):
            raise ValueError(f"its {type(value).__name__}.{name} has negative values")


def _require_noise_model(model: NoiseVarianceModel) -> None:
    """Refuse a noise model that is no model, or not a positive one, for some output."""
    varies = model.varies
    if len(model.logs) != len(varies) or [one is not None for one in model.logs] != list(varies):
        raise ValueError("its noise models are not those of the outputs whose noise varies")
    numbers = np.stack([model.share, model.factor, model.low, model.high])[:, varies]
    share, factor, low, high = numbers
    valid = np.isfinite(numbers).all(axis=0) & (share <= 1) & (factor > 0) & (low <= high)
    if not np.all(valid) or np.any(np.isinf(model.flat)):
        raise ValueError("its noise model has a share, factor or bounds that no model has")
    if any(one.n_outputs != 1 for one in model.logs if one is not None):
        raise ValueError("its noise model has several outputs for one")


def _response_moments(fit: Fit, point: np.ndarray) -> list[np.ndarray]:
    """Mean and noise variance of y at a point, where the regression is on another scale."""
    if fit.response is None:
        return []
    links = link_predictions(fit, point)
    mean = by_output(fit.response, links, lambda family, link: family.mean(link))
    return [mean, by_output(fit.response, links, lambda one, link: one.noise_variance(link))]


def _require_prediction(fit: Fit) -> None:
    """Refuse a fit without finite predictions and variances at the mean of its inputs."""
    K, point = fit.ensemble.n_outputs, np.asarray(fit.scale.mean, dtype=float)[None, :]
    # Without forms in the file, they are computed from the rows with the first error bar.
    stored = fit.compact is None or fit.compact.forms is not None
    with np.errstate(all="ignore"):
        parts = [fit.parts(point, estimate) for estimate in fit.estimates if stored]
        noise = fit.noise_variance(point) + fit.choice_variance(point)
        means = [fit.mean(point).T, *(part.mean for part in parts), *_response_moments(fit, point)]
    if not all(values.shape == (1, K) for values in (noise, *means)):
        raise ValueError(f"its predictions are not of {K} outputs")
    if not np.all(np.isfinite(means)):
        raise ValueError("its predictions are not finite")
    for part in parts:
        size = np.abs(part.A) + np.abs(part.spread)
        if not np.all((-ROUND_OFF * size <= part.A) & np.isfinite(size + np.abs(part.U))):
            raise ValueError("its variances are negative or not numbers")
    if not np.all(noise >= 0):
        raise ValueError("its noise variance is negative or not a number")
