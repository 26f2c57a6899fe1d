"""
Irrelevant inputs: automatic relevance determination
====================================================

Friedman's function depends on five of ten inputs:

.. math:: f(x) = 10 \\sin(\\pi x_0 x_1) + 20 (x_2 - 1/2)^2 + 10 x_3 + 5 x_4 .

The random hidden weights of an Extreme Learning Machine give all inputs the same scale. A learned
input map rescales them by automatic relevance determination (ARD). This example compares the
estimated relevance with that of the true function, and the error with and without an input map.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1

from ulmus import ELMEnsembleRegressor
from ulmus.plot import RelevanceDisplay

X, y = make_friedman1(400, noise=1.0, random_state=0)
model = ELMEnsembleRegressor(random_state=0).fit(X, y)

# %%
# Feature relevance
# -----------------
#
# ``feature_relevance_`` is the total-effect share of each input: the mean squared change of the
# prediction when its value is replaced by that of another row, normalised to a sum of one.
# ``feature_relevance_std_`` (the thin bar) is its standard deviation over input maps of similar
# marginal likelihood. It is not a sampling standard error. The shares of the true function are
# computed by Monte Carlo.


def friedman(x):
    """The true function."""
    first = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return first + 10 * x[:, 3] + 5 * x[:, 4]


rng = np.random.default_rng(0)
points, others = rng.uniform(size=(2, 100_000, 10))
changes = []
for j in range(10):
    replaced = points.copy()
    replaced[:, j] = others[:, j]
    changes.append(np.mean((friedman(replaced) - friedman(points)) ** 2))
true_share = np.array(changes) / np.sum(changes)

display = RelevanceDisplay.from_estimator(model)
order = np.argsort(-model.feature_relevance_, kind="stable")
display.ax_.plot(
    true_share[order], range(10), "D", color="#D55E00", label="share in the true function"
)
display.ax_.legend(loc="lower right")
display.ax_.set(
    ylabel="input",
    title="The inputs x5 to x9 have zero relevance",
)
display.figure_.set_size_inches(8, 4.2)
plt.show()

# %%
# The irrelevant inputs are identified. Some true shares differ from the estimates by several of
# these standard deviations, which are not confidence intervals for the true shares.
#
# Error with and without an input map
# -----------------------------------
#
# RMSE to the true function at 500 new points, with the default input map and without, for three
# samples of each size. The noise has standard deviation 1 and is not part of this error.

new_points = rng.uniform(size=(500, 10))
f = friedman(new_points)
sizes = {"input map": ("auto", (50, 100, 200)), "no map": (None, (50, 100, 200, 400, 800))}
rows = []
for title, (input_map, numbers) in sizes.items():
    for n, seed in product(numbers, (10, 11, 12)):
        X, y = make_friedman1(n, noise=1.0, random_state=seed)
        fit = ELMEnsembleRegressor(input_map=input_map, random_state=0).fit(X, y)
        error = np.sqrt(np.mean((fit.predict(new_points) - f) ** 2))
        std_error = np.sqrt(np.mean(fit.predict_var(new_points, component="model")))
        rows.append({"rows": n, "fit": title, "error": error, "std_error": std_error})
errors = pd.DataFrame(rows)
mean = errors.groupby(["fit", "rows"])[["error", "std_error"]].mean()

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
looks = {"no map": ("#D55E00", "s"), "input map": ("#0072B2", "o")}
for title, (colour, marker) in looks.items():
    each = errors[errors["fit"] == title]
    ax.plot(each.rows, each.error, marker, color=colour, markersize=5, alpha=0.5, linestyle="")
    ax.plot(
        mean.loc[title].index, mean.loc[title, "error"], color=colour, marker=marker, label=title
    )
ax.set(
    xscale="log",
    yscale="log",
    xlabel="number of rows",
    ylabel="RMSE to the true function (units of y)",
    title="100 rows with an input map reach a smaller error than 800 without",
)
ax.set_xticks([50, 100, 200, 400, 800], ["50", "100", "200", "400", "800"])
ax.minorticks_off()
ax.set_yticks([0.3, 0.5, 1.0, 2.0], ["0.3", "0.5", "1", "2"])
ax.legend(title="three samples and their mean")
plt.show()

# %%
# Standard error and error
# ------------------------
#
# The root mean square of the estimated standard errors, beside the RMSE to the true function. The
# standard error covers variability over new noise and new hidden weights; the RMSE also includes
# the bias.

mean.unstack("fit").round(2).fillna("")

# %%
# Next
# ----
#
# - :doc:`/guide/input_maps`
# - :doc:`/gallery/start/plot_tables`: categorical columns and missing values
# - :doc:`/guide/calibration`: measured coverage of default fits
