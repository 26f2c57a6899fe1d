"""Tables in blocks of rows, and what two fits must agree in."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.variance.estimates import model_variance


def cut(*columns, size=17):
    """Blocks of so many rows; a column of None stays one."""
    n = columns[0].shape[0]
    return [
        tuple(None if c is None else c[start : start + size] for c in columns)
        for start in range(0, n, size)
    ]


def raw_variances(fit, X):
    """Every estimate of a fit as it is, negative ones included, (estimates, p, K)."""
    X = np.asarray(X)
    return np.stack([model_variance(name, fit.parts(X, name)) for name in fit.estimates])


def assert_same_fit(ours, expected, X, rtol=1e-8, same_rank=True):
    """Two fits agree in everything that does not have the length of the table."""
    assert ours.variance_estimates_ == expected.variance_estimates_
    assert ours.n_features_in_ == expected.n_features_in_
    assert_array_equal(ours.hidden_weights_, expected.hidden_weights_)
    if same_rank:
        assert_array_equal(ours.rank_, expected.rank_)
    for name in ("alpha_", "noise_variance_", "dof_"):
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=rtol, err_msg=name)
    mean = expected.predict(X)
    assert_allclose(ours.predict(X), mean, rtol=rtol, atol=rtol * np.std(mean))
    variances = raw_variances(expected.fitted_, X)
    size = np.abs(variances).mean()
    assert_allclose(raw_variances(ours.fitted_, X), variances, rtol=rtol, atol=rtol * size)
    noise = [model.predict_var(X, component="noise") for model in (ours, expected)]
    # A noise variance that varies comes from two more regressions, on residuals of the first.
    constant = expected.fitted_.noise_model is None
    assert_allclose(*noise, rtol=rtol if constant else max(rtol, 1e-7))


def assert_close(ours, expected, rtol=1e-8, **how):
    """Two results agree, whatever library they are of."""
    expected = to_numpy(expected)
    atol = rtol * np.abs(expected).mean()
    assert_allclose(to_numpy(ours), expected, rtol=rtol, atol=atol, **how)


def every_prediction(model, X):
    """Every prediction of a fitted model at points, by name."""
    mean, sd = model.predict(X, return_std=True)
    out = {"mean": mean, "sd": sd, "gaussian": model.predict_interval(X, method="gaussian")}
    for component in ("total", "model", "noise", "weights"):
        out[component] = model.predict_var(X, component=component)
    for estimate in ("NHo", "BR", "NHe", "S1", "S2", "S3"):
        out[estimate] = model.predict_var(X, component="model", estimate=estimate)
    for target in ("expectation", "function") if model.noise == "homoskedastic" else ():
        out[target] = model.predict_interval(X, kind="confidence", target=target)
    return out


def assert_same_predictions(ours, expected, points, X_new, kind):
    """The predictions of two models agree; ours are in the library of its points."""
    for name in ("alpha_", "noise_variance_", "dof_", "rank_"):
        assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-8, err_msg=name)
    theirs = every_prediction(expected, X_new)
    for name, value in every_prediction(ours, points).items():
        assert isinstance(value, kind), name
        assert value.dtype == points.dtype, name
        assert tuple(value.shape) == theirs[name].shape, name
        assert_close(value, theirs[name], err_msg=name)
