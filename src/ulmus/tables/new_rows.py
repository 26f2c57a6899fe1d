"""New rows as inputs, with warnings about cells that no training row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ulmus.exceptions import ColumnWarning, ExtrapolationWarning, MissingValuesWarning, warn
from ulmus.messages import Message, Setting
from ulmus.tables.cells import UNKNOWN

if TYPE_CHECKING:
    from ulmus.tables.schema import Schema


def encoded_rows(schema: Schema, frame: Any) -> np.ndarray:
    """New rows as inputs of a model, shape (n, d), with warnings about cells that are unlike them.

    A row to predict cannot be excluded.
    """
    rule = "error" if schema.missing == "drop" else schema.missing
    codes, _ = schema.with_missing(rule).parse(frame)
    warn_about_codes(schema, codes)
    return schema.encode(codes)


def warn_about_codes(schema: Schema, codes: np.ndarray) -> None:
    """Warn of rows (n, columns) with unknown categories, and of gaps that no training row has."""
    categorical = np.array([column.categorical for column in schema.columns])
    learned = np.array([column.indicates_missing for column in schema.columns])
    unknown = (codes == UNKNOWN) & categorical
    if unknown.any():
        text = (
            f"{_count(unknown)} rows have categories that are in no training row "
            f"({_by_column(schema, unknown)}): they are predicted as draws from the categories of "
            "the training rows"
        )
        remedy = Setting("unknown", "error", "use {} to refuse such rows")
        message = Message("unknown-category", text, suggestions=(remedy,), topic="extrapolation")
        warn(message, ExtrapolationWarning)
    missing = np.isnan(codes) & ~learned
    if missing.any():
        text = (
            f"{_count(missing)} rows have missing values in columns that are complete in the "
            f"training rows ({_by_column(schema, missing)}): categories are predicted as draws, "
            "and error bars exclude the uncertainty of numbers that are filled in"
        )
        remedy = Setting("missing", "error", "use {} to refuse such rows")
        message = Message("missing-value", text, suggestions=(remedy,), topic="input")
        warn(message, MissingValuesWarning)


def warn_about_columns(doubts: Sequence[str]) -> None:
    """Warn of columns that are excluded, or read in a way that the user may not expect."""
    if doubts:
        text = "; ".join(doubt.removesuffix(".") for doubt in doubts)
        remedy = "drop or convert the columns to silence this warning"
        warn(Message("columns", text, suggestions=(remedy,), topic="input"), ColumnWarning)


def _count(cells: np.ndarray) -> str:
    return f"{int(np.sum(np.any(cells, axis=1)))} of {len(cells)}"


def _by_column(schema: Schema, cells: np.ndarray) -> str:
    counts = zip(schema.names, np.sum(cells, axis=0), strict=True)
    return ", ".join(f"{count} of {name!r}" for name, count in counts if count)
