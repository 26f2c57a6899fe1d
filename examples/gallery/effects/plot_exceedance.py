"""
Where is the limit exceeded?
============================

Floods of the river Meuse left heavy metals in the soil near Stein in the Netherlands. Zinc was
measured at 155 places [#]_. Where does it exceed 720 ppm, the Dutch intervention value for a
standard soil? A map of predictions cannot say so: a prediction of 700 may be almost certainly
below the limit, or nearly as likely above it. A map of probabilities can.

.. [#] E. J. Pebesma and R. S. Bivand (2005). Classes and methods for spatial data in R. *R News*
   5 (2), 9-13. The data come with scikit-gstat.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree
from skgstat.data import meuse
from sklearn.model_selection import KFold

from ulmus import ELMEnsembleRegressor

LIMIT = 720  # ppm
places, zinc = meuse(variable="zinc")["sample"]
km, zinc = (places - places.min(axis=0)) / 1000, zinc[:, 0]

# Zinc is skewed and positive, so its logarithm is fitted; a probability is the same on both scales.
model = ELMEnsembleRegressor(random_state=0).fit(km, np.log10(zinc))

# %%
# Two maps of probabilities
# -------------------------
#
# The left map is of **one new sample** of soil at a place: will it exceed the limit? The right map
# is of the **function** itself, the mean of the logarithm: is the typical zinc of the place (its
# geometric mean) above the limit? The function does not scatter as samples do, so that the right
# map is nearer to 0 and 1. The river flows along the upper left of the samples.

east, north = (np.arange(-0.05, top, 0.025) for top in km.max(axis=0) + 0.05)
grid = np.stack(np.meshgrid(east, north), axis=-1)
points = grid.reshape(-1, 2)
near = (cKDTree(km).query(points)[0] < 0.15).reshape(grid.shape[:2])

figure, panels = plt.subplots(1, 2, figsize=(8, 5.6), sharey=True, layout="compressed")
titles = {"observation": "a new sample exceeds it", "mean": "the typical zinc exceeds it"}
for ax, (of, title) in zip(panels, titles.items(), strict=True):
    probability = model.exceedance(points, np.log10(LIMIT), of=of).reshape(near.shape)
    drawn = ax.contourf(
        east,
        north,
        np.where(near, probability, np.nan),
        levels=np.linspace(0, 1, 11),
        cmap="cividis",
    )
    for above, marker, colour in ((False, "o", "white"), (True, "^", "#D55E00")):
        chosen = km[(zinc > LIMIT) == above]
        label = f"measured {'above' if above else 'below'} {LIMIT} ppm"
        ax.scatter(*chosen.T, s=22, marker=marker, facecolor=colour, edgecolor="black", label=label)
    ax.set(title=title, xlabel="east (km)", ylabel="north (km)", aspect="equal")
    ax.label_outer()
figure.colorbar(drawn, ax=panels, label=f"probability of more than {LIMIT} ppm", shrink=0.8)
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
figure.suptitle(f"Zinc above {LIMIT} ppm: likely along the river, unlikely inland")
plt.show()

# %%
# Locations farther than 150 m from any sample are left white: no map should pretend to know them.
#
# Do the probabilities keep their promise?
# ----------------------------------------
#
# Every sample is predicted by a fit without the fifth of the samples that it belongs to. Of the
# samples with a probability around 0.3, three in ten should exceed the limit.

probability = np.empty(len(km))
for seen, unseen in KFold(5, shuffle=True, random_state=0).split(km):
    fit = ELMEnsembleRegressor(random_state=0).fit(km[seen], np.log10(zinc[seen]))
    probability[unseen] = fit.exceedance(km[unseen], np.log10(LIMIT))

ends = [0, 0.05, 0.2, 0.5, 0.8, 1]
for low, high in pairwise(ends):
    there = (probability > low) & (probability <= high)
    expected, seen = probability[there].sum(), np.sum(zinc[there] > LIMIT)
    print(f"{low:.2f} to {high:.2f}: {there.sum()} samples, {expected:.1f} expected, {seen} seen")

# %%
# Limits of this map
# ------------------
#
# Errors of neighbouring samples are spatially correlated, and the fit assumes that they are
# independent. Probabilities for single samples are still checked by the table above, as
# the left-out samples have neighbours too. The right map is surer of itself than it should be, and
# so would be the error bar of an average over the area. It also leaves out what smoothing takes
# away, which ``target="function"`` allows for. ``model.check()`` has more to say:

for finding in model.check().findings:
    if finding.severity != "ok" or finding.name == "misfit":
        print(f"{finding.name}: {finding.message}")

# %%
# Next
# ----
#
# - :doc:`/gallery/effects/plot_map` draws predictions beside their standard errors.
# - :doc:`/gallery/effects/plot_next_points` asks where to measure next.
# - :doc:`/which_error_bar` has the difference between an observation and the function.
