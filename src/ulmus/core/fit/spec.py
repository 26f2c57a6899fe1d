"""The specification of a fit: everything that determines it, apart from the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ulmus.core.ensemble.regression import RegressionSpec
from ulmus.core.layer.hidden_layer import HiddenLayer, UnitDistribution
from ulmus.core.layer.levels import LevelBlock
from ulmus.core.response.target import TargetSpec


@dataclass(frozen=True)
class LayerSpec:
    """How a hidden layer is drawn, and how the map of its inputs is optimised."""

    seed: int  # seed of all members; the first of them stay the same when members are added
    # Numbers of members and of units of each; None for those of ``SizeRule``.
    n_members: int | None
    n_neurons: int | None
    units: UnitDistribution  # distribution of the hidden weights and biases
    # (d', d'): no map, the structure of a map that is optimised ("ard", "full", "auto"), or the
    # map.
    input_map: str | np.ndarray | None
    # Names in ``EXPANSIONS``; ``"auto"`` takes all of them where a map is optimised.
    expansions: str | tuple[str, ...]
    standardize: bool  # whether inputs are standardised
    constant: bool  # whether members have an intercept
    # Seed of the sample of rows and of the probe networks that a map is optimised with.
    map_seed: int
    # (d,): column of the user's table that each input encodes, by which relevance is summarised;
    # None if inputs are the columns.
    columns: np.ndarray | None = None


@dataclass(frozen=True)
class FitSpec:
    """Everything that determines a fit, apart from the rows."""

    layer: LayerSpec | HiddenLayer  # how the hidden layer is drawn, or the drawn layer
    # Ridge parameter, noise variance and variance estimates. With correlated noise, ``"loo"``
    # leaves out blocks of rows unless the estimated correlation is zero.
    regression: RegressionSpec
    # Gain in out-of-sample log score, in standard errors, above which the noise variance is
    # modelled as a function of the inputs; None for a constant variance.
    min_gain_in_se: float | None = None
    # Share of the rows that the map is optimised on, and that prediction intervals exclude; None
    # for all rows and intervals from all.
    tuning_fraction: float | None = None
    # Whether the forms of rows in memory keep their coordinates; None chooses the cheaper.
    dual: bool | None = None
    one_output: bool = True  # whether y had a single axis
    levels: tuple[LevelBlock, ...] = ()  # inputs that are indicators of levels of categories
    target: TargetSpec | None = None  # transformation, range and kind of y; None for y itself
    # The estimator's parameters of the layer as text; rows can be added under the same ones.
    parameters: dict[str, str] = field(default_factory=dict)

    def keeps_coordinates(self, n_rows: int, layer: HiddenLayer) -> bool:
        """Whether the forms of rows in memory keep their coordinates."""
        # Through the rows a point costs n MN products, through the features (MN)^2.
        return n_rows < layer.width if self.dual is None else self.dual
