"""Mangled tables and model files end in one clear line: the first cases of ``make fuzz``."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # all tests share the damaged files

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytest.importorskip("typer")


@pytest.fixture(scope="module")
def fuzz():
    """The fuzzer, with its folder on the path only while it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("fuzz")


@pytest.fixture(scope="module")
def paths(fuzz, tmp_path_factory):
    """Good files."""
    return fuzz.good_files(tmp_path_factory.mktemp("fuzz"))


def test_mangled_files_are_refused_or_do_no_harm(fuzz, paths):
    found = [fuzz.outcome(fuzz.Case(number), paths) for number in range(40)]
    assert [f"{one.case}: {one.problem}" for one in found if one.problem] == []
    assert {one.case.kind for one in found} == set(fuzz.KINDS)
    assert sum(one.code == 2 for one in found) > 20
    assert len(list(fuzz.report(found))) == 15


def test_every_way_changes_its_file(fuzz, paths):
    for kind, ways in fuzz.WAYS.items():
        data = paths[kind].read_bytes()
        for way in ways:
            rng = np.random.default_rng(0)
            assert any(way(rng, data) != data for _ in range(5)), f"{kind}, {way.__name__}"


def test_a_new_seal_is_the_right_one(fuzz, paths):
    """Edits with new checksums are refused for their content, not for their checksums."""
    mangling = importlib.import_module("mangling")
    document, tensors = mangling._taken_apart(paths["ulmus"].read_bytes())
    sealed = mangling._sealed(document, tensors)
    assert sealed == document
    again = mangling._taken_apart(mangling._joined(sealed, tensors))
    assert again == (document, tensors)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda text: text, None),
        (lambda text: text.replace("-", ""), "bounds in the wrong order"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "59 rows for 60 (60, 0)"),
        (lambda text: text.replace(text.splitlines()[3].split(",")[0], "inf"), "not finite"),
    ],
)
def test_the_fuzzer_sees_what_is_wrong(fuzz, paths, tmp_path, spoil, problem):
    import pandas as pd

    good = paths["csv"].with_name("good.predictions.csv").read_text()
    (tmp_path / "o.csv").write_text(spoil(good))
    facts, frame = {"rows": 60, "rows_excluded": 0}, pd.read_csv(tmp_path / "o.csv")
    found = fuzz._problem_of_predictions(frame, facts, paths["csv"])
    assert found is None if problem is None else problem in found
