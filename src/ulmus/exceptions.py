"""Errors and warnings of ulmus, and the function that warns.

Each warning can be silenced or turned into an error by its class.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from ulmus.messages import Message

__all__ = [
    "BiasWarning",
    "CorrelatedErrorsWarning",
    "DegenerateFitWarning",
    "ExtrapolationWarning",
    "InputError",
    "ModelFileError",
    "NeedsTwoPassesError",
    "NegativeVarianceWarning",
    "NoResidualDofError",
    "NoUndersmoothedFitError",
    "UlmusWarning",
]


class CarriesMessage:
    """The parts of a message, as attributes of the error or warning that carries it."""

    message: Message

    @property
    def code(self) -> str:
        """Short identifier of the cause."""
        return self.message.code

    @property
    def parameter(self) -> str | None:
        """Name of the parameter that caused it."""
        return self.message.parameter

    @property
    def value(self) -> Any:
        """Value of the parameter."""
        return self.message.value

    @property
    def suggestion(self) -> str:
        """What to do about it."""
        return self.message.suggestion()

    @property
    def topic(self) -> str:
        """The subject under which a report lists it."""
        return self.message.topic

    def __reduce__(self) -> Any:
        return type(self), (self.message,)


class InputError(CarriesMessage, ValueError):
    """Bad input, with its cause and suggestions as data.

    ``code``, ``parameter``, ``value``, ``suggestion`` and ``topic`` are attributes; the text is
    that of :meth:`ulmus.messages.Message.render`.

    Parameters
    ----------
    message : Message
        What is wrong.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.exceptions import InputError
    >>> try:
    ...     ELMEnsembleRegressor(alpha=-1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    ... except InputError as error:
    ...     print(error.parameter, error.value)
    alpha -1.0
    """

    def __init__(self, message: Message) -> None:
        super().__init__(message.render())
        self.message = message


class NoUndersmoothedFitError(InputError):
    """Intervals for the function were requested of a fit that has no undersmoothed counterpart.

    They require a fit with a smaller ridge parameter, which float32 does not resolve and which,
    with heteroskedastic estimates, needs the training rows.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import NoUndersmoothedFitError
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, dtype="float32", random_state=0)
    >>> try:
    ...     model.fit(X, y).predict_interval(X, kind="confidence", target="function")
    ... except NoUndersmoothedFitError as error:
    ...     print(error.code)
    float32-undersmoothing
    """


class NoResidualDofError(InputError):
    """A least squares fit leaves no residual degrees of freedom.

    The rank of the hidden layer is at least the number of rows, and ``alpha`` is zero.

    Examples
    --------
    >>> from ulmus import ELMRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import NoResidualDofError
    >>> X, y, *_ = make_sine(10, random_state=0)
    >>> try:
    ...     ELMRegressor(20, alpha=0.0, input_map=None, random_state=0).fit(X, y)
    ... except NoResidualDofError as error:
    ...     print(error.code)
    no-residual-dof
    """


class NeedsTwoPassesError(ValueError, AttributeError):
    """An estimate that requires two passes over the rows was requested of a one-pass method.

    It is an AttributeError too, so that ``hasattr`` is False where the method cannot be used.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> model = ELMEnsembleRegressor(noise="heteroskedastic")
    >>> hasattr(model, "partial_fit")
    False
    >>> model.partial_fit([[0.0], [1.0]], [0.0, 1.0])
    Traceback (most recent call last):
    ...
    ulmus.exceptions.NeedsTwoPassesError: partial_fit ...
    """


class ModelFileError(ValueError):
    """A file is not a model that this version can load; the message states why.

    Examples
    --------
    >>> import tempfile
    >>> import ulmus
    >>> with tempfile.NamedTemporaryFile(suffix=".ulmus") as file:
    ...     ulmus.load(file.name)
    Traceback (most recent call last):
    ...
    ulmus.exceptions.ModelFileError: ...
    """


class UlmusWarning(CarriesMessage, UserWarning):
    """Base class of all warnings of ulmus, with cause and suggestions as data.

    ``code``, ``parameter``, ``value``, ``suggestion`` and ``topic`` are attributes; the text is
    that of :meth:`ulmus.messages.Message.render`.

    Parameters
    ----------
    message : Message or str
        What was found.

    Examples
    --------
    >>> import warnings
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import UlmusWarning
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UlmusWarning)
    ...     model = ELMEnsembleRegressor(1, 20, input_map=None, random_state=0).fit(X, y)
    """

    def __init__(self, message: Message | str) -> None:
        super().__init__(str(message))
        self.message = (
            Message("", message.removesuffix(".")) if isinstance(message, str) else message
        )


class ExtrapolationWarning(UlmusWarning):
    """Points lie far from the training inputs.

    Predictions and error bars there are extrapolations. The warning covers points outside the range
    of an input by more than a tenth of it, and values of a category that are in no training row.

    Examples
    --------
    >>> import warnings
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import ExtrapolationWarning
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = model.predict([[20.0]])
    >>> issubclass(caught[0].category, ExtrapolationWarning)
    True
    """


class DegenerateFitWarning(UlmusWarning):
    """The fit can be used, but some of its error bars are estimated from very few data.

    The message states the problem: training rows of leverage 1, hidden units that repeat one
    another, a single member, or inputs from which no map could be learned.

    Examples
    --------
    >>> import warnings
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import DegenerateFitWarning
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = ELMEnsembleRegressor(1, 20, input_map=None, random_state=0).fit(X, y)
    >>> issubclass(caught[0].category, DegenerateFitWarning)
    True
    """


class NegativeVarianceWarning(UlmusWarning):
    """A variance estimate fell below zero and was replaced by its positive-part form.

    The estimates over distinct pairs of members (BR, S2, S3) are unbiased, and may therefore be
    negative where the variance is small and members are few.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.exceptions import NegativeVarianceWarning
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> wild = {"activation": "cos", "weight_scale": 9.0, "input_map": None, "fit_intercept": False}
    >>> model = ELMEnsembleRegressor(2, 3, alpha=0.1, noise_variance=1.0, random_state=6, **wild)
    >>> model = model.fit(X, np.zeros(40))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     variance = model.predict_var(X, component="model")
    >>> issubclass(caught[0].category, NegativeVarianceWarning), bool(np.all(variance >= 0))
    (True, True)
    """


class BiasWarning(UlmusWarning):
    """The prediction is biased, relative to its standard error.

    Intervals for the function warn where the prediction is far from an undersmoothed fit of the
    same data, where leave-one-out residuals of neighbours agree in sign, or where a step function
    would fit the rows as well.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.exceptions import BiasWarning
    >>> X = np.random.default_rng(0).uniform(size=(200, 1))
    >>> y = np.sin(30 * X[:, 0])  # too fast for five units
    >>> model = ELMEnsembleRegressor(5, 5, input_map=None, random_state=0).fit(X, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = model.predict_interval(X, kind="confidence")
    >>> issubclass(caught[0].category, BiasWarning)
    True
    """


class CorrelatedErrorsWarning(UlmusWarning):
    """Errors were assumed independent, and residuals of successive rows are correlated.

    Error bars are then too small, above all those of averages over many rows. A table that is
    sorted by an input may warn as well, if the fit does not follow the function along it.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.exceptions import CorrelatedErrorsWarning
    >>> rng = np.random.default_rng(0)
    >>> X, e = rng.uniform(size=(200, 1)), rng.standard_normal(200)
    >>> for i in range(1, 200):
    ...     e[i] += 0.8 * e[i - 1]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, X[:, 0] + e)
    >>> issubclass(caught[0].category, CorrelatedErrorsWarning)
    True
    """


def _folders() -> tuple[str, ...]:
    """Folders whose code is not the user's: this package, scikit-learn and joblib."""
    specs = [find_spec(name) for name in ("sklearn", "joblib")]
    others = [str(Path(spec.origin).parent) for spec in specs if spec and spec.origin]
    return (str(Path(__file__).parent), *others)


FOLDERS = _folders()


def warn(message: Message | str, category: type[UlmusWarning]) -> None:
    """Warn at the line of the user's code that led here, at any depth of the call."""
    warning = category(message)
    if sys.version_info >= (3, 12):
        warnings.warn(warning, skip_file_prefixes=FOLDERS)
        return
    level, frame = 1, sys._getframe(0)
    above: FrameType | None = frame
    while above is not None and above.f_code.co_filename.startswith(FOLDERS):
        level, above = level + 1, above.f_back
    warnings.warn(warning, stacklevel=level if above is not None else 2)
