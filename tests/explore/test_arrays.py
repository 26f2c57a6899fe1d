"""Matrices as whole numbers, and what their rounding costs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ulmus.explore.arrays import lower_triangle, quantised_rows, refined_rows, restored_rows


@pytest.mark.parametrize(("bits", "error"), [(16, 2e-5), (32, 3e-10)])
def test_rows_are_rounded_to_their_largest_entry(bits, error):
    a = np.random.default_rng(0).normal(size=(5, 30)) * 10.0 ** np.arange(5)[:, None]
    found = restored_rows(quantised_rows(a, bits))
    assert np.all(np.abs(found - a) <= error * np.abs(a).max(axis=1, keepdims=True))
    triangle = a[:, :5] + a[:, :5].T
    entries = restored_rows(lower_triangle(triangle, bits))[0]
    assert_allclose(entries, triangle[np.tril_indices(5)], atol=error * np.abs(triangle).max())


def test_rows_with_the_largest_errors_are_refined():
    a = np.random.default_rng(0).normal(size=(5, 30)) * np.array([[1], [100], [1], [1e4], [1]])
    relative = np.abs(restored_rows(refined_rows(a, 70)) - a).max(axis=1) / np.abs(a).max(axis=1)
    assert np.all(relative[[1, 3]] < 1e-9)
    assert np.all(relative[[0, 2, 4]] > 1e-7)
    assert_allclose(restored_rows(refined_rows(a, 10**6)), a, atol=1e-4 * 3e-5)
    assert "refined" not in refined_rows(a, -5)
