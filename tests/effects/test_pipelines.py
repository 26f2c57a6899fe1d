"""Effects of a model inside a Pipeline, about the columns that the Pipeline was fitted to."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import plain_member, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import ulmus
from ulmus import ELMEnsembleRegressor

NAMES = ["kind", "t", "dose", "size"]


@pytest.fixture(scope="module")
def rows():
    """A table with a category, three numbers, a column of no use to the model, and y."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "kind": rng.choice(["oak", "elm", "ash"], 150),
            "t": rng.uniform(5, 30, 150),
            "dose": rng.lognormal(1, 0.5, 150),
            "size": rng.uniform(0, 2, 150),
            "year": rng.choice([2001, 2002], 150),
        },
        index=np.arange(1000, 1150),
    )
    y = 0.2 * table.t + np.log(table.dose) + 2 * (table.kind == "elm") * table["size"]
    return table, (y + 0.3 * rng.standard_normal(150)).to_numpy()


def encoder():
    return ColumnTransformer(
        [
            ("kind", OneHotEncoder(), ["kind"]),
            ("t", StandardScaler(), ["t"]),
            ("dose", FunctionTransformer(np.log, feature_names_out="one-to-one"), ["dose"]),
            ("rest", "passthrough", ["size"]),
        ]
    )


@pytest.fixture(scope="module")
def pipe(rows):
    table, y = rows
    return make_pipeline(encoder(), small_ensemble(4, 15, alpha=0.1)).fit(table[NAMES], y)


@pytest.fixture(scope="module")
def inference(pipe):
    return ulmus.inference(pipe)


@pytest.fixture(scope="module")
def new_rows(rows):
    """New rows; none of them lies at the end of a range."""
    given = rows[0]
    return given[given.t.between(7, 28) & given.dose.between(1.3, 6)].iloc[:40]


# ---------------------------------------------------------------- the original columns


def test_comparing_categories_is_predict_on_changed_frames(pipe, inference, new_rows):
    ours = inference.compare(new_rows, {"kind": ["ash", "elm", "oak"]}, by="year")
    assert ours.contrast.tolist() == np.repeat(["elm - ash", "oak - ash"], 2).tolist()
    X = new_rows[NAMES]
    for kind, part in zip(("elm", "oak"), (ours[:2], ours[2:]), strict=True):
        difference = pipe.predict(X.assign(kind=kind)) - pipe.predict(X.assign(kind="ash"))
        expected = pd.Series(difference).groupby(new_rows.year.to_numpy()).mean()
        assert part.year.tolist() == [2001, 2002]
        assert_allclose(part.estimate, expected, rtol=1e-9)
    every = inference.compare(new_rows, "kind", by="year")
    assert_array_equal(every.estimate, ours.estimate)


def test_comparing_numbers_is_predict_on_changed_frames(pipe, inference, new_rows):
    X = new_rows[NAMES]
    ours = inference.compare(new_rows, {"t": (10, 20), "dose": "iqr", "size": 0.1})
    low, high = np.quantile(X.dose, [0.25, 0.75])
    expected = [
        np.mean(pipe.predict(X.assign(t=20.0)) - pipe.predict(X.assign(t=10.0))),
        np.mean(pipe.predict(X.assign(dose=high)) - pipe.predict(X.assign(dose=low))),
        np.mean(pipe.predict(X.assign(size=X["size"] + 0.1)) - pipe.predict(X)),
    ]
    assert_allclose(ours.estimate, expected, rtol=1e-9)


def test_slopes_go_through_the_transformers(pipe, inference, new_rows):
    X = new_rows[NAMES]
    ours = inference.slope(new_rows, by="row")
    assert ours.term.unique().tolist() == ["t", "dose", "size"]
    assert ours.row[:40].tolist() == new_rows.index.tolist()
    for name, slopes in ours.groupby("term"):
        up, down = (pipe.predict(X.assign(**{name: X[name] + s})) for s in (1e-4, -1e-4))
        assert_allclose(slopes.estimate, (up - down) / 2e-4, rtol=1e-6, atol=1e-6)


