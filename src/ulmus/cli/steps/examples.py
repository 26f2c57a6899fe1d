"""The example table of ``ulmus demo``."""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_diabetes


def write_diabetes(path: Path) -> None:
    """Write 442 patients and the progression of their disease as CSV."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X.assign(sex=X["sex"].map({1.0: "a", 2.0: "b"}), progression=y).to_csv(path, index=False)
