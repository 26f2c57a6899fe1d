"""Shrunken means by category, beside loops; statistics of training rows exclude their fold."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.tables import TableEncoder, TargetEncodedColumn, infer_schema
from ulmus.tables.target_statistics import N_FOLDS, CategorySums, fold_numbers
from ulmus.tables.training_encoding import EncodingLearner


def rows(n=600, n_levels=40, seed=0):
    """Categories, outputs and weights."""
    rng = np.random.default_rng(seed)
    index = rng.integers(0, n_levels, n)
    effects = rng.normal(size=(n_levels, 2))
    return index, effects[index] + 0.5 * rng.normal(size=(n, 2)), rng.uniform(0.5, 2, n)


def shrunken_means(index, y, w):
    """Analysis of variance of random effects for one output, in loops."""
    center, levels = np.average(y, weights=w), np.unique(index)
    weights = {level: w[index == level].sum() for level in levels}
    means = {level: np.average(y[index == level], weights=w[index == level]) for level in levels}
    within = sum(
        (w[index == level] * (y[index == level] - means[level]) ** 2).sum() for level in levels
    ) / (w.sum() - len(levels))
    between = sum(weights[level] * (means[level] - center) ** 2 for level in levels)
    between /= len(levels) - 1
    size = (w.sum() - sum(v**2 for v in weights.values()) / w.sum()) / (len(levels) - 1)
    k = within / ((between - within) / size)
    return {
        level: center + weights[level] / (weights[level] + k) * (means[level] - center)
        for level in levels
    }


def test_statistics_are_those_of_random_effects():
    index, y, w = rows()
    sums = CategorySums(40, 2)
    folds = fold_numbers(0, len(y))
    for few in (slice(0, 200), slice(200, 600)):  # sums of blocks
        sums.add(index[few], y[few], w[few], folds[few])
    for without in (None, 3):
        kept = folds != without
        found = sums.statistics(without)
        for k in range(2):
            expected = shrunken_means(index[kept], y[kept, k], w[kept])
            assert_allclose([found.means[level, k] for level in expected], list(expected.values()))
        assert_allclose(found.center, np.average(y[kept], axis=0, weights=w[kept]))
        assert np.all((found.reliability > 0) & (found.reliability < 1))


def test_folds_depend_on_the_number_of_a_row_only():
    whole = fold_numbers(0, 1000)
    assert_array_equal(np.concatenate([fold_numbers(0, 311), fold_numbers(311, 689)]), whole)
    assert np.bincount(whole, minlength=N_FOLDS).min() > 60


def test_training_rows_do_not_see_their_own_fold():
    index, y, _ = rows()
    table = pd.DataFrame({"k": [f"level {i}" for i in index]})
    schema = infer_schema([table])

    def inputs(y):
        learner = EncodingLearner(schema, 2)
        codes, _ = schema.parse(table)
        learner.add(codes, y, None)
        return learner.encoding().encode(codes)

    changed = y.copy()
    changed[17] += 100.0
    fold = fold_numbers(0, len(y)) == fold_numbers(17, 1)
    before, after = inputs(y), inputs(changed)
    assert_array_equal(before[fold], after[fold])
    same_level = (index == index[17]) & ~fold
    assert np.all(before[same_level, 0] != after[same_level, 0])


def test_many_levels_are_encoded_by_means_and_few_by_indicators():
    index, y, _ = rows()
    table = pd.DataFrame({"k": [f"level {i}" for i in index], "few": index % 3})
    schema = infer_schema([table], categorical=["few"])
    learner = EncodingLearner(schema, 2)
    learner.add(schema.parse(table)[0], y, None)
    learned = learner.encoding().schema
    assert isinstance(learned.columns[0], TargetEncodedColumn)
    assert learned.features == (
        "k (mean 0)",
        "k (mean 1)",
        "k (reliability)",
        "few=0",
        "few=1",
        "few=2",
    )
    unknown = learned.encode(np.array([[-1.0, 0.0]]))
    assert_allclose(unknown[0, :3], [*y.mean(axis=0), 0.0])


def test_a_category_without_an_effect_is_shrunk_to_the_mean():
    rng = np.random.default_rng(0)
    sums = CategorySums(50, 1)
    index, y = rng.integers(0, 50, 500), rng.normal(size=(500, 1))
    sums.add(index, y, np.ones(500), fold_numbers(0, 500))
    unshrunken = [y[index == level].mean() for level in range(50)]
    assert np.ptp(sums.statistics().means) < 0.5 * np.ptp(unshrunken)


@pytest.mark.parametrize("missing", [0, 25])
def test_missing_categories_are_a_category(missing):
    index, y, _ = rows()
    table = pd.DataFrame({"k": [f"level {i}" for i in index]}, dtype=object)
    table.iloc[:missing, 0] = None
    schema = infer_schema([table])
    learner = EncodingLearner(schema, 2)
    learner.add(schema.parse(table)[0], y, None)
    column = learner.encoding().schema.columns[0]
    encoded = column.encode(np.array([np.nan]))
    if missing:
        assert encoded[0, -1] > 0
    else:
        assert_array_equal(encoded[0], column.levels.unknown)


def test_rows_without_a_target_do_not_count_in_an_encoder():
    index, y, _ = rows()
    table, y = pd.DataFrame({"town": [f"t{i}" for i in index]}), y[:, 0].copy()
    table["x"], absent = y, np.arange(len(y)) % 50 == 0
    y[absent] = np.nan
    found = TableEncoder().fit(table, y).schema_.column("town")
    assert np.isfinite(found.means).all()
    level = found.categories.index("t1")
    own = y[(table.town == "t1") & ~absent].mean()
    expected = found.center[0] + found.reliability[level] * (own - found.center[0])
    assert_allclose(found.means[level][0], expected, rtol=1e-9)
