"""What each value of ``noise=`` implies for a fit, as one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ulmus.noise.structures import CorrelatedNoise


@dataclass(frozen=True)
class NoiseAssumption:
    """Consequences of a noise assumption."""

    estimates: tuple[str, str]  # default variance estimate of an ensemble, and of a single member
    # Standard errors by which a model of the noise variance must improve the leave-one-out log
    # score over a constant variance; None for no model.
    min_gain_in_se: float | None = None
    # Whether noise is correlated between rows, which requires their order and locations.
    correlated: bool = False
    # Whether the noise variance is estimated together with a covariance.
    estimates_variance: bool = False


INDEPENDENT = {
    "auto": NoiseAssumption(("BM", "NM"), 2.5),
    "homoskedastic": NoiseAssumption(("BR", "NHo")),
    "heteroskedastic": NoiseAssumption(("S2", "S1"), 0.0),
}


def noise_assumption(noise: Any) -> NoiseAssumption:
    """The consequences of a value of ``noise=``; those of ``"auto"`` for an invalid one."""
    if isinstance(noise, CorrelatedNoise):
        return NoiseAssumption(("BD", "ND"), correlated=True, estimates_variance=noise.parametric)
    return INDEPENDENT.get(noise if isinstance(noise, str) else "auto", INDEPENDENT["auto"])
