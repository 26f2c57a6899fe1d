"""
Fit a table, and read its error bars
====================================

Of 442 people with diabetes ten things are known: age, sex, body mass index, blood pressure and six
blood values. A year later it was scored how far the disease had progressed. This page fits that
score, draws its two kinds of error bar and says what each of them is *of*.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from ulmus import ELMEnsembleRegressor
from ulmus.plot import PredictionDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = ELMEnsembleRegressor(random_state=0).fit(X, y)

# %%
# Two bands
# ---------
#
# We move the body mass index and keep the other nine columns at their medians.

display = PredictionDisplay.from_estimator(model, X, y, feature="bmi")
display.ax_.set(
    xlabel="body mass index (kg/m²), other inputs at their medians",
    ylabel="progression after a year (score)",
    title="The function is known far better than the next patient",
)
display.figure_.set_size_inches(8, 4.8)
plt.show()

# %%
# - The narrow band is for the **true function**: the mean score of all patients with these
#   inputs. More patients would make it narrower. Such intervals are approximate.
# - The wide band is for **one new patient** with these inputs. More patients would not make it
#   much narrower: these ten columns leave patients different.
#
# The dots are all 442 patients, whose other columns are not at their medians. They are there to
# show where data are, and need not lie in the wide band as often as it says.
#
# What was fitted, in words
# -------------------------

print(model.summary())

# %%
# Numbers for some patients
# -------------------------
#
# ``predict(X, return_std=True)`` gives the standard deviation of a new observation, as
# scikit-learn's own regressors do. The standard error of the prediction itself is the square root
# of ``predict_var(X, component="model")``. They are bars of different things:

some = X.iloc[:4]
mean, sd_of_observation = model.predict(some, return_std=True)
pd.DataFrame(
    {
        "observed": y.iloc[:4],
        "prediction": mean,
        "sd of a new observation": sd_of_observation,
        "standard error of the prediction": np.sqrt(model.predict_var(some, component="model")),
    }
).round(1)

# %%
# Intervals for new observations are made from the errors of left-out rows (jackknife+, without
# refits), and assume no normal distribution. Those for the function are a centre plus and minus a
# Student quantile of standard errors; their centre smooths less than the prediction.

pd.DataFrame(
    np.hstack(
        [model.predict_interval(some, 0.9), model.predict_interval(some, 0.9, kind="confidence")]
    ),
    columns=pd.MultiIndex.from_product(
        [["a new observation", "the true function"], ["from", "to"]], names=["90 % for", None]
    ),
).round(0)

# %%
# Diagnostics
# -----------
#
# ``check()`` leaves out each training row in turn and looks for groups of rows that the
# intervals miss too often. The better test are rows that the fit has never seen:

seen, unseen, y_seen, y_unseen = train_test_split(X, y, test_size=0.4, random_state=0)
print(ELMEnsembleRegressor(random_state=0).fit(seen, y_seen).check(unseen, y_unseen))

# %%
# Next
# ----
#
# - :doc:`/which_error_bar` says which of the bars is the one you need.
# - :doc:`/gallery/start/plot_motorcycle` has noise that is not the same everywhere.
# - :doc:`/gallery/effects/plot_effects` asks the same patients for means, differences and slopes.
