"""Errors and warnings of ulmus.

Each warning can be silenced or turned into an error by its class.
"""


class NeedsTwoPassesError(ValueError, AttributeError):
    """An estimate that sees rows twice was asked of a method that sees them once.

    It is an AttributeError too, so that ``hasattr`` tells whether the method can be used.
    """


class ExtrapolationWarning(UserWarning):
    """Points lie well outside the range of the training inputs."""


class DegenerateFitWarning(UserWarning):
    """The fit is usable but some of its error bars rest on very little."""


class NegativeVarianceWarning(UserWarning):
    """A variance estimate fell below zero and was replaced by its positive-part form."""


class BiasWarning(UserWarning):
    """A prediction is far from an undersmoothed fit of the same data."""
