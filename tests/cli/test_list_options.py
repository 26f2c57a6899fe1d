"""Options that take several values: repeated and separated by commas, they mean the same."""

import numpy as np
import pandas as pd
import pytest
import typer
from command_line import PLAIN, done, facts, refusal, sample

import ulmus
from ulmus.cli.app import app
from ulmus.cli.options import number_or_name

# For each option that may be repeated: its values.
FIT = {
    "--columns": ("t", "count", "kind"),
    "--drop": ("day", "wet"),
    "--categorical": ("count", "rank"),
    "--na-values": ("-999", "?"),
    "--expand-inputs": ("normal_scores", "one_hot"),
    "--variance": ("BR", "NHo"),
    "--weight-scale": ("0.5", "1.5"),
    "--coords": ("t", "count"),
}
PREDICT = {
    "--quantiles": ("0.1", "0.9"),
    "--threshold": ("0", "1.5"),
    "--keep": ("day", "kind"),
}
EFFECTS = {
    ("average", "--by"): ("kind", "wet"),
    ("compare", "--by"): ("kind", "wet"),
    ("slope", "--by"): ("kind", "wet"),
    ("slope", "--variables"): ("t", "count"),
    ("compare", "--variables"): ("t=1,2", "kind=a,c", "wet"),
}
ELSEWHERE = {("plot", "--features")}


def both_forms(option, values):
    """The option repeated, and once with commas."""
    return [word for value in values for word in (option, value)], [option, ",".join(values)]


def test_every_option_that_may_be_repeated_is_tested():
    group = typer.main.get_command(app)
    found = {
        (name, parameter.opts[0])
        for name, command in group.commands.items()
        for parameter in command.params
        if getattr(parameter, "multiple", False)
    }
    tested = {("fit", one) for one in FIT} | {("predict", one) for one in PREDICT}
    assert found == tested | set(EFFECTS) | ELSEWHERE


@pytest.mark.parametrize("option", FIT)
def test_options_of_fit(option, tmp_path):
    table = sample().assign(rank=np.arange(80) % 4)
    if option == "--na-values":
        table["count"] = table["count"].astype(object)
        table.loc[:4, "count"], table.loc[5:9, "count"] = -999, "?"
    table.to_csv(tmp_path / "t.csv", index=False)
    more = ("--columns", "t", "--columns", "count") if option == "--weight-scale" else ()
    if option == "--coords":
        more = ("--noise", "exponential")
    start = ("fit", tmp_path / "t.csv", "-t", "y", *PLAIN, *more)
    files = [tmp_path / "a.ulmus", tmp_path / "b.ulmus"]
    for file, words in zip(files, both_forms(option, FIT[option]), strict=True):
        done(*start, *words, "-o", file)
    first, second = (facts("info", file, "--header") for file in files)
    assert without_names(first) == without_names(second)
    if option not in ("--coords", "--na-values"):  # the fit requires both of them
        done(*start, "-o", tmp_path / "c.ulmus")
        plain = facts("info", tmp_path / "c.ulmus", "--header")
        assert without_names(plain) != without_names(first)


def without_names(header):
    """The header of a model file without its name, date and size."""
    return {key: header[key] for key in set(header) - {"model", "date", "bytes"}}


@pytest.mark.parametrize("option", PREDICT)
def test_options_of_predict(option, small_model, tmp_path):
    start = ("predict", small_model / "m.ulmus", small_model / "t.csv", "-o")
    repeated, separated = both_forms(option, PREDICT[option])
    assert done(*start, "-", *repeated).stdout == done(*start, "-", *separated).stdout
    header = done(*start, "-", *repeated).stdout.partition("\n")[0]
    assert header != done(*start, "-").stdout.partition("\n")[0]


@pytest.mark.parametrize(("command", "option"), EFFECTS)
def test_options_of_effects(command, option, small_model):
    start = (command, small_model / "m.ulmus", small_model / "t.csv")
    if command == "compare" and option == "--by":
        start += ("--variables", "t=1,2")
    repeated, separated = both_forms(option, EFFECTS[command, option])
    first, second = facts(*start, *repeated), facts(*start, *separated)
    assert first == second
    assert len(first["effects"]) > 1


CONTRASTS = {
    "t=1,2,count=3,4": {"t": ["2 - 1"], "count": ["4 - 3"]},
    "t,count": {"t": ["x + 1 - x"], "count": ["x + 1 - x"]},
    "t=sd,kind=b,c": {"t": None, "kind": ["c - b"]},
    "kind=a,b,c": {"kind": ["b - a", "c - a"]},
    "t=2,wet": {"t": ["x + 2 - x"], "wet": ["True - False"]},
}


@pytest.mark.parametrize("text", CONTRASTS)
def test_contrasts_of_several_columns(small_model, text):
    start = ("compare", small_model / "m.ulmus", small_model / "t.csv", "--variables", text)
    frame = pd.DataFrame(facts(*start)["effects"])
    assert list(dict.fromkeys(frame.term)) == list(CONTRASTS[text])
    for name, expected in CONTRASTS[text].items():
        if expected is not None:
            assert list(frame.contrast[frame.term == name]) == expected


def test_names_and_categories_that_contain_commas(tmp_path):
    table = sample().rename(columns={"count": "wind, m/s"})
    table["kind"] = table["kind"].replace({"a": "east, old", "b": "t"})
    table.to_csv(tmp_path / "t.csv", index=False)
    done("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    start = ("compare", tmp_path / "m.ulmus", tmp_path / "t.csv", "--variables")
    for text, contrasts in {
        "wind, m/s=1,2": ["2 - 1"],
        "t=1,2,wind, m/s=3,4": ["2 - 1", "4 - 3"],
        'kind="east, old",c': ["c - east, old"],
        "kind=c,t": ["t - c"],  # a category with the name of a column
    }.items():
        assert [one["contrast"] for one in facts(*start, text)["effects"]] == contrasts


def test_typing_errors_in_names_are_answered_with_the_name(small_model):
    start = (small_model / "m.ulmus", small_model / "t.csv", "--variables")
    for command, text in (("compare", "cont=1,2"), ("slope", "cont"), ("compare", "cont,t=1,2")):
        message = refusal(command, *start, text)
        assert message.startswith("--variables names 'cont', which is not a column of the model;")
        assert "did you mean 'count'?" in message


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", 0.5), ("1e-3", 1e-3), ("auto", "auto"), ("none", None), ("None", None)],
)
def test_numbers_and_names(text, value):
    found = number_or_name(text)
    assert (found, type(found)) == (value, type(value))


def test_options_of_the_model_are_those_of_python(tmp_path):
    """Each option that is no list, with a value other than its default."""
    given = {
        "n_estimators": 3,
        "n_neurons": 7,
        "input_map": None,
        "random_state": 4,
        "exact": True,
        "n_jobs": 1,
        "alpha": 0.5,
        "activation": "logistic",
        "weight_distribution": "uniform",
        "weight_scale": 0.7,
        "tuning_fraction": 0.4,
        "fit_intercept": False,
        "standardize": False,
        "hc": "HC3",
        "noise_variance": "residual",
        "dtype": "float64",
    }
    words = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        else:
            words += [option, "none" if value is None else value]
    sample().to_csv(tmp_path / "t.csv", index=False)
    done("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *words)
    parameters = ulmus.load(tmp_path / "m.ulmus").get_params()
    assert {name: parameters[name] for name in given} == given
