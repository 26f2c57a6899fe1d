r"""The noise variance as a function of the inputs, by a second ensemble for its logarithm.

The left-out residual of a row has variance noise x (1/weight + z'z); divided by the bracket,
its square is an estimate of the noise variance there, and the logarithm of it is regressed on
the inputs (Akusok et al., 2019; Wan et al., 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ulmus.core.backend import Array, like, namespace, to_numpy
from ulmus.core.ensemble import Ensemble
from ulmus.core.fitting import Specification, fitted_rows, fitted_stream, started
from ulmus.core.source import Block, RowBlocks, RowPass, Source

# Members of the second ensemble: a smooth function of the inputs needs no more.
NOISE_MEMBERS = 5
# Squared residuals get this share of the mean noise variance before the logarithm is taken.
LOG_OFFSET = 1e-4
# Log variances are held within this many standard deviations of those seen in training.
LOG_RANGE = 3.0
# Exponentials of larger logarithms are no numbers.
LARGEST_LOG = 300.0
# Generalised cross-validation chooses the ridge parameter, and there are no error bars.
LOG_SPECIFICATION = Specification("gcv", "residual", "HC0", ())


@dataclass(frozen=True)
class NoiseModel:
    """Noise variance at weight 1 as a function of the inputs, in the fit's units of y.

    Parameters
    ----------
    logs : Ensemble
        Ensemble for the logarithm of squared residuals, an output each.
    factor : ndarray of shape (K,)
        What turns the exponential of its prediction into a variance.
    low, high : ndarrays of shape (K,)
        Range of logarithms; predictions stay inside.
    flat : ndarray of shape (K,)
        The variance where no dependence on the inputs was found, else NaN.
    """

    logs: Ensemble
    factor: np.ndarray
    low: np.ndarray
    high: np.ndarray
    flat: np.ndarray

    def variance(self, X: Array) -> np.ndarray:
        """Noise variance at the rows of X, shape (K, p)."""
        return self.from_logs(self.logs.mean(X))

    def from_logs(self, logs: np.ndarray) -> np.ndarray:
        """Noise variance from predicted logarithms of squared residuals, each (K, p)."""
        inside = np.clip(logs, self.low[:, None], self.high[:, None])
        is_flat = np.isfinite(self.flat)[:, None]
        varying = self.factor[:, None] * np.exp(np.where(is_flat, 0.0, inside))
        return np.where(is_flat, self.flat[:, None], varying)


def kept_noise_model(
    rows: RowBlocks, ensemble: Ensemble, loo: np.ndarray, norm: np.ndarray
) -> tuple[NoiseModel, np.ndarray]:
    """Model from rows in memory; and the noise variance of each by a model without it, (K, n).

    ``loo`` and ``norm`` are the left-out residuals and their z'z by members, (M, K, n).
    """
    few, root_weight = slice(NOISE_MEMBERS), rows.root_weight
    offset = _offset(ensemble)
    labels = residual_logs(loo[few], norm[few], root_weight, offset)
    used = None if root_weight is None else (root_weight > 0).astype(float)
    labelled = replace(rows, y=labels, root_weight=used)
    layer = replace(ensemble.layer.members(few), constant=True)
    fit = fitted_rows(labelled, layer, LOG_SPECIFICATION)
    left_out = fit.ensemble.ordered([r["loo"].mean(axis=0) for r in fit.records])
    left_out = labels - left_out * fit.ensemble.unit[:, None]
    sums = calibration_sums(labels, left_out, used, offset)
    model = _calibrated(fit.ensemble, ensemble, sums)
    return model, model.from_logs(left_out)


def streamed_noise_model(source: Source, sample: Block, ensemble: Ensemble) -> NoiseModel:
    """Model from rows that are not kept."""
    members = ensemble.members(slice(NOISE_MEMBERS))
    labelled = LabelledSource(source, members)
    layer = replace(members.layer, constant=True)
    (labelled_sample,) = _labelled(members, [sample])
    logs = fitted_stream(labelled, layer, LOG_SPECIFICATION, started(labelled_sample, layer))
    return _calibrated(logs, ensemble, labelled.reduce(CalibrationPass(logs, _offset(ensemble))))


def residual_logs(loo: Array, norm: Array, root_weight: Array | None, offset: Array) -> Array:
    """Logarithms (K, n) from left-out residuals and their z'z by members, each (M, K, n)."""
    xp = namespace(loo)
    weight = 1.0 if root_weight is None else root_weight**2
    u2 = weight * xp.mean(loo, axis=0) ** 2 / (1 + weight * xp.mean(norm, axis=0))
    return xp.log(u2 + offset[:, None])


