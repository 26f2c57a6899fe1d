"""Models of transformed, bounded and counted targets in files: whole, damaged, or refused."""

import copy
import json
import os

import numpy as np
import pytest
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_array_equal
from safetensors_parts import array_of, entry, sealed, taken_apart
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.core.response.transformer import Fitted, Transformer
from ulmus.exceptions import InputError, ModelFileError
from ulmus.model_file import SKOPS_TRUSTED_TYPES, model_document
from ulmus.model_file.serialisation import FIT_CLASSES

N = 130


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (N, 2))
    f, e = np.sin(2 * X[:, 0]) + X[:, 1], rng.standard_normal(N)
    targets = {
        "positive": np.exp(f + 0.4 * e),
        "share": 1 / (1 + np.exp(-f - 0.5 * e)),
        "skewed": np.sinh(1.5 * (f + 0.4 * e)),
        "rain": np.maximum(f + 0.6 * e, 0.0),
        "count": rng.poisson(np.exp(f)).astype(float),
        "zeros": rng.poisson(np.exp(f + 1)) * (rng.random(N) < 0.6).astype(float),
    }
    return X, targets, rng.uniform(-1, 1, (9, 2))


# Parameters of the target, and the column that they are for.
TARGETS = {
    "log": ({"target_transform": "log"}, "positive"),
    "sqrt": ({"target_transform": "sqrt"}, "positive"),
    "logit": ({"target_transform": "logit"}, "share"),
    "yeo-johnson": ({"target_transform": "yeo-johnson"}, "skewed"),
    "auto": ({"target_transform": "auto"}, "positive"),
    "bounds": ({"target_range": (0, np.inf)}, "positive"),
    "rain": ({"target_transform": "sqrt", "target_range": (0, None)}, "rain"),
    "count": ({"target_kind": "count"}, "count"),
    "zeros": ({"target_kind": "count"}, "zeros"),
    "nothing": ({"target_kind": "continuous"}, "positive"),
}


def fitted(table, name, **parameters):
    X, targets, _ = table
    target, column = TARGETS[name]
    return small_ensemble(3, 15, alpha=0.1, **target, **parameters).fit(X, targets[column])


def results(model, X):
    """Everything that a model computes at points."""
    distribution = model.predict_dist(X)
    mean, sd = model.predict(X, return_std=True)
    found = {
        "mean": mean,
        "sd": sd,
        "median": model.predict_median(X),
        "variance": model.predict_var(X, component="model"),
        "noise": model.predict_var(X, component="noise"),
        "interval": model.predict_interval(X, [0.5, 0.9]),
        "gaussian": model.predict_interval(X, method="gaussian"),
        "shortest": model.predict_interval(X, tails="shortest"),
        "confidence": model.predict_interval(X, kind="confidence"),
        "quantiles": model.predict_quantiles(X, [0.1, 0.9]),
        "cdf": distribution.cdf(1.0),
        "ppf": distribution.ppf(0.3),
        "logpdf": distribution.logpdf(1.0),
        "average": np.asarray(model.average(X)[["estimate", "std_error", "conf_low"]]),
        "slope": np.asarray(model.slope(X)[["estimate", "std_error", "conf_low"]]),
        "exceedance": model.exceedance(X, 1.0),
        "simulate": model.simulate(X, 3, random_state=0),
        "transform": model.target_transform_,
    }
    if model.fitted_.rows is not None:
        found["loo"] = model.loo_predictions_
    return found


def assert_same_results(ours, expected, X):
    expected = results(expected, X)
    for name, values in results(ours, X).items():
        assert_array_equal(values, expected[name], err_msg=name)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ulmus"


