"""The hidden layer of a fit: expanded inputs, their map, and the units drawn behind it.

Expansions and map are estimated from a sample of the rows, so that they cost the same for a
thousand rows and a hundred million.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import Array, is_on_host, like, to_numpy
from ulmus.core.data.scaling import FeatureScale
from ulmus.core.data.source import Block, SamplePass, Source
from ulmus.core.fit.sizes import FEWEST_UNITS, dof_of_function, size_rule
from ulmus.core.fit.spec import LayerSpec
from ulmus.core.input_map.correlated_noise import MAX_WHITENED_ROWS, learned_map_correlated
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks, probe_networks
from ulmus.core.input_map.optimisation import learned_map
from ulmus.core.input_map.relevance import relevance
from ulmus.core.input_map.settings import LearnedMap, Log, explains_nothing
from ulmus.core.layer.hidden_layer import HiddenLayer, UnitDistribution, drawn_layer
from ulmus.core.layer.inputs import EXPANSIONS, Inputs, expanded, plain_inputs
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.progress import stage

MAP_STRUCTURES = ("ard", "full", "auto")
# "auto" optimises a full matrix from this many rows per entry.
ROWS_PER_ENTRY = 20
# "auto" expands the inputs of tables with at most this many columns.
MOST_EXPANDED = 200
# A map is optimised for at most this many inputs, and from at least this many rows.
MOST_MAPPED, FEWEST_ROWS = 1000, 30


@dataclass(frozen=True)
class Effort:
    """Cost of a map: rows and units of the probe networks, and independent draws of these."""

    rows: int
    units: int
    draws: int = 2


HOST_EFFORT, GPU_EFFORT = Effort(rows=4000, units=512), Effort(rows=10_000, units=1024)


# Importances in another model are a start of the search from this many inputs.
FEWEST_RANKED = 6
# Share of the variance that another model explains, above which a map that explains nothing has
# missed a signal.
MISSED_SHARE = 0.1


@dataclass(frozen=True)
class InputMap:
    """The map in front of a hidden layer."""

    matrix: np.ndarray  # (d', d'): the map
    structure: str  # ``"given"``, ``"common"`` (one scale for all inputs), ``"ard"`` or ``"full"``
    relevance: np.ndarray | None = None  # (columns,): share of each column in the prediction
    deviation: np.ndarray | None = None  # (d,): standard deviation of the share
    failure: str = ""  # why the optimisation failed, where it did
    missed_signal: bool = False  # whether it explains nothing, and another model does

    @property
    def optimised(self) -> bool:
        """Whether the map was estimated from rows."""
        return self.relevance is not None


class MapSource(NamedTuple):
    """What a map was learned from, and the result of the search."""

    sample: Block  # dense rows, in the order of the probe networks
    networks: ProbeNetworks
    learned: LearnedMap


class DrawnLayer(NamedTuple):
    """A hidden layer, the map in front of it, and what the map was learned from."""

    layer: HiddenLayer
    input_map: InputMap | None
    source: MapSource | None


@dataclass(frozen=True)
class _MapSample:
    """Rows that a map is optimised on, the number of rows they represent, and their noise."""

    block: Block
    n_rows: int
    effort: Effort
    covariance: CovarianceSpec | None


def quiet(text: str) -> None:
    """Discard progress messages."""


class Importances(NamedTuple):
    """Importances of the inputs in another model."""

    values: np.ndarray  # (d',): one for each input of the layer, at least 0
    explained: float  # share of the variance that the model explains out of sample


# Importances of inputs (n, d') for outputs (n, K); the third argument is the column of the table
# that each input belongs to, (d',). None if no input matters.
InputImportances = Callable[[np.ndarray, np.ndarray, np.ndarray], Importances | None]


@dataclass(frozen=True)
class MapSearch:
    """What the search of a map is given besides rows and specification."""

    log: Log = quiet  # receives messages of progress
    importances: InputImportances | None = None  # a start of the search
    relevance: bool = True  # whether relevances are computed


def optimises_map(spec: LayerSpec, scale: FeatureScale) -> bool:
    """Whether a map is estimated from rows; that requires the derivative of the activation."""
    possible = isinstance(spec.input_map, str) and isinstance(spec.units.activation, str)
    return possible and len(scale.mean) <= MOST_MAPPED and scale.n_rows >= FEWEST_ROWS


def hidden_layer(
    source: Source,
    spec: LayerSpec,
    scale: FeatureScale,
    reference: Array,
    covariance: CovarianceSpec | None = None,
    search: MapSearch | None = None,
) -> DrawnLayer:
    """The drawn layer, and the map in front of it.

    Expansions and map are estimated from the source; ``reference`` is an array of the library and
    device to compute with, and ``covariance`` has the locations of the rows of the source.
    """
    search = MapSearch() if search is None else search
    inputs, sample = plain_inputs(scale, spec.standardize, reference), None
    optimises, expansions = optimises_map(spec, scale), _expansions(spec, scale)
    if optimises or expansions:
        sample = _map_sample(source, spec.map_seed, scale.n_rows, reference, covariance)
        sparse = scipy.sparse.issparse(sample.block.X)
        if expansions and not sparse:
            auto = spec.expansions == "auto"
            inputs = expanded(inputs, sample.block, expansions, only_skewed=auto)
        if sparse:
            dense = like(sample.block.X.toarray(), reference)
            sample = replace(sample, block=sample.block._replace(X=dense))
    input_map, dof, map_source = _input_map(spec, sample if optimises else None, inputs, search)
    rule = size_rule(reference)
    n_neurons, n_members = spec.n_neurons, spec.n_members
    if n_neurons is None:
        n_neurons = rule.n_units(scale.n_rows, dof)
    if n_members is None:
        n_members = rule.n_members(scale.n_rows, n_neurons)
    layer = drawn_layer(
        np.random.SeedSequence(spec.seed).spawn(n_members),
        n_neurons,
        _units(spec, inputs),
        inputs,
        None if input_map is None else input_map.matrix,
        constant=spec.constant,
    )
    return DrawnLayer(layer, input_map, map_source)


def _map_sample(
    source: Source, seed: int, n_rows: int, reference: Array, covariance: CovarianceSpec | None
) -> _MapSample:
    effort = HOST_EFFORT if is_on_host(reference) else GPU_EFFORT
    # Without a parametric covariance there is nothing to whiten rows by.
    if covariance is not None and covariance.parametric is None:
        covariance = None
    if covariance is not None:
        effort = replace(effort, rows=MAX_WHITENED_ROWS)
    block = source.reduce(SamplePass(effort.rows, seed)).block
    if covariance is not None:
        covariance = covariance.taken(block.rows)
    # A full sample represents all rows; a smaller one is all there are.
    n_sample = block.y.shape[1]
    return _MapSample(block, n_rows if n_sample == effort.rows else n_sample, effort, covariance)


def _units(spec: LayerSpec, inputs: Inputs) -> UnitDistribution:
    """Distribution of the units, where expansions of an input take the scale of the input."""
    if spec.units.scale is None:
        return spec.units
    return replace(spec.units, scale=spec.units.scale[inputs.origin])


def _expansions(spec: LayerSpec, scale: FeatureScale) -> tuple[str, ...]:
    if spec.expansions == "auto":
        few_columns = len(scale.mean) <= MOST_EXPANDED
        return EXPANSIONS if optimises_map(spec, scale) and few_columns else ()
    return tuple(spec.expansions)


def _input_map(
    spec: LayerSpec, sample: _MapSample | None, inputs: Inputs, search: MapSearch
) -> tuple[InputMap | None, float | None, MapSource | None]:
    """The map, the degrees of freedom if it was optimised, and what it was learned from."""
    if spec.input_map is None:
        return None, None, None
    if not isinstance(spec.input_map, str):
        return InputMap(_checked_map(spec.input_map, len(inputs.origin)), "given"), None, None
    if sample is None:
        return None, None, None
    identity = InputMap(np.eye(len(inputs.origin)), "common")
    try:
        return _optimised(spec, sample, inputs, search) or (identity, None, None)
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        return replace(identity, failure=str(error)), None, None


@stage("Learning the input map")
def _optimised(
    spec: LayerSpec, sample: _MapSample, inputs: Inputs, search: MapSearch
) -> tuple[InputMap, float | None, MapSource | None] | None:
    seeds = [spec.map_seed + 1 + s for s in range(sample.effort.draws)]
    n_units = min(sample.effort.units, max(FEWEST_UNITS, 2 * sample.block.y.shape[1] // 3))
    units = _units(spec, inputs)
    probes = probe_networks(sample.block, inputs, units, seeds, n_units, centred=spec.constant)
    if probes is None:
        return None
    structure = map_structure(spec, len(inputs.origin), sample.n_rows)
    ranked = None
    if search.importances is not None and probes.n_inputs >= FEWEST_RANKED:
        ranked = search.importances(to_numpy(probes.Z), to_numpy(probes.y), inputs.origin)
    values = None if ranked is None else ranked.values
    if sample.covariance is None:
        found, probes = learned_map(probes, structure, search.log, values)
    else:
        found, probes = learned_map_correlated(
            probes, structure, sample.covariance, search.log, values
        )
    if not search.relevance:
        return InputMap(found.matrix, found.structure), None, None
    missed = ranked is not None and ranked.explained > MISSED_SHARE
    input_map = InputMap(
        found.matrix,
        found.structure,
        *relevance(probes, found, _columns(spec, inputs), spec.map_seed),
        missed_signal=missed and explains_nothing(found.value, probes.n_inputs),
    )
    dof = probes.dof(found.matrix, found.log_alpha)
    dof = dof_of_function(dof, probes.n_units, probes.Z.shape[0], sample.n_rows)
    return input_map, dof, MapSource(sample.block.taken(probes.order), probes, found)


def _columns(spec: LayerSpec, inputs: Inputs) -> np.ndarray:
    """Column of the user's table of each input of the layer, shape (d',)."""
    return inputs.origin if spec.columns is None else spec.columns[inputs.origin]


def map_structure(spec: LayerSpec, n_inputs: int, n_rows: int) -> str:
    """A full matrix where rows are many for its entries, else one scale for each input."""
    if spec.input_map != "auto":
        return str(spec.input_map)
    return "full" if n_rows >= ROWS_PER_ENTRY * n_inputs**2 else "ard"


def _checked_map(matrix: np.ndarray, n_inputs: int) -> np.ndarray:
    if matrix.shape != (n_inputs, n_inputs):
        cause = (
            f"must have one row and one column for each of the {n_inputs} inputs of the hidden "
            f"layer, got shape {matrix.shape}"
        )
        remedy = Setting("expand_inputs", None, "use {} for a map of the table's own inputs")
        raise InputError(Message("map-shape", cause, "input_map", suggestions=(remedy,)))
    return matrix
