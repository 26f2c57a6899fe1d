"""The README: what it is comes before any table, its links lead somewhere, its code runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
ONE_SCREEN = 45  # lines


def test_the_first_screen_is_for_a_stranger():
    screen = "\n".join(TEXT.splitlines()[:ONE_SCREEN])
    order = ["# ulmus", "ulmus is for", "docs/picture.png", "make install", "```python", "start.md"]
    places = [screen.index(text) for text in order]
    assert places == sorted(places)
    assert "make demo" in screen
    assert "| --- |" not in screen
    first_block = re.search(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)[1]
    assert len([line for line in first_block.splitlines() if line]) <= 10


def test_benchmarks_come_after_use():
    titles = re.findall(r"^## (.*)$", TEXT, re.M)
    use = ("A table of your own", "What each error bar covers", "Large tables")
    assert all(titles.index(title) < titles.index("Benchmarks") for title in use)


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#\s]+)", TEXT)
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.slow
def test_the_first_code_runs(capsys):
    pytest.importorskip("pandas")
    code = re.search(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)[1]
    exec(code, {})
    assert "30 - 25" in capsys.readouterr().out
