"""Miniatures of the paper's tables and figures, and the batches behind them."""

import csv
import json
from dataclasses import replace
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest

from ulmus import ELMEnsembleRegressor, datasets
from ulmus.experiments import (
    FIGURES,
    STUDIES,
    TABLES,
    Options,
    figures,
    published,
    records,
    selection,
    simulated,
    tables,
)
from ulmus.experiments.measures import error_measures, fit_measures
from ulmus.experiments.members import factorised, output_weights
from ulmus.experiments.settings import REPLICATION
from ulmus.experiments.simulation import Machine, _estimates, _groups, truth_chunk

# Few test points and small ensembles; the settings are otherwise the paper's.
MINIATURES = {
    "sine60": {"members": (5, 10), "n_test": 100},
    "sine100": {"members": (5, 10), "n_test": 100},
    "friedman": {"members": (5, 10), "n_test": 60},
    "heteroskedastic": {"members": (5,), "n_test": 60},
    "wide": {"n_test": 60},
}
SIZES = {"sine60": (60, 400), "sine100": (60, 400)}


def miniature(name):
    return replace(STUDIES[name], **MINIATURES[name])


@pytest.fixture(scope="module")
def results():
    """All studies in miniature, simulated once."""
    found = {}
    for name in STUDIES:
        replications, ensembles = SIZES.get(name, (8, 60))
        options = Options(replications, ensembles, seed=3)
        found[name] = simulated(miniature(name), options)
    return found


def means(found):
    return {(r.setting, r.n_estimators, r.split, r.measure, r.estimate): r.mean for r in found}


def fitted(study, draw, X, n_members, alpha, monkeypatch):
    """The library's estimator with the weights of a draw."""
    weights = draw.weights[:n_members]
    monkeypatch.setattr(
        "ulmus.estimators._fitting.drawn_layer",
        lambda *args, **kwargs: (weights[:, :-1, :], weights[:, -1, :]),
    )
    return ELMEnsembleRegressor(
        n_members,
        study.n_neurons,
        alpha=alpha,
        fit_intercept=False,
        standardize=False,
        noise_variance="residual",
        hc="HC3",
        variance="all",
        random_state=0,
    ).fit(X, draw.y)


@pytest.mark.filterwarnings("ignore:.*outside the range")
@pytest.mark.parametrize("name", sorted(STUDIES.keys() - {"sine100"}))
def test_batches_equal_the_estimator(name, monkeypatch):
    # Not the five units in one dimension: the estimator drops directions that these keep.
    study = replace(miniature(name), estimates=("S3", "S2", "NHe", "S1", "BR", "NHo"))
    design, machine = study.design(0), Machine()
    draws, batches = next(_groups(study, design, 0, REPLICATION, range(1), machine))
    for k, variances, predictions in _estimates(study, batches, machine):
        for a, alpha in enumerate(study.alphas):
            X = design.inputs[design.train]
            model = fitted(study, draws[0], X, study.members[k], alpha, monkeypatch)
            points = design.inputs
            np.testing.assert_allclose(predictions[0, a], model.predict(points), rtol=1e-8)
            for j, estimate in enumerate(study.estimates):
                expected = model.predict_var(points, component="model", estimate=estimate)
                np.testing.assert_allclose(variances[0, a, j], expected, rtol=1e-8)


def test_short_products_change_no_digit_that_is_printed():
    study = miniature("heteroskedastic")
    design, found = study.design(0), []
    for precision in ("float64", "float32"):
        machine = Machine(None, precision)
        _, batches = next(_groups(study, design, 0, REPLICATION, range(1), machine))
        found.append(next(_estimates(study, batches, machine))[1])
    np.testing.assert_allclose(*found, rtol=2e-5)


def test_torch_gives_the_same_truth():
    pytest.importorskip("torch")
    study = miniature("friedman")
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


def test_members_are_prefixes_and_chunks_do_not_matter():
    study = miniature("sine60")
    whole = truth_chunk(study, 0, range(20), Machine())
    parts = [truth_chunk(study, 0, span, Machine()) for span in (range(7), range(7, 20))]
    np.testing.assert_allclose(whole["sums"], parts[0]["sums"] + parts[1]["sums"])
    fewer = truth_chunk(replace(study, members=(5,), figure_members=5), 0, range(20), Machine())
    np.testing.assert_allclose(fewer["sums"][:, 0], whole["sums"][:, 0])


