"""
Exceedance probabilities: zinc above a threshold
================================================

Floods of the river Meuse deposited heavy metals in the soil near Stein in the Netherlands. Zinc was
measured at 155 locations [#]_. Where does it exceed 720 ppm, the Dutch intervention value for a
standard soil? A map of predictions does not suffice: the probability of exceedance at a prediction
of 700 depends on its uncertainty.

.. [#] E. J. Pebesma and R. S. Bivand (2005). Classes and methods for spatial data in R. *R News*
   5 (2), 9-13. The data come with scikit-gstat.
"""

import textwrap
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree
from skgstat.data import meuse
from sklearn.model_selection import KFold

from ulmus import ELMEnsembleRegressor

THRESHOLD = 720  # ppm
coords, zinc = meuse(variable="zinc")["sample"]
km, zinc = (coords - coords.min(axis=0)) / 1000, zinc[:, 0]

# Zinc is skewed and positive. The logarithm is monotone: exceedance probabilities are the same.
model = ELMEnsembleRegressor(random_state=0).fit(km, np.log10(zinc))

# %%
# Probability for an observation and for the mean
# -----------------------------------------------
#
# Left: the probability that **one new sample** exceeds the threshold. Right: the probability that
# the **mean** of the logarithm (the geometric mean of zinc at the location) does. The mean excludes
# the noise of a sample, so that the right map is closer to 0 and 1. The river flows along the upper
# left of the samples.

east, north = (np.arange(-0.05, top, 0.025) for top in km.max(axis=0) + 0.05)
grid = np.stack(np.meshgrid(east, north), axis=-1)
points = grid.reshape(-1, 2)
near = (cKDTree(km).query(points)[0] < 0.15).reshape(grid.shape[:2])

figure, panels = plt.subplots(1, 2, figsize=(8, 5.6), sharey=True, layout="compressed")
titles = {"observation": "a new sample", "mean": "the geometric mean"}
for ax, (of, title) in zip(panels, titles.items(), strict=True):
    probability = model.exceedance(points, np.log10(THRESHOLD), of=of).reshape(near.shape)
    drawn = ax.contourf(
        east,
        north,
        np.where(near, probability, np.nan),
        levels=np.linspace(0, 1, 11),
        cmap="cividis",
    )
    for above, marker, colour in ((False, "o", "white"), (True, "^", "#D55E00")):
        sample = km[(zinc > THRESHOLD) == above]
        label = f"measured {'above' if above else 'below'} {THRESHOLD} ppm"
        ax.scatter(*sample.T, s=22, marker=marker, facecolor=colour, edgecolor="black", label=label)
    ax.set(title=title, xlabel="east (km)", ylabel="north (km)", aspect="equal")
    ax.label_outer()
figure.colorbar(drawn, ax=panels, label=f"probability of more than {THRESHOLD} ppm", shrink=0.8)
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
figure.suptitle(f"Probability that zinc exceeds {THRESHOLD} ppm")
plt.show()

# %%
# Locations farther than 150 m from any sample are masked: both maps would be extrapolations.
#
# Calibration of the probabilities
# --------------------------------
#
# Out-of-fold probabilities of five folds, compared with the observed frequencies of exceedance:

probability = np.empty(len(km))
for train, test in KFold(5, shuffle=True, random_state=0).split(km):
    fit = ELMEnsembleRegressor(random_state=0).fit(km[train], np.log10(zinc[train]))
    probability[test] = fit.exceedance(km[test], np.log10(THRESHOLD))

edges = [0, 0.05, 0.2, 0.5, 0.8, 1]
for low, high in pairwise(edges):
    bin_ = (probability > low) & (probability <= high)
    expected, observed = probability[bin_].sum(), np.sum(zinc[bin_] > THRESHOLD)
    print(
        f"{low:.2f} to {high:.2f}: {bin_.sum()} samples, "
        f"expected {expected:.1f}, observed {observed}"
    )

# %%
# Limitations
# -----------
#
# Errors of neighbouring samples are spatially correlated, and the fit assumes independence. The
# table above remains a valid check of the left map, because held-out samples have neighbours as
# well. The right map is overconfident, and the standard error of an average over the area would be
# too small; see :doc:`/guide/correlated_errors`. The right map also excludes the smoothing bias,
# for which ``target="function"`` allows. Further diagnostics:

for finding in model.check().findings:
    if finding.severity != "ok" or finding.name == "misfit":
        text = f"{finding.name}: {finding.message}"
        print(textwrap.fill(text, 90, subsequent_indent="    "))

# %%
# Next
# ----
#
# - :doc:`/gallery/effects/plot_map`: maps of predictions and standard errors
# - :doc:`/gallery/effects/plot_next_points`: sequential design
# - :doc:`/which_error_bar`: intervals for an observation and for the function
