"""Numbers as a reader wants them: a few digits, and no powers of ten where these are not needed."""

from __future__ import annotations

import math
from typing import Any

DIGITS = 4
# Numbers between these are written out.
SMALLEST, LARGEST = 1e-3, 1e7


def number(value: Any, digits: int = DIGITS) -> str:
    """A number with so many significant digits; a dash where there is none."""
    x = float(value)
    if not math.isfinite(x):
        return "\N{EN DASH}"
    if x == 0:
        return "0"
    if x == int(x) and abs(x) < LARGEST:
        return _minus(f"{int(x):,}")
    if not SMALLEST <= abs(x) < LARGEST:
        return _minus(f"{x:.{digits - 1}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(x))))
    return _minus(f"{x:,.{decimals}f}")


def rounded(value: Any, digits: int = 3) -> str:
    """A number rounded to so many significant digits, also one of thousands."""
    return number(f"{float(value):.{digits}g}", digits)


def fixed(value: Any, decimals: int = 3) -> str:
    """A number with so many decimals; a dash where there is none."""
    x = float(value)
    return _minus(f"{x:.{decimals}f}") if math.isfinite(x) else "\N{EN DASH}"


def share(value: Any) -> str:
    """A share in percent; small ones are not rounded to nothing."""
    x = 100 * float(value)
    if not math.isfinite(x):
        return "\N{EN DASH}"
    if 0 < x < 1:
        return "less than 1%"
    if 99 < x < 100:
        return "more than 99%"
    return f"{x:.0f}%"


def counted(n: int, noun: str, nouns: str | None = None) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number(n)} {noun if n == 1 else nouns or noun + 's'}"


def plural(noun: str) -> str:
    """The plural of a noun that may be followed by "of ...": standardised errors of log(y)."""
    first, of, rest = noun.partition(" of ")
    return f"{first}s{of}{rest}"


def capitalised(text: str) -> str:
    """The same with a capital first letter."""
    return text[:1].upper() + text[1:]


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}") if text.startswith("-") else text
