"""A fit is one immutable value: it becomes named arrays, and comes back the same."""

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse
from fit_comparison import cut
from interval_methods import every_interval
from models import every_estimate_ensemble
from numpy.testing import assert_array_equal

from ulmus.core.fit.fit import Fit
from ulmus.model_file.serialisation import FIT_CLASSES, from_arrays, to_arrays

LEVELS = [0.5, 0.9]


def by_fit(model, X, y, w):
    return model.fit(X, y, w)


def by_blocks(model, X, y, w):
    return model.fit_blocks(cut(X, y, w))


def compressed(model, X, y, w):
    return model.fit(X, y, w).compress()


def sparse(model, X, y, w):
    return model.fit(scipy.sparse.csr_array(np.where(np.abs(X) > 0.3, X, 0.0)), y, w)


def results(model, X):
    """Everything that a model computes at points."""
    out = {"mean": model.predict(X), "sd": model.predict(X, return_std=True)[1]}
    for estimate in model.variance_estimates_:
        out[estimate] = model.predict_var(X, component="model", estimate=estimate)
    if model.fitted_.rows is not None:
        out |= every_interval(model, X, LEVELS)
        out["quantiles"] = model.predict_quantiles(X, LEVELS)
        out["loo"], out["leverage"] = model.loo_residuals_, model.leverage_
    return out


# Five neurons do not follow the function, which is warned about.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")
@pytest.mark.parametrize("way", [by_fit, by_blocks, compressed, sparse])
@pytest.mark.parametrize("n", [30, 90], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"noise": "heteroskedastic", "hc": "HC3-exact"},
        {"alpha": 0.0, "fit_intercept": False, "n_neurons": 5},
        {"alpha": "loo", "hc": "pooled", "standardize": False},
    ],
    ids=str,
)
def test_a_fit_comes_back_from_its_arrays(make_table, how, n, way):
    X, y, w, X_new = make_table(n)
    Y = np.column_stack([y, X[:, 0] ** 2])
    for outputs in (y, Y):
        model = way(every_estimate_ensemble(**how), X, outputs, w)
        before = results(model, X_new)
        arrays, description = to_arrays(model.fitted_)
        assert all(type(a) is np.ndarray and a.dtype.kind in "fiub" for a in arrays.values())
        text = json.dumps(description, allow_nan=False)
        model.fitted_ = from_arrays(arrays, json.loads(text))
        for name, values in results(model, X_new).items():
            assert_array_equal(values, before[name], err_msg=name)


def test_rows_can_be_added_to_a_fit_that_came_back(make_table):
    X, y, w, X_new = make_table(90)
    model = every_estimate_ensemble(variance="BR").partial_fit(X[:50], y[:50], w[:50])
    copy = every_estimate_ensemble(variance="BR").partial_fit(X[:50], y[:50], w[:50])
    copy.fitted_ = from_arrays(*to_arrays(copy.fitted_))
    for one in (model, copy):
        one.partial_fit(X[50:], y[50:], w[50:])
    assert_array_equal(copy.predict(X_new, return_std=True), model.predict(X_new, return_std=True))


def test_an_array_in_two_places_is_stored_once(make_table):
    X, y, _, _ = make_table(90)
    fit = every_estimate_ensemble(noise="heteroskedastic").fit(X, y).fitted_
    arrays, _ = to_arrays(fit)
    locations = [(a.__array_interface__["data"][0], a.shape) for a in arrays.values() if a.size]
    assert len(set(locations)) == len(locations)
    size = sum(a.nbytes for a in arrays.values())
    M, N, n, noise = 4, 9, 90, 5 * 101**2
    # Three estimates' forms of (MN)^2 / 2, members' maps, those of the noise variance, and some
    # numbers for each row.
    assert size < 8 * (3 * (M * N) ** 2 + 40 * M * N**2 + 40 * M * n + 3 * noise)


def test_torch_arrays_come_back_where_they_were(torch, make_table):
    X, y, _, X_new = make_table(60)
    model = every_estimate_ensemble().fit(torch.asarray(X), torch.asarray(y))
    before = model.predict_var(X_new)
    arrays, description = to_arrays(model.fitted_)
    for reference, kind in (
        (torch.empty(0, dtype=torch.float64), torch.Tensor),
        (None, np.ndarray),
    ):
        model.fitted_ = from_arrays(arrays, description, reference)
        assert isinstance(model.fitted_.ensemble.layer.W, kind)
        np.testing.assert_allclose(model.predict_var(X_new), before, rtol=1e-10)


def test_a_function_cannot_be_stored(make_table):
    X, y, _, _ = make_table(40)
    model = every_estimate_ensemble(activation=np.tanh).fit(X, y)
    with pytest.raises(ValueError, match=r"activation.*ufunc.*activation by name"):
        to_arrays(model.fitted_)


def test_something_else_is_not_a_fit(make_table):
    X, y, _, _ = make_table(40)
    arrays, description = to_arrays(every_estimate_ensemble().fit(X, y).fitted_)
    with pytest.raises(ValueError, match="Ensemble, not of a fit"):
        from_arrays(arrays, description["fields"]["ensemble"])


@pytest.mark.parametrize("name", sorted(FIT_CLASSES))
def test_a_value_cannot_be_changed(name):
    # Moments and the sums that grow in a pass are finished before they enter a fit.
    if name not in ("Moments", "PairGram", "SampledPairs"):
        assert FIT_CLASSES[name].__dataclass_params__.frozen


def test_no_inference_changes_a_fit(make_table):
    X, y, w, X_new = make_table(60)
    model = every_estimate_ensemble(noise="heteroskedastic").fit(X, y, w)
    before, _ = to_arrays(model.fitted_)
    kept = {name: array.copy() for name, array in before.items()}
    fit = model.fitted_
    results(model, X_new)
    model.summary_frame(X_new)
    assert model.fitted_ is fit
    after, _ = to_arrays(fit)
    for name, array in after.items():
        assert_array_equal(array, kept[name], err_msg=name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.estimates = ()
    assert isinstance(fit, Fit)
