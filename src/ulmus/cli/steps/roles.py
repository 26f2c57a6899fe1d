"""The columns of a table that a fit uses, and what each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ulmus.cli import steps
from ulmus.cli.column_options import ColumnOptions
from ulmus.cli.noise_options import NoiseOptions
from ulmus.cli.options import column_names
from ulmus.cli.steps.files import numeric_column
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.tables.files import TableFile

if TYPE_CHECKING:
    from ulmus.cli.steps.locations import LocationColumns

EXCLUDE_ROWS = ("fill it", Setting("missing", "drop", "use {} to exclude such rows"))


@dataclass(frozen=True)
class TrainConfig:
    """The roles of the columns of a table."""

    table: TableFile
    target: str  # column to predict
    inputs: tuple[str, ...]  # columns that may serve as inputs
    weight: str | None  # column of row weights
    categorical: tuple[str, ...]  # columns of numbers that are labels of categories
    missing: str  # rule for rows with missing values: "impute", "drop" or "error"
    na_values: tuple[str, ...]  # codes for missing values
    unknown: str  # rule for categories that no training row has: "average" or "error"
    locations: LocationColumns  # columns of times, coordinates and groups
    noise: str | None  # name of the noise model; None for the default of the locations

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        weight = [] if self.weight is None else [self.weight]
        return list(dict.fromkeys([*self.inputs, self.target, *weight, *self.locations.names]))

    @property
    def observed_columns(self) -> str:
        """Names of the columns without which a row cannot be used."""
        weight = [] if self.weight is None else [self.weight]
        names = list(dict.fromkeys([self.target, *weight, *self.locations.names]))
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"

    def location_values(
        self, frame: Any, first_row: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Locations of some rows by axis, and whether each row lacks one."""
        values = self.locations.values(frame, self.na_values, first_row)
        lacking = steps.locations.missing_locations(values, len(frame))
        names = ", ".join(self.locations.names)
        self._refuse_missing(lacking, first_row, lambda row: f"{row} has no value of {names}")
        return values, lacking

    def observed(self, frame: Any, first_row: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Target and weights of some rows; NaN where either is missing."""
        y = self._numbers(self.target, frame, first_row, "the target")
        if self.weight is None:
            return y, None
        weight = self._numbers(self.weight, frame, first_row, "the weight")
        if np.any(weight < 0):
            row = first_row + int(np.argmax(weight < 0)) + 1
            text = f"the weight {self.weight!r} is negative in data row {row}"
            raise ValueError(f"{text}; weights are inverse noise variances, 0 or more.")
        return np.where(np.isnan(weight), np.nan, y), weight

    def _numbers(self, name: str, frame: Any, first_row: int, role: str) -> np.ndarray:
        values = numeric_column(name, frame, self.na_values, first_row, role)
        text = f"{role} {name!r} has no value in "
        self._refuse_missing(np.isnan(values), first_row, lambda row: text + row)
        return values

    def _refuse_missing(self, missing: np.ndarray, first_row: int, text: Any) -> None:
        """Refuse the first row with a missing value, if these are errors."""
        if self.missing == "error" and missing.any():
            row = f"data row {first_row + int(np.argmax(missing)) + 1}"
            raise InputError(Message("missing-value", text(row), suggestions=EXCLUDE_ROWS))


def train_config(
    table: TableFile, target: str, options: ColumnOptions, errors: NoiseOptions
) -> TrainConfig:
    """The roles of columns that are all in the table."""
    inputs, drop, categorical = (
        column_names(names, table.names)
        for names in (options.columns, options.drop, options.categorical)
    )
    weight, locations = options.sample_weight, errors.names(table.names)
    table.require([target, *inputs, *drop, *([] if weight is None else [weight]), *locations])
    if target in locations:
        raise ValueError(f"{target} is the target; name other columns for times and locations.")
    if weight == target:
        raise ValueError(f"--sample-weight {weight} is the target; name a column of row weights.")
    candidates = dict.fromkeys(inputs) or table.named_columns
    inputs = tuple(name for name in candidates if name not in {target, weight, *drop})
    if not inputs:
        raise ValueError(f"{table.path} has no inputs besides the target {target!r}; add columns.")
    digits = [name for name in table.digit_columns if name in inputs]
    return TrainConfig(
        table=table.with_text_columns((*categorical, *digits)),
        target=target,
        inputs=inputs,
        weight=weight,
        categorical=categorical,
        missing=options.missing.value,
        na_values=column_names(options.na_values),
        unknown=options.unknown.value,
        locations=steps.locations.checked_locations(errors, table.names),
        noise=errors.noise,
    )
