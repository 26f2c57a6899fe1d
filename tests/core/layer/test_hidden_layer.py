"""The hidden layer: derivatives of its features, its members, and activations of one's own."""

import numpy as np
import pytest
import scipy.sparse
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.layer.hidden_layer import ACTIVATIONS
from ulmus.core.layer.inputs import Inputs


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_are_central_differences(name):
    u = np.concatenate([np.linspace(-5, 5, 100), [-39.0, 39.0]])  # zero is not among them
    step = 1e-6
    activation = ACTIVATIONS[name]
    difference = (activation.value(u + step) - activation.value(u - step)) / (2 * step)
    assert_allclose(activation.derivative(u.copy()), difference, rtol=1e-6, atol=1e-8)
    assert_array_equal(activation.both(u.copy())[0], activation.value(u.copy()))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("name", ["tanh", "logistic", "rbf", "cos"])
def test_features_change_by_their_derivative(make_layer, name, constant):
    rng = np.random.default_rng(0)
    layer = make_layer(3, 5, 4, activation=name, constant=constant)
    layer = type(layer)(
        layer.W,
        layer.b,
        Inputs(rng.standard_normal(4), np.array([0.5, 2.0, 1.0, 3.0])),
        name,
        constant,
    )
    X = rng.standard_normal((7, 4))
    for j in range(4):
        step = 1e-6 * (np.arange(4) == j)
        difference = (layer(X + step) - layer(X - step)) / 2e-6
        along = np.tile(np.eye(4)[j], (7, 1))
        derivative = layer.derivative(X, along)
        assert_allclose(derivative, difference, rtol=1e-6, atol=1e-8)
        rows, sparse = scipy.sparse.csr_array(X), scipy.sparse.csr_array(along)
        assert_allclose(layer.derivative(rows, sparse), derivative, rtol=1e-9, atol=1e-12)


def test_each_row_has_a_direction_of_its_own(make_layer):
    layer = make_layer(3, 5, 4, activation="tanh", constant=True)
    X, along = np.random.default_rng(0).standard_normal((2, 7, 4))
    difference = (layer(X + 1e-6 * along) - layer(X - 1e-6 * along)) / 2e-6
    assert_allclose(layer.derivative(X, along), difference, rtol=1e-6, atol=1e-8)


def test_derivatives_in_other_libraries(xp, make_layer):
    layer = make_layer(3, 5, 4, activation="tanh", constant=True)
    X = np.random.default_rng(0).standard_normal((7, 4))
    parts = (layer.W, layer.b, layer.inputs.offset, layer.inputs.scale)
    W, b, *scaling = map(xp.asarray, parts)
    foreign = type(layer)(W, b, Inputs(*scaling), "tanh", True)
    along = np.tile(np.eye(4)[2], (7, 1))
    ours = to_numpy(foreign.derivative(xp.asarray(X), xp.asarray(along)))
    assert_allclose(ours, layer.derivative(X, along), rtol=1e-10)


def test_a_function_of_ones_own_has_no_derivative(make_layer):
    layer = make_layer(2, 3, 2, activation=np.tanh)
    with pytest.raises(ValueError, match=r"derivative.*activation by name"):
        layer.derivative(np.ones((2, 2)), np.ones((2, 2)))


def test_some_members_are_a_layer_of_their_own(make_layer):
    layer = make_layer(5, 3, 2, constant=True)
    X = np.random.default_rng(0).standard_normal((7, 2))
    few = layer.members(slice(1, 3))
    assert (few.n_members, few.width, few.n_units) == (2, 8, 4)
    assert_array_equal(few(X), layer(X)[1:3])


@pytest.mark.parametrize(
    ("activation", "message"),
    [
        (lambda u: np.full_like(u, np.nan), r"activation returned NaN.*weight_scale"),
        (lambda u: np.where(u > 0, np.inf, u), r"activation returned NaN or infinity"),
        (lambda u: u[:2], r"activation must return an array of the shape"),
        (lambda u: None, r"activation must return an array of the shape.*NoneType"),
    ],
    ids=["NaN", "infinity", "shape", "None"],
)
def test_an_activation_that_returns_no_features(make_table, activation, message):
    data = make_table(40)
    with pytest.raises(ValueError, match=message):
        plain_ensemble(3, 8, activation=activation).fit(data.X, data.y)


@pytest.mark.parametrize("n", [60, 1500], ids=["rows at once", "a sample of rows"])
def test_members_are_factorised_in_portions(make_table, monkeypatch, n):
    X, y, w, X_new = make_table(n)
    model = plain_ensemble(5, 8, random_state=0)
    before = model.fit(X, y, w).predict(X_new, return_std=True)
    layer = model.fitted_.ensemble.layer
    assert [some.n_members for some in layer.portions(60)] == [1] * 5
    monkeypatch.setattr("ulmus.core.layer.hidden_layer.is_on_host", lambda _: False)
    monkeypatch.setattr("ulmus.core.layer.hidden_layer.PORTION_ELEMENTS", 2 * 60 * 9)
    assert [some.n_members for some in layer.portions(60)] == [2, 2, 1]
    assert_array_equal(model.fit(X, y, w).predict(X_new, return_std=True), before)
