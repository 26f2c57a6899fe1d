"""Every decomposition has a fallback for matrices at which LAPACK fails to converge."""

import re
from pathlib import Path

import ulmus

ITERATIVE = re.compile(r"linalg\.(eigh|eigvalsh|eig|svd|svdvals|lstsq|pinv)\(")


def test_iterative_decompositions_are_those_of_one_module():
    """A LinAlgError of another one would reach the user."""
    source = Path(ulmus.__file__).parent
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if ITERATIVE.search(path.read_text())
    }
    assert found == {"core/arrays/linalg.py"}
