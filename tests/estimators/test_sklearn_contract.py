"""The estimators keep scikit-learn's contract: its own checks, and what they leave out."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from models import plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from ulmus import ELMEnsembleRegressor
from ulmus.noise import AR1, NeweyWest

VARIANTS = [
    plain_member(20, alpha=0.1),
    plain_member(20, alpha=0.1, noise="heteroskedastic", activation="relu"),
    plain_ensemble(3, 20, alpha=0.1),
    plain_ensemble(3, 20, alpha=0.1, noise="heteroskedastic", variance="all"),
    plain_ensemble(3, 20, alpha=0.1, variance="all", hc="pooled", activation="relu"),
    plain_ensemble(
        3, 20, alpha=0.1, variance="S3", hc="HC3-exact", activation="cos", weight_scale=0.3
    ),
    plain_ensemble(3, 20, alpha=0.1, fit_intercept=False, standardize=False),
    plain_ensemble(3, 3, alpha=0.0, variance="NHo"),
]
TOGETHER = [
    plain_ensemble(3, 3, alpha=0.1, noise=AR1()),
    plain_member(20, alpha=0.1, noise=NeweyWest()),
]
# Not all checks set a seed.
for variant in VARIANTS + TOGETHER:
    variant.set_params(random_state=0)
# The checks fit 20 neurons to 10 rows.
few_rows = pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")


# Its tables of 15 rows have points outside the range of the others; iris lies sorted by species.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.CorrelatedErrorsWarning")
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@few_rows
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@parametrize_with_checks(TOGETHER)
def test_scikit_learn_checks_of_correlated_noise(estimator, check):
    check(estimator)


@pytest.mark.slow
@few_rows
@pytest.mark.parametrize("alpha", ["loo", "gcv"])
@pytest.mark.parametrize("estimator", [plain_member(20), plain_ensemble(3, 20)], ids=str)
def test_only_repeated_rows_fail_when_alpha_is_chosen(estimator, alpha):
    # sample_weight holds inverse variances, which are known up to a factor: the chosen fit must
    # not depend on it. A criterion that also treated weight 2 as two rows would not change
    # when every row is doubled, but twice the data do allow a smaller alpha. scikit-learn's
    # RidgeCV fails the same checks for the same reason.
    estimator = clone(estimator).set_params(alpha=alpha, random_state=0)
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    repeated_rows = {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }
    assert failed.keys() <= repeated_rows, failed


ESTIMATORS = [
    plain_member(15, random_state=0),
    plain_ensemble(4, 15, variance="all", random_state=0),
]


@pytest.fixture(params=ESTIMATORS, ids=lambda e: type(e).__name__)
def estimator(request):
    return clone(request.param)


@pytest.fixture
def data(make_table):
    return make_table(50)


def all_predictions(model, X):
    """All results of a fitted model at the points X."""
    out = {"mean": model.predict(X)}
    out["mean_again"], out["std"] = model.predict(X, return_std=True)
    for component in ("total", "model", "noise", "weights"):
        out[component] = model.predict_var(X, component=component)
    for name in model.variance_estimates_:
        out[name] = model.predict_var(X, "model", name)
    if isinstance(model, ELMEnsembleRegressor):
        out |= model.variance_components(X)._asdict()
        out |= model.member_correlation(X)._asdict()
        out["at_7"] = model.variance_at(X, 7)
    return out


# ---------------------------------------------------------------- parameters


def test_parameters_make_a_round_trip(estimator):
    parameters = estimator.get_params()
    again = type(estimator)(**parameters)
    assert again.get_params() == parameters
    assert clone(estimator).get_params() == parameters
    estimator.set_params(alpha="gcv", n_neurons=7, weight_scale=[1.0, 2.0, 0.5])
    assert (estimator.alpha, estimator.n_neurons) == ("gcv", 7)


def test_fit_leaves_the_parameters_alone(estimator, data):
    scale = [1.0, 2.0, 0.5]
    estimator.set_params(weight_scale=scale)
    before = dict(estimator.get_params())
    estimator.fit(data.X, data.y)
    assert estimator.get_params() == before
    assert estimator.weight_scale is scale


def test_clone_forgets_the_fit(estimator, data):
    fitted = estimator.fit(data.X, data.y)
    assert not [name for name in vars(clone(fitted)) if name.endswith("_")]


def test_pickle_keeps_every_prediction(estimator, data):
    model = estimator.fit(data.X, data.y)
    again = pickle.loads(pickle.dumps(model))
    # To round-off: a pickle may keep an array in another order of axes.
    expected = all_predictions(model, data.X_new)
    for name, values in all_predictions(again, data.X_new).items():
        assert_allclose(values, expected[name], rtol=1e-10, err_msg=name)


# ---------------------------------------------------------------- data in, results out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_have_the_precision_of_the_points(estimator, data, dtype):
    model = estimator.fit(data.X.astype(dtype), data.y.astype(dtype))
    for name, values in all_predictions(model, data.X_new.astype(dtype)).items():
        assert values.dtype == dtype, name


def test_single_precision_input_is_computed_in_double(estimator, data):
    X32, y32 = data.X.astype(np.float32), data.y.astype(np.float32)
    points = data.X_new.astype(np.float32)
    narrow = all_predictions(clone(estimator).fit(X32, y32), points)
    double = clone(estimator).fit(X32.astype(float), y32.astype(float))
    for name, values in all_predictions(double, points.astype(float)).items():
        assert_array_equal(narrow[name], values.astype(np.float32), err_msg=name)


@pytest.mark.parametrize("n_outputs", [None, 1, 3])
def test_results_have_the_shape_of_the_outputs(estimator, data, n_outputs):
    one = n_outputs is None
    y = data.y if one else np.column_stack([(k + 1) * data.y for k in range(n_outputs)])
    model = estimator.fit(data.X, y)
    p, n, N = len(data.X_new), len(data.X), model.n_neurons
    M = len(model.hidden_weights_)
    outputs = () if one else (n_outputs,)
    for name, values in all_predictions(model, data.X_new).items():
        assert values.shape == (p, *outputs), name
    assert model.coef_.shape == (M, *outputs, N)
    assert model.intercept_.shape == (M, *outputs)
    assert np.shape(model.noise_variance_) == outputs
    assert model.loo_residuals_.shape == model.loo_predictions_.shape == (n, *outputs)
    assert model.leverage_.shape == (n, *outputs)
    assert np.shape(model.alpha_) == np.shape(model.dof_) == outputs
    assert model.hidden_weights_.shape == (M, data.X.shape[1], N)
    assert model.hidden_biases_.shape == (M, N)
    assert model.rank_.shape == (M,)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_containers_are_accepted(estimator, data, container):
    X = np.where(data.X > 0, data.X, 0.0)
    model = estimator.fit(container(X), data.y)
    expected = all_predictions(model, X[:5])
    for name, values in all_predictions(model, container(X[:5])).items():
        assert_allclose(values, expected[name], rtol=1e-8, atol=1e-12, err_msg=name)


def test_feature_names_are_kept_and_checked(estimator, data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"])
    model = estimator.fit(frame, pd.Series(data.y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    points = pd.DataFrame(data.X_new, columns=["a", "b", "c"])
    expected = all_predictions(clone(estimator).fit(data.X, data.y), data.X_new)
    for name, values in all_predictions(model, points).items():
        assert_allclose(values, expected[name], rtol=1e-8, err_msg=name)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(points[["b", "a", "c"]])


def test_pipeline_passes_return_std_on(estimator, data):
    model = make_pipeline(MinMaxScaler(), PolynomialFeatures(2), estimator)
    model.fit(data.X, data.y)
    mean, std = model.predict(data.X_new, return_std=True)
    assert mean.shape == std.shape == (len(data.X_new),)
    assert np.all(std > 0)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_grid_search_and_cross_validation(estimator, data):
    search = GridSearchCV(estimator, {"alpha": [1e-3, 1.0, "loo"], "n_neurons": [3, 12]}, cv=3)
    search.fit(data.X, data.y)
    assert search.best_params_["n_neurons"] == 12
    assert_array_equal(search.predict(data.X_new), search.best_estimator_.predict(data.X_new))
    out_of_fold = cross_val_predict(estimator, data.X, data.y, cv=3)
    assert np.mean((data.y - out_of_fold) ** 2) < np.var(data.y)


# ---------------------------------------------------------------- randomness


def test_more_members_keep_the_first_ones(data):
    few, many = (plain_ensemble(M, 9, random_state=3) for M in (3, 8))
    few.fit(data.X, data.y), many.fit(data.X, data.y)
    assert_array_equal(many.hidden_weights_[:3], few.hidden_weights_)
    assert_array_equal(many.hidden_biases_[:3], few.hidden_biases_)


def test_members_differ(data):
    W = plain_ensemble(5, 9, random_state=3).fit(data.X, data.y).hidden_weights_
    assert len(np.unique(W)) == W.size


def test_same_number_same_model_another_number_another(estimator, data):
    first = estimator.fit(data.X, data.y).predict(data.X_new)
    assert_array_equal(estimator.fit(data.X, data.y).predict(data.X_new), first)
    other = clone(estimator).set_params(random_state=1).fit(data.X, data.y)
    assert np.all(other.hidden_weights_ != estimator.hidden_weights_)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_are_accepted_and_move_on(estimator, data, make):
    def weights(generator):
        return clone(estimator).set_params(random_state=generator).fit(data.X, data.y)

    generator = make(5)
    first = estimator.set_params(random_state=generator).fit(data.X, data.y).hidden_weights_
    second = estimator.fit(data.X, data.y).hidden_weights_
    assert np.all(first != second)
    assert_array_equal(first, weights(make(5)).hidden_weights_)


def test_no_seed_gives_new_weights_each_time(estimator, data):
    estimator.set_params(random_state=None)
    first = estimator.fit(data.X, data.y).hidden_weights_
    assert np.all(first != estimator.fit(data.X, data.y).hidden_weights_)


@pytest.mark.parametrize("random_state", [None, 0])
def test_the_global_random_state_is_not_touched(estimator, data, random_state):
    before = np.random.get_state()  # noqa: NPY002
    model = estimator.set_params(random_state=random_state).fit(data.X, data.y)
    all_predictions(model, data.X_new)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


# ---------------------------------------------------------------- state


def test_predicting_writes_nothing_on_the_model(estimator, data):
    model = estimator.fit(data.X, data.y)
    before, names = pickle.dumps(model), set(vars(model))
    first = all_predictions(model, data.X_new)
    assert set(vars(model)) == names
    assert pickle.dumps(model) == before
    model.predict(data.X)
    for name, values in all_predictions(model, data.X_new).items():
        assert_array_equal(values, first[name], err_msg=name)


def test_inputs_are_not_changed(estimator, data):
    arrays = [data.X.copy(), data.y.copy(), data.w.copy(), data.X_new.copy()]
    model = estimator.fit(arrays[0], arrays[1], sample_weight=arrays[2])
    all_predictions(model, arrays[3])
    for ours, given in zip(arrays, data, strict=True):
        assert_array_equal(ours, given)


FAILURES = {
    "NaN in X": lambda e, d: e.fit(np.full((9, 2), np.nan), np.zeros(9)),
    "bad weights": lambda e, d: e.fit(d.X, d.y, sample_weight=-d.w),
    "bad parameter": lambda e, d: e.set_params(n_neurons=0).fit(d.X[:, :2], d.y),
    "bad scale": lambda e, d: e.set_params(weight_scale=[1.0, 2.0, 3.0]).fit(d.X[:, :2], d.y),
    "no residuals": lambda e, d: e.set_params(alpha=0, n_neurons=99).fit(d.X[:20, :2], d.y[:20]),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_fit_leaves_the_previous_one(estimator, data, failure):
    model = estimator.set_params(weight_scale=2.0).fit(data.X, data.y)
    expected = all_predictions(model, data.X_new)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(ValueError, match=r"\w"):
        FAILURES[failure](model, data)
    after = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert model.n_features_in_ == 3
    assert after.keys() == before.keys()
    assert all(after[name] is value for name, value in before.items())
    for name, values in all_predictions(model, data.X_new).items():
        assert_array_equal(values, expected[name], err_msg=name)


def test_a_new_fit_replaces_all_of_the_previous_one(estimator, data):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"])
    model = estimator.fit(frame, data.y).fit(data.X[:, :2], data.y)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    fresh = clone(estimator).fit(data.X[:, :2], data.y)
    assert_array_equal(model.predict(data.X_new[:, :2]), fresh.predict(data.X_new[:, :2]))
