"""A table in blocks of rows gives the fit of the whole table, however it is cut and read."""

import functools
import itertools
import operator
import pickle
import sys
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from shared import says
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.blocks import from_arrow
from ulmus.core.fitting import FirstPass, LeaveOneOutPass, WeightedPass
from ulmus.core.forms import OTHERS, OWN
from ulmus.core.moments import Block
from ulmus.core.rows import reduced
from ulmus.core.scaling import feature_scale
from ulmus.core.variance import ESTIMATES, model_variance
from ulmus.exceptions import DegenerateFitWarning

# The same examples in every run: what fails here fails everywhere.
few = settings(max_examples=12, deadline=None, derandomize=True)
HCS = ["HC0", "HC1", "HC2", "HC3", "HC4", "HC3-exact", "ensemble"]
ROW_ATTRIBUTES = ["leverage_", "loo_residuals_", "loo_predictions_"]


def ensemble(n_estimators=4, n_neurons=8, **parameters):
    """A small ensemble with every estimate unless told."""
    parameters = {"weight_scale": 2.0, "variance": "all", "random_state": 0} | parameters
    return ELMEnsembleRegressor(n_estimators, n_neurons, **parameters)


def cut(*columns, size=17):
    """Blocks of so many rows; a column of None stays one."""
    n = columns[0].shape[0]
    return [
        tuple(None if c is None else c[start : start + size] for c in columns)
        for start in range(0, n, size)
    ]


def raw_variances(model, X):
    """Every estimate that was computed, as it is, negative ones included."""
    return np.stack(
        [
            model_variance(name, model.model_.point_parts(X, ESTIMATES[name].weights))
            for name in model.variance_estimates_
        ]
    )


def assert_same_fit(ours, expected, X, rtol=1e-8, same_rank=True):
    """Two fits agree in everything that does not have the length of the table."""
    assert ours.variance_estimates_ == expected.variance_estimates_
    assert ours.n_features_in_ == expected.n_features_in_
    assert_array_equal(ours.hidden_weights_, expected.hidden_weights_)
    if same_rank:
        assert_array_equal(ours.rank_, expected.rank_)
    for name in ("alpha_", "noise_variance_", "dof_"):
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=rtol, err_msg=name)
    mean = expected.predict(X)
    assert_allclose(ours.predict(X), mean, rtol=rtol, atol=rtol * np.std(mean))
    variances = raw_variances(expected, X)
    size = np.abs(variances).mean()
    assert_allclose(raw_variances(ours, X), variances, rtol=rtol, atol=rtol * size)
    noise = [model.predict_var(X, component="noise") for model in (ours, expected)]
    assert_allclose(*noise, rtol=rtol)


# ---------------------------------------------------------------- the same as in memory


@pytest.mark.parametrize("n", [30, 90], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("hc", HCS)
def test_every_estimate_is_that_of_the_whole_table(make_table, hc, n):
    X, y, w, X_new = make_table(n)
    model = ensemble(alpha=0.1, hc=hc)
    assert_same_fit(model.fit_blocks(cut(X, y, w)), ensemble(alpha=0.1, hc=hc).fit(X, y, w), X_new)


@pytest.mark.parametrize("alpha", [0.0, 0.3, "loo", "gcv"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_every_setting_is_that_of_the_whole_table(make_table, alpha, intercept, weighted, noise):
    X, y, w, X_new = make_table(120)
    w = w if weighted else None
    how = {"alpha": alpha, "fit_intercept": intercept, "noise": noise, "variance": "auto"}
    ours, expected = ensemble(**how).fit_blocks(cut(X, y, w)), ensemble(**how).fit(X, y, w)
    assert_same_fit(ours, expected, X_new)
    for component in ("total", "model", "weights"):
        variances = [m.predict_var(X_new, component=component) for m in (ours, expected)]
        assert_allclose(*variances, rtol=1e-8, err_msg=component)
    for one, two in zip(
        ours.predict(X_new, return_std=True), expected.predict(X_new, return_std=True), strict=True
    ):
        assert_allclose(one, two, rtol=1e-8)


def test_the_noise_of_a_heteroskedastic_stream_differs_between_points(make_table):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 1))
    y = X[:, 0] + np.exp(1.5 * X[:, 0]) * rng.standard_normal(600)
    points = np.linspace(-0.9, 0.9, 9)[:, None]
    how = {"noise": "heteroskedastic", "variance": "auto"}
    ours, expected = ensemble(**how).fit_blocks(cut(X, y, size=100)), ensemble(**how).fit(X, y)
    noise = ours.predict_var(points, component="noise")
    assert noise[-1] > 4 * noise[0]
    assert_allclose(noise, expected.predict_var(points, component="noise"), rtol=1e-8)


@pytest.mark.parametrize("hc", ["HC2", "HC3-exact", "ensemble"])
@pytest.mark.parametrize("alpha", [0.1, "loo"])
def test_several_outputs(make_table, alpha, hc):
    X, y, w, X_new = make_table(90)
    Y = np.stack([y, 100 - 5 * X[:, 0], y**2], axis=1)
    how = {"alpha": alpha, "hc": hc, "noise": "heteroskedastic"}
    ours, expected = ensemble(**how).fit_blocks(cut(X, Y, w)), ensemble(**how).fit(X, Y, w)
    assert_same_fit(ours, expected, X_new)
    assert ours.predict(X_new).shape == (7, 3)
    assert ours.coef_.shape == expected.coef_.shape == (4, 3, 8)


def test_one_member(make_table):
    X, y, w, X_new = make_table(60)
    ours, expected = (ELMRegressor(8, hc="HC3", random_state=0) for _ in range(2))
    assert_same_fit(ours.fit_blocks(cut(X, y, w)), expected.fit(X, y, w), X_new)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csc_matrix])
