"""Learned maps of the inputs: Friedman's function with useless inputs, times of default fits, and
what the search costs and leaves unfound.

``make bench-maps`` runs it with all cores, as a user would; ``--only friedman`` runs one part.
"""

import datetime
import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import report
from report import Row, machine
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits
from timing import dgemm

from ulmus import ELMEnsembleRegressor
from ulmus.core.data.source import Block
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.core.input_map.optimisation import learned_map
from ulmus.core.input_map.relevance import relevance
from ulmus.core.input_map.search import Search
from ulmus.core.layer.hidden_layer import UnitDistribution
from ulmus.core.layer.inputs import Inputs
from ulmus.datasets import friedman as function
from ulmus.estimators._importance import tree_importances

DRAWS, USEFUL, INPUTS = 10, 5, 10
# Rows on which the search is timed, and its largest time over six boosting fits.
SEARCHED = {300: 1.0, 1000: 1.0, 4000: 2.0}
# Rows of a default fit, and how many seconds it may take on two cores.
LIMITS = {500: 4, 5000: 20, 100_000: 90}


def inputs(n: int, seed: int) -> np.ndarray:
    """Inputs (n, 10) of Friedman's function, of which the last five are useless."""
    return np.random.default_rng(seed).uniform(0, 1, (n, INPUTS))


def fitted(n: int, seed: int, variance: float = 1.0) -> ELMEnsembleRegressor:
    """The default, fitted to Friedman's function with noise."""
    X = inputs(n, seed)
    noise = np.sqrt(variance) * np.random.default_rng([seed, 1]).standard_normal(n)
    return ELMEnsembleRegressor(random_state=seed).fit(X, function(X) + noise)


def friedman() -> Iterator[Row]:
    """Error and relevance over several draws of 1000 rows, with the paper's noise and with more."""
    X = inputs(2000, 10_000)
    for variance in (0.5, 1.0):
        models = [fitted(1000, seed, variance) for seed in range(DRAWS)]
        errors = [np.sqrt(np.mean((model.predict(X) - function(X)) ** 2)) for model in models]
        useless = max(np.sum(model.feature_relevance_[USEFUL:]) for model in models)
        spread = f"{DRAWS} draws, {min(errors):.3f} to {max(errors):.3f}"
        case = f"Friedman 1, n=1000, noise variance {variance}"
        yield Row(f"{case}: RMSE to f", float(np.mean(errors)), "rate", spread, "<=", 0.2)
        yield Row(f"{case}: useless relevance", float(useless), "rate", "largest", "<", 0.03)


def seconds() -> Iterator[Row]:
    """Time of a default fit, the map included."""
    fitted(200, 0)
    for n, limit in LIMITS.items():
        start = time.perf_counter()
        units = fitted(n, 0).coef_.shape[1]
        taken = time.perf_counter() - start
        yield Row(f"default fit, n={n}, d={INPUTS}", taken, "s", f"{units} units", "<", limit)


def interactions(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight inputs, of which four matter, two only through their product; and outputs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 8))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3])
    return X, f + 0.3 * rng.standard_normal(n)


def processor_time(task: Callable[[], Any]) -> tuple[Any, float]:
    """Result of a task and its processor time."""
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def search() -> Iterator[Row]:
    """Time of importances, search and relevance, and what 200 further steps gain.

    The time is that of one thread, over the six boosting fits of cross-validated intervals.
    """
    law = UnitDistribution("normal", None, "tanh")
    inputs = Inputs(np.zeros(8), np.ones(8))
    for n, limit in SEARCHED.items():
        X, y = interactions(n)
        networks = probe_networks(
            Block(X, y[None, :], None), inputs, law, [1, 2], min(512, 2 * n // 3), centred=True
        )
        assert networks is not None

        def boosting(X: np.ndarray = X, y: np.ndarray = y) -> None:
            for _ in range(6):
                HistGradientBoostingRegressor().fit(X, y)

        def learned(networks: Any = networks) -> Any:
            ranked = tree_importances(networks.Z, networks.y, np.arange(8))
            found, last = learned_map(networks, "ard", lambda _: None, ranked.values)
            relevance(last, found, np.arange(8), 0)
            return found, last

        with threadpool_limits(1):
            _, reference = processor_time(boosting)
            (found, last), taken = processor_time(learned)
        case = f"map of {n} rows, d=8"
        yield Row(
            f"{case}: time over six boosting fits", taken / reference, "ratio", "", "<", limit
        )
        yield Row(f"{case}: time", taken, "s", f"{last.n_networks} x {last.n_units} units at last")
        p = np.append(np.log(np.where(np.diag(found.matrix) > 0, np.diag(found.matrix), 1.0)), 0.0)
        p[-1] = found.log_alpha + np.log(networks.n_units / last.n_units)
        kept = np.diag(found.matrix) > 0
        before = networks.value(found.matrix, p[-1])
        whole = Search(networks, lambda _: None)
        after = networks.value(*_maximum(whole, p, kept))
        source = "log likelihood of all networks and rows"
        yield Row(f"{case}: gain of further steps", before - after, "rate", source, "<", 10)


def _maximum(search: Search, p: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, float]:
    """Map and log alpha after many more steps."""
    p, _ = search.best_scales(p, kept, 200, "further steps", near=True)
    return np.exp(p[:-1]) * kept, float(p[-1])


PARTS = (friedman, seconds, search)


def header() -> Iterator[str]:
    load = os.getloadavg()[0]
    busy = "; other jobs are running, so the times are too long" if load > 1 else ""
    yield f"{machine()}, {datetime.date.today()}, load at the start {load:.1f}{busy}\n"


def main() -> None:
    warnings.simplefilter("ignore")
    options = report.parser(__doc__, [part.__name__ for part in PARTS]).parse_args()
    report.print_parts("maps.py", options, header(), (dgemm, *PARTS))


if __name__ == "__main__":
    main()
