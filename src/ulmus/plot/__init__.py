"""Figures of fits and their error bars, as displays in the manner of scikit-learn.

A display holds arrays that are already computed, and ``plot`` draws them. ``from_estimator``
asks a fitted estimator for the arrays and draws at once; ``from_predictions`` takes predictions
of any model. Colours are safe for colour-blind readers, and bands also differ in grey.

==================================  =======================================================
display                             what it shows
==================================  =======================================================
:class:`PredictionDisplay`          predictions with bands for the function and for new
                                    observations
:class:`PartialDependenceDisplay`   the mean prediction as a function of one or two features
:class:`SlopeDisplay`               where it rises and where it falls
:class:`VarianceDisplay`            what the variance of a new observation is made of
:class:`EnsembleSizeDisplay`        what more members would gain
:class:`CalibrationDisplay`         whether distributions and intervals keep their promise
:class:`ResidualsDisplay`           left-out residuals, and rows that stand out
:class:`RelevanceDisplay`           which features matter
==================================  =======================================================

Drawing needs matplotlib: ``pip install 'ulmus[plot]'``.
"""

from ulmus.plot._calibration import CalibrationDisplay
from ulmus.plot._curves import Curve, Surface
from ulmus.plot._partial_dependence import PartialDependenceDisplay
from ulmus.plot._prediction import PredictionDisplay
from ulmus.plot._relevance import RelevanceDisplay
from ulmus.plot._residuals import ResidualsDisplay
from ulmus.plot._size import EnsembleSizeDisplay
from ulmus.plot._slope import SlopeDisplay
from ulmus.plot._variance import VarianceDisplay

__all__ = [
    "CalibrationDisplay",
    "Curve",
    "EnsembleSizeDisplay",
    "PartialDependenceDisplay",
    "PredictionDisplay",
    "RelevanceDisplay",
    "ResidualsDisplay",
    "SlopeDisplay",
    "Surface",
    "VarianceDisplay",
]
