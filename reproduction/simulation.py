"""Chunks of simulation: ensembles for the ground truth, and replications of the experiment.

A chunk is a function of its study, seed and range of indices alone: it can run in any order, in
any process, on any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reproduction.measures import error_measures, fit_measures
from reproduction.members import (
    Members,
    factorised,
    hidden_units,
    output_weights,
)
from reproduction.settings import REPLICATION, TRUTH, Draw, Study
from reproduction.store import Chunk
from reproduction.sums import EnsembleSums
from ulmus.core.arrays.backend import Array, like, namespace, reference_array, to_numpy
from ulmus.datasets import FloatArray

# Elements of a batch of hidden features: near a processor, or enough to fill a card.
HOST_ELEMENTS = 2**18
DEVICE_ELEMENTS = 2**28
HETEROSKEDASTIC = frozenset({"S1", "S2", "S3", "NHe"})


class Machine(NamedTuple):
    """Where to compute, and the precision of the large products.

    Parameters
    ----------
    device : str or None
        A torch device, or NumPy.
    precision : str
        Of the products over rows; factorisations are always in double precision.
    """

    device: str | None = None
    precision: str = "float64"

    @property
    def reference(self) -> Array:
        """An empty array of the kind to compute with."""
        return reference_array(np.empty(0), self.device, "float64")

    @property
    def on_host(self) -> bool:
        """Whether the processor's own memory is used, by NumPy or by torch."""
        return self.device in (None, "cpu")

    @property
    def elements(self) -> int:
        """How large a batch of hidden features may be."""
        return HOST_ELEMENTS if self.on_host else DEVICE_ELEMENTS


class Batch(NamedTuple):
    """Members of consecutive positions of g ensembles.

    Parameters
    ----------
    position : slice
        Which members of each ensemble.
    h : array of shape (g, s, P, N)
        Features at all points.
    y : array of shape (g, n)
        Outputs of each ensemble.
    """

    position: slice
    h: Array
    y: Array

    @property
    def H(self) -> Array:
        """Features of the training rows, (g, s, n, N)."""
        return self.h[:, :, : self.y.shape[1], :]

    def factorised(self, alphas: tuple[float, ...]) -> list[Members]:
        """Each member once, then smoothed by each ridge parameter."""
        least = factorised(self.H, min(alphas))
        return [least.smoothed(alpha) for alpha in alphas]


