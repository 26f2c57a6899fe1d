"""Columns and groups whose labels are numbers, and transformers of columns with an offset."""

import numpy as np
import pandas as pd
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ulmus import inference
from ulmus.exceptions import InputError
from ulmus.noise import Clustered


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, X @ [1.0, 5.0, -3.0] + 0.1 * rng.standard_normal(n)


def test_a_column_labelled_by_a_number_is_meant_by_it():
    X, y = table()
    model = small_ensemble(5, 30).fit(X, y)
    frame = pd.DataFrame(X, columns=[1, 2, 3])
    for label, expected in ((1, 1), (2, 5), (3, -3)):
        slope = model.slope(frame, label)["estimate"].item()
        assert_allclose(slope, expected, atol=0.5)
    with pytest.raises(InputError, match="labels of the columns are"):
        model.slope(frame, 0)
    assert_allclose(model.slope(X, 0)["estimate"], model.slope(frame, 1)["estimate"])
    assert_allclose(model.slope(X, -1)["estimate"], model.slope(frame, 3)["estimate"])


def test_groups_of_the_number_and_of_its_text_are_two():
    X, y = table()
    model = small_ensemble(5, 30).fit(X, y)
    by = np.array([1, "1", "a"] * 40, dtype=object)
    by[::3] = 1
    assert list(model.average(X, by=by)["by"]) == [1, "1", "a"]


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_slopes_behind_transformers_do_not_depend_on_an_offset(dtype):
    X, y = table()
    X = X.astype(dtype)
    slopes = []
    for offset in (0.0, 4096.0 if dtype is np.float32 else 5e6):
        bend = FunctionTransformer(lambda Z, o=offset: np.sin(6 * (np.asarray(Z) - o)))
        model = make_pipeline(bend, small_ensemble(5, 30)).fit((X + dtype(offset)), y)
        slopes.append(inference(model).slope(X + dtype(offset), 1, by="row")["estimate"])
    assert_allclose(slopes[0], slopes[1], atol=2e-3 if dtype is float else 0.5)


def test_two_factors_of_groups_are_refused():
    with pytest.raises(InputError, match="only Clustered"):
        Clustered() * Clustered()


def test_points_that_repeat_have_a_joint_covariance():
    X, y = table()
    for parameters in ({}, {"activation": "identity"}):
        model = small_ensemble(5, 30, **parameters).fit(X, y)
        covariance = model.predict_cov(np.repeat(X[:1], 50, axis=0))
        assert np.all(np.isfinite(covariance))


def test_draws_do_not_depend_on_units():
    X, y = table()
    draws = [
        small_ensemble(5, 30).fit(X, unit * y).simulate(X[:20], 5, random_state=0) / unit
        for unit in (1.0, 1000.0)
    ]
    assert_allclose(*draws, rtol=1e-5, atol=1e-7)
