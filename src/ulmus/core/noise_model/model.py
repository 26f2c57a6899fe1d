r"""The noise variance as a function of the inputs, by a second ensemble for its logarithm.

The logarithm of squared left-out residuals is regressed on the inputs (Akusok et al., 2019; Wan
et al., 2014), and once more with the sharper labels that the first regression allows. The
prediction g of the second is judged by what it says about rows it has not seen: of variances
:math:`f e^{s g}` the one of best log score is taken, and where that is no better than a constant,
the constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, namespace, to_numpy
from ulmus.core.data.source import Block, RowBlocks, Source
from ulmus.core.data.subsample import SamplePass
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import Specification, fitted_rows, fitted_stream, started
from ulmus.core.layer.inputs import Inputs
from ulmus.core.noise_model.layer import MAP_ROWS, NOISE_MEMBERS, SEED, noise_layer
from ulmus.core.noise_model.targets import (
    LARGEST_LOG,
    LabelledSource,
    Labels,
    left_out,
    residual_logs,
    residual_squares,
    sharper_labels,
    unit_variance,
    used_rows,
)

# Log variances are held within this many standard deviations of those seen in training.
LOG_RANGE = 3.0
# Shares s of the predicted logarithm that are tried.
SHARES = (0.25, 0.5, 0.75, 1.0)
# A constant prediction ties with a constant but for round-off, and a tie is no dependence.
SMALLEST_GAIN = 1e-6
# Generalised cross-validation chooses the ridge parameter, and there are no error bars.
LOG_SPECIFICATION = Specification("gcv", "residual", "HC0", ())


@dataclass(frozen=True)
class NoiseVarianceModel:
    """Noise variance at weight 1 as a function of the inputs, in the fit's units of y.

    Each output has an ensemble of its own, as the noise of each may depend on other inputs.

    Parameters
    ----------
    logs : tuple of Ensemble or None
        Ensembles for the logarithm g of squared residuals; None where g is not used.
    share, factor : ndarrays of shape (K,)
        The variance is factor x exp(share x g).
    low, high : ndarrays of shape (K,)
        Range of logarithms; predictions stay inside.
    flat : ndarray of shape (K,)
        The variance where no dependence on the inputs was found, else NaN.
    """

    logs: tuple[Ensemble | None, ...]
    share: np.ndarray
    factor: np.ndarray
    low: np.ndarray
    high: np.ndarray
    flat: np.ndarray

    def variance(self, X: Array) -> np.ndarray:
        """Noise variance at the rows of X, shape (K, p)."""
        nothing = np.zeros((1, X.shape[0]))
        logs = [nothing if one is None else one.mean(X) for one in self.logs]
        return self.from_logs(np.concatenate(logs))

    def from_logs(self, logs: np.ndarray) -> np.ndarray:
        """Noise variance from predicted logarithms of squared residuals, each (K, p)."""
        inside = np.clip(logs, self.low[:, None], self.high[:, None])
        varying = self.factor[:, None] * np.exp(self.share[:, None] * inside)
        flat = self.flat[:, None]
        return np.where(np.isfinite(flat), flat, varying)


def selected_noise_model(
    rows: RowBlocks,
    inputs: Inputs,
    ensemble: Ensemble,
    loo: np.ndarray,
    norm: np.ndarray,
    caution: float,
) -> tuple[NoiseVarianceModel, np.ndarray]:
    """Model from rows in memory; and the noise variance of each by a model without it, (K, n).

    ``loo`` and ``norm`` are the left-out residuals and their expected errors by members, (M, K, n).
    """
    few, used = slice(NOISE_MEMBERS), used_rows(rows.root_weight)
    squares = residual_squares(loo[few], norm[few], rows.root_weight, unit_variance(ensemble))
    logs, without, sums = [], [], []
    for k in range(len(squares)):
        u2 = squares[k : k + 1]
        labelled = replace(rows, y=residual_logs(u2), root_weight=used)
        layer = noise_layer(inputs, labelled.reduce(SamplePass(MAP_ROWS, SEED)).block)
        for _ in range(2):
            fit = fitted_rows(labelled, layer, LOG_SPECIFICATION)
            g = labelled.y - fit.records[0]["loo"].mean(axis=0) * fit.ensemble.unit[:, None]
            labelled = replace(labelled, y=sharper_labels(u2, g))
        logs.append(fit.ensemble)
        without.append(g)
        sums.append(calibration_sums(u2, g, used))
    model = calibrated(logs, ensemble, np.concatenate(sums, axis=1), caution)
    return model, model.from_logs(np.concatenate(without))


def streamed_noise_model(
    source: Source, inputs: Inputs, ensemble: Ensemble, caution: float
) -> NoiseVarianceModel:
    """Model from rows that are not kept."""
    members = ensemble.members(slice(NOISE_MEMBERS))
    logs, sums = [], []
    for k in range(ensemble.n_outputs):
        labels = Labels(members, k)
        labelled = LabelledSource(source, labels).for_width(1)
        sample = labelled.reduce(SamplePass(MAP_ROWS, SEED)).block
        layer = noise_layer(inputs, sample)
        start = started(sample, layer)
        first = fitted_stream(labelled, layer, LOG_SPECIFICATION, start)
        labels = replace(labels, first=first)
        again = replace(labelled, labels=labels)
        logs.append(fitted_stream(again, layer, LOG_SPECIFICATION, start))
        sums.append(labelled.source.reduce(CalibrationPass(labels, logs[k])))
    return calibrated(logs, ensemble, np.concatenate(sums, axis=1), caution)


@dataclass(frozen=True)
class CalibrationPass:
    """Sums that calibrate the second ensemble by its own left-out predictions."""

    title: ClassVar[str] = "noise model: calibration"

    labels: Labels
    logs: Ensemble

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Sums over the blocks, shape (6 + 4 S, 1)."""
        total = np.zeros((6 + 4 * len(SHARES), 1))
        for block, u2 in self.labels.squares(blocks):
            total += calibration_sums(u2, left_out(self.logs, block), block.root_weight)
        return total


