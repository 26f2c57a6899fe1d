"""Correlated noise as users specify it, and the covariance structures that it implies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ulmus.core.noise_covariance.errors import covariance_error
from ulmus.core.noise_covariance.hac import CLUSTERS, HACSpec
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.exceptions import InputError
from ulmus.messages import Setting, invalid
from ulmus.noise.validation import (
    bandwidth,
    coordinate_names,
    require_column_name,
    require_nugget,
    smoothness,
)

__all__ = ["AR1", "Clustered", "Conley", "CorrelatedNoise", "Exponential", "Matern", "NeweyWest"]

# Parameters of the locations of rows.
AXES = ("time", "coords", "groups")


class CorrelatedNoise:
    """Base class of noise that is correlated between rows.

    Examples
    --------
    >>> from ulmus.noise import AR1, Clustered, CorrelatedNoise, Exponential
    >>> isinstance(AR1() * Clustered(), CorrelatedNoise)
    True
    >>> (AR1(time="day") + Exponential(("east", "north"))).names()
    {'time': 'day', 'coords': ('east', 'north')}
    """

    # Whether it implies a covariance whose parameters are estimated.
    parametric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Check the names of columns and the nugget; names of coordinates become a tuple."""
        if hasattr(self, "coords"):
            object.__setattr__(self, "coords", coordinate_names(self.coords))
        for axis in ("time", "groups"):
            require_column_name(axis, getattr(self, axis, None))
        require_nugget(getattr(self, "nugget", False))

    def set_params(self, **parameters: Any) -> None:
        """Raise an error: ``set_params(noise__nugget=...)`` of a model cannot change a value."""
        name, value = next(iter(parameters.items()))
        raise covariance_error(
            "immutable-noise",
            f"cannot be set, as {self!r} is immutable",
            "use set_params(noise=...) with another object",
            parameter=f"noise__{name}",
            value=value,
        )

    def structure(self) -> CovarianceStructure | HACSpec:
        """The covariance structure, or the weights of residual products."""
        raise NotImplementedError

    def names(self) -> dict[str, Any]:
        """Names of the columns of time, coords and groups, for the axes that it uses."""
        return {axis: getattr(self, axis) for axis in AXES if hasattr(self, axis)}

    def __mul__(self, other: Any) -> CorrelatedNoise:
        """Noise that is correlated within groups only."""
        if not isinstance(other, CorrelatedNoise):
            return NotImplemented
        if isinstance(self, Clustered) and not isinstance(other, Clustered):
            return other * self
        if isinstance(self, Clustered) or not isinstance(other, Clustered):
            text = f"{self!r} * {other!r} is not defined: only Clustered() can be a factor"
            suggestion = "use AR1() * Clustered() for one series per group"
            raise covariance_error("invalid-noise", text, suggestion)
        return Within(self, other.groups)

    def __add__(self, other: Any) -> CorrelatedNoise:
        """The sum of independent noise components."""
        parts = [*_parts(self), *_parts(other)]
        if not all(part.parametric for part in parts):
            raise covariance_error(
                "invalid-noise",
                f"{self!r} + {other!r} is not defined: only AR1, Exponential and Matern have "
                "covariances that can be added",
            )
        total = Sum(tuple(parts))
        total.structure()  # raises an error for two components along one axis
        return total


@dataclass(frozen=True)
class AR1(CorrelatedNoise):
    """Autocorrelated noise: an AR(1) process in continuous time.

    Parameters
    ----------
    nugget : bool, default=True
        Whether to include an independent component, such as measurement error.
    time : str, optional
        Name of the column of X with the times; by default ``time`` of ``fit``, or the order of the
        rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.noise import AR1
    >>> rng, t = np.random.default_rng(0), np.arange(200)
    >>> X, y = t[:, None] / 200, np.sin(t / 30) + 0.1 * rng.standard_normal(200).cumsum()
    >>> model = ELMEnsembleRegressor(5, 40, input_map=None, noise=AR1(), random_state=0)
    >>> model.fit(X, y).noise_covariance_.independent
    False
    """

    nugget: bool = True
    time: str | None = None

    parametric: ClassVar[bool] = True

    def structure(self) -> CovarianceStructure:
        """An exponential correlation in time."""
        return CovarianceStructure((CovarianceTerm("time", Kernel("exponential")),), self.nugget)


