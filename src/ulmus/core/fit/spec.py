"""The specification of a fit: everything that determines it, apart from the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ulmus.core.ensemble.regression import RegressionSpec
from ulmus.core.layer.hidden_layer import HiddenLayer, UnitDistribution


@dataclass(frozen=True)
class LayerSpec:
    """How a hidden layer is drawn, and how the map of its inputs is optimised.

    Parameters
    ----------
    seed : int
        Seed of all members; the first of them stay the same when members are added.
    n_members : int
        Number of members.
    n_neurons : int or None
        Units of a member; None for a number that grows with the rows.
    units : UnitDistribution
        Distribution of the hidden weights and biases.
    input_map : None, str or ndarray of shape (d', d')
        No map, the structure of a map that is optimised ("ard", "full", "auto"), or the map.
    expansions : "auto" or tuple of str
        Names in ``EXPANSIONS``; ``"auto"`` takes all of them where a map is optimised.
    standardize, constant : bool
        Whether inputs are standardised, and whether members have an intercept.
    map_seed : int
        Seed of the sample of rows and of the probe networks that a map is optimised with.
    """

    seed: int
    n_members: int
    n_neurons: int | None
    units: UnitDistribution
    input_map: str | np.ndarray | None
    expansions: str | tuple[str, ...]
    standardize: bool
    constant: bool
    map_seed: int


@dataclass(frozen=True)
class FitSpec:
    """Everything that determines a fit, apart from the rows.

    Parameters
    ----------
    layer : LayerSpec or HiddenLayer
        How the hidden layer is drawn, or the drawn layer.
    regression : RegressionSpec
        Ridge parameter, noise variance and variance estimates. With correlated noise, ``"loo"``
        leaves out blocks of rows unless the estimated correlation is zero.
    min_gain_in_se : float or None
        Gain in out-of-sample log score, in standard errors, above which the noise variance is
        modelled as a function of the inputs; None for a constant variance.
    map_fraction : float or None
        Share of the rows that the map is optimised on, and that prediction intervals exclude;
        None for all rows and intervals from all.
    dual : bool or None
        Whether the forms of rows in memory keep their coordinates; None chooses the cheaper.
    one_output : bool
        Whether y had a single axis.
    parameters : dict
        The estimator's parameters of the layer as text; rows can be added under the same ones.
    """

    layer: LayerSpec | HiddenLayer
    regression: RegressionSpec
    min_gain_in_se: float | None = None
    map_fraction: float | None = None
    dual: bool | None = None
    one_output: bool = True
    parameters: dict[str, str] = field(default_factory=dict)
