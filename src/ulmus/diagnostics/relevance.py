"""Relevance of the inputs of a learned map, summed over groups of inputs, and its text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.fit.fit import Fit


def grouped_relevance(
    fit: Fit, groups: Sequence[int], n_groups: int
) -> tuple[FloatArray, FloatArray] | None:
    """Shares of groups of inputs in the prediction, and their standard deviations, (n_groups,).

    ``groups`` is the group of each input: inputs that are encoded from a column are one. Deviations
    are those of independent shares. None without a learned map.
    """
    learned = fit.input_map
    if learned is None or learned.relevance is None or learned.deviation is None:
        return None
    encoded = fit.encoded_columns
    if encoded is not None:  # relevances are those of columns already
        groups = [groups[int(np.argmax(encoded == j))] for j in range(len(learned.relevance))]
    squares = np.bincount(groups, learned.deviation**2, minlength=n_groups)
    shares = np.bincount(groups, learned.relevance, minlength=n_groups)
    return shares.astype(float), np.sqrt(squares)


def relevance_text(share: float, sd: float | None) -> str:
    """A share in the prediction with its standard deviation: 37.9% (sd 5.9%)."""
    return share_text(share) if sd is None else f"{share_text(share)} (sd {share_text(sd)})"


def share_text(share: float) -> str:
    """A share to a tenth of a percent, of which small ones are not rounded to nothing."""
    return "less than 0.1%" if share < 0.0005 else f"{share:.1%}"
