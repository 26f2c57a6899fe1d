"""Effects: averages, contrasts, slopes and curves of the fitted function, with error bars.

Each effect is a linear functional of the function, or of the means of y, which ``response_scale``
replaces by linear functionals of the function (``linearisation``). ``estimands`` turns a table
(``columns``) into labelled functionals, with the help of ``groups``, ``contrasts`` and ``grids``.
``inference`` estimates them and their joint covariance, ``frames`` returns a data frame with
intervals and tests (``bands``, ``hypotheses``) and the ``covariance`` of its rows. ``simulation``
draws from the same distributions.
"""

from ulmus.effects.covariance import JointCovariance

__all__ = ["JointCovariance"]
