"""Learned maps of the inputs: Friedman's function with useless inputs, and times of default fits.

``make bench-maps`` runs it with all cores, as a user would; ``--only friedman`` runs one part.
"""

import datetime
import os
import time
import warnings
from collections.abc import Iterator

import numpy as np
import report
from report import Row, machine
from timing import dgemm

from ulmus import ELMEnsembleRegressor
from ulmus.datasets import friedman as function

DRAWS, USEFUL, INPUTS = 10, 5, 10
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


PARTS = (friedman, seconds)


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
