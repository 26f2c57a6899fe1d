"""Miniatures of the paper's studies."""

from dataclasses import replace

import pytest

from reproduction import STUDIES

# The paper's settings with few test points and small ensembles.
MINIATURES = {
    "sine60": {"members": (5, 10), "n_test": 100},
    "sine100": {"members": (5, 10), "n_test": 100},
    "friedman": {"members": (5, 10), "n_test": 60},
    "heteroskedastic": {"members": (5,), "n_test": 200},
    "wide": {"n_test": 60},
}


@pytest.fixture(scope="session")
def paper_miniature():
    """Function that returns a study of the paper with few test points and small ensembles."""
    return lambda name: replace(STUDIES[name], **MINIATURES[name])
