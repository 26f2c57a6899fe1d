"""Correlated errors on the command line: columns of times, coordinates and groups."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer", reason="needs ulmus[cli]")
pytest.importorskip("pyarrow", reason="needs ulmus[cli]")
from command_line import PLAIN, SMALL, done, facts, refusal
from numpy.testing import assert_allclose

import ulmus
from ulmus.noise import AR1, Clustered, Exponential, Matern, NeweyWest

N = 120


@pytest.fixture(scope="module")
def correlated_frame():
    """Two inputs, a date, coordinates, sites in words, and noise that fades from day to day."""
    rng = np.random.default_rng(0)
    e = rng.standard_normal(N)
    for i in range(1, N):
        e[i] = 0.8 * e[i - 1] + 0.6 * e[i]
    x = rng.uniform(-1, 1, N)
    steps = pd.to_timedelta(np.cumsum(rng.integers(1, 4, N)), unit="D")
    columns = {
        "x": x,
        "east": rng.uniform(0, 1, N),
        "north": rng.uniform(0, 1, N),
        "day": (pd.Timestamp("2024-01-01") + steps).date,
        "site": np.repeat(list("cabfed"), N // 6),
        "plot": np.arange(N) // 10,
    }
    return pd.DataFrame(columns).assign(y=np.sin(3 * x) + 0.5 * e)


@pytest.fixture
def csv(correlated_frame, tmp_path):
    correlated_frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def fit_command(csv, *options):
    """The estimator of a model file that a command wrote."""
    path = csv.parent / "model.ulmus"
    done("fit", csv, "-t", "y", "-o", path, *PLAIN, *options)
    return ulmus.load(path)


# ---------------------------------------------------------------- which noise the columns mean


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "noise"),
    [
        (("--time", "day"), AR1(time="day")),
        (("--time", "day", "--drop", "day"), AR1()),
        (("--noise", "ar1"), AR1()),
        (("--time", "day", "--noise", "newey-west"), NeweyWest(time="day")),
        (("--coords", "east,north"), Exponential(("east", "north"))),
        (("--coords", "east", "--coords", "north"), Exponential(("east", "north"))),
        (("--coords", "east,north", "--drop", "north"), Exponential()),
        (("--coords", "east,north", "--noise", "matern"), Matern(("east", "north"))),
        (("--groups", "plot"), Clustered("plot")),
        (("--groups", "site"), Clustered("site")),
        (("--time", "day", "--groups", "plot"), AR1(time="day") * Clustered("plot")),
        (
            ("--time", "day", "--groups", "site", "--noise", "ar1"),
            AR1(time="day") * Clustered("site"),
        ),
        (
            ("--time", "day", "--coords", "east,north"),
            Exponential(("east", "north")) + AR1(time="day"),
        ),
        (("--noise", "heteroskedastic"), "heteroskedastic"),
        ((), "auto"),
    ],
    ids=str,
)
def test_columns_mean_a_noise(csv, options, noise):
    assert fit_command(csv, *options).noise == noise


@pytest.mark.slow
def test_columns_stay_inputs_unless_dropped(csv):
    assert "day" in fit_command(csv, "--time", "day").feature_names_in_
    assert "day" not in fit_command(csv, "--time", "day", "--drop", "day").feature_names_in_
    assert "site=a" in fit_command(csv, "--groups", "site").columns_.features


@pytest.mark.slow
def test_a_dropped_column_still_gives_the_times(csv, correlated_frame):
    model = fit_command(csv, "--time", "day", "--drop", "day,site", "--no-rows")
    inputs = correlated_frame[["x", "east", "north", "plot"]].astype(float)
    days = pd.to_datetime(correlated_frame["day"]).to_numpy()
    same = ulmus.ELMEnsembleRegressor(2, 10, noise=AR1(), input_map=None, random_state=0)
    same.fit(inputs, correlated_frame["y"], time=days)
    assert_allclose(model.noise_covariance_.values, same.noise_covariance_.values, rtol=1e-6)
    assert_allclose(model.predict(inputs), same.predict(inputs), rtol=1e-8)


@pytest.mark.slow
def test_the_estimated_covariance_is_printed(csv):
    result = facts("fit", csv, "-t", "y", "-o", csv.parent / "m.ulmus", *PLAIN, "--time", "day")
    assert "along time over" in result["summary"]["noise_covariance"]


@pytest.mark.slow
def test_correlated_residuals_are_printed_once_with_the_names_of_options(csv):
    output = done("fit", csv, "-t", "y", "-o", csv.parent / "m.ulmus", *SMALL, "--drop", "day")
    summary = " ".join(output.stdout.split())
    for text in ("--time", "--groups for clusters", "--coords for spatial data"):
        assert text in summary
    assert output.output.count("successive rows") == 1
    assert "AR1" not in output.output


@pytest.mark.slow
def test_a_report_of_rows_in_space(csv):
    pytest.importorskip("jinja2", reason="reports need jinja2")
    path = csv.parent / "report.html"
    fit_command(csv, "--coords", "east,north", "--report", path)
    assert "Variogram of leave-one-out residuals" in path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_predictions_with_kriged_residuals(csv, correlated_frame):
    model, out = fit_command(csv, "--time", "day"), csv.parent / "out.csv"
    options = ("-o", out, "--confidence-level", 0.9, "--residual-kriging")
    start = ("predict", csv.parent / "model.ulmus", csv)
    done(*start, *options)
    found, X = pd.read_csv(out), pd.read_csv(csv)
    kriged = model.predict(X, residual_kriging=True)
    assert not np.allclose(kriged, model.predict(X))
    assert_allclose(found["estimate"], kriged)
    bounds = model.predict_interval(X, 0.9, residual_kriging=True)
    assert_allclose(found[["pred_low", "pred_high"]], bounds)
    assert_allclose(found["conf_low"], model.summary_frame(X, confidence_level=0.9)["conf_low"])
    message = refusal(*start, *options, "--threshold", 1)
    assert "--residual-kriging does not apply to --threshold; omit one of them." in message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "--residual-kriging requires correlated errors; use --time or --coords"),
        (("--time", "day"), "without --drop"),
    ],
)
def test_kriged_residuals_need_a_covariance_and_its_columns(csv, options, text):
    fit_command(csv, *options, "--drop", "day")
    message = refusal("predict", csv.parent / "model.ulmus", csv, "--residual-kriging")
    assert text in message


# ---------------------------------------------------------------- block by block


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--time", "day"),
        ("--time", "day", "--drop", "day"),
        ("--groups", "site"),
        ("--groups", "plot", "--noise", "clustered"),
        ("--time", "day", "--groups", "site", "--missing", "drop"),
    ],
    ids=" ".join,
)
def test_blocks_give_the_same_numbers(csv, options):
    options = (*options, "--input-map", "auto")
    whole, streamed = (fit_command(csv, *options, how) for how in ("--in-memory", "--stream"))
    assert streamed.noise == whole.noise
    assert streamed.fitted_.rows is None
    points = pd.read_csv(csv)[::7]
    # What choosing the map adds to the variance is known only in memory.
    expected = whole.predict(points)
    assert_allclose(streamed.predict(points), expected, rtol=1e-5, atol=1e-5 * np.std(expected))
    X = whole.fitted_.rows.data.X[::7]
    ours, theirs = (model.fitted_.parts(X).U for model in (streamed, whole))
    assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.mean(theirs))


@pytest.mark.slow
def test_missing_places(correlated_frame, tmp_path):
    frame = correlated_frame.copy()
    frame.loc[7, "site"], frame.loc[30, "day"] = None, None
    csv = tmp_path / "table.csv"
    frame.to_csv(csv, index=False)
    command = ("fit", csv, "-t", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    command += ("--drop", "site,day", "--time", "day", "--groups", "site")
    assert "data row 8 has no value of day, site" in refusal(*command, "--missing", "error")
    for how in ("--in-memory", "--stream"):
        result = facts(*command, how, "--missing", "drop")
        assert result["rows_excluded"] == 2
        assert result["summary"]["n_rows"] == N - 2


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--noise", "pink"), "--noise must be one of auto, "),
        (("--noise", "clustered"), "--noise clustered needs --groups"),
        (("--noise", "exponential"), "--noise exponential needs --coords"),
        (("--noise", "ar1", "--coords", "east"), "--coords has no use with --noise ar1"),
        (("--noise", "auto", "--time", "day"), "--time has no use with --noise auto"),
        (("--coords", "east", "--groups", "site"), "--groups has no use with --noise exponential"),
        (("--time", "hour"), "hour"),
        (("--time", "site"), "--time site contains categories; name a column of numbers or dates"),
        (("--coords", "east,day"), "--coords day contains dates; name a column of numbers"),
        (("--time", "y"), "y is the target"),
        (("--coords", "east,north", "--stream"), "use --in-memory"),
        (("--groups", "x", "--stream"), "sort the table"),
    ],
    ids=str,
)
def test_refusals(csv, options, words):
    if "--stream" in options and "--groups" in options:
        frame = pd.read_csv(csv)
        frame.assign(x=frame["x"].round(1)).to_csv(csv, index=False)
    message = refusal("fit", csv, "-t", "y", "-o", csv.parent / "m.ulmus", *PLAIN, *options)
    assert words in message
    assert not (csv.parent / "m.ulmus").exists()


def test_the_help_names_them():
    text = done("fit", "--help").output
    for option in ("--time", "--coords", "--groups", "Correlated errors", "newey-west"):
        assert option in text
