"""Tables larger than memory, threads and clusters: same numbers, how much memory, how fast.

It is a report, not a test: its exit status is 0 whether or not a target is reached. ``--only
memmap`` runs one part, ``--markdown`` prints a Markdown table. BLAS has one thread unless a row
says otherwise. All parts together take about ten minutes on two cores.
"""

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import core
import numpy as np
import report
import timing
from core import in_fresh_process, status_mb
from plain import plain_ensemble
from report import Row
from timing import best_times, seconds

from ulmus import ELMEnsembleRegressor
from ulmus.tables import from_arrow

Array = np.ndarray
Block = tuple[Array, Array]

D = 5  # inputs
BLOCK = 50_000  # rows
ESTIMATES = ("NHo", "BR", "NHe", "S1", "S2", "S3")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# The second layer is nearly linear in its inputs: its units all but repeat one another.
AGREEING = {"n_estimators": 6, "n_neurons": 60, "variance": "all", "hc": "HC2", "random_state": 0}
AGREEING |= {"noise": "heteroskedastic"}
LAYERS = {
    "usual": {"alpha": "loo"},
    "ill-conditioned": {"weight_scale": 0.045, "alpha": 1e-8},
    "same, residual noise": {"weight_scale": 0.045, "alpha": 1e-8, "noise_variance": "residual"},
}

LARGE_M, LARGE_N, LARGE_ROWS = 10, 100, 1_000_000
LARGE = {"n_estimators": LARGE_M, "n_neurons": LARGE_N, "variance": "S2", "random_state": 0}
LARGE |= {"alpha": 1e-3}

CLUSTER = {"n_estimators": 5, "n_neurons": 60, "alpha": 1e-3, "random_state": 0}
CLUSTER_ROWS = 2_000_000


def table(n: int, seed: int = 0) -> Block:
    """X (n, D) and y (n,); the noise grows with the first input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, D))
    noise = (0.3 + 0.2 * X[:, 0]) * rng.standard_normal(n)
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise


def written_table(file: Path, n: int) -> None:
    """Write a table of D + 1 columns block by block."""
    rows = np.memmap(file, float, "w+", shape=(n, D + 1))
    for seed, start in enumerate(range(0, n, BLOCK)):
        X, y = table(min(BLOCK, n - start), seed)
        rows[start : start + len(y)] = np.column_stack([X, y])
    rows.flush()


def memmap_blocks(file: Path, n: int, size: int = BLOCK) -> list[Block]:
    """Slices of a file, not read yet."""
    rows = np.memmap(file, float, "r", shape=(n, D + 1))
    cut = [rows[start : start + size] for start in range(0, n, size)]
    return [(block[:, :D], block[:, D]) for block in cut]


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Number of BLAS threads in processes started inside."""
    with mock.patch.dict(os.environ, dict.fromkeys(THREADS, str(count))):
        yield


@contextmanager
def cluster(workers: int) -> Iterator[None]:
    """A Dask cluster of processes of one thread each."""
    from dask.distributed import Client, LocalCluster

    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True}
    options |= {"dashboard_address": None, "memory_limit": 0}
    with (
        blas_threads(1),
        LocalCluster(**options) as processes,
        Client(processes),
    ):
        yield


# Agreement of every way to fit


