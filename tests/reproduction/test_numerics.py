"""The batches behind the paper's experiments against the estimator and textbook algebra."""

from dataclasses import replace

import numpy as np
import pytest
from models import plain_ensemble

from reproduction import STUDIES, Options, selection
from reproduction.members import factorised, output_weights
from reproduction.settings import REPLICATION, TRUTH
from reproduction.simulation import (
    Machine,
    ensemble_groups,
    estimated_variances,
    mean_predictions,
    truth_chunk,
)
from ulmus.core.layer.hidden_layer import UnitDistribution


def fit_with_weights_of(study, draw, X, n_members, alpha, monkeypatch):
    """The library's estimator with the weights of a draw."""
    weights = draw.weights[:n_members]
    members = iter([(each[:-1], each[-1]) for each in weights])
    monkeypatch.setattr(UnitDistribution, "member", lambda *arguments: next(members))
    return plain_ensemble(
        n_members,
        study.n_neurons,
        alpha=alpha,
        fit_intercept=False,
        standardize=False,
        noise_variance="residual",
        hc="HC3",
        variance="all",
        exact=True,
        random_state=0,
    ).fit(X, draw.y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*outside the range")
@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"sine100"}))
def test_batches_equal_the_estimator(paper_miniature, name, monkeypatch):
    # Not the five units in one dimension: the estimator drops directions that these keep.
    study = replace(paper_miniature(name), estimates=("S3", "S2", "NHe", "S1", "BR", "NHo"))
    design, machine = study.design, Machine()
    draws, batches = next(ensemble_groups(study, 0, REPLICATION, range(1), machine))
    for k, variances, predictions in estimated_variances(study, batches, machine):
        for a, alpha in enumerate(study.alphas):
            X = design.inputs[design.train]
            model = fit_with_weights_of(study, draws[0], X, study.members[k], alpha, monkeypatch)
            points = design.inputs
            np.testing.assert_allclose(predictions[0, a], model.predict(points), rtol=1e-8)
            for j, estimate in enumerate(study.estimates):
                expected = model.predict_var(points, component="model", estimate=estimate)
                np.testing.assert_allclose(variances[0, a, j], expected, rtol=1e-7)


@pytest.mark.filterwarnings("ignore:.*outside the range")
@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"sine100"}))
def test_truth_is_of_the_estimator(paper_miniature, name, monkeypatch):
    study = paper_miniature(name)
    design, M = study.design, study.members[-1]
    draws, batches = next(ensemble_groups(study, 0, TRUTH, range(1), Machine()))
    found = mean_predictions(study, batches)[-1]
    for a, alpha in enumerate(study.alphas):
        model = fit_with_weights_of(
            study, draws[0], design.inputs[design.train], M, alpha, monkeypatch
        )
        np.testing.assert_allclose(found[a, 0], model.predict(design.inputs), rtol=1e-7)


def test_short_products_change_no_digit_that_is_printed(paper_miniature):
    study = paper_miniature("heteroskedastic")
    found = []
    for precision in ("float64", "float32"):
        machine = Machine(None, precision)
        _, batches = next(ensemble_groups(study, 0, REPLICATION, range(1), machine))
        found.append(next(estimated_variances(study, batches, machine))[1])
    np.testing.assert_allclose(*found, rtol=2e-5)


def test_torch_gives_the_same_truth(paper_miniature):
    pytest.importorskip("torch")
    study = paper_miniature("friedman")
    host, torch = (truth_chunk(study, 0, range(2), Machine(d)) for d in (None, "cpu"))
    for name in host:
        np.testing.assert_allclose(torch[name], host[name], rtol=1e-7, atol=1e-8)


def test_factorisation_survives_nearly_equal_units():
    rng = np.random.default_rng(0)
    H = rng.random((60, 6))
    H[:, 5] = H[:, 4] + 1e-8 * rng.random(60)
    Q = H @ factorised(H[None], 0.0).T[0]
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-6)


@pytest.mark.parametrize("gap", [1.0, 1e-4, 1e-8])
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_output_weights_of_nearly_equal_units(gap, alpha):
    rng = np.random.default_rng(0)
    H, y = rng.random((3, 60, 6)), rng.random((3, 60))
    H[1, :, 5] = H[1, :, 4] + gap * rng.random(60)
    beta = output_weights(H, y, alpha, H.mT @ H)
    for m in range(3):
        stacked = np.vstack([H[m], np.sqrt(alpha) * np.eye(6)])
        expected = np.linalg.lstsq(stacked, np.append(y[m], np.zeros(6)), rcond=None)[0]
        np.testing.assert_allclose(H[m] @ beta[m], H[m] @ expected, atol=1e-8)


def test_ridge_from_the_same_factorisation():
    H = np.random.default_rng(0).random((40, 5))
    members = factorised(H[None], 0.0).smoothed(0.1)
    Q = H @ members.T[0]
    P = H @ np.linalg.solve(H.T @ H + 0.1 * np.eye(5), H.T)
    np.testing.assert_allclose(Q @ Q.T, P, atol=1e-10)
    np.testing.assert_allclose(members.gram[0], Q.T @ Q, atol=1e-10)


def test_members_are_prefixes_and_chunks_do_not_matter(paper_miniature):
    study = paper_miniature("sine60")
    whole = truth_chunk(study, 0, range(20), Machine())
    parts = [truth_chunk(study, 0, span, Machine()) for span in (range(7), range(7, 20))]
    np.testing.assert_allclose(whole["sums"], parts[0]["sums"] + parts[1]["sums"])
    fewer = truth_chunk(replace(study, members=(5,), figure_members=5), 0, range(20), Machine())
    np.testing.assert_allclose(fewer["sums"][:, 0], whole["sums"][:, 0])


def test_nested_sizes_equal_separate_fits():
    rng = np.random.default_rng(0)
    H, y, h = rng.random((30, 5)), rng.random(30), rng.random((4, 5))
    nested = selection.nested_predictions(H, y, h)
    for size in range(1, 6):
        beta = np.linalg.lstsq(H[:, :size], y, rcond=None)[0]
        np.testing.assert_allclose(nested[size - 1], h[:, :size] @ beta, rtol=1e-9)


def test_gcv_equals_the_textbook():
    rng = np.random.default_rng(0)
    H, y, alphas = rng.random((30, 5)), rng.random(30), np.array([1e-3, 0.1, 10.0])
    squared, unsquared = selection.gcv(H, y, alphas)
    for a, alpha in enumerate(alphas):
        residual_maker = np.eye(30) - H @ np.linalg.inv(H.T @ H + alpha * np.eye(5)) @ H.T
        norm, trace = np.linalg.norm(residual_maker @ y), np.trace(residual_maker)
        np.testing.assert_allclose(squared[a], 30 * norm**2 / trace**2, rtol=1e-9)
        np.testing.assert_allclose(unsquared[a], 30 * norm / trace**2, rtol=1e-9)


def test_selection_finds_neurons_and_ridge_near_the_paper():
    options = Options(replications=20)
    (sine,) = selection.search_choices(selection.SEARCHES[0], options)
    assert 3 <= sine.median <= 7
    squared, unsquared = selection.search_choices(selection.SEARCHES[4], options)
    # The paper's 6e-6 comes from the norm of the residuals, not from its square.
    assert squared.median < 2e-6 < unsquared.median < 2e-5
