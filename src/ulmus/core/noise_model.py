r"""A second ensemble for the logarithm of the noise variance, fitted on left-out residuals.

The left-out residual of a row has variance noise x (1/weight + z'z); divided by the bracket,
its square is an estimate of the noise variance there, and the logarithm of it is regressed on
the inputs (Akusok et al., 2019; Wan et al., 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ulmus.core.backend import Array, namespace, to_numpy
from ulmus.core.fitting import Settings, Source, fitted_model
from ulmus.core.model import Model, first_members, row_fits
from ulmus.core.moments import Block

# Members of the second ensemble: a smooth function of the inputs needs no more.
NOISE_MEMBERS = 5
# Squared residuals get this share of the mean noise variance before the logarithm is taken.
LOG_OFFSET = 1e-4
# Log variances are held within this many standard deviations of those seen in training.
LOG_RANGE = 3.0


@dataclass(frozen=True)
class NoiseModel:
    """Noise variance as a function of the inputs.

    Parameters
    ----------
    model : Model
        Ensemble for the logarithm of squared residuals, an output each.
    factor : ndarray of shape (K,)
        What turns the exponential of its prediction into a variance.
    low, high : ndarrays of shape (K,)
        Range of logarithms; predictions stay inside.
    constant : ndarray of shape (K,)
        The variance where no dependence on the inputs was found, else NaN.
    """

    model: Model
    factor: np.ndarray
    low: np.ndarray
    high: np.ndarray
    constant: np.ndarray

    def variance(self, X: Array) -> np.ndarray:
        """Noise variance at the rows of X, shape (K, p)."""
        return self.from_log(to_numpy(self.model.mean(X)))

    def from_log(self, log_variance: np.ndarray) -> np.ndarray:
        """Noise variance from predicted logarithms of squared residuals, each (K, p)."""
        inside = np.clip(log_variance, self.low[:, None], self.high[:, None])
        varying = self.factor[:, None] * np.exp(inside)
        flat = np.isfinite(self.constant)[:, None]
        return np.where(flat, self.constant[:, None], varying)


@dataclass(frozen=True)
class ResidualSource:
    """The rows of a source with residual logarithms as outputs, made block by block.

    The residuals are those of the first members: where noise is estimated from single rows,
    more of them would change little.
    """

    source: Source
    members: Model

    def reduce(self, row_pass: Callable[[Iterable[Block]], Any]) -> Any:
        """Run a pass over the relabelled blocks."""
        return self.source.reduce(_RelabelledPass(row_pass, self.members))

    def relabelled(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks with their residual logarithms."""
        return _relabelled(self.members, blocks)


def residual_source(source: Source, model: Model) -> ResidualSource:
    """Rows labelled by the residuals of a fitted ensemble."""
    return ResidualSource(source, first_members(model, NOISE_MEMBERS))


@dataclass(frozen=True)
class _RelabelledPass:
    row_pass: Callable[[Iterable[Block]], Any]
    model: Model

    def __call__(self, blocks: Iterable[Block]) -> Any:
        return self.row_pass(_relabelled(self.model, blocks))


def _relabelled(members: Model, blocks: Iterable[Block]) -> Iterator[Block]:
    xp = namespace(members.q)
    offset = _offset(members.sigma2)[:, None]
    for block, raw in row_fits(members, blocks):
        rows = raw.weighted
        u2 = xp.mean(rows.loo, axis=0) ** 2 / (1 + xp.mean(rows.left_out_norm2, axis=0))
        used = None
        if block.root_weight is not None:
            used = xp.astype(block.root_weight > 0, block.root_weight.dtype)
        yield block._replace(y=xp.log(u2 + offset), root_weight=used)


def fitted_noise_model(source: ResidualSource, sample: Block) -> NoiseModel:
    """Fit the noise variance as a function of the inputs.

    Where the second ensemble's own leave-one-out error is no better than that of a mean, the
    noise variance is taken as constant.
    """
    members = source.members
    layer, sigma2 = members.whitening.layer, members.residual2
    (labelled,) = source.relabelled([sample])
    settings = Settings("gcv", "residual", "HC0", (), keep_rows=False)
    model = fitted_model(source, labelled, layer, settings)
    n, e2, t, t2, ratio, g, g2 = source.reduce(_CalibrationPass(model, _offset(members.sigma2)))
    spread = np.sqrt(np.maximum(g2 / n - (g / n) ** 2, 0))
    variation = np.maximum(t2 / n - (t / n) ** 2, 0) * (n / (n - 1)) ** 2
    return NoiseModel(
        model,
        factor=ratio / n,
        low=g / n - LOG_RANGE * spread,
        high=g / n + LOG_RANGE * spread,
        constant=np.where(e2 / n >= variation, to_numpy(sigma2), np.nan),
    )


def left_out_logs(model: Model, blocks: Iterable[Block]) -> Iterator[tuple[Block, np.ndarray]]:
    """Each block with the log variance of its rows by the ensemble without them, (K, b)."""
    xp = namespace(model.q)
    for block, rows in row_fits(model, blocks):
        yield block, to_numpy(block.y - xp.mean(rows.loo, axis=0))


@dataclass(frozen=True)
class _CalibrationPass:
    """Sums that calibrate the second ensemble by its own left-out predictions g."""

    model: Model
    offset: Array

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Rows, squared errors, t, t^2, u^2/exp(g), g and g^2, summed, shape (7, K)."""
        total = np.zeros((7, self.offset.shape[0]))
        for block, g in left_out_logs(self.model, blocks):
            t = to_numpy(block.y)
            u2 = np.exp(t) - to_numpy(self.offset)[:, None]
            used = 1.0 if block.root_weight is None else to_numpy(block.root_weight) > 0
            parts = (np.ones_like(t), (t - g) ** 2, t, t**2, u2 / np.exp(g), g, g**2)
            total += np.stack([np.sum(part * used, axis=1) for part in parts])
        return total


def _offset(sigma2: Array) -> Array:
    xp = namespace(sigma2)
    return xp.where(sigma2 > 0, LOG_OFFSET * sigma2, xp.full_like(sigma2, 1e-300))
