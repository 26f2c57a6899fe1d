"""Search of input maps where few of many inputs matter, and only through their interactions.

Random tables of 500 to 10,000 rows with 20 to 60 inputs, of which 2 to 5 matter: products, waves of
products, signs and radial functions, whose averages over all inputs but one are constant. Boosting
with its defaults is the reference: where it finds the signal, default fits should predict as well.
"""

from collections.abc import Callable, Iterator

import numpy as np
import report
from replication import replicate
from report import Row
from sklearn.ensemble import HistGradientBoostingRegressor

from ulmus import ELMEnsembleRegressor

Array = np.ndarray
Report = Iterator[str | Row]
N_NEW = 2000


def product(X: Array) -> Array:
    return np.prod(X, axis=1)


def pairs(X: Array) -> Array:
    """Sum of products of neighbours."""
    return np.sum(X[:, 1:] * X[:, :-1], axis=1)


def wave(X: Array) -> Array:
    return np.sin(2 * X[:, 0] * X[:, 1]) + (
        np.sin(2 * X[:, -1] * X[:, -2]) if X.shape[1] > 3 else 0
    )


def signs(X: Array) -> Array:
    """A smooth exclusive or of the first two inputs, with the size of the last."""
    return np.tanh(3 * X[:, 0]) * np.tanh(3 * X[:, 1]) * (1 + np.abs(X[:, -1]))


def saddle(X: Array) -> Array:
    return (X[:, 0] ** 2 - 1) * X[:, 1] + (X[:, -1] * X[:, -2] if X.shape[1] > 3 else 0)


FUNCTIONS: tuple[Callable[[Array], Array], ...] = (product, pairs, wave, signs, saddle)


def errors(r: int) -> tuple[Array, str]:
    """RMSE of a default fit, of boosting and of a constant on new rows, and the table in words."""
    rng = np.random.default_rng([7, r])
    n, d = int(500 * 20 ** rng.random()), int(rng.integers(20, 61))
    function, useful = FUNCTIONS[r % len(FUNCTIONS)], int(rng.integers(2, 6))
    if function is product:
        useful = min(useful, 3)  # trees find no product of four
    normal = rng.random() < 0.5
    X = rng.standard_normal((n + N_NEW, d)) if normal else rng.uniform(-1.7, 1.7, (n + N_NEW, d))
    f = function(X[:, rng.permutation(d)[:useful]])
    f = (f - f.mean()) / f.std()
    noise = rng.choice([0.1, 0.3, 0.6])
    y = f + noise * rng.standard_normal(len(f))
    ours = ELMEnsembleRegressor(random_state=r).fit(X[:n], y[:n])
    boosting = HistGradientBoostingRegressor(random_state=r).fit(X[:n], y[:n])
    rmse = [float(np.sqrt(np.mean((m.predict(X[n:]) - y[n:]) ** 2))) for m in (ours, boosting)]
    words = f"{function.__name__}, {useful} of {d}, n={n}, noise {noise}"
    return np.array([*rmse, y[n:].std()]), words


def tables(jobs: int, replications: int | None) -> Report:
    R = replications or 100
    yield f"{R} tables; RMSE on {N_NEW} new rows: default fit, boosting, constant\n"
    runs = replicate(jobs, errors, times=R)
    for rmse, words in runs:
        yield f"{words:<44} {rmse[0]:7.3f} {rmse[1]:7.3f} {rmse[2]:7.3f}   {rmse[0] / rmse[1]:.2f}"
    rmse = np.array([run[0] for run in runs])
    ratio = rmse[:, 0] / rmse[:, 1]
    found = rmse[:, 1] < 0.9 * rmse[:, 2]  # boosting explains a fifth of the variance
    source = f"{R} tables"
    yield Row(
        "RMSE over boosting's, geometric mean", float(np.exp(np.log(ratio).mean())), "ratio", source
    )
    yield Row("the same, largest", float(ratio.max()), "ratio", source, "<=", 1.05)
    lost = float(np.mean(rmse[found, 0] > 0.95 * rmse[found, 2]))
    source = f"{int(found.sum())} tables whose signal boosting finds"
    yield Row("share of tables whose signal is lost", lost, "share", source, "<=", 0.0)


PARTS = {"tables": tables}

if __name__ == "__main__":
    report.simulate("map_search.py", __doc__, PARTS)
