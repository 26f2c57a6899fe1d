"""
A fit on a Dask cluster
=======================

The same sums over blocks of rows can be made where the rows are. :func:`ulmus.dask.fit` sends each
pass of the fit to the workers that hold the partitions; the sums are added in pairs on the workers,
and only matrices of the size of the model travel.

This page runs on a cluster of two workers in this process. On a real one the only other line is the
address that is given to ``Client``.
"""

# %%
# A cluster and a table
# ---------------------
# The table has 120,000 rows in eight partitions. It is made on the workers, from a seed for each
# partition; a real one would come from ``dask.dataframe.read_parquet``. The output is Friedman's
# function of five inputs and noise with a variance of one half. Five more inputs do not matter.

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from ulmus.datasets import make_friedman

N_PARTITIONS, ROWS = 8, 15_000
cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
)
client = Client(cluster)


def partition(seed):
    """Ten inputs and the output of some rows."""
    rows = make_friedman(ROWS, random_state=seed)
    others = np.random.default_rng(seed + 1_000).random((ROWS, 5))
    return np.column_stack([rows.X, others, rows.y])


table = da.concatenate(
    [
        da.from_delayed(dask.delayed(partition)(seed), (ROWS, 11), float)
        for seed in range(N_PARTITIONS)
    ]
).persist()
X, y = table[:, :10], table[:, 10]
print(f"{X.shape[0]:,} rows in {X.npartitions} partitions on {len(cluster.workers)} workers")

# %%
# The fit
# -------
# A small ensemble, 5 members of 100 units, keeps this page short. The map of the inputs is learned
# from a sample of rows that is brought here; everything else happens on the workers.

import ulmus.dask
from ulmus import ELMEnsembleRegressor

model = ELMEnsembleRegressor(n_estimators=5, n_neurons=100, input_map="ard", random_state=0)
ulmus.dask.fit(model, X, y)
print(f"noise variance {model.noise_variance_:.4f}, in truth 0.5")

# %%
# The same numbers as in memory
# -----------------------------
# Now the rows are brought here and fitted in memory, behind the map that was learned above. The
# estimator asks for nothing else to be equal: the same seed draws the same hidden units.

given = model.get_params() | {"input_map": model.input_map_}
rows, outputs = dask.compute(X, y)
on_cluster = ulmus.dask.fit(ELMEnsembleRegressor(**given), X, y)
in_memory = ELMEnsembleRegressor(**given).fit(rows, outputs)

points = make_friedman(1_000, random_state=10_000).X
points = np.column_stack([points, np.random.default_rng(1).random((1_000, 5))])
differences = {
    "predictions": on_cluster.predict(points) / in_memory.predict(points) - 1,
    "standard errors": np.sqrt(
        on_cluster.predict_var(points, "model") / in_memory.predict_var(points, "model")
    )
    - 1,
}
for name, relative in differences.items():
    print(f"{name}: largest relative difference {np.max(np.abs(relative)):.0e}")
    assert np.max(np.abs(relative)) < 1e-8

# %%
# Answers from the fitted model
# -----------------------------
# A model that was fitted on a cluster is small and lies here. It answers as any other. The figure
# has the mean prediction as a function of three inputs, over 2,000 rows. The dark band is of a
# single point of the curve, the light one of the whole curve at once: 95 of 100 such bands hold
# every point of the mean that the estimator has over noise and weights. The true curves are drawn
# beside.

import matplotlib.pyplot as plt

from ulmus.datasets import friedman
from ulmus.plot import PartialDependenceDisplay

some = rows[:2_000]
display = PartialDependenceDisplay.from_estimator(model, some, [0, 2, 5], simultaneous=True)
for ax, feature in zip(display.axes_, (0, 2, 5), strict=True):
    grid = np.linspace(0, 1, 30)
    truth = []
    for value in grid:
        moved = some.copy()
        moved[:, feature] = value
        truth.append(np.mean(friedman(moved[:, :5])))
    ax.plot(grid, truth, color="#D55E00", linestyle="--", label="true function")
    ax.set_xlabel(f"input {feature} (no unit)")
display.axes_[0].set_ylabel("mean of the output (no unit)")
display.axes_[0].legend(fontsize="small", loc="lower right")
display.figure_.suptitle("A wave, a parabola and an input that does nothing")
plt.show()

# %%
# Predictions where the rows are
# ------------------------------
# ``predict`` and ``predict_var`` of :mod:`ulmus.dask` return Dask arrays that are not computed yet.

mean = ulmus.dask.predict(model, X)
variance = ulmus.dask.predict_var(model, X)
inside = abs(y - mean) < 1.96 * np.sqrt(variance)
print(f"share of rows within 1.96 sd of a new observation: {inside.mean().compute():.3f}")

client.close()
cluster.close()

# %%
# Next
# ----
# :doc:`/guide/scale` compares the ways to fit a large table, and
# :doc:`/gallery/scale/plot_million_rows` needs one computer and a file.
