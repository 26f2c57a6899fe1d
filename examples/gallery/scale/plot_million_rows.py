"""
A million rows from a file
==========================

A fit is a sum over blocks of rows. So a table need not be in memory: ``fit_blocks`` reads it from
a file, block by block, several times over, and keeps only matrices of the size of the model.

This page writes a million simulated rows to a Parquet file, fits from the file, watches the memory
of the process, and compares the result with a fit in memory. The ensemble is small, 4 members of
100 units, so that the page runs in about a minute and a half on one core.
"""

import tempfile
from itertools import islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage, mean_width
from ulmus.plot import PredictionDisplay
from ulmus.tables import from_arrow

# %%
# The table
# ---------
# The rows look like hourly measurements of ozone: the time of day, the temperature, the wind and a
# day of the year that does not matter. The function and the noise are ours, so that the truth is
# known. The noise is twice as large in calm air as in wind.

N_ROWS, GROUP_ROWS = 1_000_000, 50_000


def true_ozone(table):
    """Ozone without noise, in micrograms for each cubic metre."""
    warm = 1 / (1 + np.exp(-(table.temperature - 18) / 7))
    day = 1 + 0.6 * np.sin(2 * np.pi * (table.hour - 9) / 24)
    return 30 + 70 * warm * day - 3 * table.wind


def noise_sd(table):
    """Standard deviation of the noise, in the same unit."""
    return 6 + 6 * np.exp(-table.wind / 2)


def simulated_rows(seed, n):
    """One part of the table."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "hour": rng.uniform(0, 24, n),
            "temperature": rng.normal(15, 8, n).clip(-10, 38),
            "wind": rng.gamma(2, 1.5, n).clip(0, 15),
            "day_of_year": rng.uniform(1, 366, n),
        }
    )
    table["ozone"] = true_ozone(table) + noise_sd(table) * rng.standard_normal(n)
    return table


folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "ozone.parquet"
schema = pa.Schema.from_pandas(simulated_rows(0, 10), preserve_index=False)
with pq.ParquetWriter(file, schema) as writer:
    for part in range(N_ROWS // GROUP_ROWS):
        rows = pa.Table.from_pandas(simulated_rows(part, GROUP_ROWS), schema)
        writer.write_table(rows, row_group_size=GROUP_ROWS)
written = pq.ParquetFile(file).metadata
print(f"{written.num_rows:,} rows in {written.num_row_groups} row groups")

# %%
# The fit
# -------
# :func:`ulmus.tables.from_arrow` is a table in blocks: something that can be iterated as often as
# the fit asks. ``Watched`` passes the blocks on and notes the resident memory of the whole process
# at each. What happens between two notes is not seen.

MEGABYTE = 1e6


class Watched:
    """Blocks that note the memory of this process whenever one of them is asked for."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.readings = []

    def __iter__(self):
        notes = []
        self.readings.append(notes)
        for block in self.blocks:
            notes.append(psutil.Process().memory_info().rss / MEGABYTE)
            yield block


before = psutil.Process().memory_info().rss / MEGABYTE
blocks = Watched(from_arrow(file, target="ozone", batch_rows=25_000))
model = ELMEnsembleRegressor(n_estimators=4, n_neurons=100, expand_inputs=None, random_state=0)
model.fit_blocks(blocks)
print(f"the file was read {sum(len(notes) > 1 for notes in blocks.readings)} times")

# %%
# What a million rows tell, and what they do not
# ----------------------------------------------
# The figure follows the prediction through a day and along the wind, the other inputs at their
# medians. The dark band is of the true function, the light one of a single new measurement. More
# rows make the first narrower, and here it is no wider than the line. The second stays as wide as
# the noise, and follows it.

seen = simulated_rows(0, 5_000).drop(columns="ozone")
middle = pd.DataFrame({name: np.full(200, seen[name].median()) for name in seen})
units = {"hour": "hour of the day (h)", "wind": "wind (m/s)"}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
for ax, (name, label) in zip(axes, units.items(), strict=True):
    display = PredictionDisplay.from_estimator(model, seen, feature=name, ax=ax)
    truth = true_ozone(middle.assign(**{name: display.x}))
    ax.plot(display.x, truth, color="#D55E00", linestyle="--", label="true function")
    ax.set(xlabel=label, ylabel="ozone (µg/m³)")
