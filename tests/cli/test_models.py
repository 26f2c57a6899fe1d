"""Fits, predictions and effects of the commands equal those of Python."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, done, facts, read_csv, refusal, run, sample
from numpy.testing import assert_allclose, assert_array_equal

import ulmus
from ulmus.cli.steps.predictions import COLUMNS
from ulmus.exceptions import MissingValuesWarning
from ulmus.tables import TableEncoder

# The ten units of a model serve twelve inputs, of which days of the week are seven.
MISFIT = pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table ``t.csv``, models of it in memory and in blocks, and new rows."""
    folder = tmp_path_factory.mktemp("models")
    sample().to_csv(folder / "t.csv", index=False)
    sample(40, 1).drop(columns="y").to_csv(folder / "new.csv", index=False)
    start = ("fit", folder / "t.csv", "-t", "y", *SMALL, "-o")
    done(*start, folder / "m.ulmus")
    done(*start, folder / "s.ulmus", "--stream")
    return folder


def loaded(folder, name="m.ulmus"):
    return ulmus.inference(ulmus.load(folder / name))


def frame_of(folder, *options, model="m.ulmus", data="new.csv"):
    """Predictions of the command."""
    output = folder / "o.parquet"
    done("predict", folder / model, folder / data, "-o", output, *options)
    return pd.read_parquet(output)


@pytest.mark.slow
def test_a_fit_is_that_of_python(folder):
    table = sample()
    model = ulmus.ELMEnsembleRegressor(2, 10, random_state=0).fit(table.drop(columns="y"), table.y)
    again = ulmus.load(folder / "m.ulmus")
    assert again.columns_.columns == model.columns_.columns
    assert_allclose(again.predict(table), model.predict(table), rtol=1e-10)


@MISFIT
@pytest.mark.slow
def test_predictions_are_those_of_python(folder):
    new, model = sample(40, 1), loaded(folder)
    frame = frame_of(
        folder, "--confidence-level", 0.8, "--quantiles", "0.1,0.5", "--threshold", "1, 1234567"
    )
    expected = model.summary_frame(new, 0.8)
    assert_array_equal(frame[list(COLUMNS)], expected)
    assert list(frame.columns[6:]) == ["q0.1", "q0.5", "exceeds_1", "exceeds_1234567"]
    assert_array_equal(frame[["q0.1", "q0.5"]], model.predict_quantiles(new, [0.1, 0.5]))
    assert_array_equal(frame["exceeds_1"], model.exceedance(new, 1))
    frame = frame_of(folder, "--interval-target", "expectation")
    assert_array_equal(frame, model.summary_frame(new, 0.95, target="expectation"))
    assert (frame.pred_low < frame["estimate"]).all()


@pytest.mark.slow
def test_a_fit_in_blocks_is_close(folder):
    kept, streamed = (loaded(folder, name) for name in ("m.ulmus", "s.ulmus"))
    assert_allclose(streamed.predict(sample()), kept.predict(sample()), rtol=1e-8, atol=1e-8)
    frame = frame_of(folder, model="s.ulmus")
    assert_array_equal(frame["estimate"], streamed.predict(sample(40, 1)))
    assert np.isfinite(frame).all(axis=None)


@pytest.mark.slow
def test_settings_of_a_fit(folder):
    model, how = folder / "p.ulmus", ("--noise", "homoskedastic", "--random-state", 3, "--no-rows")
    done("fit", folder / "t.csv", "-t", "y", "-o", model, *SMALL, *how, "--drop", "day,wet")
    again = ulmus.load(model)
    assert again.columns_.names == ("t", "kind", "count")
    assert again.random_state == 3
    assert again.noise == "homoskedastic"
    assert again.fitted_.rows is None
    assert ulmus.load(folder / "m.ulmus").fitted_.rows is not None


@pytest.mark.slow
def test_facts_of_a_fit(folder):
    result = facts("fit", folder / "t.csv", "-t", "y", "-o", folder / "p.ulmus", *SMALL)
    assert result["model"] == str(folder / "p.ulmus")
    assert result["report"] is None
    assert result["rows_excluded"] == 0
    assert result["columns"] == ["t", "kind", "day", "wet", "count"]
    assert result["summary"]["n_rows"] == 80
    assert result["notes"] == [
        "Dates encoded as trend and seasons: day (week).",
        "Encoded as categories (number of levels): kind (3).",
    ]
    assert "use a larger --n-neurons" in result["summary"]["warnings"][0]["suggestion"]
    assert not any("model." in text for text in result["summary"]["advice"])