def test_published_numbers_are_complete():
    file = resources.files("ulmus.experiments") / "published.csv"
    rows = list(csv.DictReader(file.read_text().splitlines()))
    counts = {name: sum(row["table"] == name for row in rows) for name in TABLES}
    assert counts == {"table1": 112, "table2": 112, "table3": 128, "table4": 24}
    assert len(published()) == len(rows)
    assert published()["table2", "plain", "5", "train", "re", "BR"] == (0.070, 0.032)
    assert published()["table3", "heteroskedastic", "100", "test", "se", "truth"] == (0.261, None)


def test_every_published_number_has_a_record(results):
    full = {
        key
        for name, columns in TABLES.items()
        for column in columns
        for key in full_keys(name, column)
    }
    assert full == set(published())
    for name in TABLES:
        found = records(name, results)
        assert all(r.paper_mean is not None for r in found)
        assert all((r.sd is None) == (r.estimate == "truth") for r in found)


def full_keys(name, column):
    estimates = column.estimates or STUDIES[column.study].estimates
    for M in column.members:
        for split in ("train", "test"):
            yield name, column.setting, str(M), split, "se", "truth"
            for measure in column.measures:
                of = estimates[:1] if "mse" in measure else estimates
                yield from ((name, column.setting, str(M), split, measure, e) for e in of)


def test_table1_homoskedastic_estimate_is_better(results):
    mean = means(records("table1", results))
    for M in (5, 10):
        for split in ("train", "test"):
            for setting in ("n=60", "n=100"):
                row = (setting, M, split)
                assert mean[*row, "re", "BR"] < mean[*row, "re", "S3"]
                assert mean[*row, "se", "BR"] == pytest.approx(mean[*row, "se", "truth"], rel=0.2)
            assert mean["n=100", M, split, "se", "BR"] < mean["n=60", M, split, "se", "BR"]


def test_table2_bias_reduction_helps(results):
    mean = means(records("table2", results))
    for setting in ("plain", "ridge"):
        for split in ("train", "test"):
            for measure in ("se", "e", "re"):
                gain = [
                    mean[setting, M, split, measure, "NHo"] - mean[setting, M, split, measure, "BR"]
                    for M in (5, 10)
                ]
                assert gain[0] > gain[1] > 0
            assert mean[setting, 5, split, "se", "truth"] > mean[setting, 10, split, "se", "truth"]
    assert mean["ridge", 5, "train", "se", "truth"] < mean["plain", 5, "train", "se", "truth"]


def test_table3_ranks_the_estimates_as_the_paper(results):
    mean = means(records("table3", results))
    for split in ("train", "test"):
        re = {
            e: mean["heteroskedastic", 5, split, "re", e] for e in ("S3", "S2", "NHe", "S1", "BR")
        }
        ranking = ("S2", "NHe", "BR", "S1")
        assert all(re[better] < re[worse] for better, worse in pairwise(ranking))
        assert re["S3"] == pytest.approx(re["S2"], rel=0.05)


