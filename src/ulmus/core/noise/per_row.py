"""Heteroskedastic noise: a variance for each row, estimated by its squared residual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import add
from typing import Any, ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, namespace
from ulmus.core.ridge.member_pairs import OWN, PAIRINGS
from ulmus.core.ridge.residuals import RowFit, member_omega, pooled_omega
from ulmus.core.ridge.sampled_pairs import AllPairs, PairSampling
from ulmus.core.variance.quadratic_forms import Form, JackknifeForm, PairForms, row_form


@dataclass(frozen=True)
class PerRowNoise:
    """Noise whose variance differs between rows."""

    pairing: str  # combination of the residuals of two members, a name in ``PAIRINGS``
    hc: str  # leverage correction of residuals: a name in ``HC_DIVISORS`` or ``"pooled"``

    needs_residuals: ClassVar[bool] = True
    needs_order: ClassVar[bool] = False
    heteroskedastic: ClassVar[bool] = True
    by_member: ClassVar[bool] = True
    requires: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """Name of the pairing."""
        return self.pairing

    @property
    def exact(self) -> bool:
        """Whether the paper's jackknife matrix is used, which is not diagonal."""
        return self.hc == "HC3-exact"

    def dual(self, rows: RowFit, sigma2: Array) -> PairForms:
        """Forms of the weighted training rows."""
        pairing, omega = PAIRINGS[self.pairing], row_omega(self.hc, rows)
        forms: list[Form] = []
        for k in range(omega.shape[1]):
            form: Form = row_form(rows.t, pairing, omega[:, k, :])
            if self.exact:
                c = rows.t @ rows.loo[:, k, :].T
                form = JackknifeForm(form, c, rows.smoother.n_rows, pairing.degree)
            forms.append(form)
        return PairForms(self.pairing, tuple(forms), namespace(sigma2).ones_like(sigma2))

    def sums(
        self, like: Array, n_outputs: int, groups: list[slice], sampling: PairSampling
    ) -> PerRowSums:
        """Empty sums over rows for coordinates of the shape (M, N, n) of ``like``."""
        grams = [sampling.zeros(like.shape[1], groups, like=like) for _ in range(n_outputs)]
        return PerRowSums(self, grams, sampling)


@dataclass
class PerRowSums:
    """Sums over rows of which primal forms are made; they merge with ``+``."""

    noise: PerRowNoise
    grams: list[AllPairs]
    sampling: PairSampling
    c: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.c = self.c or [0.0] * len(self.grams)

    def add(self, rows: RowFit, sampled: np.ndarray | None = None) -> None:
        """Add weighted rows, of which some are sampled."""
        pairing, omega = PAIRINGS[self.noise.pairing], row_omega(self.noise.hc, rows)
        for k, gram in enumerate(self.grams):
            if self.noise.hc == "pooled" and pairing is OWN:
                # All members share omega: both factors are multiplied by its root.
                self.sampling.add(gram, rows.t * omega[0, k, :] ** 0.5, sampled)
            else:
                self.sampling.add(gram, rows.t, sampled, pairing, omega[:, k, :])
            if self.noise.exact:
                self.c[k] = self.c[k] + rows.t @ rows.loo[:, k, :].T

    def __add__(self, other: PerRowSums) -> PerRowSums:
        """Sums over the rows of both."""
        grams = [add(a, b) for a, b in zip(self.grams, other.grams, strict=True)]
        c = [a + b for a, b in zip(self.c, other.c, strict=True)]
        return PerRowSums(self.noise, grams, self.sampling, c)

    def forms(self, n_rows: int, sigma2: Array) -> PairForms:
        """The forms, after all rows."""
        forms: Iterable[Form] = self.grams
        if self.noise.exact:
            degree = PAIRINGS[self.noise.pairing].degree
            both = zip(self.grams, self.c, strict=True)
            forms = [JackknifeForm(gram, c, n_rows, degree) for gram, c in both]
        return PairForms(self.noise.pairing, tuple(forms), namespace(sigma2).ones_like(sigma2))


def row_omega(hc: str, rows: RowFit) -> Array:
    """Noise variances of weighted rows by an HC variant, shape (M, K, n)."""
    xp, shape = namespace(rows.residual), rows.residual.shape
    if hc == "pooled":
        return xp.broadcast_to(pooled_omega("HC2", rows), shape)
    return member_omega(hc, rows)