@dataclass(frozen=True)
class Exponential(CorrelatedNoise):
    """Spatially correlated noise whose correlation decays exponentially with distance.

    Parameters
    ----------
    coords : sequence of str, optional
        Names of the columns of X with the coordinates; by default ``coords`` of ``fit``.
    nugget : bool, default=True
        Whether to include an independent component.

    Examples
    --------
    >>> from ulmus.noise import Exponential
    >>> Exponential(coords=("east", "north"))
    Exponential(coords=('east', 'north'), nugget=True)
    """

    coords: Sequence[str] | None = None
    nugget: bool = True

    parametric: ClassVar[bool] = True

    def structure(self) -> CovarianceStructure:
        """An exponential correlation in space."""
        return CovarianceStructure((CovarianceTerm("space", Kernel("exponential")),), self.nugget)


@dataclass(frozen=True)
class Matern(CorrelatedNoise):
    """Spatially correlated noise with a Matern correlation.

    Parameters
    ----------
    coords : sequence of str, optional
        Names of the columns of X with the coordinates; by default ``coords`` of ``fit``.
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness; 0.5 is the exponential correlation.
    nugget : bool, default=True
        Whether to include an independent component.

    Examples
    --------
    >>> from ulmus.noise import Matern
    >>> Matern(nu=2.5).structure().terms[0].kernel
    Kernel(name='matern', nu=2.5)
    """

    coords: Sequence[str] | None = None
    nu: float = 1.5
    nugget: bool = True

    parametric: ClassVar[bool] = True

    def structure(self) -> CovarianceStructure:
        """A Matern correlation in space."""
        return CovarianceStructure(
            (CovarianceTerm("space", Kernel("matern", smoothness(self.nu))),), self.nugget
        )


@dataclass(frozen=True)
class NeweyWest(CorrelatedNoise):
    """Autocorrelated noise of any form within a bandwidth (HAC standard errors).

    Residual products are weighted by a positive semidefinite kernel. It assumes less than ``AR1``
    and its intervals cover less often: the smoother retains the slow part of the noise, which
    residuals lack.

    Parameters
    ----------
    kernel : {"bartlett", "qs"}, default="bartlett"
        The kernel of Newey & West (1987), or the quadratic spectral one of Andrews (1991).
    bandwidth : float or "auto", default="auto"
        End of the kernel, in the unit of time; ``maxlags + 1`` of other programs. ``"auto"`` is
        the rule of Andrews.
    time : str, optional
        Name of the column of X with the times; by default ``time`` of ``fit``, or the order of the
        rows.

    Examples
    --------
    >>> from ulmus.noise import NeweyWest
    >>> NeweyWest(bandwidth=5).structure()
    HACSpec(kernel='bartlett', bandwidth=5.0)
    """

    kernel: str = "bartlett"
    bandwidth: float | str = "auto"
    time: str | None = None

    def structure(self) -> HACSpec:
        """Residual products in time."""
        names = {"bartlett": "bartlett", "qs": "quadratic-spectral"}
        if self.kernel not in names:
            raise InputError(invalid("kernel", "must be 'bartlett' or 'qs'", self.kernel))
        return HACSpec(names[self.kernel], bandwidth("bandwidth", self.bandwidth))


