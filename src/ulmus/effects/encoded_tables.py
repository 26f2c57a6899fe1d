"""Tables of columns that are encoded as inputs, by a schema or the transformers of a Pipeline."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, dense, to_numpy
from ulmus.core.layer.functionals import Rows
from ulmus.effects.columns import Changes, frame_categories, frame_column
from ulmus.exceptions import ExtrapolationWarning
from ulmus.tables import DateColumn, Schema
from ulmus.tables.columns.dates import YEAR

# Step of central differences of the transformers, relative to the spread of a column, for results
# in double and in single precision; and its least size relative to a value.
STEPS, ROUND_OFF = {"float64": 1e-5, "float32": 5e-3}, 1e-10


@dataclass(frozen=True)
class PipelineTable:
    """A table whose rows are converted to points by the transformers of a Pipeline."""

    data: Any  # the table, possibly with further columns
    inputs: Any  # the columns that the Pipeline was fitted to
    features: tuple[str, ...]  # their names
    valid: Callable[[Any], Array]  # transforms and validates such a table, with result (b, d)
    schema: Schema | None  # the columns, if a TableEncoder is the first transformer

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.inputs)

    @property
    def index(self) -> Any:
        """Labels of the rows."""
        return self.data.index if hasattr(self.data, "iloc") else np.arange(self.n_rows)

    def column(self, name: str) -> np.ndarray | None:
        """Values of a column of the table, a feature or not; None if there is none."""
        if name not in self.features:
            return frame_column(self.data, name)
        if hasattr(self.inputs, "iloc"):
            values = frame_column(self.inputs, self._label(name))
            # Labels of categories may be numbers.
            is_label = self.schema is not None and name in self.schema.categorical
            return values.astype(object) if values is not None and is_label else values
        column = self.inputs[:, self.features.index(name)]
        try:
            return column.astype(float)
        except (TypeError, ValueError):
            return column

    def fills(self, name: str) -> bool:
        """Whether missing values of a column are filled in."""
        return False

    def value(self, name: str, given: Any) -> Any:
        """A value that the user gave for a column, as the column contains it: dates are days."""
        return given if self.schema is None else self.schema.value(name, given)

    def shown(self, name: str, value: Any) -> Any:
        """A value of a column as results show it: days are dates."""
        return value if self.schema is None else self.schema.shown(name, value)

    def categories(self, name: str) -> list[Any] | None:
        """Categories of a categorical column in their order; None for other columns."""
        if name in self.features and hasattr(self.inputs, "iloc"):
            return frame_categories(self.inputs, self._label(name))
        return frame_categories(self.data, name)

    def points(self, rows: Rows, changes: Changes) -> Array:
        """Points (b, d) of some rows after changes."""
        if self.schema is not None:
            self.schema.require_categories(changes)
        return self._points_of(self._changed(rows, changes))

    @cached_property
    def single_precision(self) -> bool:
        """Whether the transformers return single precision, whatever they are given."""
        block = self._changed(slice(0, 1), {})
        if not hasattr(block, "iloc"):
            return "float32" in str(self._points_of(block).dtype)
        single = {name: float for name, dtype in block.dtypes.items() if dtype == np.float32}
        return "float32" in str(self._points_of(block.astype(single)).dtype)

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """Derivatives of these points by a column, shape (b, d).

        Transformers are differentiated by central differences, exactly if they are linear.
        """
        x = changes.get(name, self.column(name))
        x = np.broadcast_to(np.asarray(x, dtype=float), self.n_rows)
        # The spread of the column, as an offset such as that of a northing has no influence; and
        # more than its round-off.
        spread = np.std(np.asarray(self.column(name), dtype=float))
        share = STEPS["float32" if self.single_precision else "float64"]
        step = np.maximum(share * (spread if spread > 0 else np.abs(x)), ROUND_OFF * np.abs(x))
        if np.all(x > 0):
            # Positive values stay positive, because transformers may take logarithms.
            step = np.minimum(step, np.maximum(1e-3 * x, 1e-10 * spread))
        step = np.where(step > 0, step, share)
        above, below = x + step, x - step
        high, low = (
            to_numpy(dense(self.points(rows, {**changes, name: values})))
            for values in (above, below)
        )
        return (high - low) / (above - below)[rows, None]

    def _points_of(self, block: Any) -> Array:
        """Points (b, d) of rows; unknown categories were reported for the whole table."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExtrapolationWarning)
            return self.valid(block)

    def _changed(self, rows: Rows, changes: Changes) -> Any:
        is_frame = hasattr(self.inputs, "iloc")
        block = (self.inputs.iloc if is_frame else self.inputs)[rows].copy()
        if not is_frame and block.dtype.kind == "f":
            block = block.astype(float)  # single precision cannot represent small steps
        for name, value in changes.items():
            values = value if np.ndim(value) == 0 else value[rows]
            if is_frame:
                block[self._label(name)] = values
            else:
                block[:, self.features.index(name)] = values
        return block

    def _label(self, name: str) -> Any:
        """Label of a feature in the data frame, possibly a number."""
        return self.inputs.columns[self.features.index(name)]


@dataclass(frozen=True)
class EncodedTable(PipelineTable):
    """A table for an encoder and a model: only columns that change are encoded again."""

    schema: Schema
    encoded: np.ndarray  # (n, d): the valid points of the table

    def fills(self, name: str) -> bool:
        """Whether missing values of a column are filled in."""
        return name in self.features

    def directions(self, rows: Rows, changes: Changes, name: str) -> Array:
        """Derivatives of the inputs by a column, shape (b, d): per year for dates.

        Seasons are held fixed.
        """
        first = self.schema.origins.index(name)
        directions = np.zeros((len(self.encoded[rows]), len(self.schema.origins)))
        is_date = isinstance(self.schema.column(name), DateColumn)
        directions[:, first] = YEAR if is_date else 1.0
        return directions

    def _changed(self, rows: Rows, changes: Changes) -> Any:
        """Encoded rows after changes, shape (b, d)."""
        import pandas as pd

        X, origins = self.encoded[rows].copy(), np.array(self.schema.origins)
        for name, value in changes.items():
            values = pd.Series([value] if np.ndim(value) == 0 else value[rows])
            X[:, origins == name] = self.schema.encoded_column(name, values)
        return X

    def _points_of(self, block: Array) -> Array:
        """The same rows: those of a table, and what the encoder returns, are valid."""
        return block
