"""
A first fit: confidence and prediction intervals
================================================

The diabetes data of scikit-learn contain age, sex, body mass index, blood pressure and six blood
serum measurements of 442 patients, and a score of disease progression one year later. This example
fits the score and shows confidence intervals for the regression function and prediction intervals
for new observations.
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
# Confidence band and prediction band
# -----------------------------------
#
# Predictions along the body mass index, with the other nine columns at their medians:

display = PredictionDisplay.from_estimator(model, X, y, feature="bmi")
display.ax_.set(
    xlabel="body mass index (kg/m²), other inputs at their medians",
    ylabel="progression after a year (score)",
    title="Prediction with 95 % confidence and prediction bands",
)
display.figure_.set_size_inches(8, 4.8)
plt.show()

# %%
# - The narrow band is a confidence band for the **regression function**: the mean score of all
#   patients with these inputs. It shrinks as rows are added and is approximate.
# - The wide band is a prediction band for **one new patient** with these inputs. It includes the
#   noise and hardly shrinks as rows are added.
#
# The dots are all 442 patients. Their other columns are not at the medians, so that their share
# inside the wide band need not be 95 %.
#
# Summary of the fit
# ------------------

print(model.summary())

# %%
# Standard deviation and standard error
# -------------------------------------
#
# ``predict(X, return_std=True)`` returns the standard deviation of a new observation, as
# scikit-learn's regressors do. The standard error of the prediction is the square root of
# ``predict_var(X, component="model")``.

patients = X.iloc[:4]
mean, sd = model.predict(patients, return_std=True)
pd.DataFrame(
    {
        "observed": y.iloc[:4],
        "prediction": mean,
        "sd of a new observation": sd,
        "standard error of the prediction": np.sqrt(model.predict_var(patients, component="model")),
    }
).round(1)

# %%
# Prediction intervals are based on leave-one-out residuals (jackknife+, without refits) and do not
# assume normality. Confidence intervals for the function are Student intervals around the
# undersmoothed fit.

prediction = model.predict_interval(patients, 0.9)
confidence = model.predict_interval(patients, 0.9, kind="confidence")
pd.DataFrame(
    np.hstack([prediction, confidence]),
    columns=pd.MultiIndex.from_product(
        [["new observation", "regression function"], ["lower", "upper"]], names=["90 %", None]
    ),
).round(0)

# %%
# Diagnostics
# -----------
#
# ``check()`` tests the leave-one-out residuals, among others for groups of rows with low coverage.
# With held-out rows it is an out-of-sample test:

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
print(ELMEnsembleRegressor(random_state=0).fit(X_train, y_train).check(X_test, y_test))

# %%
# Next
# ----
#
# - :doc:`/which_error_bar`
# - :doc:`/gallery/start/plot_motorcycle`: heteroskedastic noise
# - :doc:`/gallery/effects/plot_effects`: marginal means, contrasts and slopes of the same data
