"""The scripts for users run, each in a process and a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", [path.name for path in sorted(EXAMPLES.glob("*.py"))])
def test_an_example_runs(name, tmp_path):
    command = [sys.executable, "-W", "error::UserWarning", str(EXAMPLES / name)]
    command += [str(tmp_path / "picture.png")] if name == "picture.py" else []
    environment = os.environ | {"MPLBACKEND": "Agg"}
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert said.returncode == 0, said.stderr
    assert said.stdout
