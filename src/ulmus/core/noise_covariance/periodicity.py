r"""Periods of residuals in the order of time, by their correlogram and their periodogram.

Both tests assume uncorrelated residuals, and correct for the number of lags or frequencies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import fft, special

# Fewer residuals are not tested.
FEWEST = 24
# A period is a lag of at least two rows, observed this often at least.
FEWEST_CYCLES = 4
# Pairs of residuals that a correlation is computed from, at least.
FEWEST_PAIRS = 20
# Steps of time are multiples of their median up to this share of it: months in days are regular.
TOLERANCE = 0.2
# A grid of steps may have this many times as many places as residuals; others are gaps.
LARGEST_GRID = 4
# Residuals at irregular times that are used, and frequencies for each of them.
MOST_IRREGULAR, OVERSAMPLING = 1000, 2.5
# A score of successive residuals from which these are decorrelated first, as an AR(1) process.
CORRELATED_SCORE = 3.0
# Correlations are similar if they are larger than this share of another, and distinct below the
# smaller share. Lags are near each other if they differ by less than the third.
SIMILAR, DISTINCT, NEARBY = 0.75, 0.5, 0.15
# Multiples of a lag at which correlations are similar.
MULTIPLES = 4
# A p-value of a lag below which the correlogram determines the period.
SURE = 0.005


@dataclass(frozen=True)
class Series:
    """Residuals in the order of time."""

    values: np.ndarray  # (T,): their deviations from their mean; zero at places without any
    observed: np.ndarray  # (T,): places with a residual
    step: float  # time between places; NaN if times are irregular
    times: np.ndarray  # (T,): times

    @property
    def regular(self) -> bool:
        """Whether the places are equally spaced."""
        return not np.isnan(self.step)


@dataclass(frozen=True)
class Period:
    """The most significant period of a series, whether or not it is significant."""

    length: float  # in steps of time; NaN if times are irregular
    duration: float  # in units of time
    p_value: float  # corrected for the number of lags or frequencies
    # Correlation at this lag, or the share of the variance that a sine of this period explains.
    size: float
    is_lag: bool  # whether it is a lag of the correlogram
    repeats: bool = True  # whether correlations are similar after two periods, and smaller between


def residual_series(residuals: np.ndarray, times: np.ndarray) -> Series:
    """Residuals (n,) at times (n,) in any order, on a grid if their steps are regular.

    Residuals of equal time, such as those of several groups, are added and divided by the root of
    their number. Their sums are a series even if groups are correlated.
    """
    distinct, place, counts = np.unique(times, return_inverse=True, return_counts=True)
    values = np.bincount(place, residuals - np.mean(residuals)) / np.sqrt(counts)
    values -= np.mean(values)
    steps = np.diff(distinct)
    step = float(np.median(steps)) if len(steps) else np.nan
    multiples = np.rint(steps / step)
    deviation = np.abs(steps / step - multiples)
    position = np.append(0, np.cumsum(multiples))
    uneven = np.any(deviation > TOLERANCE) or np.any(multiples < 1)
    if uneven or position[-1] >= LARGEST_GRID * len(values):
        return Series(values, np.ones(len(values), bool), np.nan, distinct)
    index = position.astype(int)
    on_grid, observed = np.zeros(index[-1] + 1), np.zeros(index[-1] + 1, bool)
    on_grid[index], observed[index] = values, True
    return Series(on_grid, observed, step, distinct[0] + step * np.arange(len(on_grid)))


def strongest_period(series: Series) -> Period | None:
    """The most significant period of the correlogram and the periodogram; None for few residuals.

    Its p-value is that of both tests together.
    """
    if np.sum(series.observed) < FEWEST or not np.any(series.values):
        return None
    if not series.regular:
        return _irregular_period(series)
    series = _decorrelated(series)
    by_lag, by_sine = _lag(series), _frequency(series)
    # A lag is preferred, unless it is a multiple of a sine's period that is a lag as well: the
    # largest frequency may itself be a multiple of that of the period.
    best = by_lag if by_lag.p_value < SURE or by_lag.p_value <= by_sine.p_value else by_sine
    if by_sine.p_value < SURE and by_sine.length < (1 - NEARBY) * by_lag.length:
        same = lag_correlation(series, round(by_sine.length)) > DISTINCT * by_lag.size
        best = by_sine if same else best
    return replace(best, p_value=min(2 * min(by_lag.p_value, by_sine.p_value), 1.0))


def lag_correlation(series: Series, lag: int) -> float:
    """Correlation of the values of a regular series with those ``lag`` places later."""
    return float(_correlations(series, lag)[0][lag])


def lagged_products(values: np.ndarray, most: int) -> np.ndarray:
    """Sums of products of values (T,) with those 0 to ``most`` places later, shape (most + 1,)."""
    size = fft.next_fast_len(len(values) + most, real=True)
    transformed = fft.rfft(values, size)
    return fft.irfft(np.abs(transformed) ** 2, size)[: most + 1]


def _decorrelated(series: Series) -> Series:
    """Residuals of a regression on the preceding one, where successive ones are correlated."""
    e, seen = series.values, series.observed
    pairs = seen[1:] & seen[:-1]
    products = (e[1:] * e[:-1])[pairs]
    norm = np.sqrt(np.sum(products**2))
    if norm == 0 or np.sum(products) < CORRELATED_SCORE * norm:
        return series
    phi = np.mean(products) / np.mean(e[seen] ** 2)
    values = np.append(0.0, np.where(pairs, e[1:] - phi * e[:-1], 0.0))
    return Series(values, np.append(False, pairs), series.step, series.times)


def _lag(series: Series) -> Period:
    """The lag of the largest score, with a normal approximation of its distribution."""
    e = series.values
    most = max(len(e) // FEWEST_CYCLES, 2)
    correlation, count = _correlations(series, 2 * most)
    sums, squares = lagged_products(e, 2 * most), lagged_products(e**2, 2 * most)
    # Sums of squares of round-off are zero.
    squares = np.where(squares > 1e-12 * np.sum(e**4), squares, np.inf)
    usable = count >= FEWEST_PAIRS
    score = np.where(usable, sums / np.sqrt(squares), 0.0)
    tested = np.arange(2, most + 1)
    lag = int(tested[np.argmax(score[tested])])
    p = float(np.sum(usable[tested]) * special.ndtr(-score[lag]))
    lag, repeats = _shortest(correlation, lag)
    return Period(lag, lag * series.step, min(p, 1.0), float(correlation[lag]), True, repeats)


def _correlations(series: Series, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean products of pairs at lags 0 to ``most`` over the variance, and numbers of pairs."""
    count = np.rint(lagged_products(series.observed.astype(float), most))
    variance = np.sum(series.values**2) / np.sum(series.observed)
    return lagged_products(series.values, most) / np.maximum(count, 1.0) / variance, count


