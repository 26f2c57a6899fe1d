"""The tables, the groups of rows and the best predictions of the benchmark of mixed tables."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def imported(name):
    """A module of the benchmarks, with their folder on the path only while it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module(name)


data, models = imported("mixed_data"), imported("mixed_models")


def test_rare_rows_have_a_level_of_few_training_rows_but_are_not_missing():
    train = pd.DataFrame({"kind": ["a"] * 9 + ["b"], "id": [f"n{i}" for i in range(10)]})
    test = pd.DataFrame({"kind": ["a", "b", "c", None], "id": ["n0", "n1", "n2", "x"]})
    assert list(data.rare_rows(train, test, 1)) == [False, True, True, False]


def test_kinds_and_missing_cells_are_counted():
    X = pd.DataFrame({"t": pd.to_datetime(["2001-01-01", None]), "a": [1.0, 2], "k": ["x", "y"]})
    assert data.kinds(X) == {"numbers": ["a"], "categories": ["k"], "dates": ["t"]}
    assert data.description(X) == ("2", "1", "1", "1", "2", "16.7%", "50%")


@pytest.mark.parametrize("zipf", [False, True])
def test_best_predictions_of_frequent_levels_err_by_the_noise(zipf):
    simulated = data.simulated_levels(20, zipf, 0)
    rmse = np.sqrt(np.mean((simulated.test.y - simulated.best) ** 2))
    assert 0.47 < rmse < 0.53  # the noise has a standard deviation of .5
    assert rmse < 0.5 * np.std(simulated.test.y)


def test_boosting_accepts_more_levels_than_its_largest_number_and_new_ones():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 400, 900)
    X = pd.DataFrame({"level": [f"l{i}" for i in level], "a": rng.normal(size=900)})
    X.loc[::9, "a"] = np.nan
    train = data.Table(X, (level % 2).astype(float))
    test = pd.DataFrame({"level": ["l1", "new", None], "a": [0.0, np.nan, 1.0]})
    assert np.all(np.isfinite(models.boosting(train, test, 0).mean))


def test_seasonal_features_depend_on_the_step():
    months = pd.DataFrame({"date": pd.date_range("2001-01-01", periods=40, freq="MS")})
    hours = pd.DataFrame({"date": pd.date_range("2001-01-01", periods=40, freq="h")})
    assert data.seasonal_features(months).shape == (40, 5)
    assert data.seasonal_features(hours).shape == (40, 16)


def test_scores_count_covered_rows_by_group():
    def half(train, X, seed):
        ends = np.column_stack([np.zeros(len(X)), np.arange(len(X)) % 2])
        return models.Forecast(np.ones(len(X)), ends)

    table = data.Table(pd.DataFrame({"a": np.arange(4.0)}), np.ones(4))
    groups = {"missing": np.array([True, True, True, False])}
    found = models.scores(half, table, table, groups, 0)
    assert found["rmse"] == 0
    assert found["all"] == [4, 2]
    assert found["missing"] == [3, 1]
    assert "rare" not in found


def test_a_model_that_fails_leaves_its_message():
    def fails(train, X, seed):
        raise ValueError("no")

    table = data.Table(pd.DataFrame({"a": np.arange(4.0)}), np.ones(4))
    assert models.scores(fails, table, table, {}, 0) == {"error": "ValueError: no"}
