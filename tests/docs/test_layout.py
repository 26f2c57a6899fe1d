"""The pages of the site in a real browser: nothing is cut, nothing is printed over other text."""

import re
import runpy
import warnings
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("selenium.webdriver", reason="needs selenium")
layout = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "check_layout.py"))
needs_browser = pytest.mark.skipif(
    layout["CHROMIUM"] is None or layout["DRIVER"] is None, reason="needs chromium and chromedriver"
)
WIDE = (
    "<body><div class='bd-article-container'><div class='bd-article'>"
    "<pre style='width: 200px; overflow: auto'>{}</pre></div></div></body>"
)


@pytest.fixture(scope="module")
def driver():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with layout["browser"]() as driver:
            yield driver


@pytest.mark.slow
@pytest.mark.browser
@needs_browser
def test_every_page_fits_the_screen(site, driver):
    pages = layout["pages_of"](site)
    assert len(pages) > 100
    assert layout["too_wide"](driver, pages) == []


@pytest.mark.browser
@needs_browser
def test_the_check_of_widths_can_fail(driver, tmp_path):
    for name, text in (("short", "a"), ("long", "a" * 80)):
        (tmp_path / f"{name}.html").write_text(WIDE.format(text))
    pages = layout["pages_of"](tmp_path)
    found = layout["too_wide"](driver, pages)
    assert len(found) == len(layout["WIDTHS"])
    assert all("long.html at" in text and "PRE" in text for text in found)


@pytest.mark.slow
def test_footnotes_are_not_numbered_lists(site):
    """The initials of an author, "C. D.", became numbers that were printed over the footnote's."""
    notes = [
        note
        for page in site.rglob("*.html")
        for note in re.findall(r"<aside class=\"footnote.*?</aside>", page.read_text(), re.S)
    ]
    assert len(notes) > 5
    assert [note for note in notes if "<ol" in note] == []