@pytest.mark.slow
def test_weights_are_those_of_python(folder, tmp_path):
    table = sample().assign(w=np.arange(80) % 5 * 0.5)
    table.to_csv(tmp_path / "t.csv", index=False)
    inputs = ("--columns", "t,kind", "--sample-weight", "w")
    for way in ("--in-memory", "--stream"):
        start = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
        done(*start, *inputs, way)
        encoder = TableEncoder().fit(table[["t", "kind"]])
        model = ulmus.ELMEnsembleRegressor(2, 10, random_state=0)
        X = encoder.transform(table)
        model.fit(X, table.y, sample_weight=table.w)
        assert_allclose(loaded(tmp_path).predict(table), model.predict(X), rtol=1e-7)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """A folder with a model of weighted rows, ``m.ulmus``, and new rows, ``new.csv``."""
    folder = tmp_path_factory.mktemp("weights")
    sample().assign(w=np.arange(80) % 5 * 0.5).to_csv(folder / "t.csv", index=False)
    new = sample(20, 1).assign(w=np.arange(20) % 4 + 1.0, v=1.0)
    new.to_csv(folder / "new.csv", index=False)
    start = ("fit", folder / "t.csv", "-t", "y", "-o", folder / "m.ulmus", *SMALL)
    done(*start, "--columns", "t,kind", "--sample-weight", "w")
    return folder


def test_new_rows_have_the_weights_of_the_column_of_the_fit(weighted):
    new = pd.read_csv(weighted / "new.csv")
    frame = frame_of(weighted, "--quantiles", "0.1", "--threshold", "1", "--keep", "w")
    model = loaded(weighted)
    assert_allclose(frame[list(COLUMNS)], model.summary_frame(new, sample_weight=new.w))
    assert_allclose(frame["q0.1"], model.predict_quantiles(new, [0.1], sample_weight=new.w)[:, 0])
    assert_allclose(frame["exceeds_1"], model.exceedance(new, 1, sample_weight=new.w))
    assert_array_equal(frame["w"], new.w)
    result = done("predict", weighted / "m.ulmus", weighted / "new.csv", "-o", weighted / "o.csv")
    assert "column 'w'" in result.stderr
    assert "mean weight" not in result.stderr


def test_weights_of_new_rows_may_be_in_another_column(weighted):
    new = pd.read_csv(weighted / "new.csv")
    frame = frame_of(weighted, "--sample-weight", "v")
    expected = loaded(weighted).summary_frame(new, sample_weight=new.v)
    assert_allclose(frame[list(COLUMNS)], expected)


def test_without_weights_of_new_rows_a_note_names_the_option(weighted):
    pd.read_csv(weighted / "new.csv").drop(columns="w").to_csv(weighted / "no.csv", index=False)
    result = done("predict", weighted / "m.ulmus", weighted / "no.csv", "-o", weighted / "o.csv")
    assert "mean weight" in result.stderr
    assert "as --sample-weight." in result.stderr


def test_missing_and_zero_weights_of_new_rows(weighted):
    new, path = pd.read_csv(weighted / "new.csv"), weighted / "bad.csv"
    predict = ("predict", weighted / "m.ulmus", path, "-o", weighted / "o.csv")
    for value, shown in ((None, "missing"), (0.0, "0")):
        new.assign(w=new.w.where(new.index != 3, value)).to_csv(path, index=False)
        strict = () if value == 0 else ("--missing", "error")
        assert f"the weight 'w' is {shown} in data row 4" in refusal(*predict, *strict)
    new.assign(w=new.w.where(new.index != 3)).to_csv(path, index=False)
    assert facts(*predict, "--missing", "drop")["rows"] == 19
    assert "no column" in refusal(*predict, "--sample-weight", "z")


def test_a_report_uses_the_weights_of_new_rows(weighted):
    page = weighted / "r.html"
    result = done("report", weighted / "m.ulmus", weighted / "new.csv", "-o", page)
    assert "column 'w'" in result.stderr
    assert "mean weight" not in result.stderr
    assert "assumed to have the mean weight" not in page.read_text()
    assert "noise standard deviation, weight 1" in page.read_text()


