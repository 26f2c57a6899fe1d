"""The command that writes an interactive page."""

import pytest
from command_line import SMALL, done, facts, refusal, sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    sample().to_csv(folder / "t.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", *SMALL, "-o", folder / "m.ulmus")
    return folder


def test_the_page_has_the_name_of_the_target_and_a_title(folder, tmp_path):
    out = tmp_path / "p.html"
    result = facts("explore", folder / "m.ulmus", "-o", out, "--title", "Ozone & co")
    assert result["output"] == str(out)
    assert result["target"] == "y"
    assert result["megabytes"] < 3
    page = out.read_text(encoding="utf-8")
    assert "Ozone &amp; co" in page
    assert '"target": "y"' in page


def test_rows_can_be_left_out(folder, tmp_path):
    facts("explore", folder / "m.ulmus", "-o", tmp_path / "p.html", "--max-rows", "0")
    assert '"rows": null' in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_what_is_refused(folder, tmp_path):
    start = ("explore", folder / "m.ulmus", "-o")
    assert ".html" in refusal(*start, tmp_path / "p.txt")
    assert "folder" in refusal(*start, tmp_path / "none" / "p.html")
    assert "--confidence-level" in refusal(*start, tmp_path / "p.html", "--confidence-level", "95")
    assert "--max-rows" in refusal(*start, tmp_path / "p.html", "--max-rows", "-1")
    assert not list(tmp_path.iterdir())
