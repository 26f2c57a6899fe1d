"""The site as its builders make it, from a copy of its sources."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """A copy of all that the site is built from: building writes beside its sources."""
    tmp_path = tmp_path_factory.mktemp("site")
    built = shutil.ignore_patterns("generated", "__pycache__")
    for folder in ("docs", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=built)
    shutil.rmtree(tmp_path / "docs" / "gallery", ignore_errors=True)
    (tmp_path / "benchmarks").mkdir()
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture(scope="session")
def build(sources):
    """Function that returns the folder a builder of Sphinx has filled; every warning is an error.

    Builders share what they have read.
    """

    def build(builder):
        target, read = sources / "build" / builder, str(sources / "build" / "doctrees")
        options = ["-W", "--keep-going", "-q", "-D", "plot_gallery=0", "-d", read, "-b"]
        run = subprocess.run(
            [sys.executable, "-m", "sphinx", *options, builder, sources / "docs", target],
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return target

    return build


@pytest.fixture(scope="session")
def site(build):
    """The pages, without running the gallery."""
    return build("html")
