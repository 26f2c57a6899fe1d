"""
How many members are enough
===========================

Each member of an ensemble draws its hidden weights at random. The mean over members therefore
depends on chance, less with every member. This page asks a fitted ensemble how much of its variance
that is, what other numbers of members would give, and then draws the weights again and again to see
whether the answer was right.
"""

import matplotlib.pyplot as plt
import numpy as np

from ulmus import ELMEnsembleRegressor
from ulmus.datasets import make_friedman
from ulmus.plot import EnsembleSizeDisplay, VarianceDisplay

# %%
# A small ensemble
# ----------------
# The table has 300 rows of Friedman's function of five inputs, with noise of variance one half.
# Five members of 100 units are few. No map is learned, so that redrawing the hidden weights is all
# that chance can do on the same rows.

data = make_friedman(300, random_state=0)
points = make_friedman(200, random_state=1).X
settings = {"n_neurons": 100, "input_map": None}
model = ELMEnsembleRegressor(5, **settings, random_state=0).fit(data.X, data.y)

# %%
# What more members would gain
# ----------------------------
# The variance of a prediction is over new noise in the training rows and new hidden weights. More
# members lower the second part and a share of the first, and leave the rest. ``variance_at`` says
# what an ensemble of any size would have, from the one that was fitted; ``suggest_n_estimators``
# the size from which chance in the weights adds at most 5 % to the variance at nine of ten points.

display = EnsembleSizeDisplay.from_estimator(model, points)
display.ax_.set_title("More members help, up to a limit that the noise sets")
display.ax_.set_ylabel("variance of the prediction (units of y, squared)")
plt.show()

# %%
# Was it right?
# -------------
# Here is the test. For each size we fit 30 ensembles to the same rows with other seeds, and take
# the variance of their 30 predictions at each point. That is the variance due to the weights alone:
# the noise is the same in all of them. It should be what ``predict_var(component="weights")``
# estimated from five members, times five, over the size.

sizes = (2, 4, 8, 16, 32)
n_draws = 30
forecast = model.predict_var(points, component="weights").mean() * model.n_estimators
measured = []
for size in sizes:
    predictions = [
        ELMEnsembleRegressor(size, **settings, alpha=model.alpha_, random_state=seed)
        .fit(data.X, data.y)
        .predict(points)
        for seed in range(1_000, 1_000 + n_draws)
    ]
    measured.append(np.var(predictions, axis=0, ddof=1).mean())

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
curve = np.geomspace(2, 32, 50)
ax.plot(curve, forecast / curve, color="#0072B2", label="forecast of the five members")
ax.plot(sizes, measured, "o", color="#D55E00", label=f"measured over {n_draws} redraws")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set_xticks(sizes, sizes)
ax.set_yticks(values := [0.01, 0.02, 0.05, 0.1, 0.2], values)
ax.set_yticks([], minor=True)
ax.set(xlabel="members of the ensemble", ylabel="variance due to weights (units of y, squared)")
ax.set_title("Five members foretell the variance of thirty-two")
ax.legend()
plt.show()
for size, value in zip(sizes, measured, strict=True):
    print(f"{size:>2} members: measured {value:.4f}, forecast {forecast / size:.4f}")

# %%
# What a variance is made of
# --------------------------
# ``variance_components`` splits the variance of a prediction. The noise that all members share is
# the same rows' noise, seen by every member: no number of members removes it. The other two parts
# shrink with the number of members. The figure follows the first input, the others at their
# medians, for the five members and for as many as were suggested.

enough = model.suggest_n_estimators(points)
larger = ELMEnsembleRegressor(enough, **settings, random_state=0).fit(data.X, data.y)
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), sharey=True, layout="constrained")
for ax, each in zip(axes, (model, larger), strict=True):
    VarianceDisplay.from_estimator(each, data.X, feature=0, ax=ax, noise=False)
    ax.set(xlabel="first input (no unit)", title=f"{each.n_estimators} members")
axes[0].set(ylabel="variance of the prediction (units of y, squared)", ylim=(0, 0.25))
axes[1].set_ylabel("")
handles, labels = axes[0].get_legend_handles_labels()
for ax in axes:
    ax.get_legend().remove()
figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=2)
figure.suptitle("More members take chance away; the noise of the rows stays")
plt.show()

# %%
# Next
# ----
# :doc:`/guide/ensemble` has the formulas, :doc:`/which_error_bar` tells the bars apart, and
# :doc:`/gallery/compare/plot_reproduce` checks the same variances against the paper.