def calibration_sums(logs: Array, left_out: Array, used: Array | None, offset: Array) -> np.ndarray:
    """Sums over the rows used, shape (7, K).

    Rows, squared errors, the logs and their squares, squared residuals over what the left-out
    prediction says, and that prediction and its square.
    """
    xp = namespace(logs)
    u2 = xp.clip(xp.exp(logs) - offset[:, None], min=0.0)
    errors = (logs - left_out) ** 2
    # A left-out prediction may be wild where the fit nearly interpolates.
    ratio = u2 / xp.exp(xp.clip(left_out, min=-LARGEST_LOG, max=LARGEST_LOG))
    parts = (xp.ones_like(logs), errors, logs, logs**2, ratio, left_out, left_out**2)
    sums = [xp.sum(part if used is None else part * used, axis=1) for part in parts]
    return to_numpy(xp.stack(sums))


def _calibrated(logs: Ensemble, ensemble: Ensemble, sums: np.ndarray) -> NoiseModel:
    """Turn logarithms into variances.

    Where the second ensemble's own leave-one-out error is no better than that of a mean, or no
    residual differs from zero, the noise variance is taken as constant.
    """
    n, errors, t, t2, ratio, g, g2 = sums
    spread = np.sqrt(np.maximum(g2 / n - (g / n) ** 2, 0))
    variation = np.maximum(t2 / n - (t / n) ** 2, 0) * (n / (n - 1)) ** 2
    residual = ensemble.ordered([to_numpy(part.variance.residual) for part in ensemble.regressions])
    # A constant prediction ties with the mean but for round-off, and a tie is no dependence.
    found = (errors / n < (1 - 1e-5) * variation) & (ratio > 0)
    return NoiseModel(
        logs,
        factor=ratio / n,
        low=g / n - LOG_RANGE * spread,
        high=g / n + LOG_RANGE * spread,
        flat=np.where(found, np.nan, residual),
    )


def _offset(ensemble: Ensemble) -> np.ndarray:
    """A small variance that keeps logarithms finite, shape (K,)."""
    sigma2 = ensemble.ordered([to_numpy(part.variance.sigma2) for part in ensemble.regressions])
    return np.where(sigma2 > 0, LOG_OFFSET * sigma2, 1e-300)


# ------------------------------------------------------------ rows that are not kept


@dataclass(frozen=True)
class LabelledSource:
    """The rows of a source with residual logarithms as outputs, made block by block."""

    source: Source
    members: Ensemble

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over the labelled blocks."""
        return self.source.reduce(LabelledPass(row_pass, self.members))

    def sample(self, n_rows: int) -> Block:
        """Some rows with their labels."""
        (block,) = _labelled(self.members, [self.source.sample(n_rows)])
        return block

    def for_width(self, width: int) -> LabelledSource:
        """The same rows in blocks of a size that suits so many hidden features."""
        return replace(self, source=self.source.for_width(width))


@dataclass(frozen=True)
class LabelledPass:
    """A pass over blocks whose outputs are replaced by residual logarithms."""

    row_pass: RowPass
    members: Ensemble

    @property
    def title(self) -> str:
        """What the pass is called while it runs."""
        return f"noise model: {getattr(self.row_pass, 'title', 'reading')}"

    def __call__(self, blocks: Iterable[Block]) -> Any:
        """Result of the pass."""
        return self.row_pass(_labelled(self.members, blocks))


def _labelled(members: Ensemble, blocks: Iterable[Block]) -> Iterator[Block]:
    offset = like(_offset(members), members.layer.b)
    for block, fits in members.row_fits(blocks):
        xp = namespace(block.y)
        loo = members.ordered([fit.loo for fit in fits], axis=1)
        norms = [xp.broadcast_to(fit.left_out_norm[:, None, :], fit.residual.shape) for fit in fits]
        norm = members.ordered(norms, axis=1)
        labels = residual_logs(loo, norm, block.root_weight, offset)
        used = block.root_weight
        if used is not None:
            used = xp.astype(used > 0, used.dtype)
        yield block._replace(y=labels, root_weight=used)


@dataclass(frozen=True)
class CalibrationPass:
    """Sums that calibrate the second ensemble by its own left-out predictions."""

    title: ClassVar[str] = "calibration"

    logs: Ensemble
    offset: np.ndarray

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Sums over the blocks, shape (7, K)."""
        total = np.zeros((7, len(self.offset)))
        unit, shift = self.logs.units.unit[:, None], self.logs.units.shift[:, None]
        offset = like(self.offset, unit)
        for block, fits in self.logs.row_fits(blocks):
            labels = block.y * unit + shift
            loo = self.logs.ordered([namespace(unit).mean(fit.loo, axis=0) for fit in fits])
            total += calibration_sums(labels, labels - loo * unit, block.root_weight, offset)
        return total
