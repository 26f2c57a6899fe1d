r"""A map of the inputs, learned from rows whose noise hangs together.

Evidence that takes rows as independent sees function in whatever neighbours share, and finds maps
that follow the noise. So the map is learned twice. Behind the first map, noise is told from what
the networks leave of the outputs, by restricted likelihood, and where it hangs together, with
correlation S, the second map is learned from whitened rows: with :math:`V'V = S^{-1}`, networks are
judged by :math:`VH` and :math:`Vy`. The second search starts where the first has ended, and leaves
no further inputs out: slow noise can stand in for any input that varies slowly, but should not.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.linalg

from ulmus.core.arrays.backend import like, to_numpy
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks, Weighting
from ulmus.core.input_map.optimisation import (
    LearnedMap,
    Log,
    learned_matrix,
    learned_scales,
    refitted_scales,
)
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.reml import FEWEST_LEFT, covariance_estimate
from ulmus.core.noise_covariance.smoothed_space import smoothed_directions
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.whitening import JITTER

# Rows that networks are judged by: whitening a row costs as many products as there are rows.
MOST_ROWS = 1500


def learned_map_correlated(
    networks: ProbeNetworks, kind: str, assumed: CovarianceSpec, report: Log
) -> tuple[LearnedMap, ProbeNetworks]:
    """The map of greatest evidence, and the networks that judge it by whitened rows.

    Parameters
    ----------
    networks : Networks
        Networks that take rows as independent.
    kind : {"ard", "full"}
        Scales, or a matrix.
    assumed : Dependence
        The covariance of the noise, and where the rows of the networks' sample are.
    report : callable
        Told in a sentence what has been done.
    """
    found = learned_scales(networks, report)
    correlation = noise_correlation(networks, found, assumed, report)
    if correlation is not None:
        networks = whitened(networks, correlation)
        found = refitted_scales(networks, found, report)
    return (learned_matrix(networks, found, report) if kind == "full" else found), networks


def noise_correlation(
    networks: ProbeNetworks, found: LearnedMap, assumed: CovarianceSpec, report: Log
) -> np.ndarray | None:
    """Correlation (n, n) of the noise behind a map, the mean over outputs.

    There is none where noise seems independent, or where too little is left to tell it from.
    """
    family, locations = assumed.parametric, assumed.locations.taken(networks.order)
    assert family is not None  # other noise has no correlation to whiten rows by
    coordinates = networks.coordinates(np.diag(found.matrix), found.log_alpha)
    A = smoothed_directions(lambda: [coordinates], networks.n_networks)
    if locations.n - A.shape[1] < FEWEST_LEFT:
        return None
    fits = [covariance_estimate(y, A, locations, family) for y in to_numpy(networks.y).T]
    report(f"noise behind it: {'; '.join(map(_said, fits))}")
    if all(fit.independent for fit in fits):
        return None
    return np.mean([fit.covariance(locations) / fit.variance for fit in fits], axis=0)


def _said(fit: CovarianceEstimate) -> str:
    if fit.independent:
        return "independent"
    return ", ".join(
        f"{name} {value:.3g}" for name, value in zip(fit.names, fit.values, strict=True)
    )


def whitened(networks: ProbeNetworks, correlation: np.ndarray) -> ProbeNetworks:
    """The same networks judged by rows whose noise had this correlation (n, n)."""
    n = len(correlation)
    L = scipy.linalg.cholesky(correlation + JITTER * np.eye(n), lower=True)
    V = scipy.linalg.solve_triangular(L, np.eye(n), lower=True)
    root = np.ones(n)
    if networks.weighting is not None:
        root = to_numpy(networks.weighting.root)[:, 0]
    # All rows together keep their weight.
    V = V * math.sqrt(n / float(np.sum((V @ root) ** 2)))
    white = replace(networks, weighting=Weighting(like(V * root, networks.Z)))
    return replace(white, y=white.centred_rows(like(V, networks.Z) @ networks.y))
