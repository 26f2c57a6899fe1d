"""Results that were silently wrong once, each with what must happen instead."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from fit_comparison import cut
from interval_methods import every_interval
from messages import mentions
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.core.variance.estimates import ESTIMATES, Estimate
from ulmus.exceptions import DegenerateFitWarning, ExtrapolationWarning
from ulmus.tables import from_arrow


@pytest.fixture(scope="module")
def table():
    """X (600, 3) and y = sin x0 + x1 + noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(600)


# ---------------------------------------------------------------- directions without data


def corners(n, seed):
    """Inputs of zeros and ones, a smooth function of them, and points between the corners."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(float)
    points = np.array([[0.3, 0.7, 0.5], [0.5, 0.5, 0.5], [0.1, 0.9, 0.2]])

    def f(A):
        return np.sin(A[:, 0]) + A[:, 1]

    return X, f(X) + 0.3 * rng.standard_normal(n), points, f(points)


@pytest.mark.parametrize("n_neurons", [20, 100])
def test_intervals_between_discrete_inputs_are_wide_and_say_so(n_neurons):
    inside, centers, half = [], [], []
    for seed in range(20):
        X, y, points, truth = corners(400, seed)
        model = small_ensemble(5, n_neurons, random_state=seed).fit(X, y)
        with pytest.warns(ExtrapolationWarning, match="of 3 points.*no training row has"):
            low, high = model.predict_interval(points, kind="confidence").T
        inside.append((low <= truth) & (truth <= high))
        centers.append((low + high) / 2)
        half.append((high - low) / 2)
    # Coverage of at least 0.95 fails 7 times of 60 once in 500.
    assert np.mean(inside) > 0.88
    assert np.all(np.mean(half, axis=0) > 2 * np.std(centers, axis=0))


def test_intervals_at_discrete_inputs_are_as_wide_as_the_data_say():
    X, y, _, _ = corners(400, 0)
    cells = np.unique(X, axis=0)
    low, high = small_ensemble(5, 100).fit(X, y).predict_interval(cells, kind="confidence").T
    counts = np.array([np.sum(np.all(cell == X, axis=1)) for cell in cells])
    # The mean of a cell has a standard error of 0.3 / sqrt(count).
    assert_allclose((high - low) / 2, 1.97 * 0.3 / np.sqrt(counts), rtol=0.15)


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_compressing_changes_no_interval_between_discrete_inputs(noise):
    X, y, points, _ = corners(300, 0)
    model = small_ensemble(5, 100, noise=noise).fit(X, y)
    with pytest.warns(ExtrapolationWarning):
        before = model.predict_interval(points, kind="confidence")
    with pytest.warns(ExtrapolationWarning):
        after = model.compress().predict_interval(points, kind="confidence")
    assert np.all(np.isfinite(before))
    assert_allclose(after, before, rtol=1e-8)


def test_points_among_continuous_inputs_have_no_unseen_directions(table):
    X, y = table
    fit = plain_ensemble(random_state=0).fit(X, y).fitted_
    rng = np.random.default_rng(1)
    parts = fit.undersmoothed_parts(np.clip(rng.standard_normal((300, 3)), -2, 2))
    assert np.max(parts.null_space / parts.variance) < 1e-3


# ---------------------------------------------------------------- tables in blocks


def test_columns_in_another_order_are_refused(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    blocks = [(frame[:300], y[:300]), (frame[["c", "a", "b"]][300:], y[300:])]
    with pytest.raises(ValueError, match=mentions("block 1", "['c', 'a', 'b']", "['a', 'b', 'c']")):
        small_ensemble(5, 20).fit_blocks(blocks)
    with pytest.raises(ValueError, match=mentions("block 1", "without names")):
        small_ensemble(5, 20).fit_blocks([blocks[0], (X[300:], y[300:])])


def test_files_keep_the_names_of_their_columns(table, tmp_path):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    model = small_ensemble(5, 20).fit_blocks(from_arrow(tmp_path / "table.csv", target="y"))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert_allclose(
        model.predict(frame), small_ensemble(5, 20).fit(frame, y).predict(frame), rtol=1e-8
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "a", "b"]])


def test_rows_that_change_between_readings_are_refused():
    seeds = iter(range(100))

    def live():
        rng = np.random.default_rng(next(seeds))
        X = rng.standard_normal((200, 3))
        yield X, X[:, 0]

    with pytest.raises(ValueError, match="other rows when read again"):
        small_ensemble(5, 20).fit_blocks(live)


def test_the_order_of_blocks_may_change_between_readings(table):
    X, y = table
    orders = iter(range(100))
    pieces = cut(X, y, size=100)

    def shuffled():
        return iter([pieces[i] for i in np.random.default_rng(next(orders)).permutation(6)])

    model = small_ensemble(5, 20).fit_blocks(shuffled)
    assert_allclose(model.predict(X[:9]), small_ensemble(5, 20).fit(X, y).predict(X[:9]), rtol=1e-7)


UNREADABLE = {
    "3-D y": (lambda X, y: (X, y[:, None, None]), ["y of block 0", "3 axes"]),
    "scalar y": (lambda X, y: (X, 3.0), ["y of block 0", "0 axes"]),
    "None": (lambda X, y: None, ["block 0", "(X, y)", "None"]),
    "no X": (lambda X, y: (None, y), ["X of block 0", "None"]),
    "complex X": (lambda X, y: (X + 1j, y), ["X of block 0", "complex"]),
    "complex y": (lambda X, y: (X, y + 1j), ["y of block 0", "complex"]),
    "words": (lambda X, y: (np.full((len(y), 2), "a"), y), ["X of block 0", "numbers"]),
    "dates": (lambda X, y: (X.astype("M8[s]"), y), ["X of block 0", "dates"]),
    "one table": (lambda X, y: X, ["block 0", "(X, y)"]),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_blocks_that_are_no_tables(table, what):
    change, words = UNREADABLE[what]
    with pytest.raises(ValueError, match=mentions(*words)):
        small_ensemble(5, 20).fit_blocks([change(*table)])


@pytest.mark.parametrize("blocks", [3, None])
def test_something_that_is_no_list_of_blocks(blocks):
    with pytest.raises(ValueError, match=mentions("blocks", "list", "fit for a single table")):
        small_ensemble(5, 20).fit_blocks(blocks)


@pytest.mark.parametrize("way", ["fit", "fit_blocks"])
@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("day", pd.Timestamp("2020-01-01"), ["'day'", "dates"]),
        ("kind", "loam", ["'kind'", "texts or categories", "OneHotEncoder"]),
        ("soil", pd.Categorical(["a", "b"] * 300), ["'soil'", "texts or categories"]),
    ],
)
def test_columns_that_hold_no_numbers_are_named(table, way, column, values, words):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(**{column: values})
    with pytest.raises(ValueError, match=mentions(*words)):
        small_ensemble(5, 20).fit(frame, y) if way == "fit" else small_ensemble(5, 20).fit_blocks(
            [(frame, y)]
        )


def test_columns_of_objects_and_missing_types_that_hold_numbers_are_used(table):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = small_ensemble(5, 20).fit(frame, y).predict(frame)
    for kind in (object, "Float64"):
        assert_allclose(
            small_ensemble(5, 20).fit(frame.astype(kind), y).predict(frame), expected, rtol=1e-9
        )


def test_files_of_several_kinds(table, tmp_path):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    (tmp_path / "parts").mkdir()
    frame[:300].to_csv(tmp_path / "parts" / "1.csv", index=False)
    frame[300:].to_csv(tmp_path / "parts" / "2.csv", index=False)
    frame.to_csv(tmp_path / "table.csv.gz", index=False)
    expected = small_ensemble(5, 20).fit(frame[["a", "b", "c"]], y).alpha_
    for path in (tmp_path / "parts", tmp_path / "table.csv.gz"):
        assert_allclose(
            small_ensemble(5, 20).fit_blocks(from_arrow(path, target="y")).alpha_, expected
        )


def test_files_that_cannot_be_used(table, tmp_path):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, s="x", t=pd.Timestamp("2020"))
    path = tmp_path / "table.parquet"
    frame.to_parquet(path)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder").mkdir()
    for arguments_given, words in [
        ({"columns": ["a", "y"]}, ["'y'", "inputs and also target"]),
        ({"columns": ["a", "b"], "sample_weight": "b"}, ["'b'", "sample_weight"]),
        ({"columns": []}, ["columns", "at least one"]),
        ({"columns": ["a", "s"]}, ["'s'", "string"]),
        ({"columns": ["a", "t"]}, ["'t'", "timestamp"]),
        ({"path": tmp_path / "empty.csv"}, ["empty.csv", "cannot be read as csv"]),
        ({"path": tmp_path / "folder"}, ["folder", "no files"]),
        ({"path": tmp_path / "table"}, ["table", "format", "parquet"]),
        ({"target": []}, ["target", "no column"]),
    ]:
        arguments = {"path": path, "target": "y"} | arguments_given
        with pytest.raises(ValueError, match=mentions(*words)):
            from_arrow(arguments.pop("path"), **arguments)


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("factor", [4.0, 1e-60, 1e60])
def test_a_constant_factor_of_the_weights_does_not_matter(table, noise, factor):
    X, y = table
    w = np.random.default_rng(0).uniform(0.5, 2, 600)
    for weight in (np.ones(600), w):
        one, other = (
            small_ensemble(5, 20, noise=noise).fit(X, y, c * weight) for c in (1.0, factor)
        )
        assert_allclose(other.predict_var(X[:9]), one.predict_var(X[:9]), rtol=1e-7)
        expected = every_interval(one, X[:9], 0.9)
        for name, intervals in every_interval(other, X[:9], 0.9).items():
            assert_allclose(intervals, expected[name], rtol=1e-6, atol=1e-8, err_msg=name)


def test_weights_of_four_are_no_weights(table):
    X, y = table
    none, four = small_ensemble(5, 20).fit(X, y), small_ensemble(5, 20).fit(X, y, np.full(600, 4.0))
    assert_allclose(four.predict_interval(X[:9]), none.predict_interval(X[:9]), rtol=1e-8)


def test_weights_that_overflow_are_refused(table):
    X, y = table
    for value in (1e300, 1e-300):
        for way in (small_ensemble(5, 20).fit, small_ensemble(5, 20).partial_fit):
            with pytest.raises(ValueError, match=mentions("sample_weight", "divide them")):
                way(X, y, np.full(600, value))
        with pytest.raises(ValueError, match=mentions("sample_weight of block 0", "divide them")):
            small_ensemble(5, 20).fit_blocks([(X, y, np.full(600, value))])


# ---------------------------------------------------------------- streams


def test_parameters_of_the_layer_cannot_change_between_calls(table):
    X, y = table
    model = small_ensemble(5, 20).partial_fit(X[:300], y[:300])
    before = model.predict(X[:5])
    for change in ({"n_neurons": 50}, {"weight_scale": 2.0}, {"random_state": 1}):
        kept = model.get_params()
        with pytest.raises(ValueError, match=mentions(next(iter(change)), "same hidden layer")):
            model.set_params(**change).partial_fit(X[300:], y[300:])
        model.set_params(**kept)
        assert_array_equal(model.predict(X[:5]), before)
    # What does not touch the layer may change.
    model.set_params(alpha=0.3, noise_variance="residual").partial_fit(X[300:], y[300:])
    assert model.alpha_ == 0.3


def test_partial_fit_is_documented_where_help_looks():
    assert "Add rows to the fit" in ELMEnsembleRegressor.partial_fit.__doc__
    assert "standardize" in ELMEnsembleRegressor.partial_fit.__doc__


def test_an_empty_partition_has_no_predictions(table):
    da = pytest.importorskip("dask.array")
    import dask.dataframe as dd

    import ulmus.dask

    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for outputs in (y, np.column_stack([y, -y])):
        model = small_ensemble(5, 20).fit(X, outputs)
        points = da.from_array(X, chunks=((0, 300, 0, 300), (3,)))
        for method in (ulmus.dask.predict, ulmus.dask.predict_var):
            ours = method(model, points).compute()
            assert_allclose(ours, getattr(model, method.__name__)(X))
        named = small_ensemble(5, 20).fit(frame, outputs)
        rare = dd.from_pandas(frame, npartitions=40)
        rare = rare[rare["a"] > 2.2]
        assert len(ulmus.dask.predict(named, rare).compute()) == np.sum(X[:, 0] > 2.2)


# ---------------------------------------------------------------- estimates and noise


@pytest.mark.parametrize("estimate", ["S1", "S2", "S3", "NHe"])
def test_a_summary_with_any_default_estimate(table, estimate):
    X, y = table
    for rows in (60, 600):  # forms of rows, forms of features
        model = small_ensemble(5, 20, variance=estimate).fit(X[:rows], y[:rows])
        assert np.all(np.isfinite(model.summary_frame(X[:9])))
        assert np.isfinite(model.undersmoothing_gap_)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_a_nearly_interpolating_fit_has_finite_error_bars(table):
    X, y = table
    model = plain_ensemble(
        5, 150, alpha=1e-8, weight_scale=30.0, noise="heteroskedastic", random_state=0
    ).fit(X[:40], y[:40])
    mean, sd = model.predict(X[:40], return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(sd >= 0)


def test_an_estimate_that_names_no_substitute(monkeypatch):
    monkeypatch.setitem(ESTIMATES, "S9", Estimate("own", lambda A, U, M: U, 9))
    with pytest.raises(ValueError, match=mentions("'S9'", "n_estimators >= 9", "'auto'")):
        small_ensemble(5, 20, variance="S9").fit(np.ones((9, 1)), np.ones(9))


def test_a_distribution_of_outputs_without_noise(table):
    X, _ = table
    distribution = small_ensemble(5, 20).fit(X, np.ones(600)).predict_dist(X[:3])
    assert_allclose(distribution.cdf([0.0, 1.0, 2.0]), [0, 0.5, 1], atol=1e-6)


# ---------------------------------------------------------------- extreme units


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
@pytest.mark.parametrize("factor", [1e-150, 1e-80, 1e80, 1e150])
def test_outputs_in_extreme_units(table, noise, factor):
    X, y = table
    one, other = (small_ensemble(5, 20, noise=noise).fit(X, c * y) for c in (1.0, factor))
    assert_allclose(other.predict(X[:9]), factor * one.predict(X[:9]), rtol=1e-9)
    expected = every_interval(one, X[:9], 0.9)
    for name, intervals in every_interval(other, X[:9], 0.9).items():
        assert_allclose(intervals / factor, expected[name], rtol=1e-6, err_msg=name)


def test_units_beyond_all_numbers_are_refused(table):
    X, y = table
    for factor in (1e200, 1e-200):
        with pytest.raises(ValueError, match=mentions("y ", "range of float64", "multiply y")):
            small_ensemble(5, 20).fit(X, factor * y)
        with pytest.raises(ValueError, match=mentions("input 0 of X", "multiply that column")):
            small_ensemble(5, 20).fit(factor * X, y)
        with pytest.raises(ValueError, match=mentions("input 0 of X", "multiply that column")):
            small_ensemble(5, 20).fit_blocks([(factor * X, y)])


# ---------------------------------------------------------------- warnings


def test_a_warning_is_given_once(table):
    X, y = table
    model = small_ensemble(5, 20).fit(X, y)
    calls = {
        "predict": lambda: model.predict(X[:2] + 9),
        "summary_frame": lambda: model.summary_frame(X[:2] + 9),
        "predict_dist": lambda: model.predict_dist(X[:2] + 9),
        "predict_interval": lambda: model.predict_interval(X[:2] + 9),
        "predict_quantiles": lambda: model.predict_quantiles(X[:2] + 9, 0.5),
    }
    for name, call in calls.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        kinds = [w.category for w in caught]
        assert kinds.count(ExtrapolationWarning) == 1, name
        assert {w.filename for w in caught} == {__file__}, name


def test_a_warning_through_a_pipeline_points_at_the_users_line(table):
    X, y = table
    pipe = make_pipeline(StandardScaler(), small_ensemble(5, 20)).fit(X, y)
    with pytest.warns(ExtrapolationWarning) as record:
        pipe.predict(X[:2] + 9)
    assert record[0].filename == __file__


def test_intervals_out_of_a_pipeline(table):
    X, y = table
    pipe = make_pipeline(StandardScaler(), small_ensemble(5, 20)).fit(X, y)
    intervals = pipe[-1].predict_interval(pipe[:-1].transform(X[:5]))
    assert intervals.shape == (5, 2)
    assert_array_equal(ulmus.inference(pipe).predict_interval(X[:5]), intervals)
    assert "ulmus.inference(pipe)" in ELMEnsembleRegressor.predict_interval.__doc__


def test_rows_of_zeros_that_are_out_of_range_warn(table):
    X, y = table
    X = np.abs(X) + 1  # zero is not among the values
    model = small_ensemble(5, 20).fit(scipy.sparse.csr_array(X), y)
    points = X[:4].copy()
    points[1], points[3, 2] = 0, 0
    with pytest.warns(ExtrapolationWarning, match="2 of 4 points"):
        model.predict(scipy.sparse.csr_array(points))


# ---------------------------------------------------------------- devices


def test_sparse_rows_are_refused_where_torch_computes(torch, table):
    X, y = table
    rows = scipy.sparse.csr_array(X)
    for fit in (
        small_ensemble(5, 20, device="cpu").fit,
        small_ensemble(5, 20, device="cpu").partial_fit,
    ):
        with pytest.raises(ValueError, match=mentions("sparse", "device='cpu'", "toarray")):
            fit(rows, y)
    with pytest.raises(ValueError, match=mentions("sparse", "toarray")):
        small_ensemble(5, 20, device="cpu").fit_blocks([(rows, y)])
    model = small_ensemble(5, 20).fit(torch.asarray(X), torch.asarray(y))
    with pytest.raises(ValueError, match=mentions("sparse", "toarray")):
        model.predict(rows)


def test_a_device_that_torch_does_not_know(torch, table):
    with pytest.raises(ValueError, match=mentions("device='gpu'", "'cuda'", "None")):
        small_ensemble(5, 20, device="gpu").fit(*table)


def test_a_device_without_torch(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=mentions("device='cuda'", "ulmus[torch]")):
        small_ensemble(5, 20, device="cuda").fit(*table)


def test_a_fit_travels(table):
    X, y = table
    model = small_ensemble(5, 20, noise="heteroskedastic").fit(X, y)
    expected = model.predict_interval(X[:9], kind="confidence")
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.predict_interval(X[:9], kind="confidence"), expected)


def test_too_few_rows_for_a_level_say_so(table):
    X, y = table
    with pytest.warns(DegenerateFitWarning, match="15 training rows are too few"):
        small_ensemble(5, 20).fit(X[:15], y[:15]).predict_interval(X[:2])


# ---------------------------------------------------------------- found by trying to break it


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_changing_the_table_after_a_fit_changes_nothing(table, noise):
    X, y, w = table[0].copy(), table[1].copy(), np.ones(600)
    points = X[:9].copy()
    model = small_ensemble(5, 20, noise=noise).fit(X, y, w)
    before, loo = every_interval(model, points, 0.9), model.loo_predictions_
    X[:], y[:], w[:] = 0, 0, 0
    for name, intervals in every_interval(model, points, 0.9).items():
        assert_array_equal(intervals, before[name], err_msg=name)
    assert_array_equal(model.loo_predictions_, loo)


@pytest.mark.parametrize("way", ["fit", "fit_blocks", "partial_fit"])
def test_sparse_entries_that_are_stored_twice_count_together(table, way):
    X, y = np.round(table[0][:90]), table[1][:90]
    plain = scipy.sparse.csr_matrix(X)
    halves = np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), 2 * plain.indptr
    doubled = scipy.sparse.csr_matrix(halves, shape=X.shape)
    fits = []
    for rows in (doubled, X):
        model = small_ensemble(5, 20, alpha=0.3)
        model.fit_blocks([(rows, y)]) if way == "fit_blocks" else getattr(model, way)(rows, y)
        fits.append(model.predict(X))
    assert_allclose(*fits, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_levels_are_nested_where_rows_are_too_few_for_some(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (30, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.exponential(size=30) ** 2
    model = small_ensemble(5, 100).fit(X, y)
    with pytest.warns(DegenerateFitWarning, match="too few"):
        low, high = np.moveaxis(model.predict_interval(X, [0.5, 0.9, 0.95, 0.97, 0.99]), 1, 0)
    assert np.all(np.diff(low, axis=1) <= 1e-12)
    assert np.all(np.diff(high, axis=1) >= -1e-12)


@pytest.mark.parametrize("method", ["auto", "jackknife+", "gaussian"])
def test_bounds_do_not_cross_at_low_levels(method):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 3))
        y = X[:, 0] + rng.standard_normal(20)
        points = np.clip(rng.standard_normal((200, 3)), X.min(axis=0), X.max(axis=0))
        model = small_ensemble(5, 15, alpha=0.001).fit(X, y)
        low, high = np.moveaxis(
            model.predict_interval(points, [1e-13, 0.01, 0.05], method=method), 1, 0
        )
        assert np.all(low <= high)


def test_levels_next_to_one_are_finite(table):
    X, y = table
    model = small_ensemble(5, 20).fit(X, y)
    level = float(np.nextafter(1, 0))
    assert np.all(np.isfinite(model.predict_interval(X[:3], level, method="gaussian")))
    assert np.all(np.isfinite(model.predict_interval(X[:3], level, kind="confidence")))


def test_units_beyond_all_numbers_are_refused_on_every_way(table):
    X, y = table
    started = small_ensemble(5, 20).partial_fit(X, y)
    for act, words in [
        (lambda: started.partial_fit(X, 1e200 * y), ["y reaches", "multiply y"]),
        (lambda: small_ensemble(5, 20).fit(X, np.full(600, 1e300)), ["y reaches", "multiply y"]),
        (
            lambda: small_ensemble(5, 20).fit_blocks([(X, 1e200 * y)]),
            ["y of block 0", "multiply y"],
        ),
        (
            lambda: small_ensemble(5, 20).fit(np.full((600, 1), 1e300), y),
            ["input 0 of X", "multiply"],
        ),
        (
            lambda: small_ensemble(5, 20, activation="relu", weight_scale=1e200).fit(X, y),
            ["hidden features"],
        ),
        (lambda: small_ensemble(5, 20, dtype="float32").fit(X, 1e40 * y), ["float32", "float64"]),
        (
            lambda: small_ensemble(5, 20, dtype="float32").fit(
                1e60 * X,
                y,
            ),
            ["float32"],
        ),
    ]:
        with pytest.raises(ValueError, match=mentions(*words)):
            act()


def test_constant_features_have_a_constant_noise_however_they_come():
    rng = np.random.default_rng(0)
    for n in (5, 10, 20):
        X, y = np.full((n, 1), 3.0), rng.standard_normal(n)
        fits = [small_ensemble(5, 20, noise="heteroskedastic") for _ in range(2)]
        fits[0].fit(X, y)
        fits[1].fit_blocks([(X[:4], y[:4]), (X[4:], y[4:])])
        assert_allclose(*(m.predict_var(X[:1], "noise") for m in fits), rtol=1e-8)


def test_ordinary_fits_raise_no_runtime_warning():
    # Warnings are errors here. Left-out logarithms of small tables can be wild.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 25))
        X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateFitWarning)
            small_ensemble(5, 30, noise="heteroskedastic", random_state=seed).fit(X, y)


@pytest.mark.parametrize("state", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_stream_goes_on_after_it_was_copied(table, state):
    X, y = table
    model = small_ensemble(5, 20, random_state=state).partial_fit(X[:300], y[:300])
    copy = pickle.loads(pickle.dumps(model)).partial_fit(X[300:], y[300:])
    assert_allclose(copy.predict(X[:5]), model.partial_fit(X[300:], y[300:]).predict(X[:5]))


def test_blocks_of_several_kinds_are_refused(torch, table):
    X, y = table
    sparse = scipy.sparse.csr_matrix(X)
    for first, second in [(X, sparse), (torch.asarray(X), X)]:
        with pytest.raises(ValueError, match=mentions("block 1", "arrays of one library")):
            small_ensemble(5, 20).fit_blocks([(first, y), (second, y)])
    for bad in [(np.empty((600, 0)), y), (X, np.empty((600, 0)))]:
        with pytest.raises(ValueError, match=mentions("block 0", "no columns")):
            small_ensemble(5, 20).fit_blocks([bad])
    small_ensemble(5, 20).fit_blocks([(scipy.sparse.csr_matrix(X > 0), y)])


def test_complex_weights_and_dates_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match=mentions("sample_weight", "complex")):
        small_ensemble(5, 20).fit(X, y, np.ones(600) + 1j)
    with pytest.raises(ValueError, match="dates"):
        small_ensemble(5, 20).fit(X.astype("M8[s]"), y)


def test_members_that_agree_need_no_others(table):
    X, _ = table
    assert small_ensemble(5, 20).fit(X, np.full(600, 5.0)).suggest_n_estimators(X[:9]) == 2
