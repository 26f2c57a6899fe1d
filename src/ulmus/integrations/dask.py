"""Fitting and predicting Dask collections, on any cluster of ``distributed``.

Each partition becomes the same sums over rows as in memory; the sums are added pairwise on the
workers, so that only matrices of the size of the model are transferred, and a partition whose
worker is lost is computed again.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ulmus.core.arrays.backend import Array
from ulmus.core.arrays.threads import one_blas_thread, thread_pool
from ulmus.core.data.source import Block, RowPass, first_rows
from ulmus.core.fit.build import build
from ulmus.estimators._base import BaseELM
from ulmus.estimators._column_blocks import CodedBlock, coded_block, encoded_blocks
from ulmus.estimators._parameters import fit_spec
from ulmus.estimators._validation import checked_reference
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.noise.assumptions import noise_assumption
from ulmus.tables.blocks import checked_block, split_block
from ulmus.tables.frames import column_names
from ulmus.tables.schema import Schema
from ulmus.tables.training_encoding import TrainingEncoding

try:
    import dask
    import dask.array as da
except ImportError as error:
    raise ImportError("ulmus.dask needs dask and distributed; install ulmus[dask].") from error

__all__ = ["fit", "predict", "predict_var"]

Estimator = TypeVar("Estimator", bound=BaseELM)


def fit(estimator: Estimator, X: Any, y: Any, sample_weight: Any = None) -> Estimator:
    """Fit an estimator to Dask arrays or data frames.

    Parameters
    ----------
    estimator : ELMRegressor or ELMEnsembleRegressor
        Estimator to fit.
    X : dask array of shape (n_samples, n_features) or dask dataframe
        Training inputs. Partitions of ten thousand to a million rows are best: each becomes
        one task a pass.
    y : dask array of shape (n_samples,) or (n_samples, n_outputs), or dask series or dataframe
        Training outputs.
    sample_weight : dask array or series of shape (n_samples,), default=None
        Inverse noise variance of each row, up to a constant factor.

    Returns
    -------
    estimator : object
        The same estimator, fitted as ``fit_blocks`` would: copies of rows are not searched for.

    Examples
    --------
    >>> import dask.array as da
    >>> import ulmus.dask
    >>> from ulmus import ELMEnsembleRegressor
    >>> X = da.random.default_rng(0).uniform(size=(2000, 2), chunks=(500, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0)
    >>> model = ulmus.dask.fit(model, X, y)
    >>> bool(abs(model.predict([[0.5, 0.5]])[0] - 0.25) < 0.01)
    True
    """
    fresh = estimator._unfitted()
    if noise_assumption(fresh.noise).correlated:
        text = "requires rows in an order, and partitions of a cluster have none"
        suggestions = ("use fit", "use fit_blocks", Setting("noise", "auto"))
        raise InputError(Message("needs-order", text, "noise", fresh.noise, suggestions))
    names, encoded = column_names(X), None
    if hasattr(X, "to_delayed") and names is not None:
        encoded = _encoded_frames(fresh, X, y, sample_weight)
    if encoded is None:
        n_features, output_shape, partitions = _partitions(X, y, sample_weight)
        schema = None
    else:
        schema, output_shape, partitions = encoded
        n_features = len(schema.features)
    source = DaskSource(partitions, n_features, checked_reference(fresh, np.empty(0)))
    fresh._set_features(n_features if schema is None else len(names or ()), names)
    if schema is not None:
        fresh.columns_ = schema
    spec = fit_spec(fresh, n_features, math.prod(output_shape), not output_shape, schema=schema)
    with thread_pool(fresh._n_threads):
        return estimator._adopt(fresh, build(source, spec, search=fresh._map_search))


def predict(estimator: Any, X: Any) -> Any:
    """Predictions for the rows of a Dask collection, computed where they are.

    Parameters
    ----------
    estimator : fitted ELMRegressor or ELMEnsembleRegressor
        The model.
    X : dask array or dataframe
        Points.

    Returns
    -------
    y : dask array or series
        Predictions, not computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> import ulmus.dask
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> ulmus.dask.predict(model, da.from_array(X)).compute().shape
    (60,)
    """
    return _mapped(X, estimator.predict, estimator)


def predict_var(
    estimator: Any, X: Any, component: str = "total", estimate: str | None = None
) -> Any:
    """Variances at the rows of a Dask collection, computed where they are.

    Parameters
    ----------
    estimator : fitted ELMRegressor or ELMEnsembleRegressor
        The model.
    X : dask array or dataframe
        Points.
    component, estimate : str
        As in the method ``predict_var``.

    Returns
    -------
    variance : dask array or series
        Variances, not computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> import ulmus.dask
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> ulmus.dask.predict_var(model, da.from_array(X)).compute().shape
    (60,)
    """

    def variance(block: Any) -> Any:
        return estimator.predict_var(block, component=component, estimate=estimate)

    return _mapped(X, variance, estimator)


def _mapped(X: Any, function: Any, estimator: Any) -> Any:
    shape = () if estimator.fitted_.one_output else (estimator.fitted_.ensemble.n_outputs,)

    def rows(block: Any) -> Any:
        """Values at the rows of a block, which may be empty."""
        return function(block) if len(block) else np.empty((0, *shape), dtype=block.dtype)

    if hasattr(X, "map_partitions"):
        import pandas as pd

        def frame(part: Any) -> Any:
            values = function(part) if len(part) else np.empty((0, *shape))
            kind = pd.Series if values.ndim == 1 else pd.DataFrame
            return kind(values, index=part.index)

        return X.map_partitions(frame, meta=frame(X._meta))
    X = X.rechunk({1: -1})
    if not shape:
        return X.map_blocks(rows, drop_axis=1, dtype=X.dtype)
    return X.map_blocks(rows, chunks=(X.chunks[0], shape), dtype=X.dtype)


@dataclass(frozen=True)
class DaskSource:
    """Partitions as a source for the passes of a fit."""

    partitions: Sequence[tuple[Any, Any, Any]]  # (X, y, weight): delayed blocks
    width: int  # hidden features of a row
    reference: Array  # an array of the kind to compute with

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass on every partition and add up the results in pairs, on the workers."""
        shared = dask.delayed(row_pass), self.width, self.reference
        run, add = dask.delayed(_partial_pass), dask.delayed(_sum_of_used)
        level = [run(part, index, *shared) for index, part in enumerate(self.partitions)]
        while len(level) > 1:
            level = [add(level[i : i + 2]) for i in range(0, len(level), 2)]
        total = level[0].compute()
        if total is None:
            raise ValueError("X has no rows; give at least two rows of data.")
        return total

    def sample(self, n_rows: int) -> Block:
        """The first rows of positive weight, brought here."""
        return first_rows(self._blocks(), n_rows)

    def for_width(self, width: int) -> DaskSource:
        """The same rows in blocks of a size that suits so many hidden features."""
        return replace(self, width=width)

    def _blocks(self) -> Any:
        for index, part in enumerate(self.partitions):
            block = checked_block(dask.compute(*part), f"partition {index}")
            yield from split_block(block, self.width, self.reference)


def _partial_pass(part: Any, index: int, row_pass: RowPass, width: int, ref: Array) -> Any:
    block = checked_block(tuple(part), f"partition {index}")
    with one_blas_thread:
        return row_pass(split_block(block, width, ref)) if block.X.shape[0] else None


def _sum_of_used(parts: list[Any]) -> Any:
    used = [part for part in parts if part is not None]
    if not used:
        return None
    return used[0] if len(used) == 1 else operator.add(*used)


def _partitions(
    X: Any, y: Any, sample_weight: Any
) -> tuple[int, tuple[int, ...], list[tuple[Any, Any, Any]]]:
    """Number of features, shape of the outputs of a row, and delayed blocks of rows."""
    X, y, weight = (_array(a) for a in (X, y, sample_weight))
    X = X.rechunk({1: -1}).astype(float)
    rows = X.chunks[0]
    for name, other in (("y", y), ("sample_weight", weight)):
        if other is not None and other.shape[0] != X.shape[0]:
            lengths = f"X has {X.shape[0]} rows and {name} {other.shape[0]}"
            raise ValueError(f"{lengths}; give one of each per row.")
    y = y.rechunk({0: rows, **({1: -1} if y.ndim == 2 else {})})
    X_parts, y_parts = X.to_delayed().ravel(), y.to_delayed().ravel()
    if weight is None:
        weights: Sequence[Any] = [None] * len(X_parts)
    else:
        weights = weight.rechunk({0: rows}).to_delayed().ravel()
    return int(X.shape[1]), y.shape[1:], list(zip(X_parts, y_parts, weights, strict=True))


def _encoded_frames(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Schema, tuple[int, ...], list[tuple[Any, Any, Any]]] | None:
    """The schema of data frames, shape of the outputs, and delayed blocks of encoded rows.

    The schema is learned here, one partition at a time; None if all partitions are numbers.
    """
    columns = [part.to_delayed() for part in (X, y, sample_weight) if part is not None]
    parts = list(zip(*(np.ravel(column) for column in columns), strict=True))

    def read() -> Iterator[Any]:
        return (dask.compute(*part) for part in parts)

    encoded = encoded_blocks(estimator, read)
    if encoded.encoding is None:
        return None
    code, encode = dask.delayed(coded_block), dask.delayed(_encoded_part, nout=3)
    sizes = dask.compute(*(dask.delayed(_n_kept)(encoded.schema, part) for part in parts))
    blocks, n_read, n_kept = [], 0, 0
    for part, (rows, kept) in zip(parts, sizes, strict=True):
        coded = code(encoded.schema, part, n_read, n_kept)
        blocks.append(tuple(encode(encoded.encoding, coded)))
        n_read, n_kept = n_read + rows, n_kept + kept
    return encoded.encoding.schema, y.shape[1:], blocks


def _n_kept(schema: Schema, part: Any) -> tuple[int, int]:
    """Number of rows of a partition with a target, and of those that the schema keeps."""
    coded = coded_block(schema, part, 0, 0)
    return coded.n_read, len(coded.codes)


def _encoded_part(encoding: TrainingEncoding, coded: CodedBlock) -> tuple[Any, Any, Any]:
    X, y, *weight = coded.encoded(encoding)
    return np.asarray(X), np.asarray(y, dtype=float), weight[0] if weight else None


def _array(collection: Any) -> Any:
    """A Dask array of known chunk sizes, from an array, a data frame or a series."""
    if collection is None:
        return None
    if hasattr(collection, "to_dask_array"):
        return collection.to_dask_array(lengths=True)
    if not isinstance(collection, da.Array):
        text = f"ulmus.dask needs Dask arrays or data frames, got {type(collection).__name__}"
        raise ValueError(f"{text}; use the estimator's own fit or fit_blocks for other tables.")
    if any(np.isnan(size) for size in collection.shape):
        return collection.compute_chunk_sizes()
    return collection
