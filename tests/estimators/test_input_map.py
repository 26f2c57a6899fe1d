"""Estimators with an input map: given, learned, saved and described."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from fit_comparison import cut
from messages import mentions
from models import mapped_ensemble, plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone

from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.core.data.source import Block, SamplePass
from ulmus.core.fit.layer import Effort
from ulmus.core.input_map.marginal_likelihood import probe_networks
from ulmus.exceptions import ExtrapolationWarning
from ulmus.model_file.serialisation import from_arrays, to_arrays

EXPANSIONS = ["normal_scores", "one_hot"]
RELEVANCE = ("feature_relevance_", "feature_relevance_std_")


def rank(x):
    """Mean ranks as shares of the rows."""
    return (stats.rankdata(x) - 0.5) / len(x)


@pytest.fixture(scope="module")
def table_with_levels():
    """Rows X (90, 4), the last column of four levels, y, and points among them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 4))
    X[:, 3] = rng.permutation(np.arange(90) % 4)
    X[:2, :3] = [[-1, -1, -1], [1, 1, 1]]
    steps = np.array([0.0, 1.0, -1.0, 0.5])
    y = np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] + steps[X[:, 3].astype(int)]
    X_new = rng.uniform(-0.8, 0.8, (7, 4))
    X_new[:, 3] = np.arange(7) % 4
    return X, y + 0.1 * rng.normal(size=90), X_new


@pytest.fixture(scope="module")
def model(table_with_levels):
    """Fitted once; tests do not change it."""
    X, y, _ = table_with_levels
    return mapped_ensemble(3, 40).fit(X, y)


def results(model, X):
    """Predictions of a model at points."""
    return [
        *model.predict(X, return_std=True),
        model.predict_interval(X),
        model.predict_interval(X, kind="confidence"),
    ]


def assert_same_results(one, other, X):
    for a, b in zip(results(one, X), results(other, X), strict=True):
        assert_array_equal(a, b)
    for name in ("input_map_", *RELEVANCE):
        assert_array_equal(getattr(one, name), getattr(other, name))


# ---------------------------------------------------------------- a map that is given


def test_the_identity_is_no_map(table_with_levels):
    X, y, X_new = table_with_levels
    none, identity = (
        plain_ensemble(3, 30, input_map=given, random_state=0).fit(X, y)
        for given in (None, np.eye(4, dtype=int).tolist())
    )
    assert_allclose(identity.predict(X_new), none.predict(X_new), rtol=1e-10)
    assert none.input_map_ is None
    assert_array_equal(identity.input_map_, np.eye(4))


def test_a_permutation_permutes_the_inputs(table_with_levels):
    X, y, X_new = table_with_levels
    order = [2, 0, 3, 1]
    P = np.eye(4)[:, order]  # z P has the columns of z in that order
    permuted = plain_ensemble(3, 30, input_map=P, random_state=0).fit(X, y)
    expected = plain_ensemble(3, 30, random_state=0).fit(X[:, order], y)
    assert_allclose(permuted.predict(X_new), expected.predict(X_new[:, order]), rtol=1e-9)


