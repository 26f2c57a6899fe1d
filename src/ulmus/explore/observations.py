"""What intervals and probabilities of a new observation are computed from.

``intervals.js`` and ``response.js`` are the other half of this module.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.small_forms import SmallForms
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import leverage_limit, scaled_residuals
from ulmus.core.response import Counts, PointMass, Transformed
from ulmus.core.response.residual_distribution import ResidualShape
from ulmus.core.response.transformer import Fitted
from ulmus.core.response.transforms import Log, Logit, Sqrt, YeoJohnson
from ulmus.exceptions import InputError
from ulmus.explore.arrays import packed, quantised_rows
from ulmus.explore.model import Output
from ulmus.intervals.bounds import has_ranks
from ulmus.intervals.distribution import fit_shape
from ulmus.intervals.observations import calibrated_error
from ulmus.intervals.prediction import neglects_shifts, tail_ranks
from ulmus.intervals.response import calibrated_families
from ulmus.messages import Message, Setting

# Confidence levels that a page offers, beside its own.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
# Largest number of leave-one-out shifts: a megabyte.
MOST_SHIFTS = 2**18


def observation_arrays(output: Output, small: SmallForms, levels: list[float]) -> dict[str, Any]:
    """Residuals, their ranks, leave-one-out shifts, and the response family."""
    fit = output.fit
    shape = fit_shape(fit)
    shaped = shape is not None and bool(shape.shaped[output.k])
    arrays: dict[str, Any] = {
        "levels": levels,
        "shape": _shape(shape, output.k) if shape is not None and shaped else None,
        "family": None if fit.response is None else _family(output, levels),
    }
    if fit.rows is None:
        return arrays | {"residuals": None}
    return arrays | _jackknife(output, fit.rows, small, levels)


def needs_shifts(fit: Fit) -> bool:
    """Whether intervals depend on the effect of single rows on predictions."""
    return fit.rows is not None and not neglects_shifts(fit)


def _jackknife(
    output: Output, rows: TrainingRows, small: SmallForms, levels: list[float]
) -> dict[str, Any]:
    """Scaled residuals of the calibration rows, ranks for each level, and shifts."""
    fit, k = output.fit, output.k
    residuals = scaled_residuals(fit, rows)[k]
    n = len(residuals)
    possible = [level for level in levels if has_ranks(n, level, two_sided=False)]
    # Beyond these, the interval is the wider one of Student's and that of the largest level.
    ranks: list[Any] = [None] * len(levels)
    for part in tail_ranks(residuals, [*possible, 1 - 1 / (n + 1)], "equal"):
        for position, pair in zip(part.positions, part.ranks, strict=True):
            found = {"ranks": list(pair), "signed": bool(np.array_equal(part.low, part.high))}
            if position < len(possible):
                ranks[levels.index(possible[position])] = found
            else:
                widest = found
    arrays: dict[str, Any] = {"residuals": packed(residuals), "ranks": ranks, "widest": widest}
    arrays |= {"leverage_limit": float(leverage_limit(rows)[k]), "shifts": None, "neglected": False}
    if not needs_shifts(fit) or small.shifts is None:
        return arrays
    weights = to_numpy(small.shifts[output.index].weights)[output.column]
    if rows.data.block_ids is not None:
        weights = weights[rows.data.block_index]
    weights = weights[rows.calibration_rows] * output.unit
    if weights.size > MOST_SHIFTS:
        return arrays | {"neglected": True}
    return arrays | {"shifts": quantised_rows(weights)}


def _shape(shape: ResidualShape, k: int) -> dict[str, Any]:
    knots = {"knot": shape.knot[k], "score": shape.score, "slope": shape.slope[k]}
    return {name: packed(values) for name, values in knots.items()}


# ------------------------------------------------------------ response families


def _family(output: Output, levels: list[float]) -> dict[str, Any]:
    assert output.fit.response is not None
    family = calibrated_families(output.fit)[output.k]
    if isinstance(family, Transformed):
        return {"kind": "transformed", **_transformed(family)}
    if isinstance(family, PointMass):
        values = ("odds", "location", "log_scale")
        lists = {name: getattr(family, name).tolist() for name in values}
        link = {"center": family.center, "spread": family.spread, "limits": family.log_limits}
        above = {"above": _transformed(family.above), "shape": _shape(family.shape, 0)}
        errors = [calibrated_error(family.scores, level) for level in levels]
        return {"kind": "point mass", **lists, **link, **above, "errors": errors}
    assert isinstance(family, Counts)
    errors = [min(1.0 - level, calibrated_error(family.scores, level)) for level in levels]
    return {
        "kind": "count",
        "dispersion": family.dispersion,
        "odds": family.odds.tolist(),
        "center": family.center,
        "spread": family.spread,
        "limits": family.log_limits,
        "errors": errors,
    }


def _transformed(family: Transformed) -> dict[str, Any]:
    nodes = family.nodes
    return {
        "transform": _transform(family),
        "nodes": {
            "value": packed(nodes.value),
            "weight": packed(nodes.weight),
            "dof": nodes.dof,
        },
        "low": _finite(family.low),
        "high": _finite(family.high),
        "least": _finite(family.least),
        "most": _finite(family.most),
    }


def _transform(family: Transformed) -> dict[str, Any]:
    transform = family.transform
    if isinstance(transform, Fitted):
        text = "is an object of another package, which a page cannot contain"
        remedies = (Setting("target_transform", "yeo-johnson", "fit with a name such as {}"),)
        raise InputError(
            Message("transformer-not-exported", text, "target_transform", transform.name, remedies)
        )
    values: dict[str, Any] = {"name": transform.name, "domain": [*map(_finite, transform.domain)]}
    if isinstance(transform, Log):
        values |= {"low": transform.low, "start": transform.start}
    elif isinstance(transform, Sqrt):
        values |= {"low": transform.low}
    elif isinstance(transform, Logit):
        values |= {"low": transform.low, "high": transform.high, "squeeze": transform.squeeze}
    elif isinstance(transform, YeoJohnson):
        values |= {
            "lmbda": transform.lmbda,
            "center": transform.center,
            "scale": transform.scale,
        }
    return values


def _finite(value: float) -> float | None:
    """A number, or None for an infinite one, which JSON does not have."""
    return float(value) if np.isfinite(value) else None
