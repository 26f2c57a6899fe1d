"""What all tests of the command line share."""

import pytest

from ulmus.cli import console


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """No stage is printed for lasting long, however busy the machine."""
    monkeypatch.setattr(console, "PATIENCE", 600.0)