def test_a_map_multiplies_the_hidden_weights(table_with_levels):
    X, y, _ = table_with_levels
    L = np.random.default_rng(1).normal(size=(4, 4))
    mapped, none = (
        plain_ensemble(2, 5, input_map=given, random_state=0).fit(X, y) for given in (L, None)
    )
    for W, W_0 in zip(mapped.hidden_weights_, none.hidden_weights_, strict=True):
        assert_allclose(W, L @ W_0, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_a_learned_map_given_back_gives_the_same_predictions(table_with_levels):
    X, y, X_new = table_with_levels
    model = mapped_ensemble(3, 40, expand_inputs=EXPANSIONS).fit(X, y)
    again = mapped_ensemble(3, 40, input_map=model.input_map_, expand_inputs=EXPANSIONS).fit(X, y)
    assert again.fitted_.input_map.structure == "given"
    assert_allclose(again.predict(X_new), model.predict(X_new), rtol=1e-10)
    ours, theirs = (m.fitted_.parts(X_new) for m in (model, again))
    assert_allclose(ours.U, theirs.U, rtol=1e-10)
    # Error bars of a map that was learned hold what choosing it costs.
    assert np.all(model.predict_var(X_new, "model") > again.predict_var(X_new, "model"))


# ---------------------------------------------------------------- bad values


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"input_map": "x"}, ["input_map", "'x'", "None", "'ard'", "'full'", "'auto'", "matrix"]),
        ({"input_map": 3}, ["input_map", "3", "square matrix", "'auto'"]),
        ({"input_map": np.ones((2, 4))}, ["input_map", "square matrix"]),
        ({"input_map": np.eye(4)}, ["input_map", "12 inputs", "(4, 4)", "expand_inputs=None"]),
        (
            {"input_map": np.eye(3), "expand_inputs": None},
            ["input_map", "4 inputs", "(3, 3)", "one row and one column"],
        ),
        ({"input_map": np.full((4, 4), np.nan)}, ["input_map", "finite", "nan"]),
        ({"input_map": [["a"]]}, ["input_map", "finite numbers", "'a'"]),
        ({"expand_inputs": "ranks"}, ["expand_inputs", "'ranks'", "'normal_scores'", "'one_hot'"]),
        (
            {"expand_inputs": ["normal_scores", "auto"]},
            ["expand_inputs", "['normal_scores', 'auto']", "None"],
        ),
        ({"expand_inputs": 3}, ["expand_inputs", "3", "'normal_scores'"]),
        ({"n_neurons": "many"}, ["n_neurons", "'many'", "'auto'", "whole number"]),
        ({"n_neurons": 0}, ["n_neurons", "0", "whole number"]),
        (
            {"activation": np.tanh, "input_map": "ard"},
            ["input_map='ard'", "derivative", "activation by name", "input_map=None"],
        ),
        ({"activation": np.tanh, "input_map": "full"}, ["input_map='full'", "callable"]),
    ],
    ids=str,
)
def test_bad_parameters_are_named_with_a_suggestion(table_with_levels, parameters, words):
    X, y, _ = table_with_levels
    how = {"expand_inputs": EXPANSIONS, "n_neurons": 20, **parameters}
    with pytest.raises(ValueError, match=mentions(*words)):
        ELMEnsembleRegressor(2, **how).fit(X, y)


def test_a_function_of_ones_own_has_no_learned_map(table_with_levels):
    X, y, X_new = table_with_levels
    own, named = (
        mapped_ensemble(3, 40, activation=g, **how).fit(X, y)
        for g, how in ((np.tanh, {}), ("tanh", {"input_map": None}))
    )
    assert_allclose(own.predict(X_new), named.predict(X_new), rtol=1e-10)
    assert not own.fitted_.ensemble.layer.inputs.expands
    with pytest.raises(AttributeError, match=mentions("learned input map", "input_map='auto'")):
        _ = own.feature_relevance_


@pytest.mark.parametrize("name", RELEVANCE)
def test_without_a_map_there_is_no_relevance(table_with_levels, name):
    X, y, _ = table_with_levels
    model = plain_ensemble(2, 10).fit(X, y)
    with pytest.raises(AttributeError, match=mentions("learned input map", "input_map='auto'")):
        getattr(model, name)
    assert not hasattr(model, name)


# ---------------------------------------------------------------- what is learned


def test_defaults_expand_inputs_and_learn_a_map(table_with_levels, model):
    inputs = model.fitted_.ensemble.layer.inputs
    # Three columns are neither skewed nor stretched, and only the one of few values has scores.
    straight = [
        stats.pearsonr(x, stats.norm.ppf(rank(x))).statistic > 0.97 for x in table_with_levels[0].T
    ]
    assert_array_equal(straight, [True, True, False, True])
    assert_array_equal(inputs.origin, [0, 1, 2, 3, 2, 3, 3, 3, 3, 3])
    assert model.fitted_.input_map.structure == "ard"
    assert model.input_map_.shape == (10, 10)
    assert model.hidden_weights_.shape == (3, 10, 40)
    assert_array_equal(model.input_map_, np.diag(np.diag(model.input_map_)))


def test_relevance_is_a_share(model):
    shares, deviation = (getattr(model, name) for name in RELEVANCE)
    assert shares.shape == deviation.shape == (4,)
    assert np.all(shares >= 0)
    assert_allclose(np.sum(shares), 1, rtol=1e-12)
    assert np.all(np.isfinite(deviation))
    assert np.all(deviation >= 0)
    assert np.max(deviation) > 0
    assert np.argmin(shares) == 2
    assert shares[2] < 0.05


