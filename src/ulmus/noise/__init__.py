"""What can be said about noise that hangs together: along time, in space, in groups.

Give one of these as ``noise=`` to an estimator. Where the rows are is told by names of columns of
X, or by arrays given to ``fit`` (``time``, ``coords``, ``groups``). Parametric kinds, ``AR1``,
``Exponential`` and ``Matern``, fit a covariance to what the smoother leaves of y; the others weight
products of residuals and assume nothing but how far noise reaches. ``AR1() * Clustered()`` is one
series for each group, and sums of parametric kinds add their covariances.
"""

from ulmus.noise.structures import (
    AR1,
    Clustered,
    Conley,
    CorrelatedNoise,
    Exponential,
    Matern,
    NeweyWest,
)

__all__ = ["AR1", "Clustered", "Conley", "CorrelatedNoise", "Exponential", "Matern", "NeweyWest"]
