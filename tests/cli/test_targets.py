"""Counts, positive and bounded targets on the command line."""

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command_line import PLAIN, done, facts, read_csv, refusal
from messages import mentions
from numpy.testing import assert_allclose, assert_array_equal

import ulmus
from ulmus.cli.console import Console
from ulmus.cli.target_options import KindChoice, TargetOptions, TransformChoice
from ulmus.core.response.target import KINDS, TRANSFORMS

N = 150


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """A table with a count, a positive amount and rain, and a model of each."""
    folder, rng = tmp_path_factory.mktemp("targets"), np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, N).round(1),
            "region": rng.choice(["north", "south"], N),
        }
    )
    f = 0.03 * (table.age - 45) + 0.6 * (table.region == "south")
    table["claims"] = rng.poisson(np.exp(f))
    table["price"] = np.exp(f + 0.4 * rng.standard_normal(N)).round(4)
    table["rain"] = np.maximum(f + 0.6 * rng.standard_normal(N), 0.0).round(4)
    found = {"table": folder / "t.csv", "new": folder / "new.csv"}
    table.to_csv(found["table"], index=False)
    table[["age", "region"]].iloc[:20].to_csv(found["new"], index=False)
    return found


OPTIONS = {
    "claims": ("--target-kind", "count"),
    "price": ("--transform", "log"),
    "rain": ("--target-transform", "sqrt", "--target-range", "0,none"),
}


def fitted(paths, target, *options):
    """A model file of a column, and what its fit printed."""
    model = paths["table"].with_name(f"{target}.ulmus")
    columns = ("--columns", "age,region")
    start = ("fit", paths["table"], "-t", target, "-o", model, *columns, *PLAIN)
    return model, done(*start, *(options or OPTIONS[target]))


def predicted(paths, target, *options):
    model, output = fitted(paths, target)[0], paths["table"].with_name("out.csv")
    done("predict", model, paths["new"], "-o", output, *options)
    return model, read_csv(output)


# ---------------------------------------------------------------- options


def test_choices_are_those_of_the_parameters():
    assert [one.value for one in TransformChoice] == ["none", *TRANSFORMS]
    assert [one.value for one in KindChoice] == list(KINDS)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("0,none", (0.0, None)),
        ("none,1", (None, 1.0)),
        ("-2.5, 1e3", (-2.5, 1000.0)),
        ("0,", (0.0, None)),
        ("0,inf", (0.0, math.inf)),
    ],
)
def test_a_range_is_a_pair_of_bounds(text, bounds):
    assert TargetOptions(target_range=text).parameters == {"target_range": bounds}


@pytest.mark.parametrize("text", ["0", "1,0", "2,2", "a,b", "0,1,2", "", "nan,1", "inf,none"])
def test_other_ranges_are_refused(text):
    with pytest.raises(ValueError, match=mentions("--target-range", repr(text), "0,none")):
        _ = TargetOptions(target_range=text).parameters