def test_sparse_blocks(make_table, standardize, weighted, form):
    X, y, w, X_new = make_table(90)
    X = np.where(np.abs(X) > 0.4, X, 0.0)
    blocks = [(form(a), b, c) for a, b, c in cut(X, y, w if weighted else None)]
    how = {"standardize": standardize, "hc": "HC3"}
    expected = ensemble(**how).fit(X, y, w if weighted else None)
    assert_same_fit(ensemble(**how).fit_blocks(blocks), expected, X_new)


def test_blocks_with_and_without_weights_mix(make_table):
    X, y, w, X_new = make_table(60)
    w[20:40] = 1
    blocks = [(X[:20], y[:20], w[:20]), (X[20:40], y[20:40]), (X[40:], y[40:], w[40:])]
    for order in itertools.permutations(blocks):
        model = ensemble().fit_blocks(list(order))
        assert_same_fit(model, ensemble().fit(X, y, w), X_new)


def test_integers_lists_and_single_precision_are_read(make_table):
    X, y, _, X_new = make_table(60)
    X, y = np.round(X * 4), np.round(y * 10)
    blocks = [
        (X[:20].astype(int), y[:20].astype(int)),
        (X[20:40].tolist(), y[20:40].tolist()),
        (X[40:].astype(np.float32), y[40:].astype(np.float32)),
    ]
    assert_same_fit(ensemble().fit_blocks(blocks), ensemble().fit(X, y), X_new)


@pytest.mark.parametrize("alpha", [0.3, "loo"])
def test_rows_of_weight_zero_are_left_out(make_table, alpha):
    X, y, w, X_new = make_table(90)
    expected = ensemble(alpha=alpha).fit(X, y, w)
    # What such a row holds does not matter, nor where it stands.
    nothing = (np.full((200, 3), 3.0), np.full(200, 1e3), np.zeros(200))
    for blocks in ([*cut(X, y, w), nothing], [nothing, *cut(X, y, w)]):
        model = ensemble(alpha=alpha).fit_blocks(blocks)
        assert np.all(np.isfinite(model.predict(X_new)))
        assert_same_fit(model, expected, X_new)


def test_the_range_of_the_inputs_is_that_of_all_rows():
    X = np.linspace(0, 1, 400)[:, None]
    y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(400)
    model = ensemble(variance="auto").fit_blocks(cut(X, y, size=20))
    model.predict_var(X)  # training rows, sorted or not, are no extrapolation


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("weight_scale", "alpha", "condition", "rtol"),
    [
        (1.5, 0.0, 5e8, 1e-8),
        (1.5, 1e-6, 5e8, 1e-8),
        (1.5, "loo", 5e8, 1e-8),
        (0.05, 1e-6, 1e13, 1e-8),
        # Without ridge, directions down to sqrt(eps) are kept: half of the digits remain.
        (0.05, 0.0, 1e13, 1e-6),
    ],
)
def test_an_ill_conditioned_layer(weight_scale, alpha, condition, rtol, intercept):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1500, 2))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(1500)
    model = ensemble(
        3,
        60,
        weight_scale=weight_scale,
        standardize=False,
        alpha=alpha,
        fit_intercept=intercept,
        hc="HC3",
        noise_variance="residual",
    )
    dropped = pytest.warns(DegenerateFitWarning, match="constant or repeat")
    with dropped if alpha == 0 else nullcontext():
        ours = clone(model).fit_blocks(cut(X, y, size=400))
        expected = clone(model).fit(X, y)
    s = expected.model_.basis.s
    assert np.min(s[:, 0] / s[:, -1]) > condition
    # With ridge, the rank counts directions of the size of round-off, which change nothing.
    assert_same_fit(ours, expected, X[:40], rtol, same_rank=alpha == 0)


