r"""A second ensemble for the logarithm of the noise variance, fitted on left-out residuals.

The left-out residual of a row has variance noise x (1/weight + z'z); divided by the bracket,
its square is an estimate of the noise variance there, and the logarithm of it is regressed on
the inputs (Akusok et al., 2019; Wan et al., 2014).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.backend import Array, namespace, to_numpy
from ulmus.core.fitting import Settings, Source, fitted_model
from ulmus.core.model import Model, Training, first_members, row_fits
from ulmus.core.moments import Block
from ulmus.core.rows import RowBlocks

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
    """The rows of a source with residual logarithms as outputs, made block by block."""

    source: Source
    members: Model

    def reduce(self, row_pass: Callable[[Iterable[Block]], Any]) -> Any:
        """Run a pass over the relabelled blocks."""
        return self.source.reduce(_RelabelledPass(row_pass, self.members))

    def relabelled(self, block: Block) -> Block:
        """A block with its residual logarithms."""
        return next(_relabelled(self.members, [block]))


@dataclass(frozen=True)
class _RelabelledPass:
    row_pass: Callable[[Iterable[Block]], Any]
    model: Model

    def __call__(self, blocks: Iterable[Block]) -> Any:
        return self.row_pass(_relabelled(self.model, blocks))


def _relabelled(members: Model, blocks: Iterable[Block]) -> Iterator[Block]:
    for block, rows in row_fits(members, blocks):
        labels = _residual_logs(
            rows.loo, rows.left_out_norm2, block.root_weight, _offset(members.sigma2)
        )
        used = block.root_weight
        if used is not None:
            used = namespace(used).astype(used > 0, used.dtype)
        yield block._replace(y=labels, root_weight=used)


def _residual_logs(loo: Array, norm2: Array, root_weight: Array | None, offset: Array) -> Array:
    """Logarithms (K, n) from left-out residuals (M, K, n) and their z'z (M, n) by members."""
    xp = namespace(loo)
    weight = 1.0 if root_weight is None else root_weight**2
    u2 = weight * xp.mean(loo, axis=0) ** 2 / (1 + weight * xp.mean(norm2, axis=0))
    return xp.log(u2 + offset[:, None])


def noise_members(model: Model) -> Model:
    """The members whose residuals label the rows, and whose hidden units are used again.

    Where noise is estimated from single rows, more of them would change little.
    """
    return first_members(model, NOISE_MEMBERS)


def streamed_noise_model(source: Source, sample: Block, model: Model) -> NoiseModel:
    """Fit the noise variance as a function of inputs that are not kept."""
    members = noise_members(model)
    labelled = ResidualSource(source, members)
    logs = _log_model(labelled, labelled.relabelled(sample), members)
    return _calibrated(logs, members, labelled.reduce(_CalibrationPass(logs, members)))


def kept_noise_model(
    data: RowBlocks, sample_size: int, model: Model, training: Training
) -> tuple[NoiseModel, np.ndarray]:
    """Fit the same from rows in memory; and the noise variance of each without it, (K, n)."""
    members = noise_members(model)
    few, weight = slice(members.n_members), data.root_weight
    labels = _residual_logs(
        training.loo[few], training.norm2[few], weight, to_numpy(_offset(members.sigma2))
    )
    used = None if weight is None else (weight > 0).astype(float)
    labelled = replace(data, y=labels, root_weight=used, features=members.whitening.layer.size)
    logs = _log_model(labelled, labelled.sample(sample_size), members)
    left_out = np.concatenate([g for _, g in left_out_logs(logs, labelled)], axis=1)
    sums = _calibration_sums(labels, left_out, used, to_numpy(_offset(members.sigma2)))
    noise = _calibrated(logs, members, sums)
    return noise, noise.from_log(left_out)


def _log_model(source: Source, sample: Block, members: Model) -> Model:
    settings = Settings("gcv", "residual", "HC0", (), keep_rows=False, wide=False)
    return fitted_model(source, sample, members.whitening.layer, settings)


def _calibrated(logs: Model, members: Model, sums: np.ndarray) -> NoiseModel:
    """Turn logarithms into variances.

    Where the second ensemble's own leave-one-out error is no better than that of a mean, the
    noise variance is taken as constant.
    """
    n, e2, t, t2, ratio, g, g2 = sums
    spread = np.sqrt(np.maximum(g2 / n - (g / n) ** 2, 0))
    variation = np.maximum(t2 / n - (t / n) ** 2, 0) * (n / (n - 1)) ** 2
    return NoiseModel(
        logs,
        factor=ratio / n,
        low=g / n - LOG_RANGE * spread,
        high=g / n + LOG_RANGE * spread,
        constant=np.where(e2 / n >= variation, to_numpy(members.residual2), np.nan),
    )


def left_out_logs(model: Model, blocks: Iterable[Block]) -> Iterator[tuple[Block, np.ndarray]]:
    """Each block with the log variance of its rows by the ensemble without them, (K, b)."""
    xp = namespace(model.q)
    for block, rows in row_fits(model, blocks):
        yield block, to_numpy(block.y - xp.mean(rows.loo, axis=0))


@dataclass(frozen=True)
class _CalibrationPass:
    """Sums that calibrate the second ensemble by its own left-out predictions."""

    logs: Model
    members: Model

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Sums over the blocks, shape (7, K)."""
        offset = to_numpy(_offset(self.members.sigma2))
        total = np.zeros((7, len(offset)))
        for block, g in left_out_logs(self.logs, blocks):
            used = None if block.root_weight is None else to_numpy(block.root_weight)
            total += _calibration_sums(to_numpy(block.y), g, used, offset)
        return total


def _calibration_sums(
    t: np.ndarray, g: np.ndarray, used: np.ndarray | None, offset: np.ndarray
) -> np.ndarray:
    """Rows, squared errors, t, t^2, u^2/exp(g), g and g^2 of the rows used, summed, (7, K)."""
    u2 = np.exp(t) - offset[:, None]
    parts = (np.ones_like(t), (t - g) ** 2, t, t**2, u2 / np.exp(g), g, g**2)
    return np.stack([np.sum(part if used is None else part * used, axis=1) for part in parts])


def _offset(sigma2: Array) -> Array:
    xp = namespace(sigma2)
    return xp.where(sigma2 > 0, LOG_OFFSET * sigma2, xp.full_like(sigma2, 1e-300))