def calibration_sums(u2: Array, g: Array, used: Array | None) -> np.ndarray:
    """Sums over the rows used, shape (6 + 4 S, K).

    Rows, g and its square, u^2, its square and its product with g; then for each share s the sum
    of e = u^2 exp(-s g), its square and its products with u^2 and g.
    """
    xp = namespace(u2)
    # A left-out prediction may be wild where the fit nearly interpolates.
    g = xp.clip(g, min=-LARGEST_LOG, max=LARGEST_LOG)
    parts = [xp.ones_like(u2), g, g**2, u2, u2**2, u2 * g]
    for share in SHARES:
        e = u2 * xp.exp(-share * g)
        parts += [e, e**2, e * u2, e * g]
    sums = [xp.sum(part if used is None else part * used, axis=1) for part in parts]
    return to_numpy(xp.stack(sums))


def calibrated(
    logs: list[Ensemble], ensemble: Ensemble, sums: np.ndarray, caution: float
) -> NoiseVarianceModel:
    """Turn logarithms into variances, or take one variance for all rows.

    One variance is taken where the gain in the log score of left-out rows does not exceed
    ``caution`` standard errors, and where every residual is zero.
    """
    n, g, g2 = sums[:3]
    spread = np.sqrt(np.maximum(g2 / n - (g / n) ** 2, 0))
    gains, errors, factors = score_gains(sums)
    best, outputs = np.argmax(gains, axis=0), np.arange(len(n))
    gain, error, factor = (a[best, outputs] for a in (gains, errors, factors))
    found = (sums[3] > 0) & (gain > caution * error + SMALLEST_GAIN)
    residual = ensemble.ordered([to_numpy(part.variance.residual) for part in ensemble.regressions])
    return NoiseVarianceModel(
        tuple(one if use else None for one, use in zip(logs, found, strict=True)),
        share=np.asarray(SHARES)[best],
        factor=factor * unit_variance(ensemble),
        low=np.maximum(g / n - LOG_RANGE * spread, -LARGEST_LOG),
        high=np.minimum(g / n + LOG_RANGE * spread, LARGEST_LOG),
        flat=np.where(found, np.nan, residual),
    )


def score_gains(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Gain in log score over a constant by share, its standard error, and the factor f, (S, K).

    A row of variance v scores :math:`-(\log v + u^2/v)/2`; f and the constant are those of the
    best mean score.
    """
    n, g, g2, u2, u4, u2g = sums[:6]
    constant = np.where(u2 > 0, u2 / n, 1.0)
    results = []
    for share, (e, e2, eu2, eg) in zip(SHARES, np.split(sums[6:], len(SHARES)), strict=True):
        f = np.where(e > 0, e / n, 1.0)
        gain = 0.5 * (np.log(constant / f) - share * g / n)
        # Twice the gain of a row, up to what is the same for all: u^2/constant - s g - e/f.
        square = u4 / constant**2 + share**2 * g2 + e2 / f**2
        square = square - 2 * (share * u2g / constant + eu2 / (constant * f) - share * eg / f)
        variance = np.maximum(square / n - (share * g / n) ** 2, 0)
        results.append((gain, 0.5 * np.sqrt(variance / n), f))
    gains, errors, factors = (np.stack(column) for column in zip(*results, strict=True))
    return gains, errors, factors
