"""The hidden layer of the noise variance: units of its own behind a map of its own.

The map that was learned for the mean may be blind to inputs that only the noise depends on. The
logarithm of the variance gets a scale for each standardised input, by the evidence of one small
network on some rows; that costs a tenth of a second.
"""

from __future__ import annotations

import math

import numpy as np
from threadpoolctl import threadpool_limits

from ulmus.core.arrays.backend import dense, to_numpy
from ulmus.core.data.source import Block
from ulmus.core.input_map.marginal_likelihood import networks
from ulmus.core.input_map.optimisation import learned_map
from ulmus.core.layer.hidden_layer import HiddenLayer, UnitLaw, drawn_layer
from ulmus.core.layer.inputs import Inputs

# Members and their units: a smooth function of the inputs needs no more.
NOISE_MEMBERS, NOISE_UNITS = 5, 100
NOISE_LAW = UnitLaw("normal", None, "tanh")
# Rows and units that judge a map.
MAP_ROWS, MAP_UNITS = 1000, 64
# No map is learned from fewer rows than these or for more inputs.
FEWEST_ROWS, MOST_INPUTS = 30, 200
# Scales are rounded to powers of e^(1/8): round-off in the labels then changes no scale, and
# rows in blocks give the layer of rows in memory.
STEPS_OF_SCALE = 8
SEED = 1


def noise_layer(inputs: Inputs, sample: Block) -> HiddenLayer:
    """A layer for standardised inputs, with a map for the labels of a sample."""
    seeds = np.random.SeedSequence(SEED).spawn(NOISE_MEMBERS)
    scales = noise_scales(inputs, sample)
    matrix = None if scales is None else np.diag(scales)
    return drawn_layer(seeds, NOISE_UNITS, NOISE_LAW, inputs, matrix, constant=True)


def noise_scales(inputs: Inputs, sample: Block) -> np.ndarray | None:
    """A scale for each input, zero for those left out; None where nothing can be learned."""
    n_inputs = len(inputs.origin)
    if sample.y.shape[1] < FEWEST_ROWS or n_inputs > MOST_INPUTS:
        return None
    try:
        judges = networks(*_on_host(sample, inputs), NOISE_LAW, [SEED], MAP_UNITS, centred=True)
        if judges is None:
            return None
        # Products of so few units are slower with every further thread.
        with threadpool_limits(1, user_api="blas"):
            scales = np.diag(learned_map(judges, "ard", lambda _: None).matrix)
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
    steps = [STEPS_OF_SCALE * math.log(s) if s > 0 else -math.inf for s in scales]
    return np.exp(np.round(steps) / STEPS_OF_SCALE)


def _on_host(sample: Block, inputs: Inputs) -> tuple[Block, Inputs]:
    """Both as NumPy arrays in double precision: a small task, and the same map on every device."""
    X = to_numpy(dense(sample.X))
    root_weight = None if sample.root_weight is None else to_numpy(sample.root_weight)
    offset, scale = (to_numpy(a).astype(float) for a in (inputs.offset, inputs.scale))
    rows = Block(X.astype(float), to_numpy(sample.y).astype(float), root_weight)
    return rows, Inputs(offset, scale)
