"""
Growth of atmospheric carbon dioxide: autocorrelated errors
===========================================================

Atmospheric carbon dioxide at Mauna Loa, Hawaii, was sampled weekly from 1958 to 2001 [#]_. The
deviations of consecutive weeks from trend and season are autocorrelated. A fit that assumes
independent errors overstates the information in the 2225 weeks, and its standard errors are too
small.

.. [#] Keeling and Whorf (2004), the table ``co2`` of statsmodels.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import YearLocator
from statsmodels.datasets import co2

from ulmus import ELMEnsembleRegressor
from ulmus.noise import AR1, NeweyWest

weeks = co2.load_pandas().data["co2"].dropna()
year = weeks.index.year + (weeks.index.dayofyear - 1) / 365.25
season = 2 * np.pi * year
X = pd.DataFrame({"year": year, "cos": np.cos(season), "sin": np.sin(season)})
gaps = weeks.index.to_series().diff().dt.days
print(f"{len(weeks)} weeks, {(gaps > 7).sum()} gaps, the longest of {gaps.max():.0f} days")

# %%
# Two fits
# --------
#
# The inputs are the year and the season. A column of dates supplies both
# (:doc:`/guide/common_tasks`). Here they are written out, so that ``weight_scale`` can set their
# scales: the trend may bend within a year or two, the shape of the season changes slowly. The first
# fit has autoregressive noise and uses the dates, so that gaps have their length. The second fit
# assumes independent errors and warns. The hidden units are the same.

layer = {"n_estimators": 20, "n_neurons": 100, "input_map": None, "random_state": 0}
layer["weight_scale"] = [6, 0.3, 0.3]
model = ELMEnsembleRegressor(noise=AR1(), **layer).fit(X, weeks, time=weeks.index)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    alone = ELMEnsembleRegressor(noise="homoskedastic", **layer).fit(X, weeks)
print(textwrap.fill(str(caught[0].message), 80))

# %%
# The estimated noise covariance:

print(model.noise_covariance_)

# %%
# The variance of the autocorrelated component is about twice the nugget variance, and its
# correlation falls to 1/e within the *time scale*, in days. Under independence, twice the gain in
# log likelihood would rarely exceed 6.
#
# Residuals
# ---------
#
# Left: residuals of the second fit over ten years, with means over a quarter of a year, which would
# be nearly zero under independence. Right: the autocorrelation of the residuals, and the estimated
# correlation function.

residual = pd.Series(weeks - alone.predict(X), weeks.index).asfreq("W-SAT")
lags = np.arange(1, 27)
(scale,), (share,) = model.noise_covariance_.scales, model.noise_covariance_.shares
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
decade = residual["1975":"1984"]
slow = decade.rolling(13, center=True, min_periods=7).mean()
left.axhline(0, color="grey", linewidth=0.8)
left.plot(decade, ".", alpha=0.5, markersize=3, label="a week")
left.plot(slow, color="C3", label="mean of 13 weeks")
left.xaxis.set_major_locator(YearLocator(3))
left.set(ylabel="residual (ppm)", title="Residuals are autocorrelated", ylim=(-1.5, 1.5))
left.legend(loc="upper center", ncols=2)
right.axhspan(*np.array([-1.96, 1.96]) / np.sqrt(len(weeks)), color="grey", alpha=0.3)
right.plot(lags, [residual.autocorr(lag) for lag in lags], "o", label="residuals")
right.plot(lags, share * np.exp(-7 * lags / scale), label="estimated noise")
right.set(xlabel="lag (weeks)", ylabel="autocorrelation", ylim=(-0.1, 0.75))
right.set_title("Grey: 95 % band under independence")
right.legend()
plt.show()

# %%
# A single exponential is a simplification: the autocorrelation falls fast at first and slowly
# afterwards. Residuals also differ from the noise: the smoother absorbs its low frequencies, and
# REML therefore uses only the directions that the smoother does not retain.
#
# Mean growth
# -----------
#
# The mean growth over the whole period is the mean slope of the fitted function along the year. The
# fits agree about the estimate and differ in its standard error. The second row is the Newey-West
# (HAC) estimate with a bandwidth of one year.

robust = ELMEnsembleRegressor(noise=NeweyWest(bandwidth=365), **layer)
robust.fit(X, weeks, time=weeks.index)
fits = {"AR1": model, "Newey-West": robust, "independent": alone}
growth = pd.concat([fit.slope(X, "year") for fit in fits.values()]).set_index([list(fits)])
growth[["estimate", "std_error", "conf_low", "conf_high"]].round(4)

# %%
# An average over 43 years is affected most by low-frequency noise. The Newey-West estimate is based
# on residuals, which lack this part, and is close to that under independence.
#
# The growth in single years varies with El Nino and emissions. Bands are pointwise 95 % confidence
# intervals for the mean slope in a calendar year.

calendar = np.floor(X.year)
middle = np.unique(calendar) + 0.5
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name, colour in (("AR1", "C0"), ("independent", "C1")):
    frame = fits[name].slope(X, "year", by=calendar)
    band = frame.conf_low, frame.conf_high
    ax.plot(middle, frame.estimate, color=colour)
    ax.fill_between(middle, *band, color=colour, alpha=0.35, label=f"noise: {name}")
ax.set(xlabel="year", ylabel="growth (ppm per year)", ylim=(0, 3))
ax.set_title("Growth by year, with 95 % confidence intervals")
ax.legend(loc="upper left")
plt.show()

# %%
# Limitations
# -----------
#
# The intervals are for the expectation of the estimator, given a trend that the network can
# represent. Noise that is correlated over longer times than the trend resolves cannot be
# distinguished from the trend.
#
# Next
# ----
#
# - :doc:`/guide/correlated_errors`
# - :doc:`/gallery/correlated_errors/plot_space`
# - :doc:`/which_error_bar`
