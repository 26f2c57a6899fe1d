"""The joint covariance of the rows of a frame, by the labels of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ulmus.core.arrays.backend import FloatArray
from ulmus.exceptions import InputError
from ulmus.messages import Message

# Relative difference between a standard error and the root of a variance that is round-off.
ROUND_OFF = 1e-6


class JointCovariance(NDArrayOperatorsMixin):
    """Joint covariance of the estimates in the rows of a frame.

    It is ``frame.attrs["covariance"]`` of an effect. pandas passes attributes on unchanged when
    rows are sorted or selected, so that rows are found by the labels of the index: ``of(frame)`` is
    the covariance of the rows of any frame with these labels. NumPy functions convert the object to
    an array in the order of the frame that was returned.

    Parameters
    ----------
    values : array-like of shape (q, q)
        Covariances; NaN where they are not estimated.
    index : sequence of length q
        Labels of the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> frame = model.average(X, by=(X[:, 0] // 2).astype(int))
    >>> largest = frame.sort_values("estimate", ascending=False).head(2)
    >>> covariance = frame.attrs["covariance"]
    >>> covariance.of(largest).shape
    (2, 2)
    >>> bool(covariance.loc[0, 1] == covariance.of(frame)[0, 1])
    True
    """

    def __init__(self, values: Any, index: Any) -> None:
        import pandas as pd

        self._table = pd.DataFrame(np.array(values, dtype=float), index, index)

    @property
    def index(self) -> Any:
        """Labels of the rows, a pandas Index."""
        return self._table.index

    @property
    def loc(self) -> Any:
        """Covariances by labels, as of a data frame."""
        return self._table.loc

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, twice."""
        return self._table.shape

    def of(self, frame: Any) -> FloatArray:
        """Covariance of the rows of a frame, found by their labels.

        Parameters
        ----------
        frame : pandas.DataFrame
            Some rows of the frame that the covariance belongs to, in any order, with their index.

        Returns
        -------
        covariance : ndarray of shape (r, r)
            The covariance of these rows.
        """
        position = self.index.get_indexer(frame.index)
        if np.any(position < 0):
            label = list(frame.index)[int(np.argmin(position))]
            raise _index_error(f"has the label {label!r}, which no row of the covariance has")
        covariance = np.asarray(self)[np.ix_(position, position)]
        if "std_error" in frame:
            expected = frame["std_error"].to_numpy(dtype=float)
            found = np.sqrt(np.diagonal(covariance))
            if not np.allclose(found, expected, rtol=ROUND_OFF, atol=0, equal_nan=True):
                raise _index_error("has labels of rows with other standard errors")
        return covariance

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The covariances as an array."""
        values = self._table.to_numpy(dtype=dtype)
        return values.copy() if copy else values

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Arithmetic with the array."""
        arrays = (np.asarray(x) if isinstance(x, JointCovariance) else x for x in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getitem__(self, key: Any) -> Any:
        """Elements of the array, by position."""
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        """Whether labels and values agree: pandas requires a scalar of attributes."""
        return isinstance(other, JointCovariance) and bool(self._table.equals(other._table))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._table)


def _index_error(text: str) -> InputError:
    remedy = "keep the index of the frame: sort and select rows without reset_index"
    return InputError(
        Message("covariance-index", f"the index of the frame {text}", suggestions=(remedy,))
    )