# ---------------------------------------------------------------- any cut, any order


@few
@given(
    cuts=st.lists(st.integers(0, 60), max_size=12),
    alpha=st.sampled_from([0.0, 0.3, "loo", "gcv"]),
    hc=st.sampled_from(HCS),
    noise=st.sampled_from(["homoskedastic", "heteroskedastic"]),
)
def test_any_cut_gives_the_same_fit(make_table, cuts, alpha, hc, noise):
    X, y, w, X_new = make_table(60)
    # Cuts that repeat make empty blocks, neighbours and the ends make blocks of one row.
    edges = [0, *sorted([*cuts, 1, 31, 32, 32, 59]), 60]
    blocks = [(X[a:b], y[a:b], w[a:b]) for a, b in itertools.pairwise(edges)]
    assert {0, 1} <= {len(block[0]) for block in blocks}
    how = {"alpha": alpha, "hc": hc, "noise": noise}
    ours = ensemble(3, 6, **how).fit_blocks(blocks)
    assert_same_fit(ours, ensemble(3, 6, **how).fit(X, y, w), X_new)


@pytest.fixture(scope="module")
def passes(make_table):
    """Passes of a fit, by name, with the blocks of its rows."""
    X, y, w, _ = make_table(60)
    model = ensemble(3, 6, hc="HC3-exact").fit_blocks(cut(X, y, w)).model_
    rows = [Block(a, b[None, :], np.sqrt(c)) for a, b, c in cut(X, y, w, size=9)]
    alphas = np.array([0.01, 1.0])
    return rows, {
        "moments": FirstPass(model.whitening, model.y_shift, [slice(0, model.n_members)]),
        "grams": WeightedPass(model, "HC3-exact", [OWN, OTHERS], None),
        "errors": LeaveOneOutPass(model.whitening, model.y_shift, model.basis, model.q, 60, alphas),
        "scale": feature_scale,
    }


def numbers(sums):
    """All numbers of a result that merges, in a row."""
    if isinstance(sums, dict):
        sums = list(sums.values())
    if isinstance(sums, list):
        return np.concatenate([numbers(part) for part in sums])
    if isinstance(sums, (int, float, np.ndarray)):
        return np.ravel(np.asarray(sums, dtype=float))
    return numbers(list(vars(sums).values()))