def test_curves_are_those_of_scikit_learn(pipe, inference, new_rows):
    X = new_rows[NAMES]
    for features, how in [("kind", {}), ("t", {"grid_resolution": 6})]:
        ours = inference.partial_dependence(new_rows, features, **how)
        categories = {"categorical_features": ["kind"], "grid_resolution": 50} | how
        theirs = partial_dependence(pipe, X, [features], method="brute", **categories)
        assert_allclose(ours.estimate, theirs["average"].ravel(), rtol=1e-10)
        assert ours[features].tolist() == theirs["grid_values"][0].tolist()
    both = inference.partial_dependence(new_rows, ["kind", "t"], grid_resolution=5)
    expected = [
        pipe.predict(X.assign(kind=kind, t=t)).mean()
        for kind, t in zip(both.kind, both.t, strict=True)
    ]
    assert len(both) == 15
    assert_allclose(both.estimate, expected, rtol=1e-10)
    slope = inference.partial_dependence(new_rows, "dose", grid=[2.0, 3.0], kind="slope")
    up, down = (
        inference.partial_dependence(new_rows, "dose", grid=[2 + s, 3 + s]) for s in (1e-4, -1e-4)
    )
    assert_allclose(slope.estimate, (up.estimate - down.estimate) / 2e-4, rtol=1e-6)


def test_groups_by_a_column_that_the_model_does_not_use(pipe, inference, new_rows):
    ours = inference.average(new_rows, by="year", weights="size")
    X = new_rows.assign(f=pipe.predict(new_rows[NAMES]))
    expected = [np.average(part.f, weights=part["size"]) for _, part in X.groupby("year")]
    assert_allclose(ours.estimate, expected, rtol=1e-10)
    mixed = inference.average(new_rows[["year", *reversed(NAMES)]], by="year", weights="size")
    assert_array_equal(mixed.estimate, ours.estimate)


def test_effects_have_the_error_bars_of_the_last_step(pipe, inference, new_rows):
    Z, model = pipe[:-1].transform(new_rows[NAMES]), pipe[-1]
    ours, expected = inference.average(new_rows), model.average(Z)
    numbers = ["estimate", "std_error", "conf_low", "conf_high"]
    assert_allclose(ours[numbers], expected[numbers], rtol=1e-10)
    A = np.random.default_rng(0).standard_normal((2, len(new_rows)))
    ours, expected = inference.functional(A, new_rows), model.functional(A, Z)
    assert_allclose(ours[numbers], expected[numbers], rtol=1e-10)
    assert_allclose(ours.attrs["covariance"], expected.attrs["covariance"], rtol=1e-8)


# ---------------------------------------------------------------- points


def test_methods_for_points_are_those_of_the_last_step(pipe, inference, new_rows):
    X = new_rows[NAMES]
    Z, model = pipe[:-1].transform(X), pipe[-1]
    assert_array_equal(inference.predict(X), model.predict(Z))
    assert_array_equal(
        inference.predict(X, return_std=True)[1], model.predict(Z, return_std=True)[1]
    )
    assert_array_equal(
        inference.predict_interval(X, [0.5, 0.9]), model.predict_interval(Z, [0.5, 0.9])
    )
    assert_array_equal(inference.predict_var(X, "model"), model.predict_var(Z, "model"))
    assert_array_equal(inference.predict_quantiles(X, [0.1]), model.predict_quantiles(Z, [0.1]))
    assert_array_equal(inference.predict_dist(X).std(), model.predict_dist(Z).std())
    assert_array_equal(inference.variance_at(X, 9), model.variance_at(Z, 9))
    assert_array_equal(inference.predict_cov(X), model.predict_cov(Z))
    assert_array_equal(inference.predict_cov(X[:4], X[4:]), model.predict_cov(Z[:4], Z[4:]))
    assert_array_equal(inference.exceedance(X, 4.0), model.exceedance(Z, 4.0))
    draws = [m.simulate(p, 3, random_state=0) for m, p in ((inference, X), (model, Z))]
    assert_array_equal(*draws)