def test_a_single_member_learns_the_same_map(table_with_levels, model):
    X, y, X_new = table_with_levels
    one = ELMRegressor(40, random_state=0).fit(X, y)
    assert_array_equal(one.input_map_, model.input_map_)
    assert_array_equal(one.hidden_weights_[0], model.hidden_weights_[0])
    assert np.all(np.isfinite(one.predict_interval(X_new)))


def test_units_by_the_number_of_rows(table_with_levels):
    X, y, _ = table_with_levels
    units = [
        ELMEnsembleRegressor(2, input_map=None).fit(X[:n], y[:n]).coef_.shape[1] for n in (20, 90)
    ]
    assert units == [100, int(20 * np.sqrt(90))]


@pytest.mark.parametrize("factor", [2.0**20, 2.0**-13])
def test_units_of_a_column_that_are_powers_of_two_change_no_bit(table_with_levels, model, factor):
    X, y, X_new = table_with_levels
    scaled = mapped_ensemble(3, 40).fit(X * [1, factor, 1, factor], y)
    assert_array_equal(scaled.input_map_, model.input_map_)
    assert_array_equal(scaled.predict(X_new * [1, factor, 1, factor]), model.predict(X_new))


def test_units_and_origin_of_columns_do_not_matter(table_with_levels, model):
    X, y, X_new = table_with_levels
    scale, shift = np.array([1e6, 1.0, 0.3, 1e-3]), np.array([1e3, -7.0, 0.0, 1.0])
    other = mapped_ensemble(3, 40).fit(scale * X + shift, y)
    assert_allclose(other.predict(scale * X_new + shift), model.predict(X_new), rtol=1e-6)


def test_units_and_origin_of_outputs_come_back(table_with_levels, model):
    X, y, X_new = table_with_levels
    other = mapped_ensemble(3, 40).fit(X, 1e5 * y - 3e4)
    assert_allclose(other.predict(X_new), 1e5 * model.predict(X_new) - 3e4, rtol=1e-6)
    assert_allclose(other.feature_relevance_, model.feature_relevance_, rtol=1e-5)


def test_relevance_moves_with_its_column(table_with_levels, model):
    X, y, _ = table_with_levels
    order = [3, 2, 1, 0]
    shares = mapped_ensemble(3, 40).fit(X[:, order], y).feature_relevance_
    assert order[np.argmax(shares)] == np.argmax(model.feature_relevance_)
    assert order[np.argmin(shares)] == np.argmin(model.feature_relevance_)
    assert_allclose(shares, model.feature_relevance_[order], atol=0.1)


# ---------------------------------------------------------------- ways that rows come


def test_one_block_is_the_table(table_with_levels, model):
    X, y, X_new = table_with_levels
    streamed = mapped_ensemble(3, 40).fit_blocks([(X, y)])
    assert_array_equal(streamed.input_map_, model.input_map_)
    assert_array_equal(streamed.feature_relevance_, model.feature_relevance_)
    assert_allclose(streamed.predict(X_new), model.predict(X_new), rtol=1e-8)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blocks_give_the_map_of_the_table(table_with_levels, model, n_jobs):
    X, y, X_new = table_with_levels
    streamed = mapped_ensemble(3, 40, n_jobs=n_jobs).fit_blocks(cut(X, y, size=18))
    assert_allclose(streamed.input_map_, model.input_map_, rtol=1e-3, atol=1e-6)
    assert_allclose(streamed.predict(X_new), model.predict(X_new), rtol=1e-4)
    ours, theirs = (m.fitted_.parts(X_new) for m in (model, streamed))
    assert_allclose(ours.U, theirs.U, rtol=1e-3)


def test_rows_added_later_keep_the_map(table_with_levels):
    X, y, X_new = table_with_levels
    model = mapped_ensemble(3, 40).partial_fit(X[:50], y[:50])
    first, shares = model.input_map_, model.feature_relevance_
    model.partial_fit(X[50:], y[50:]).partial_fit(scipy.sparse.csr_array(X[:5]), y[:5])
    assert_array_equal(model.input_map_, first)
    assert_array_equal(model.feature_relevance_, shares)
    assert np.all(np.isfinite(model.predict(X_new)))
    with pytest.raises(ValueError, match=mentions("input_map", "None", "auto")):
        model.set_params(input_map=None).partial_fit(X, y)


