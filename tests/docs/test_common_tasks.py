"""The commands of the page of common tasks run on the tables that its code writes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="needs ulmus[cli]")
TEXT = (Path(__file__).parents[2] / "docs" / "guide" / "common_tasks.md").read_text()


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    tables = re.search(r"^```\{testcode\}\n(.*?)^```$", TEXT, re.M | re.S)[1]
    subprocess.run([sys.executable, "-c", tables], cwd=tmp_path, check=True)
    commands = [
        block
        for block in re.findall(r"^```sh\n(.*?)^```$", TEXT, re.M | re.S)
        if "co2" not in block
    ]
    assert len(commands) == 2
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    run = subprocess.run(
        ["sh", "-e", "-c", "".join(commands)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "yes - no" in run.stdout
    assert {"predictions.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}
