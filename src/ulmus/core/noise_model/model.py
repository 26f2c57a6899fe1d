r"""The noise variance as a function of the inputs, by an ensemble for its logarithm.

The logarithm of squared leave-one-out residuals is regressed on the inputs (Akusok et al., 2019;
Wan et al., 2014), and once more with a working response of smaller variance. With the prediction g
of the second regression the variance is :math:`f e^{s g}`; f and s maximise the leave-one-out log
score. Where the gain over a constant variance is not significant, the variance is constant.

The leave-one-out residual of a row has mean square noise x (1/weight + e), with e the expected
squared error of its prediction in units of the noise; divided by the bracket, its square u^2
estimates the noise variance where it is constant. A prediction where the noise is small has errors
due to the larger noise of other rows, which the second regression takes into account. Squares are
in units of the mean noise variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ulmus.core.arrays.backend import Array, dense, namespace, to_numpy
from ulmus.core.data.source import Block, RowBlocks, SamplePass
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import RegressionSpec, fitted_rows
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.core.input_map.optimisation import learned_map
from ulmus.core.layer.hidden_layer import HiddenLayer, UnitDistribution, drawn_layer
from ulmus.core.layer.inputs import Inputs
from ulmus.progress import stage

# Members and their units: log variances are smooth functions of the inputs.
NOISE_MEMBERS, NOISE_UNITS = 5, 100
NOISE_DISTRIBUTION = UnitDistribution("normal", None, "tanh")
# Rows and units of the probe network of the map.
MAP_ROWS, MAP_UNITS = 1000, 64
# Scales are rounded to powers of e^(1/8), so that round-off in the targets changes no scale, and
# streamed rows have the layer of rows in memory.
STEPS_OF_SCALE = 8
SEED = 1
# Added to squared residuals, in units of the mean noise variance, before the logarithm.
LOG_OFFSET = 1e-4
# Bound of absolute logarithms: the offset resolves no smaller variance.
LARGEST_LOG = -float(np.log(LOG_OFFSET))
# Mean of |u| over the root of the exponential of the mean of log u^2, for normal u.
NORMAL_RATIO = 1.506
# Bound of a residual relative to its expected size, for heavy tails.
LARGEST_RATIO = 5.0
# Predicted logarithms stay within this many standard deviations of those of the training rows.
LOG_RANGE = 3.0
# Values of s that are compared.
SHARES = (0.25, 0.5, 0.75, 1.0)
# A constant prediction equals a constant up to round-off.
SMALLEST_GAIN = 1e-6
LOG_REGRESSION = RegressionSpec(alpha="gcv")


@dataclass(frozen=True)
class NoiseVarianceModel:
    """Noise variance at weight 1 as a function of the inputs, in the fit's units of y.

    Each output has an ensemble of its own, whose map selects other inputs.
    """

    # Ensembles for the logarithm g of squared residuals; None where the variance is constant.
    logs: tuple[Ensemble | None, ...]
    # (K,): the variance is factor x exp(share x g).
    share: np.ndarray
    factor: np.ndarray
    low: np.ndarray  # (K,): lower and upper bound of predicted logarithms
    high: np.ndarray
    flat: np.ndarray  # (K,): the variance where it is constant, else NaN

    @property
    def varies(self) -> np.ndarray:
        """Outputs whose variance is not constant, shape (K,)."""
        return ~np.isfinite(self.flat)

    @property
    def summary(self) -> NoiseVarianceModel:
        """The model without the coordinates of points in its ensembles."""
        return replace(self, logs=tuple(one and one.summary for one in self.logs))

    def variance(self, X: Array) -> np.ndarray:
        """Noise variance at the rows of X, shape (K, p)."""
        zeros = np.zeros((1, X.shape[0]))
        logs = [zeros if one is None else one.mean(X) for one in self.logs]
        return self.from_logs(np.concatenate(logs))

    def from_logs(self, logs: np.ndarray) -> np.ndarray:
        """Noise variance from predicted logarithms of squared residuals, each (K, p)."""
        inside = np.clip(logs, self.low[:, None], self.high[:, None])
        varying = self.factor[:, None] * np.exp(self.share[:, None] * inside)
        flat = self.flat[:, None]
        return np.where(np.isfinite(flat), flat, varying)


@stage("Noise model")
def selected_noise_model(
    rows: RowBlocks,
    inputs: Inputs,
    ensemble: Ensemble,
    loo: np.ndarray,
    loo_leverage: np.ndarray,
    min_gain_in_se: float,
) -> tuple[NoiseVarianceModel, np.ndarray]:
    """Model of rows in memory; and the noise variance of each by a model without it, (K, n).

    ``loo`` and ``loo_leverage`` are leave-one-out residuals and expected squared errors of members,
    (M, K, n).
    """
    few, used = slice(NOISE_MEMBERS), used_rows(rows.root_weight)
    errors = relative_errors(loo_leverage[few], rows.root_weight)
    squares = residual_squares(loo[few], errors, rows.root_weight, unit_variance(ensemble))
    logs, without, sums = [], [], []
    for k in range(len(squares)):
        u2, error = squares[k : k + 1], errors[k : k + 1]
        targets = replace(rows, y=residual_logs(u2), root_weight=used)
        sample = targets.reduce(SamplePass(MAP_ROWS, SEED)).block
        layer = noise_layer(inputs, sample)
        first, g = _regression(targets, layer)
        corrected = corrected_squares(u2, error, g, log_of_mean(first, sample))
        second, g = _regression(replace(targets, y=working_response(corrected, g)), layer)
        logs.append(second)
        without.append(g)
        sums.append([calibration_sums(one, g, used) for one in (u2, corrected)])
    model = calibrated(logs, ensemble, np.concatenate(sums, axis=2), min_gain_in_se)
    return model, model.from_logs(np.concatenate(without))


def _regression(targets: RowBlocks, layer: HiddenLayer) -> tuple[Ensemble, np.ndarray]:
    """A regression of targets, and its leave-one-out predictions, (1, n)."""
    fit = fitted_rows(targets, layer, LOG_REGRESSION)
    return fit.ensemble, targets.y - fit.records[0]["loo"].mean(axis=0) * fit.ensemble.unit[:, None]


# ------------------------------------------------------------ the hidden layer


def noise_layer(inputs: Inputs, sample: Block) -> HiddenLayer:
    """A layer for standardised inputs, with a map optimised for the targets of a sample.

    The map of the mean may drop inputs that only the noise depends on.
    """
    seeds = np.random.SeedSequence(SEED).spawn(NOISE_MEMBERS)
    scales = noise_scales(inputs, sample)
    matrix = None if scales is None else np.diag(scales)
    return drawn_layer(seeds, NOISE_UNITS, NOISE_DISTRIBUTION, inputs, matrix, constant=True)


def noise_scales(inputs: Inputs, sample: Block) -> np.ndarray | None:
    """A scale for each input, zero for dropped ones; None where no map can be optimised."""
    if sample.y.shape[1] < 30 or len(inputs.origin) > 200:  # few rows, or many inputs
        return None
    block, plain = _on_host(sample, inputs)
    try:
        probes = probe_networks(block, plain, NOISE_DISTRIBUTION, [SEED], MAP_UNITS, centred=True)
        if probes is None:
            return None
        learned, _ = learned_map(probes, "ard", lambda _: None)
        scales = np.diag(learned.matrix)
    except (FloatingPointError, np.linalg.LinAlgError):
        return None
    steps = [STEPS_OF_SCALE * math.log(s) if s > 0 else -math.inf for s in scales]
    return np.exp(np.round(steps) / STEPS_OF_SCALE)


def _on_host(sample: Block, inputs: Inputs) -> tuple[Block, Inputs]:
    """Both as NumPy arrays in double precision, so that the map is the same on every device."""
    X = to_numpy(dense(sample.X))
    root_weight = None if sample.root_weight is None else to_numpy(sample.root_weight)
    offset, scale = (to_numpy(a).astype(float) for a in (inputs.offset, inputs.scale))
    rows = Block(X.astype(float), to_numpy(sample.y).astype(float), root_weight)
    return rows, Inputs(offset, scale)


# ------------------------------------------------------------ targets


def unit_variance(ensemble: Ensemble) -> np.ndarray:
    """Unit of squared residuals of each output, the mean noise variance, shape (K,)."""
    sigma2 = ensemble.ordered(
        [to_numpy(part.noise_variance.sigma2) for part in ensemble.regressions]
    )
    return np.where(sigma2 > 0, sigma2, 1.0)


def relative_errors(loo_leverage: Array, root_weight: Array | None) -> Array:
    """Expected squared errors of leave-one-out predictions over the noise of their rows, (K, n).

    The argument has the errors of members in units of the noise at weight 1, (M, K, n).
    """
    weight = 1.0 if root_weight is None else root_weight**2
    return weight * namespace(loo_leverage).mean(loo_leverage, axis=0)


def residual_squares(loo: Array, error: Array, root_weight: Array | None, unit: Array) -> Array:
    """Squares u^2 (K, n) from residuals of members (M, K, n) and relative errors (K, n)."""
    weight = 1.0 if root_weight is None else root_weight**2
    u2 = weight * namespace(loo).mean(loo, axis=0) ** 2 / (1 + error)
    return u2 / unit[:, None]


def corrected_squares(u2: Array, error: Array, g: Array, mean: float) -> Array:
    r"""Squares if errors of predictions are due to noise that is at least the mean noise, (1, n).

    With the relative errors e and the leave-one-out prediction g of the first regression, whose
    mean on the scale of variances is exp(mean), u^2 is multiplied by

    .. math:: \frac{1 + e}{1 + e \max(1, e^{\text{mean} - g})}.

    A prediction depends on rows with more noise where there is little, and the bias that the ridge
    parameter admits is that for the mean noise. Both would be taken for noise.
    """
    xp = namespace(u2)
    g = xp.clip(g, min=-LARGEST_LOG, max=LARGEST_LOG)
    return u2 * (1 + error) / (1 + error * xp.clip(xp.exp(mean - g), min=1.0))


def log_of_mean(first: Ensemble, sample: Block) -> float:
    """Logarithm of the mean of exp(g) over a sample of rows, by predictions g (1, n)."""
    g = np.clip(first.mean(dense(sample.X)), -LARGEST_LOG, LARGEST_LOG)
    return float(np.log(np.mean(np.exp(g))))


def residual_logs(u2: Array) -> Array:
    """Logarithms of squared residuals, the targets of the first regression."""
    return namespace(u2).log(u2 + LOG_OFFSET)


def working_response(u2: Array, g: Array) -> Array:
    r"""Targets of the second regression, from the leave-one-out prediction g of the first.

    .. math:: g + 2 \left( \frac{|u|}{c \, e^{g/2}} - 1 \right)

    is the working response of the scoring algorithm for the mean absolute residual. For normal
    residuals its variance is 2.3, that of a logarithm 4.9, which small residuals dominate, and that
    of a squared residual 2, which is sensitive to heavy tails.
    """
    xp = namespace(u2)
    g = xp.clip(g, min=-LARGEST_LOG, max=LARGEST_LOG)
    ratio = xp.clip(u2**0.5 * xp.exp(-g / 2) / NORMAL_RATIO, max=LARGEST_RATIO)
    return g + 2 * (ratio - 1)


def used_rows(root_weight: Array | None) -> Array | None:
    """One for rows of positive weight and zero for others, as root weights of the targets."""
    if root_weight is None:
        return None
    return namespace(root_weight).astype(root_weight > 0, root_weight.dtype)


# ------------------------------------------------------------ calibration


def calibration_sums(u2: Array, g: Array, used: Array | None) -> np.ndarray:
    """Sums over the rows used, shape (6 + 4 S, K).

    Rows, g and its square, u^2, its square and its product with g; then for each share s the sum
    of e = u^2 exp(-s g), its square and its products with u^2 and g.
    """
    xp = namespace(u2)
    # Leave-one-out predictions are unstable where the fit nearly interpolates.
    g = xp.clip(g, min=-LARGEST_LOG, max=LARGEST_LOG)
    parts = [xp.ones_like(u2), g, g**2, u2, u2**2, u2 * g]
    for share in SHARES:
        e = u2 * xp.exp(-share * g)
        parts += [e, e**2, e * u2, e * g]
    sums = [xp.sum(part if used is None else part * used, axis=1) for part in parts]
    return to_numpy(xp.stack(sums))


def calibrated(
    logs: list[Ensemble], ensemble: Ensemble, sums: np.ndarray, min_gain_in_se: float
) -> NoiseVarianceModel:
    """The model of best log score, from sums (2, 6 + 4 S, K) over squares and corrected ones.

    The variance is constant where the gain in the log score does not exceed ``min_gain_in_se``
    standard errors, and where all residuals are zero. This is decided by the squares, since the
    correction is small where the first regression is small, by chance or not.
    """
    found, (n, g, g2) = sums[0], sums[1, :3]
    sd, outputs = np.sqrt(np.maximum(g2 / n - (g / n) ** 2, 0)), np.arange(len(n))
    gains, errors, _ = score_gains(found)
    best = np.argmax(gains, axis=0)
    gain, error = gains[best, outputs], errors[best, outputs]
    varies = (found[3] > 0) & (gain > min_gain_in_se * error + SMALLEST_GAIN)
    gains, _, factors = score_gains(sums[1])
    best = np.argmax(gains, axis=0)
    factor = factors[best, outputs]
    residual = ensemble.ordered(
        [to_numpy(part.noise_variance.residual) for part in ensemble.regressions]
    )
    return NoiseVarianceModel(
        tuple(one if use else None for one, use in zip(logs, varies, strict=True)),
        share=np.asarray(SHARES)[best],
        factor=factor * unit_variance(ensemble),
        low=np.maximum(g / n - LOG_RANGE * sd, -LARGEST_LOG),
        high=np.minimum(g / n + LOG_RANGE * sd, LARGEST_LOG),
        flat=np.where(varies, np.nan, residual),
    )


def score_gains(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Gain in log score over a constant by share, its standard error, and the factor f, (S, K).

    A row of variance v scores :math:`-(\log v + u^2/v)/2`; f and the constant maximise the mean
    score.
    """
    n, g, g2, u2, u4, u2g = sums[:6]
    constant = np.where(u2 > 0, u2 / n, 1.0)
    results = []
    for share, (e, e2, eu2, eg) in zip(SHARES, np.split(sums[6:], len(SHARES)), strict=True):
        f = np.where(e > 0, e / n, 1.0)
        gain = 0.5 * (np.log(constant / f) - share * g / n)
        # Twice the gain of a row, up to a constant: u^2/constant - s g - e/f.
        square = u4 / constant**2 + share**2 * g2 + e2 / f**2
        square = square - 2 * (share * u2g / constant + eu2 / (constant * f) - share * eg / f)
        variance = np.maximum(square / n - (share * g / n) ** 2, 0)
        results.append((gain, 0.5 * np.sqrt(variance / n), f))
    gains, errors, factors = (np.stack(column) for column in zip(*results, strict=True))
    return gains, errors, factors
