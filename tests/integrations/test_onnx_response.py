"""Graphs of transformed, bounded and counted targets return what the model returns."""

import dataclasses
import json

import numpy as np
import pytest
from messages import mentions
from models import small_ensemble
from sklearn.preprocessing import PowerTransformer

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx_comparison import by_model, require_agreement, session

from ulmus.core.response.transforms import Identity, Log, Logit, Sqrt, YeoJohnson
from ulmus.exceptions import InputError
from ulmus.onnx import to_onnx, usage

MOMENTS = ["estimate", "std_error", "sd"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (160, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1], rng.standard_normal(160), rng.uniform(-2, 2, (40, 2))


TARGETS = {
    "log": (lambda f, e: np.exp(f + 0.4 * e), {"target_transform": "log"}),
    "log with zeros": (
        lambda f, e: np.round(np.exp(f + 0.4 * e) * (np.abs(f) > 0.02), 3),
        {"target_transform": "log"},
    ),
    "log above 2": (
        lambda f, e: 2 + np.exp(f + 0.4 * e),
        {"target_transform": "log", "target_range": (2, 30)},
    ),
    "sqrt": (lambda f, e: (f + 2 + 0.4 * e) ** 2, {"target_transform": "sqrt"}),
    "logit": (lambda f, e: 5 / (1 + np.exp(-f - e)), {"target_transform": "logit"}),
    "yeo-johnson": (
        lambda f, e: np.sinh(1.5 * (f + 0.4 * e)),
        {"target_transform": "yeo-johnson"},
    ),
    "bounds": (lambda f, e: np.clip(f + 2.4 + 0.5 * e, 0.0, 4.0), {"target_range": (0, 4)}),
    "count": (
        lambda f, e: np.random.default_rng(0).poisson(np.exp(f)).astype(float),
        {"target_kind": "count"},
    ),
    "dispersed": (
        lambda f, e: np.floor(np.exp(f + e)) * (np.random.default_rng(1).random(160) > 0.4),
        {"target_kind": "count"},
    ),
    "point mass": (
        lambda f, e: np.maximum(f + 0.6 * e, 0.0),
        {"target_transform": "sqrt", "target_range": (0, None)},
    ),
}


def fitted(table, name, **parameters):
    X, f, e, _ = table
    transform, target = TARGETS[name]
    y, target = transform(f, e), dict(target)
    if name == "logit":
        target["target_range"] = (0, 5)
    return small_ensemble(3, 20, alpha=0.1, **target, **parameters).fit(X, y)


def require_moments(model, proto, X):
    """The estimate, its standard error and the standard deviation are those of the model."""
    ours = by_model(model, X)
    theirs = session(proto).run(MOMENTS, {"X": X})
    for name, values in zip(MOMENTS, theirs, strict=True):
        size = np.max(np.abs(ours["estimate"]), axis=0)
        limit = 1e-6 * np.abs(ours[name]) + 1e-9 * size
        assert np.all(np.abs(values - ours[name]) <= limit), name


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize(
    "name", ["log", "log with zeros", "log above 2", "sqrt", "logit", "yeo-johnson", "bounds"]
)
def test_a_transformed_target(table, name, noise):
    model = fitted(table, name, noise=noise)
    proto = require_agreement(model, table[0], table[3])
    properties = {item.key: item.value for item in proto.metadata_props}
    assert json.loads(properties["target_transform"]) == [model.target_transform_]


TRANSFORMS = pytest.mark.parametrize(
    "transform",
    [
        Identity(),
        Log(1.0, 0.3),
        Sqrt(-1.0),
        Logit(-1.0, 9.0, 0.01),
        *(YeoJohnson(power, 0.4, 1.7) for power in (-1.0, 0.0, 0.5, 1.0, 2.0, 2.7)),
    ],
    ids=str,
)


@TRANSFORMS
def test_every_transformation(table, transform):
    """Means and bounds far beyond the domain of the inverse are those of the model."""
    model = fitted(table, "log")
    (family,) = model.fitted_.response
    wide = dataclasses.replace(family.nodes, value=4 * family.nodes.value)
    family = dataclasses.replace(family, transform=transform, nodes=wide, low=-6.0, high=50.0)
    model.fitted_ = dataclasses.replace(model.fitted_, response=(family,))
    require_agreement(model, table[0], 3 * table[3])


@pytest.mark.parametrize("name", ["count", "dispersed", "point mass"])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_counts_and_point_masses_have_moments_and_no_bounds(table, name, noise):
    model = fitted(table, name, noise=noise)
    proto = to_onnx(model)
    assert [output.name for output in proto.graph.output] == MOMENTS
    require_moments(model, proto, table[3])
    text = usage(proto, "m.onnx")
    assert "estimate, std_error, sd = session.run" in text
    assert text.splitlines()[-1].startswith("No bounds")


@TRANSFORMS
def test_every_transformation_above_a_point_mass(table, transform):
    model = fitted(table, "point mass")
    (family,) = model.fitted_.response
    above = dataclasses.replace(family.above, transform=transform, low=0.0, high=9.0)
    family = dataclasses.replace(family, above=above)
    model.fitted_ = dataclasses.replace(model.fitted_, response=(family,))
    require_moments(model, to_onnx(model), 2 * table[3])


def test_extra_zeros_of_counts(table):
    model = fitted(table, "count")
    (family,) = model.fitted_.response
    family = dataclasses.replace(family, dispersion=0.4, odds=np.array([-1.0, 0.7]))
    model.fitted_ = dataclasses.replace(model.fitted_, response=(family,))
    require_moments(model, to_onnx(model), table[3])


def test_several_outputs(table):
    X, f, e, X_new = table
    Y = np.stack([np.exp(f + 0.4 * e), np.sinh(f + 0.6 * e)], axis=1)
    model = small_ensemble(3, 20, alpha=0.1, target_transform="yeo-johnson").fit(X, Y)
    require_agreement(model, X_new)
    # A graph has the results that all outputs have.
    (count,) = fitted(table, "count").fitted_.response
    families = model.fitted_.response[0], count
    model.fitted_ = dataclasses.replace(model.fitted_, response=families)
    proto = to_onnx(model)
    assert [output.name for output in proto.graph.output] == MOMENTS
    require_moments(model, proto, X_new)


def test_missing_inputs_give_missing_results(table):
    X = table[3].copy()
    X[0, 1] = np.nan
    for name in ("log", "bounds", "count", "point mass"):
        proto = to_onnx(fitted(table, name))
        results = session(proto).run(None, {"X": X})
        for values in results:
            assert np.isnan(values[0])
            assert np.all(np.isfinite(values[1:]))


def test_objects_of_other_packages_are_refused(table):
    X, f, e, _ = table
    model = small_ensemble(3, 20, alpha=0.1, target_transform=PowerTransformer())
    model.fit(X, np.exp(f + 0.4 * e))
    with pytest.raises(InputError, match=mentions("target_transform", "graph", "yeo-johnson")):
        to_onnx(model)
