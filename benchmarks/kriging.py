"""Kriging of residuals beside ordinary kriging, on tables with official splits.

``make bench-kriging DATA=folder``; the folder holds sic97.npz (rain in Switzerland) and jura.npz
(seven metals in soil), which the project does not ship. Inputs are the coordinates alone.
"""

import argparse
from pathlib import Path

import numpy as np
from pykrige.ok import OrdinaryKriging
from report import machine

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import coverage
from ulmus.noise import Exponential

METALS = ("Cd", "Co", "Cr", "Cu", "Ni", "Pb", "Zn")
VARIOGRAMS = ("spherical", "exponential")


def tables(folder: Path) -> dict[str, tuple[np.ndarray, ...]]:
    """Coordinates and outputs of training and test rows, by name."""
    rain, soil = np.load(folder / "sic97.npz"), np.load(folder / "jura.npz")
    locations = (rain[name][:, :2] for name in ("X_train", "X_test"))
    train, test = locations
    found = {"sic97": (train, rain["y_train"], test, rain["y_test"])}
    for k, metal in enumerate(METALS):
        outputs = (soil[name][:, k] for name in ("Y_train", "Y_test"))
        y, y_test = outputs
        found[f"jura {metal}"] = (soil["X_train"], y, soil["X_test"], y_test)
    return found


def root_mean_square(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.asarray(errors) ** 2)))


def rival(X: np.ndarray, y: np.ndarray, points: np.ndarray, truth: np.ndarray) -> float:
    """Error of ordinary kriging with the variogram that has the smaller test error of two."""
    kriging = (OrdinaryKriging(*X.T, y, variogram_model=name) for name in VARIOGRAMS)
    return min(root_mean_square(one.execute("points", *points.T)[0] - truth) for one in kriging)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="folder of the tables")
    print(machine())
    print("| table | RMSE | ordinary kriging | ratio | 95 % coverage | mean width |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, (X, y, points, truth) in tables(options.parse_args().data).items():
        model = ELMEnsembleRegressor(noise=Exponential(), random_state=0).fit(X, y, coords=X)
        where = {"coords": points, "residual_kriging": True}
        bounds = model.predict_interval(points, **where)
        ours = root_mean_square(model.predict(points, **where) - truth)
        theirs, width = rival(X, y, points, truth), np.mean(bounds[:, 1] - bounds[:, 0])
        cells = (f"{ours:.4g}", f"{theirs:.4g}", f"{ours / theirs:.3f}")
        print(f"| {name} | {' | '.join(cells)} | {coverage(truth, bounds):.3f} | {width:.4g} |")


if __name__ == "__main__":
    main()
