"""Data frames as aligned text, none of which is cut off."""

from __future__ import annotations

from typing import Any

# Significant digits of numbers; probabilities of tests need fewer.
DIGITS, DIGITS_OF = 4, {"p_value": 3}


def printed_frame(frame: Any, digits: int = DIGITS) -> str:
    """The rows of a frame under the names of its columns; numbers are aligned on the right."""
    columns = []
    for name in frame.columns:
        number = frame[name].dtype.kind == "f"
        width = DIGITS_OF.get(name, digits)
        cells = [f"{value:.{width}g}" if number else str(value) for value in frame[name]]
        texts = [str(name), *cells]
        longest = max(map(len, texts))
        columns.append([text.rjust(longest) if number else text.ljust(longest) for text in texts])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))
