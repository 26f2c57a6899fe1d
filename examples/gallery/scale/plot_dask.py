"""
A fit on a Dask cluster
=======================

The same sums over blocks of rows can be made where the rows are. :func:`ulmus.dask.fit` sends each
pass of the fit to the workers that hold the partitions; the sums are added in pairs on the workers,
and only matrices of the size of the model travel.

This page runs on a cluster of two workers in this process. On a real one the only other line is the
address that is given to ``Client``.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import ulmus.dask
from ulmus import ELMEnsembleRegressor
from ulmus.datasets import friedman, make_friedman

# %%
# A cluster and a table
# ---------------------
# The table has 120,000 rows in eight partitions. It is made on the workers, from a seed for each
# partition; a real one would come from ``dask.dataframe.read_parquet``. The output is Friedman's
# function of five inputs and noise with a variance of one half. Five more inputs do not matter.

N_PARTITIONS, ROWS = 8, 15_000
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
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

model = ELMEnsembleRegressor(n_estimators=5, n_neurons=100, input_map="ard", random_state=0)
ulmus.dask.fit(model, X, y)
print(f"noise variance {model.noise_variance_:.4f}, in truth 0.5")

# %%
# The same numbers as in memory
# -----------------------------
# Now the rows are brought here and fitted in memory, behind the map that was learned above. The
# same seed draws the same hidden units, so that nothing else differs.

given = model.get_params() | {"input_map": model.input_map_}
rows, outputs = dask.compute(X, y)
on_cluster = ulmus.dask.fit(ELMEnsembleRegressor(**given), X, y)
in_memory = ELMEnsembleRegressor(**given).fit(rows, outputs)

points = make_friedman(1_000, random_state=10_000).X
points = np.column_stack([points, np.random.default_rng(1).random((1_000, 5))])
both = {
    "predictions": (on_cluster.predict(points), in_memory.predict(points)),
    "variances": (on_cluster.predict_var(points, "model"), in_memory.predict_var(points, "model")),
}
for name, (one, other) in both.items():
    largest = np.max(np.abs(one / other - 1))
    print(f"{name}: largest relative difference {largest:.0e}")
    assert largest < 1e-8

# %%
# Effects from the fitted model
# -----------------------------
# A model that was fitted on a cluster is small and lies here. It answers as any other. The figure
# has the mean of the function over 2,000 rows as the first input changes. With so many rows its
# error is far smaller than the curve, so that the right panel has it alone: the curve minus the
# true one. Both bands are of the true curve. The dark one holds a given point of it with a
# probability of 95 %, the light one all of its points at once. Both are approximate.

some = rows[:2_000]
curve = model.partial_dependence(some, 0, target="function")
whole = model.partial_dependence(some, 0, target="function", simultaneous=True)
x = curve["x0"].to_numpy()


def true_mean(value):
    """The mean of the true function over the rows, the first input at one value."""
    return np.mean(friedman(np.column_stack([np.full(len(some), value), some[:, 1:5]])))


truth = np.array([true_mean(value) for value in x])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot(x, curve.estimate, color="#0072B2", linewidth=3, label="estimate")
left.plot(x, truth, color="#D55E00", linestyle="--", label="true function")
left.set(xlabel="first input (no unit)", ylabel="mean of the output (no unit)")
left.legend()
for frame, colour, label in ((whole, "#56B4E9", "the whole curve"), (curve, "#0072B2", "a point")):
    low, high = frame.conf_low - truth, frame.conf_high - truth
    right.fill_between(x, low, high, color=colour, alpha=0.35, label=f"95 % for {label}")
right.plot(x, curve.estimate - truth, color="#0072B2", label="estimate")
right.axhline(0, color="#D55E00", linestyle="--", label="true function")
right.set(xlabel="first input (no unit)", ylabel="difference from the true function (no unit)")
right.legend(fontsize="small", ncols=2, loc="upper center")
right.margins(y=0.25)
figure.suptitle("120,000 rows: a curve, and what is not known of it")
plt.show()
for label, frame in {"a point": curve, "the whole curve": whole}.items():
    held = np.mean((frame.conf_low <= truth) & (truth <= frame.conf_high))
    print(f"the band for {label} holds {held:.0%} of the points of this curve")

# %%
# Predictions where the rows are
# ------------------------------
# ``predict`` and ``predict_var`` of ``ulmus.dask`` return Dask arrays that are not computed yet.

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