@few
@given(data=st.data())
@pytest.mark.parametrize("name", ["moments", "grams", "errors", "scale"])
def test_sums_merge_in_any_order_and_grouping(passes, name, data):
    rows, by_name = passes
    whole = by_name[name](rows)
    parts = [by_name[name]([block]) for block in data.draw(st.permutations(rows))]
    while len(parts) > 1:  # merge two neighbours at a time
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    size = np.abs(numbers(whole)).mean()
    assert_allclose(numbers(parts[0]), numbers(whole), rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("name", ["moments", "grams", "scale"])
def test_sums_travel_and_still_merge(passes, name):
    rows, by_name = passes
    one, two = (by_name[name]([block]) for block in rows[:2])
    sent = pickle.loads(pickle.dumps(one)) + pickle.loads(pickle.dumps(two))
    assert_array_equal(numbers(sent), numbers(one + two))


def test_passes_travel(passes):
    rows, by_name = passes
    for row_pass in by_name.values():
        sent = pickle.loads(pickle.dumps(row_pass))
        assert_array_equal(numbers(sent(rows)), numbers(row_pass(rows)))


@pytest.mark.parametrize("n_threads", [2, 3, 20])
@pytest.mark.parametrize("name", ["moments", "grams", "errors", "scale"])
def test_threads_share_the_blocks(passes, name, n_threads):
    rows, by_name = passes
    whole = numbers(by_name[name](rows))
    shared = numbers(reduced(by_name[name], rows, n_threads))
    assert_allclose(shared, whole, rtol=1e-10, atol=1e-12 * np.abs(whole).mean())


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_the_number_of_threads_does_not_matter(make_table, n_jobs, noise):
    X, y, w, X_new = make_table(150)
    how = {"hc": "HC3", "noise": noise}
    ours = ensemble(n_jobs=n_jobs, **how).fit_blocks(cut(X, y, w))
    assert_same_fit(ours, ensemble(**how).fit_blocks(cut(X, y, w)), X_new)
    assert_same_fit(ensemble(n_jobs=n_jobs, **how).fit(X, y, w), ours, X_new)


# ---------------------------------------------------------------- where blocks come from


def test_slices_of_a_file_mapped_into_memory(make_table, tmp_path):
    X, y, _, X_new = make_table(200)
    table = np.memmap(tmp_path / "table.f8", dtype=float, mode="w+", shape=(200, 4))
    table[:, :3], table[:, 3] = X, y
    table.flush()
    table = np.memmap(tmp_path / "table.f8", dtype=float, mode="r", shape=(200, 4))
    blocks = [(table[a : a + 32, :3], table[a : a + 32, 3]) for a in range(0, 200, 32)]
    assert_same_fit(ensemble().fit_blocks(blocks), ensemble().fit(X, y), X_new)


def test_a_function_is_called_for_each_reading(make_table):
    X, y, w, X_new = make_table(60)
    readings = []

    def blocks():
        readings.append(0)
        yield from cut(X, y, w)

    assert_same_fit(ensemble().fit_blocks(blocks), ensemble().fit(X, y, w), X_new)
    assert len(readings) > 1


@pytest.mark.parametrize("kind", ["generator", "zip", "map"])
def test_an_iterator_is_refused_with_a_remedy(make_table, kind):
    X, y, _, _ = make_table(60)
    blocks = cut(X, y)
    iterator = {
        "generator": (block for block in blocks),
        "zip": zip(*zip(*blocks, strict=True), strict=True),
        "map": map(tuple, blocks),
    }[kind]
    with pytest.raises(ValueError, match=says("iterator", "list", "function")):
        ensemble().fit_blocks(iterator)
    assert len(list(iterator)) == len(blocks)  # nothing was taken from it


def test_a_function_that_gives_the_same_iterator_again_is_noticed(make_table):
    X, y, _, _ = make_table(60)
    iterator = iter(cut(X, y))
    with pytest.raises(ValueError, match="rows"):
        ensemble().fit_blocks(lambda: iterator)


@pytest.fixture
def frame(make_table):
    X, y, w, _ = make_table(120)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    return pd.DataFrame({**columns, "y": y, "z": y**2 - 3, "w": w})


def written(frame, path, format):
    """Write a table as the format says."""
    pytest.importorskip("pyarrow", reason="files are read with pyarrow")
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.Table.from_pandas(frame, preserve_index=False)
    if format == "csv":
        pyarrow.csv.write_csv(table, path)
    elif format == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=50)
    else:
        pyarrow.feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("format", ["parquet", "csv", "feather"])
def test_files(frame, tmp_path, make_table, format):
    path = written(frame, tmp_path / f"table.{format}", format)
    X, y, w, X_new = make_table(120)
    blocks = from_arrow(
        path, target="y", columns=["x0", "x1", "x2"], sample_weight="w", batch_rows=32
    )
    assert max(len(block[0]) for block in blocks) <= 32
    assert_same_fit(ensemble().fit_blocks(blocks), ensemble().fit(X, y, w), X_new)


def test_a_folder_of_files_several_targets_and_the_columns_left(frame, tmp_path, make_table):
    for part in range(3):
        rows = frame.iloc[40 * part : 40 * part + 40]
        written(rows, tmp_path / f"part-{part}.csv", "csv")
    blocks = from_arrow(tmp_path, target=["y", "z"], sample_weight="w", format="csv")
    assert blocks.columns == ("x0", "x1", "x2")
    X, _, w, X_new = make_table(120)
    expected = ensemble().fit(X, frame[["y", "z"]].to_numpy(), w)
    assert_same_fit(ensemble().fit_blocks(blocks), expected, X_new)
    several = from_arrow(
        [tmp_path / f"part-{part}.csv" for part in range(3)], target=["y"], sample_weight="w"
    )
    assert ensemble().fit_blocks(several).predict(np.zeros((2, 4))).shape == (2, 1)


