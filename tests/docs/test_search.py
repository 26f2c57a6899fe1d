"""The search of the site finds the page of a subject by the words that people know."""

import json
import re

import pytest

pytest.importorskip("sphinx")

# What is searched, and the page that is about it.
SUBJECTS = {
    "autocorrelation": "guide/correlated_errors",
    "serial correlation": "guide/correlated_errors",
    "clustered standard errors": "guide/correlated_errors",
    "random effects": "guide/correlated_errors",
    "bandwidth": "guide/correlated_errors",
    "season": "guide/tables",
    "forecast": "which_error_bar",
    "missing values": "guide/tables",
    "log transform": "guide/targets",
    "poisson": "guide/targets",
    "pit": "guide/calibration",
    "leave-one-out": "guide/alpha",
    "threads": "guide/scale",
    "run time": "guide/timing",
    "export": "guide/model_files",
}


def found_first(index, query):
    """Pages that Sphinx's search shows before those with the words somewhere in the text.

    A title or an entry of the index counts if it contains the query and is at most twice as long.
    """

    def matches(entry):
        return query in entry.lower() and len(query) >= len(entry) / 2

    groups = (index["alltitles"], index["indexentries"])
    entries = [(group, entry) for group in groups for entry in filter(matches, group)]
    places = [place for group, entry in entries for place in group[entry]]
    return {index["docnames"][place[0]] for place in places}


@pytest.fixture(scope="module")
def index(site):
    text = (site / "searchindex.js").read_text()
    return json.loads(re.fullmatch(r"Search\.setIndex\((.*)\);?\s*", text, re.S)[1])


@pytest.mark.slow
@pytest.mark.parametrize("query", SUBJECTS)
def test_the_page_of_a_subject_is_found_first(index, query):
    assert SUBJECTS[query] in found_first(index, query)


@pytest.mark.slow
def test_the_changelog_does_not_bury_the_pages(index):
    changelog = index["docnames"].index("project/changelog")
    pages = [index["terms"][term] for term in ("season", "thread") if term in index["terms"]]
    assert pages
    assert all(changelog not in (one if isinstance(one, list) else [one]) for one in pages)
