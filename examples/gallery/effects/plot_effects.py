"""
Averages, differences and slopes, each with its bar
===================================================

Rarely does anybody want the function at a point. The questions are: what is the mean of this
group? What does a change of an input change? How steep is it, and where? Each answer is a weighted
sum of values, or derivatives, of the fitted function, and has a standard error of its own.

We ask the 442 patients of scikit-learn's diabetes data.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from ulmus import ELMEnsembleRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = ELMEnsembleRegressor(random_state=0).fit(X, y)

age = pd.cut(X.age, [0, 40, 50, 60, 80], labels=["to 40", "41-50", "51-60", "over 60"])
weight = pd.cut(X.bmi, [0, 25, 30, 50], labels=["to 25", "25-30", "over 30"])

averages = model.average(X, by=age, simultaneous=True)
quartiles = dict.fromkeys(["bmi", "s5", "bp", "age"], "iqr")
differences = model.compare(X, quartiles, simultaneous=True)
slopes = model.slope(X, "bmi", by=weight, simultaneous=True)

# %%
# Three questions
# ---------------


def draw(ax, labels, frame, colour, marker):
    """A mark and a 95 % bar for each answer, the first on top."""
    bars = np.abs(frame[["conf_low", "conf_high"]].T - frame.estimate).to_numpy()
    places = range(len(frame))
    ax.errorbar(frame.estimate, places, xerr=bars, fmt=marker, color=colour, capsize=4)
    ax.set_yticks(places, labels)
    ax.set_ylim(len(frame) - 0.5, -0.5)


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8, 3.6), layout="constrained")
draw(left, averages["age"], averages, "#0072B2", "o")
left.set(title="Mean score", xlabel="score", ylabel="age (years)")
draw(middle, differences.term, differences, "#D55E00", "s")
middle.set(title="Upper minus lower\nquartile of an input", xlabel="change of the score")
middle.axvline(0, color="black", linewidth=1, linestyle=":")
draw(right, slopes["bmi"], slopes, "#009E73", "^")
right.set(
    title="Steepness in the\nbody mass index",
    xlabel="score for each kg/m²",
    ylabel="body mass index (kg/m²)",
)
right.axvline(0, color="black", linewidth=1, linestyle=":")
figure.suptitle("Each answer has the error bar of that answer (95 %, a panel together)")
plt.show()

# %%
# The bars are of the *mean function*, over new noise and new hidden weights: of the average over
# these patients, not of a single one. Within a panel all of them hold together with probability
# 95 % (``simultaneous=True``). They leave the bias of smoothing out;
# ``target="function"`` asks for the true function instead, with wider bars.
#
# Averages
# --------
#
# ``by`` takes a column, an array of labels or several of these. Do the groups of age differ?
# ``hypothesis="pairwise"`` has all differences, with p-values adjusted by Holm's method.

pairs = model.average(X, by=age, hypothesis="pairwise", adjust="holm")
pairs["p_value"] = pairs["p_value"].map("{:.0e}".format)
pairs[["term", "estimate", "std_error", "p_value"]].round(1)

# %%
# Differences
# -----------
#
# Everyone's body mass index is set to 25, then to 30, and the two predictions are compared. Whether
# slimming would do the same is not for a regression to say.

change = model.compare(X, {"bmi": (25, 30)})
change[["term", "contrast", "estimate", "std_error", "conf_low", "conf_high"]].round(2)

# %%
# Slopes
# ------
#
# Derivatives are exact, and in units of the score for each unit of the column. Slopes of columns
# with different units cannot be compared with each other; differences between quartiles can.

slopes = model.slope(X, ["bmi", "bp", "s5"])
slopes[["term", "contrast", "estimate", "std_error", "conf_low", "conf_high"]].round(2)

# %%
# The error of a mean is not the mean error
# -----------------------------------------
#
# Predictions for different patients come from one fit and err together. If their errors were
# independent, they would mostly cancel in a mean. They do not.

right_one = model.average(X).std_error[0]
each = model.predict_var(X, component="model")
independent = np.sqrt(each.sum()) / len(X)
print(f"standard error of the mean over {len(X)} patients: {right_one:.2f}")
print(f"if errors were independent: {independent:.2f}, {right_one / independent:.1f} times less")
print(f"mean of the standard errors of single predictions: {np.sqrt(each).mean():.2f}")

# %%
# Probabilities
# -------------
#
# How likely is a score over 250? This is about new observations, with their noise.

probable = model.exceedance(X, 250)
print(f"more likely than not: {np.sum(probable > 0.5)} of {len(X)} patients")

# %%
# Next
# ----
#
# - :doc:`/guide/effects` has the definitions, and what was measured about these bars.
# - :doc:`/gallery/effects/plot_simultaneous_band` asks where a curve rises.
# - :doc:`/gallery/start/plot_pipeline` asks a table with categories.
