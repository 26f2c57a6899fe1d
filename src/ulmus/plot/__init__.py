"""Figures of fits and their error bars, as displays in the style of scikit-learn.

A display contains computed arrays, and ``plot`` draws them. ``from_estimator`` computes the arrays
with a fitted estimator and draws them; ``from_predictions`` takes predictions of any model. Colours
are safe for colour-blind readers, and bands also differ in greyscale.

==================================  =======================================================
display                             content
==================================  =======================================================
:class:`PredictionDisplay`          predictions with confidence and prediction intervals
:class:`PartialDependenceDisplay`   the mean prediction as a function of one or two features
:class:`SlopeDisplay`               its derivative, and where that differs from zero
:class:`VarianceDisplay`            components of the variance of a new observation
:class:`EnsembleSizeDisplay`        variance by number of members
:class:`CalibrationDisplay`         PIT histogram, and coverage against nominal level
:class:`PredictionErrorDisplay`     observations against predictions, with their intervals
:class:`ResidualsDisplay`           leave-one-out residuals and leverage
:class:`CorrelogramDisplay`         correlation of residuals by lag, and by distance
:class:`RelevanceDisplay`           feature relevance
==================================  =======================================================

Drawing requires matplotlib: ``pip install 'ulmus[plot]'``.
"""

from ulmus.plot._calibration import CalibrationDisplay
from ulmus.plot._correlogram import CorrelogramDisplay
from ulmus.plot._curves import Curve, Surface
from ulmus.plot._ensemble_size import EnsembleSizeDisplay
from ulmus.plot._partial_dependence import PartialDependenceDisplay
from ulmus.plot._prediction import PredictionDisplay
from ulmus.plot._prediction_error import PredictionErrorDisplay
from ulmus.plot._relevance import RelevanceDisplay
from ulmus.plot._residuals import ResidualsDisplay
from ulmus.plot._slope import SlopeDisplay
from ulmus.plot._variance import VarianceDisplay

__all__ = [
    "CalibrationDisplay",
    "CorrelogramDisplay",
    "Curve",
    "EnsembleSizeDisplay",
    "PartialDependenceDisplay",
    "PredictionDisplay",
    "PredictionErrorDisplay",
    "RelevanceDisplay",
    "ResidualsDisplay",
    "SlopeDisplay",
    "Surface",
    "VarianceDisplay",
]
