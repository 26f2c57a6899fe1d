"""Options of the estimator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from ulmus.cli.options import names_or_none, number_or_name

_option = partial(typer.Option, rich_help_panel="Model")
_advanced = partial(typer.Option, rich_help_panel="Model, advanced")


class MapChoice(StrEnum):
    """How the map of the inputs is learned."""

    auto = "auto"
    ard = "ard"
    full = "full"
    none = "none"


@dataclass(frozen=True)
class ModelOptions:
    """Size of the model, its input map and its seed."""

    n_estimators: Annotated[
        str | None,
        _option(metavar="N", help="Networks in the ensemble, or auto (default: auto)."),
    ] = None
    n_neurons: Annotated[
        str | None, _option(metavar="N", help="Hidden units of each network (default: auto).")
    ] = None
    input_map: Annotated[
        MapChoice,
        _option(
            help="Learn a relevance of each input (ard) or a linear map (full); auto chooses by "
            "the number of rows; none gives all inputs the same scale."
        ),
    ] = MapChoice.auto
    random_state: Annotated[int, _option(min=0, help="Seed of the random weights.")] = 0
    exact: Annotated[
        bool,
        _option("--exact", help="Compute standard errors exactly, instead of to one percent."),
    ] = False
    n_jobs: Annotated[int, _option(help="Threads; -1 for all processors.")] = -1
    device: Annotated[str | None, _option(help="A torch device, such as cuda.")] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Those that are given, by their names in Python."""
        return _given(self) | {"input_map": number_or_name(self.input_map.value)}


@dataclass(frozen=True)
class AdvancedOptions:
    """Parameters of the regression and of the random layer, whose defaults suit most tables."""

    alpha: Annotated[
        str | None,
        _advanced(metavar="NUMBER", help="Ridge parameter, or loo, block-loo or gcv to choose it."),
    ] = None
    activation: Annotated[
        str | None, _advanced(metavar="NAME", help="Activation of the hidden units.")
    ] = None
    weight_distribution: Annotated[
        str | None, _advanced(metavar="NAME", help="Distribution of the random weights.")
    ] = None
    weight_scale: Annotated[
        list[str] | None,
        _advanced(metavar="NUMBERS", help="Scale of the random weights, for all or each input."),
    ] = None
    expand_inputs: Annotated[
        list[str] | None,
        _advanced(metavar="NAMES", help="Further inputs: normal_scores, one_hot, auto or none."),
    ] = None
    tuning_fraction: Annotated[
        str | None,
        _advanced(
            metavar="NUMBER", help="Share of the rows that choose alpha and the input map, or none."
        ),
    ] = None
    fit_intercept: Annotated[
        bool | None, _advanced("--fit-intercept/--no-fit-intercept", help="Fit an intercept.")
    ] = None
    standardize: Annotated[
        bool | None, _advanced("--standardize/--no-standardize", help="Standardize the inputs.")
    ] = None
    variance: Annotated[
        list[str] | None,
        _advanced(metavar="NAMES", help="Variance estimates, the default one first; or all."),
    ] = None
    hc: Annotated[
        str | None, _advanced(metavar="NAME", help="Residuals of heteroskedastic estimates.")
    ] = None
    noise_variance: Annotated[
        str | None, _advanced(metavar="NUMBER", help="Known noise variance, or its estimate.")
    ] = None
    dtype: Annotated[str | None, _advanced(metavar="NAME", help="float64 or float32.")] = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Those that are given, by their names in Python."""
        return _given(self)


def _given(options: Any) -> dict[str, Any]:
    """The options that are given, with numbers as numbers and lists of one as their value."""
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    return {name: _value(value) for name, value in values.items() if value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return names_or_none(value)
    return number_or_name(value) if isinstance(value, str) else value
