"""The scripts for users: those beside the gallery run, those of the gallery are well formed.

Building the site runs the gallery.
"""

import ast
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
GALLERY = sorted((EXAMPLES / "gallery").glob("*/plot_*.py"))
# tests/integrations/test_ecosystem.py runs all parts of ecosystem.py.
SCRIPTS = sorted(set(EXAMPLES.glob("*.py")) - {EXAMPLES / "ecosystem.py"})


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-W", "error::UserWarning", str(path)]
    command += [str(tmp_path / "picture.png")] if path.name == "picture.py" else []
    environment = os.environ | {"MPLBACKEND": "Agg"}
    process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert process.returncode == 0, process.stderr
    assert process.stdout


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_page_of_the_gallery_is_well_formed(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = (ast.get_docstring(tree) or "").splitlines()
    assert any(rule == "=" * len(title) for title, rule in pairwise(lines) if title), "a title"

    called = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {node.func.attr for node in called if isinstance(node.func, ast.Attribute)}
    names |= {word.arg for node in called for word in node.keywords}
    displays = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not any(name.endswith("Display") for name in displays):
        assert {"xlabel", "set_xlabel"} & names, "the axis has a name"
        assert {"ylabel", "set_ylabel"} & names, "the axis has a name"
    assert {"title", "suptitle", "set_title"} & names, "a figure states its message"


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_a_page_of_the_gallery_ends_with_what_is_next(path):
    _, _, last = path.read_text(encoding="utf-8").rpartition("# Next\n# ----\n")
    assert 1 <= last.count(":doc:") + last.count(":ref:") <= 4
    assert all(line.startswith("#") for line in last.splitlines()), "nothing comes after it"
