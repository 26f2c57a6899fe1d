"""Shrunken means by category, beside loops; statistics of training rows exclude their fold."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.tables import (
    CategoryColumn,
    TableEncoder,
    TargetEncodedColumn,
    infer_schema,
    training_encoding,
)
from ulmus.tables.level_effects import OtherInputs, level_effects
from ulmus.tables.target_statistics import N_FOLDS, CategorySums, fold_numbers, shrunken
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
    assert learned.columns[0].inputs[:4] == (
        "mean 0",
        "mean 1",
        "mean residual 0",
        "mean residual 1",
    )
    assert learned.features[-4:] == ("k (reliability)", "few=0", "few=1", "few=2")
    unknown = learned.encode(np.array([[-1.0, 0.0]]))
    assert_allclose(unknown[0, [0, 1, -4]], [*y.mean(axis=0), 0.0])


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


def mixed(n=2000, n_levels=40, seed=0):
    """Levels with effects and slopes, and two numbers, one of them with missing cells."""
    rng = np.random.default_rng(seed)
    index, x, z = rng.integers(0, n_levels, n), rng.normal(size=n), rng.normal(size=n)
    effect, slope = rng.normal(size=(2, n_levels))
    y = np.sin(2 * x) + z + effect[index] + slope[index] * x + 0.3 * rng.normal(size=n)
    table = pd.DataFrame({"x": x, "z": np.where(rng.random(n) < 0.1, np.nan, z)})
    return table.assign(k=[f"level {i}" for i in index]), y[:, None], index, effect, slope


def learned(table, y, weight=None, parts=(slice(None),)):
    """The encoding of a table that comes in parts."""
    schema = infer_schema([table])
    learner = EncodingLearner(schema, y.shape[1])
    codes, _ = schema.parse(table)
    for rows in parts:
        learner.add(codes[rows], y[rows], None if weight is None else weight[rows])
    return learner.encoding(), codes


def test_effects_beside_the_other_columns():
    table, y, _, effect, slope = mixed()
    column = learned(table, y)[0].schema.column("k")
    assert column.inputs[:3] == ("mean", "mean residual", "slope of x")
    levels = [int(name.removeprefix("level ")) for name in column.categories]
    values = np.array(column.values)
    for j, truth, least in ((0, effect, 0.9), (1, effect, 0.97), (2, slope, 0.97)):
        assert np.corrcoef(values[:, j], truth[levels])[0, 1] > least
    assert_allclose(values[:, 2].std(), slope.std(), rtol=0.15)


def test_effects_are_computed_without_the_fold():
    table, y, index, *_ = mixed()
    two = table.fillna({"z": 0.0}).assign(
        k2=[f"other {i}" for i in (index * 7 + np.arange(2000) % 2) % 45]
    )
    changed = y.copy()
    changed[17] += 1.0
    fold = fold_numbers(0, len(y)) == fold_numbers(17, 1)
    before, after = (
        encoding.encode(codes) for encoding, codes in (learned(two, v) for v in (y, changed))
    )
    assert_array_equal(before[fold], after[fold])
    assert np.all(np.any(before[~fold] != after[~fold], axis=1))


def test_slopes_are_shrunken_least_squares_slopes():
    table, y, index, *_ = mixed(300, 6)
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 2, 300)
    X, folds = table[["x"]].to_numpy(), fold_numbers(0, 300)
    other = OtherInputs(("x",), X, y, w, folds)
    found = level_effects(other, {0: (index, 6)})[0]
    Z, kept = other.Z[:, 0], folds != 4
    F = np.column_stack(
        [np.ones(300), Z, *(np.abs(Z - q) for q in np.quantile(Z, np.arange(1, 6) / 6))]
    )
    root = np.sqrt(w[kept])[:, None]
    ridge = np.sqrt(np.diag([1e-9, *np.ones(6)]))
    center = np.average(y[kept, 0], weights=w[kept])
    both = (
        np.vstack([root * F[kept], ridge]),
        np.r_[root[:, 0] * (y[kept, 0] - center), np.zeros(7)],
    )
    r = y[:, 0] - center - F @ np.linalg.lstsq(*both)[0]
    own, size, scatter = np.zeros(6), np.zeros(6), 0.0
    for level in range(6):
        rows = kept & (index == level)
        slope, constant = np.polyfit(Z[rows], r[rows], 1, w=np.sqrt(w[rows]))
        own[level] = slope
        size[level] = np.sum(w[rows] * (Z[rows] - np.average(Z[rows], weights=w[rows])) ** 2)
        scatter += np.sum(w[rows] * (r[rows] - constant - slope * Z[rows]) ** 2)
    within = scatter / (w[kept].sum() - 12)
    expected = shrunken(size[:, None], own[:, None], np.array([within])).values
    assert_allclose(found.without(4).values[:, 1], expected[:, 0], rtol=1e-6)


def test_blocks_have_the_effects_of_the_whole_table():
    table, y, *_ = mixed()
    parts = [slice(a, a + 300) for a in range(0, 2000, 300)]
    whole, streamed = learned(table, y)[0], learned(table, y, parts=parts)[0]
    assert whole.schema.features == streamed.schema.features
    assert_allclose(streamed.schema.column("k").values, whole.schema.column("k").values)


def test_effects_of_many_rows_are_those_of_a_sample(monkeypatch):
    table, y, *_ = mixed()
    whole = np.array(learned(table, y)[0].schema.column("k").values)
    sample = np.array(learned(table[::4], y[::4])[0].schema.column("k").values)
    monkeypatch.setattr(training_encoding, "EFFECT_ROWS", 600)
    found = np.array(learned(table, y)[0].schema.column("k").values)
    assert_array_equal(found[:, [0, -1]], whole[:, [0, -1]])
    assert_allclose(found[:, 1:-1], sample[:, 1:-1])


@pytest.mark.parametrize(
    ("n_rows", "n_levels", "expected"),
    [
        (4000, 31, CategoryColumn),
        (2000, 31, TargetEncodedColumn),
        (30_000, 101, TargetEncodedColumn),
    ],
)
def test_indicators_require_rows_of_each_level(n_rows, n_levels, expected):
    table = pd.DataFrame({"k": [f"level {i}" for i in np.arange(n_rows) % n_levels]})
    schema = infer_schema([table])
    learner = EncodingLearner(schema, 1)
    learner.add(schema.parse(table)[0], np.arange(n_rows)[:, None] / n_rows, None)
    assert type(learner.encoding().schema.columns[0]) is expected


def test_rows_without_a_target_do_not_count_in_an_encoder():
    index, y, _ = rows()
    table, y = pd.DataFrame({"town": [f"t{i}" for i in index]}), y[:, 0].copy()
    table["x"], absent = y, np.arange(len(y)) % 50 == 0
    y[absent] = np.nan
    found = TableEncoder().fit(table, y).schema_.column("town")
    values = np.array(found.values)
    assert np.isfinite(values).all()
    level = found.categories.index("t1")
    own = y[(table.town == "t1") & ~absent].mean()
    center, reliability = found.unknown[0], values[level, found.inputs.index("reliability")]
    assert found.inputs[0] == "mean"
    assert_allclose(values[level, 0], center + reliability * (own - center), rtol=1e-9)
