"""
Choosing the number of ensemble members
=======================================

The hidden weights of each member are random, and part of the variance of a prediction is due to
them. This example estimates that part from one fitted ensemble, extrapolates it to other numbers of
members, and compares the result with repeated draws of the weights.
"""

import matplotlib.pyplot as plt
import numpy as np

from ulmus import ELMEnsembleRegressor
from ulmus.datasets import make_friedman
from ulmus.plot import EnsembleSizeDisplay, VarianceDisplay

# %%
# Data and fit
# ------------
# 300 rows of Friedman's function of five inputs, with noise variance 0.5, and five members of 100
# units. No input map is learned, so that the hidden weights are the only source of randomness given
# the rows.

data = make_friedman(300, random_state=0)
points = make_friedman(200, random_state=1).X
settings = {"n_neurons": 100, "input_map": None}
model = ELMEnsembleRegressor(5, **settings, random_state=0).fit(data.X, data.y)

# %%
# Variance as a function of the ensemble size
# -------------------------------------------
# The variance of a prediction refers to new noise in the training rows and new hidden weights. The
# part due to the weights, and a part of that due to the noise, decrease with the number of members.
# ``variance_at`` estimates the variance of an ensemble of any size, ``suggest_n_estimators`` the
# size at which the random weights add at most 5 % to the variance at nine of ten points.

display = EnsembleSizeDisplay.from_estimator(model, points)
display.ax_.set_title("Variance of the prediction by number of members")
display.ax_.set_ylabel("variance of the prediction (units of y, squared)")
plt.show()

# %%
# Comparison with repeated draws
# ------------------------------
# For each size, 30 ensembles are fitted to the same rows with different seeds. The variance of
# their predictions is due to the weights alone. The estimate is
# ``predict_var(component="weights")`` of the five members, times five, divided by the size.

sizes = (2, 4, 8, 16, 32)
n_draws = 30
estimate = model.predict_var(points, component="weights").mean() * model.n_estimators
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
ax.plot(curve, estimate / curve, color="#0072B2", label="estimated from five members")
ax.plot(sizes, measured, "o", color="#D55E00", label=f"simulated, {n_draws} draws")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set_xticks(sizes, sizes)
ax.set_yticks(values := [0.01, 0.02, 0.05, 0.1, 0.2], values)
ax.set_yticks([], minor=True)
ax.set(xlabel="number of members", ylabel="variance due to weights (units of y, squared)")
ax.set_title("Variance due to random weights: estimate and simulation")
ax.legend()
plt.show()
for size, value in zip(sizes, measured, strict=True):
    print(f"{size:>2} members: simulated {value:.4f}, estimated {estimate / size:.4f}")

# %%
# Variance components
# -------------------
# ``variance_components`` splits the variance of a prediction into three parts. The noise component
# common to all members does not depend on their number; the other two decrease with it. The figure
# shows them along the first input, with the other inputs at their medians, for five members and for
# the suggested number.

suggested = model.suggest_n_estimators(points)
larger = ELMEnsembleRegressor(suggested, **settings, random_state=0).fit(data.X, data.y)
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.4), sharey=True, layout="constrained")
for ax, ensemble in zip(axes, (model, larger), strict=True):
    VarianceDisplay.from_estimator(ensemble, data.X, feature=0, ax=ax, noise=False)
    ax.set(xlabel="first input (no unit)", title=f"{ensemble.n_estimators} members")
axes[0].set(ylabel="variance of the prediction (units of y, squared)", ylim=(0, 0.25))
axes[1].set_ylabel("")
handles, labels = axes[0].get_legend_handles_labels()
for ax in axes:
    ax.get_legend().remove()
figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=2)
figure.suptitle("Variance components along the first input")
plt.show()

# %%
# Next
# ----
# - :doc:`/guide/ensemble`: the formulas
# - :doc:`/which_error_bar`
# - :doc:`/gallery/compare/plot_reproduce`: comparison with the paper
