"""Files of ulmus whose functions a call visits, a measure of how many files a reader must open.

``python benchmarks/visited_files.py`` prints the files of ``fit(X, y)`` on 60 rows and of
``ulmus fit t.csv``; ``--functions`` adds the functions of each file.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import ulmus

ROOT = Path(ulmus.__file__).parent
# Largest number of files for each call.
LIMITS = {"fit": 30, "command": 60}


def visited(call: Callable[[], Any]) -> dict[str, set[str]]:
    """Functions that a call enters, by file of the package."""
    files: dict[str, set[str]] = {}

    def record(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in path.parents and frame.f_code.co_name != "<module>":
            name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
            files.setdefault(str(path.relative_to(ROOT)), set()).add(name)

    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(None)
    return dict(sorted(files.items()))


def table(n_rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and outputs of a small table."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n_rows)


def of_fit() -> dict[str, set[str]]:
    """Files of a default fit."""
    X, y = table()
    model = ulmus.ELMEnsembleRegressor(random_state=0)
    return visited(lambda: model.fit(X, y))


def of_command() -> dict[str, set[str]]:
    """Files of ``ulmus fit t.csv``."""
    from ulmus.cli.app import app

    X, y = table()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "c", "y"])
            writer.writerows(np.column_stack([X, y]).tolist())
        arguments = ["fit", str(path), "--target", "y", "-o", str(Path(folder) / "model.ulmus")]
        return visited(lambda: app(arguments, standalone_mode=False))


def main() -> int:
    """Print the files; the exit status is 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", action="store_true", help="list functions too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    exceeded = False
    for name, files in (("fit", of_fit()), ("command", of_command())):
        print(f"{name}: {len(files)} files, at most {LIMITS[name]}")
        for path, functions in files.items():
            print(f"  {path}" + (f": {', '.join(sorted(functions))}" if options.functions else ""))
        exceeded |= len(files) > LIMITS[name]
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
