"""Starts of the search of a map: the marginal likelihood has several maxima."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ulmus.core.input_map.search import Search
from ulmus.core.input_map.settings import SETTINGS, explains_nothing

IMPORTANCES = "importances"


class Start(NamedTuple):
    """A start of the search after a few steps."""

    name: str
    scales: np.ndarray  # (d' + 1,): log scales and log alpha
    value: float  # negative log marginal likelihood, including the prior


def best_starts(search: Search, importances: np.ndarray | None) -> tuple[list[Start], bool]:
    """The best starts after a few steps: one, or two that end at different values.

    The first two starts differ most. Others are tried where these end at different values or
    explain nothing. Also whether importances are required: they are the best start, and another
    finds much less, so that on fewer rows all others may fail.
    """
    scale, log_alpha = search.common()
    # If a common scale fits only noise, alpha is so large that gradients vanish.
    log_alpha = min(log_alpha, math.log(SETTINGS.alpha_start * search.size))
    common = np.full(search.d, scale)
    others = [("another scale", SETTINGS.larger_scale * common)]
    if importances is not None:
        powers = SETTINGS.importance_starts
        sizes = [(importances**power, size * search.d) for power, size in powers]
        others = [*((IMPORTANCES, _proportional(*size)) for size in sizes), *others]

    def after_steps(name: str, L: np.ndarray, most: float = math.inf) -> Start:
        p, steps = np.append(np.log(L), log_alpha), SETTINGS.start_steps
        found = search.best_scales(p, search.all_inputs, steps, f"from {name}", most=most)
        return Start(name, *found)

    found = [after_steps("common scale", common, SETTINGS.reach), after_steps(*others[0])]
    nothing = explains_nothing(found[0].value, search.d)
    if nothing:
        others.append(("single inputs", _by_single_inputs(search, common)))
    if nothing or not _agree(*found):
        others.append(("gradients", _by_gradients(search, common, log_alpha)))
        found += [after_steps(*other) for other in others[1:]]
    found = sorted(found, key=attrgetter("value"))
    best, worst = found[0], max(one.value for one in found if one.name != IMPORTANCES)
    required = best.name == IMPORTANCES and not explains_nothing(best.value, search.d)
    required &= worst > SETTINGS.required_share * best.value
    return found[: 1 if _agree(*found[:2]) else 2], required


def _agree(one: Start, other: Start) -> bool:
    return abs(one.value - other.value) < SETTINGS.agreement


def _by_gradients(search: Search, L: np.ndarray, log_alpha: float) -> np.ndarray:
    """Scales in proportion to the root mean squared derivatives of a refitted prediction."""
    total = np.sum(L**2)
    for _ in range(SETTINGS.gradient_refits):
        size = search.networks.gradient_size(L, log_alpha)
        if size is None or not np.sum(size) > 0 or not np.all(np.isfinite(size)):
            break
        L = _proportional(size, total)
    return L


def _by_single_inputs(search: Search, L: np.ndarray) -> np.ndarray:
    """Scales by the log marginal likelihoods of functions of one input each."""
    sizes, n_rows = np.zeros(search.d), int(search.networks.y.shape[0])
    few = search.networks.smaller(n_rows, SETTINGS.single_units, 1)
    for j in range(search.d):
        for scale in SETTINGS.single_scales:
            alone = np.zeros(search.d)
            alone[j] = scale
            sizes[j] = max(sizes[j], -float(np.min(few.profile(alone, search.log_alphas))))
    return _proportional(sizes, search.d) if np.any(sizes > 0) else L


def _proportional(size: np.ndarray, total: float) -> np.ndarray:
    """Scales (d',) whose squares are in proportion to non-negative sizes and sum to a total."""
    low, high = SETTINGS.log_scale_bounds
    L = np.sqrt(total * (size / np.sum(size) + 1e-6 / len(size)))
    return np.clip(L, math.exp(low), math.exp(high))
