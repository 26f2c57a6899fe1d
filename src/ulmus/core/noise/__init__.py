"""What is assumed about the noise: each kind in a file of its own, behind one protocol.

A kind of noise says which passes over the rows it needs and makes the forms that turn
coordinates into variances. ``constant.py`` has one variance for all rows, ``per_row.py`` one for
each; ``model.py`` is the variance of a new observation as a function of the inputs, with its
``labels.py`` from left-out residuals and a ``layer.py`` of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from ulmus.core.arrays.backend import Array
from ulmus.core.noise.constant import ConstantNoise
from ulmus.core.noise.per_row import PerRowNoise
from ulmus.core.ridge.member_pairs import COMMON
from ulmus.core.ridge.residuals import RowFit
from ulmus.core.variance.quadratic_forms import PairForms


class NoiseSums(Protocol):
    """Primal forms in the making; they merge with ``+``."""

    def add(self, rows: RowFit) -> None:
        """Add weighted rows."""

    def forms(self, n_rows: int, sigma2: Array) -> PairForms:
        """The finished forms, as variances."""

    def __add__(self, other: Any) -> NoiseSums:
        """Sums over the rows of both."""


class Noise(Protocol):
    """A kind of noise.

    ``needs_residuals``: whether its forms need a pass over the rows after the fit, so that rows
    which come only once are not enough.
    """

    needs_residuals: ClassVar[bool]

    @property
    def name(self) -> str:
        """What its forms are called in a fit."""

    def dual(self, rows: RowFit, sigma2: Array) -> PairForms:
        """Forms that keep the weighted training rows."""


class ResidualNoise(Noise, Protocol):
    """A kind of noise whose forms are summed over rows and their residuals."""

    def sums(self, like: Array, n_outputs: int) -> NoiseSums:
        """Empty sums for forms without training rows."""


def noise_of(pairing: str, hc: str) -> Noise:
    """The kind of noise that an estimate of the paper assumes."""
    return ConstantNoise() if pairing == COMMON.name else PerRowNoise(pairing, hc)
