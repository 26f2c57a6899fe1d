"""The fit and the tables that effects are computed from: those of an estimator or a Pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ulmus.core.arrays.backend import is_on_host
from ulmus.core.fit.fit import Fit
from ulmus.core.layer.functionals import Functionals
from ulmus.effects.columns import InputTable, Table
from ulmus.effects.encoded_tables import EncodedTable
from ulmus.estimators._columns import named_frame
from ulmus.estimators._points import PointConversion
from ulmus.estimators._threads import n_threads, printed_progress
from ulmus.progress import Progress
from ulmus.tables.frames import pandas_if_arrow
from ulmus.tables.schema import Schema


class InferenceSource:
    """Access to a fit, and conversion of a user's tables to its points.

    Tables have the columns of the training data, and possibly further columns to group by.
    """

    def _inference_fit(self) -> Fit:
        """The fit."""
        raise NotImplementedError

    @property
    def _n_threads(self) -> int:
        """Number of threads of a method."""
        raise NotImplementedError

    @property
    def _progress(self) -> Progress | None:
        """What receives the stages of a method."""
        raise NotImplementedError

    def _table(self, X: Any) -> Table:
        """A validated table."""
        raise NotImplementedError

    def _table_points(self, X: Any) -> Any:
        """The rows of a table as validated points, with warnings about extrapolation."""
        raise NotImplementedError

    def _warn_about_points(self, functionals: Functionals) -> None:
        """Warn about extrapolation at the points of functionals."""
        raise NotImplementedError


class EstimatorSource(PointConversion):
    """The source of an estimator: tables of its own inputs."""

    _feature_names: Any
    n_jobs: int | None
    verbose: int

    @property
    def _n_threads(self) -> int:
        fit = vars(self).get("fitted_")
        on_gpu = fit is not None and not is_on_host(fit.ensemble.layer.b)
        return n_threads(self.n_jobs, on_gpu=on_gpu)

    @property
    def _progress(self) -> Progress | None:
        return printed_progress(self.verbose)

    def _inference_fit(self) -> Fit:
        return self.fitted_

    def _table_points(self, X: Any) -> Any:
        return self._checked_points(X)

    def _table(self, X: Any) -> Table:
        schema = vars(self).get("columns_")
        if schema is not None:
            return self._encoded_table(schema, X)
        names = getattr(self, "feature_names_in_", None)
        X = inputs = pandas_if_arrow(X)
        if names is not None and hasattr(X, "columns") and set(names) <= set(X.columns):
            inputs = X[list(names)]
        return InputTable(X, inputs, self._valid_points(inputs), tuple(self._feature_names()))

    def _encoded_table(self, schema: Schema, X: Any) -> Table:
        frame = named_frame(pandas_if_arrow(X))
        points = self._valid_points(frame)
        # Cells keep their gaps, which the encoding fills.
        columns, _ = schema.with_missing("impute").convert(frame)
        # Labels of categories stay as the user wrote them.
        labels = {name: frame[name] for name in schema.categorical}
        inputs = columns[list(schema.names)].assign(**labels)
        return EncodedTable(frame, inputs, schema.names, self._valid_points, schema, points)

    def _warn_about_points(self, functionals: Functionals) -> None:
        self._warn_about_extrapolation(point_blocks(functionals, self.fitted_))


def point_blocks(functionals: Functionals, fit: Fit) -> Iterator[Any]:
    """The points of functionals, in blocks."""
    for piece in functionals.pieces:
        for rows, _ in piece.blocks(slice(0, functionals.count), fit.ensemble.layer):
            yield piece.points(rows)
