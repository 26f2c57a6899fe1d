"""Tests about several answers: differences between pairs, combinations, and all being equal."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy import stats

from ulmus.effects.inference import MOST_TOGETHER, Answer, transformed
from ulmus.intervals.confidence import Errors

FloatArray = npt.NDArray[np.float64]

# Directions of a covariance with a smaller share of its largest eigenvalue are not tested.
SMALLEST_SHARE = 1e-10


class Wald(NamedTuple):
    """A joint test that several combinations are zero: F, its degrees of freedom, and p."""

    statistic: float
    dof: tuple[float, float]
    p_value: float


def combined(given: Answer, hypothesis: Any) -> tuple[Answer, list[Wald]]:
    """Combinations of answers, and for each output the joint test that all of them are zero.

    ``"equal"`` has no combinations of its own: its one row is the joint test.
    """
    texts = _texts(given)
    if len(texts) < 2:
        raise ValueError(f"hypothesis={_shown(hypothesis)} compares rows, but there is only one.")
    if isinstance(hypothesis, str):
        if hypothesis not in ("pairwise", "equal"):
            raise ValueError(
                f"hypothesis must be 'pairwise', 'equal' or a matrix with a column for each of the "
                f"{len(texts)} rows, got {hypothesis!r}."
            )
        pairs = list(combinations(range(len(texts)), 2))
        if hypothesis == "equal":
            pairs = [(0, i) for i in range(1, len(texts))]
        if len(pairs) > MOST_TOGETHER:
            raise ValueError(
                f"hypothesis='pairwise' has {len(pairs)} pairs of {len(texts)} rows, and their "
                f"joint covariance is made for at most {MOST_TOGETHER}; ask for fewer rows, or "
                "give a matrix with the combinations you need."
            )
        L = np.zeros((len(pairs), len(texts)))
        for row, (a, b) in enumerate(pairs):
            L[row, b], L[row, a] = 1.0, -1.0
        labels = [f"{texts[b]} - {texts[a]}" for a, b in pairs]
    else:
        L = _checked_matrix(hypothesis, len(texts))
        labels = [_combination(row, texts) for row in L]
    K = given.errors.center.shape[1]
    jacobian = np.broadcast_to(L, (K, *L.shape))
    made = transformed(given, {"term": labels}, L @ given.errors.center, jacobian)
    tests = [wald(made, k) for k in range(K)]
    return (_one_row(tests), tests) if hypothesis_is(hypothesis, "equal") else (made, tests)


def hypothesis_is(hypothesis: Any, name: str) -> bool:
    """Whether a hypothesis is the one of this name."""
    return isinstance(hypothesis, str) and hypothesis == name


def wald(given: Answer, k: int) -> Wald:
    """Joint test that the answers of output k are zero."""
    assert given.covariance is not None
    C, e = given.covariance[k], given.errors.center[:, k]
    values, vectors = scipy.linalg.eigh(C)
    kept = values > SMALLEST_SHARE * max(values[-1], 0.0)
    rank = int(np.sum(kept))
    dof = float(np.min(given.errors.dof[:, k]))
    if rank == 0:
        same = bool(np.all(e == 0))
        return Wald(0.0 if same else np.inf, (0.0, dof), 1.0 if same else 0.0)
    along = vectors[:, kept].T @ e
    F = float(np.sum(along**2 / values[kept])) / rank
    tail = stats.chi2.sf(F * rank, rank) if np.isinf(dof) else stats.f.sf(F, rank, dof)
    return Wald(F, (float(rank), dof), float(tail))


def holm(p_values: FloatArray) -> FloatArray:
    """Adjusted p-values (Holm, 1979) of each column of (q, K)."""
    order = np.argsort(p_values, axis=0)
    m = len(p_values)
    scaled = np.take_along_axis(p_values, order, axis=0) * np.arange(m, 0, -1)[:, None]
    adjusted = np.minimum(np.maximum.accumulate(scaled, axis=0), 1.0)
    out = np.empty_like(p_values)
    np.put_along_axis(out, order, adjusted, axis=0)
    return out


def _one_row(tests: list[Wald]) -> Answer:
    none = np.full((1, len(tests)), np.nan)
    dof = np.array([[test.dof[1] for test in tests]])
    return Answer({"term": ["all equal"]}, Errors(none, none, dof, none), None)


def _texts(given: Answer) -> list[str]:
    """What each answer is called, by the labels that differ."""
    columns = [values for values in given.labels.values() if len(set(map(str, values))) > 1]
    n = len(given.errors.center)
    if not columns:
        return [str(i) for i in range(n)]
    return [", ".join(str(values[i]) for values in columns) for i in range(n)]


def _combination(row: FloatArray, texts: list[str]) -> str:
    parts = [f"{weight:+g} ({texts[i]})" for i, weight in enumerate(row) if weight]
    return " ".join(parts) if parts else "0"


def _checked_matrix(hypothesis: Any, q: int) -> FloatArray:
    try:
        L = np.atleast_2d(np.asarray(hypothesis, dtype=float))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"hypothesis must be 'pairwise', 'equal' or a matrix of numbers, got "
            f"{_shown(hypothesis)}."
        ) from error
    if L.ndim != 2 or L.shape[1] != q or L.shape[0] == 0 or not np.all(np.isfinite(L)):
        raise ValueError(
            f"hypothesis must have a row, and a finite number for each of the {q} rows, got "
            f"shape {L.shape}."
        )
    return L


def _shown(hypothesis: Any) -> str:
    return repr(hypothesis) if isinstance(hypothesis, str) else "a matrix"
