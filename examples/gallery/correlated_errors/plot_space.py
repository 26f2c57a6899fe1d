"""
Zinc in a flood plain: spatially correlated errors and kriging
==============================================================

Floods of the Meuse deposit heavy metals on its banks. There are 155 samples of topsoil from a flood
plain near Stein in the Netherlands [#]_. How does zinc depend on the distance from the river? The
deviations of neighbouring samples from this curve are spatially correlated.

.. [#] M. G. J. Rikken and R. P. G. van Rijn (1993), the table ``meuse`` of the R package sp, which
   comes with scikit-gstat.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import cKDTree

from ulmus import ELMEnsembleRegressor
from ulmus.noise import Exponential

table = pd.read_csv(files("skgstat.data") / "samples" / "meuse.txt")
X = table[["dist.m"]].rename(columns={"dist.m": "river"})  # metres to the river
coords = table[["x", "y"]].to_numpy(float)  # metres east and north
log_zinc = np.log(table["zinc"])

# %%
# Two fits
# --------
#
# The only input is the distance from the river. The coordinates of the samples are no inputs; they
# determine the noise covariance and are passed to ``fit`` as ``coords``. The second fit assumes
# independent errors.

parameters = {"n_neurons": 100, "input_map": None, "random_state": 0}
model = ELMEnsembleRegressor(noise=Exponential(), **parameters)
model.fit(X, log_zinc, coords=coords)
alone = ELMEnsembleRegressor(noise="homoskedastic", alpha=model.alpha_, **parameters)
alone.fit(X, log_zinc)
print(model.noise_covariance_)

# %%
# The correlation falls to 1/e within the *space scale*, in metres, which is somewhat more than the
# distance between neighbouring samples. A nugget is not needed.

nearest = cKDTree(coords).query(coords, k=2)[0][:, 1]
print(f"median distance to the nearest sample: {np.median(nearest):.0f} m")

# %%
# The curve
# ---------
#
# Bands are 95 % confidence intervals for the mean curve (``target="expectation"``). Zinc is on a
# logarithmic scale, so that a standard error of .1 is one of 10 %.

line = pd.DataFrame({"river": np.linspace(10, 1000, 100)})
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(X["river"], table["zinc"], ".", color="grey", label="a sample")
ax.plot(line["river"], np.exp(model.predict(line)), color="black")
for name, fit, colour in (("Exponential()", model, "C0"), ("independent", alone, "C1")):
    band = fit.predict_interval(line, kind="confidence", target="expectation")
    ax.fill_between(line["river"], *np.exp(band.T), color=colour, alpha=0.4, label=f"noise: {name}")
ax.set(xlabel="distance from the river (m)", ylabel="zinc (mg/kg)", yscale="log")
ax.set_yticks([100, 200, 500, 1000, 2000], labels=["100", "200", "500", "1000", "2000"])
ax.minorticks_off()
ax.set_title("95 % confidence bands under both assumptions")
ax.legend()
plt.show()

# %%
# The average over the plain is affected most, because correlated errors do not average out.

fits = {"Exponential()": model, "independent": alone}
averages = pd.concat([fit.average(X) for fit in fits.values()]).set_index([list(fits)])
averages[["estimate", "std_error", "conf_low", "conf_high"]].round(3)

# %%
# Maps
# ----
#
# The distance from the river is interpolated between the samples. The first map shows the
# prediction, the others its standard error under both assumptions. All three depend on the location
# only through the distance from the river.

low, high = coords.min(axis=0), coords.max(axis=0)
east, north = (np.arange(a, b, 20) for a, b in zip(low, high, strict=True))
grid = np.stack(np.meshgrid(east, north), axis=-1)
river = LinearNDInterpolator(coords, X["river"])(grid)
inside = np.isfinite(river) & (cKDTree(coords).query(grid)[0] < 250)
at, cells = pd.DataFrame({"river": river[inside]}), grid[inside]
ZINC = 100 * 2 ** np.arange(0, 4.1, 0.5)  # two colours for each doubling


def draw(figure, ax, values, levels, label):
    """A map of values at the cells inside, with the samples on it."""
    full = np.full(inside.shape, np.nan)
    full[inside] = values
    zinc = levels is ZINC
    look = {"cmap": "viridis", "norm": LogNorm()} if zinc else {"cmap": "cividis"}
    drawn = ax.contourf(east, north, full, levels=levels, extend="both", **look)
    ax.plot(*coords.T, ".", color="black", markersize=1.5)
    ax.set(aspect="equal", xticks=[], yticks=[])
    bar = figure.colorbar(drawn, ax=ax, label=label, location="bottom", shrink=0.9)
    bar.set_ticks(levels[::2], labels=[f"{level:.0f}" for level in levels[::2]])
    bar.minorticks_off()


figure, panels = plt.subplots(1, 3, figsize=(8, 5), layout="compressed")
draw(figure, panels[0], np.exp(model.predict(at)), ZINC, "zinc (mg/kg)")
for ax, (name, fit) in zip(panels[1:], fits.items(), strict=True):
    percent = 100 * np.sqrt(fit.predict_var(at, component="model"))
    draw(figure, ax, percent, np.arange(0, 25, 3), "standard error (%)")
    ax.set_title(f"noise: {name}", fontsize="medium")
panels[0].set_title("the prediction", fontsize="medium")
plt.show()

# %%
# Kriging
# -------
#
# Where neighbouring samples contain more zinc than their distance from the river explains, a new
# sample is likely to do so as well. *Kriging* of the residuals adds this to the prediction. The
# standard deviation of a new sample is then small near the samples and larger between them; far
# away it is that of the prediction alone.

mean, sd = model.predict(at, return_std=True, residual_kriging=True, coords=cells)
figure, panels = plt.subplots(1, 2, figsize=(8, 6.4), layout="compressed")
draw(figure, panels[0], np.exp(mean), ZINC, "zinc (mg/kg)")
draw(figure, panels[1], 100 * sd, np.arange(0, 51, 5), "sd of a new sample (%)")
figure.suptitle("Prediction with kriged residuals")
plt.show()

# %%
# An out-of-sample test on every third sample:

new = np.arange(len(X)) % 3 == 1
part = ELMEnsembleRegressor(noise=Exponential(), **parameters)
part.fit(X[~new], log_zinc[~new], coords=coords[~new])
nearby = {"residual_kriging": True, "coords": coords[new]}
for name, options in (("the curve", {}), ("with kriging", nearby)):
    mean, sd = part.predict(X[new], return_std=True, **options)
    error = log_zinc[new] - mean
    print(f"{name:12} RMSE {np.sqrt(np.mean(error**2)):.2f}, mean sd {sd.mean():.2f}")

# %%
# Limitations
# -----------
#
# Standard errors are those of the mean curve, over new spatially correlated noise and new hidden
# weights. Elevation, soil and flooding history are part of the noise here.
#
# Next
# ----
#
# - :doc:`/guide/correlated_errors`
# - :doc:`/gallery/correlated_errors/plot_co2`
# - :doc:`/gallery/effects/plot_map`
