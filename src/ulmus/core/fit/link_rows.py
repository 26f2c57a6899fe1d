"""Observations of training rows with leave-one-out predictions on the link scale."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.mapped_source import BlockMap
from ulmus.core.data.source import RowBlocks, Source
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.spec import FitSpec
from ulmus.core.response.family import LinkPrediction


class LinkFit(Protocol):
    """Fits rows on the link scale, to a specification without a target."""

    def __call__(self, source: Source, spec: FitSpec, *, independent: bool = False) -> Fit:
        """The fit; ``independent`` ignores that noise is correlated."""


# Rows of a stream that represent all of them.
SAMPLED_ROWS = 4000


class LinkRows(NamedTuple):
    """Rows of positive weight with their leave-one-out results; arrays (K, n)."""

    y: np.ndarray  # on the response scale
    prediction: np.ndarray  # leave-one-out prediction on the link scale
    residual: np.ndarray  # leave-one-out residual on the link scale
    noise_variance: np.ndarray  # variance of an observation of the row's weight
    model_variance: np.ndarray  # variance of the error of the leave-one-out prediction

    @property
    def scaled_residual(self) -> np.ndarray:
        """Leave-one-out residuals in units of their standard deviations."""
        sd = np.sqrt(self.noise_variance + self.model_variance)
        return np.divide(self.residual, sd, out=np.zeros_like(sd), where=sd > 0)


def link_rows(fit: Fit, source: Source, to_link: BlockMap) -> LinkRows:
    """Rows of a fit; ``source`` gives them on the response scale, and ``to_link`` maps them.

    Those of a stream are a sample, whose leave-one-out residuals follow from their leverages.
    """
    if fit.rows is None:
        return _of_sample(fit, source, to_link)
    assert isinstance(source, RowBlocks)
    rows, unit = fit.rows, fit.ensemble.unit[:, None]
    used = rows.data.used
    residual = rows.residuals(fit.ensemble.unit)[:, used]
    root = rows.data.root_weight
    weight = 1.0 if root is None else root[used] ** 2
    noise = rows.noise[:, used] * unit**2
    model = noise * rows.loo_leverage[:, used]
    y = to_numpy(source.y).astype(float)[:, used]
    return LinkRows(y, rows.data.y[:, used] - residual, residual, noise / weight, model)


def _of_sample(fit: Fit, source: Source, to_link: BlockMap) -> LinkRows:
    block = source.sample(SAMPLED_ROWS)
    linked, y = to_link(block), to_numpy(block.y).astype(float)
    root = linked.root_weight
    weight = 1.0 if root is None else to_numpy(root).astype(float) ** 2
    noise = fit.unit_noise(block.X) * fit.ensemble.unit[:, None] ** 2
    leverage = np.minimum(fit.leverage(block.X) * weight, 0.5)
    z = to_numpy(linked.y).astype(float)
    residual = (z - fit.mean(block.X)) / (1.0 - leverage)
    return LinkRows(y, z - residual, residual, noise / weight, noise * leverage / weight)


def of_output(rows: LinkRows, k: int) -> LinkRows:
    """The results of one output, arrays (n,)."""
    return LinkRows(*(values[k] for values in rows))


def links_of(rows: LinkRows) -> LinkPrediction:
    """Leave-one-out predictions of one output, without their distributions."""
    sd = np.sqrt(rows.noise_variance), np.sqrt(rows.model_variance)
    return LinkPrediction(rows.prediction, *sd, None)
