"""Docstrings of the estimators: shared paragraphs are inserted, and parameters are complete."""

import inspect
import re

import pytest

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.estimators._docstrings import SHARED, shared_docs

docscrape = pytest.importorskip("numpydoc.docscrape")


def documented():
    """The two estimators and their public methods."""
    for estimator in (ELMEnsembleRegressor, ELMRegressor):
        yield estimator.__name__, estimator
        for name, method in inspect.getmembers(estimator, inspect.isfunction):
            if not name.startswith("_") and method.__module__.startswith("ulmus."):
                yield f"{estimator.__name__}.{name}", method


@pytest.mark.parametrize("value", list(dict(documented()).values()), ids=dict(documented()))
def test_parameters_are_those_of_the_signature(value):
    text = inspect.getdoc(value)
    assert re.search(r"^ *\{[\w, ]+\}$", text, flags=re.M) is None
    sections = docscrape.NumpyDocString(text)
    described = [part for entry in sections["Parameters"] for part in entry.name.split(", ")]
    assert described == [p for p in inspect.signature(value).parameters if p != "self"]
    assert max(map(len, value.__doc__.splitlines())) <= 100


def test_paragraphs_replace_a_line_of_names():
    @shared_docs
    def f():
        """One line.

        {random_state, n_features_in_}
        """

    lines = [" " * 8 + line for name in ("random_state", "n_features_in_") for line in SHARED[name]]
    assert f.__doc__.splitlines()[2:-1] == lines


def test_an_unknown_name_is_an_error():
    def f():
        """{no_such_parameter}"""

    with pytest.raises(KeyError):
        shared_docs(f)