axes[0].legend(fontsize="small", ncols=2, loc="upper left")
axes[0].set(xticks=range(0, 25, 4), ylim=(0, 115))
axes[1].set_ylabel("")
axes[1].get_legend().remove()
figure.suptitle("A million rows: the function is known, an observation is not")
plt.show()

# %%
# On rows that the fit has not seen, the intervals for a new measurement are as good as promised, in
# calm air and in wind. The intervals for the function are approximate, and so narrow now that the
# small bias of 100 hidden units counts: more of them are what a million rows deserve.

new = simulated_rows(1_000, 5_000)
inputs = new.drop(columns="ozone")
observation = model.predict_interval(inputs, 0.95)
function = model.predict_interval(inputs, 0.95, kind="confidence")
for name, rows in {"calm": new.wind < 1, "windy": new.wind > 5}.items():
    held = coverage(new.ozone[rows], observation[rows])
    width = mean_width(observation[rows])
    print(f"{name:>5}: 95 % intervals of a measurement hold {held:.3f}, width {width:.1f} µg/m³")
held = coverage(true_ozone(new), function)
width = mean_width(function)
print(f"95 % intervals of the function hold it at {held:.3f}, width {width:.2f} µg/m³")

# %%
# Memory
# ------
# Each line is one reading of the file from its first row to its last. Memory that grew with the
# rows would be a rising line. What is drawn is the resident memory of the whole process above that
# before the fit: blocks that pyarrow reads ahead, the hidden features of one block, and sums of the
# size of the model. The table itself would fit into less; the hidden features of all its rows would
# not.

table_size = 8 * N_ROWS * len(schema) / MEGABYTE
features_size = 8 * N_ROWS * model.n_estimators * model.n_neurons / MEGABYTE

whole = [notes for notes in blocks.readings if len(notes) > 1]
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.axhline(features_size, color="#D55E00", linestyle="--", label="all hidden features at once")
for notes in whole:
    rows = 25_000 * np.arange(len(notes)) / 1e6
    ax.plot(rows, np.array(notes) - before, color="#0072B2", label=f"{len(whole)} readings")
ax.axhline(table_size, color="black", linestyle=":", label="the table")
ax.set_yscale("log")
ax.set_yticks(sizes := [30, 100, 300, 1_000, 3_000], sizes)
ax.set_yticks([], minor=True)
ax.set(xlabel="rows read (millions)", ylabel="memory above that before the fit (MB)")
ax.set(ylim=(20, 2 * features_size), title="Memory does not grow with the rows")
handles, labels = ax.get_legend_handles_labels()
once = dict(zip(labels, handles, strict=True))
ax.legend(once.values(), once.keys(), loc="center right", bbox_to_anchor=(1, 0.68))
plt.show()

# %%
# The same numbers as in memory
# -----------------------------
# The map of the inputs is learned from a sample of rows, and ``fit`` and ``fit_blocks`` draw other
# samples. Behind the same map they are one algorithm. So we give the map that was learned above to
# both and fit the first 50,000 rows, once from the file and once in memory. The largest relative
# differences of predictions and of variances are those of rounding.

given = model.get_params() | {"input_map": model.input_map_}
part = simulated_rows(0, GROUP_ROWS)
streamed = ELMEnsembleRegressor(**given).fit_blocks(list(islice(blocks.blocks, 2)))
in_memory = ELMEnsembleRegressor(**given).fit(part.drop(columns="ozone"), part.ozone)

for component in ("model", "noise"):
    one, other = (each.predict_var(inputs, component) for each in (streamed, in_memory))
    print(f"variance of the {component}: {np.max(np.abs(one / other - 1)):.0e}")
one, other = streamed.predict(inputs), in_memory.predict(inputs)
print(f"predictions: {np.max(np.abs(one / other - 1)):.0e}")
folder.cleanup()

# %%
# Next
# ----
# :doc:`/guide/scale` says what a stream does not know, :doc:`/gallery/scale/plot_dask` does the
# same on a cluster, and :doc:`/project/results` has times and memory of larger fits.