def test_options_that_are_not_given_are_no_parameters():
    assert TargetOptions().parameters == {}
    assert TargetOptions(target_transform=TransformChoice.none).parameters == {}
    given = TargetOptions(TransformChoice.yeo_johnson, None, KindChoice.continuous).parameters
    assert given == {"target_transform": "yeo-johnson", "target_kind": "continuous"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target-range", "3,1"), "--target-range"),
        (("--transform", "cube"), "--target-transform must be one of 'none', 'log', "),
        (("--target-kind", "tree"), "--target-kind must be one of 'continuous', 'count', got"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_loaded(tmp_path, options, words):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    start = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus")
    program = (
        "import sys\nfrom ulmus.cli import main\n"
        f"sys.argv = ['ulmus', *{[str(a) for a in (*start, *options)]!r}]\n"
        "try:\n    main()\nexcept SystemExit as exit:\n"
        "    print(exit.code, 'numpy' in sys.modules, 'pyarrow' in sys.modules)\n"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.stdout.splitlines()[-1] == "2 False False"
    assert words in refusal(*start, *options)


def test_settings_are_these_options():
    option = Console("fit").option
    assert option("target_transform", "yeo-johnson") == "--target-transform yeo-johnson"
    assert option("target_range", (0, None)) == "--target-range 0,none"
    assert option("target_kind", "count") == "--target-kind count"
    predict = Console("predict").option
    assert predict("target_kind", "count") == "--target-kind count (ulmus fit)"
    # The column, and the parameter of predict_interval.
    assert option("kind", "prediction") is None
    assert Console("average").option("scale", "link") == "--scale link"


# ---------------------------------------------------------------- fit and predict


@pytest.mark.parametrize("target", OPTIONS)
def test_a_fit_is_that_of_the_parameters(paths, target):
    model = ulmus.load(fitted(paths, target)[0])
    parameters = {
        "claims": (None, None, "count"),
        "price": ("log", None, None),
        "rain": ("sqrt", (0.0, None), None),
    }[target]
    names = ("target_transform", "target_range", "target_kind")
    assert tuple(getattr(model, name) for name in names) == parameters
    assert model.target_transform_.startswith(("count", "log", "sqrt")[list(OPTIONS).index(target)])
    table = pd.read_csv(paths["table"])
    again = model.set_params(n_jobs=None)._unfitted()
    again.fit(table[["age", "region"]], table[target])
    new = pd.read_csv(paths["new"])
    assert_allclose(model.predict(new), again.predict(new), rtol=1e-8)


def test_the_summary_is_printed_and_stored(paths):
    _, result = fitted(paths, "claims")
    assert "count" in result.stdout
    start = ("fit", paths["table"], "-t", "price", "-o", paths["table"].with_name("m.ulmus"))
    assert facts(*start, *PLAIN, "--transform", "auto")["summary"]["n_rows"] == N


def test_predictions_of_counts(paths):
    model, out = predicted(paths, "claims", "--quantiles", "0.1,0.5,0.9", "--threshold", "2,0")
    whole = out[["pred_low", "pred_high", "q0.1", "q0.5", "q0.9"]].to_numpy()
    assert_array_equal(whole, np.round(whole))
    assert np.all(whole >= 0)
    assert np.all(out.conf_low > 0)
    assert np.all(out.exceeds_2 < out.exceeds_0)
    loaded, new = ulmus.load(model), pd.read_csv(paths["new"])
    assert_allclose(out.estimate, loaded.predict(new), rtol=1e-9)
    assert_allclose(out.exceeds_2, 1 - loaded.predict_dist(new).cdf(2), atol=1e-9)


@pytest.mark.parametrize("target", ["price", "rain"])
def test_predictions_of_amounts(paths, target):
    model, out = predicted(paths, target, "--quantiles", "0.5")
    loaded, new = ulmus.load(model), pd.read_csv(paths["new"])
    assert_allclose(out.estimate, loaded.predict(new), rtol=1e-9)
    assert_allclose(out["q0.5"], loaded.predict_median(new), rtol=1e-9, atol=1e-12)
    assert np.all(out[["pred_low", "conf_low"]] >= 0)
    assert np.all(out["q0.5"] < out.estimate)


@pytest.mark.parametrize("target", OPTIONS)
def test_tables_that_are_read_in_blocks(paths, target):
    _, inside = predicted(paths, target)
    model = fitted(paths, target, *OPTIONS[target], "--stream")[0]
    output = paths["table"].with_name("streamed.csv")
    done("predict", model, paths["new"], "-o", output)
    se = inside.std_error
    assert np.max(np.abs(read_csv(output).estimate - inside.estimate) / se) < 0.1


@pytest.mark.parametrize("target", ["claims", "rain"])
def test_weights_of_a_fit_are_not_those_of_new_observations(paths, target):
    """Their variance follows from their mean."""
    table = paths["table"].with_name("weighted.csv")
    pd.read_csv(paths["table"]).assign(w=np.resize([1.0, 2.0], N)).to_csv(table, index=False)
    options = (*OPTIONS[target], "--sample-weight", "w")
    model = paths["table"].with_name("weighted.ulmus")
    page = paths["table"].with_name("weighted.html")
    start = ("fit", table, "-t", target, "-o", model, "--columns", "age,region", *PLAIN)
    done(*start, *options, "--stream", "--report", page)
    done(*start, *options)
    output = paths["table"].with_name("out.csv")
    done("predict", model, table, "-o", output)
    expected = ulmus.load(model).predict(pd.read_csv(table)[["age", "region"]])
    assert_allclose(read_csv(output).estimate, expected, rtol=1e-9)
    text = refusal("predict", model, table, "-o", output, "--sample-weight", "w")
    assert text.startswith("--sample-weight does not apply to counts and point masses")


# ---------------------------------------------------------------- errors


def refused_fit(paths, target, *options):
    output = paths["table"].with_name("refused.ulmus")
    return refusal("fit", paths["table"], "-t", target, "-o", output, *PLAIN, *options)


def test_errors_name_the_options(paths):
    text = refused_fit(paths, "price", "--target-kind", "count")
    assert text.startswith("--target-kind count requires whole numbers")
    assert "--target-kind continuous" in text
    text = refused_fit(paths, "price", "--target-range", "0,1")
    assert text.startswith("--target-range 0,1 does not contain")
    text = refused_fit(paths, "claims", "--target-kind", "count", "--transform", "log")
    assert "--target-kind continuous" in text
    assert "target_" not in text
    text = refused_fit(paths, "claims", "--target-kind", "count", "--target-range", "0,9")
    assert "--target-range 0,none" in text
    table = pd.read_csv(paths["table"])
    negative = paths["table"].with_name("negative.csv")
    table.assign(price=table.price - 2).to_csv(negative, index=False)
    text = refused_fit({"table": negative}, "price", "--transform", "log")
    assert "--target-transform log requires" in text
    assert "--target-transform yeo-johnson" in text
    assert "--target-range" in text


# ---------------------------------------------------------------- effects, export, report


def test_effects_on_both_scales(paths):
    model = fitted(paths, "claims")[0]
    start = ("average", model, paths["table"], "--by", "region")
    response, default, link = (
        pd.DataFrame(facts(*start, *options)["effects"])
        for options in (("--scale", "response"), (), ("--scale", "link"))
    )
    assert_array_equal(default.estimate, response.estimate)
    loaded, table = ulmus.load(model), pd.read_csv(paths["table"])
    expected = loaded.average(table, by="region", scale="link")
    assert_allclose(link.estimate, expected.estimate, rtol=1e-9)
    table["mean"] = loaded.predict(table)
    assert_allclose(response.estimate, table.groupby("region")["mean"].mean(), rtol=1e-6)
    assert np.all(link.estimate < np.log(response.estimate))
    contrast = facts("compare", model, paths["table"], "--variables", "age=30,50")["effects"][0]
    assert contrast["estimate"] > 0
    slope = facts("slope", model, paths["table"], "--variables", "age", "--scale", "link")
    assert_allclose(slope["effects"][0]["estimate"], 0.03, atol=0.015)


def test_ratios_of_averages(paths):
    model = fitted(paths, "claims")[0]
    command = ("compare", model, paths["table"], "--variables", "region=north,south")
    (found,) = facts(*command, "--comparison", "ratio")["effects"]
    table = pd.read_csv(paths["table"])
    changes = {"region": ["north", "south"]}
    expected = ulmus.load(model).compare(table, changes, comparison="ratio")
    assert found["contrast"] == "south / north"
    assert found["estimate"] == pytest.approx(expected.estimate[0])


def test_export_without_and_with_bounds(paths):
    pytest.importorskip("onnx")
    graph = paths["table"].with_name("m.onnx")
    text = done("export", fitted(paths, "claims")[0], "--onnx", graph).stdout
    assert "estimate, std_error, sd = session.run" in text
    assert "No bounds" in text
    text = done("export", fitted(paths, "price")[0], "--onnx", graph).stdout
    assert "pred_low, pred_high = session.run" in text


@pytest.mark.slow
@pytest.mark.parametrize("target", OPTIONS)
def test_reports(paths, target):
    page = paths["table"].with_name("report.html")
    done("report", fitted(paths, target)[0], paths["table"], "-o", page)
    assert page.stat().st_size > 10_000
    done("report", fitted(paths, target)[0], paths["new"], "-o", page)
