r"""First-order response of a learned map to the outputs.

The map maximises the marginal likelihood of the outputs y, so that it changes with their noise.
With the criterion E (minus the log marginal likelihood and the log prior) and relative changes P of
the map, :math:`L \to (I + P) L`, the implicit function theorem gives

.. math:: \frac{d\theta}{dy} = -\Big(\frac{\partial^2 E}{\partial\theta^2}\Big)^{-1}
          \frac{\partial^2 E}{\partial\theta \, \partial y},
          \qquad \theta = (P, \log\alpha).

With the vectors v, the residuals r and the matrix A of ``information``,

.. math:: \frac{\partial^2 E}{\partial\theta \, \partial y} =
          -\frac{Av}{s^2} + \frac{r \, (r'v)}{n s^4}.

The second derivatives by :math:`\theta` are replaced by the average information plus the curvature
of the prior. It is positive semidefinite, where the search may have ended at a saddle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ulmus.core.arrays.backend import namespace, to_numpy
from ulmus.core.arrays.linalg import eigh
from ulmus.core.input_map.information import average_information, derivatives, information
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks
from ulmus.core.input_map.search import for_curvature
from ulmus.core.input_map.settings import SETTINGS, LearnedMap

# Entries that mix inputs are held fixed where there are more of them.
MOST_ENTRIES = 400
# Least curvature of the criterion, about that of the prior at its mode: the prior is flat far from
# it, and a scale at its bound would change without limit.
LEAST_CURVATURE = 1.0


@dataclass(frozen=True)
class MapResponse:
    """Derivatives of a learned map by the outputs of the rows that it was learned from."""

    entries: np.ndarray  # (T, 2): row and column of each entry of P
    by_y: np.ndarray  # (T, K, n): derivative of the entries by the outputs, in the units of y
    # (T, T): mean over rows of products of the derivatives of a prediction by the entries.
    effect: np.ndarray


class _Terms(NamedTuple):
    """Terms of one network and output."""

    cross: np.ndarray  # (T, n): second derivatives by entries and outputs
    information: np.ndarray  # (T, T): average information
    effect: np.ndarray  # (T, T): mean products of derivatives of the prediction


def map_response(networks: ProbeNetworks, learned: LearnedMap) -> MapResponse | None:
    """Response of a learned map, to first order; None if a network has no ridge inverse."""
    resolved = math.log(SETTINGS.resolved_alpha * networks.feature_size)
    learned = replace(learned, log_alpha=max(learned.log_alpha, resolved))
    entries = _entries(learned)
    varying = np.flatnonzero(networks.sd > 0)
    terms: list[list[_Terms]] = []
    for k in range(len(varying)):
        each = [_terms(networks, learned, entries, s, k) for s in range(networks.n_networks)]
        terms.append([one for one in each if one is not None])
        if len(terms[k]) < len(each):
            return None
    # The criterion is the mean over networks and the sum over outputs.
    information, effect = (
        np.sum([np.mean([one[i] for one in each], axis=0) for each in terms], axis=0)
        for i in (1, 2)
    )
    inverse = _inverse(information + _prior_curvature(learned, entries))
    T, n = len(entries), int(networks.y.shape[0])
    root = np.ones(n) if networks.weighting is None else to_numpy(networks.weighting.root)[:, 0]
    by_y = np.zeros((T, len(networks.sd), n))
    for output, parts in zip(varying, terms, strict=True):
        cross = np.mean([one.cross for one in parts], axis=0) * root / networks.sd[output]
        by_y[:, output, :] = -inverse[:T] @ cross
    return MapResponse(entries, by_y, effect[:T, :T])


def log_scale_root(networks: ProbeNetworks, learned: LearnedMap) -> np.ndarray:
    """Root (d', r) of the covariance of the log scales before inputs were dropped."""
    d, L = networks.n_inputs, learned.undropped
    entries = np.repeat(np.arange(d)[:, None], 2, axis=1)
    few, log_alpha, factor = for_curvature(networks, learned.log_alpha)
    found = information(few, L, log_alpha, entries, relative=True)
    if found is None:
        return np.zeros((d, 0))
    total = factor * found
    whole = replace(learned, matrix=L if learned.structure == "full" else np.diag(L))
    values, vectors = eigh(_inverse(total + _prior_curvature(whole, entries))[:d, :d])
    return vectors * np.sqrt(np.maximum(values, 0))


def _entries(learned: LearnedMap) -> np.ndarray:
    """Entries of P: scales of the inputs kept, and for a full matrix all others of these inputs."""
    kept = np.flatnonzero(np.any(learned.matrix != 0, axis=1))
    scales = [(i, i) for i in kept]
    if learned.structure != "full" or len(kept) ** 2 > MOST_ENTRIES:
        return np.array(scales)
    return np.array(scales + [(i, j) for i in kept for j in kept if i != j])


def _terms(
    networks: ProbeNetworks, learned: LearnedMap, entries: np.ndarray, s: int, k: int
) -> _Terms | None:
    one = networks.regression(s, learned.matrix, learned.log_alpha)
    if one is None:
        return None
    xp, n, dtype = namespace(one.H), int(one.H.shape[0]), one.H.dtype
    v = derivatives(networks, one, networks.mapped(s, learned.matrix), entries, k)
    Hv = one.inverse @ xp.astype(one.H.T @ v, xp.float64, copy=False)
    Av = v - one.H @ xp.astype(Hv, dtype, copy=False)
    r, s2 = one.residual[:, k], float(one.s2[k])
    cross = -Av / s2 + r[:, None] * ((r @ v) / (n * s2**2))[None, :]
    effect = to_numpy(Av.T @ Av / n)
    return _Terms(to_numpy(cross).T, average_information(one, v, k), effect)


def _prior_curvature(learned: LearnedMap, entries: np.ndarray) -> np.ndarray:
    """Positive part of the second derivatives of the negative log prior, (T + 1, T + 1).

    A negative curvature would leave directions in which the map changes without limit.
    """
    L, T = learned.matrix, len(entries)
    scale = np.maximum(np.abs(np.diag(L)), math.exp(SETTINGS.log_scale_bounds[0]))
    theta, out = np.log(scale), np.zeros((T + 1, T + 1))
    for t, (i, j) in enumerate(entries):
        if i == j:
            out[t, t] = max(0.0, 2 * (1 - theta[i] ** 2) / (1 + theta[i] ** 2) ** 2)
            continue
        same = np.flatnonzero((entries[:, 0] == i) & (entries[:, 1] != i))
        out[t, same] = SETTINGS.mixing_precision * (L[entries[same, 1]] @ L[j]) / scale[i] ** 2
    return _positive_part(out)


def _positive_part(curvature: np.ndarray) -> np.ndarray:
    values, vectors = eigh(0.5 * (curvature + curvature.T))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _inverse(curvature: np.ndarray) -> np.ndarray:
    values, vectors = eigh(0.5 * (curvature + curvature.T))
    return (vectors / np.maximum(values, LEAST_CURVATURE)) @ vectors.T
