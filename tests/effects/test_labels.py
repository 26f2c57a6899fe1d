"""Columns and groups whose labels are numbers, and transformers of columns with an offset."""

import json
import operator
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from models import small_ensemble
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ulmus import inference
from ulmus.exceptions import InputError
from ulmus.noise import AR1, Clustered, Conley, CorrelatedNoise, Exponential, Matern, NeweyWest


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


def test_a_list_of_numbers_and_texts_has_one_label_for_each_row():
    """Its texts were taken as names of columns."""
    X, y = table()
    model = small_ensemble(3, 10).fit(X, y)
    labels = np.empty(len(X), dtype=object)
    labels[:] = [1, "1"] * (len(X) // 2)
    expected, found = model.average(X, by=labels), model.average(X, by=list(labels))
    assert list(found["by"]) == list(expected["by"]) == [1, "1"]
    assert_allclose(found["estimate"], expected["estimate"])


def test_slopes_behind_a_transformer_that_returns_single_precision():
    """Differences of numbers with seven digits at a step of 1e-5 have an error of percents."""
    X, y = table()
    slopes = []
    for dtype in (np.float64, np.float32):
        wave = FunctionTransformer(lambda Z, t=dtype: np.sin(np.asarray(Z)).astype(t))
        model = make_pipeline(wave, small_ensemble(5, 30, alpha=1e-3)).fit(X, y)
        slopes.append(inference(model).slope(X, 1, by="row")["estimate"])
    assert_allclose(*slopes, atol=2e-3)


def test_two_factors_of_groups_are_refused():
    with pytest.raises(InputError, match="only Clustered"):
        Clustered() * Clustered()


NOISES = [
    AR1(),
    Exponential(),
    Matern(),
    NeweyWest(),
    Conley(cutoff=1.0),
    Clustered(),
    AR1() * Clustered(),
    NeweyWest() * Clustered(),
    AR1() + Exponential(),
]


@pytest.mark.parametrize("first", NOISES, ids=repr)
@pytest.mark.parametrize("second", NOISES, ids=repr)
@pytest.mark.parametrize("combined", [operator.add, operator.mul])
def test_every_sum_and_product_of_noises_is_one_or_is_refused(first, second, combined):
    try:
        noise = combined(first, second)
    except InputError:
        return
    assert isinstance(noise, CorrelatedNoise)
    if combined is operator.mul:
        assert noise == second * first


def test_points_that_repeat_have_a_joint_covariance():
    X, y = table()
    for parameters in ({}, {"activation": "identity"}):
        model = small_ensemble(5, 30, **parameters).fit(X, y)
        covariance = model.predict_cov(np.repeat(X[:1], 50, axis=0))
        assert np.all(np.isfinite(covariance))


def test_draws_do_not_depend_on_the_order_of_the_rows():
    X, y = table()
    order = np.random.default_rng(1).permutation(len(X))
    for of in ("mean", "observation"):
        draws = [
            small_ensemble(5, 30).fit(*rows).simulate(X[:20], 5, of=of, random_state=0)
            for rows in ((X, y), (X[order], y[order]))
        ]
        assert_allclose(*draws, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
def test_draws_do_not_depend_on_the_number_of_threads():
    code = (
        "import numpy as np\n"
        "from ulmus import ELMEnsembleRegressor\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.uniform(size=(80, 3))\n"
        "y = X @ [1.0, 10.0, 100.0] + 0.1 * rng.standard_normal(80)\n"
        "points = np.repeat(X[:50], 2, axis=0)\n"
        "model = ELMEnsembleRegressor(4, 30, input_map=None, random_state=0).fit(X, y)\n"
        "print(model.simulate(points, 5, random_state=0).tolist())"
    )
    draws = []
    for threads in ("1", "2"):
        environment = os.environ | dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads
        )
        command = [sys.executable, "-c", code]
        output = subprocess.run(command, capture_output=True, text=True, env=environment)
        draws.append(json.loads(output.stdout))
    assert_allclose(*draws, rtol=1e-6)


def test_draws_do_not_depend_on_units():
    X, y = table()
    draws = [
        small_ensemble(5, 30).fit(X, unit * y).simulate(X[:20], 5, random_state=0) / unit
        for unit in (1.0, 1000.0)
    ]
    assert_allclose(*draws, rtol=1e-5, atol=1e-7)