def ensemble_groups(
    study: Study, seed: int, stream: int, span: range, machine: Machine
) -> Iterator[tuple[list[Draw], Iterator[Batch]]]:
    """Draws of a few ensembles at a time, and their members in batches.

    A batch ends where an ensemble of the study is complete.
    """
    design = study.design
    member = len(design.f) * study.n_neurons
    n_members = max(study.members)
    group = max(1, machine.elements // (member * n_members))
    size = max(1, machine.elements // (member * group))
    cuts = sorted({*study.members, *range(size, n_members, size)})
    with_one = np.concatenate([design.inputs, np.ones((len(design.f), 1))], axis=1)
    inputs = like(with_one, machine.reference)
    for start in range(span.start, span.stop, group):
        indices = range(start, min(start + group, span.stop))
        draws = [study.draw(seed, stream, i) for i in indices]
        yield draws, _batches(draws, inputs, cuts)


def _batches(draws: list[Draw], inputs: Array, cuts: list[int]) -> Iterator[Batch]:
    weights = like(np.stack([draw.weights for draw in draws]), inputs)
    y = like(np.stack([draw.y for draw in draws]), inputs)
    for first, last in zip([0, *cuts], cuts, strict=False):
        h = hidden_units(inputs, weights[:, first:last, :, :])
        yield Batch(slice(first, last), h, y)


def truth_chunk(study: Study, seed: int, span: range, machine: Machine) -> Chunk:
    """Sums over new ensembles, for each ridge parameter and size.

    Returns
    -------
    dict
        ``sums`` and ``squares`` of the predictions' errors, (A, K, P), and ``curve``, the
        predictions of each ensemble at the points of the curve, (E, A, C).
    """
    design = study.design
    sums = np.zeros((len(study.alphas), len(study.members), len(design.f)))
    squares, curves = np.zeros_like(sums), []
    for _, batches in ensemble_groups(study, seed, TRUTH, span, machine):
        for position, means in enumerate(mean_predictions(study, batches)):
            error = means - design.f
            sums[:, position] += np.sum(error, axis=1)
            squares[:, position] += np.sum(error**2, axis=1)
            if study.members[position] == study.figure_members:
                curves.append(np.moveaxis(means[:, :, design.curve], 0, 1))
    return {"sums": sums, "squares": squares, "curve": np.concatenate(curves)}


def mean_predictions(study: Study, batches: Iterator[Batch]) -> list[FloatArray]:
    """Mean predictions for each size of ensemble, arrays of shape (A, g, P)."""
    totals: list[Array] = [0.0 for _ in study.alphas]
    means = []
    for batch in batches:
        xp = namespace(batch.h)
        gram = batch.H.mT @ batch.H
        for a, alpha in enumerate(study.alphas):
            beta = output_weights(batch.H, batch.y[:, None, :], alpha, gram)
            totals[a] = totals[a] + xp.sum((batch.h @ beta[..., None])[..., 0], axis=1)
        if batch.position.stop in study.members:
            means.append(np.stack([to_numpy(total) for total in totals]) / batch.position.stop)
    return means


def replication_chunk(
    study: Study, seed: int, span: range, machine: Machine, true_sd: FloatArray
) -> Chunk:
    """Estimates of each replication, compared with the true standard deviation (A, K, P).

    Returns
    -------
    dict
        ``errors`` (R, A, K, estimates, 2, 3) and ``fits`` (R, A, K, 2, 2), on training rows
        and test points; ``variance`` (R, A, estimates, C) and ``prediction`` (R, A, C) on the
        curve, for the size of ensemble in the figures.
    """
    parts: list[Chunk] = []
    for draws, batches in ensemble_groups(study, seed, REPLICATION, span, machine):
        parts.append(_compared(study, draws, batches, machine, true_sd))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _compared(
    study: Study,
    draws: list[Draw],
    batches: Iterator[Batch],
    machine: Machine,
    true_sd: FloatArray,
) -> Chunk:
    A, K, G = len(study.alphas), len(study.members), len(draws)
    errors = np.empty((G, A, K, len(study.estimates), 2, 3))
    fits = np.empty((G, A, K, 2, 2))
    curve: Chunk = {}
    design = study.design
    splits = (design.train, design.test)
    outputs = [np.stack([d.y for d in draws]), np.stack([d.y_test for d in draws])]
    for k, variances, predictions in estimated_variances(study, batches, machine):
        for s, points in enumerate(splits):
            sd = np.sqrt(variances[..., points])
            errors[:, :, k, :, s] = error_measures(sd, true_sd[:, k, None, points])
            fits[:, :, k, s] = fit_measures(outputs[s][:, None, :], predictions[..., points])
        if study.members[k] == study.figure_members:
            curve["variance"] = variances[..., design.curve]
            curve["prediction"] = predictions[..., design.curve]
    return {"errors": errors, "fits": fits, **curve}


def estimated_variances(
    study: Study, batches: Iterator[Batch], machine: Machine
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Position of each size, its variances (g, A, estimates, P) and predictions (g, A, P)."""
    heteroskedastic = bool(HETEROSKEDASTIC & set(study.estimates))
    sums: list[EnsembleSums] = []
    for batch in batches:
        dtype = getattr(namespace(batch.h), machine.precision)
        sums = sums or [EnsembleSums(batch.y, heteroskedastic, dtype) for _ in study.alphas]
        for total, members in zip(sums, batch.factorised(study.alphas), strict=True):
            total.add(members, batch.h)
        if batch.position.stop in study.members:
            variances = [to_numpy(total.variances(study.estimates)) for total in sums]
            predictions = [to_numpy(total.prediction) for total in sums]
            k = study.members.index(batch.position.stop)
            yield k, np.stack(variances, axis=1), np.stack(predictions, axis=1)
