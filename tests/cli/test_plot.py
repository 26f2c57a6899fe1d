"""``ulmus plot``: every display is drawn, in every format, and impossible ones are refused."""

import subprocess
import sys

import pytest
from command_line import SMALL, done, facts, refusal

from ulmus.cli.plot import DisplayChoice
from ulmus.plot import __all__ as names

SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def mapped(small_model):
    """A model with a learned map, and its table."""
    model = small_model / "mapped.ulmus"
    done("fit", small_model / "t.csv", "-t", "y", "-o", model, *SMALL, "--input-map", "ard")
    return model, small_model / "t.csv"


# Displays of a report, which need what it computes.
OF_REPORTS = {"correlogram", "predictionerror"}


def test_displays_are_those_of_the_library():
    found = {name.removesuffix("Display").lower() for name in names if name.endswith("Display")}
    expected = found - OF_REPORTS
    assert {one.value.replace("-", "") for one in DisplayChoice} == expected


@pytest.mark.slow
@pytest.mark.parametrize("display", [one.value for one in DisplayChoice])
def test_every_display_is_drawn(mapped, tmp_path, display):
    result = facts("plot", *mapped, "-o", tmp_path / "f.png", "--display", display)
    assert result["display"] == display
    unused = [note for note in result["notes"] if "is not used" in note]
    assert len(unused) == (display in ("relevance", "residuals"))
    assert (tmp_path / "f.png").read_bytes().startswith(SIGNATURES["png"])


@pytest.mark.parametrize("ending", SIGNATURES)
def test_figures_have_the_format_of_their_ending(mapped, tmp_path, ending):
    output = tmp_path / f"f.{ending}"
    assert done("plot", mapped[0], "-o", output).stdout == f"Wrote {output} (relevance).\n"
    assert output.read_bytes().startswith(SIGNATURES[ending])


def test_a_model_without_a_map_shows_residuals_by_default(small_model, tmp_path):
    result = facts("plot", small_model / "m.ulmus", "-o", tmp_path / "f.png")
    assert result["display"] == "residuals"


def test_features_are_repeated_or_separated(small_model, tmp_path):
    start = ("plot", small_model / "m.ulmus", small_model / "t.csv", "--grid-resolution", 5)
    once = facts(*start, "-o", tmp_path / "a.svg", "--features", "t,count")
    twice = facts(*start, "-o", tmp_path / "b.svg", "--features", "t", "--features", "count")
    assert once["features"] == twice["features"] == ["t", "count"]
    assert once["display"] == "partial-dependence"


REFUSALS = [
    (("--display", "calibration"), "--display calibration needs a table; give it after the model"),
    (("--display", "pie"), "--display must be one of 'prediction', 'partial-dependence', "),
    (("TABLE", "--features", "tt"), "--features names 'tt'"),
    (("TABLE", "--display", "slope", "--features", "t,count"), "--display slope draws one column"),
    (("--display", "residuals", "--features", "t"), "--display residuals has no --features"),
    (("--display", "residuals", "--centered"), "--display residuals has no --centered"),
]


@pytest.mark.parametrize(("words", "message"), REFUSALS, ids=lambda v: str(v)[:50])
def test_impossible_figures_are_refused(small_model, tmp_path, words, message):
    table = small_model / "t.csv"
    words = [table if word == "TABLE" else word for word in words]
    output = tmp_path / "f.png"
    assert refusal("plot", small_model / "m.ulmus", *words, "-o", output).startswith(message)
    assert not output.exists()


def test_other_endings_are_refused(small_model, tmp_path):
    message = refusal("plot", small_model / "m.ulmus", "-o", tmp_path / "f.gif")
    assert message.endswith("must end in .png or .svg or .pdf.")


def test_matplotlib_is_loaded_by_plot_only():
    code = (
        "import sys; from ulmus.cli.app import app\n"
        "app(['plot', '--help'], standalone_mode=False)\n"
        "assert 'matplotlib' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