def test_table4_undersmoothing_helps_the_estimate(results):
    mean = means(records("table4", results))
    for split in ("train", "test"):
        assert mean["N=300", 5, split, "re", "BR"] < mean["N=91", 5, split, "re", "BR"] + 0.02
        assert mean["N=300", 5, split, "se", "truth"] > mean["N=91", 5, split, "se", "truth"]
    assert mean["N=300", 5, "train", "mse", "BR"] < mean["N=91", 5, "train", "mse", "BR"]
    assert mean["N=91", 5, "test", "mse", "BR"] == pytest.approx(0.679, rel=0.35)
    assert mean["N=91", 5, "test", "relative_mse", "BR"] == pytest.approx(0.028, rel=0.3)


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name, results, tmp_path):
    pytest.importorskip("matplotlib")
    png, svg = figures.write_figure(name, results, tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_figure_3_and_4_show_the_bias(results):
    wide = abs(figures.standardised_errors(results["wide"]).mean())
    assert wide < abs(figures.standardised_errors(results["friedman"]).mean())
    centre = STUDIES["friedman"].centre
    low, high = (figures.coverage(results[n], None)[centre] for n in ("friedman", "wide"))
    assert low < high <= 1


def test_measures():
    sd, truth = np.array([[1.0, 2.0, 4.0]]), np.array([2.0, 2.0, 1.0])
    np.testing.assert_allclose(error_measures(sd, truth), [[2.0, 1.0, 0.5]])
    y = np.array([0.0, 2.0])
    np.testing.assert_allclose(fit_measures(y, np.array([1.0, 1.0])), [1.0, 1.0])


def test_difference_in_standard_errors():
    record = tables.Record("t", "s", 5, "train", "se", "BR", 0.30, 0.1, 0.29, 0.1)
    error = tables.monte_carlo_errors(record, Options(replications=1000))
    assert error == pytest.approx(0.01 / np.sqrt(2e-5 + tables.ROUNDING**2))
    assert tables.monte_carlo_errors(record._replace(paper_mean=None), Options()) is None


def test_an_interrupted_run_continues(tmp_path, monkeypatch):
    study = miniature("sine60")
    options = Options(30, 250, output=tmp_path)
    whole = simulated(study, options)
    files = sorted((tmp_path / "chunks").glob("*.npz"))
    assert len(files) == 5 + 3
    files[0].unlink()
    files[-1].write_bytes(b"cut off")
    calls = []

    def counted(function):
        def call(*args, **kwargs):
            calls.append(kwargs["span"])
            return function(*args, **kwargs)

        return call

    for name in ("truth_chunk", "replication_chunk"):
        function = getattr(__import__("ulmus.experiments.runs", fromlist=[name]), name)
        monkeypatch.setattr(f"ulmus.experiments.runs.{name}", counted(function))
    again = simulated(study, options)
    assert len(calls) == 2
    np.testing.assert_array_equal(again.errors, whole.errors)
    # More replications keep the finished ones; another seed keeps nothing.
    calls.clear()
    simulated(study, replace(options, replications=40))
    assert calls == [range(30, 40)]
    calls.clear()
    simulated(study, replace(options, seed=1))
    assert len(calls) == 8


def test_processes_give_the_same_numbers():
    study = miniature("sine60")
    one, two = (simulated(study, Options(20, 200, jobs=jobs)) for jobs in (1, 2))
    np.testing.assert_allclose(two.errors, one.errors, rtol=1e-6)


@pytest.mark.parametrize(
    ("parameter", "value"), [("replications", 1), ("jobs", 0), ("precision", "half")]
)
def test_bad_options(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        Options(**{parameter: value})


def test_nested_sizes_equal_separate_fits():
    study = STUDIES["sine60"]
    design = study.design(0)
    rng = np.random.default_rng(0)
    H = selection._features(design, 4, rng)
    small = selection._features(design, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(H[:, :2], small)
    scores = selection.cv_scores(study, design, 6, rng)
    assert scores.shape == (1, 6)
    assert scores[0, 3] < scores[0, 0]


def test_selection_finds_neurons_and_ridge_near_the_paper():
    options = Options(replications=20)
    (sine,) = selection.search_choices(selection.SEARCHES[0], options)
    assert 3 <= sine.median <= 7
    squared, unsquared = selection.search_choices(selection.SEARCHES[4], options)
    # The paper's 6e-6 comes from the norm of the residuals, not from its square.
    assert squared.median < 2e-6 < unsquared.median < 2e-5


def test_datasets():
    data = datasets.make_sine(4000, random_state=0)
    assert data.X.shape == (4000, 1)
    # The mean of the trapezoidal density is 5 pi / 6.
    assert data.X.mean() == pytest.approx(5 * np.pi / 6, rel=0.03)
    assert np.var(data.y - data.f) == pytest.approx(0.1, rel=0.05)
    assert np.abs(data.y - data.f).max() < np.sqrt(0.3)
    data = datasets.make_friedman(4000, heteroskedastic=True, random_state=0)
    error = (data.y - data.f) / np.sqrt(data.noise_variance)
    assert np.var(error) == pytest.approx(1, rel=0.07)
    assert data.noise_variance.min() >= 0.5
    same = datasets.make_friedman(4000, heteroskedastic=True, random_state=0)
    np.testing.assert_array_equal(same.y, data.y)


def test_records_as_files(results, tmp_path):
    found = records("table4", results)
    tables.write_json(found, tmp_path / "t.json")
    tables.write_csv(found, tmp_path / "t.csv")
    loaded = json.loads((tmp_path / "t.json").read_text())
    assert [tables.Record(**row) for row in loaded] == found
    assert len((tmp_path / "t.csv").read_text().splitlines()) == len(found) + 1
