"""
Out-of-core fitting of a million rows
=====================================

A fit is a sum over blocks of rows. ``fit_blocks`` reads a table from a file block by block, in
several passes, and keeps only matrices of the size of the model in memory.

This example writes a million simulated rows to a Parquet file, fits from the file, records the
memory of the process, and compares the result with a fit in memory. The ensemble is small, 4
members of 100 units; the run time is about a minute and a half on one core.
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
# Data
# ----
# The simulated rows resemble hourly measurements of ozone. Inputs are the time of day, the
# temperature, the wind, and an irrelevant day of the year. The standard deviation of the noise is
# twice as large in calm air as in strong wind.

N_ROWS, GROUP_ROWS = 1_000_000, 50_000


def true_ozone(table):
    """Mean ozone in micrograms per cubic metre."""
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
# Fit
# ---
# :func:`ulmus.tables.from_arrow` is a table in blocks that can be iterated repeatedly.
# ``MemoryLog`` passes the blocks on and records the resident memory of the process at each block;
# peaks between blocks are not recorded.

MEGABYTE = 1e6


class MemoryLog:
    """Blocks; iteration records the resident memory of this process."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.passes = []

    def __iter__(self):
        memory = []
        self.passes.append(memory)
        for block in self.blocks:
            memory.append(psutil.Process().memory_info().rss / MEGABYTE)
            yield block


before = psutil.Process().memory_info().rss / MEGABYTE
blocks = MemoryLog(from_arrow(file, target="ozone", batch_rows=25_000))
model = ELMEnsembleRegressor(n_estimators=4, n_neurons=100, expand_inputs=None, random_state=0)
model.fit_blocks(blocks)
print(f"number of passes over the file: {sum(len(memory) > 1 for memory in blocks.passes)}")

# %%
# Confidence and prediction bands
# -------------------------------
# Predictions along the hour and the wind, with the other inputs at their medians. The confidence
# band for the regression function is here hardly wider than the line. The prediction band for a new
# measurement converges to the quantiles of the noise as rows are added.

sample = simulated_rows(0, 5_000).drop(columns="ozone")
medians = pd.DataFrame({name: np.full(200, sample[name].median()) for name in sample})
units = {"hour": "hour of the day (h)", "wind": "wind (m/s)"}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
for ax, (name, label) in zip(axes, units.items(), strict=True):
    display = PredictionDisplay.from_estimator(model, sample, feature=name, ax=ax)
    truth = true_ozone(medians.assign(**{name: display.x}))
    ax.plot(display.x, truth, color="#D55E00", linestyle="--", label="true function")
    ax.set(xlabel=label, ylabel="ozone (µg/m³)")
axes[0].legend(fontsize="small", ncols=2, loc="upper left")
axes[0].set(xticks=range(0, 25, 4), ylim=(0, 115))
axes[1].set_ylabel("")
axes[1].get_legend().remove()
figure.suptitle("Confidence and prediction bands from a million rows")
plt.show()

# %%
# On new rows, prediction intervals have about nominal coverage, in calm air and in wind. Confidence
# intervals for the function are approximate, and too wide here: most of their width is the variance
# due to learning the input map, which is learned from 4,000 of the million rows and whose effect on
# the prediction is computed to first order.

new = simulated_rows(1_000, 5_000)
inputs = new.drop(columns="ozone")
observation = model.predict_interval(inputs, 0.95)
function = model.predict_interval(inputs, 0.95, kind="confidence")
for name, rows in {"calm": new.wind < 1, "windy": new.wind > 5}.items():
    covered = coverage(new.ozone[rows], observation[rows])
    width = mean_width(observation[rows])
    print(f"{name:>5}: 95 % prediction intervals cover {covered:.3f}, mean width {width:.1f} µg/m³")
covered = coverage(true_ozone(new), function)
width = mean_width(function)
print(f"95 % confidence intervals cover {covered:.3f}, mean width {width:.2f} µg/m³")

# %%
# Memory
# ------
# Each line is one pass over the file. Shown is the resident memory of the process in excess of that
# before the fit: blocks that pyarrow prefetches, the hidden features of one block, and sums of the
# size of the model. The table is smaller than that; the hidden features of all rows are not.

table_size = 8 * N_ROWS * len(schema) / MEGABYTE
features_size = 8 * N_ROWS * model.n_estimators * model.n_neurons / MEGABYTE

passes = [memory for memory in blocks.passes if len(memory) > 1]
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.axhline(features_size, color="#D55E00", linestyle="--", label="hidden features of all rows")
for memory in passes:
    rows = 25_000 * np.arange(len(memory)) / 1e6
    ax.plot(rows, np.array(memory) - before, color="#0072B2", label=f"{len(passes)} passes")
ax.axhline(table_size, color="black", linestyle=":", label="the table")
ax.set_yscale("log")
ax.set_yticks(sizes := [30, 100, 300, 1_000, 3_000], sizes)
ax.set_yticks([], minor=True)
ax.set(xlabel="rows read (millions)", ylabel="memory in excess of that before the fit (MB)")
ax.set(ylim=(20, 2 * features_size), title="Memory does not grow with the rows")
handles, labels = ax.get_legend_handles_labels()
once = dict(zip(labels, handles, strict=True))
ax.legend(once.values(), once.keys(), loc="center right", bbox_to_anchor=(1, 0.68))
plt.show()

# %%
# Comparison with a fit in memory
# -------------------------------
# With the input map of the fit above, the first 50,000 rows are fitted from the file and in memory.
# The largest relative differences of predictions and variances are due to rounding.

parameters = model.get_params() | {"input_map": model.input_map_}
part = simulated_rows(0, GROUP_ROWS)
streamed = ELMEnsembleRegressor(**parameters).fit_blocks(list(islice(blocks.blocks, 2)))
in_memory = ELMEnsembleRegressor(**parameters).fit(part.drop(columns="ozone"), part.ozone)

for component in ("model", "noise"):
    one, other = (each.predict_var(inputs, component) for each in (streamed, in_memory))
    print(f"{component} variance: {np.max(np.abs(one / other - 1)):.0e}")
one, other = streamed.predict(inputs), in_memory.predict(inputs)
print(f"predictions: {np.max(np.abs(one / other - 1)):.0e}")
folder.cleanup()

# %%
# Next
# ----
# - :doc:`/guide/scale`: limitations of streamed fits
# - :doc:`/gallery/scale/plot_dask`: distributed fitting
# - :doc:`/project/results`: time and memory of larger fits