def results(model: ELMEnsembleRegressor, points: Any) -> dict[str, Array]:
    """Predictions and variances of a model at the points, and its scalars."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = {"mean": model.predict(points), "noise": model.predict_var(points, "noise")}
        said |= {name: model.predict_var(points, "model", name) for name in ESTIMATES}
        said["weights"] = model.predict_var(points, "weights")
    said |= {"alpha_": model.alpha_, "noise_variance_": model.noise_variance_}
    return {name: np.asarray(values) for name, values in said.items()}


def largest_difference(found: dict[str, Array], expected: dict[str, Array]) -> tuple[float, str]:
    """Largest relative difference and its name; means, which change sign, as one vector."""
    gaps = {name: np.abs(found[name] - wanted) for name, wanted in expected.items()}
    scale = expected | {"mean": np.max(np.abs(expected["mean"]))}
    return max((float(np.max(gap / np.abs(scale[name]))), name) for name, gap in gaps.items())


def cut(X: Array, y: Array, edges: Array) -> list[Block]:
    return list(zip(np.split(X, edges), np.split(y, edges), strict=True))


def ways(X: Array, y: Array, folder: Path) -> Iterator[tuple[str, Callable]]:
    """Names and functions that fit an estimator to the same rows."""
    n, rng = len(y), np.random.default_rng(1)
    even = cut(X, y, np.arange(700, n, 700))
    uneven = cut(X, y, np.sort(rng.choice(n - 1, 20, replace=False)) + 1)
    shuffled = [uneven[i] for i in rng.permutation(len(uneven))]
    yield "blocks of 700 rows", lambda model: model.fit_blocks(even)
    sizes = [len(y) for _, y in uneven]
    yield f"blocks of {min(sizes)} to {max(sizes)} rows", lambda model: model.fit_blocks(uneven)
    yield "the same, merged in another order", lambda model: model.fit_blocks(shuffled)
    yield (
        "the same, merged by three threads",
        lambda model: model.set_params(n_jobs=3).fit_blocks(shuffled),
    )

    file = folder / "rows.bin"
    np.column_stack([X, y]).tofile(file)
    mapped = memmap_blocks(file, n, 900)
    yield "memmap", lambda model: model.fit_blocks(mapped)

    import pyarrow as pa
    import pyarrow.parquet

    columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y}
    pa.parquet.write_table(pa.table(columns), folder / "rows.parquet")
    batches = from_arrow(folder / "rows.parquet", target="y", batch_rows=800)
    yield "Parquet through Arrow", lambda model: model.fit_blocks(batches)

    import dask.array as da

    import ulmus.dask

    def on_cluster(model: ELMEnsembleRegressor) -> ELMEnsembleRegressor:
        with cluster(2):
            rows = da.from_array(X, chunks=(1100, D)), da.from_array(y, chunks=1100)
            return ulmus.dask.fit(model, *rows)

    yield "Dask, 2 processes", on_cluster

    import torch

    tensors = [(torch.from_numpy(X), torch.from_numpy(y)) for X, y in even]
    yield "torch", lambda model: model.fit(torch.from_numpy(X), y)
    yield "torch, blocks of 700 rows", lambda model: model.fit_blocks(tensors)


def condition(model: ELMEnsembleRegressor, X: Array) -> float:
    """Largest condition number of a member's hidden matrix."""
    inputs = (X - X.mean(axis=0)) / X.std(axis=0)
    U = inputs @ model.hidden_weights_ + model.hidden_biases_[:, None, :]
    return float(np.linalg.cond(1 / (1 + np.exp(-U))).max())


def agreement() -> Iterator[Row]:
    X, y = table(6000)
    points = 0.95 * table(1000, seed=1)[0]
    for layer, settings in LAYERS.items():
        blank = partial(plain_ensemble, **AGREEING, **settings)
        reference = blank().fit(X, y)
        expected = results(reference, points)
        source = f"M = 6, N = 60, n = 6000, alpha {reference.alpha_:.1e}"
        yield Row(f"{layer} layer: condition", condition(reference, X), "difference", source)
        with tempfile.TemporaryDirectory() as folder:
            for name, fit in ways(X, y, Path(folder)):
                gap, worst = largest_difference(results(fit(blank()), points), expected)
                source = f"largest relative difference to fit, that of {worst}"
                yield Row(f"{layer}: {name}", gap, "difference", source, "<=", 1e-8)


# Time and memory of a fit that reads a file


def streamed_fit(file: Path, noise: str, n_jobs: int | None) -> tuple[float, Array, Array]:
    """Peak resident memory in MB; wall and processor time of the fit and of ``timing.product``."""
    model = plain_ensemble(**LARGE, noise=noise, n_jobs=n_jobs)
    fit = both_times(lambda: model.fit_blocks(memmap_blocks(file, LARGE_ROWS)))
    peak = status_mb("VmHWM") if Path("/proc/self/status").exists() else np.nan
    product, _ = timing.product()
    return peak, fit, np.min([both_times(product) for _ in range(10)], axis=0)


def both_times(task: Callable[[], object]) -> Array:
    """Wall time, and processor time, which other jobs lengthen less."""
    before = time.process_time()
    wall = seconds(task)
    return np.array([wall, time.process_time() - before])


def irreducible_flops(n: int, M: int, N: int) -> int:
    """What ``core.fit_flops`` counts, for the shape of a table here."""
    with mock.patch.multiple(core, D=D, M=M, N=N):
        return core.fit_flops(n)


