"""Invalid arguments of effects raise one error with the parameter, its value and a suggestion."""

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, lil_array
from sklearn.exceptions import NotFittedError

X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
Y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * np.random.default_rng(1).standard_normal(40)
NAMES = ["t", "u", "v"]
FRAME = pd.DataFrame(X, columns=NAMES).assign(site=np.tile(list("abcd"), 10), flat=1.0)
HALF = np.arange(40) % 2
NAN = float("nan")


@pytest.fixture(scope="module")
def model():
    return plain_ensemble(3, 8, alpha=0.1, random_state=0).fit(FRAME[NAMES], Y)


# Method, its arguments besides the table, its options, and words of the message.
FUNCTIONAL = [
    (np.ones((2, 39)), "column for each of the 40 rows", "(2, 39)"),
    (np.ones((1, 1, 40)), "A", "(1, 1, 40)"),
    (np.ones((0, 40)), "A", "(0, 40)"),
    (np.full(40, NAN), "NaN", "finite"),
    (csr_array(np.full((1, 40), np.inf)), "infinity", "finite"),
    ("abc", "A", "numbers"),
    (None, "A", "column for each"),
]


@pytest.mark.parametrize(("A", "words"), [(A, words) for A, *words in FUNCTIONAL])
def test_weights_of_a_sum_are_a_finite_matrix(model, A, words):
    with pytest.raises(ValueError, match=mentions("A ", *words)):
        model.functional(A, FRAME)


AVERAGE = [
    ({"by": "place"}, "by='place'", "column", "'row'"),
    ({"by": ["site", "place"]}, "by='place'", "column"),
    ({"by": HALF[:7]}, "by", "each of the 40 rows", "(7,)"),
    ({"by": X}, "by", "(40, 3)"),
    ({"by": 3}, "by", "one label"),
    ({"by": []}, "by", "one label"),
    ({"by": np.where(HALF, NAN, 1.0)}, "by", "missing", "drop"),
    ({"by": np.where(HALF, None, "a")}, "by", "missing", "drop"),
    ({"by": pd.Series(["a", pd.NA] * 20, dtype="string")}, "by", "missing", "drop"),
    ({"by": pd.Series(["a", pd.NA] * 20, dtype=object)}, "by", "missing", "drop"),
    ({"by": pd.Series(pd.to_datetime(["2020-01-01", None] * 20))}, "by", "missing"),
    ({"by": pd.Series([1, None] * 20, name="g")}, "by='g'", "missing"),
    ({"by": ["site", FRAME.site]}, "by", "'site'", "rename"),
    ({"weights": -np.ones(40)}, "weights", ">= 0"),
    ({"weights": np.full(40, NAN)}, "weights", "finite"),
    ({"weights": np.ones(3)}, "weights", "each of the 40 rows", "(3,)"),
    ({"weights": ["a"] * 40}, "weights", "numbers"),
    ({"weights": "mass"}, "weights='mass'", "column"),
    ({"weights": np.zeros(40)}, "weights", "zero"),
    ({"weights": HALF, "by": HALF}, "weights", "zero", "'by': 0"),
    ({"target": "truth"}, "target", "'function', 'expectation'", "'truth'"),
    ({"simultaneous": 1}, "simultaneous", "True or False"),
    ({"adjust": "bonferroni"}, "adjust", "'holm'", "'bonferroni'"),
    ({"confidence_level": 1.5}, "confidence_level", "between 0 and 1", "1.5"),
    ({"confidence_level": [0.5, 0.9]}, "confidence_level", "one number"),
    ({"confidence_level": "high"}, "confidence_level", "'high'"),
    ({"hypothesis": "equal"}, "hypothesis='equal'", "only one"),
    ({"hypothesis": [1.0]}, "hypothesis", "only one"),
    ({"by": "site", "hypothesis": "reference"}, "hypothesis", "'pairwise', 'equal'", "'reference'"),
    ({"by": "site", "hypothesis": np.eye(3)}, "hypothesis", "each of the 4 rows", "(3, 3)"),
    ({"by": "site", "hypothesis": [[1, 2, 3, NAN]]}, "hypothesis", "finite"),
    ({"by": "site", "hypothesis": [[1], [2, 3]]}, "hypothesis", "matrix of numbers"),
]


