"""Options of the target of a fit: its transformation, its range and its kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

_option = partial(typer.Option, rich_help_panel="Target")


class TransformChoice(StrEnum):
    """The transformation of the target."""

    none = "none"
    log = "log"
    sqrt = "sqrt"
    logit = "logit"
    yeo_johnson = "yeo-johnson"
    auto = "auto"


class KindChoice(StrEnum):
    """What the values of the target are."""

    continuous = "continuous"
    counts = "count"


@dataclass(frozen=True)
class TargetOptions:
    """What is known of the target."""

    target_transform: Annotated[
        TransformChoice | None,
        _option(
            "--target-transform",
            "--transform",
            metavar="NAME",
            help="Fit log, sqrt, logit or yeo-johnson of the target, and transform results back; "
            "auto chooses by the predictive density of the rows (short: --transform).",
        ),
    ] = None
    target_range: Annotated[
        str | None,
        _option(
            metavar="LOW,HIGH",
            help="Known bounds of the target, such as 0,none or 0,100: no interval exceeds them.",
        ),
    ] = None
    target_kind: Annotated[
        KindChoice | None,
        _option(help="count: whole numbers, Poisson or negative binomial, also with many zeros."),
    ] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Those that are given, by their names in Python."""
        given: dict[str, Any] = {}
        if self.target_transform not in (None, TransformChoice.none):
            given["target_transform"] = str(self.target_transform)
        if self.target_range is not None:
            given["target_range"] = _bounds(self.target_range)
        if self.target_kind is not None:
            given["target_kind"] = str(self.target_kind)
        return given


def _bounds(text: str) -> tuple[float | None, float | None]:
    """Two bounds with a comma between; none, or nothing, is no bound."""
    parts = [part.strip() for part in text.split(",")]
    try:
        low, high = (None if part.lower() in ("none", "") else float(part) for part in parts)
    except ValueError:
        low = high = math.nan
    infinite = -math.inf if low is None else low, math.inf if high is None else high
    if not infinite[0] < infinite[1]:
        text = f"--target-range takes a lower and a larger upper bound, got {text!r}"
        raise ValueError(f"{text}; write none for a bound that is not known, as in 0,none.")
    return low, high
