"""Rows of a table, told apart by whether a fit was trained on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ulmus.core.arrays.backend import Array, FloatArray
from ulmus.core.fit.fit import Fit
from ulmus.core.query.row_lookup import NO_ROW, trained_rows

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

# How rows are predicted: training rows without themselves; new rows; rows of a table that are of
# both kinds, or of which it is not known.
LEAVE_ONE_OUT, NEW, GIVEN = "leave-one-out", "new", "given"


class GivenRows(NamedTuple):
    """Rows of a table, told apart by whether the fit was trained on them."""

    n_rows: int  # rows of the table
    # (p,): training row that equals each row of the table, or ``NO_ROW``; None if the fit keeps no
    # rows to compare with.
    trained: IntArray | None
    # (p',): rows that are judged: those that repeat a training row more often than the fit does,
    # and training rows without leave-one-out prediction, are excluded. In the order of the fit if
    # no row is new.
    judged: IntArray

    @classmethod
    def of(cls, fit: Fit, X: Array, y: FloatArray) -> GivenRows:
        """Rows X (p, d), y (K, p), found among the training rows by their values."""
        n, rows = y.shape[1], fit.rows
        if rows is None:
            return cls(n, None, np.arange(n))
        trained = trained_rows(rows, X, y)
        _, first = np.unique(trained, return_index=True)
        usable = first[(trained[first] != NO_ROW) & rows.calibration_rows[trained[first]]]
        new = np.flatnonzero(trained == NO_ROW)
        judged = np.sort(np.concatenate([usable, new])) if len(new) else usable
        if not len(judged):
            raise ValueError(
                "X and y contain only training rows that have no leave-one-out prediction: rows of "
                "weight zero, or rows that the input map was optimised on; give other rows, or "
                "omit X and y."
            )
        return cls(n, trained, judged)

    @property
    def judged_as_trained(self) -> BoolArray:
        """Which of the judged rows the fit was trained on, shape (p',)."""
        if self.trained is None:
            return np.zeros(len(self.judged), dtype=bool)
        return self.trained[self.judged] != NO_ROW

    @property
    def n_trained(self) -> int:
        """Judged rows that the fit was trained on."""
        return int(np.sum(self.judged_as_trained))

    @property
    def n_new(self) -> int:
        """Judged rows that the fit was not trained on, as far as is known."""
        return len(self.judged) - self.n_trained

    @property
    def kind(self) -> str:
        """How they are predicted: ``LEAVE_ONE_OUT``, ``NEW`` or ``GIVEN``."""
        if self.trained is None or 0 < self.n_trained < len(self.judged):
            return GIVEN
        return LEAVE_ONE_OUT if self.n_trained else NEW

    @property
    def new_rows(self) -> str:
        """What the rows that the fit was not trained on, as far as is known, are called."""
        return "rows" if self.trained is None else "new rows"

    def description(self) -> str:
        """The rows in a phrase."""
        n = len(self.judged)
        if self.trained is None:
            return (
                f"{n} rows; the fit keeps no training rows, so that it is not known whether these "
                "are new"
            )
        text = {
            LEAVE_ONE_OUT: f"{n} training rows, leave-one-out",
            NEW: f"{n} new rows, out-of-sample",
            GIVEN: f"{self.n_trained} training rows, leave-one-out, and {self.n_new} new rows, "
            "out-of-sample",
        }[self.kind]
        if n == self.n_rows:
            return text
        return f"{text}; {self.n_rows - n} repeated or excluded training rows are not counted"
