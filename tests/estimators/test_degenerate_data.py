"""Fits of degenerate data: interpolation, outputs without noise, constant inputs, few rows."""

import warnings

import numpy as np
import pytest
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose

from ulmus.exceptions import DegenerateFitWarning


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
def test_a_nearly_interpolating_fit_has_finite_error_bars(normal_rows):
    X, y = normal_rows
    model = plain_ensemble(
        5, 150, alpha=1e-8, weight_scale=30.0, noise="heteroskedastic", random_state=0
    ).fit(X[:40], y[:40])
    mean, sd = model.predict(X[:40], return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(sd >= 0)


def test_a_distribution_of_outputs_without_noise(normal_rows):
    X, _ = normal_rows
    distribution = small_ensemble(5, 20).fit(X, np.ones(600)).predict_dist(X[:3])
    assert_allclose(distribution.cdf([0.0, 1.0, 2.0]), [0, 0.5, 1], atol=1e-6)


def test_constant_features_have_a_constant_noise_however_they_come():
    rng = np.random.default_rng(0)
    for n in (5, 10, 20):
        X, y = np.full((n, 1), 3.0), rng.standard_normal(n)
        fits = [small_ensemble(5, 20, noise="heteroskedastic") for _ in range(2)]
        fits[0].fit(X, y)
        fits[1].fit_blocks([(X[:4], y[:4]), (X[4:], y[4:])])
        assert_allclose(*(m.predict_var(X[:1], "noise") for m in fits), rtol=1e-8)


def test_ordinary_fits_raise_no_runtime_warning():
    # Warnings are errors here. Leave-one-out logarithms of small tables can be wild.
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 25))
        X, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateFitWarning)
            small_ensemble(5, 30, noise="heteroskedastic", random_state=seed).fit(X, y)


def test_members_that_agree_need_no_others(normal_rows):
    X, _ = normal_rows
    assert small_ensemble(5, 20).fit(X, np.full(600, 5.0)).suggest_n_estimators(X[:9]) == 2
