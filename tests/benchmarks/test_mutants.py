"""The tables of the mutation benchmark name modules, functions and test files that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "src" / "ulmus" / "core"


@pytest.fixture(scope="module")
def mutants():
    """The benchmark, with its folder on the path only while it is imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        return importlib.import_module("mutants")


def test_modules_of_the_table_exist(mutants):
    assert [name for name in mutants.FIRST if not (CORE / f"{name}.py").exists()] == []


def test_test_files_exist(mutants):
    modules = [path.relative_to(CORE).with_suffix("") for path in CORE.rglob("*.py")]
    files = {file for module in modules for file in mutants.tests_of(str(module))}
    assert [file for file in sorted(files) if not Path(file).exists()] == []


def test_sizes_that_change_speed_only_are_constants_of_the_core(mutants):
    text = "\n".join(path.read_text() for path in CORE.rglob("*.py"))
    missing = [name for name in mutants.SPEED_ONLY if not re.search(rf"^{name}\b.* = ", text, re.M)]
    assert missing == []


def test_mutants_compile(mutants):
    path = CORE / "ridge" / "residuals.py"
    made, source = mutants.mutants_of(path, "ridge/residuals"), path.read_bytes()
    assert len(made) > 10
    for one in made:
        compile(source[: one.start] + one.after.encode() + source[one.end :], path, "exec")
