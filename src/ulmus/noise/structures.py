"""Kinds of noise: parameters that a user gives, and what the numerical core calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ulmus.core.noise_covariance.hac import CLUSTERS, HACSpec
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.noise.validation import (
    coordinate_names,
    reach,
    require_column_name,
    require_nugget,
    smoothness,
)

__all__ = ["AR1", "Clustered", "Conley", "CorrelatedNoise", "Exponential", "Matern", "NeweyWest"]

# Which places a kind of noise needs, by the name of its parameter.
AXES = ("time", "coords", "groups")


class CorrelatedNoise:
    """What all kinds have in common; not for use by itself.

    Examples
    --------
    >>> from ulmus.noise import AR1, Clustered, CorrelatedNoise, Exponential
    >>> isinstance(AR1() * Clustered(), CorrelatedNoise)
    True
    >>> (AR1(time="day") + Exponential(("east", "north"))).names()
    {'time': 'day', 'coords': ('east', 'north')}
    """

    def __post_init__(self) -> None:
        """Check names of columns and the nugget; names of coordinates become a tuple."""
        if hasattr(self, "coords"):
            object.__setattr__(self, "coords", coordinate_names(self.coords))
        for axis in ("time", "groups"):
            require_column_name(axis, getattr(self, axis, None))
        require_nugget(getattr(self, "nugget", False))

    def set_params(self, **parameters: Any) -> None:
        """Refuse to change: this is what ``set_params(noise__nugget=...)`` of a model asks."""
        name, value = next(iter(parameters.items()))
        raise ValueError(
            f"noise__{name}={value!r} would change {self!r}, which never changes; give another "
            "object: set_params(noise=...)."
        )

    def structure(self) -> CovarianceStructure | HACSpec:
        """What the numerical core calls it."""
        raise NotImplementedError

    def names(self) -> dict[str, Any]:
        """Names of columns for time, coords and groups; absent where the kind has no such axis."""
        return {axis: getattr(self, axis) for axis in AXES if hasattr(self, axis)}

    def __mul__(self, other: Any) -> CorrelatedNoise:
        """Noise that hangs together within groups only."""
        if isinstance(self, Clustered):
            return other * self if isinstance(other, CorrelatedNoise) else NotImplemented
        if not isinstance(other, Clustered):
            raise ValueError(
                f"{self!r} * {other!r} is no kind of noise; only Clustered() can be a factor: "
                "AR1() * Clustered() is one series for each group."
            )
        return Within(self, other.groups)

    def __add__(self, other: Any) -> CorrelatedNoise:
        """The sum of two independent parts of noise."""
        parts = [*_parts(self), *_parts(other)]
        if any(not isinstance(part.structure(), CovarianceStructure) for part in parts):
            raise ValueError(
                f"{self!r} + {other!r} is no kind of noise; only AR1, Exponential and Matern have "
                "covariances that can be added."
            )
        total = Sum(tuple(parts))
        total.structure()  # which refuses two parts along the same axis
        return total


@dataclass(frozen=True)
class AR1(CorrelatedNoise):
    """Noise that fades along time: an autoregression of first order, in continuous time.

    Parameters
    ----------
    nugget : bool, default=True
        Whether each row has noise of its own as well, such as an error of measurement.
    time : str, optional
        Name of the column of X that has the times; otherwise ``time`` given to ``fit``, or else
        the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.noise import AR1
    >>> rng, t = np.random.default_rng(0), np.arange(200)
    >>> e = rng.standard_normal(200)
    >>> for i in t[1:]:
    ...     e[i] += 0.8 * e[i - 1]
    >>> X, y = t[:, None] / 200, np.sin(t / 30) + 0.2 * e
    >>> model = ELMEnsembleRegressor(5, 40, input_map=None, noise=AR1(), random_state=0)
    >>> model = model.fit(X, y)
    >>> model.noise_covariance_.independent
    False
    >>> dependent = model.predict_var(X, component="model").mean()
    >>> independent = model.predict_var(X, component="model", estimate="BR").mean()
    >>> bool(dependent > 2 * independent)
    True
    """

    nugget: bool = True
    time: str | None = None

    def structure(self) -> CovarianceStructure:
        """An exponential correlation along time."""
        return CovarianceStructure((CovarianceTerm("time", Kernel("exponential")),), self.nugget)


@dataclass(frozen=True)
class Exponential(CorrelatedNoise):
    """Noise in space whose correlation falls exponentially with distance.

    Parameters
    ----------
    coords : sequence of str, optional
        Names of the columns of X that have the coordinates; otherwise ``coords`` given to ``fit``.
    nugget : bool, default=True
        Whether each row has noise of its own as well.

    Examples
    --------
    >>> from ulmus.noise import Exponential
    >>> Exponential(coords=("east", "north"))
    Exponential(coords=('east', 'north'), nugget=True)
    """

    coords: Sequence[str] | None = None
    nugget: bool = True

    def structure(self) -> CovarianceStructure:
        """An exponential correlation in space."""
        return CovarianceStructure((CovarianceTerm("space", Kernel("exponential")),), self.nugget)


@dataclass(frozen=True)
class Matern(CorrelatedNoise):
    """Noise in space that is smoother than exponential.

    Parameters
    ----------
    coords : sequence of str, optional
        Names of the columns of X that have the coordinates; otherwise ``coords`` given to ``fit``.
    nu : float, default=1.5
        Smoothness; 0.5 is exponential.
    nugget : bool, default=True
        Whether each row has noise of its own as well.

    Examples
    --------
    >>> from ulmus.noise import Matern
    >>> Matern(nu=2.5).structure().terms[0].kernel
    Kernel(name='matern', nu=2.5)
    """

    coords: Sequence[str] | None = None
    nu: float = 1.5
    nugget: bool = True

    def structure(self) -> CovarianceStructure:
        """A Matern correlation in space."""
        return CovarianceStructure(
            (CovarianceTerm("space", Kernel("matern", smoothness(self.nu))),), self.nugget
        )


@dataclass(frozen=True)
class NeweyWest(CorrelatedNoise):
    """Any noise along time that reaches no farther than a bandwidth.

    Products of residuals are weighted by a kernel that is positive semidefinite. It assumes less
    than ``AR1`` and covers less: the smoother keeps the slow part of the noise, and residuals do
    not have it.

    Parameters
    ----------
    kernel : {"bartlett", "qs"}, default="bartlett"
        The kernel of Newey & West (1987), or the quadratic spectral one of Andrews (1991).
    bandwidth : float or "auto", default="auto"
        Where the kernel ends, in the unit of time; ``maxlags + 1`` of other programs. By default,
        the rule of Andrews.
    time : str, optional
        Name of the column of X that has the times; otherwise ``time`` given to ``fit``, or else
        the order of the rows.

    Examples
    --------
    >>> from ulmus.noise import NeweyWest
    >>> NeweyWest(bandwidth=5).structure()
    Robust(kernel='bartlett', bandwidth=5.0)
    """

    kernel: str = "bartlett"
    bandwidth: float | str = "auto"
    time: str | None = None

    def structure(self) -> HACSpec:
        """Products of residuals along time."""
        names = {"bartlett": "bartlett", "qs": "quadratic-spectral"}
        if self.kernel not in names:
            raise ValueError(f"kernel must be 'bartlett' or 'qs', got {self.kernel!r}.")
        return HACSpec(names[self.kernel], reach("bandwidth", self.bandwidth))


@dataclass(frozen=True)
class Conley(CorrelatedNoise):
    """Any noise in space that reaches no farther than a cutoff.

    Parameters
    ----------
    coords : sequence of str, optional
        Names of the columns of X that have the coordinates; otherwise ``coords`` given to ``fit``.
    kernel : {"spherical"}, default="spherical"
        How products of residuals are weighted by distance.
    cutoff : float
        Distance from which they do not count.

    Examples
    --------
    >>> from ulmus.noise import Conley
    >>> Conley(cutoff=0.2).structure()
    Robust(kernel='spherical', bandwidth=0.2)
    """

    coords: Sequence[str] | None = None
    kernel: str = "spherical"
    cutoff: float | None = None

    def structure(self) -> HACSpec:
        """Products of residuals in space."""
        if self.kernel != "spherical":
            raise ValueError(
                f"kernel={self.kernel!r} is not known to be positive semidefinite in space, so "
                "that variances could be negative; use kernel='spherical'."
            )
        if self.cutoff is None:
            raise ValueError("Conley needs cutoff, the distance from which noise is independent.")
        return HACSpec("spherical", reach("cutoff", self.cutoff))


@dataclass(frozen=True)
class Clustered(CorrelatedNoise):
    """Any noise within groups, none between them.

    Parameters
    ----------
    groups : str, optional
        Name of the column of X that has the groups; otherwise ``groups`` given to ``fit``.

    Examples
    --------
    >>> from ulmus.noise import AR1, Clustered
    >>> AR1() * Clustered("site")
    Within(noise=AR1(nugget=True, time=None), groups='site')
    """

    groups: str | None = None

    def structure(self) -> HACSpec:
        """Products of residuals within groups."""
        return HACSpec(CLUSTERS)


@dataclass(frozen=True)
class Within(CorrelatedNoise):
    """Noise that hangs together within groups only: what ``AR1() * Clustered()`` makes.

    Parameters
    ----------
    noise : AR1 or NeweyWest
        Noise along time.
    groups : str, optional
        Name of the column of X that has the groups; otherwise ``groups`` given to ``fit``.
    """

    noise: CorrelatedNoise
    groups: str | None = None

    def __post_init__(self) -> None:
        """Refuse noise in space, whose groups have no meaning."""
        if not isinstance(self.noise, (AR1, NeweyWest)):
            raise ValueError(
                f"{self.noise!r} cannot hang together within groups; use AR1 or NeweyWest."
            )

    def structure(self) -> CovarianceStructure | HACSpec:
        """That of the noise; groups are part of the places."""
        return self.noise.structure()

    def names(self) -> dict[str, Any]:
        """Names of columns."""
        return self.noise.names() | {"groups": self.groups}


@dataclass(frozen=True)
class Sum(CorrelatedNoise):
    """Independent parts of noise: what ``AR1() + Exponential()`` makes.

    Parameters
    ----------
    parts : tuple of AR1, Exponential or Matern
        The parts.
    """

    parts: tuple[CorrelatedNoise, ...]

    def structure(self) -> CovarianceStructure:
        """All terms; a nugget if any part has one."""
        kinds = [part.structure() for part in self.parts]
        terms = tuple(
            term for kind in kinds if isinstance(kind, CovarianceStructure) for term in kind.terms
        )
        if len({term.axis for term in terms}) < len(terms):
            raise ValueError(f"{self!r} has two parts along the same axis; keep one of them.")
        return CovarianceStructure(
            terms, any(isinstance(kind, CovarianceStructure) and kind.nugget for kind in kinds)
        )

    def names(self) -> dict[str, Any]:
        """Names of columns."""
        return {axis: name for part in self.parts for axis, name in part.names().items()}


# Kinds that a model file can name.
NOISE_STRUCTURES = {
    kind.__name__: kind
    for kind in (AR1, Clustered, Conley, Exponential, Matern, NeweyWest, Sum, Within)
}


def _parts(noise: Any) -> tuple[CorrelatedNoise, ...]:
    if not isinstance(noise, CorrelatedNoise):
        raise ValueError(f"{noise!r} is no kind of noise; use one of ulmus.noise.")
    return noise.parts if isinstance(noise, Sum) else (noise,)
