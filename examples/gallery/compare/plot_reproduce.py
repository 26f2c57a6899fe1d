"""
Reproducing the simulations of the paper
========================================

The variance estimates of ulmus are those of Guignard, Amato and Kanevski (2021). The paper
evaluates them by simulation: the true standard error of a prediction is computed from repeated
draws of noise and hidden weights, and compared with each estimate. ``reproduction`` repeats all of
these simulations. This example runs a part of them with a twentieth of the paper's replications.
The package ``reproduction`` is in the repository, not in the wheel: run the script from the root of
a clone, with ``PYTHONPATH=.``.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

from reproduction import STUDIES, Options, records, simulated
from reproduction.figures import coverage

# %%
# Simulation
# ----------
# Table 2 of the paper: Friedman's function of five inputs, 500 rows, noise variance 0.5, and
# members of 91 units fitted by least squares or ridge regression. True standard errors are computed
# from 500 ensembles (10,000 in the paper), estimates from 50 replications (1,000 in the paper).
# Ensembles of 100 members are omitted to save time.

options = Options(replications=50, ensembles=500)
study = replace(STUDIES["friedman"], members=(5, 10, 20))
result = simulated(study, options)
entries = records("table2", {"friedman": result})
print(f"{len(entries)} entries of table 2")

# %%
# Comparison with table 2
# -----------------------
# ``se`` is the median standard error over points, ``e`` the median absolute error of an estimate,
# ``re`` its median relative error. BR is the bias-reduced estimate, the default of ulmus; NHo is
# the naive one. The relative errors at test points:

table = pd.DataFrame(entries)
shown = table[(table.measure == "re") & (table.split == "test")]
shown = shown[["setting", "n_estimators", "estimate", "mean", "paper_mean"]]
shown.round(3).reset_index(drop=True)

# %%
# Bars are plus and minus two Monte-Carlo standard errors of the mean over 50 replications. They
# exclude the variability due to the draw of the inputs, which has a standard deviation of up to
# 0.005 (:doc:`/project/reproduction`).

LOOKS = {"BR": ("#0072B2", "o", "BR, bias reduced"), "NHo": ("#D55E00", "s", "NHo, naive")}
errors = table[(table.measure == "re") & (table.split == "test")]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
for ax, setting in zip(axes, ("plain", "ridge"), strict=True):
    for estimate, (colour, mark, label) in LOOKS.items():
        rows = errors[(errors.setting == setting) & (errors.estimate == estimate)]
        position = np.arange(len(rows))
        bar = 2 * rows["sd"] / np.sqrt(options.replications)
        filled = {"color": colour, "marker": mark, "linestyle": "", "capsize": 4}
        hollow = {"color": colour, "marker": mark, "linestyle": "", "markerfacecolor": "white"}
        ax.errorbar(position - 0.08, rows["mean"], bar, **filled, label=f"{label}: ulmus")
        ax.errorbar(position + 0.08, rows["paper_mean"], **hollow, label=f"{label}: paper")
    ax.set_xticks(position, rows["n_estimators"])
    ax.set(xlabel="number of members", xlim=(-0.5, 2.5), title=f"{setting} members")
axes[0].set(ylabel="relative error of the standard error", ylim=(0, None))
axes[0].legend(loc="lower center")
figure.suptitle("Relative error of the estimated standard error: paper and simulation")
plt.show()

# %%
# Coverage of the function
# ------------------------
# Figure 4 of the paper estimates the coverage of the true function :math:`f` by predictions plus
# and minus 1.96 standard errors, along the diagonal of the cube. Here the true standard errors of
# the 500 ensembles are used, so that estimation of the variance plays no role. With 91 units the
# prediction is biased in the centre, and coverage is low. With 300 units and a small ridge
# parameter the bias is small, and coverage is close to nominal. The grey band is the 95 % binomial
# range for 500 ensembles.

large_layer = simulated(STUDIES["wide"], options)

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
diagonal = result.design.inputs[result.design.curve, 0]
count = stats.binom(options.ensembles, 0.95)
limits = np.array([count.ppf(0.025), count.ppf(0.975)]) / options.ensembles
ax.axhspan(*limits, color="#DDDDDD", label="95 % binomial range")
ax.axhline(0.95, color="black", linestyle="--", linewidth=1, label="nominal")
ax.plot(diagonal, coverage(result, None), color="#D55E00", label="91 units, least squares")
ax.plot(
    diagonal, coverage(large_layer, None), color="#0072B2", marker=".", label="300 units, ridge"
)
ax.set(xlabel="all five inputs (no unit)", ylabel="coverage of the true function")
ax.set(ylim=(0.5, 1.02), title="Coverage of f is reduced by bias, not by variance")
ax.legend(loc="lower right")
plt.show()

# %%
# For this reason the default confidence intervals of ulmus for the function are based on
# undersmoothed networks (:doc:`/guide/intervals`).
#
# All tables and figures
# ----------------------
# ``python -m reproduction all --quick`` recomputes every table and figure with a tenth of the
# replications, ``python -m reproduction all`` with all of them. :doc:`/project/reproduction` lists
# which of the 376 published numbers agree.
#
# Next
# ----
# - :doc:`/project/reproduction`
# - :doc:`/guide/ensemble`: the formulas
# - :doc:`/coming_from/uncelme`: the authors' own program
