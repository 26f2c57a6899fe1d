"""Tests of several estimates: pairwise differences, linear combinations and joint equality."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ulmus.core.arrays.backend import FloatArray
from ulmus.core.arrays.linalg import eigh
from ulmus.effects.inference import MAX_JOINT, Estimates, delta_method
from ulmus.exceptions import InputError
from ulmus.intervals.confidence import ErrorBars
from ulmus.messages import ANY, Message, invalid


class WaldTest(NamedTuple):
    """F-test that several combinations are jointly zero."""

    statistic: float  # the F statistic
    dof: tuple[float, float]  # degrees of freedom of its numerator and denominator
    p_value: float  # the p-value


def combined_estimates(estimates: Estimates, hypothesis: Any) -> tuple[Estimates, list[WaldTest]]:
    """Combinations of estimates, and for each output the joint test that all of them are zero.

    For ``"equal"`` the result is a single row with the joint test.
    """
    texts = _texts(estimates)
    if len(texts) < 2:
        raise _error("compares rows, but there is only one", hypothesis)
    if isinstance(hypothesis, str):
        pairs = _pairs(hypothesis, len(texts))
        L = np.zeros((len(pairs), len(texts)))
        for row, (a, b) in enumerate(pairs):
            L[row, b], L[row, a] = 1.0, -1.0
        labels = [f"{texts[b]} - {texts[a]}" for a, b in pairs]
    else:
        L = _hypothesis_matrix(hypothesis, len(texts))
        labels = [_combination(row, texts) for row in L]
    K = estimates.errors.center.shape[1]
    value, jacobian = L @ estimates.errors.center, np.broadcast_to(L, (K, *L.shape))
    combined = delta_method(estimates, {"term": labels}, value, jacobian)
    tests = [wald_test(combined, k) for k in range(K)]
    if isinstance(hypothesis, str) and hypothesis == "equal":
        none, dof = np.full((1, K), np.nan), np.array([[test.dof[1] for test in tests]])
        combined = Estimates({"term": ["all equal"]}, ErrorBars(none, none, dof, none), None)
    return combined, tests


def _error(text: str, hypothesis: Any = ANY, suggestion: str = "") -> InputError:
    shown = hypothesis if isinstance(hypothesis, str) else ANY
    suggestions = (suggestion,) if suggestion else ()
    return InputError(Message("hypothesis", text, "hypothesis", shown, suggestions))


def _pairs(hypothesis: str, q: int) -> list[tuple[int, int]]:
    """Pairs of rows whose differences are tested."""
    if hypothesis == "equal":
        return [(0, i) for i in range(1, q)]
    if hypothesis != "pairwise":
        text = f"must be 'pairwise', 'equal' or a matrix with a column for each of the {q} rows"
        raise InputError(invalid("hypothesis", text, hypothesis))
    pairs = list(combinations(range(q), 2))
    if len(pairs) > MAX_JOINT:
        text = f"results in {len(pairs)} pairs of {q} rows, and their joint covariance is limited"
        remedy = "use fewer rows, or give a matrix with the combinations to test"
        raise _error(f"{text} to {MAX_JOINT}", hypothesis, remedy)
    return pairs


def wald_test(estimates: Estimates, k: int) -> WaldTest:
    """Joint test that the estimates of output k are zero."""
    assert estimates.covariance is not None
    C, e = estimates.covariance[k], estimates.errors.center[:, k]
    values, vectors = eigh(C)
    kept = values > 1e-10 * max(values[-1], 0.0)  # smaller eigenvalues are round-off
    rank = int(np.sum(kept))
    dof = float(np.min(estimates.errors.dof[:, k]))
    if rank == 0:
        all_zero = bool(np.all(e == 0))
        return WaldTest(0.0 if all_zero else np.inf, (0.0, dof), 1.0 if all_zero else 0.0)
    projected = vectors[:, kept].T @ e
    F = float(np.sum(projected**2 / values[kept])) / rank
    tail = stats.chi2.sf(F * rank, rank) if np.isinf(dof) else stats.f.sf(F, rank, dof)
    return WaldTest(F, (float(rank), dof), float(tail))


def holm(p_values: FloatArray) -> FloatArray:
    """Adjusted p-values (Holm, 1979) of each column of (q, K)."""
    order = np.argsort(p_values, axis=0)
    m = len(p_values)
    scaled = np.take_along_axis(p_values, order, axis=0) * np.arange(m, 0, -1)[:, None]
    adjusted = np.minimum(np.maximum.accumulate(scaled, axis=0), 1.0)
    out = np.empty_like(p_values)
    np.put_along_axis(out, order, adjusted, axis=0)
    return out


def _texts(estimates: Estimates) -> list[str]:
    """A name for each estimate, from the label columns that vary."""
    columns = [values for values in estimates.labels.values() if len(set(map(str, values))) > 1]
    n = len(estimates.errors.center)
    if not columns:
        return [str(i) for i in range(n)]
    return [", ".join(str(values[i]) for values in columns) for i in range(n)]


def _combination(row: FloatArray, texts: list[str]) -> str:
    parts = [f"{weight:+g} ({texts[i]})" for i, weight in enumerate(row) if weight]
    return " ".join(parts) if parts else "0"


def _hypothesis_matrix(hypothesis: Any, q: int) -> FloatArray:
    try:
        L = np.atleast_2d(np.asarray(hypothesis, dtype=float))
    except (TypeError, ValueError) as error:
        raise _error("must be 'pairwise', 'equal' or a matrix of numbers") from error
    if L.ndim != 2 or L.shape[1] != q or L.shape[0] == 0 or not np.all(np.isfinite(L)):
        text = f"must have at least one row, and a finite number for each of the {q} rows"
        raise _error(f"{text}, got shape {L.shape}")
    return L
