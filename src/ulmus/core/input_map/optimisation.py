r"""A map of the inputs that maximises the marginal likelihood of probe networks.

The map L is a scale for each input (automatic relevance determination) or a full matrix. Log scales
:math:`\theta` have the prior :math:`\log(1 + \theta^2)`, whose heavy tails leave most of them near
zero and allow some to be large; entries that mix inputs have a normal prior of mean zero.

Most of the search runs on one small network and a few rows. L-BFGS runs from several starts: one
common scale; the diagonal of the average gradient outer product, without which the search fails if
few of many inputs matter; marginal likelihoods of functions of one input; and importances of the
inputs in another model, where they are given, for inputs that matter only through their
interactions. All run a few steps, on all rows where none of them explains anything on fewer, and
the best one continues. The scales found are optimised on all
rows by a network whose units are a multiple of the degrees of freedom of the small one. Then the
inputs of smallest scale are dropped if that costs less than one unit of log marginal likelihood
each. A full matrix starts from these scales, and takes most steps on part of the rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.search import Search, mixed, scales_value
from ulmus.core.input_map.settings import SETTINGS, LearnedMap, Log, explains_nothing
from ulmus.core.input_map.starts import best_starts


class _Rough(NamedTuple):
    """Scales found by a small network."""

    scales: np.ndarray  # (d' + 1,): log scales, and log alpha for a network of one unit
    dof: float  # effective degrees of freedom of the network
    n_rows: int  # rows of the network
    from_importances: bool

    def units(self, n_rows: int) -> int:
        """Units for the degrees of freedom of a number of rows."""
        growth = max(1.0, n_rows / self.n_rows) ** SETTINGS.dof_growth
        return max(SETTINGS.small_units, int(SETTINGS.units_for_dof * self.dof * growth))


def learned_map(
    networks: ProbeNetworks, structure: str, log: Log, importances: np.ndarray | None = None
) -> tuple[LearnedMap, ProbeNetworks]:
    """The map of largest marginal likelihood, ``"ard"`` or ``"full"``, and its networks.

    These are the first networks with as many units as the map needs. Importances (d',) of the
    inputs in another model are non-negative.
    """
    if structure != "full":
        return learned_scales(networks, log, importances)
    rough = _rough_scales(networks, log, importances)
    few, networks = _last(networks, rough, SETTINGS.matrix_rows), _last(networks, rough)
    scales = _finished(rough, few, log)
    return learned_matrix(networks, scales, few.n_units, log), networks


def learned_scales(
    networks: ProbeNetworks, log: Log, importances: np.ndarray | None = None
) -> tuple[LearnedMap, ProbeNetworks]:
    """A scale for each input, and the networks that it was optimised on."""
    rough = _rough_scales(networks, log, importances)
    networks = _last(networks, rough)
    return _finished(rough, networks, log), networks


def _last(networks: ProbeNetworks, rough: _Rough, most_rows: int | None = None) -> ProbeNetworks:
    """Networks for the last steps on all rows, or on about ``most_rows``."""
    n = int(networks.y.shape[0])
    rows = n if most_rows is None else min(n, most_rows)
    return networks.smaller(rows, rough.units(rows), networks.n_networks)


def _rough_scales(networks: ProbeNetworks, log: Log, importances: np.ndarray | None) -> _Rough:
    """Scales by a small network on a few rows."""
    d, n = networks.n_inputs, int(networks.y.shape[0])
    least = max(SETTINGS.small_rows, SETTINGS.rows_for_input * d)
    few_units = max(SETTINGS.small_units, SETTINGS.units_for_input * d)
    for rows, units in ((least, few_units), (n, 2 * few_units)):
        search = Search(networks.smaller(rows, units, 1), log, log_alpha=math.inf)
        starts, required = best_starts(search, importances)
        if search.networks.y.shape[0] == n or not explains_nothing(starts[0].value, d):
            break
    small = search.networks
    dof = max(_dof(small, start.scales) for start in starts)
    if dof > SETTINGS.saturation[len(starts) - 1] * units:
        search = Search(networks.smaller(rows, 2 * units, 1), log, log_alpha=math.inf)
    found = []
    for start in starts:
        p = _for_units(start.scales, small.n_units, search.networks.n_units)
        steps, name = SETTINGS.small_steps, f"from {start.name}, continued"
        found.append(search.best_scales(p, search.all_inputs, steps, name)[0])
    small = search.networks
    # More networks than that of the search decide between the starts.
    judges = networks.smaller(rows, small.n_units, networks.n_networks)
    p = min(found, key=lambda p: scales_value(judges, p))
    p, dof = _for_units(p, small.n_units, 1), _dof(small, p)
    return _Rough(p, dof, int(small.y.shape[0]), required)


def _for_units(p: np.ndarray, n_units: int, others: int) -> np.ndarray:
    """Log scales and log alpha for another number of units: weights of more units are smaller."""
    return np.append(p[:-1], p[-1] + math.log(others / n_units))


def _dof(networks: ProbeNetworks, p: np.ndarray) -> float:
    return networks.dof(np.exp(p[:-1]), p[-1])


def _finished(rough: _Rough, networks: ProbeNetworks, log: Log) -> LearnedMap:
    start = _for_units(rough.scales, 1, networks.n_units)
    learned = Search(networks, log, log_alpha=start[-1]).scales(start)
    return replace(learned, from_importances=rough.from_importances)


def refitted_scales(networks: ProbeNetworks, start: LearnedMap, log: Log) -> LearnedMap:
    """Scales of the inputs of a map, optimised from it for other weights of the rows."""
    return Search(networks, log).kept_scales(start)


def learned_matrix(
    networks: ProbeNetworks, scales: LearnedMap, n_units: int, log: Log
) -> LearnedMap:
    """A full matrix, from scales learned by networks of ``n_units`` units."""
    d, kept = networks.n_inputs, np.diag(scales.matrix) > 0
    theta = np.log(np.where(kept, np.diag(scales.matrix), 1.0))
    p = np.concatenate([theta, np.zeros(d * d), [scales.log_alpha - math.log(n_units)]])
    value = math.inf
    few = networks.smaller(SETTINGS.matrix_rows, n_units, networks.n_networks)
    for part, steps in ((few, SETTINGS.matrix_steps), (networks, SETTINGS.last_matrix_steps)):
        p[-1] += math.log(part.n_units)
        search = Search(part, log, log_alpha=p[-1], least_alpha=SETTINGS.resolved_alpha)
        p, value = search.matrix(p, kept, steps)
        log_alpha = p[-1]
        p[-1] -= math.log(part.n_units)
    L = mixed(p, kept)
    return LearnedMap("full", L, L, log_alpha, value, scales.from_importances)
