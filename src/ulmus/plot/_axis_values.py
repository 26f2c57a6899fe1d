"""Values of a feature along an axis: numbers, dates, or categories at positions 0, 1, ..."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.tables.dates import DATE_TEXT, days_since_1970


class AxisValues(NamedTuple):
    """Positions of values on an axis, and what the axis shows there."""

    positions: FloatArray  # (p,): numbers, days since 1970, or positions of categories
    labels: tuple[str, ...] = ()  # categories at the positions 0, 1, ...
    dates: bool = False  # whether positions are days since 1970, as in matplotlib


def axis_values(column: Any) -> AxisValues:
    """Positions of the values of a column of an effects frame."""
    values = np.asarray(column)
    try:
        return AxisValues(values.astype(float))
    except (TypeError, ValueError):
        texts = [str(value) for value in values]
    if all(map(DATE_TEXT.fullmatch, texts)):
        return AxisValues(days_since_1970(np.array(texts, dtype="datetime64[s]")), dates=True)
    labels = tuple(dict.fromkeys(texts))
    return AxisValues(np.array([labels.index(text) for text in texts], dtype=float), labels)
