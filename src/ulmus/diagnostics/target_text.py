"""Targets in words: what is fitted, on which scale its noise and residuals are."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.response import Counts, LogMean, PointMass, Transformed
from ulmus.core.response.counts import LEAST_DISPERSION
from ulmus.core.response.target import TargetScore
from ulmus.core.response.transformer import AnyTransform
from ulmus.core.response.transforms import Identity, Log, Logit, Sqrt, YeoJohnson
from ulmus.diagnostics.leave_one_out import FamilyOfOutput

# What residuals are called, which are those of the PIT where there is no residual of one scale.
QUANTILE_RESIDUAL = "quantile residual"


def family_of(fit: Fit, k: int) -> FamilyOfOutput | None:
    """The response family of an output; None if the regression is that of y."""
    return None if fit.response is None else fit.response[k]


def transformed_name(transform: AnyTransform, y: str = "y") -> str:
    """A transformed target of some name as a formula, such as log(y - 2)."""
    if isinstance(transform, Identity):
        return y
    if isinstance(transform, (Log, Sqrt)):
        added = -transform.low + (transform.start if isinstance(transform, Log) else 0.0)
        sign = "+" if added > 0 else "-"
        inner = f"{y} {sign} {abs(added):.3g}" if added else y
        return f"{transform.name}({inner})"
    if isinstance(transform, Logit):
        if (transform.low, transform.high) == (0.0, 1.0):
            return f"logit({y})"
        return f"logit({y} in {transform.low:.4g} to {transform.high:.4g})"
    if isinstance(transform, YeoJohnson):
        return f"the Yeo-Johnson transform of {y} with power {transform.lmbda:g}"
    return f"{transform.name}({y})"


def link_name(family: FamilyOfOutput | None, y: str = "y") -> str:
    """The quantity that is regressed: y, a transformed y, or the logarithm of a mean."""
    if family is None:
        return y
    if isinstance(family, Transformed):
        return transformed_name(family.transform, y)
    least = family.above.least if isinstance(family, PointMass) else 0.0
    return f"log(mean {y}{f' - {least:.4g}' if least else ''})"


def scale_name(family: FamilyOfOutput | None) -> str | None:
    """Name of the scale of the regression; None for that of y."""
    if family is None:
        return None
    if not isinstance(family, Transformed):
        return "log"
    return None if isinstance(family.transform, Identity) else family.transform.name


def noise_scale(family: FamilyOfOutput | None) -> str | None:
    """Name of the scale on which the noise has a standard deviation; None for that of y."""
    if isinstance(family, PointMass):
        same = isinstance(family.transform, Identity)
        return None if same else family.transform.name
    return scale_name(family)


def fitted_target(family: FamilyOfOutput, y: FloatArray | None) -> str:
    """What is fitted, with the share of a point mass among observations (n,)."""
    if isinstance(family, Counts):
        zeros = " and extra zeros" if len(family.odds) else ""
        if family.dispersion < LEAST_DISPERSION:
            return f"counts, Poisson{' with extra zeros' if zeros else ''}"
        return f"counts, negative binomial with dispersion {family.dispersion:.2g}{zeros}"
    name = transformed_name(family.transform)
    if isinstance(family, PointMass):
        least = family.above.least
        share = "" if y is None else f" ({np.mean(y == least):.0%} of the rows)"
        return f"{name} with a point mass at {least:.4g}{share}"
    if not isinstance(family.transform, Identity):
        return name
    if np.isfinite(family.low) and np.isfinite(family.high):
        return f"y between {family.low:.4g} and {family.high:.4g}"
    if np.isfinite(family.low):
        return f"y >= {family.low:.4g}"
    return f"y <= {family.high:.4g}" if np.isfinite(family.high) else "y"


def residual_name(family: FamilyOfOutput | None, y: str = "y") -> str:
    """What a standardised error is called, with its scale."""
    if isinstance(family, LogMean):
        return QUANTILE_RESIDUAL
    scale = "" if scale_name(family) is None else f" of {link_name(family, y)}"
    return f"standardised error{scale}"


def residuals_name(family: FamilyOfOutput | None, y: str = "y") -> str:
    """What residuals of the regression are called, with their scale."""
    if isinstance(family, LogMean):
        return f"Pearson residuals of {y}"
    return "residuals" if scale_name(family) is None else f"residuals of {link_name(family, y)}"


def chosen_score(fit: Fit, k: int) -> TargetScore | None:
    """The score of the transformation that was chosen for an output, if several were compared."""
    scores = [one for one in fit.target_scores if one.output == k]
    return next((one for one in scores if one.chosen), None) if len(scores) > 1 else None
