"""Weights of new observations."""

from __future__ import annotations

from typing import Any

from ulmus.core.fit.fit import Fit
from ulmus.exceptions import InputError, SampleWeightWarning, warn
from ulmus.messages import Message, Setting
from ulmus.tables.checks import checked_positive_weight

# Where new observations get weights.
GIVE_WEIGHTS = Setting("sample_weight", phrase="give the weights of the new rows as {}")


def observation_weight(fit: Fit, n_points: int, sample_weight: Any) -> Any:
    """Weights (p,) of new observations; None for the mean weight, with a warning if it matters."""
    if fit.has_working_weights:
        return _without_weight(sample_weight)
    if sample_weight is not None:
        return checked_positive_weight(sample_weight, n_points)
    if fit.weights_differ:
        low, high = fit.scale.weight_range
        text = (
            f"the weights of the training rows range from {low:.3g} to {high:.3g}, and new "
            f"rows are assumed to have the mean weight, {fit.mean_weight:.3g}"
        )
        warn(Message("mean-weight", text, suggestions=(GIVE_WEIGHTS,)), SampleWeightWarning)
    return None


def refuse_weight(sample_weight: Any, parameter: str, value: str, instead: str) -> None:
    """Refuse weights of new observations where a parameter asks for the function."""
    if sample_weight is not None:
        text = f"is the weight of new observations, and {parameter}={value!r} is about the function"
        remedies = (Setting(parameter, instead), "omit sample_weight")
        raise InputError(Message("unused-weight", text, "sample_weight", suggestions=remedies))


def _without_weight(sample_weight: Any) -> None:
    """Refuse weights of counts and of amounts with a point mass: their mean implies a variance."""
    if sample_weight is not None:
        text = "does not apply to counts and point masses, whose variance follows from their mean"
        message = Message("count-weight", text, "sample_weight", suggestions=("omit it",))
        raise InputError(message)
