"""Starts of the search of a map: the marginal likelihood has several maxima."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.search import Search, scales_value
from ulmus.core.input_map.settings import SETTINGS, explains_nothing

IMPORTANCES = "importances"


class Start(NamedTuple):
    """A start of the search after some steps."""

    name: str
    scales: np.ndarray  # (d' + 1,): log scales and log alpha
    value: float  # negative log marginal likelihood, including the prior
    ranked: bool = False  # whether it started from importances in another model


def best_start(
    search: Search, networks: ProbeNetworks, importances: np.ndarray | None
) -> tuple[Start, bool]:
    """The start of largest likelihood after some steps, and whether it requires importances.

    The first two starts differ most. Where they end at different values, or nowhere, others are
    tried, and the best two continue; ``networks``, more than those of the search, decide between
    them. Importances are required where other starts find much less.
    """
    scale, log_alpha = search.common()
    # If a common scale fits only noise, alpha is so large that gradients vanish.
    log_alpha = min(log_alpha, math.log(SETTINGS.alpha_start * search.size))
    common = np.full(search.d, scale)
    ranked: list[tuple[str, np.ndarray]] = []
    if importances is not None:
        powers = SETTINGS.importance_starts
        ranked = [
            (IMPORTANCES, _proportional(importances**power, size * search.d))
            for power, size in powers
        ]

    def after_steps(name: str, L: np.ndarray, most: float = math.inf) -> Start:
        p, steps = np.append(np.log(L), log_alpha), SETTINGS.start_steps
        found = search.best_scales(p, search.all_inputs, steps, f"from {name}", most=most)
        return Start(name, *found, ranked=name == IMPORTANCES)

    another = "another scale", SETTINGS.larger_scale * common
    second, *others = [*ranked, another]
    found = [after_steps("common scale", common, SETTINGS.reach), after_steps(*second)]
    if not _agree(*found) or explains_nothing(found[0].value, search.d):
        others.append(("gradients", _by_gradients(search, common, log_alpha)))
        found += [after_steps(*other) for other in others]
    unranked = min(one.value for one in found if not one.ranked)
    found = sorted(found, key=attrgetter("value"))
    if _agree(*found[:2]):
        found = found[:1]
    found = [_continued(search, one) for one in found[:2]]
    best = min(found, key=lambda one: scales_value(networks, one.scales))
    return best, best.ranked and unranked > SETTINGS.required_share * best.value


def _agree(one: Start, other: Start) -> bool:
    return abs(one.value - other.value) < SETTINGS.agreement


def _continued(search: Search, start: Start) -> Start:
    """The start after more steps."""
    steps, name = SETTINGS.small_steps, f"from {start.name}, continued"
    p, value = search.best_scales(start.scales, search.all_inputs, steps, name)
    return start._replace(scales=p, value=value)


def _by_gradients(search: Search, L: np.ndarray, log_alpha: float) -> np.ndarray:
    """Scales in proportion to the root mean squared derivatives of a refitted prediction."""
    total = np.sum(L**2)
    for _ in range(SETTINGS.gradient_refits):
        size = search.networks.gradient_size(L, log_alpha)
        if size is None or not np.sum(size) > 0 or not np.all(np.isfinite(size)):
            break
        L = _proportional(size, total)
    return L


def _proportional(size: np.ndarray, total: float) -> np.ndarray:
    """Scales (d',) whose squares are in proportion to non-negative sizes and sum to a total."""
    low, high = SETTINGS.log_scale_bounds
    L = np.sqrt(total * (size / np.sum(size) + 1e-6 / len(size)))
    return np.clip(L, math.exp(low), math.exp(high))