def test_new_measurements_are_rows_of_the_original_table(pipe, inference, new_rows):
    ours = inference.next_points(new_rows, n=2)
    Z, model = pipe[:-1].transform(new_rows[NAMES]), pipe[-1]
    expected = model.next_points(Z, n=2)
    assert list(ours.columns) == ["step", "row", *NAMES, "variance"]
    assert ours.row.tolist() == new_rows.index[expected.row].tolist()
    assert ours.kind.tolist() == new_rows.kind.loc[ours.row].tolist()
    assert_allclose(ours.variance, expected.variance, rtol=1e-12)


def test_attributes_that_a_pipeline_does_not_have(inference):
    assert not hasattr(inference, "fit")
    assert not hasattr(inference, "coef_")
    assert "Pipeline" in repr(inference)
    assert hasattr(inference, "variance_components")
    assert not hasattr(ulmus.inference(make_pipeline(one_member())), "variance_components")


def one_member():
    return plain_member(5, random_state=0).fit(np.arange(20.0)[:, None], np.arange(20.0))


def test_inference_can_be_copied_and_pickled(inference, new_rows):
    expected = inference.average(new_rows).estimate
    for other in (copy.deepcopy(inference), pickle.loads(pickle.dumps(inference))):
        assert_array_equal(other.average(new_rows).estimate, expected)


# ---------------------------------------------------------------- other pipelines


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_inference_of_a_search_is_that_of_its_best_model(rows, new_rows):
    given, y = rows
    grid = {"model__alpha": [0.01, 10.0]}
    search = GridSearchCV(
        Pipeline([("encode", encoder()), ("model", small_ensemble(4, 15, alpha=0.1))]), grid, cv=2
    )
    with pytest.raises(ValueError, match=mentions("model", "fitted", "GridSearchCV")):
        ulmus.inference(search)
    search.fit(given[NAMES], y)
    ours, best = ulmus.inference(search), search.best_estimator_
    assert_allclose(
        ours.average(new_rows).estimate, best.predict(new_rows[NAMES]).mean(), rtol=1e-10
    )


def test_a_pipeline_of_one_step_and_a_model_alone(make_table):
    X, y, _, X_new = make_table(60)
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y)
    assert ulmus.inference(model) is model
    pipe = make_pipeline(small_ensemble(4, 15, alpha=0.1)).fit(X, y)
    ours = ulmus.inference(pipe)
    expected = model.slope(X_new, by="row")
    assert_allclose(ours.slope(X_new, by="row").estimate, expected.estimate, rtol=1e-7, atol=1e-9)
    assert_array_equal(ours.predict_interval(X_new), model.predict_interval(X_new))


def test_arrays_without_names(make_table):
    X, y, _, X_new = make_table(60)
    pipe = make_pipeline(StandardScaler(), small_ensemble(4, 15, alpha=0.1, standardize=False)).fit(
        X, y
    )
    ours = ulmus.inference(pipe)
    frame = ours.compare(X_new, {0: (-0.5, 0.5), "x2": 0.1})
    moved = [np.column_stack([np.full(7, v), X_new[:, 1:]]) for v in (0.5, -0.5)]
    assert_allclose(frame.estimate[0], np.mean(pipe.predict(moved[0]) - pipe.predict(moved[1])))
    assert frame.term.tolist() == ["x0", "x2"]
    slopes = ours.slope(X_new.tolist(), 1, by="row").estimate
    up, down = (pipe.predict(X_new + np.array([0, s, 0])) for s in (1e-5, -1e-5))
    assert_allclose(slopes, (up - down) / 2e-5, rtol=1e-6, atol=1e-6)
    assert_allclose(ours.average(X_new).estimate, pipe.predict(X_new).mean(), rtol=1e-10)


