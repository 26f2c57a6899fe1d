"""Standard errors from forms of low rank: agreement with the exact forms, cost, and file size.

Part ``agreement`` compares standard errors of one fit by its forms of low rank and by the exact
ones: at training rows, between neighbours, up to 10 % outside the range of the rows, at twice their
range, and for averages, differences and slopes. ``DATA`` is a folder of tables NAME.npz with X, y
and train_idx, as for ``make bench-uci``; without it only simulated tables are compared. Part
``cost`` compares predictions with standard errors with scikit-learn's Gaussian process, and
measures the model file and the ONNX graph.
"""

import os
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import report
from report import Row
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from timing import best_times, one_thread, seconds

from ulmus import ELMEnsembleRegressor
from ulmus.core.fit.basis_points import Surroundings
from ulmus.core.fit.fit import Fit

Array = np.ndarray
TABLES = ("yacht", "boston", "energy", "concrete", "wine-red", "kin8nm", "power")
SIMULATED = (300, 1000, 4000)
MOST_ROWS = 4000


def simulated(n: int, seed: int = 0) -> tuple[Array, Array]:
    """A function of four of eight inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    return X, f + 0.3 * rng.normal(size=n)


def tables(folder: Path | None) -> Iterator[tuple[str, Array, Array]]:
    for n in SIMULATED:
        yield f"simulated, n={n}", *simulated(n)
    for name in TABLES if folder else ():
        arrays = np.load(folder / f"{name}.npz")
        rows = arrays["train_idx"][0][:MOST_ROWS]
        yield f"{name}, n={len(rows)}", arrays["X"][rows], arrays["y"][rows]


def with_exact_forms(model: ELMEnsembleRegressor) -> ELMEnsembleRegressor:
    """The same fit with exact forms."""
    fit, other = model.fitted_, ELMEnsembleRegressor(**model.get_params()).set_params(exact=True)
    vars(other).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    regression = replace(fit.spec.regression, exact=True)
    other.fitted_ = replace(fit, spec=replace(fit.spec, regression=regression))
    return other


def errors(found: Array, exact: Array) -> str:
    """Median, 95 % quantile and largest relative error in percent."""
    found, exact = np.asarray(found), np.asarray(exact)
    size = 100 * np.abs(found[exact > 0] / exact[exact > 0] - 1)
    return " / ".join(f"{value:.2f}" for value in np.quantile(size, [0.5, 0.95, 1]))


def points(fit: Fit, X: Array) -> dict[str, Array]:
    """Points by kind."""
    rng = np.random.default_rng(7)
    around, center = (
        Surroundings(X, fit.scale.low, fit.scale.high),
        (fit.scale.low + fit.scale.high) / 2,
    )
    rows = X[rng.permutation(len(X))[:500]]
    return {
        "rows": rows,
        "neighbours": around.neighbours(500, rng),
        "10 % outside": around.outside(500, rng),
        "twice the range": center + 2 * (rows[:200] - center),
    }


def standard_errors(model: ELMEnsembleRegressor, X: Array) -> Array:
    return np.sqrt(model.predict_var(X, component="model"))


def effects(model: ELMEnsembleRegressor, X: Array) -> dict[str, Array]:
    """Standard errors of averages over groups of rows, differences, and slopes."""
    by = np.arange(len(X)) % 10
    return {
        "averages": model.average(X, by=by)["std_error"].to_numpy(),
        "differences": model.compare(X, {0: "sd"}, by=by)["std_error"].to_numpy(),
        "slopes": model.slope(X, by=by)["std_error"].to_numpy(),
    }


def agreement(folder: Path | None) -> Iterator[str | Row]:
    yield "relative errors of standard errors in percent: median / 95 % quantile / largest"
    for name, X, y in tables(folder):
        model = ELMEnsembleRegressor(random_state=0).fit(X, y)
        fit, layer = model.fitted_, model.fitted_.ensemble.layer
        build = seconds(lambda fit=fit: fit.low_rank)
        size = f"{layer.n_members} x {layer.n_units - 1} units, {model.dof_:.0f} degrees of freedom"
        if fit.low_rank is None:
            yield f"{name}: {size}; exact forms are kept ({build:.2f} s)"
            continue
        exact = with_exact_forms(model)
        yield (
            f"{name}: {size}; rank {fit.low_rank.rank}, stated tolerance "
            f"{100 * model.variance_tolerance_:.2f} %, built in {build:.2f} s"
        )
        for kind, at in points(fit, X).items():
            yield f"    {kind:<16} {errors(standard_errors(model, at), standard_errors(exact, at))}"
        some = X[:200]
        for kind, found in effects(model, some).items():
            yield f"    {kind:<16} {errors(found, effects(exact, some)[kind])}"
        a, b = (one.predict_interval(points(fit, X)["10 % outside"]) for one in (model, exact))
        moved = np.max(np.abs(a - b), axis=1) / (b[:, 1] - b[:, 0])
        yield f"    intervals, largest shift of an end over the width: {np.max(moved):.4f}"


def cost(folder: Path | None) -> Iterator[str | Row]:
    X, y = simulated(1000)
    new, _ = simulated(2000, seed=1)
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    exact = with_exact_forms(model)
    kernel = RBF(np.ones(8)) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    build = seconds(lambda: model.fitted_.low_rank)
    yield Row("forms of low rank, built once, n=1000", build, "s", "in the fit", "<=", 0.15)
    tasks = [lambda one=one: one.predict(new, return_std=True) for one in (model, exact, process)]
    low, full, peer = best_times(*tasks, lambda: None, turns=3)[1][:3] / len(new) * 1e3
    source = f"{low:.3f} ms / {peer:.3f} ms a point; exact forms {full:.3f} ms"
    yield Row(
        "predict(return_std=True) over a Gaussian process", low / peer, "ratio", source, "<=", 1
    )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model.ulmus"
        for rows, limit in ((True, 4.0), (False, None)):
            model.save(path, rows=rows)
            text = "model file with rows" if rows else "model file without rows"
            size = os.path.getsize(path) / 1e6
            yield Row(text, size, "MB", "n=1000, d=8", "<=" if limit else "", limit)
    yield from graph(model, new[:1000])


def graph(model: ELMEnsembleRegressor, X: Array) -> Iterator[Row]:
    import onnxruntime

    from ulmus.onnx import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    content = to_onnx(model).SerializeToString()
    session = onnxruntime.InferenceSession(content, options)
    wall = best_times(lambda: session.run(None, {"X": X}), turns=5).min()
    yield Row(
        "ONNX with errors, 1000 points", wall, "s", f"{len(content) / 1e6:.0f} MB", "<=", 0.15
    )


PARTS = {"agreement": agreement, "cost": cost}

if __name__ == "__main__":
    one_thread()
    warnings.simplefilter("ignore")
    parser = report.parser(__doc__, PARTS)
    parser.add_argument("--data", type=Path, help="folder of tables")
    options = parser.parse_args()
    printer = report.Printer("compact_forms.py", options)
    printer.titles()
    for name, part in PARTS.items():
        if options.only in (None, name):
            for line in part(options.data):
                printer.row(line) if isinstance(line, Row) else printer.text(line)
