"""Messages on the command line name its options, and only those that exist."""

import ast
import json
import re
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import (
    COMMANDS,
    SMALL,
    done,
    facts,
    read_csv,
    refusal,
    require_options_exist,
    sample,
)
from numpy.testing import assert_array_equal

import ulmus
from ulmus.cli.console import Console, option_names
from ulmus.cli.steps.predictions import COLUMNS
from ulmus.exceptions import UlmusWarning
from ulmus.messages import Message, Setting
from ulmus.noise import AR1


@pytest.mark.parametrize(
    ("command", "setting", "text"),
    [
        ("fit", ("n_estimators", 40), "--n-estimators 40"),
        ("predict", ("n_estimators", 40), "--n-estimators 40 (ulmus fit)"),
        ("fit", ("n_neurons",), "--n-neurons"),
        ("fit", ("input_map", None), "--input-map none"),
        ("fit", ("noise", AR1()), "--noise"),
        ("fit", ("coords", ("east", "north")), "--coords east,north"),
        ("fit", ("in_memory",), "--in-memory"),
        ("fit", ("stream", True), "--stream"),
        ("predict", ("confidence_level", 0.1 + 0.2), "--confidence-level 0.3"),
        ("predict", ("target", "expectation"), "--interval-target expectation"),
        ("compare", ("variables", ["low", "high"], "t"), "--variables t=low,high"),
        ("average", ("path", "m.ulmus"), "m.ulmus"),
        ("fit", ("alpha", "loo"), "--alpha loo"),
        # --target is the column to predict
        ("fit", ("target", "expectation"), "--interval-target expectation (ulmus predict)"),
        ("check", ("method", "cv+"), "--method cv+ (ulmus predict)"),
        ("predict", ("method", "gaussian"), "--method gaussian"),
        ("predict", ("residual_kriging", True), "--residual-kriging"),
    ],
)
def test_a_setting_is_an_option_of_the_command_or_of_fit(command, setting, text):
    assert Console(command).option(*setting) == text


@pytest.mark.slow
def test_options_are_those_of_the_commands():
    for command in COMMANDS:
        names = {option.name for option in option_names(command).values()}
        for name in names - {"--help"}:
            assert name in done(command, "--help").stdout
    assert "--n-estimators" in {option.name for option in option_names("fit").values()}


def test_suggestions_that_are_no_options_are_dropped():
    suggestions = (
        Setting("kind", "prediction"),
        Setting("n_neurons", phrase="use fewer {}"),
    )
    message = Message("rows", "there are few rows", suggestions=suggestions)
    assert message.render(Console("fit").option) == "there are few rows; use fewer --n-neurons."


# ---------------------------------------------------------------- what a fit of few rows prints


@pytest.mark.slow
def test_a_fit_of_60_rows_suggests_nothing_that_does_not_exist(tmp_path):
    sample(60).to_csv(tmp_path / "t.csv", index=False)
    start = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    text = " ".join(done(*start).output.split())
    options = {option.name for option in option_names("fit").values()}
    assert set(re.findall(r"--[a-z][a-z-]+", text)) <= options
    for words in ("alpha, or", "larger alpha", "n_neurons", "n_estimators", "random_state="):
        assert words not in text
    # Either more rows help, or they do not.
    assert not ("add rows" in text and "rows nor members" in text)


# ---------------------------------------------------------------- intervals without undersmoothing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models without an undersmoothed fit: in single precision, and heteroskedastic in blocks."""
    folder = tmp_path_factory.mktemp("console")
    table = sample()[["t", "count", "y"]]
    table.to_csv(folder / "t.csv", index=False)
    model = ulmus.ELMEnsembleRegressor(2, 10, input_map=None, dtype="float32", random_state=0)
    model.fit(table[["t", "count"]], table.y).save(folder / "single.ulmus")
    start = ("fit", folder / "t.csv", "-t", "y", "-o", folder / "blocks.ulmus", *SMALL)
    done(*start, "--stream", "--noise", "heteroskedastic")
    return folder


REASONS = {
    "single.ulmus": "requires smaller ridge parameters than",
    "blocks.ulmus": "requires residuals of the training rows, which this fit does not keep",
}


@pytest.mark.parametrize("name", REASONS)
def test_the_default_interval_falls_back_and_the_note_has_the_reason(folder, tmp_path, name):
    result = facts("predict", folder / name, folder / "t.csv", "-o", tmp_path / "o.csv")
    (note,) = (note for note in result["notes"] if "conf_low" in note)
    assert REASONS[name] in note
    assert "cover the expectation of the prediction and exclude its bias" in note
    assert ("blocks" in note, "float32" in note) == (False, name == "single.ulmus")
    inference = ulmus.inference(ulmus.load(folder / name))
    rows = pd.read_csv(folder / "t.csv")[["t", "count"]].astype(float)
    expected = inference.summary_frame(rows, 0.95, target="expectation")
    assert_array_equal(read_csv(tmp_path / "o.csv")[list(COLUMNS)], expected)