# ---------------------------------------------------------------- what comes back


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("name", TARGETS)
def test_a_target_comes_back_to_the_last_bit(table, path, name, rows):
    model = fitted(table, name)
    model.save(path, rows=rows)
    again = ulmus.load(path)
    assert again.get_params() == model.get_params()
    if not rows:
        assert again.fitted_.rows is None
        model = copy.deepcopy(model).compress()
    assert_same_results(again, model, table[2])
    again.save(path)
    assert_same_results(ulmus.load(path), model, table[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log", "rain", "count"])
@pytest.mark.parametrize("rows", [True, False])
def test_a_learned_map_and_its_folds(table, path, name, rows):
    X, targets, X_new = table
    target, column = TARGETS[name]
    model = ELMEnsembleRegressor(2, 12, random_state=0, **target).fit(X, targets[column])
    model.save(path, rows=rows)
    expected = model if rows else copy.deepcopy(model).compress()
    assert_same_results(ulmus.load(path), expected, X_new)


def test_several_outputs_and_a_stream(table, path):
    X, targets, X_new = table
    Y = np.stack([targets["positive"], targets["share"]], axis=1)
    model = small_ensemble(3, 15, alpha=0.1, target_transform="sqrt").fit(X, Y)
    model.save(path)
    for name in ("predict", "predict_interval", "predict_median"):
        ours, expected = (getattr(one, name)(X_new) for one in (ulmus.load(path), model))
        assert_array_equal(ours, expected)
    streamed = small_ensemble(3, 15, alpha=0.1, target_transform="log")
    streamed.partial_fit(X[:80], targets["positive"][:80]).save(path)
    again = ulmus.load(path)
    for one in (streamed, again):
        one.partial_fit(X[80:], targets["positive"][80:])
    assert_array_equal(again.predict(X_new), streamed.predict(X_new))


def test_files_without_these_fields_are_read(table, path):
    """Files of earlier versions have neither the parameters nor the fields."""
    X, targets, X_new = table
    model = small_ensemble(3, 15, alpha=0.1).fit(X, targets["skewed"])
    model.save(path)
    text, tensors = taken_apart(path.read_bytes())

    def older(document):
        for name in ("target_transform", "target_range", "target_kind"):
            del document["parameters"][name]
        fields = document["fit"]["fields"]
        del fields["response"], fields["target_scores"], fields["spec"]["fields"]["target"]
        del fields["rows"]["fields"]["observed"]

    path.write_bytes(sealed(text, tensors, older))
    assert_array_equal(ulmus.load(path).predict_interval(X_new), model.predict_interval(X_new))


def test_a_known_range_stays_a_tuple(table, path):
    fitted(table, "rain").save(path)
    assert ulmus.load(path).target_range == (0, None)
    parameters = model_document(path)["parameters"]
    assert parameters["target_transform"] == "sqrt"


# ---------------------------------------------------------------- transformers


@pytest.mark.parametrize(
    "transformer", [PowerTransformer(), FunctionTransformer(np.log, np.exp)], ids=str
)
def test_an_object_of_another_package_is_refused_and_nothing_is_written(table, path, transformer):
    X, targets, X_new = table
    model = small_ensemble(3, 15, alpha=0.1, target_transform=transformer)
    model.fit(X, targets["positive"])
    words = mentions("target_transform", type(transformer).__name__, "code", "skops")
    with pytest.raises(InputError, match=words) as caught:
        model.save(path)
    assert caught.value.parameter == "target_transform"
    assert os.listdir(path.parent) == []
    path.write_text("another file")
    with pytest.raises(InputError):
        model.save(path, rows=False)
    assert path.read_text() == "another file"
    skops = pytest.importorskip("skops.io", reason="needs skops")
    again = skops.loads(skops.dumps(model), trusted=list(SKOPS_TRUSTED_TYPES))
    assert_array_equal(again.predict_interval(X_new), model.predict_interval(X_new))


@pytest.mark.parametrize("name", ["log", "rain", "zeros"])
def test_skops_loads_the_trusted_types(table, name):
    skops = pytest.importorskip("skops.io", reason="needs skops")
    model, data = fitted(table, name), skops.dumps(fitted(table, name))
    assert set(skops.get_untrusted_types(data=data)) <= set(SKOPS_TRUSTED_TYPES)
    again = skops.loads(data, trusted=list(SKOPS_TRUSTED_TYPES))
    assert_array_equal(again.predict_interval(table[2]), model.predict_interval(table[2]))


def test_no_file_constructs_a_transformer(table, path):
    assert not {Fitted.__name__, Transformer.__name__} & set(FIT_CLASSES)
    fitted(table, "log").save(path)
    text, tensors = taken_apart(path.read_bytes())
    for name in ("Fitted", "Transformer"):

        def forged(document, name=name):
            family = document["fit"]["fields"]["response"]["tuple"][0]
            fields = {"transformer": family["fields"]["nodes"], "center": 0.0}
            family["fields"]["transform"] = {"class": name, "fields": fields}

        path.write_bytes(sealed(text, tensors, forged))
        with pytest.raises(ModelFileError, match=f"no class '{name}'"):
            ulmus.load(path)


# ---------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    """Documents and arrays of small model files without rows."""
    path, found = tmp_path_factory.mktemp("models") / "model.ulmus", {}
    for name in TARGETS:
        fitted(table, name).save(path, rows=False)
        found[name] = taken_apart(path.read_bytes())
    return found


def refusal(path, content):
    """The sentence that a file is refused with."""
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        ulmus.load(path)
    return str(caught.value)


def family_of(document):
    return document["fit"]["fields"]["response"]["tuple"][0]["fields"]


def transform_fields(document):
    return family_of(document)["transform"]["fields"]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("log", lambda d: family_of(d).update(low=9.0, high=3.0), "bounds of its target are 9"),
        ("log", lambda d: transform_fields(d).update(low={"float": "nan"}), "log has parameters"),
        ("log", lambda d: transform_fields(d).update(start=-1.0), "log has parameters"),
        ("sqrt", lambda d: transform_fields(d).update(low={"float": "-inf"}), "sqrt has"),
        ("logit", lambda d: transform_fields(d).update(squeeze=0.5), "logit has parameters"),
        ("logit", lambda d: transform_fields(d).update(low=2.0), "logit has parameters"),
        ("log", lambda d: family_of(d)["nodes"]["fields"].update(dof=0.0), "probabilities of its"),
        ("count", lambda d: family_of(d).update(dispersion=-0.1), "dispersion of its counts"),
        ("rain", lambda d: family_of(d).update(spread=0.0), "not those of a line"),
        ("count", lambda d: family_of(d).update(center={"float": "inf"}), "not those of a line"),
        (
            "log",
            lambda d: d["fit"]["fields"]["response"]["tuple"].append(
                d["fit"]["fields"]["response"]["tuple"][0]
            ),
            "2 response families for 1 outputs",
        ),
        ("log", lambda d: d["fit"]["fields"].update(response=None), "contradict each other"),
        (
            "log",
            lambda d: d["fit"]["fields"]["spec"]["fields"]["target"]["fields"].update(kind="tree"),
            "target has a transformation, a kind or bounds",
        ),
        (
            "auto",
            lambda d: d["fit"]["fields"]["target_scores"]["tuple"][0]["fields"].update(output=7),
            "scores of transformations",
        ),
        ("log", lambda d: d["parameters"].update(target_transform="square"), "target_transform"),
        ("log", lambda d: d["parameters"].update(target_range={"tuple": [3, 1]}), "target_range"),
        ("count", lambda d: d["parameters"].update(target_kind="tree"), "target_kind"),
    ],
)
def test_parameters_that_no_family_has(files, path, name, change, message):
    text, tensors = files[name]
    found = refusal(path, sealed(text, tensors, change))
    assert message in found


