"""
Marginal means, contrasts and slopes with standard errors
=========================================================

Marginal means of groups, contrasts between two values of an input, and average slopes are linear
functionals of the fitted function. ``average``, ``compare`` and ``slope`` compute each of them with
its standard error in closed form.

The data are the 442 patients of scikit-learn's diabetes data.
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

means = model.average(X, by=age, simultaneous=True)
quartiles = dict.fromkeys(["bmi", "s5", "bp", "age"], "iqr")
contrasts = model.compare(X, quartiles, simultaneous=True)
slopes = model.slope(X, "bmi", by=weight, simultaneous=True)

# %%
# Three estimands
# ---------------


def draw(ax, labels, frame, colour, marker):
    """Estimates with 95 % intervals, the first on top."""
    bars = np.abs(frame[["conf_low", "conf_high"]].T - frame.estimate).to_numpy()
    positions = range(len(frame))
    ax.errorbar(frame.estimate, positions, xerr=bars, fmt=marker, color=colour, capsize=4)
    ax.set_yticks(positions, labels)
    ax.set_ylim(len(frame) - 0.5, -0.5)


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8, 3.6), layout="constrained")
draw(left, means["age"], means, "#0072B2", "o")
left.set(title="Marginal mean", xlabel="score", ylabel="age (years)")
draw(middle, contrasts.term, contrasts, "#D55E00", "s")
middle.set(title="Contrast: upper minus\nlower quartile", xlabel="change in score")
middle.axvline(0, color="black", linewidth=1, linestyle=":")
draw(right, slopes["bmi"], slopes, "#009E73", "^")
right.set(
    title="Slope in the\nbody mass index",
    xlabel="score per kg/m²",
    ylabel="body mass index (kg/m²)",
)
right.axvline(0, color="black", linewidth=1, linestyle=":")
figure.suptitle("Effects with simultaneous 95 % confidence intervals per panel")
plt.show()

# %%
# The intervals cover averages of the *expectation of the estimator* over these patients, not the
# score of a single patient. They are simultaneous within a panel (``simultaneous=True``) and
# exclude the smoothing bias; ``target="function"`` covers the regression function, with wider
# intervals.
#
# Marginal means
# --------------
#
# ``by`` takes a column, an array of labels or several of these. ``hypothesis="pairwise"`` tests all
# differences between age groups, here with p-values adjusted by Holm's method.

pairs = model.average(X, by=age, hypothesis="pairwise", adjust="holm")
pairs["p_value"] = pairs["p_value"].map("{:.0e}".format)
pairs[["term", "estimate", "std_error", "p_value"]].round(1)

# %%
# Contrasts
# ---------
#
# The body mass index of all patients is set to 25 and to 30, and the two predictions are
# subtracted. This is a contrast of predictions, not a causal effect.

contrast = model.compare(X, {"bmi": (25, 30)})
contrast[["term", "contrast", "estimate", "std_error", "conf_low", "conf_high"]].round(2)

# %%
# Slopes
# ------
#
# Derivatives are exact, in units of the score per unit of the column. Slopes of columns with
# different units are not comparable; contrasts between quartiles are.

slopes = model.slope(X, ["bmi", "bp", "s5"])
slopes[["term", "contrast", "estimate", "std_error", "conf_low", "conf_high"]].round(2)

# %%
# Standard error of an average
# ----------------------------
#
# Predictions of one fit are correlated between patients, so that their errors do not average out as
# independent errors would.

std_error = model.average(X).std_error[0]
variances = model.predict_var(X, component="model")
independent = np.sqrt(variances.sum()) / len(X)
print(f"standard error of the mean over {len(X)} patients: {std_error:.2f}")
print(
    f"under independence: {independent:.2f}, smaller by a factor of {std_error / independent:.1f}"
)
print(f"mean standard error of single predictions: {np.sqrt(variances).mean():.2f}")

# %%
# Exceedance probabilities
# ------------------------
#
# The probability that a new observation, noise included, exceeds 250:

probability = model.exceedance(X, 250)
print(f"probability above 0.5: {np.sum(probability > 0.5)} of {len(X)} patients")

# %%
# Next
# ----
#
# - :doc:`/guide/effects`: definitions and measured coverage
# - :doc:`/gallery/effects/plot_simultaneous_band`: partial dependence and its slope
# - :doc:`/gallery/start/plot_tables`: effects of a pipeline with categorical columns
