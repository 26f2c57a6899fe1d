r"""Selection of hyper-parameters as in the paper: neurons by cross-validation, ridge by GCV.

The neurons of one member are nested: with H = QR, the first N columns of Q and the first N
rows of the triangular solve belong to the network of the first N neurons. One factorisation
then gives the out-of-fold predictions of all sizes,

.. math:: \hat f_N(x) = \sum_{j \le N} t_j(x) q_j, \qquad R' t(x) = h(x), \quad q = Q'y,

and Q itself is not needed: R and q are in the triangular factor of [H y].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg

from reproduction.members import hidden_units
from reproduction.runs import Options, finished_chunks
from reproduction.settings import SELECTION, STUDIES, Study
from reproduction.store import Chunk
from ulmus.core.arrays.linalg import triangular_factor
from ulmus.datasets import FloatArray

FOLDS = 5
REPEATS = 5
CHUNK = 50
ALPHAS = np.logspace(-9, -1, 81)
CV_SCORES = ("5-fold CV",)
GCV_SCORES = ("GCV", "GCV, norm not squared")


@dataclass(frozen=True)
class Search:
    """A hyper-parameter of a study that the paper chose, and what it found."""

    study: str
    parameter: str
    paper: float
    n_neurons: int


# The largest number of neurons that is tried, or the number that the ridge parameter is for.
SEARCHES = (
    Search("sine60", "n_neurons", 4, 12),
    Search("sine100", "n_neurons", 5, 12),
    Search("friedman", "n_neurons", 91, 160),
    Search("heteroskedastic", "n_neurons", 109, 200),
    Search("friedman", "alpha", 6e-6, 91),
    Search("wide", "alpha", 1e-4, 300),
)


class Choice(NamedTuple):
    """What was chosen: by the mean score over data sets, and quartiles of single choices."""

    study: str
    parameter: str
    score: str
    n_neurons: int
    paper: float
    by_mean: float
    median: float
    lower: float
    upper: float


def choices(options: Options) -> list[Choice]:
    """All choices of the paper, each over new data sets at fixed inputs."""
    return [choice for search in SEARCHES for choice in search_choices(search, options)]


def search_choices(search: Search, options: Options) -> list[Choice]:
    """Repeat one choice over ``options.replications`` data sets, by each score for it."""
    study = options.chosen(STUDIES[search.study])
    task = partial(score_chunk, search, study, options.seed)
    options = replace(options, device=None)
    key = {"kind": search.parameter, "n_neurons_tried": search.n_neurons}
    chunks = finished_chunks(task, study, options, key, options.replications, CHUNK)
    table = np.concatenate([chunk["scores"] for chunk in chunks])
    by_size = search.parameter == "n_neurons"
    grid = np.arange(1, search.n_neurons + 1) if by_size else ALPHAS
    found = []
    for i, score in enumerate(CV_SCORES if by_size else GCV_SCORES):
        single = grid[np.argmin(table[:, i], axis=1)]
        best = float(grid[np.argmin(np.mean(table[:, i], axis=0))])
        lower, median, upper = map(float, np.quantile(single, [0.25, 0.5, 0.75]))
        what = (study.name, search.parameter, score, search.n_neurons, search.paper)
        found.append(Choice(*what, best, median, lower, upper))
    return found


def score_chunk(search: Search, study: Study, seed: int, span: range) -> Chunk:
    """Scores of some data sets, (data sets, kinds of score, grid)."""
    scores = cv_scores if search.parameter == "n_neurons" else gcv_scores
    rngs = (study.rng(seed, SELECTION, index) for index in span)
    return {"scores": np.stack([scores(study, search.n_neurons, rng) for rng in rngs])}


def _features(study: Study, n_neurons: int, rng: np.random.Generator) -> FloatArray:
    """Hidden features of the training rows for a newly drawn member, (n, N)."""
    X = study.design.inputs[study.design.train]
    weights = rng.uniform(-1.0, 1.0, (n_neurons, X.shape[1] + 1)).T
    features: FloatArray = hidden_units(np.column_stack([X, np.ones(len(X))]), weights)
    return features


def _outputs(study: Study, rng: np.random.Generator) -> FloatArray:
    design = study.design
    noise = study.source.noise(rng, design.n)
    return design.f[design.train] + np.sqrt(design.variance[design.train]) * noise


def _triangle(H: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """R (N, N) and q (N,) of H = QR and q = Q'y, and the squared norm of y outside of Q."""
    R = triangular_factor(np.column_stack([H, y]))
    N = H.shape[1]
    return R[:N, :N], R[:N, N], float(R[N, N] ** 2)


def nested_predictions(H: FloatArray, y: FloatArray, h: FloatArray) -> FloatArray:
    """Predictions (N, p) at features h (p, N) of least squares on the first 1, ..., N columns."""
    R, q, _ = _triangle(H, y)
    t = scipy.linalg.solve_triangular(R, h.T, trans="T")
    predictions: FloatArray = np.cumsum(t * q[:, None], axis=0)
    return predictions


def gcv(H: FloatArray, y: FloatArray, alphas: FloatArray) -> FloatArray:
    r"""Generalised cross-validation, :math:`n |(I - P) y|^2 / (n - tr P)^2`, (2, alphas).

    The second row is the score of the authors' program: UncELMe 1.1 forgets the square of the
    norm, which selects more smoothing and the paper's values.
    """
    R, q, outside = _triangle(H, y)
    U, s, _ = np.linalg.svd(R)
    d = s**2 / (s**2 + alphas[:, None])
    rss = np.sum(((1 - d) * (U.T @ q)) ** 2, axis=1) + outside
    weight = len(y) / (len(y) - d.sum(axis=1)) ** 2
    return np.stack([weight * rss, weight * np.sqrt(rss)])


def cv_scores(study: Study, largest: int, rng: np.random.Generator) -> FloatArray:
    """Mean squared error of repeated 5-fold cross-validation, (1, largest) sizes."""
    y = _outputs(study, rng)
    total = np.zeros(largest)
    for _ in range(REPEATS):
        for left_out in np.array_split(rng.permutation(study.n), FOLDS):
            H = _features(study, largest, rng)
            kept = np.setdiff1d(np.arange(study.n), left_out)
            predictions = nested_predictions(H[kept], y[kept], H[left_out])
            total += np.sum((predictions - y[left_out]) ** 2, axis=1)
    return total[None, :] / (REPEATS * study.n)


def gcv_scores(study: Study, n_neurons: int, rng: np.random.Generator) -> FloatArray:
    """Both kinds of generalised cross-validation on the grid, (2, alphas)."""
    y = _outputs(study, rng)
    return gcv(_features(study, n_neurons, rng), y, ALPHAS)
