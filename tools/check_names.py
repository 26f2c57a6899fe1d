"""One word, one meaning: refuse class names that are defined twice and phrases that were replaced.

``python tools/check_names.py`` prints each offence with its place, and fails if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS = ("src", "docs", "tests", "examples", "benchmarks", "reproduction")
SUFFIXES = {".py", ".md", ".rst", ".txt", ".jinja", ".js", ".css"}
GENERATED = ("docs/gallery/", "docs/reference/generated/")
# Old word -> the term of the field.
REPLACED = {
    r"\bh[aiu]ng(?:s|ing)? together\b": "correlated errors, autocorrelated, spatially correlated",
    r"honest": "diagnostics, calibrated, out-of-sample",
    r"\buntold\b": "quiet",
    r"unpulled": "out-of-fold",
    r"\btruth[ _]values?\b": "boolean",
    r"\bdoors?\b": "integrations",
    r"\bpolitely\b": "handle_errors",
    r"\bscouts?\b": "members used to choose alpha",
    r"\bbias[ _]alarm": "undersmoothing gap",
    r"\bmarginaleffects\.adapted\b": "average, compare, slope",
}


def duplicate_classes(package: Path) -> list[str]:
    """Class names that are defined in more than one place."""
    places = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(package.parent)}:{node.lineno}")
    return [
        f"class {name} is defined {len(found)} times: {', '.join(found)}"
        for name, found in sorted(places.items())
        if len(found) > 1
    ]


def replaced_words(paths: list[Path], root: Path) -> list[str]:
    """Lines with a word that was replaced."""
    offences = []
    for path in paths:
        name = str(path.relative_to(root))
        if path.suffix not in SUFFIXES or name.startswith(GENERATED):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            offences += [
                f"{name}:{number}: {found.group(0)!r}; write {better}"
                for word, better in REPLACED.items()
                if (found := re.search(word, line, flags=re.IGNORECASE))
            ]
    return offences


def main() -> int:
    """Print all offences; 1 if there are any."""
    files = [path for folder in TEXTS for path in sorted((ROOT / folder).rglob("*"))]
    paths = [path for path in files if path.is_file() and "__pycache__" not in path.parts]
    offences = duplicate_classes(ROOT / "src" / "ulmus")
    offences += replaced_words([*paths, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ROOT)
    print("\n".join(offences) or "names: no class is defined twice, no replaced word is used")
    return bool(offences)


if __name__ == "__main__":
    sys.exit(main())
