"""Rows that are exact copies of other rows: one observation that was recorded repeatedly.

A copy contains no information beyond that of its row. Leave-one-out errors of rows whose copies
remain in the fit are too small, and so are standard errors that count copies as observations. Rows
may also coincide by chance, where inputs and outputs have few values. They are copies if chance
explains few of the coincidences:

- Where rows with equal inputs have different outputs, outputs must be continuous: hardly any two
  successive sorted outputs differ by the same smallest step, as rounded and counted ones do.
- Where rows with equal inputs always have equal outputs, inputs must coincide more often than
  independent columns with the same frequencies of values would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import taken_rows, to_numpy
from ulmus.core.data.row_hashes import row_hashes, scattered
from ulmus.core.data.source import RowBlocks
from ulmus.messages import Message, Setting

# Copies below this share of the rows have a negligible influence on coverage.
LEAST_SHARE = 0.02
# So few distinct rows are those of a designed experiment more often than of a table with copies.
FEWEST_DISTINCT = 20
# Different outputs are the exception up to this share of the inputs of several rows.
EXCEPTIONS = 0.02
# Continuous outputs differ by the smallest step in at most this share of successive values.
LARGEST_STEP_SHARE = 0.01
# Independent columns must explain less than this share of the pairs of rows with equal inputs.
CHANCE_SHARE = 0.01


def copied_rows(rows: RowBlocks, locations: Sequence[np.ndarray] = ()) -> np.ndarray | None:
    """For each row the row that it is a copy of, itself if none, shape (n,); None without copies.

    Rows of weight zero are no copies. ``locations`` are further columns (n,) in which copies are
    equal. Of several copies the first one of the largest weight is kept.
    """
    used = np.flatnonzero(rows.used)
    n, y = len(used), rows.y[:, used]
    outputs = row_hashes(y.T)
    if n - len(np.unique(outputs)) < max(LEAST_SHARE * n, 1):
        return None
    X = taken_rows(rows.X, used)
    X = X.tocsr() if scipy.sparse.issparse(X) else to_numpy(X)
    places = np.stack([values[used] for values in locations], axis=1) if locations else None
    inputs = row_hashes(X) if places is None else scattered(row_hashes(X)) ^ row_hashes(places)
    _, first, index = np.unique(scattered(inputs) ^ outputs, return_index=True, return_inverse=True)
    if n - len(first) < LEAST_SHARE * n or len(first) < FEWEST_DISTINCT:
        return None
    n_repeated, n_differing = (_n_repeated(keys) for keys in (inputs, inputs[first]))
    if n_differing > EXCEPTIONS * n_repeated:
        by_chance = not any(_continuous(each) for each in y[:, first])
    else:
        by_chance = _coincide_by_chance(inputs, X, places)
    if by_chance:
        return None
    weight = np.ones(n) if rows.root_weight is None else rows.root_weight[used]
    order = np.lexsort((-weight, index))
    kept = order[np.searchsorted(index[order], np.arange(len(first)))]
    copy_of = np.arange(rows.n_rows)
    copy_of[used] = used[kept[index]]
    return copy_of


def copies_message(rows: RowBlocks) -> Message:
    """What was found about copies among some rows, and what to do about it."""
    n = rows.n_copies + int(np.sum(rows.used))
    text = (
        f"{rows.n_copies} of {n} rows are exact copies of others, with the same inputs and "
        "outputs, and each row counts once"
    )
    phrase = "keep one of each with the number of its copies as {} if they are measurements"
    remedies = "drop the copies", Setting("sample_weight", phrase=phrase)
    return Message("duplicate-rows", text, suggestions=remedies, topic="inputs")


def _n_repeated(keys: np.ndarray) -> int:
    """Number of values that occur more than once."""
    return int(np.sum(np.unique(keys, return_counts=True)[1] > 1))


def _continuous(y: np.ndarray) -> bool:
    """Whether hardly any successive sorted values are equal or differ by the smallest step."""
    step = np.diff(np.sort(y))
    round_off = 16 * np.finfo(float).eps * float(np.max(np.abs(y)))
    positive = step[step > round_off]
    if not len(positive):
        return False
    share = np.mean(step <= np.min(positive) + round_off)
    return bool(share <= max(LARGEST_STEP_SHARE, 2 / len(step)))


def _coincide_by_chance(inputs: np.ndarray, X: Any, places: np.ndarray | None) -> bool:
    """Whether independent columns would have a relevant share of the pairs of equal inputs.

    Frequencies of values are those in the distinct inputs.
    """
    _, distinct, repeats = np.unique(inputs, return_index=True, return_counts=True)
    n, n_distinct, counts = len(inputs), len(distinct), repeats.astype(float)
    limit = CHANCE_SHARE * float(np.sum(counts * (counts - 1)))
    expected = n * (n - 1.0)
    for column in _columns(X, places, distinct):
        counts = np.unique(column, return_counts=True)[1].astype(float)
        expected *= float(np.sum(counts * (counts - 1))) / (n_distinct * (n_distinct - 1.0))
        if expected < limit:
            return False
    return True


def _columns(X: Any, places: np.ndarray | None, index: np.ndarray) -> Iterator[np.ndarray]:
    """Columns of some rows of the inputs and locations."""
    if places is not None:
        yield from places[index].T
    if not scipy.sparse.issparse(X):
        yield from X[index].T
        return
    X = X[index].tocsc()
    for j in range(X.shape[1]):
        yield X[:, [j]].toarray().ravel()
