"""What stands on the first pages is true: commands print it, and scripts draw it."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("typer", reason="needs ulmus[cli]")
pytest.importorskip("jinja2", reason="needs ulmus[report]")

DOCS = Path(__file__).parents[2] / "docs"
# The section that installs is for a clone and a network; the test begins behind it.
TEXT = (DOCS / "start.md").read_text().partition("## A table")[2]
BLOCK = re.compile(r"^```(sh|text|\{testcode\})\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def blocks():
    """Kind and text of each block that is run or printed, in the order of the page."""
    return BLOCK.findall(TEXT)


@pytest.fixture(scope="module")
def folder(blocks, tmp_path_factory):
    """A folder with the tables that the page writes."""
    folder = tmp_path_factory.mktemp("start")
    code = next(text for kind, text in blocks if kind == "{testcode}")
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    return folder


def printed(command, folder):
    """Standard output of a block of commands, with the `ulmus` of this environment."""
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {"COLUMNS": "100"}
    environment["PATH"] = os.pathsep.join([programs, os.environ["PATH"]])
    result = subprocess.run(
        ["sh", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def assert_same(shown, given):
    """The same words, and numbers that agree to a hundredth."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", given).split()
    for here, there in zip(NUMBER.findall(shown), NUMBER.findall(given), strict=True):
        assert math.isclose(float(here), float(there), rel_tol=0.01), (here, there)


@pytest.mark.slow
def test_commands_print_what_the_page_shows(blocks, folder):
    kinds = [kind for kind, _ in blocks if kind != "{testcode}"]
    assert kinds == ["sh", "text"] * 4  # every command has its output below it
    texts = [text for kind, text in blocks if kind != "{testcode}"]
    for command, shown in zip(texts[::2], texts[1::2], strict=True):
        assert_same(shown, printed(command, folder))
    assert (folder / "report.html").stat().st_size > 100_000


def test_both_tabs_show_the_same_summary():
    summaries = re.findall(r"^ELMEnsembleRegressor: .*?checks are ok\.$", TEXT, re.M | re.S)
    assert len(summaries) == 2
    assert summaries[0] == summaries[1]


def test_a_comparison_of_outputs_can_fail():
    assert_same("sd 54.7 of 400 rows", "sd 54.71 of  400 rows")
    with pytest.raises(AssertionError):
        assert_same("sd 54.7 of 400 rows", "sd 56.7 of 400 rows")
    with pytest.raises(AssertionError):
        assert_same("sd 54.7 of 400 rows", "sd 54.7 of 400 lines")


def test_the_decision_tree_is_the_one_of_its_script_and_of_the_list(tmp_path):
    picture = tmp_path / "tree.svg"
    subprocess.run([sys.executable, str(DOCS / "decision_tree.py"), str(picture)], check=True)
    assert picture.read_text() == (DOCS / "_static" / "decision_tree.svg").read_text()
    listed = (DOCS / "which_error_bar.md").read_text()
    texts = ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")
    calls = [text.text for text in texts if text.get("font-family") == "monospace"]
    assert len(calls) > 10
    for call in calls:
        assert call.rpartition(", ")[2] in listed  # "any of these, simultaneous=True"


def test_the_table_of_predictions_explains_the_numbers_above_it():
    """It had those of an earlier fit."""
    section = TEXT.partition("## Predict")[2].partition("## Test")[0]
    table = section.partition("| column | first row |")[2]
    shown = NUMBER.findall(section.partition("```{testoutput}")[2].partition("```\n")[0])
    explained = [row.split("|")[2] for row in re.findall(r"^\| `.*$", table, re.M)]
    numbers = [number for cell in explained for number in NUMBER.findall(cell)]
    assert len(numbers) == 7
    assert [number for number in numbers if number not in shown] == []


@pytest.mark.parametrize("case", ["future time", "mean over a region", "next patient"])
def test_the_tree_has_a_branch_and_an_example_for(case):
    page = (DOCS / "which_error_bar.md").read_text()
    assert case in (DOCS / "_static" / "decision_tree.svg").read_text()
    section = page.lower().partition(f"### a {case}\n")[2] or page.partition(f"### The {case}\n")[2]
    assert "```{testoutput}" in section.partition("\n## ")[0].partition("\n### ")[0]