def test_columns_that_a_file_does_not_have_are_named(frame, tmp_path):
    path = written(frame, tmp_path / "table.parquet", "parquet")
    for wrong in ({"target": "t"}, {"target": "y", "columns": ["x0", "t"]}):
        with pytest.raises(ValueError, match=says("'t'", "'x0'", "not in the data set")):
            from_arrow(path, **wrong)
    with pytest.raises(ValueError, match=says("'mass'", "not in the data set")):
        from_arrow(path, target="y", sample_weight="mass")


def test_a_missing_value_in_a_file_is_named(frame, tmp_path):
    frame.loc[70, "x1"] = None
    path = written(frame, tmp_path / "table.parquet", "parquet")
    blocks = from_arrow(path, target="y", batch_rows=25)
    sizes = [len(block[0]) for block in blocks]
    block = next(i for i, end in enumerate(np.cumsum(sizes)) if end > 70)
    row = 70 - sum(sizes[:block])
    with pytest.raises(ValueError, match=says(f"block {block} ", f"row {row};")):
        ensemble().fit_blocks(blocks)


def test_files_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=says("pyarrow", "install ulmus")):
        from_arrow("table.parquet", target="y")


def test_data_frames_name_the_features(frame, make_table):
    names = ["x0", "x1", "x2"]
    blocks = [(part[names], part["y"], part["w"]) for part in (frame[:50], frame[50:])]
    model = ensemble().fit_blocks(blocks)
    assert list(model.feature_names_in_) == names
    X, y, w, X_new = make_table(120)
    assert_same_fit(model.fit_blocks(cut(X, y, w)), ensemble().fit(X, y, w), X_new)
    assert not hasattr(model, "feature_names_in_")
    model.fit_blocks(blocks).predict(pd.DataFrame(X_new, columns=names))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X_new, columns=["x0", "x2", "x1"]))


# ---------------------------------------------------------------- scale of the inputs


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, -1e3])
def test_the_scale_is_that_of_scikit_learn(make_table, sparse, weighted, constant):
    X, y, w, _ = make_table(100, d=4)
    X = np.where(np.abs(X) > 0.2, X, 0.0) * [1.0, 1e-3, 1e4, 1.0]
    X[:, 3] = constant
    root = np.sqrt(w) if weighted else None
    blocks = [
        Block(scipy.sparse.csr_array(a) if sparse else a, b[None, :], c)
        for a, b, c in cut(X, y, root)
    ]
    # Weighted, scikit-learn itself stumbles over a constant; its scale is 1 there.
    varying = StandardScaler().fit(X[:, :3], sample_weight=w if weighted else None)
    for scale in (
        feature_scale(blocks),
        functools.reduce(operator.add, [feature_scale([block]) for block in blocks]),
    ):
        assert_allclose(scale.mean, [*varying.mean_, constant], rtol=1e-10, atol=1e-12)
        assert_allclose(scale.sd, [*varying.scale_, 1], rtol=1e-10)
        assert_allclose(scale.mass, w.sum() if weighted else 100)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_scale_of_inputs_far_from_zero(make_table, sparse):
    X, y, _, _ = make_table(100)
    X = X + 1e5
    blocks = [
        Block(scipy.sparse.csr_array(a) if sparse else a, b[None, :], None) for a, b in cut(X, y)
    ]
    scale = feature_scale(blocks)
    assert_allclose(scale.mean, X.mean(axis=0), rtol=1e-12)
    assert_allclose(scale.sd, X.std(axis=0), rtol=1e-9)


def test_an_estimator_scales_its_blocks(make_table):
    X, y, _, _ = make_table(100)
    X[:, 1] = 0.1
    expected = StandardScaler().fit(X)
    layer = ensemble().fit_blocks(cut(X, y)).model_.whitening.layer
    assert_allclose(layer.offset, expected.mean_, rtol=1e-10, atol=1e-12)
    assert_allclose(layer.scale, expected.scale_, rtol=1e-10)


# ---------------------------------------------------------------- bad blocks


def spoiled(blocks, at, change):
    """Blocks, one of them changed."""
    return [change(*block) if i == at else block for i, block in enumerate(blocks)]