def test_copies_of_rows_are_noted(tmp_path):
    table = sample()
    pd.concat([table, table[:40]]).to_csv(tmp_path / "t.csv", index=False)
    result = done("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    assert (result.stdout + result.stderr).count("40 of 120 rows are exact copies") == 1


@pytest.mark.slow
@pytest.mark.parametrize("way", ["--in-memory", "--stream"])
def test_missing_values_when_fitting(tmp_path, way):
    table, path = sample().astype({"count": float}), tmp_path / "t.csv"
    table.loc[[4, 9], "t"] = None
    table.loc[9, "y"] = np.nan
    table.loc[20, "kind"] = None
    table.loc[30, "count"] = -999
    table.to_csv(path, index=False)
    start = ("fit", path, "-t", "y", *SMALL, way, "--na-values", -999, "-o")
    strict = (*start[:-1], "--missing", "error", "-o")
    assert "the target 'y' has no value in data row 10" in refusal(*strict, tmp_path / "e.ulmus")
    dropped = facts(*start, tmp_path / "d.ulmus", "--missing", "drop")
    assert dropped["rows_excluded"] == 4
    assert dropped["summary"]["n_rows"] == 76
    assert "Excluded rows with missing values: 3." in dropped["notes"]
    assert "Excluded: 1 row without a value of y." in dropped["notes"]
    filled = facts(*start, tmp_path / "i.ulmus")
    assert filled["rows_excluded"] == 1  # without a target
    schema = ulmus.load(tmp_path / "i.ulmus").columns_
    assert [column.n_missing for column in schema.columns] == [1, 1, 0, 0, 1]
    assert "Missing values filled in (number of rows): t (1), kind (1), count (1)." in schema.notes


@pytest.mark.slow
def test_unknown_categories_are_refused_on_request(folder, tmp_path):
    sample(40, 1).assign(kind="zz").to_csv(tmp_path / "n.csv", index=False)
    start = ("fit", folder / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    predict = ("predict", tmp_path / "m.ulmus", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
    done(*start)
    assert "40 of 'kind'" in done(*predict).stderr
    done(*start, "--unknown", "error")
    assert "contains 'zz' in data row 1, which is not a category" in refusal(*predict)


@MISFIT
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
def test_missing_values_when_predicting(folder, tmp_path):
    new = sample(40, 1)
    new.loc[[3, 17], "t"] = None
    new.loc[5, "kind"] = None
    new.to_csv(tmp_path / "n.csv", index=False)
    start = ("predict", folder / "m.ulmus", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
    message = refusal(*start, "--missing", "error")
    assert (
        "'t' has no value in data row 4; fill it, use --missing drop to exclude such rows"
        in message
    )
    assert not (tmp_path / "o.csv").exists()
    counts = facts(*start, "--missing", "drop", "--keep", "count")
    assert (counts["rows"], counts["rows_excluded"]) == (37, 3)
    written = pd.read_csv(tmp_path / "o.csv")
    assert_array_equal(written["count"], new.drop([3, 5, 17])["count"])
    assert facts(*start)["rows"] == 40
    written = read_csv(tmp_path / "o.csv")
    with pytest.warns(MissingValuesWarning, match="2 of 't', 1 of 'kind'"):
        assert_array_equal(written, loaded(folder).summary_frame(new, 0.95))


@pytest.mark.slow
def test_numbers_that_are_names(folder, tmp_path):
    start = ("fit", folder / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    done(*start, "--categorical", "count", "--columns", "t,count")
    column = ulmus.load(tmp_path / "m.ulmus").columns_.columns[1]
    assert column.type_name == "category"
    assert column.categories == tuple("012345678")
    frame = frame_of(folder, model=tmp_path / "m.ulmus")
    sample(40, 1).to_parquet(tmp_path / "new.parquet")
    again = frame_of(folder, model=tmp_path / "m.ulmus", data=tmp_path / "new.parquet")
    assert_array_equal(frame, again)


EFFECTS = {
    ("average",): lambda model, X: model.average(X),
    ("average", "--by", "kind", "--confidence-level", "0.8"): lambda model, X: model.average(
        X, by=["kind"], confidence_level=0.8
    ),
    ("average", "--by", "site,wet", "--interval-target", "function"): lambda model, X: (
        model.average(X, by=["site", "wet"], target="function")
    ),
    ("compare", "--variables", "t=1,2"): lambda model, X: model.compare(X, {"t": (1, 2)}),
    ("compare", "--variables", "t=0.5"): lambda model, X: model.compare(X, {"t": 0.5}),
    ("compare", "--variables", "t=sd", "--variables", "kind=a, c"): lambda model, X: model.compare(
        X, {"t": "sd", "kind": ["a", "c"]}
    ),
    ("compare", "--variables", "kind", "--simultaneous"): lambda model, X: model.compare(
        X, {"kind": None}, simultaneous=True
    ),
    ("slope", "--variables", "t,count"): lambda model, X: model.slope(X, ["t", "count"]),
    ("slope", "--by", "kind"): lambda model, X: model.slope(X, ["t", "day", "count"], by=["kind"]),
}


@MISFIT
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning")
@pytest.mark.parametrize("effect", EFFECTS, ids=" ".join)
def test_effects_are_those_of_python(folder, tmp_path, effect):
    table, model = sample().assign(site=["north", "south"] * 40), loaded(folder)
    table.to_csv(tmp_path / "t.csv", index=False)
    tidy, _ = ulmus.load(folder / "m.ulmus").columns_.convert(table)
    expected = EFFECTS[effect](model, tidy)
    start = (effect[0], folder / "m.ulmus", tmp_path / "t.csv", *effect[1:])
    effects = pd.DataFrame(facts(*start)["effects"])
    assert list(effects.columns) == list(expected.columns)
    assert_allclose(effects.estimate, expected.estimate, rtol=1e-12)
    assert_allclose(effects.std_error, expected.std_error, rtol=1e-12)
    done(*start, "-o", tmp_path / "a.csv")
    written = pd.read_csv(tmp_path / "a.csv")
    assert_allclose(written.conf_low, expected.conf_low, rtol=1e-12)
    assert "estimate" in done(*start).stdout


def test_a_model_saved_in_python_has_its_columns(folder, tmp_path):
    table = sample()[["t", "count", "y"]]
    for cls in (ulmus.ELMEnsembleRegressor, ulmus.ELMRegressor):
        model = cls(n_neurons=10, input_map=None, random_state=0)
        model.fit(table[["t", "count"]], table.y).save(tmp_path / "m.ulmus")
        frame = frame_of(folder, model=tmp_path / "m.ulmus")
        assert_array_equal(frame["estimate"], model.predict(sample(40, 1)[["t", "count"]]))


def test_models_that_tables_cannot_be_matched_with(folder, tmp_path):
    X, model = sample()[["t", "count"]], ulmus.ELMEnsembleRegressor(2, 10, input_map=None)
    start = ("predict", tmp_path / "m.ulmus", folder / "t.csv", "-o", tmp_path / "o.csv")
    model.fit(X.to_numpy(), sample().y).save(tmp_path / "m.ulmus")
    assert "was fitted to an array without column names" in refusal(*start)
    model.fit(X, np.stack([sample().y] * 2, axis=1)).save(tmp_path / "m.ulmus")
    assert "predicts 2 targets; fit a model to each" in refusal(*start)
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.slow
def test_quiet_prints_nothing(folder, tmp_path):
    model, out = tmp_path / "m.ulmus", tmp_path / "o.csv"
    for command in (
        ("fit", folder / "t.csv", "-t", "y", "-o", model, *SMALL),
        ("predict", model, folder / "new.csv", "-o", out),
        ("average", model, folder / "t.csv", "-o", out),
    ):
        result = done(*command, "--quiet")
        assert result.output == ""


def test_notes_and_results_go_their_ways(folder, tmp_path):
    far = sample(40, 1).assign(t=600.0)
    far.to_csv(tmp_path / "far.csv", index=False)
    start = ("predict", folder / "m.ulmus", tmp_path / "far.csv", "-o", tmp_path / "o.csv")
    result = done(*start)
    assert result.stdout == f"Wrote 40 rows to {tmp_path / 'o.csv'}.\n"
    assert "Note: " in result.stderr
    assert "outside the range of the training inputs" in result.stderr
    assert any(
        "outside the range of the training inputs" in note for note in facts(*start)["notes"]
    )


def test_failures_in_json(folder, tmp_path):
    result = run("predict", folder / "m.ulmus", tmp_path / "no.csv", "-o", "o.csv", "--json")
    assert result.exit_code == 2
    result_json = json.loads(result.stdout)
    assert result_json == {
        "error": f"{tmp_path / 'no.csv'} does not exist; check the name.",
        "exit_code": 2,
    }
    assert result.stderr == f"ulmus: {result_json['error']}\n"