def _shortest(correlation: np.ndarray, lag: int) -> tuple[int, bool]:
    """The shortest period near a lag or a part of it, and whether residuals repeat after it.

    Correlations have the shape (2 most + 1,). They are similar after one and several periods, and
    smaller between.
    """
    most, limit = (len(correlation) - 1) // 2, DISTINCT * correlation[lag]
    tested = np.arange(2, min(int((1 + NEARBY) * lag), most) + 1)
    multiples = tested[:, None] * np.arange(1, MULTIPLES + 1)
    within = multiples <= 2 * most
    after = np.where(within, correlation[np.where(within, multiples, 0)], 0.0)
    mean = np.sum(after, axis=1) / np.sum(within, axis=1)
    lowest = np.minimum.accumulate(correlation[1:])[tested - 2]
    repeats = (correlation[tested] > limit) & (mean > limit) & (lowest < limit)
    if not np.any(repeats):
        return lag, False
    mean = np.where(repeats, mean, -np.inf)
    first = tested[np.argmax(mean > SIMILAR * np.max(mean))]
    near = np.abs(tested - first) <= max(1, NEARBY * first)
    return int(tested[np.argmax(np.where(near, mean, -np.inf))]), True


def _frequency(series: Series) -> Period:
    r"""The largest ordinate of the periodogram, by Fisher's g test.

    With m ordinates of white noise, :math:`P(g > x) \le m (1 - x)^{m - 1}`, the first term of the
    distribution of Fisher (1929), for the share g of the largest one in their sum.
    """
    T = len(series.values)
    power = np.abs(fft.rfft(series.values)) ** 2
    tested = np.arange(FEWEST_CYCLES, (T - 1) // 2 + 1)
    j = int(tested[np.argmax(power[tested])])
    g = float(power[j] / np.sum(power[tested]))
    p = min(len(tested) * (1 - g) ** (len(tested) - 1), 1.0)
    share = float(power[j] / np.sum(power[1 : (T - 1) // 2 + 1]))
    return Period(T / j, T / j * series.step, p, share, False)


def _irregular_period(series: Series) -> Period:
    r"""The largest ordinate of a Lomb-Scargle periodogram, with the bound of Baluev (2008).

    With the share P of the variance that a sine explains, n residuals, times t and frequencies up
    to F, the probability of a larger one is at most

    .. math:: (1 - P)^{(n - 3) / 2} + F \sqrt{4 \pi \operatorname{Var} t} \,
              (1 - P)^{(n - 4) / 2} \sqrt{(n - 1) P / 2}.
    """
    from scipy.signal import lombscargle  # takes long to import

    t, e = series.times[-MOST_IRREGULAR:], series.values[-MOST_IRREGULAR:]
    n, span = len(t), float(np.ptp(t))
    highest = 0.5 * n / span
    frequency = np.linspace(FEWEST_CYCLES / span, highest, int(OVERSAMPLING * n))
    e = e - np.mean(e)
    power = lombscargle(t - t[0], e, 2 * np.pi * frequency, normalize=True)
    j = int(np.argmax(power))
    P = float(np.clip(power[j], 0.0, 1.0))
    width = highest * np.sqrt(4 * np.pi * np.var(t))
    p = (1 - P) ** ((n - 3) / 2) + width * (1 - P) ** ((n - 4) / 2) * np.sqrt((n - 1) * P / 2)
    return Period(np.nan, float(1 / frequency[j]), min(float(p), 1.0), P, False)
