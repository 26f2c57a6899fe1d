"""From parameters and rows to a hidden layer: inputs, their map, and drawn units.

What is learned from rows, the scores and levels of the inputs and the map, comes from a sample of
them, so that it costs the same for a thousand rows and a hundred million.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, is_on_host, like
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.data.source import Block, Source
from ulmus.core.data.subsample import SamplePass
from ulmus.core.input_map.correlated_noise import MOST_ROWS, learned_map_correlated
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.core.input_map.optimisation import Log, learned_map
from ulmus.core.input_map.sensitivity import relevance
from ulmus.core.layer.hidden_layer import HiddenLayer, UnitDistribution, drawn_layer
from ulmus.core.layer.inputs import EXPANSIONS, Inputs, expanded, plain_inputs
from ulmus.core.noise_covariance.spec import CovarianceSpec

LEARNED = ("ard", "full", "auto")
# A matrix is learned where there are so many rows for each of its entries.
ROWS_PER_ENTRY = 20
# Further inputs are made for tables with at most so many columns.
MOST_EXPANDED = 200
# Nothing is learned about more inputs than these, or from fewer rows.
MOST_MAPPED, FEWEST_ROWS = 1000, 30


@dataclass(frozen=True)
class Effort:
    """How much a map may cost: rows and units that judge it, and independent draws of these."""

    rows: int
    units: int
    draws: int = 2


HOST_EFFORT, CARD_EFFORT = Effort(rows=4000, units=512), Effort(rows=10_000, units=1024)
# Hidden units of a member: so many times the root of the rows, at most the second number, and few
# enough that all members together cost no more multiplications than the third. The fourth holds
# where the networks that judged the map spent less than a share of their units: more would idle.
HOST_UNITS, CARD_UNITS = (20, 900, 2.4e12, 0.6e12), (40, 8000, 1e14, 1e14)
IDLE_SHARE = 0.15
FEWEST_UNITS = 100


@dataclass(frozen=True)
class InputMap:
    """The map in front of the hidden layer, as a fit keeps it.

    Parameters
    ----------
    matrix : ndarray of shape (d', d')
        The map.
    kind : str
        How it was found: ``"given"``, ``"common"``, ``"ard"`` or ``"full"``.
    relevance, deviation : ndarrays of shape (d,), or None
        Share of each input of the table in the prediction, and its standard deviation.
    trouble : str
        Why nothing could be learned, where that is so.
    """

    matrix: np.ndarray
    kind: str
    relevance: np.ndarray | None = None
    deviation: np.ndarray | None = None
    trouble: str = ""


@dataclass(frozen=True)
class _Seen:
    """What a map is learned from: a sample, the number of rows that it stands for, and how."""

    block: Block
    n_rows: int
    effort: Effort
    assumed: CovarianceSpec | None


@dataclass(frozen=True)
class LayerSpec:
    """Parameters of a hidden layer.

    Parameters
    ----------
    seed : int
        Seed of all members; the first of them stay the same when members are added.
    n_members : int
        Number of members.
    n_neurons : int or None
        Units of a member, or None for a number that suits the rows.
    law : UnitDistribution
        How units are drawn.
    input_map : None, str or ndarray of shape (d', d')
        No map, how to learn it, or the map.
    expansions : "auto" or tuple of str
        Names in ``EXPANSIONS``; ``"auto"`` has all of them where a map is learned.
    standardize, constant : bool
        Whether inputs are standardised, and whether members have an intercept.
    map_seed : int
        Seed of the sample and of the networks that a map is judged by.
    report : callable
        Told in a sentence what has been done.
    """

    seed: int
    n_members: int
    n_neurons: int | None
    law: UnitDistribution
    input_map: Any
    expansions: Any
    standardize: bool
    constant: bool
    map_seed: int
    report: Log

    def learns(self, scale: FeatureScale) -> bool:
        """Whether a map is learned from rows; that needs the derivative of the activation."""
        wanted = isinstance(self.input_map, str) and isinstance(self.law.activation, str)
        return wanted and len(scale.mean) <= MOST_MAPPED and scale.n_rows >= FEWEST_ROWS

    def layer(
        self,
        source: Source,
        scale: FeatureScale,
        reference: Array,
        assumed: CovarianceSpec | None = None,
    ) -> tuple[HiddenLayer, InputMap | None]:
        """The drawn layer, and the map in front of it.

        What is assumed about noise that hangs together is of the rows of the source.
        """
        inputs, seen = plain_inputs(scale, self.standardize, reference), None
        learns, expansions = self.learns(scale), self._expansions(scale)
        if learns or expansions:
            seen = self._seen(source, scale.n_rows, reference, assumed)
            sparse = scipy.sparse.issparse(seen.block.X)
            if expansions and not sparse:
                auto = self.expansions == "auto"
                inputs = expanded(inputs, seen.block, expansions, only_stretched=auto)
            if sparse:
                dense = like(seen.block.X.toarray(), reference)
                seen = replace(seen, block=seen.block._replace(X=dense))
        found, used = self._map(seen if learns else None, inputs)
        matrix = None if found is None else found.matrix
        n_neurons = self.n_neurons
        if n_neurons is None:
            n_neurons = auto_neurons(scale.n_rows, self.n_members, reference, used)
        law = self._law(inputs)
        seeds = np.random.SeedSequence(self.seed).spawn(self.n_members)
        layer = drawn_layer(seeds, n_neurons, law, inputs, matrix, constant=self.constant)
        return layer, found

    def _seen(
        self, source: Source, n_rows: int, reference: Array, assumed: CovarianceSpec | None
    ) -> _Seen:
        effort = HOST_EFFORT if is_on_host(reference) else CARD_EFFORT
        # There is no covariance to whiten rows by where noise is told by products of residuals.
        if assumed is not None and assumed.parametric is None:
            assumed = None
        if assumed is not None:
            effort = replace(effort, rows=MOST_ROWS)
        block = source.reduce(SamplePass(effort.rows, self.map_seed)).block
        if assumed is not None:
            assumed = assumed.taken(block.rows)
        # A sample of many rows stands for all of them; one that is smaller is all there is.
        n_rows = n_rows if block.y.shape[1] == effort.rows else block.y.shape[1]
        return _Seen(block, n_rows, effort, assumed)

    def _law(self, inputs: Inputs) -> UnitDistribution:
        """The law of the units, with the scale of each input for its scores and levels too."""
        if self.law.scale is None:
            return self.law
        return replace(self.law, scale=self.law.scale[inputs.origin])

    def _expansions(self, scale: FeatureScale) -> tuple[str, ...]:
        if self.expansions == "auto":
            few_columns = len(scale.mean) <= MOST_EXPANDED
            return EXPANSIONS if self.learns(scale) and few_columns else ()
        return tuple(self.expansions)

    def _map(self, seen: _Seen | None, inputs: Inputs) -> tuple[InputMap | None, float]:
        """The map, and the share of units that the networks which judged it have used."""
        if self.input_map is None:
            return None, 1.0
        if not isinstance(self.input_map, str):
            return InputMap(_checked_matrix(self.input_map, len(inputs.origin)), "given"), 1.0
        if seen is None:
            return None, 1.0
        start = InputMap(np.eye(len(inputs.origin)), "common")
        try:
            return self._learned(seen, inputs) or (start, 1.0)
        except (FloatingPointError, np.linalg.LinAlgError) as error:
            return replace(start, trouble=str(error)), 1.0

    def _learned(self, seen: _Seen, inputs: Inputs) -> tuple[InputMap, float] | None:
        seeds = [self.map_seed + 1 + s for s in range(seen.effort.draws)]
        n_units = min(seen.effort.units, max(FEWEST_UNITS, 2 * seen.block.y.shape[1] // 3))
        law = self._law(inputs)
        judges = probe_networks(seen.block, inputs, law, seeds, n_units, centred=self.constant)
        if judges is None:
            return None
        kind = self._kind(len(inputs.origin), seen.n_rows)
        if seen.assumed is None:
            found = learned_map(judges, kind, self.report)
        else:
            found, judges = learned_map_correlated(judges, kind, seen.assumed, self.report)
        shares = relevance(judges, found, inputs.origin, self.map_seed)
        used = judges.dof_share(found.matrix, found.log_alpha)
        return InputMap(found.matrix, found.kind, *shares), used

    def _kind(self, n_inputs: int, n_rows: int) -> str:
        """Scales always; a matrix where the rows are many enough for its entries."""
        if self.input_map != "auto":
            return str(self.input_map)
        return "full" if n_rows >= ROWS_PER_ENTRY * n_inputs**2 else "ard"


def auto_neurons(n_rows: int, n_members: int, reference: Array, used: float = 1.0) -> int:
    """Hidden units of a member for so many rows, as many as pay off and can be afforded."""
    growth, most, products, idle = HOST_UNITS if is_on_host(reference) else CARD_UNITS
    products = products if used > IDLE_SHARE else idle
    affordable = np.sqrt(products / max(n_rows, 1)) / n_members
    return int(max(FEWEST_UNITS, min(growth * np.sqrt(n_rows), most, affordable)))


def _checked_matrix(matrix: np.ndarray, n_inputs: int) -> np.ndarray:
    if matrix.shape != (n_inputs, n_inputs):
        raise ValueError(
            f"input_map must have one row and one column for each of the {n_inputs} inputs of the "
            f"hidden layer, got shape {matrix.shape}; use expand_inputs=None for a map of the "
            "table's own inputs."
        )
    return matrix
