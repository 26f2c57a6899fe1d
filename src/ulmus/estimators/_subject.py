"""Who is asked: a fit, and what the rows of a user's table are to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals
from ulmus.effects.columns import PlainTable, Table
from ulmus.tables.frames import data_frame

TARGETS = ("function", "expectation")


class Subject:
    """What answers need to know of an estimator, or of a Pipeline that ends in one.

    The questions are about a table: rows of the columns that the model was fitted to, perhaps with
    further columns to group by.
    """

    def _answering_fit(self) -> Fit:
        """The fit that answers."""
        raise NotImplementedError

    def _table(self, X: Any) -> Table:
        """A user's table, checked."""
        raise NotImplementedError

    def _points_of(self, X: Any) -> Any:
        """Its rows as points, with warnings about those far outside."""
        raise NotImplementedError

    def _warn_about(self, asked: Functionals) -> None:
        """Warn about points of functionals that are far outside."""
        raise NotImplementedError


class OwnTables:
    """An estimator that is asked about tables of its own inputs."""

    fitted_: Any
    _checked_points: Any
    _valid_points: Any
    _warn_outside: Any

    def _answering_fit(self) -> Fit:
        return self.fitted_

    def _points_of(self, X: Any) -> Any:
        return self._checked_points(X)

    def _table(self, X: Any) -> Table:
        names = getattr(self, "feature_names_in_", None)
        X = inputs = data_frame(X)
        if names is not None and hasattr(X, "columns") and set(names) <= set(X.columns):
            inputs = X[list(names)]
        points = self._valid_points(inputs)
        if names is None:
            names = [f"x{j}" for j in range(points.shape[1])]
        return PlainTable(X, inputs, points, tuple(map(str, names)))

    def _warn_about(self, asked: Functionals) -> None:
        self._warn_outside(blocks_of(asked, self.fitted_))


def blocks_of(asked: Functionals, fit: Fit) -> Iterator[Any]:
    """The points of functionals, in blocks."""
    for piece in asked.pieces:
        for rows, _ in piece.blocks(slice(0, asked.count), fit.ensemble.layer):
            yield piece.points(rows)