def memmap() -> Iterator[Row]:
    flops = irreducible_flops(LARGE_ROWS, LARGE_M, LARGE_N)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.bin"
        in_fresh_process(written_table, file, LARGE_ROWS)
        for noise in ("homoskedastic", "heteroskedastic"):
            for n_jobs, threads in ((None, 1), (2, 2)):
                with blas_threads(threads):
                    peak, fit, product = in_fresh_process(streamed_fit, file, noise, n_jobs)
                name = f"10^6 x {D}, {noise}, n_jobs={n_jobs}"
                source = f"whole process, blocks of {BLOCK} rows, M = {LARGE_M}, N = {LARGE_N}"
                yield Row(f"{name}: peak", peak, "MB", source, "<", 700)
                floor = flops / timing.product()[1] * product
                source = f"{fit[0]:.1f} s, products {floor[0]:.1f} s: {flops / 1e12:.2f} Tflop at "
                source += f"{flops / floor[0] / 1e9:.1f} Gflop/s, {threads}-thread dgemm"
                yield Row(f"{name}: time", fit[0] / floor[0], "ratio", source, "<=", 2.5)
                source = f"{fit[1]:.1f} s / {floor[1]:.1f} s"
                yield Row(f"{name}: processor time", fit[1] / floor[1], "ratio", source)


# Prediction after a streamed fit


def prediction_times(file: Path) -> Array:
    """Wall times of ``predict_var`` after fits to the first rows and to all rows."""
    points = table(2000, seed=1)[0]
    every = memmap_blocks(file, LARGE_ROWS)
    few = [(X[:10_000], y[:10_000]) for X, y in every[:1]]
    blank = partial(plain_ensemble, **LARGE, noise="heteroskedastic", n_jobs=2)
    models = [blank().fit_blocks(blocks) for blocks in (few, every)]
    return best_times(*(partial(m.predict_var, points) for m in models), turns=15).min(axis=0)


def prediction() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.bin"
        in_fresh_process(written_table, file, LARGE_ROWS)
        few, many = in_fresh_process(prediction_times, file)
    source = f"{1e3 * many:.0f} ms / {1e3 * few:.0f} ms for 2000 points, 1 BLAS thread"
    name = "predict_var after 10^6 / 10^4 streamed rows: time"
    yield Row(name, max(many / few, few / many), "ratio", source, "<=", 1.2)


# Two cores instead of one


def dask_time(workers: int) -> float:
    """Wall time of a fit to rows that the workers make."""
    import dask.array as da

    import ulmus.dask

    def rows(n: int) -> tuple[Any, Any]:
        rng = da.random.default_rng(0)
        X = rng.uniform(-1, 1, (n, D), chunks=(BLOCK, D))
        noise = (0.3 + 0.2 * X[:, 0]) * rng.standard_normal(n, chunks=BLOCK)
        return X, da.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + noise

    fit = partial(ulmus.dask.fit, plain_ensemble(**CLUSTER))
    with cluster(workers):
        fit(*rows(4 * BLOCK))  # what is paid once: imports on the workers
        large = rows(CLUSTER_ROWS)
        return min(seconds(lambda: fit(*large)) for _ in range(2))


def dask() -> Iterator[Row]:
    one, two = (in_fresh_process(dask_time, workers) for workers in (1, 2))
    name = f"Dask, {CLUSTER_ROWS // 10**6} x 10^6 x {D}, 2 workers / 1 worker: faster"
    shape = f"M = {CLUSTER['n_estimators']}, N = {CLUSTER['n_neurons']}, BR"
    source = f"{two:.1f} s, 1 worker {one:.1f} s; {shape}, {BLOCK} rows a partition, 1 thread each"
    yield Row(name, one / two, "ratio", source, ">=", 1.6)


def thread_times(n: int) -> Array:
    X, y, _ = core.data(n, 1)
    settings = core.SHAPE | core.LEAST_SQUARES | core.OURS["BR"]
    models = [plain_ensemble(**settings, n_jobs=n_jobs) for n_jobs in (None, 2)]
    return best_times(*(partial(m.fit, X, y) for m in models), turns=3).min(axis=0)


def threads() -> Iterator[Row]:
    n = 20_000
    with blas_threads(1):
        one, two = in_fresh_process(thread_times, n)
    name = f"in-memory fit BR, n = {n}, n_jobs=2 / None: faster"
    source = f"{two:.2f} s, {one:.2f} s; d = {core.D}, M = {core.M}, N = {core.N}, 1 BLAS thread"
    yield Row(name, one / two, "ratio", source)


PARTS = (agreement, memmap, prediction, dask, threads)


def header(blas: str) -> Iterator[str]:
    yield from list(core.header(blas))[:3]
    yield ", ".join(f"{name} {version(name)}" for name in ("dask", "pyarrow", "torch")) + "\n"


def main() -> None:
    options = report.parser(__doc__, [part.__name__ for part in PARTS]).parse_args()
    report.print_parts("scale.py", options, header(timing.one_thread()), (timing.dgemm, *PARTS))


if __name__ == "__main__":
    main()
