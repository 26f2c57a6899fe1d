"""Time and memory of the command line: help, refusals, 50,000 rows, and a file of 5,000,000.

``make bench-cli`` runs it on all cores. Each command is a process of its own; its largest resident
memory is read twenty times a second. Of help and refusals, processor time is measured: what they
import determines it. The tables are made up: ten inputs of which five matter
(Friedman's first function), and noise.
"""

import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import report
import timing
from report import Row

CHUNK = 250_000


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    y = f + 5 * X[:, 4] + rng.standard_normal(n)
    return pa.table({**{f"x{j}": X[:, j] for j in range(10)}, "y": y})


def write(path: Path, n: int) -> None:
    with pa.parquet.ParquetWriter(path, table(1, 0).schema) as writer:
        for seed, start in enumerate(range(0, n, CHUNK)):
            writer.write_table(table(min(CHUNK, n - start), seed))


def resident(pid: int) -> float:
    """Memory of a process in MB, its largest so far."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    sizes = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(sizes[0]) / 1024 if sizes else 0.0


def command(*arguments: str) -> tuple[float, float]:
    """Seconds and largest memory in MB of one command."""
    start, sizes = time.perf_counter(), [0.0]
    process = subprocess.Popen([sys.executable, "-m", "ulmus.cli", *arguments, "--quiet"])

    def watch() -> None:
        while process.poll() is None:
            sizes.append(resident(process.pid))
            time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    watcher.join()
    if code != 0:
        raise RuntimeError(f"ulmus {arguments[0]} ended with the code {code}")
    return time.perf_counter() - start, max(sizes)


def both(n: int) -> tuple[tuple[float, float], tuple[float, float], str]:
    """Fit and predict a file of so many rows, and how large files are."""
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "table.parquet", Path(folder) / "model.ulmus"
        write(data, n)
        fit = command("fit", str(data), "--target", "y", "-o", str(model))
        predict = command("predict", str(model), str(data), "-o", str(Path(folder) / "out.parquet"))
        sizes = [path.stat().st_size / 1e6 for path in (data, model)]
    return fit, predict, f"table {sizes[0]:.0f} MB, model file {sizes[1]:.0f} MB"


def processor_time(*arguments: str) -> float:
    """Processor time of a command in seconds, the least of five."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = [sys.executable, "-m", "ulmus.cli", *arguments]
        subprocess.run(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def start() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "table.parquet", Path(folder) / "model.ulmus"
        write(data, 100)
        fit = ("fit", str(data), "-o", str(model), "--target")
        commands = {
            "ulmus --help": ("--help",),
            "ulmus fit --help": ("fit", "--help"),
            "a wrong option": (*fit, "y", "--no-such-option"),
            "a missing file": ("predict", str(model), str(data), "-o", f"{folder}/out.csv"),
            "a missing column": (*fit, "z"),
        }
        for name, arguments in commands.items():
            seconds = processor_time(*arguments)
            yield Row(f"processor time of {name}", seconds, "s", "least of five", "<", 0.6)


def defaults() -> Iterator[Row]:
    (fit, _), (predict, _), sizes = both(50_000)
    source = f"{fit:.0f} s and {predict:.0f} s; {sizes}"
    yield Row("ulmus fit + predict, 50,000 x 10", fit + predict, "s", source, "<", 90)


def large() -> Iterator[Row]:
    fit, predict, sizes = both(5_000_000)
    for name, (seconds, memory) in (("fit", fit), ("predict", predict)):
        source = f"{seconds:.0f} s; {sizes}"
        yield Row(f"memory of ulmus {name}, 5,000,000 x 10", memory, "MB", source, "<", 1024)


PARTS = (start, defaults, large)


def main() -> None:
    options = report.parser(__doc__, [part.__name__ for part in PARTS]).parse_args()
    report.print_parts("command_line.py", options, [report.machine()], (timing.dgemm, *PARTS))


if __name__ == "__main__":
    main()