@pytest.mark.parametrize("name", REASONS)
def test_an_explicit_interval_target_is_refused_instead_of_replaced(folder, tmp_path, name):
    start = ("predict", folder / name, folder / "t.csv", "-o", tmp_path / "o.csv")
    message = refusal(*start, "--interval-target", "function")
    assert message.startswith("--interval-target function ")
    assert REASONS[name] in message
    assert "; use --interval-target expectation" in message
    assert " dtype" not in message.partition(";")[2]
    assert not (tmp_path / "o.csv").exists()
    notes = facts(*start, "--interval-target", "expectation")["notes"]
    assert not any("conf_low" in note for note in notes)


@pytest.mark.slow
def test_a_column_cannot_be_contrasted_twice(folder, tmp_path):
    done("fit", folder / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    start = ("compare", tmp_path / "m.ulmus", folder / "t.csv")
    message = refusal(*start, "--variables", "t=1,2", "--variables", "t=0,1")
    assert message.startswith("--variables names t twice; give all values at once")
    three = pd.DataFrame(facts(*start, "--variables", "t=0,1,2")["effects"])
    assert list(three.contrast) == ["1 - 0", "2 - 0"]
    assert np.isfinite(three.estimate).all()


# ---------------------------------------------------------------- suggestions and warnings


def suggested_parameters():
    """Names of the parameters that messages of the library suggest or name, from its sources."""
    return {node.args[0].value for node in calls_of_settings()}


@cache
def calls_of_settings():
    """The calls in the sources that make a setting of a parameter."""
    trees = [ast.parse(path.read_text()) for path in Path(ulmus.__file__).parent.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [node for node in nodes if getattr(node.func, "id", "") in ("Setting", "named")]
    return [node for node in named if isinstance(node.args[0], ast.Constant)]


# Parameters without an option: suggestions of them are dropped on the command line.
WITHOUT_OPTION = {"format", "kernel", "kind"}


def test_parameters_in_messages_have_options():
    parameters = suggested_parameters()
    assert len(parameters) > 25
    everywhere = {name for command in COMMANDS for name in option_names(command)}
    renamed = {"target": "interval_target"}
    lacking = {one for one in parameters if renamed.get(one, one) not in everywhere}
    assert lacking == WITHOUT_OPTION


# Options of effects and figures, which the other commands do not suggest.
OF_EFFECTS = {"by", "comparison", "grid_resolution", "hypothesis", "scale", "simultaneous"}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_suggests_exists(command):
    for parameter in suggested_parameters():
        text = Console(command).option(parameter, 1)
        if text is None:
            assert parameter in WITHOUT_OPTION | OF_EFFECTS
        else:
            require_options_exist(command, text)


def suggested_values():
    """Parameters and the values that messages of the library suggest for them, in its sources."""
    found = {}
    for node in calls_of_settings():
        given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "value")]
        with suppress(ValueError, IndexError):
            value = ast.literal_eval(given[0])
            found[node.args[0].value, repr(value)] = value
    return [(parameter, value) for (parameter, _), value in found.items()]


INPUTS = {
    "fit": ("no.csv", "-t", "y", "-o", "m.ulmus"),
    "predict": ("no.ulmus", "no.csv", "-o", "o.csv"),
    "compare": ("no.ulmus", "no.csv", "--variables", "t"),
}


def test_suggested_values_are_accepted():
    """``--tuning-fraction none`` was suggested and refused."""
    values = suggested_values()
    assert len(values) > 25
    assert ("tuning_fraction", None) in values
    for parameter, value in values:
        texts = [(command, Console(command).option(parameter, value)) for command in INPUTS]
        own = [(command, text) for command, text in texts if text and "(ulmus" not in text]
        assert own or parameter in WITHOUT_OPTION
        for command, text in own:
            message = refusal(command, *INPUTS[command], *text.split())
            assert "does not exist" in message, text  # the option has been accepted


class NoUse(UlmusWarning):
    """A warning of a test."""


def test_warnings_with_one_code_are_all_noted_up_to_a_limit(capsys):
    console = Console("predict", json=True)
    with console.handle_errors():
        for i in (*range(5), 0):
            warnings.warn(Message("few", f"row {i} is far away"), NoUse, stacklevel=1)
        warnings.warn(Message("other", "the end is near"), NoUse, stacklevel=1)
        console.result("", {})
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert notes == [
        *(f"Note: row {i} is far away." for i in range(3)),
        "Note: 2 more warnings like this one.",
        "Note: the end is near.",
    ]


@pytest.mark.parametrize("command", ["slope", "compare"])
def test_the_effect_of_a_dropped_column_warns(command, tmp_path):
    """The learned map drops a column that the target does not depend on."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.uniform(size=300), "b": rng.uniform(size=300)})
    table["y"] = np.sin(6 * table.a) + 0.02 * rng.standard_normal(300)
    table.to_csv(tmp_path / "t.csv", index=False)
    start = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus")
    done(*start, "--n-estimators", 2, "--n-neurons", 60, "--input-map", "ard")
    result = done(command, tmp_path / "m.ulmus", tmp_path / "t.csv", "--variables", "b")
    assert "drops 'b'" in result.stderr
    assert "--input-map none (ulmus fit)" in result.stderr
    assert "drops" not in result.stdout