def set_value(array, where, value):
    """A copy with one value replaced."""
    out = array.copy()
    out[where] = value
    return out


BAD_BLOCKS = {
    "narrow": (lambda X, y, w: (X[:, :2], y, w), ["block 17", "2 features", "3"]),
    "outputs": (
        lambda X, y, w: (X, np.stack([y, y], axis=1), w),
        ["block 17", "2 outputs", "have 1"],
    ),
    "NaN in X": (
        lambda X, y, w: (set_value(X, (2, 1), np.nan), y, w),
        ["X of block 17", "NaN", "row 2;", "drop or fill"],
    ),
    "infinite y": (lambda X, y, w: (X, set_value(y, 4, np.inf), w), ["y of block 17", "row 4;"]),
    "NaN in w": (
        lambda X, y, w: (X, y, set_value(w, 1, np.nan)),
        ["sample_weight of block 17", "row 1;"],
    ),
    "negative w": (
        lambda X, y, w: (X, y, set_value(w, 3, -1.0)),
        ["sample_weight of block 17", "negative", "row 3."],
    ),
    "short y": (lambda X, y, w: (X, y[:-1], w), ["block 17", "5 rows of X, 4 of y"]),
    "short w": (lambda X, y, w: (X, y, w[:-1]), ["block 17", "sample_weight", "(4,)"]),
    "wide w": (lambda X, y, w: (X, y, w[:, None]), ["block 17", "sample_weight", "(5, 1)"]),
    "flat X": (lambda X, y, w: (X[:, 0], y, w), ["block 17", "rows and columns"]),
    "no y": (lambda X, y, w: X, ["block 17", "(X, y)", "sample_weight"]),
    "too many": (lambda X, y, w: (X, y, w, w), ["block 17", "(X, y)"]),
    "sparse NaN": (
        lambda X, y, w: (scipy.sparse.csr_array(set_value(X, (2, 1), np.nan)), y, w),
        ["X of block 17", "NaN", "row 2;"],
    ),
}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("bad", BAD_BLOCKS)
def test_a_bad_block_is_named_and_the_last_fit_kept(make_table, bad, n_jobs):
    change, words = BAD_BLOCKS[bad]
    X, y, w, X_new = make_table(100)
    model = ensemble(n_jobs=n_jobs).fit(X, y)
    before = model.predict(X_new, return_std=True)
    with pytest.raises(ValueError, match=says(*words)):
        model.fit_blocks(spoiled(cut(X, y, w, size=5), 17, change))
    assert_array_equal(model.predict(X_new, return_std=True), before)
    assert len(model.leverage_) == 100
    assert_same_fit(model.fit_blocks(cut(X, y, w)), ensemble().fit(X, y, w), X_new)


def test_no_rows():
    for blocks in ([], [(np.empty((0, 3)), np.empty(0))] * 3, lambda: iter([])):
        with pytest.raises(ValueError, match=says("blocks", "no rows", "two rows")):
            ensemble().fit_blocks(blocks)


def test_one_row_is_not_enough(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match="two"):
        ensemble(variance="auto").fit_blocks([(X[:1], y[:1])])


def test_weights_that_are_all_zero(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match="weight"):
        ensemble().fit_blocks(cut(X, y, np.zeros(60)))


def test_least_squares_needs_more_rows_than_the_rank(make_table):
    X, y, _, _ = make_table(60)
    with pytest.raises(ValueError, match=says("alpha=0", "rows", "alpha='loo'")):
        ensemble(2, 8, alpha=0, variance="auto").fit_blocks(cut(X[:8], y[:8], size=3))


# ---------------------------------------------------------------- what a stream shows


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_is_shown(make_table, capsys, n_jobs):
    X, y, _, X_new = make_table(60)
    how = {"n_jobs": n_jobs, "noise": "heteroskedastic"}
    model = ensemble(verbose=1, **how).fit_blocks(cut(X, y))
    shown = capsys.readouterr().out
    assert "sums of features" in shown
    assert "leave-one-out" in shown
    assert_same_fit(model, ensemble(**how).fit_blocks(cut(X, y)), X_new)
    assert capsys.readouterr().out == ""


