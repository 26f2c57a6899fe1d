"""Clearly correlated errors raise a warning if they are treated as independent, and no others.

The limits come from 1200 fits of independent rows (30 to 400 rows; one and four inputs; normal,
skewed, heavy-tailed and varying noise; in any order and sorted by an input): no score exceeded 2.7.
"""

import warnings

import numpy as np
import pytest
from messages import mentions
from models import autocorrelated_table, plain_ensemble, plain_member

from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import CorrelatedErrorsWarning, DegenerateFitWarning
from ulmus.noise import AR1

pytestmark = pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")


def messages(fit):
    """Messages of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in caught if w.category is CorrelatedErrorsWarning]


@pytest.mark.parametrize("noise", ["auto", "homoskedastic", "heteroskedastic"])
def test_a_series_warns_where_it_is_fitted_and_names_a_suggestion(noise):
    X, y = autocorrelated_table(300, 0.7, sd=0.4)
    model = ELMEnsembleRegressor(4, 20, input_map=None, noise=noise, random_state=0)
    words = ("successive rows", f"noise={noise!r}", "noise=AR1() of ulmus.noise", "sorted by")
    with pytest.warns(CorrelatedErrorsWarning, match=mentions(*words)) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.predict(X).shape == (300,)


def test_the_suggestion_is_quiet():
    X, y = autocorrelated_table(300, 0.7, sd=0.4)
    plain_ensemble(4, 20, noise=AR1(), random_state=0).fit(X, y)
    plain_ensemble(4, 20, random_state=0).fit(X[::10], y[::10])


def test_streams_keep_no_residuals_to_test():
    X, y = autocorrelated_table(300, 0.7, sd=0.4)
    plain_ensemble(4, 20, random_state=0).fit_blocks([(X[:100], y[:100]), (X[100:], y[100:])])
    plain_ensemble(4, 20, random_state=0).partial_fit(X, y)


def test_one_network_and_the_worst_of_several_outputs():
    X, y = autocorrelated_table(300, 0.7, sd=0.4)
    both = np.stack([np.random.default_rng(1).standard_normal(300), y], axis=1)
    (alone,) = messages(lambda: plain_member(20, weight_scale=3.0, random_state=0).fit(X, y))
    (several,) = messages(lambda: plain_member(20, weight_scale=3.0, random_state=0).fit(X, both))
    assert alone[:70] == several[:70]


def test_rows_of_weight_zero_do_not_come_between():
    X, y = autocorrelated_table(300, 0.7, sd=0.4)
    rng = np.random.default_rng(0)
    wide, outputs = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    weight = np.tile([1.0, 0.0], 300)
    outputs[1::2] = rng.standard_normal(300)
    model = plain_ensemble(4, 20, random_state=0)
    (with_zeros,) = messages(lambda: model.fit(wide, outputs, weight))
    (without,) = messages(lambda: model.fit(X, y))
    assert with_zeros[:80] == without[:80]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["drawn", "sorted"])
def test_independent_rows_are_quiet(order):
    draws = {
        "normal": lambda rng, x: rng.standard_normal(len(x)),
        "heavy tails": lambda rng, x: rng.standard_t(3, len(x)),
        "varying": lambda rng, x: (0.2 + 2 * np.abs(x)) * rng.standard_normal(len(x)),
        "skewed": lambda rng, x: rng.exponential(1, len(x)) - 1,
    }
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (20 + 6 * seed, 1 + seed % 3))
        X = X[np.argsort(X[:, 0])] if order == "sorted" else X
        e = list(draws.values())[seed % 4](rng, X[:, 0])
        model = ELMEnsembleRegressor(3, 30, input_map=None, random_state=seed)
        assert not messages(lambda m=model, X=X, e=e: m.fit(X, np.sin(3 * X[:, 0]) + 0.3 * e)), seed


def test_a_sorted_table_warns_only_where_its_function_is_not_followed():
    x = np.linspace(-1, 1, 300)
    y = np.sin(8 * x) + 0.2 * np.random.default_rng(0).standard_normal(300)
    followed = plain_ensemble(4, 40, weight_scale=5.0, random_state=0)
    assert not messages(lambda: followed.fit(x[:, None], y))
    (message,) = messages(lambda: plain_ensemble(4, 4, random_state=0).fit(x[:, None], y))
    assert "sorted by an input" in message


def test_few_rows_beside_a_rough_layer_raise_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (24, 2)), rng.standard_normal(24)
    rough = plain_ensemble(3, 40, alpha=1e-9, noise=AR1(), random_state=0)
    with pytest.warns(DegenerateFitWarning, match="only 10 residual degrees of freedom of 24 rows"):
        bounds = rough.fit(X, y).predict_interval(X, kind="confidence")
    assert np.all(np.isfinite(bounds))


def test_several_series_without_groups_warn_about_groups():
    rng = np.random.default_rng(0)
    time, sites = np.tile(np.arange(30.0), 4), np.repeat(range(4), 30)
    X, y = rng.uniform(-1, 1, (120, 1)), rng.standard_normal(120)
    model = plain_ensemble(3, 20, noise=AR1(), random_state=0)
    (message,) = messages(lambda: model.fit(X, y, time=time))
    assert "120 of 120 rows share their time" in message
    assert "give groups" in message
    assert not messages(lambda: model.fit(X, y, time=time, groups=sites))
    some = np.append(np.arange(100.0), np.arange(20.0))  # a few repeated measurements
    assert not messages(lambda: model.fit(X, y, time=some))


def test_functions_without_noise_are_quiet():
    x = np.linspace(-1, 1, 300)[:, None]
    for y in (x[:, 0] ** 2, np.zeros(300), np.exp(x[:, 0]) * 1e120):
        assert not messages(lambda y=y: plain_ensemble(4, 12, random_state=0).fit(x, y))