def test_dask_gives_the_map_of_the_table(table_with_levels, model):
    dask = pytest.importorskip("dask", reason="needs dask")
    pytest.importorskip("distributed", reason="needs distributed")
    import dask.array as da

    import ulmus.dask

    X, y, X_new = table_with_levels
    with dask.config.set(scheduler="synchronous"):
        lazy = ulmus.dask.fit(
            mapped_ensemble(3, 40), da.from_array(X, chunks=(40, 4)), da.from_array(y, 40)
        )
    assert_allclose(lazy.predict(X_new), model.predict(X_new), rtol=1e-4)
    # Rows come in another order, and other pairs of them exchange their values.
    assert_allclose(lazy.feature_relevance_, model.feature_relevance_, atol=0.06)


def test_a_map_is_learned_from_a_sample_of_rows(table_with_levels, monkeypatch):
    X, y, X_new = table_with_levels
    sizes = []

    def counted(sample, *rest, **options):
        sizes.append(sample.y.shape[1])
        return probe_networks(sample, *rest, **options)

    monkeypatch.setattr("ulmus.core.fit.layer.probe_networks", counted)
    monkeypatch.setattr("ulmus.core.fit.layer.HOST_EFFORT", Effort(rows=40, units=64))
    in_memory, streamed = (
        mapped_ensemble(3, 40).fit(X, y),
        mapped_ensemble(3, 40).fit_blocks(cut(X, y, size=50)),
    )
    assert sizes == [40, 40]
    # Keys of rows depend on the blocks: two samples of the same table, whose maps are near.
    assert np.max(np.abs(in_memory.predict(X_new) - streamed.predict(X_new))) < 0.5


