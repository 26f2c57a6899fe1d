"""
Inputs that do not matter
=========================

Friedman's function has ten inputs and uses five of them:

.. math:: f(x) = 10 \\sin(\\pi x_0 x_1) + 20 (x_2 - 1/2)^2 + 10 x_3 + 5 x_4 .

The hidden weights of an Extreme Learning Machine are drawn at random, so by themselves they look
at the useless inputs as much as at the others. A learned map of the inputs turns towards the
useful ones. Here f is known, so that we can see what the map finds and what it gains.
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
# Which inputs matter
# -------------------
#
# An input matters as much as the prediction changes when its value is exchanged for that of another
# row. ``feature_relevance_`` is the share of each input in the sum of these (squared) changes.
# ``feature_relevance_std_``, the thin bar, is its standard deviation over maps that the same rows
# support about as well. It does not say how much the share would move with other rows, and is no
# test of a hypothesis. As f is known, its true shares can be marked too.


def friedman(x):
    """The function without noise."""
    first = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return first + 10 * x[:, 3] + 5 * x[:, 4]


rng = np.random.default_rng(0)
here, there = rng.uniform(size=(2, 100_000, 10))
changes = []
for j in range(10):
    exchanged = here.copy()
    exchanged[:, j] = there[:, j]
    changes.append(np.mean((friedman(exchanged) - friedman(here)) ** 2))
true_share = np.array(changes) / np.sum(changes)

display = RelevanceDisplay.from_estimator(model)
order = np.argsort(-model.feature_relevance_, kind="stable")
display.ax_.plot(
    true_share[order], range(10), "D", color="#D55E00", label="share in the true function"
)
display.ax_.legend(loc="lower right")
display.ax_.set(
    ylabel="input",
    title="400 noisy rows are enough to see that x5 to x9 are useless",
)
display.figure_.set_size_inches(8, 4.2)
plt.show()

# %%
# The five useless inputs are found. The true shares of the others are near their bars, and still
# several of these standard deviations away from some: the thin bars are no intervals for the truth.
#
# What the map gains
# ------------------
#
# The error to the known f at 500 new points, with the default map and without any, for three
# tables of each size. The noise has standard deviation 1 and is not part of this error.

new_points = rng.uniform(size=(500, 10))
f = friedman(new_points)
sizes = {"learned map": ("auto", (50, 100, 200)), "no map": (None, (50, 100, 200, 400, 800))}
rows = []
for title, (input_map, numbers) in sizes.items():
    for n, seed in product(numbers, (10, 11, 12)):
        X, y = make_friedman1(n, noise=1.0, random_state=seed)
        fit = ELMEnsembleRegressor(input_map=input_map, random_state=0).fit(X, y)
        error = np.sqrt(np.mean((fit.predict(new_points) - f) ** 2))
        claimed = np.sqrt(np.mean(fit.predict_var(new_points, component="model")))
        rows.append({"rows": n, "fit": title, "error": error, "claimed": claimed})
errors = pd.DataFrame(rows)
mean = errors.groupby(["fit", "rows"])[["error", "claimed"]].mean()

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
looks = {"no map": ("#D55E00", "s"), "learned map": ("#0072B2", "o")}
for title, (colour, marker) in looks.items():
    each = errors[errors["fit"] == title]
    ax.plot(each.rows, each.error, marker, color=colour, markersize=5, alpha=0.5, linestyle="")
    ax.plot(
        mean.loc[title].index, mean.loc[title, "error"], color=colour, marker=marker, label=title
    )
ax.set(
    xscale="log",
    yscale="log",
    xlabel="rows of the table",
    ylabel="error to the true function (units of y)",
    title="With a map, 100 rows do more than 800 without",
)
ax.set_xticks([50, 100, 200, 400, 800], ["50", "100", "200", "400", "800"])
ax.minorticks_off()
ax.set_yticks([0.3, 0.5, 1.0, 2.0], ["0.3", "0.5", "1", "2"])
ax.legend(title="mean of three tables, and each")
plt.show()

# %%
# Do the error bars know?
# -----------------------
#
# The model claims a standard error at each point. Its root mean square should be near the error
# that we can see here because f is known. It is the error over new noise and new hidden weights;
# what smoothing takes away, the bias, is in the first column and not in the second.

mean.unstack("fit").round(2).fillna("")

# %%
# Next
# ----
#
# - :doc:`/guide/input_maps` tells how the map is learned, and what it costs.
# - :doc:`/gallery/start/plot_pipeline` has a table with categories and missing values.
# - :doc:`/guide/calibration` has the measured coverage of default fits.
