"""What all tests of the command line share."""

import pytest
from command_line import PLAIN, done, sample

from ulmus.cli import console


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No stage is printed for lasting long, however busy the machine."""
    monkeypatch.setattr(console, "PATIENCE", 600.0)


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """A folder with the sample as ``t.csv``, and a model of it as ``m.ulmus``."""
    folder = tmp_path_factory.mktemp("small")
    sample().to_csv(folder / "t.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", "-o", folder / "m.ulmus", *PLAIN)
    return folder