def test_whole_numbers_without_names_can_take_other_values():
    # Changed columns were truncated to integers, and slopes were off by thousands.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (60, 2))
    pipe = make_pipeline(StandardScaler(), small_ensemble(4, 15, alpha=0.1)).fit(
        X, 0.3 * X[:, 0] + rng.normal(size=60)
    )
    ours, floats = ulmus.inference(pipe), X.astype(float)
    assert_allclose(ours.slope(X).estimate, ours.slope(floats).estimate, rtol=1e-10)
    ours = ours.compare(X, {0: (2.5, 3.9)})
    sides = [np.column_stack([np.full(60, v), floats[:, 1]]) for v in (3.9, 2.5)]
    assert_allclose(ours.estimate, np.mean(pipe.predict(sides[0]) - pipe.predict(sides[1])))


def test_sparse_features_between_the_steps(rows, new_rows):
    given, y = rows
    pipe = make_pipeline(OneHotEncoder(), small_ensemble(4, 15, alpha=0.1)).fit(
        given[["kind", "year"]], y
    )
    ours = ulmus.inference(pipe).compare(new_rows, {"year": [2001, 2002]})
    X = new_rows[["kind", "year"]]
    expected = pipe.predict(X.assign(year=2002)) - pipe.predict(X.assign(year=2001))
    assert_allclose(ours.estimate, expected.mean(), rtol=1e-8)


# ---------------------------------------------------------------- invalid arguments


@pytest.mark.parametrize(
    "model", [Ridge(), make_pipeline(StandardScaler(), Ridge()), "elm", None], ids=str
)
def test_another_last_step_is_refused(model):
    with pytest.raises(ValueError, match=mentions("model", "ELMEnsembleRegressor", "Pipeline")):
        ulmus.inference(model)


def test_a_model_that_is_not_fitted():
    for model in (
        small_ensemble(4, 15, alpha=0.1),
        make_pipeline(encoder(), small_ensemble(4, 15, alpha=0.1)),
    ):
        with pytest.raises(NotFittedError):
            ulmus.inference(model)


def test_tables_that_do_not_suit_the_pipeline(inference, new_rows):
    with pytest.raises(ValueError, match=mentions("X", "'dose'")):
        inference.average(new_rows.drop(columns="dose"))
    with pytest.raises(ValueError, match=mentions("X", "column names", "data frame")):
        inference.average(new_rows[NAMES].to_numpy())
    with pytest.raises(ValueError, match=mentions("variables", "'year'", "'kind'")):
        inference.compare(new_rows, {"year": (2001, 2002)})
    with pytest.raises(ValueError, match=mentions("variables['kind']", "numbers", "elm")):
        inference.compare(new_rows, {"kind": "sd"})
    with pytest.raises(ValueError, match=mentions("slope", "'kind'", "compare")):
        inference.slope(new_rows, "kind")
    with pytest.raises(ValueError, match="birch"):
        inference.compare(new_rows, {"kind": ["elm", "birch"]})
    with pytest.raises(ValueError, match=mentions("by='place'", "column")):
        inference.average(new_rows, by="place")


def test_arrays_that_are_no_tables(make_table):
    X, y, *_ = make_table(60)
    ours = ulmus.inference(
        make_pipeline(StandardScaler(with_mean=False), small_ensemble(4, 15, alpha=0.1)).fit(X, y)
    )
    with pytest.raises(ValueError, match=mentions("X", "sparse", "toarray")):
        ours.average(csr_array(X))
    with pytest.raises(ValueError, match=mentions("X", "rows and columns")):
        ours.average(X[:, 0])
    with pytest.raises(ValueError, match="2 features"):
        ours.average(X[:, :2])


def test_far_values_warn_of_extrapolation(inference, new_rows):
    with pytest.warns(ulmus.exceptions.ExtrapolationWarning, match="outside"):
        inference.compare(new_rows, {"t": (10, 300)})


def test_intervals_out_of_a_pipeline(normal_rows):
    X, y = normal_rows
    pipe = make_pipeline(StandardScaler(), small_ensemble(5, 20)).fit(X, y)
    intervals = pipe[-1].predict_interval(pipe[:-1].transform(X[:5]))
    assert intervals.shape == (5, 2)
    assert_array_equal(ulmus.inference(pipe).predict_interval(X[:5]), intervals)
    assert "ulmus.inference(pipe)" in ELMEnsembleRegressor.predict_interval.__doc__
