"""Consistency of distributions of the response in a fit that was read from a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.core.response import Counts, PointMass, Transformed
from ulmus.core.response.family import Nodes
from ulmus.core.response.residual_distribution import ResidualShape
from ulmus.core.response.target import KINDS, TRANSFORMS, TargetSpec
from ulmus.core.response.transforms import Log, Logit, Sqrt, YeoJohnson

# Round-off of probabilities that sum to one, and of scores.
ROUND_OFF = 1e-9
# Normal scores beyond this have no probability in double precision.
LARGEST_SCORE = 38.0


def require_valid_response(fit: Fit) -> None:
    """Refuse families that are not those of the outputs, or whose parameters no family has."""
    K = fit.ensemble.n_outputs
    if fit.residual_shape is not None:
        _require_shape(fit.residual_shape, K)
    if (fit.response is None) != (fit.spec.target is None):
        raise ValueError("its target and its response families contradict each other")
    if fit.spec.target is not None:
        _require_target(fit.spec.target)
    families = fit.response or ()
    if families and len(families) != K:
        raise ValueError(f"it has {len(families)} response families for {K} outputs")
    for family in families:
        FAMILIES[type(family)](family)
    for score in fit.target_scores:
        numbers = score.gain, score.standard_error, score.error_ratio, *score.margin
        if not 0 <= score.output < K or not np.all(np.isfinite(numbers)):
            raise ValueError("its scores of transformations are not those of its outputs")


def _require_target(target: TargetSpec) -> None:
    names = isinstance(target.transform, str) and target.transform not in TRANSFORMS
    if names or target.kind not in (None, *KINDS) or not target.low < target.high:
        raise ValueError("its target has a transformation, a kind or bounds that no target has")


def _require_transformed(family: Transformed) -> None:
    if not family.low < family.high:
        raise ValueError(f"the bounds of its target are {family.low:g} and {family.high:g}")
    _require_transform(family.transform)
    _require_nodes(family.nodes)


def _require_transform(transform: Any) -> None:
    """Refuse a transformation that does not increase."""
    if isinstance(transform, Log):
        valid = _finite(transform.low) and 0 <= transform.start < np.inf
    elif isinstance(transform, Sqrt):
        valid = _finite(transform.low)
    elif isinstance(transform, Logit):
        valid = _finite(transform.low, transform.high) and transform.low < transform.high
        valid &= 0 <= transform.squeeze < 0.5
    elif isinstance(transform, YeoJohnson):
        valid = _finite(transform.lmbda, transform.center) and 0 < transform.scale < np.inf
    else:
        return
    if not valid:
        raise ValueError(f"its transformation {transform.name} has parameters that none has")


def _require_nodes(nodes: Nodes) -> None:
    value, weight = nodes.value, nodes.weight
    shaped = value.ndim == 1 and value.shape == weight.shape and len(value) > 0
    # Means of equal residuals may descend by round-off.
    if not (shaped and np.all(np.isfinite(value)) and np.all(np.diff(value) >= -ROUND_OFF)):
        raise ValueError("its residuals of the target are not finite and ascending")
    total = float(np.sum(weight))
    if np.any(weight < 0) or not abs(total - 1.0) <= ROUND_OFF or not 0 < nodes.dof < np.inf:
        raise ValueError(f"the probabilities of its residuals sum to {total:g}")


def _require_point_mass(family: PointMass) -> None:
    _require_transformed(family.above)
    coefficients = family.odds, family.location, family.log_scale
    _require_coefficients(coefficients, family.center, family.spread)
    if not _finite(family.above.least):
        raise ValueError("its point mass has no lower bound")
    _require_shape(family.shape, 1)
    _require_scores(family.scores)


def _require_counts(family: Counts) -> None:
    if not 0 <= family.dispersion < np.inf:
        raise ValueError(f"the dispersion of its counts is {family.dispersion:g}")
    odds = (family.odds,) if len(family.odds) else ()
    _require_coefficients(odds, family.center, family.spread)
    _require_scores(family.scores)


def _require_coefficients(several: Iterable[np.ndarray], center: float, spread: float) -> None:
    """Refuse coefficients that are not two for each line, or a predictor without a scale."""
    shaped = all(one.shape == (2,) and np.all(np.isfinite(one)) for one in several)
    if not shaped or not _finite(center) or not 0 < spread < np.inf:
        raise ValueError("the coefficients of its response family are not those of a line")


def _require_shape(shape: ResidualShape, n_outputs: int) -> None:
    """Refuse a distribution of residuals that is not one of so many outputs, or not increasing."""
    m = len(shape.score)
    arrays = (shape.knot, (n_outputs, m)), (shape.slope, (n_outputs, m))
    shapes = all(array.shape == expected for array, expected in arrays)
    if m < 2 or not shapes or shape.shaped.shape != (n_outputs,):
        raise ValueError(f"its distribution of residuals is not that of {n_outputs} outputs")
    ascending = np.all(np.diff(shape.score) > 0) and np.all(np.diff(shape.knot, axis=1) > 0)
    reach = np.array([-LARGEST_SCORE, LARGEST_SCORE])
    within = np.all(np.abs(shape.score[[0, -1]]) < LARGEST_SCORE) and shape.score[0] < 0
    if not (ascending and within and shape.score[-1] > 0 and np.all(shape.slope > 0)):
        raise ValueError("its distribution of residuals does not increase")
    with np.errstate(all="ignore"):
        ends = np.stack([shape.residuals(reach, k) ** 2 for k in range(n_outputs)])
    if not np.all(np.isfinite(ends)) or not np.all(np.isfinite(shape.slope)):
        raise ValueError("its distribution of residuals is not finite")


def _require_scores(scores: np.ndarray) -> None:
    within = np.all(scores >= 0) and np.all(scores <= 1) and np.all(np.diff(scores) >= 0)
    if scores.ndim != 1 or not within:
        raise ValueError("the tail probabilities of its rows are not ascending from 0 to 1")


def _finite(*numbers: float) -> bool:
    return bool(np.all(np.isfinite(numbers)))


# What each family requires of its parameters.
FAMILIES: dict[type, Any] = {
    Transformed: _require_transformed,
    PointMass: _require_point_mass,
    Counts: _require_counts,
}