@pytest.mark.parametrize(
    ("name", "array", "change", "message"),
    [
        ("log", "nodes.value", lambda a: a * np.nan, "not finite and ascending"),
        ("log", "nodes.value", lambda a: a[::-1], "not finite and ascending"),
        ("log", "nodes.value", lambda a: a[:-1], "not finite and ascending"),
        ("log", "nodes.weight", lambda a: 2 * a, "sum to 2"),
        ("log", "nodes.weight", lambda a: np.append(a[1:], a[:1] - 2), "sum to"),
        ("rain", "odds", lambda a: a[:1], "not those of a line"),
        ("rain", "location", lambda a: a * np.nan, "not those of a line"),
        ("rain", "shape.knot", lambda a: a[:, ::-1], "does not increase"),
        ("rain", "shape.knot", lambda a: a[:, :-1], "not that of 1 outputs"),
        ("rain", "shape.slope", lambda a: a * np.inf, "not finite"),
        ("rain", "scores", lambda a: a[::-1], "tail probabilities"),
        ("count", "scores", lambda a: a + 1.0, "tail probabilities"),
        ("count", "scores", lambda a: a * np.nan, "tail probabilities"),
    ],
)
def test_arrays_that_no_family_has(files, path, name, array, change, message):
    text, tensors = files[name]
    key = f"fit.response.0.{array}"
    forged = entry(np.ascontiguousarray(change(array_of(*tensors[key]))))
    assert message in refusal(path, sealed(text, {**tensors, key: forged}))


def test_distributions_of_compressed_fits(table, path):
    """They had no check of their own."""
    X, targets, _ = table
    y = targets["positive"] ** 2
    small_ensemble(3, 15, alpha=0.1).fit(X, y).save(path, rows=False)
    text, tensors = taken_apart(path.read_bytes())
    key = "fit.compressed.residual_shape.knot"
    assert "does not increase" in refusal(
        path, sealed(text, {**tensors, key: entry(-array_of(*tensors[key]))})
    )


def places(node, path=()):
    """Paths of all plain values in a document, with the values."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in pairs:
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))
        else:
            yield (*path, key), value


def changed(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


VALUES = (None, -1.0, 0.0, "x", True, [], {"float": "nan"}, {"float": "inf"}, {"float": "-inf"})


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_every_value_of_a_family_is_refused_or_does_no_harm(files, table, path, name):
    text, tensors = files[name]
    document = json.loads(text)["fit"]["fields"]
    parts = [("response",), ("target_scores",), ("spec", "fields", "target")]
    for part in parts:
        node = document
        for key in part:
            node = node[key]
        for place, _ in list(places(node)) if node else ():
            if place[-1] in ("array", "foreign"):
                continue
            for value in VALUES:
                forge = lambda d, p=part + place, v=value: changed(d["fit"]["fields"], p, v)  # noqa: E731
                path.write_bytes(sealed(text, tensors, forge))
                require_refused_or_finite(path, table[2])


def require_refused_or_finite(path, X):
    try:
        model = ulmus.load(path)
    except ModelFileError:
        return
    bounds = model.predict_interval(X)
    values = model.predict(X), model.predict_median(X), model.predict_dist(X).cdf(1.0), bounds
    assert all(np.all(np.isfinite(one)) for one in values)
    assert np.all(bounds[:, 0] <= bounds[:, 1])


def test_the_families_of_these_tests_are_all_there_are(files):
    fits = [json.loads(text)["fit"]["fields"] for text, _ in files.values()]
    classes = {fit["response"]["tuple"][0]["class"] for fit in fits if fit["response"]}
    assert classes == {"Counts", "PointMass", "Transformed"}
