"""
How fast does carbon dioxide grow, and how sure is that?
========================================================

The air above Mauna Loa, Hawaii, was sampled every week from 1958 to 2001 [#]_. A week with more
carbon dioxide than trend and season say tends to be followed by another such week: the noise
hangs together along time. A fit that takes rows as independent counts 2225 weeks of information.
There are fewer, and its error bars are too small.

.. [#] C. D. Keeling and T. P. Whorf (2004), the table ``co2`` of statsmodels.
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
# Year and season are the inputs. ``weight_scale`` has a number for each: the trend may bend within
# a year or two, the season changes its shape slowly. The first fit has an autoregression as its
# noise. It is told the dates, so that gaps are as long as they were. The second fit takes rows as
# independent, and warns that they are not. Hidden units are the same.

layer = {"n_estimators": 20, "n_neurons": 100, "input_map": None, "random_state": 0}
layer["weight_scale"] = [6, 0.3, 0.3]
model = ELMEnsembleRegressor(noise=AR1(), **layer).fit(X, weeks, time=weeks.index)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    alone = ELMEnsembleRegressor(noise="homoskedastic", **layer).fit(X, weeks)
print(textwrap.fill(str(caught[0].message), 80))

# %%
# What was found about the noise:

print(model.noise_covariance_)

# %%
# What hangs together has about twice the variance of what each week has for itself (the nugget),
# and its correlation falls to 1/e within the *time scale*, in days. Twice the gain in log
# likelihood would rarely pass 6 if weeks were independent.
#
# What it looks like
# ------------------
#
# Left: what the second fit leaves of ten years. A mean over a quarter of a year would be nearly
# zero if weeks were independent. Right: the correlation of such residuals with those of earlier
# weeks, and the curve that the first fit found.

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
left.set(ylabel="residual (ppm)", title="Neighbouring weeks err alike", ylim=(-1.5, 1.5))
left.legend(loc="upper center", ncols=2)
right.axhspan(*np.array([-1.96, 1.96]) / np.sqrt(len(weeks)), color="grey", alpha=0.3)
right.plot(lags, [residual.autocorr(lag) for lag in lags], "o", label="of residuals")
right.plot(lags, share * np.exp(-7 * lags / scale), label="of the noise, as fitted")
right.set(xlabel="weeks between", ylabel="correlation", ylim=(-0.1, 0.75))
right.set_title("Grey: where independence would be")
right.legend()
plt.show()

# %%
# One exponential is a simplification: the dots fall fast at first and slowly after, as if the
# weather and something slower were both at work, and the curve meets them in the middle. Residuals
# are no noise either. A smoother keeps the slow part of the noise as if it were trend, and the
# likelihood therefore looks only at what the smoother cannot touch.
#
# How fast it grows
# -----------------
#
# The mean growth over the whole period is the mean slope of the fitted function along the year.
# Fits agree about it and not about how well it is known. The second row is the estimate of Newey
# and West, which weights products of residuals and assumes no more than that noise is forgotten
# after a year.

robust = ELMEnsembleRegressor(noise=NeweyWest(bandwidth=365), **layer)
robust.fit(X, weeks, time=weeks.index)
fits = {"AR1": model, "Newey-West": robust, "independent": alone}
growth = pd.concat([fit.slope(X, "year") for fit in fits.values()]).set_index([list(fits)])
growth[["estimate", "std_error", "conf_low", "conf_high"]].round(4)

# %%
# A mean over 43 years suffers most from the slow part of the noise. Newey and West see residuals
# only, from which the smoother has taken just that part, and find no more than independence does.
#
# The growth in single years moves with El Niño and with what people burn. Bands are 95 %
# confidence intervals for the mean slope in a calendar year, each for itself.

calendar = np.floor(X.year)
middle = np.unique(calendar) + 0.5
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name, colour in (("AR1", "C0"), ("independent", "C1")):
    frame = fits[name].slope(X, "year", by=calendar)
    band = frame.conf_low, frame.conf_high
    ax.plot(middle, frame.estimate, color=colour)
    ax.fill_between(middle, *band, color=colour, alpha=0.35, label=f"noise: {name}")
ax.set(xlabel="year", ylabel="growth (ppm per year)", ylim=(0, 3))
ax.set_title("The same curve, and how well it is known")
ax.legend(loc="upper left")
plt.show()

# %%
# What it does not tell
# ---------------------
#
# These are intervals for the mean of the estimator, given a trend that the network can follow.
# Noise that lasts longer than the fastest wiggle of the trend cannot be told from the trend: a slow
# exchange between air and ocean is part of the curve here, not of its error.
#
# Next
# ----
#
# - :doc:`/guide/correlated_errors` has the formulas, and other kinds of noise.
# - :doc:`/gallery/correlated_errors/plot_space` has noise in space.
# - :doc:`/which_error_bar` says which bar is of what.
