"""Noise assumptions: each turns rows and their residuals into the forms of a variance estimate.

``constant`` assumes one variance for all rows, ``per_row`` a variance for each row,
``modelled`` one that a model predicts from its inputs, ``correlated`` a covariance between rows,
whose rows are sorted by ``ordered_rows``. An assumption is one
module and one line of :data:`NOISES`, under the name of the pairing of its estimates: its class
attributes state which passes over the rows it requires. The variance of a new observation as a
function of the inputs is in :mod:`ulmus.core.noise_model`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from ulmus.core.arrays.backend import Array
from ulmus.core.noise.constant import ConstantNoise
from ulmus.core.noise.correlated import CorrelatedRowNoise
from ulmus.core.noise.modelled import ModelledNoise
from ulmus.core.noise.per_row import PerRowNoise
from ulmus.core.ridge.member_pairs import COMMON, CORRELATED, MODELLED, OTHERS, OWN
from ulmus.core.ridge.residuals import RowFit
from ulmus.core.ridge.sampled_pairs import PairSampling
from ulmus.core.variance.estimates import ESTIMATES
from ulmus.core.variance.quadratic_forms import PairForms


class NoiseSums(Protocol):
    """Sums over rows of which forms are made; they merge with ``+`` unless rows are ordered."""

    def add(self, rows: RowFit, sampled: np.ndarray | None = None) -> None:
        """Add weighted rows, of which some enter the sample of a :class:`PairSampling`."""

    def forms(self, n_rows: int, sigma2: Array) -> PairForms:
        """The forms, as variances."""

    def __add__(self, other: Any) -> NoiseSums:
        """Sums over the rows of both."""


class Noise(Protocol):
    """A noise assumption."""

    needs_residuals: ClassVar[bool]  # whether its forms require a pass over the rows after the fit
    needs_order: ClassVar[bool]  # whether this pass requires rows in the order of their locations
    heteroskedastic: ClassVar[bool]  # whether each row has a variance of its own
    by_member: ClassVar[bool]  # whether members estimate different variances of a row
    requires: ClassVar[tuple[str, ...]]  # names of other assumptions whose forms it requires

    @property
    def name(self) -> str:
        """Name of its forms in a fit."""

    def dual(self, rows: RowFit, sigma2: Array) -> PairForms:
        """Forms of the weighted training rows."""


class ResidualNoise(Noise, Protocol):
    """A noise assumption whose forms are sums over rows and their residuals."""

    def sums(
        self, like: Array, n_outputs: int, groups: list[slice], sampling: PairSampling
    ) -> NoiseSums:
        """Empty sums for forms without training rows."""


NoiseClass = (
    type[ConstantNoise] | type[PerRowNoise] | type[ModelledNoise] | type[CorrelatedRowNoise]
)

NOISES: dict[str, NoiseClass] = {
    COMMON.name: ConstantNoise,
    OWN.name: PerRowNoise,
    OTHERS.name: PerRowNoise,
    MODELLED.name: ModelledNoise,
    CORRELATED.name: CorrelatedRowNoise,
}


def noise_of_estimate(estimate: str) -> NoiseClass:
    """The noise assumption of a variance estimate, a name in ``ESTIMATES``."""
    return NOISES[ESTIMATES[estimate].pairing]
