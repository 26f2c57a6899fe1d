r"""An input map learned for rows with correlated noise.

A marginal likelihood that assumes independent rows attributes correlated noise to the function, and
its maps follow the noise. So the map is optimised twice. Given the first map, the noise covariance
is estimated by restricted likelihood from the outputs outside the space of the networks. If noise
is correlated, with correlation S, the second map is optimised for whitened rows :math:`VH` and
:math:`Vy` with :math:`V'V = S^{-1}`. The second optimisation starts at the first map and drops no
further inputs, since slow noise can replace any input that varies slowly.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.linalg

from ulmus.core.arrays.backend import like, to_numpy
from ulmus.core.arrays.linalg import cholesky
from ulmus.core.input_map.marginal_likelihood import ProbeNetworks, Weighting
from ulmus.core.input_map.optimisation import learned_matrix, learned_scales, refitted_scales
from ulmus.core.input_map.settings import LearnedMap, Log
from ulmus.core.noise_covariance.estimate import CovarianceEstimate
from ulmus.core.noise_covariance.reml import FEWEST_LEFT, covariance_estimate
from ulmus.core.noise_covariance.smoothed_space import smoothed_directions
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.core.noise_covariance.whitening import JITTER

# Largest number of rows of the marginal likelihood: whitening is quadratic in the rows.
MAX_WHITENED_ROWS = 1500


def learned_map_correlated(
    networks: ProbeNetworks,
    map_structure: str,
    spec: CovarianceSpec,
    log: Log,
    importances: np.ndarray | None = None,
) -> tuple[LearnedMap, ProbeNetworks]:
    """The map of largest marginal likelihood, and the probe networks with whitened rows.

    ``spec`` has the locations of the rows that the networks are sampled from.
    """
    learned, networks = learned_scales(networks, log, importances)
    correlation = noise_correlation(networks, learned, spec, log)
    if correlation is not None:
        networks = whitened(networks, correlation)
        learned = refitted_scales(networks, learned, log)
    if map_structure == "full":
        learned = learned_matrix(networks, learned, networks.n_units, log)
    return learned, networks


def noise_correlation(
    networks: ProbeNetworks, learned: LearnedMap, spec: CovarianceSpec, log: Log
) -> np.ndarray | None:
    """Noise correlation (n, n) given a map, averaged over outputs.

    None if noise is estimated to be independent, or if too few degrees of freedom remain.
    """
    structure, locations = spec.parametric, spec.locations.taken(networks.order)
    assert structure is not None  # HAC estimates imply no correlation matrix
    coordinates = networks.coordinates(np.diag(learned.matrix), learned.log_alpha)
    space = smoothed_directions(lambda: [coordinates], networks.n_networks)
    if locations.n - space.n_fixed < FEWEST_LEFT:
        return None
    fits = [covariance_estimate(y, space, locations, structure) for y in to_numpy(networks.y).T]
    log(f"noise given this map: {'; '.join(map(_parameters, fits))}")
    if all(fit.independent for fit in fits):
        return None
    return np.mean([fit.covariance(locations) / fit.variance for fit in fits], axis=0)


def _parameters(fit: CovarianceEstimate) -> str:
    if fit.independent:
        return "independent"
    parameters = zip(fit.names, fit.values, strict=True)
    return ", ".join(f"{name} {value:.3g}" for name, value in parameters)


def whitened(networks: ProbeNetworks, correlation: np.ndarray) -> ProbeNetworks:
    """The same networks with rows whitened by a noise correlation (n, n)."""
    n = len(correlation)
    (L,) = cholesky((correlation + JITTER * np.eye(n))[None])
    V = scipy.linalg.solve_triangular(L, np.eye(n), lower=True)
    root = np.ones(n)
    if networks.weighting is not None:
        root = to_numpy(networks.weighting.root)[:, 0]
    # The total weight of the rows is unchanged.
    V = V * math.sqrt(n / float(np.sum((V @ root) ** 2)))
    white = replace(networks, weighting=Weighting(like(V * root, networks.Z)))
    return replace(white, y=white.centred_rows(like(V, networks.Z) @ networks.y))
