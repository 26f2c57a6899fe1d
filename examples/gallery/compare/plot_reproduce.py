"""
The paper's numbers beside ours
===============================

The variance estimates of ulmus come from Guignard, Amato and Kanevski (2021). The paper tests them
by simulation: it draws noise and hidden weights again and again, so that the true standard error of
a prediction is known, and asks how far each estimate is from it. ``reproduction`` repeats all
of these simulations. This page does a part of them with a twentieth of the paper's replications,
and puts its numbers beside ours.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from reproduction import STUDIES, Options, records, simulated
from reproduction.figures import coverage

# %%
# The simulation
# --------------
# Table 2 of the paper is about Friedman's function of five inputs, 500 rows, noise of variance one
# half, and members of 91 units fitted by least squares or with ridge. The true standard errors come
# from 500 ensembles here and 10,000 in the paper, the estimates from 50 replications here and 1,000
# there. To save time we leave out its ensembles of 100 members.

options = Options(replications=50, ensembles=500)
study = replace(STUDIES["friedman"], members=(5, 10, 20))
result = simulated(study, options)
found = records("table2", {"friedman": result})
print(f"{len(found)} numbers of table 2")

# %%
# Ours beside theirs
# ------------------
# ``se`` is the median standard error over points, ``e`` the median distance of an estimate from the
# true one, ``re`` the same relative to the true one. BR is the bias-reduced estimate, which ulmus
# uses by default; NHo is the naive one. Below are the relative errors at test points.

table = pd.DataFrame(found)
shown = table[(table.measure == "re") & (table.split == "test")]
shown = shown[["setting", "n_estimators", "estimate", "mean", "paper_mean"]]
shown.round(3).reset_index(drop=True)

# %%
# The figure has them all. The bars at our numbers are of the mean over 50 replications: two
# standard errors each way. They leave out that the paper's inputs are another draw than ours, which
# moves these numbers with a standard deviation of up to 0.005 (:doc:`/project/reproduction`).

LOOKS = {"BR": ("#0072B2", "o", "BR, bias reduced"), "NHo": ("#D55E00", "s", "NHo, naive")}
errors = table[(table.measure == "re") & (table.split == "test")]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, setting in zip(axes, ("plain", "ridge"), strict=True):
    for estimate, (colour, mark, label) in LOOKS.items():
        rows = errors[(errors.setting == setting) & (errors.estimate == estimate)]
        place = np.arange(len(rows))
        bar = 2 * rows["sd"] / np.sqrt(options.replications)
        ours = {"color": colour, "marker": mark, "linestyle": "", "capsize": 4}
        theirs = {"color": colour, "marker": mark, "linestyle": "", "markerfacecolor": "white"}
        ax.errorbar(place - 0.08, rows["mean"], bar, **ours, label=f"{label}: ours")
        ax.errorbar(place + 0.08, rows["paper_mean"], **theirs, label=f"{label}: the paper's")
    ax.set_xticks(place, rows["n_estimators"])
    ax.set(xlabel="members of the ensemble", xlim=(-0.5, 2.5), title=f"{setting} members")
axes[0].set(ylabel="relative error of the standard error", ylim=(0, None))
axes[0].legend(loc="lower center")
figure.suptitle("The bias-reduced estimate is nearer to the truth, in the paper and here")
plt.show()

# %%
# What the paper warns of
# -----------------------
# A standard error is not an interval for the function. The paper's figure 4 takes predictions plus
# and minus 1.96 standard errors along the diagonal of the cube, and counts how often these hold the
# true function :math:`f`. Here are those with the true standard error, for the 500 ensembles of the
# ground truth: nothing is left that an estimate of variance could improve. With 91 units the
# prediction is biased in the middle, and the intervals miss. With 300 units and a little ridge the
# bias is small, and they hold the function nearly as often as promised. The grey band is where 19
# of 20 shares of 500 would lie if every interval covered with a probability of 95 %.

wide = simulated(STUDIES["wide"], options)

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
diagonal = result.design.inputs[result.design.curve, 0]
law = stats.binom(options.ensembles, 0.95)
chance = np.array([law.ppf(0.025), law.ppf(0.975)]) / options.ensembles
ax.axhspan(*chance, color="#DDDDDD", label="by chance, 19 of 20")
ax.axhline(0.95, color="black", linestyle="--", linewidth=1, label="as promised")
ax.plot(diagonal, coverage(result, None), color="#D55E00", label="91 units, least squares")
ax.plot(diagonal, coverage(wide, None), color="#0072B2", marker=".", label="300 units, ridge")
ax.set(xlabel="all five inputs (no unit)", ylabel="share of intervals that hold the function")
ax.set(ylim=(0.5, 1.02), title="Bias, not variance, makes intervals miss the function")
ax.legend(loc="lower right")
plt.show()

# %%
# The default intervals of ulmus for the function are made otherwise for this reason: wide networks
# that smooth less (:doc:`/guide/intervals`).
#
# All of it
# ---------
# ``ulmus reproduce all --quick`` recomputes every table and figure with a tenth of the
# replications, ``ulmus reproduce all`` with all of them. :doc:`/project/reproduction` tells which
# of the 376 numbers agree, which do not, and why.
#
# Next
# ----
# :doc:`/project/reproduction`, :doc:`/guide/ensemble` for the formulas, and
# :doc:`/coming_from/uncelme` for users of the authors' own program.