def test_progress_is_shown_without_rich(make_table, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    X, y, _, X_new = make_table(60)
    model = ensemble(verbose=1).fit_blocks(cut(X, y))
    shown = capsys.readouterr().out
    assert "sums of features ..." in shown
    assert_same_fit(model, ensemble().fit_blocks(cut(X, y)), X_new)


def test_a_failed_fit_leaves_no_progress_behind(make_table, capsys):
    X, y, _, _ = make_table(100)
    model = ensemble(verbose=1)
    blocks = spoiled(cut(X, y, size=5), 17, lambda X, y: (X, y * np.nan))
    for _ in range(2):  # a second display can be opened only if the first was closed
        with pytest.raises(ValueError, match="block 17"):
            model.fit_blocks(blocks)
    model.fit_blocks(cut(X, y))
    assert capsys.readouterr().out


# ---------------------------------------------------------------- after a stream


@pytest.fixture
def streamed(make_table):
    X, y, _, X_new = make_table(90)
    model = ensemble(variance="auto").fit_blocks(cut(X, y))
    return model, ensemble(variance="auto").fit(X, y), X_new


def test_rows_are_not_kept(streamed):
    model, in_memory, _ = streamed
    for name in ROW_ATTRIBUTES:
        assert hasattr(in_memory, name)
        assert not hasattr(model, name)
    model.fit(np.random.default_rng(0).uniform(-1, 1, (90, 3)), np.arange(90.0))
    assert all(hasattr(model, name) for name in ROW_ATTRIBUTES)


def test_the_size_of_a_model_does_not_depend_on_its_rows(make_table):
    sizes = []
    for n in (1000, 4000):
        X, y, _, _ = make_table(n)
        sizes.append(len(pickle.dumps(ensemble().fit_blocks(cut(X, y, size=500)))))
    assert sizes[1] < sizes[0] * 1.01


def test_a_streamed_model_pickles(streamed):
    model, _, X_new = streamed
    sent = pickle.loads(pickle.dumps(model))
    both = [m.predict(X_new, return_std=True) for m in (sent, model)]
    assert_allclose(*both, rtol=1e-13)


def test_conformal_intervals_need_rows_and_auto_is_gaussian(streamed):
    model, in_memory, X_new = streamed
    for method in ("jackknife+", "jackknife"):
        with pytest.raises(ValueError, match=says(repr(method), "'gaussian'", "in memory")):
            model.predict_interval(X_new, method=method)
    auto = model.predict_interval(X_new, [0.5, 0.9])
    assert_array_equal(auto, model.predict_interval(X_new, [0.5, 0.9], method="gaussian"))
    gaussian = in_memory.predict_interval(X_new, [0.5, 0.9], method="gaussian")
    assert_allclose(auto, gaussian, rtol=1e-8)
    quantiles = model.predict_quantiles(X_new, [0.25, 0.75])
    assert_allclose(quantiles, auto[:, :, 0], rtol=1e-8)


@pytest.mark.parametrize("target", ["function", "expectation"])
def test_confidence_intervals_of_a_homoskedastic_stream(streamed, target):
    model, in_memory, X_new = streamed
    both = [m.predict_interval(X_new, kind="confidence", target=target) for m in (model, in_memory)]
    assert_allclose(*both, rtol=1e-8)
    assert np.isfinite(model.bias_alarm_)


def test_confidence_intervals_of_a_heteroskedastic_stream(make_table):
    X, y, _, X_new = make_table(90)
    how = {"noise": "heteroskedastic", "variance": "auto"}
    model, in_memory = ensemble(**how).fit_blocks(cut(X, y)), ensemble(**how).fit(X, y)
    both = [
        m.predict_interval(X_new, kind="confidence", target="expectation")
        for m in (model, in_memory)
    ]
    assert_allclose(*both, rtol=1e-8)
    with pytest.raises(ValueError, match=says("target='function'", "'expectation'", "in memory")):
        model.predict_interval(X_new, kind="confidence", target="function")


def test_members_can_be_compared_after_a_stream(streamed):
    model, in_memory, X_new = streamed
    for ask in (
        lambda m: m.variance_components(X_new),
        lambda m: m.member_correlation(X_new),
        lambda m: m.variance_at(X_new, 50),
    ):
        assert_allclose(ask(model), ask(in_memory), rtol=1e-7)


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
def test_a_streamed_model_can_be_compressed(make_table, noise):
    X, y, _, X_new = make_table(90)
    model = ensemble(noise=noise, variance="auto").fit_blocks(cut(X, y))
    before = model.predict(X_new, return_std=True)
    assert_allclose(model.compress().predict(X_new, return_std=True), before, rtol=1e-13)
