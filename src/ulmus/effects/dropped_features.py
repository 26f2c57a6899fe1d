"""Questions about columns that the map of the inputs has left out, which get a warning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ulmus.core.fit.fit import Fit
from ulmus.effects.estimands import Estimand, Move
from ulmus.exceptions import DegenerateFitWarning, warn


def warn_about_left_out(fit: Fit, question: Estimand) -> None:
    """Warn of columns asked about on which the fit does not depend, by the choice of its map."""
    if fit.input_map is None:
        return
    used, sloping = _used(fit, levels=True), _used(fit, levels=False)
    lost = [move for move in question.moves if _misses(move, used)]
    if lost:
        origin = "given" if fit.input_map.kind == "given" else "learned"
        warn(
            f"the {origin} map of the inputs left out {_named(lost, question.moves)}, so that the "
            "effect is exactly 0 in this fit, and the error bar does not know that this was a "
            "choice; fit with input_map=None to ask about a given column.",
            DegenerateFitWarning,
        )
    flat = [m for m in question.moves if m.slope and m not in lost and _misses(m, sloping)]
    if flat:
        warn(
            f"the map of the inputs keeps only levels of {_named(flat, question.moves)}, which are "
            "flat, so that the slope is exactly 0; compare values of the column instead.",
            DegenerateFitWarning,
        )


def _used(fit: Fit, *, levels: bool) -> np.ndarray:
    """Which inputs of the table the map lets through, with or without their levels, shape (d,)."""
    assert fit.input_map is not None
    inputs = fit.ensemble.layer.inputs
    kept = np.any(fit.input_map.matrix != 0, axis=1)
    if not levels:
        n_levels = sum(int(part.values.shape[0]) for part in inputs.levels)
        kept[len(kept) - n_levels :] = False
    return np.bincount(inputs.origin, kept, minlength=int(inputs.offset.shape[0])) > 0


def _misses(move: Move, used: np.ndarray) -> bool:
    """Whether a change moves inputs, but none of those that are used."""
    if np.all(used):
        return False
    moved = move.moved()
    return bool(np.any(moved) and not np.any(moved & used))


def _named(some: Sequence[Move], all_moves: Sequence[Move]) -> str:
    """Columns in words; with the change where others of the same column are not among them."""
    names = []
    for move in some:
        whole = all(other in some for other in all_moves if other.term == move.term)
        names.append(f"{move.term!r}" if whole else f"{move.term!r} ({move.how})")
    return ", ".join(dict.fromkeys(names))
