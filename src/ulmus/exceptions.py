"""Errors and warnings of ulmus, and the functions that issue or collect warnings.

Each warning can be silenced or turned into an error by its class.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ulmus.messages import Message

__all__ = [
    "BiasWarning",
    "ColumnWarning",
    "CorrelatedErrorsWarning",
    "DegenerateFitWarning",
    "DuplicateRowsWarning",
    "ExtrapolationWarning",
    "InputError",
    "MissingValuesWarning",
    "ModelFileError",
    "NeedsTwoPassesError",
    "NegativeVarianceWarning",
    "NoResidualDofError",
    "NoUndersmoothedFitError",
    "SampleWeightWarning",
    "UlmusWarning",
]


class CarriesMessage(Exception):
    """An error or warning with the parts of its message as attributes."""

    def __init__(self, message: Message | str) -> None:
        if isinstance(message, str):
            message = Message("", message.removesuffix("."))
        super().__init__(message.render())
        self.message = message
        self.code = message.code
        self.parameter = message.parameter
        self.value = message.value
        self.suggestion = message.suggestion()
        self.topic = message.topic

    def __reduce__(self) -> Any:
        return type(self), (self.message,)


class InputError(CarriesMessage, ValueError):
    """Bad input, with its cause and suggestions as data.

    ``code``, ``parameter``, ``value``, ``suggestion`` and ``topic`` are attributes; the text is
    that of ``Message.render`` in ``ulmus.messages``.

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
    that of ``Message.render`` in ``ulmus.messages``.

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
    >>> with warnings.catch_warnings(action="ignore", category=UlmusWarning):
    ...     model = ELMEnsembleRegressor(1, 20, input_map=None, random_state=0).fit(X, y)
    """


class ExtrapolationWarning(UlmusWarning):
    """Points lie far from the training inputs.

    Predictions and error bars there are extrapolations. The warning covers points outside the range
    of an input by more than a tenth of it, dates beyond those of the training rows by more than
    their median step, and values of a category that are in no training row.

    Examples
    --------
    >>> import warnings
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = model.predict([[20.0]])
    >>> caught[0].category.__name__
    'ExtrapolationWarning'
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
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = ELMEnsembleRegressor(1, 20, input_map=None, random_state=0).fit(X, y)
    >>> caught[0].category.__name__
    'DegenerateFitWarning'
    """


class DuplicateRowsWarning(UlmusWarning):
    """Rows of a table are exact copies of others, and each row counts once.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = model.fit(np.concatenate([X, X[:30]]), np.concatenate([y, y[:30]]))
    >>> [one.message.code for one in caught], model.fitted_.n_rows
    (['duplicate-rows'], 60)
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
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> wild = {"activation": "cos", "weight_scale": 9.0, "input_map": None, "fit_intercept": False}
    >>> model = ELMEnsembleRegressor(2, 3, alpha=0.1, noise_variance=1.0, random_state=6, **wild)
    >>> model = model.fit(X, np.zeros(40))
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     variance = model.predict_var(X, component="model")
    >>> caught[0].category.__name__, bool(np.all(variance >= 0))
    ('NegativeVarianceWarning', True)
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
    >>> X = np.random.default_rng(0).uniform(size=(200, 1))
    >>> y = np.sin(30 * X[:, 0])  # too fast for five units
    >>> model = ELMEnsembleRegressor(5, 5, input_map=None, random_state=0).fit(X, y)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = model.predict_interval(X, kind="confidence")
    >>> caught[0].category.__name__
    'BiasWarning'
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
    >>> rng = np.random.default_rng(0)
    >>> X, e = rng.uniform(size=(200, 1)), rng.standard_normal(200)
    >>> for i in range(1, 200):
    ...     e[i] += 0.8 * e[i - 1]
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, X[:, 0] + e)
    >>> caught[0].category.__name__
    'CorrelatedErrorsWarning'
    """


class SampleWeightWarning(UlmusWarning):
    """Weights of the training rows differ, and those of new observations were not given.

    The noise variance of a new observation is then that of the mean weight of the training rows.

    Examples
    --------
    >>> import warnings
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import SampleWeightWarning
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0)
    >>> model = model.fit(X, y, sample_weight=[1.0, 4.0] * 30)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     intervals = model.predict_interval(X[:2])
    ...     intervals = model.predict_interval(X[:2], sample_weight=[1.0, 4.0])
    >>> [one.category is SampleWeightWarning for one in caught]
    [True]
    """


class ColumnWarning(UlmusWarning):
    """A column of a data frame is excluded, or read in a way that the user may not expect.

    Columns are excluded if they have no values, one value, or texts of which more than half are
    distinct. Doubtful are dates in an unusual form, texts with numbers among them, and numbers with
    thousands separators.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np, pandas as pd
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.exceptions import ColumnWarning
    >>> x = np.linspace(0, 1, 60)
    >>> table = pd.DataFrame({"x": x, "name": [f"n{i}" for i in range(60)]})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(table, x**2)
    >>> [one.category is ColumnWarning for one in caught], model.columns_.names
    ([True], ('x',))
    """


class MissingValuesWarning(UlmusWarning):
    """Rows were excluded, or values of new rows filled in, because values are missing.

    Rows without a target are excluded from a fit. A missing value of a new row is filled in
    silently where training rows had missing values in the same column, and with this warning
    where they had none.

    Examples
    --------
    >>> import warnings
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.exceptions import MissingValuesWarning
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> y[3] = float("nan")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> [one.category is MissingValuesWarning for one in caught], len(model.loo_residuals_)
    ([True], 59)
    """


# Folders whose code is not the user's: this package, scikit-learn and joblib.
_OTHERS = [find_spec(name) for name in ("sklearn", "joblib")]
FOLDERS = (
    str(Path(__file__).parent),
    *(str(Path(spec.origin).parent) for spec in _OTHERS if spec and spec.origin),
)


# Where warnings of the present thread or task are collected; None if they are issued.
_COLLECTED: ContextVar[list[UlmusWarning] | None] = ContextVar("collected", default=None)


@contextmanager
def collect_warnings() -> Iterator[list[UlmusWarning]]:
    """Collect the warnings of ``warn`` in a list instead of issuing them.

    Only those of the present thread or task are collected: ``warnings.catch_warnings`` would record
    those of all threads.
    """
    collected: list[UlmusWarning] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


def warn(message: Message | str, category: type[UlmusWarning]) -> None:
    """Warn at the line of the user's code that led here, at any depth of the call."""
    warning, collected = category(message), _COLLECTED.get()
    if collected is not None:
        collected.append(warning)
        return
    if sys.version_info >= (3, 12):
        warnings.warn(warning, skip_file_prefixes=FOLDERS)
        return
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(FOLDERS):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level if frame is not None else 2)
