"""
Distributed fitting with Dask
=============================

A fit is a sum over blocks of rows. :func:`ulmus.dask.fit` computes the sums of each pass on the
workers that store the partitions and adds them in pairs; only matrices of the size of the model are
transferred.

This example uses a local cluster of two workers. For another cluster, pass its address to
``Client``.
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
# Cluster and data
# ----------------
# The table contains 120,000 rows in eight partitions, simulated on the workers with one seed per
# partition; other tables are read with ``dask.dataframe.read_parquet``. The response is Friedman's
# function of five inputs plus noise with variance 0.5. Five further inputs are irrelevant.

N_PARTITIONS, ROWS = 8, 15_000
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
client = Client(cluster)


def partition(seed):
    """Ten inputs and the response of one partition."""
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
# Fit
# ---
# A small ensemble of 5 members with 100 units limits the run time. The input map is optimised
# locally on a sample of rows; all other sums are computed on the workers.

model = ELMEnsembleRegressor(n_estimators=5, n_neurons=100, input_map="ard", random_state=0)
ulmus.dask.fit(model, X, y)
print(f"noise variance: estimated {model.noise_variance_:.4f}, true 0.5")

# %%
# Comparison with a fit in memory
# -------------------------------
# With the input map and the ridge parameter of the first fit and the same seed, a fit in memory is
# the same. Otherwise it would choose both on other samples of the rows. Products between members,
# which serve variances only, are summed over a sample of the rows as well, unless ``exact=True``.

chosen = {"input_map": model.input_map_, "alpha": model.alpha_, "exact": True}
parameters = model.get_params() | chosen
rows, outputs = dask.compute(X, y)
on_cluster = ulmus.dask.fit(ELMEnsembleRegressor(**parameters), X, y)
in_memory = ELMEnsembleRegressor(**parameters).fit(rows, outputs)

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
# The fitted model is local, and all methods are available. The figure shows the partial dependence
# on the first input over 2,000 rows. The right panel shows the difference from the true curve, with
# pointwise and simultaneous 95 % confidence bands for the regression function (approximate).

sample = rows[:2_000]
curve = model.partial_dependence(sample, 0, target="function")
band = model.partial_dependence(sample, 0, target="function", simultaneous=True)
x = curve["x0"].to_numpy()


def true_mean(value):
    """The mean of the true function over the rows, the first input at one value."""
    return np.mean(friedman(np.column_stack([np.full(len(sample), value), sample[:, 1:5]])))


truth = np.array([true_mean(value) for value in x])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.plot(x, curve.estimate, color="#0072B2", linewidth=3, label="estimate")
left.plot(x, truth, color="#D55E00", linestyle="--", label="true function")
left.set(xlabel="first input (no unit)", ylabel="mean response (no unit)")
left.legend()
for frame, colour, label in ((band, "#56B4E9", "simultaneous"), (curve, "#0072B2", "pointwise")):
    low, high = frame.conf_low - truth, frame.conf_high - truth
    right.fill_between(x, low, high, color=colour, alpha=0.35, label=f"95 %, {label}")
right.plot(x, curve.estimate - truth, color="#0072B2", label="estimate")
right.axhline(0, color="#D55E00", linestyle="--", label="true function")
right.set(xlabel="first input (no unit)", ylabel="difference from the true function (no unit)")
right.legend(fontsize="small", ncols=2, loc="upper center")
right.margins(y=0.25)
figure.suptitle("Partial dependence from 120,000 rows, with confidence bands")
plt.show()
for label, frame in {"pointwise": curve, "simultaneous": band}.items():
    covered = np.mean((frame.conf_low <= truth) & (truth <= frame.conf_high))
    print(f"the {label} band covers {covered:.0%} of the points of this curve")

# %%
# Distributed predictions
# -----------------------
# ``predict`` and ``predict_var`` of ``ulmus.dask`` return lazy Dask arrays.

mean = ulmus.dask.predict(model, X)
variance = ulmus.dask.predict_var(model, X)
covered = abs(y - mean) < 1.96 * np.sqrt(variance)
print(f"share of rows within 1.96 sd of their prediction: {covered.mean().compute():.3f}")

client.close()
cluster.close()

# %%
# Next
# ----
# - :doc:`/guide/scale`: all ways to fit a large table
# - :doc:`/gallery/scale/plot_million_rows`: out-of-core fitting on one machine
