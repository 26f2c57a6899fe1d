"""Time and memory of a fit to 5 million rows of a Parquet file with categories and dates.

``make bench-large-mixed``; memory is that of the process so far, so that nothing runs before.
"""

from __future__ import annotations

import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from ulmus import ELMEnsembleRegressor
from ulmus.tables import from_arrow


def large_file(n_groups=50, group=100_000):
    """Time and memory of a fit to a file of 5 million rows with categories, gaps and dates."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    effect = rng.normal(size=500)
    with tempfile.TemporaryDirectory() as folder:
        path, writer = Path(folder) / "table.parquet", None
        for _ in range(n_groups):
            kind, town = rng.integers(0, 12, group), rng.integers(0, 500, group)
            a, b, c, noise = rng.normal(size=(4, group))
            columns = {
                "a": a,
                "b": pa.array(np.where(rng.random(group) < 0.05, np.nan, b), from_pandas=True),
                "c": c,
                "kind": np.array([f"kind {i}" for i in range(12)])[kind],
                "town": np.array([f"town {i}" for i in range(500)])[town],
                "day": np.datetime64("2015-01-01") + rng.integers(0, 3000, group),
                "y": np.sin(a) + 0.3 * b + (kind == 3) + effect[town] + 0.5 * noise,
            }
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()
        start = time.perf_counter()
        model = ELMEnsembleRegressor(3, 100, noise="homoskedastic", random_state=0)
        model.fit_blocks(from_arrow(path, target="y"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        seconds = time.perf_counter() - start
        print(f"{model.fitted_.n_rows} rows: {seconds:.0f} s, at most {peak:.0f} MB")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    large_file()
