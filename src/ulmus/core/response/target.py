"""What is known of a target: its transformation, its range and its kind, checked against rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ulmus.core.arrays.backend import FloatArray, to_numpy
from ulmus.core.response.transformer import AnyTransform, Transformer
from ulmus.core.response.transforms import Identity, Log, Logit, Sqrt
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting

#: Names of transformations.
TRANSFORMS = ("log", "sqrt", "logit", "yeo-johnson", "auto")
KINDS = ("continuous", "count")
# A value at the lower bound is a point mass if it occurs this often, in share and number of rows.
MASS_SHARE, MASS_ROWS = 0.02, 10
# Where zeros occur, they are placed at this normal quantile of the logarithms of the others, in
# quartile deviations below their median (Stahel, 2002).
START_QUARTILES = 2.9
# Share of the unit interval that a logit cuts where y contains the bounds, over the number of rows.
SQUEEZED_ROWS = 0.5


@dataclass(frozen=True)
class TargetSpec:
    """The parameters of a target."""

    # None, one of TRANSFORMS, a transformation, or a transformer that may have to be fitted.
    transform: str | AnyTransform | Transformer | None = None
    low: float = -np.inf  # known bounds of y
    high: float = np.inf
    kind: str | None = None  # one of KINDS, or None for continuous unless counts are found

    @property
    def chosen_by_rows(self) -> bool:
        """Whether a transformation, or its power, is chosen by its predictive density."""
        return isinstance(self.transform, str) and self.transform in ("auto", "yeo-johnson")


@dataclass(frozen=True)
class TargetScore:
    """How well a transformation of an output predicts."""

    output: int
    name: str
    gain: float  # mean gain in the logarithm of the predictive density over the identity
    standard_error: float  # of the gain
    error_ratio: float  # root mean squared error of the means of y, over that of the identity
    chosen: bool
    # Mean gain of a fit with a map of its own over such a fit of y, and its standard error; None
    # where there was none.
    confirmed_gain: float | None = None
    confirmed_error: float | None = None

    @property
    def margin(self) -> tuple[float, float]:
        """The gain and its standard error, by fits with maps of their own if there were any."""
        if self.confirmed_gain is None or self.confirmed_error is None:
            return self.gain, self.standard_error
        return self.confirmed_gain, self.confirmed_error

    def is_clear(self, min_gain: float, most_error: float) -> bool:
        """Whether the gain exceeds so many standard errors, and the means predict as well."""
        return self.gain > min_gain * self.standard_error and self.error_ratio <= most_error


class Values(NamedTuple):
    """The values of one output."""

    least: float
    most: float
    n_rows: int
    n_least: int  # rows at the smallest value
    whole: bool  # whether all are whole numbers
    sample: FloatArray  # some of them

    @property
    def has_mass(self) -> bool:
        """Whether the smallest value occurs so often that it is a point mass."""
        others = self.n_rows - self.n_least
        return self.n_least >= max(MASS_ROWS, MASS_SHARE * self.n_rows) and others >= MASS_ROWS


@dataclass(frozen=True)
class OutputRange:
    """Range of outputs, and how often the smallest value occurs, each (K,)."""

    least: np.ndarray
    most: np.ndarray
    n_least: np.ndarray
    whole: np.ndarray
    n_rows: int

    def __add__(self, other: OutputRange) -> OutputRange:
        """Range of the rows of both."""
        least, most = np.minimum(self.least, other.least), np.maximum(self.most, other.most)
        n_least = np.zeros_like(self.n_least)
        for one in (self, other):
            n_least = n_least + np.where(one.least == least, one.n_least, 0)
        n_rows = self.n_rows + other.n_rows
        return OutputRange(least, most, n_least, self.whole & other.whole, n_rows)


@dataclass(frozen=True)
class OutputPass:
    """Computes the range of the outputs."""

    title: ClassVar[str] = "Reading the target"

    def __call__(self, blocks: Iterable[Any]) -> OutputRange | None:
        """Range of the outputs of the blocks."""
        total = None
        for block in blocks:
            y = to_numpy(block.y).astype(float)
            if block.root_weight is not None:
                y = y[:, to_numpy(block.root_weight) > 0]
            if not y.shape[1]:
                continue
            least, most = y.min(axis=1), y.max(axis=1)
            one = OutputRange(
                least,
                most,
                np.sum(y == least[:, None], axis=1),
                np.all(y == np.round(y), axis=1),
                y.shape[1],
            )
            total = one if total is None else total + one
        return total


def lower_bound(spec: TargetSpec, values: Values) -> float:
    """The known lower bound, or zero where a transformation implies it."""
    return spec.low if np.isfinite(spec.low) or values.least < 0 else 0.0


def possible_values(
    spec: TargetSpec, transform: AnyTransform, values: Values
) -> tuple[float, float]:
    """Bounds of y: known ones, and those that a transformation implies.

    Where the transformation is chosen by the rows, a point mass at zero is a bound, too.
    """
    low = max(spec.low, transform.support[0])
    if spec.transform == "auto" and values.has_mass and values.least == 0:
        low = max(low, 0.0)
    return low, min(spec.high, transform.support[1])


def has_point_mass(spec: TargetSpec, transform: AnyTransform, values: Values) -> bool:
    """Whether many rows equal the lower bound of y."""
    return values.has_mass and values.least == possible_values(spec, transform, values)[0]


def check_range(spec: TargetSpec, values: Values) -> None:
    """Raise an error for values outside the known range."""
    outside = values.least if values.least < spec.low else values.most
    if spec.low <= values.least and values.most <= spec.high:
        return
    text = f"does not contain {outside!r}, which is a value of y"
    shown = (spec.low, spec.high)
    remedies = "use the range of all possible values", "correct or drop these rows"
    raise InputError(Message("outside-target-range", text, "target_range", shown, remedies))


def check_counts(values: Values, n_outputs: int) -> None:
    """Raise an error for values that are no counts, or for several outputs."""
    if n_outputs > 1:
        text = "requires a single output, whose means determine the weights of the rows"
        remedy = "fit one model for each output"
        raise InputError(Message("count-outputs", text, "target_kind", "count", (remedy,)))
    if values.whole and values.least >= 0 and values.most > 0:
        return
    fraction = values.sample[(values.sample != np.round(values.sample)) | (values.sample < 0)]
    example = fraction[0] if len(fraction) else values.least
    text = f"requires whole numbers >= 0, and y contains {float(example)!r}"
    if values.most == 0:
        text = "requires a positive count, and all are zero"
    remedies = (Setting("target_kind", "continuous"),)
    raise InputError(Message("no-counts", text, "target_kind", "count", remedies))


def transform_of(spec: TargetSpec, values: Values) -> AnyTransform:
    """The transformation of a name for the values of an output."""
    if spec.transform is None:
        return Identity()
    if isinstance(spec.transform, Transformer):
        return spec.transform.fitted(values.sample)
    if not isinstance(spec.transform, str):
        return spec.transform
    if spec.transform == "logit":
        return _logit(spec, values)
    low = lower_bound(spec, values)
    if values.least < low or not np.isfinite(low):
        raise _not_positive(spec, values)
    if spec.transform == "sqrt":
        return Sqrt(low)
    return Log(low, _start(values, low) if values.least == low else 0.0)


def _start(values: Values, low: float) -> float:
    """What is added before the logarithm, where y contains the bound itself."""
    above = values.sample[values.sample > low] - low
    if not len(above):
        return 1.0
    quarter, half = np.quantile(above, [0.25, 0.5])
    return float(half * (quarter / half) ** START_QUARTILES)


def _logit(spec: TargetSpec, values: Values) -> Logit:
    low, high = (spec.low, spec.high)
    if not (np.isfinite(low) and np.isfinite(high)):
        given = (np.isfinite(low) and low != 0) or (np.isfinite(high) and high != 1)
        if given or values.least < 0 or values.most > 1:
            text = "requires both bounds of y, whose values reach from "
            text += f"{values.least:.6g} to {values.most:.6g}"
            remedy = Setting("target_range", (0, 100), "give both, for percent {}")
            raise InputError(Message("logit-range", text, "target_transform", "logit", (remedy,)))
        low, high = 0.0, 1.0
    at_bound = values.least <= low or values.most >= high
    squeeze = SQUEEZED_ROWS / (values.n_rows + 1.0) if at_bound else 0.0
    return Logit(low, high, squeeze)


def _not_positive(spec: TargetSpec, values: Values) -> InputError:
    text = f"requires y >= 0 or a lower bound, and y contains {values.least:g}"
    low = float(np.floor(values.least))
    bounds = Setting("target_range", (low, None), "give the lower bound of y, such as {}")
    remedies = bounds, Setting("target_transform", "yeo-johnson")
    return InputError(Message("not-positive", text, "target_transform", spec.transform, remedies))
