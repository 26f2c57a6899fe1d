"""The interactive page beside Python: its size, its errors, and the time of a change in Chromium.

``python benchmarks/explore.py [--data FOLDER]``; the folder has the standard tables, as for uci.py.
A line is a default fit: rows and inputs, degrees of freedom, megabytes, seconds to write the page,
largest error of an estimate relative to the range of y, root mean square and largest relative
error of a standard error and of bounds of an observation relative to the width, over 200 points
between the training rows, and milliseconds of a point and of a whole change of an input with its
curve. It needs selenium and chromium.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.datasets import load_diabetes
from timing import dgemm

from ulmus import ELMEnsembleRegressor
from ulmus.explore import write_explorer

POINTS, LEVELS = 200, [0.5, 0.8, 0.9, 0.95, 0.99]
STANDARD = ("yacht", "boston", "concrete", "energy", "wine-red", "kin8nm")
RESULTS = """
const explorer = document.getElementById("ulmus-explorer").explorer;
const values = JSON.parse(arguments[0]);
const start = performance.now();
const found = values.map((one) => {
  const point = explorer.point(one);
  return [point.estimate, point.standardError, ...point.observationInterval(arguments[1])];
});
const each = (performance.now() - start) / values.length, times = [];
for (let i = 0; i < 15; i++) {
  explorer.values = values[i]; explorer.curve = null;
  const begin = performance.now();
  explorer.draw();
  times.push(performance.now() - begin);
}
return JSON.stringify([found, each, times.sort((a, b) => a - b)[7]]);
"""


def tables(folder: Path | None):
    """Names, inputs and outputs."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    for n, d in ((60, 2), (100, 3), (300, 8), (1000, 8), (5000, 10), (20_000, 20)):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (n, d))
        y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, min(2, d - 1)] + 0.2 * rng.standard_normal(n)
        yield "smooth", X, y
    for name in STANDARD if folder is not None else ():
        data = np.load(folder / f"{name}.npz")
        yield name, data["X"], data["y"]


def between_rows(X: np.ndarray) -> np.ndarray:
    """Points between pairs of rows."""
    rng = np.random.default_rng(1)
    a, b = (X[rng.integers(len(X), size=POINTS)] for _ in range(2))
    return a + rng.random((POINTS, 1)) * 0.5 * (b - a)


def measured(driver, X, y) -> list[float]:
    """The numbers of a line."""
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    model.predict_var(X[:2])  # refits for error bars are not the page's
    new = between_rows(X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        start = time.perf_counter()
        write_explorer(model, path)
        seconds, size = time.perf_counter() - start, path.stat().st_size / 1e6
        driver.get(path.as_uri())
        drawn = "return document.querySelectorAll('.ux-curve path').length > 1"
        WebDriverWait(driver, 60).until(lambda d: d.execute_script(drawn))
        sent = json.dumps(new.tolist()), LEVELS.index(0.9)
        found, point, change = json.loads(driver.execute_script(RESULTS, *sent))
    estimate, se, *bounds = np.array(found).T
    exact = np.sqrt(model.predict_var(new, component="model"))
    interval = model.predict_interval(new, 0.9)
    width = np.mean(interval[:, 1] - interval[:, 0])
    error = np.max(np.abs(estimate - model.predict(new))) / np.ptp(y)
    relative = np.abs(se / exact - 1)
    errors = error, np.sqrt(np.mean(relative**2)), np.max(relative)
    off = np.sqrt(np.mean((np.array(bounds).T - interval) ** 2)) / width
    return [model.dof_, size, seconds, *errors, off, point, change]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    (rate,) = dgemm()
    print(rate)
    head = "table", "rows", "inputs", "dof", "MB", "s", "estimate", "se rms", "se max", "bounds"
    print("| " + " | ".join((*head, "ms a point", "ms a change")) + " |\n|" + " --- |" * 12)
    try:
        for name, X, y in tables(arguments.data):
            dof, size, seconds, error, rms, largest, off, point, change = measured(driver, X, y)
            cells = name, len(y), X.shape[1], f"{dof:.0f}", f"{size:.1f}", f"{seconds:.1f}"
            cells += f"{error:.0e}", f"{rms:.1e}", f"{largest:.1e}", f"{off:.1e}"
            cells += f"{point:.2f}", f"{change:.0f}"
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
