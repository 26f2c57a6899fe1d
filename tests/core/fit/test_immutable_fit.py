"""What a fit stores, prints and computes does not depend on what was computed before."""

import dataclasses
import warnings
from dataclasses import replace

import numpy as np
import pytest
from core_fits import blocks_of, joined
from models import interaction_table
from numpy.testing import assert_array_equal

from ulmus import ELMEnsembleRegressor
from ulmus.core.ensemble.regression import RegressionSpec
from ulmus.core.fit.build import build, update
from ulmus.core.fit.spec import FitSpec
from ulmus.diagnostics import fit_summary
from ulmus.exceptions import DegenerateFitWarning
from ulmus.model_file.serialisation import from_arrays, to_arrays


def learned(**parameters):
    return ELMEnsembleRegressor(
        **{"n_estimators": 3, "n_neurons": 40, "random_state": 0} | parameters
    )


def use_all(model, points):
    """Every computation whose result a fit may store."""
    model.predict_interval(points, method="cv+")
    model.predict_interval(points, kind="confidence")
    model.predict(points, return_std=True)
    assert np.isfinite(model.undersmoothing_gap_)
    model.check()
    model.summary()


# Below and above the number of rows for which refits enter the error bars.
@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 450])
@pytest.mark.parametrize("rows", [True, False])
def test_a_model_file_has_the_same_arrays_whatever_was_computed_before(n, rows):
    X, y, points = interaction_table(n, 4, sd=0.3, n_points=12)
    fresh, used = learned().fit(X, y), learned().fit(X, y)
    use_all(used, points)
    if not rows:
        fresh.compress()
        used.compress()
    (before, text), (after, other_text) = (to_arrays(m.fitted_) for m in (fresh, used))
    assert list(before) == list(after)
    assert text == other_text
    for name, array in before.items():
        assert_array_equal(after[name], array, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 450])
def test_cv_plus_is_the_same_after_a_round_trip_by_arrays(n):
    X, y, points = interaction_table(n, 4, sd=0.3, n_points=12)
    model = learned().fit(X, y)
    twin = learned().fit(X, y)
    twin.fitted_ = from_arrays(*to_arrays(twin.fitted_))
    expected = model.predict_interval(points, 0.9, method="cv+")
    assert_array_equal(twin.predict_interval(points, 0.9, method="cv+"), expected)
    again = from_arrays(*to_arrays(twin.fitted_))
    assert list(to_arrays(again)[0]) == list(to_arrays(twin.fitted_)[0])


def test_a_summary_in_a_notebook_does_not_depend_on_what_was_computed_before():
    X, y, points = interaction_table(60, 4, sd=0.3, n_points=12)
    model = learned().fit(X, y)

    def brief(fit):
        return fit_summary(fit, "Model", list("abcd"), brief=True)._repr_html_()

    before = brief(model.fitted_)
    use_all(model, points)
    assert brief(model.fitted_) == before
    assert brief(model.fitted_.with_refits()) != before


@pytest.mark.slow
def test_refits_are_a_value_that_a_fit_may_store():
    X, y, points = interaction_table(60, 4, sd=0.3, n_points=12)
    fit = learned().fit(X, y).fitted_
    assert fit.refits is None
    assert fit.needs_refits
    stored = fit.with_refits()
    assert not stored.needs_refits
    assert stored.with_refits() is stored
    assert len(stored.refits.folds) == len(stored.refits.held_out) == 5
    assert_array_equal(stored.map_variance(points), fit.map_variance(points))
    many = learned().fit(*interaction_table(450, 4, sd=0.3, n_points=12)[:2]).fitted_
    assert many.with_refits() is many
    names = {field.name for field in dataclasses.fields(fit)}
    assert not any(name.startswith("kept_") for name in names)


def test_a_map_without_refits_warns_once():
    # The layer of a fold has the rank of the rows: least squares leaves no residuals.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 4))
    y = np.sin(2 * X[:, 0]) + rng.exponential(size=40) - 1
    how = {"alpha": 0.0, "activation": "erf", "expand_inputs": None, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ELMEnsembleRegressor(**how).fit(X, y)
    with pytest.warns(DegenerateFitWarning, match="exclude the variance due to the optimised map"):
        model.predict(X, return_std=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DegenerateFitWarning)
        model.predict_var(X)


def test_other_errors_of_a_refit_are_not_swallowed(monkeypatch):
    def failing(*_, **__):
        raise ValueError("another cause")

    X, y, points = interaction_table(60, 4, sd=0.3, n_points=12)
    model = learned().fit(X, y)
    monkeypatch.setattr("ulmus.core.fit.refits.fitted_rows", failing)
    with pytest.raises(ValueError, match="another cause"):
        model.predict(points, return_std=True)
    monkeypatch.setattr("ulmus.core.fit.fit.undersmoothing", failing)
    with pytest.raises(ValueError, match="another cause"):
        _ = model.undersmoothing_gap_


def test_one_specification_builds_from_every_source(make_layer):
    X, y, points = interaction_table(90, 4, sd=0.3, n_points=12)
    layer = make_layer(3, 8, 4, constant=True)
    spec = FitSpec(layer, RegressionSpec("gcv", "residual", estimates=("BR",)))
    blocks = blocks_of(X, y, 30)
    rows = joined(blocks)
    once = update(joined(blocks[:2]), spec)
    fits = [build(rows, spec), build(blocks, spec), update(joined(blocks[2:]), spec, once)]
    fits.append(build(rows, replace(spec, dual=True)))
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.mean(points), fits[0].mean(points), rtol=1e-8)
        np.testing.assert_allclose(fit.parts(points).U, fits[0].parts(points).U, rtol=1e-8)