@pytest.mark.parametrize(("how", "words"), [(how, words) for how, *words in AVERAGE], ids=str)
def test_groups_weights_and_options(model, how, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        model.average(FRAME, **how)


COMPARE = [
    ({"w": (1, 2)}, {}, "variables", "'w'", "'t', 'u', 'v'"),
    ({"site": ["a", "b"]}, {}, "variables", "'site'", "'t', 'u', 'v'"),
    ({3: (1, 2)}, {}, "variables", "column 3", "0 to 2"),
    ({-4: (1, 2)}, {}, "variables", "column -4", "0 to 2"),
    ({True: (1, 2)}, {}, "variables", "True"),
    ({"t": (1,)}, {}, "variables['t']", "two values"),
    ({"t": []}, {}, "variables['t']", "two values"),
    ({"t": 0}, {}, "variables['t']", "nonzero", "=0 "),
    ({"t": np.inf}, {}, "variables['t']", "step", "inf"),
    ({"t": True}, {}, "variables['t']", "step", "True"),
    ({"t": "range"}, {}, "variables['t']", "'sd', 'iqr', 'minmax'", "'range'"),
    ({"t": ("a", "b")}, {}, "variables['t']", "numbers"),
    ({"t": (0, NAN)}, {}, "variables['t']", "finite"),
    ({}, {}, "variables", "column", "for example"),
    ([], {}, "variables", "column", "for example"),
    (None, {}, "variables", "None", "'t'"),
    (2.5, {}, "variables", "2.5", "'t'"),
    ([["t"]], {}, "variables", "['t']", "'u'"),
    ("t", {"comparison": "odds"}, "comparison", "'difference', 'ratio'", "'odds'"),
]


@pytest.mark.parametrize(
    ("variables", "how", "words"), [(v, how, words) for v, how, *words in COMPARE], ids=str
)
def test_what_a_comparison_changes(model, variables, how, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        model.compare(FRAME, variables, **how)


@pytest.mark.parametrize("how", ["sd", "iqr", "minmax"])
def test_a_column_that_does_not_vary_has_no_span(model, how):
    flat = FRAME.assign(u=0.25)
    for table in (flat, FRAME.iloc[[3]]):
        with pytest.raises(ValueError, match=mentions(f"variables['u']={how!r}", "values", "step")):
            model.compare(table, {"u": how})
    # Values and steps can still be compared.
    expected = model.predict(flat[NAMES].assign(u=0.5)) - model.predict(flat[NAMES])
    assert_allclose(model.compare(flat, {"u": 0.25}).estimate, expected.mean(), rtol=1e-10)


def test_a_ratio_to_zero():
    zero = plain_ensemble(3, 8, alpha=0.1, fit_intercept=False, random_state=0).fit(X, 0 * Y)
    with pytest.raises(ValueError, match=mentions("ratio", "zero", "comparison='difference'")):
        zero.compare(X, {0: (0.0, 0.5)}, comparison="ratio")


CURVES = [
    (["t", "u", "v"], {}, "features", "one or two", "3"),
    ([], {}, "features", "one or two", "0"),
    (["t", "t"], {}, "features", "'t' twice"),
    ("w", {}, "features", "'w'", "'t', 'u', 'v'"),
    (7, {}, "features", "column 7", "0 to 2"),
    (None, {}, "features", "None", "'t'"),
    ("t", {"grid_resolution": 1}, "grid_resolution", ">= 2", "1"),
    ("t", {"grid_resolution": 5.0}, "grid_resolution", "whole number"),
    ("t", {"percentiles": (0.9, 0.1)}, "percentiles", "low < high", "(0.9, 0.1)"),
    ("t", {"percentiles": (5, 95)}, "percentiles", "<= 1"),
    ("t", {"percentiles": 0.5}, "percentiles", "two numbers"),
    ("t", {"grid": []}, "grid", "'t'", "at least one"),
    ("t", {"grid": [0, NAN]}, "grid", "'t'", "finite"),
    ("t", {"grid": ["a"]}, "grid", "'t'", "numbers"),
    (["t", "u"], {"grid": [0.1]}, "grid", "['t', 'u']", "[0.1]"),
    (["t", "u"], {"grid": 0.1}, "grid", "['t', 'u']", "0.1"),
    (["t", "u"], {"kind": "slope"}, "kind='slope'", "one column"),
    ("t", {"kind": "both"}, "kind", "'average', 'slope'", "'both'"),
    ("t", {"centered": "yes"}, "centered", "True or False"),
]


@pytest.mark.parametrize(
    ("features", "how", "words"), [(f, how, words) for f, how, *words in CURVES], ids=str
)
def test_features_and_grids_of_a_curve(model, features, how, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        model.partial_dependence(FRAME, features, **how)


def test_percentiles_of_a_column_that_is_nearly_constant(model):
    table = FRAME.assign(t=np.where(np.arange(40) < 4, X[:, 0], 0.1))
    with pytest.raises(ValueError, match=mentions("percentiles", "'t'", "grid_resolution")):
        model.partial_dependence(table, "t", grid_resolution=3, percentiles=(0.4, 0.6))


@pytest.mark.parametrize(
    ("variables", "words"),
    [("w", ["'w'", "'t'"]), (9, ["column 9"]), ([], ["names no column"]), (2.5, ["2.5", "'t'"])],
    ids=str,
)
def test_columns_of_a_slope(model, variables, words):
    with pytest.raises(ValueError, match=mentions("variables", *words)):
        model.slope(FRAME, variables)


def test_an_activation_of_ones_own_has_no_slope():
    own = plain_ensemble(3, 8, alpha=0.1, activation=np.tanh, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=mentions("activation", "derivative", "activation='tanh'")):
        own.slope(X)
    assert_allclose(own.average(X).estimate, own.predict(X).mean(), rtol=1e-10)


JOINT = [
    ("predict_cov", (), {"component": "weights"}, "component", "'model', 'total', 'noise'"),
    ("predict_cov", (), {"estimate": "S9"}, "estimate", "'S3'", "'S9'"),
    ("predict_cov", (), {"estimate": "S2"}, "estimate='S2'", "'BR'", "fit again"),
    ("predict_cov", (X[:, :2],), {}, "2 features"),
    ("exceedance", (NAN,), {}, "threshold", "number", "nan"),
    ("exceedance", ([1.0, NAN],), {}, "threshold", "numbers"),
    ("exceedance", ("high",), {}, "threshold", "'high'"),
    ("exceedance", ([],), {}, "threshold", "numbers"),
    ("exceedance", ([[1.0]],), {}, "threshold", "list of numbers"),
    ("exceedance", (1.0,), {"of": "median"}, "of ", "'mean', 'observation'", "'median'"),
    ("exceedance", (1.0,), {"target": "truth"}, "target", "'function', 'expectation'"),
    ("simulate", (0,), {}, "n_draws", ">= 1", "0"),
    ("simulate", (2.5,), {}, "n_draws", "whole number"),
    ("simulate", (2,), {"of": "median"}, "of ", "'mean', 'observation'", "'median'"),
    ("simulate", (2,), {"target": "truth"}, "target", "'function', 'expectation'"),
    ("simulate", (2,), {"random_state": "seed"}, "random_state", "'seed'"),
    ("simulate", (2,), {"random_state": -1}, "random_state", ">= 0"),
    ("next_points", (), {"n": 0}, "n ", ">= 1", "0"),
    ("next_points", (), {"targets": X[:, :2]}, "2 features"),
]


@pytest.mark.parametrize(
    ("method", "given", "how", "words"), [(m, g, how, words) for m, g, how, *words in JOINT]
)
def test_joint_inference_at_points(method, given, how, words):
    model = plain_ensemble(3, 8, alpha=0.1, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=mentions(*words)):
        getattr(model, method)(X, *given, **how)


# ---------------------------------------------------------------- tables


EFFECTS = {
    "functional": lambda m, X: m.functional(np.ones(len(X)), X),
    "average": lambda m, X: m.average(X),
    "compare": lambda m, X: m.compare(X, {0: 0.1}),
    "slope": lambda m, X: m.slope(X, 0),
    "partial_dependence": lambda m, X: m.partial_dependence(X, 0, grid_resolution=3),
    "predict_cov": lambda m, X: m.predict_cov(X),
    "exceedance": lambda m, X: m.exceedance(X, 1.0),
    "simulate": lambda m, X: m.simulate(X, 2),
    "next_points": lambda m, X: m.next_points(X),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_every_effect_validates_its_table(effect):
    compute = EFFECTS[effect]
    with pytest.raises(NotFittedError):
        compute(plain_ensemble(3, 8), X)
    model = plain_ensemble(3, 8, alpha=0.1, random_state=0).fit(X, Y)
    for bad, words in [
        (X[:, :2], "2 features"),
        (X[:, 0], "2D"),
        (X[:0], "0 sample"),
        (np.where(X > 0.9, NAN, X), "NaN"),
        (np.full((3, 3), "a"), "numeric|string|convert"),
    ]:
        with pytest.raises(ValueError, match=words):
            compute(model, bad)
    compute(model, X[:1])  # one row is a table


def test_an_error_changes_nothing(model):
    before = model.average(FRAME, by="site")
    with pytest.raises(ValueError, match="place"):
        model.average(FRAME, by="place")
    assert_array_equal(model.average(FRAME, by="site").estimate, before.estimate)


def test_tables_without_a_column_of_the_model(model):
    with pytest.raises(ValueError, match="feature names"):
        model.average(FRAME[["t", "u"]])


def test_sparse_rows_are_refused_where_torch_computes(torch):
    model = plain_ensemble(3, 8, alpha=0.1, random_state=0).fit(torch.asarray(X), torch.asarray(Y))
    with pytest.raises(ValueError, match=mentions("X is sparse", "toarray")):
        model.average(csr_array(X))


def test_too_many_rows_for_a_joint_covariance(model):
    many = FRAME.iloc[np.arange(5001) % 40]
    for how in ({"simultaneous": True}, {"hypothesis": "equal"}):
        with pytest.raises(ValueError, match=mentions("5001", "simultaneous", "5000", "by")):
            model.average(many, by="row", **how)
    assert len(model.average(many, by="row")) == 5001


# ---------------------------------------------------------------- unusual and allowed


def test_unusual_arguments_that_are_valid(model):
    weights = np.ones((2, 40)) / 40
    expected = model.average(FRAME)
    for A in (weights, csr_array(weights), lil_array(weights), weights.tolist()):
        assert_allclose(model.functional(A, FRAME).estimate, expected.estimate[0], rtol=1e-10)
    nothing = model.functional(np.zeros(40), FRAME)
    assert nothing.iloc[0, 2:6].tolist() == [0, 0, 0, 1]
    mixed = model.average(FRAME, by=np.array(["a", 1] * 20, dtype=object))
    assert mixed.by.tolist() == [1, "a"]
    assert len(model.slope(FRAME, FRAME.columns[:2])) == 2
    assert model.partial_dependence(FRAME, "t", grid=0.5).t.tolist() == [0.5]
    assert len(model.partial_dependence(FRAME.assign(u=0.5), "u")) == 1
    assert model.compare(FRAME, {-1: 0.1}).term.tolist() == ["v"]