def test_a_sample_is_the_same_in_any_order_of_blocks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), rng.normal(size=(1, 90))
    blocks = [Block(X[k : k + 30], y[:, k : k + 30], None) for k in (0, 30, 60)]
    one = SamplePass(20, seed=3)(blocks)
    other = SamplePass(20, seed=3)(blocks[2:]) + SamplePass(20, seed=3)(blocks[1::-1])
    assert one.block.X.shape == (20, 2)
    assert_array_equal(np.sort(one.keys), np.sort(other.keys))
    assert_array_equal(np.sort(one.block.y), np.sort(other.block.y))
    found = [np.flatnonzero(y[0] == value)[0] for value in one.block.y[0]]
    assert_array_equal(one.block.X, X[found])
    assert len({k // 30 for k in found}) == 3
    assert np.any(np.sort(SamplePass(20, seed=4)(blocks).keys) != np.sort(one.keys))


def test_every_row_is_sampled_equally_often():
    y = np.arange(50.0)[None, :]
    blocks = [Block(y[:, k : k + 25].T, y[:, k : k + 25], None) for k in (0, 25)]
    times = np.zeros(50)
    for seed in range(400):
        times[SamplePass(10, seed)(blocks).block.y[0].astype(int)] += 1
    assert np.sum(times) == 4000
    # Binomial: 400 times a fifth, standard deviation 8, and 50 of them.
    assert np.max(np.abs(times - 80)) < 4 * 8


# ---------------------------------------------------------------- kinds of data


def test_torch_tensors(torch, table_with_levels, model):
    X, y, X_new = table_with_levels
    foreign = mapped_ensemble(3, 40).fit(torch.asarray(X), torch.asarray(y))
    mean = foreign.predict(torch.asarray(X_new))
    assert isinstance(mean, torch.Tensor)
    assert isinstance(foreign.input_map_, np.ndarray)
    assert_allclose(mean.numpy(), model.predict(X_new), rtol=1e-3, atol=1e-3)
    assert_allclose(foreign.feature_relevance_, model.feature_relevance_, atol=0.02)


def test_single_precision(table_with_levels, model):
    X, y, X_new = table_with_levels
    single = mapped_ensemble(3, 40, dtype="float32").fit(X.astype(np.float32), y)
    mean = single.predict(X_new.astype(np.float32))
    assert mean.dtype == np.float32
    # Half a standard error: in single precision the search ends elsewhere.
    error = np.sqrt(model.predict_var(X_new, component="model"))
    assert np.max(np.abs(mean - model.predict(X_new)) / error) < 0.5


def test_rows_of_weight_zero_do_not_matter(table_with_levels):
    X, y, X_new = table_with_levels
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 90)
    weight[::7] = 0.0
    junk, used = X.copy(), weight > 0
    junk[~used] = -99.0
    y = np.where(used, y, 1e3)
    one, other = (
        mapped_ensemble(3, 40).fit(junk, y, weight),
        mapped_ensemble(3, 40).fit(X[used], y[used], weight[used]),
    )
    assert_allclose(one.input_map_, other.input_map_, rtol=1e-6, atol=1e-9)
    assert_allclose(one.predict(X_new), other.predict(X_new), rtol=1e-6)
    assert_allclose(one.feature_relevance_, other.feature_relevance_, rtol=1e-5, atol=1e-8)


def test_weights_matter_to_the_map(table_with_levels):
    X, y, _ = table_with_levels
    heavy = np.where(X[:, 0] > 0, 50.0, 0.02)
    assert np.any(
        mapped_ensemble(3, 40).fit(X, y, heavy).input_map_
        != mapped_ensemble(3, 40).fit(X, y).input_map_
    )


def test_two_outputs_share_a_map(table_with_levels):
    X, y, X_new = table_with_levels
    both = mapped_ensemble(3, 40).fit(X, np.column_stack([y, X[:, 2] ** 2]))
    assert both.predict(X_new).shape == (7, 2)
    assert both.input_map_.shape == (10, 10)
    # The third input, useless to the first output, is all that the second depends on.
    assert both.feature_relevance_[2] > 0.2
    assert both.feature_relevance_.shape == (4,)


def test_sparse_tables_have_scales_for_their_own_inputs(table_with_levels):
    X, y, X_new = table_with_levels
    rows = scipy.sparse.csr_array(np.where(np.abs(X) > 0.2, X, 0.0))
    sparse = mapped_ensemble(3, 40).fit(rows, y)
    dense = mapped_ensemble(3, 40, expand_inputs=None).fit(rows.toarray(), y)
    assert sparse.input_map_.shape == (4, 4)
    assert_allclose(sparse.input_map_, dense.input_map_, rtol=1e-3, atol=1e-8)
    points = scipy.sparse.csr_array(X_new)
    assert_allclose(sparse.predict(points), dense.predict(X_new), rtol=1e-3, atol=1e-3)


def test_sparse_points_after_a_dense_fit(table_with_levels, model):
    _, _, X_new = table_with_levels
    points = scipy.sparse.csr_array(X_new)
    assert_allclose(model.predict(points), model.predict(X_new), rtol=1e-12)
    assert_allclose(model.predict_interval(points), model.predict_interval(X_new), rtol=1e-9)


def test_frames_and_their_names(table_with_levels, model):
    X, y, X_new = table_with_levels
    names = list("abcd")
    frame = mapped_ensemble(3, 40).fit(pd.DataFrame(X, columns=names), y)
    assert list(frame.feature_names_in_) == names
    points = pd.DataFrame(X_new, columns=names)
    assert_allclose(frame.predict(points), model.predict(X_new), rtol=1e-6)


# ---------------------------------------------------------------- copies and inspection


def test_a_pickled_model_is_the_same(table_with_levels, model):
    assert_same_results(pickle.loads(pickle.dumps(model)), model, table_with_levels[2])


def test_a_model_comes_back_from_its_arrays(table_with_levels, model):
    arrays, description = to_arrays(model.fitted_)
    copy = clone(model)
    copy.n_features_in_ = 4
    copy.fitted_ = from_arrays(arrays, json.loads(json.dumps(description, allow_nan=False)))
    assert_same_results(copy, model, table_with_levels[2])


def test_compress_keeps_predictions_and_relevance(table_with_levels, model):
    X, y, X_new = table_with_levels
    compressed = mapped_ensemble(3, 40).fit(X, y).compress()
    assert_array_equal(compressed.predict(X_new), model.predict(X_new))
    assert_allclose(compressed.predict_var(X_new), model.predict_var(X_new), rtol=1e-8)
    for how in ({"method": "gaussian"}, {"kind": "confidence"}):
        intervals = (one.predict_interval(X_new, **how) for one in (compressed, model))
        assert_allclose(*intervals, rtol=1e-6)
    for name in ("input_map_", *RELEVANCE):
        assert_array_equal(getattr(compressed, name), getattr(model, name))


def test_an_unseen_level_warns_and_has_no_indicator(table_with_levels, model):
    X, _, X_new = table_with_levels
    points = X_new.copy()
    points[[1, 4], 3] = [1.5, 0.25]
    layer = model.fitted_.ensemble.layer
    with pytest.warns(
        ExtrapolationWarning, match="2 of 7 points have a value of input 3"
    ) as record:
        mean = model.predict(points)
    assert len(record) == 1
    assert "expand_inputs" in str(record[0].message)
    assert record[0].filename == __file__
    assert_array_equal(layer.inputs(points)[-4:, [1, 4]], 0)
    assert np.all(np.isfinite(mean))
    seen = [0, 2, 3, 5, 6]
    assert_allclose(mean[seen], model.predict(X_new)[seen], rtol=1e-12)
    with pytest.warns(ExtrapolationWarning, match="2 of 7 points have a value of input 3"):
        model.predict(scipy.sparse.csr_array(points))
    model.predict_interval(X)  # training rows have no such value


def test_scores_alone_have_no_unseen_levels(table_with_levels):
    X, y, X_new = table_with_levels
    model = mapped_ensemble(3, 40, expand_inputs="normal_scores").fit(X, y)
    points = X_new.copy()
    points[:, 3] = 1.5
    model.predict(points)


STARTS = ["common scale", "another scale", "gradients"]


@pytest.mark.parametrize(("verbose", "lines"), [(0, False), (1, False), (2, True)])
def test_verbose_prints_how_the_map_was_optimised(table_with_levels, capsys, verbose, lines):
    X, y, _ = table_with_levels
    mapped_ensemble(3, 40, verbose=verbose).fit(X, y)
    log = [line.partition("]")[2] for line in capsys.readouterr().out.splitlines()]
    assert (" Learning the input map" in log) == (verbose > 0)
    log = [line for line in log if "likelihood" in line]
    assert bool(log) == lines
    if lines:
        log = [line.split(":")[0].strip() for line in log]
        assert log[:4] == ["one scale", *(f"from {name}" for name in STARTS)]
        assert all(line.endswith("continued") for line in log[4:-2])
        assert log[-2] == "scales"
        assert re.fullmatch(r"\d+ of 10 inputs kept", log[-1])


def test_parameters_of_the_map_are_parameters_of_the_estimator():
    model = mapped_ensemble(3, 40, input_map=np.eye(2), expand_inputs=["normal_scores"])
    copy = clone(model)
    assert_array_equal(copy.get_params()["input_map"], np.eye(2))
    assert copy.get_params()["expand_inputs"] == ["normal_scores"]
    assert copy.set_params(input_map="ard", expand_inputs=None).input_map == "ard"
    defaults = ELMEnsembleRegressor().get_params(), ELMRegressor().get_params()
    assert all(d["input_map"] == d["expand_inputs"] == d["n_neurons"] == "auto" for d in defaults)


def test_another_large_matrix_is_noticed_by_partial_fit(rng):
    X, one, other = rng.normal(size=(60, 40)), np.eye(40), np.eye(40)
    other[20, 20] = 1e6
    model = mapped_ensemble(3, 40, input_map=one, expand_inputs=None).partial_fit(X, X[:, 0])
    with pytest.raises(ValueError, match="input_map was"):
        model.set_params(input_map=other).partial_fit(X, X[:, 0])


def test_a_changed_map_changes_no_fit(table_with_levels, model):
    _, _, X_new = table_with_levels
    before = model.predict(X_new)
    model.input_map_[:] = 0
    assert_array_equal(model.predict(X_new), before)
    assert np.any(model.input_map_ != 0)


def test_tensors_with_a_gradient_are_data(table_with_levels, torch):
    X, y, X_new = table_with_levels
    plain, tracked = (
        mapped_ensemble(3, 40).fit(torch.tensor(X, requires_grad=grad), torch.tensor(y))
        for grad in (False, True)
    )
    assert_allclose(tracked.predict(X_new), plain.predict(X_new), rtol=1e-6)
