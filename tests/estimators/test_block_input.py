"""Blocks and files as ``fit_blocks`` reads them: names, types, order, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from fit_comparison import cut
from messages import mentions
from models import small_ensemble
from numpy.testing import assert_allclose

from ulmus.tables import from_arrow


def test_columns_in_another_order_are_refused(normal_rows):
    X, y = normal_rows
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    blocks = [(frame[:300], y[:300]), (frame[["c", "a", "b"]][300:], y[300:])]
    with pytest.raises(ValueError, match=mentions("block 1", "['c', 'a', 'b']", "['a', 'b', 'c']")):
        small_ensemble(5, 20).fit_blocks(blocks)
    with pytest.raises(ValueError, match=mentions("block 1", "no column names")):
        small_ensemble(5, 20).fit_blocks([blocks[0], (X[300:], y[300:])])


def test_files_keep_the_names_of_their_columns(normal_rows, tmp_path):
    X, y = normal_rows
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


def test_the_order_of_blocks_may_change_between_readings(normal_rows):
    X, y = normal_rows
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
def test_blocks_that_are_no_tables(normal_rows, what):
    change, words = UNREADABLE[what]
    with pytest.raises(ValueError, match=mentions(*words)):
        small_ensemble(5, 20).fit_blocks([change(*normal_rows)])


@pytest.mark.parametrize("blocks", [3, None])
def test_something_that_is_no_list_of_blocks(blocks):
    with pytest.raises(ValueError, match=mentions("blocks", "list", "fit for a single table")):
        small_ensemble(5, 20).fit_blocks(blocks)


def test_blocks_of_several_kinds_are_refused(torch, normal_rows):
    X, y = normal_rows
    sparse = scipy.sparse.csr_matrix(X)
    for first, second in [(X, sparse), (torch.asarray(X), X)]:
        with pytest.raises(ValueError, match=mentions("block 1", "arrays of one library")):
            small_ensemble(5, 20).fit_blocks([(first, y), (second, y)])
    for bad in [(np.empty((600, 0)), y), (X, np.empty((600, 0)))]:
        with pytest.raises(ValueError, match=mentions("block 0", "no columns")):
            small_ensemble(5, 20).fit_blocks([bad])
    small_ensemble(5, 20).fit_blocks([(scipy.sparse.csr_matrix(X > 0), y)])


def test_columns_of_objects_and_missing_types_that_hold_numbers_are_used(normal_rows):
    X, y = normal_rows
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = small_ensemble(5, 20).fit(frame, y).predict(frame)
    for kind in (object, "Float64"):
        assert_allclose(
            small_ensemble(5, 20).fit(frame.astype(kind), y).predict(frame), expected, rtol=1e-9
        )


@pytest.mark.parametrize("way", ["fit", "fit_blocks", "partial_fit"])
def test_sparse_entries_that_are_stored_twice_count_together(normal_rows, way):
    X, y = np.round(normal_rows[0][:90]), normal_rows[1][:90]
    plain = scipy.sparse.csr_matrix(X)
    halves = np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), 2 * plain.indptr
    doubled = scipy.sparse.csr_matrix(halves, shape=X.shape)
    fits = []
    for rows in (doubled, X):
        model = small_ensemble(5, 20, alpha=0.3)
        model.fit_blocks([(rows, y)]) if way == "fit_blocks" else getattr(model, way)(rows, y)
        fits.append(model.predict(X))
    assert_allclose(*fits, rtol=1e-9)


def test_files_of_several_kinds(normal_rows, tmp_path):
    X, y = normal_rows
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


def test_files_that_cannot_be_used(normal_rows, tmp_path):
    X, y = normal_rows
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
