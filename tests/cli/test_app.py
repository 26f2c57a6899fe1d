"""Imports of the command line, and the error where an extra is missing."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_missing_extra_is_named():
    code = "import sys; sys.modules['typer'] = None; import ulmus.cli; ulmus.cli.main()"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.returncode == 1
    assert output.stderr.strip().endswith("pip install 'ulmus[cli]'")


@pytest.mark.slow
def test_importing_ulmus_loads_no_extra():
    extras = ("typer", "rich", "matplotlib", "torch")
    code = f"import sys, ulmus; print([m for m in {extras} if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.stdout.strip() == "[]"
