"""Correlated noise: time series, spatial data and clusters.

Give one of these objects as ``noise=`` to an estimator. Locations of the rows are columns of X by
name, or arrays given to ``fit`` (``time``, ``coords``, ``groups``). ``AR1``, ``Exponential`` and
``Matern`` estimate a parametric covariance by restricted maximum likelihood. ``NeweyWest``,
``Conley`` and ``Clustered`` weight residual products and assume only a bandwidth or groups.
``AR1() * Clustered()`` is one series per group; sums of parametric noise add their covariances.

Classes here hold parameters of users and convert tables to locations; the numerics are in
:mod:`ulmus.core.noise_covariance`. A new class belongs in ``structures`` and its table of classes.
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
