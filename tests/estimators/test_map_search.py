"""The search of an input map where inputs matter only through their interactions."""

import numpy as np
import pytest
from messages import mentions
from models import mapped_ensemble
from numpy.testing import assert_allclose, assert_array_equal

import ulmus
from ulmus.core.fit import layer as fit_layer
from ulmus.core.fit.layer import Importances
from ulmus.estimators import _fit_methods
from ulmus.estimators._importance import tree_importances
from ulmus.exceptions import DegenerateFitWarning

USEFUL = [9, 7]


def wave(X):
    """Waves of a product, which average to zero over either input."""
    return 1.4 * np.sin(2 * X[:, USEFUL[0]] * X[:, USEFUL[1]])


def table(n=600, d=20, seed=3):
    """Rows and points of which two inputs of many matter, through their product alone."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (n + 500, d))
    y = wave(X) + 0.1 * rng.standard_normal(len(X))
    return X[:n], y[:n], X[n:], y[n:]


def relative_error(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2)) / np.std(y)


def kept(model):
    return np.flatnonzero(model.feature_relevance_ > 0)


@pytest.mark.slow
def test_inputs_that_matter_by_their_product_alone_are_found():
    X, y, X_new, y_new = table()
    model = mapped_ensemble(3, 100, random_state=7).fit(X, y)
    assert set(USEFUL) <= set(kept(model))
    assert model.feature_relevance_[USEFUL].sum() > 0.9
    assert relative_error(model, X_new, y_new) < 0.8


@pytest.mark.slow
def test_sign_units_and_order_give_the_same_map():
    X, y, *_ = table(400, 12)
    order = np.random.default_rng(0).permutation(len(y))
    model = mapped_ensemble(2, 30, random_state=1).fit(X, y)
    others = [(X, -y), (X * 2.54 + 7, 1e3 * y + 5), (X[order], y[order])]
    for inputs, outputs in others:
        other = mapped_ensemble(2, 30, random_state=1).fit(inputs, outputs)
        assert_array_equal(kept(other), kept(model))
        assert_allclose(other.feature_relevance_, model.feature_relevance_, atol=1e-3)


@pytest.mark.slow
def test_trees_rank_the_inputs_that_matter_first():
    X, y, *_ = table()
    ranked = tree_importances(X, y[:, None], np.arange(X.shape[1]))
    assert set(np.argsort(-ranked.values)[:2]) == set(USEFUL)
    assert 0.05 < ranked.explained < 0.5
    noise = np.random.default_rng(0).standard_normal((len(y), 1))
    assert tree_importances(X, noise, np.arange(X.shape[1])).explained == 0
    assert tree_importances(X[:50], y[:50, None], np.arange(X.shape[1])) is None


@pytest.mark.slow
def test_a_fold_starts_from_the_relevance_of_the_fit():
    """Without trees, whose importances the core does not have, folds would find nothing."""
    X, y, X_new, y_new = table(400, 12)
    model = mapped_ensemble(2, 60, random_state=1).fit(X, y)
    error = relative_error(model, X_new, y_new)
    assert error < 0.7
    for fold in model.fitted_.folds:
        assert np.sqrt(np.mean((fold.mean(X_new)[0] - y_new) ** 2)) / np.std(y_new) < 1.3 * error


def test_a_fit_that_misses_the_signal_of_trees_says_so(monkeypatch, rng):
    X, y = rng.standard_normal((60, 8)), rng.standard_normal(60)

    def important(Z, y, origin):
        return Importances(np.eye(Z.shape[1])[0], explained=0.4)

    monkeypatch.setattr(fit_layer, "explains_nothing", lambda value, d: True)
    monkeypatch.setattr(_fit_methods, "tree_importances", important)
    with pytest.warns(DegenerateFitWarning, match=mentions("boosted trees", "random_state")):
        model = mapped_ensemble(2, 20).fit(X, y)
    assert model.fitted_.input_map.missed_signal


def test_a_fit_of_little_signal_in_trees_has_a_file(monkeypatch, rng, tmp_path):
    """The share that trees explain is positive, and too small for a missed signal."""
    X = rng.standard_normal((150, 8))
    y = X[:, 0] + 1.5 * rng.standard_normal(150)
    explained = tree_importances(X, y[:, None], np.arange(8)).explained
    monkeypatch.setattr(fit_layer, "MISSED_SHARE", 1.1 * explained)
    mapped_ensemble(2, 20).fit(X, y).save(tmp_path / "model.ulmus")
    model = ulmus.load(tmp_path / "model.ulmus")
    assert explained > 0
    assert model.fitted_.input_map.missed_signal is False