@dataclass(frozen=True)
class Conley(CorrelatedNoise):
    """Spatially correlated noise of any form within a cutoff (Conley standard errors).

    Parameters
    ----------
    coords : sequence of str, optional
        Names of the columns of X with the coordinates; by default ``coords`` of ``fit``.
    kernel : {"spherical"}, default="spherical"
        Weights of residual products by distance.
    cutoff : float
        Distance beyond which they are excluded.

    Examples
    --------
    >>> from ulmus.noise import Conley
    >>> Conley(cutoff=0.2).structure()
    HACSpec(kernel='spherical', bandwidth=0.2)
    """

    coords: Sequence[str] | None = None
    kernel: str = "spherical"
    cutoff: float | None = None

    def structure(self) -> HACSpec:
        """Residual products in space."""
        if self.kernel != "spherical":
            raise covariance_error(
                "invalid-kernel",
                "may not be positive semidefinite in space, so variances could be negative",
                Setting("kernel", "spherical"),
                parameter="kernel",
                value=self.kernel,
            )
        if self.cutoff is None:
            text = "Conley requires cutoff, the distance beyond which noise is independent"
            raise covariance_error("invalid-noise", text)
        return HACSpec("spherical", bandwidth("cutoff", self.cutoff))


@dataclass(frozen=True)
class Clustered(CorrelatedNoise):
    """Noise that is correlated within groups, in any form (cluster-robust standard errors).

    Parameters
    ----------
    groups : str, optional
        Name of the column of X with the groups; by default ``groups`` of ``fit``.

    Examples
    --------
    >>> from ulmus.noise import AR1, Clustered
    >>> AR1() * Clustered("site")
    Within(noise=AR1(nugget=True, time=None), groups='site')
    """

    groups: str | None = None

    def structure(self) -> HACSpec:
        """Residual products within groups."""
        return HACSpec(CLUSTERS)


@dataclass(frozen=True)
class Within(CorrelatedNoise):
    """Noise that is correlated within groups only: the product ``AR1() * Clustered()``."""

    noise: CorrelatedNoise  # autocorrelated noise
    # Name of the column of X with the groups; by default ``groups`` of ``fit``.
    groups: str | None = None

    def __post_init__(self) -> None:
        """Raise an error for spatially correlated noise."""
        if not isinstance(self.noise, (AR1, NeweyWest)):
            text = f"{self.noise!r} cannot be correlated within groups only"
            raise covariance_error("invalid-noise", text, "use AR1 or NeweyWest")

    @property
    def parametric(self) -> bool:  # type: ignore[override]
        """Whether the noise within groups is."""
        return self.noise.parametric

    def structure(self) -> CovarianceStructure | HACSpec:
        """That of the noise within groups, which are part of the locations."""
        return self.noise.structure()

    def names(self) -> dict[str, Any]:
        """Names of columns."""
        return self.noise.names() | {"groups": self.groups}


@dataclass(frozen=True)
class Sum(CorrelatedNoise):
    """Independent noise components: the sum ``AR1() + Exponential()``."""

    parts: tuple[CorrelatedNoise, ...]  # the components

    parametric: ClassVar[bool] = True

    def structure(self) -> CovarianceStructure:
        """All terms, and a nugget if a component has one."""
        structures = (part.structure() for part in self.parts)
        parametric = [one for one in structures if isinstance(one, CovarianceStructure)]
        terms = tuple(term for one in parametric for term in one.terms)
        if len({term.axis for term in terms}) < len(terms):
            text = f"{self!r} has two components along the same axis"
            raise covariance_error("invalid-noise", text, "keep one of them")
        return CovarianceStructure(terms, any(one.nugget for one in parametric))

    def names(self) -> dict[str, Any]:
        """Names of columns."""
        return {axis: name for part in self.parts for axis, name in part.names().items()}


# Classes that a model file can contain.
NOISE_STRUCTURES = {
    cls.__name__: cls
    for cls in (AR1, Clustered, Conley, Exponential, Matern, NeweyWest, Sum, Within)
}


def location_columns(noise: Any) -> dict[str, Any]:
    """Columns of locations by axis of a value of ``noise=``; empty for independent noise."""
    return noise.names() if isinstance(noise, CorrelatedNoise) else {}


def _parts(noise: Any) -> tuple[CorrelatedNoise, ...]:
    if not isinstance(noise, CorrelatedNoise):
        raise covariance_error("invalid-noise", f"{noise!r} is not an object of ulmus.noise")
    return noise.parts if isinstance(noise, Sum) else (noise,)
