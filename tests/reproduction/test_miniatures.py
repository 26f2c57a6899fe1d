"""Miniatures of the paper's tables and figures: rankings, records, files and interrupted runs."""

import csv
import json
from dataclasses import replace
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest

import reproduction
from reproduction import (
    FIGURES,
    STUDIES,
    TABLES,
    Options,
    figures,
    published,
    records,
    simulated,
    tables,
)
from reproduction.measures import error_measures, fit_measures
from ulmus import datasets

pytestmark = pytest.mark.slow  # all tests share the simulated studies

# Replications and ensembles of the miniatures, where not a few of each.
SIZES = {"sine60": (60, 400), "sine100": (60, 400), "heteroskedastic": (20, 400)}


@pytest.fixture(scope="module")
def results(paper_miniature):
    """All studies in miniature, simulated once."""
    found = {}
    for name in STUDIES:
        replications, ensembles = SIZES.get(name, (8, 60))
        options = Options(replications, ensembles, seed=3)
        found[name] = simulated(paper_miniature(name), options)
    return found


def means(found):
    return {(r.setting, r.n_estimators, r.split, r.measure, r.estimate): r.mean for r in found}


def test_published_numbers_are_complete():
    file = resources.files("reproduction") / "published.csv"
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
    png, svg = figures.write_figure(name, figures.DRAWINGS[name](results), tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()


def test_one_call_for_a_table_or_a_figure():
    options = Options(3, 10)
    found = reproduction.table("table1", options)
    assert len(found) == 112
    pytest.importorskip("matplotlib")
    assert len(reproduction.figure("figure1", options).axes) == 2
    for reproduced in (reproduction.table, reproduction.figure):
        with pytest.raises(ValueError, match="name must be one of"):
            reproduced("table9", options)


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


def test_an_interrupted_run_continues(paper_miniature, tmp_path, monkeypatch):
    study = paper_miniature("sine60")
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
        function = getattr(__import__("reproduction.runs", fromlist=[name]), name)
        monkeypatch.setattr(f"reproduction.runs.{name}", counted(function))
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


def test_processes_give_the_same_numbers(paper_miniature):
    study = paper_miniature("sine60")
    one, two = (simulated(study, Options(20, 200, jobs=jobs)) for jobs in (1, 2))
    np.testing.assert_allclose(two.errors, one.errors, rtol=1e-6)


@pytest.mark.parametrize(
    ("parameter", "value"), [("replications", 1), ("jobs", 0), ("precision", "half")]
)
def test_bad_options(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        Options(**{parameter: value})


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
