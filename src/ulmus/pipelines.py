"""Inference for models inside those of scikit-learn: a Pipeline, a transformed target, a search.

Results are in terms of the columns and the target that the outer model was fitted to.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import Array
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.forward_transforms import ForwardTransforms
from ulmus.core.fit.target import KnownTarget, output_values, transformed_families
from ulmus.core.layer.functionals import Functionals
from ulmus.core.response.target import TargetSpec
from ulmus.core.response.transformer import Fitted, Transformer
from ulmus.effects.columns import Table
from ulmus.effects.encoded_tables import EncodedTable, PipelineTable
from ulmus.estimators._base import BaseELM
from ulmus.estimators._effects import Effects
from ulmus.estimators._inference_source import point_blocks
from ulmus.estimators._joint_inference import JointInference
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting
from ulmus.model_file import save
from ulmus.progress import Progress
from ulmus.tables import TableEncoder
from ulmus.tables.frames import default_feature_names

if TYPE_CHECKING:
    from ulmus.diagnostics import Summary

# Methods of the last step that only require transformed points.
POINT_METHODS = (
    "check",
    "member_correlation",
    "predict",
    "predict_dist",
    "predict_interval",
    "predict_median",
    "predict_quantiles",
    "predict_var",
    "suggest_n_estimators",
    "summary_frame",
    "variance_at",
    "variance_components",
)


def inference(model: Any) -> Any:
    """Inference for a fitted model, also for one inside a Pipeline or with a transformed target.

    Parameters
    ----------
    model : ELMEnsembleRegressor, ELMRegressor, Pipeline, TransformedTargetRegressor or search
        A fitted model: an estimator, a Pipeline whose last step is one, or a
        ``TransformedTargetRegressor`` around either or as the last step. Of a search
        (``GridSearchCV``), the best estimator is used.

    Returns
    -------
    inference : object
        The estimator itself, or an object with its methods for a Pipeline: ``predict_interval``,
        ``predict_var``, ``predict_dist``, ``average``, ``compare``, ``slope``,
        ``partial_dependence``, ``exceedance``, ``simulate``, ``summary``, ``save`` and others.
        They accept tables of the original columns and refer to these by name; changed columns are
        passed through the transformers. With a transformed target, it is a copy of the estimator
        whose results are those of y, as if fitted with ``target_transform``.

    Notes
    -----
    ``predict`` of a ``TransformedTargetRegressor`` is the prediction of the transformed target,
    transformed back: about the median of y, and below its mean for a logarithm. ``predict`` of
    ``ulmus.inference`` is the mean of y. The transformer must increase.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> import ulmus
    >>> from ulmus.tables import TableEncoder
    >>> X = pd.DataFrame({"t": range(60), "kind": ["a", "b", "c"] * 20})
    >>> y = 0.1 * X.t + 2.0 * (X.kind == "b")
    >>> model = ulmus.ELMEnsembleRegressor(n_neurons=20, input_map=None, random_state=0)
    >>> pipe = make_pipeline(TableEncoder(), model).fit(X, y)
    >>> frame = ulmus.inference(pipe).compare(X, {"kind": ["a", "b"]})
    >>> frame.contrast[0], round(frame.estimate[0])
    ('b - a', 2)
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> outer = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp)
    >>> outer = outer.fit(X[["t"]], np.exp(y))
    >>> bool((outer.predict(X[["t"]]) < ulmus.inference(outer).predict(X[["t"]])).all())
    True
    """
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, BaseELM):
        check_is_fitted(model)
        return model
    if isinstance(model, TransformedTargetRegressor):
        check_is_fitted(model)
        inner = inference(model.regressor_)
        if isinstance(inner, PipelineInference):
            return PipelineInference(inner.pipe, _with_target(inner.model, model), model)
        return _with_target(inner, model)
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else None
    if isinstance(last, TransformedTargetRegressor):
        last = inference(last)
    if not isinstance(last, BaseELM):
        classes = "ELMEnsembleRegressor or ELMRegressor, or a Pipeline whose last step is one"
        outer = "or a TransformedTargetRegressor around these"
        raise ValueError(f"model must be a fitted {classes}, {outer}, got {type(model).__name__}.")
    check_is_fitted(last)
    return PipelineInference(model, last)


def _with_target(estimator: BaseELM, outer: TransformedTargetRegressor) -> BaseELM:
    """A copy of an estimator of the transformed target whose results are those of the target."""
    fit, transformer = estimator.fitted_, outer.transformer_
    rows = fit.rows
    if rows is None or fit.response is not None or fit.ensemble.n_outputs > 1:
        raise _refused_target(estimator, outer)
    y = Fitted(transformer, 0.0).inverse(rows.data.y)
    try:
        transform = Transformer(transformer, True).fitted(y[0])
    except InputError as error:
        within = "fit the estimator itself with {}"
        increasing = "use an increasing one with its inverse"
        remedies = increasing, Setting("target_transform", "auto", within)
        message = replace(error.message, parameter="transformer", suggestions=remedies)
        raise InputError(message) from None
    source, target = replace(rows.data, y=y), TargetSpec(transform)
    known = KnownTarget(target, output_values(source))
    fit = fit.with_parameters(target_transform=type(transformer).__name__)
    copied = copy.copy(estimator)
    copied.target_transform = transformer
    copied.fitted_ = replace(
        fit,
        spec=replace(fit.spec, target=target),
        rows=replace(rows, observed=y),
        response=transformed_families(fit, source, ForwardTransforms((transform,)), known),
    )
    return copied


def _refused_target(estimator: BaseELM, outer: TransformedTargetRegressor) -> InputError:
    """Why results cannot be transformed back by a transformer."""
    fit = estimator.fitted_
    if fit.response is not None:
        text = "transforms a target that the estimator transforms, too"
        remedies: tuple[str | Setting, ...] = ("use one of the two",)
    elif fit.rows is None:
        text = "is averaged over the leave-one-out residuals, and the fit keeps no rows"
        remedies = (Setting("target_transform", phrase="fit the estimator itself with {}"),)
    else:
        text = f"transforms {fit.ensemble.n_outputs} outputs together"
        remedies = (Setting("target_transform", phrase="use {} of the estimator, for each output"),)
    name = type(outer.transformer_).__name__
    return InputError(Message("nested-target", text, "transformer", name, remedies))


class PipelineInference(Effects, JointInference):
    """Inference for the last step of a Pipeline, returned by ``ulmus.inference``.

    ``model`` is that step, or a copy whose target is transformed back; ``outer`` is the model that
    contains the Pipeline, if there is one.
    """

    def __init__(self, pipe: Any, model: BaseELM, outer: Any = None) -> None:
        self.pipe, self.model, self.outer = pipe, model, outer

    def __repr__(self) -> str:
        return f"ulmus.inference({self.pipe if self.outer is None else self.outer!r})"

    def __getattr__(self, name: str) -> Any:
        if name not in POINT_METHODS or not hasattr(self.model, name):
            raise AttributeError(f"inference for a Pipeline has no attribute {name!r}")
        method: Callable[..., Any] = getattr(self.model, name)

        @wraps(method)
        def transformed(X: Any = None, *args: Any, **options: Any) -> Any:
            return method(None if X is None else self._transformed(X), *args, **options)

        return transformed

    def summary(self, *, columns: Sequence[str] | None = None) -> Summary:
        """Summary of the last step.

        Parameters
        ----------
        columns : sequence of str, optional
            For each feature of the last step, the column of the table that it was encoded from, so
            that the relevances of one-hot encoded columns are added. By default, the feature names
            of the transformers.

        Returns
        -------
        summary : Summary
            Its ``n_features`` are those of the last step.
        """
        if columns is None and len(self.pipe.steps) > 1:
            # Transformers may have no feature names.
            with suppress(AttributeError, TypeError, ValueError):
                columns = list(self.pipe[:-1].get_feature_names_out())
        return self.model.summary(columns=columns)

    def save(
        self,
        path: Any,
        *,
        rows: bool = True,
        target: str | None = None,
        sample_weight: str | None = None,
    ) -> None:
        """Save the Pipeline to a file of arrays and JSON.

        ``ulmus.load`` returns an estimator that accepts the same tables.

        Parameters
        ----------
        path : str or path-like
            The file, usually ``*.ulmus``.
        rows : bool, default=True
            Whether the training rows are saved, as in ``ELMEnsembleRegressor.save``.
        target : str, default=None
            Name of the response.
        sample_weight : str, default=None
            Name of the column of row weights, which ``ulmus predict`` reads from new tables.
        """
        steps = [step for _, step in self.pipe.steps]
        if len(steps) != 2 or not isinstance(steps[0], TableEncoder):
            raise ValueError(
                "a model file contains no code, and the only transformer it supports is "
                "ulmus.tables.TableEncoder; save the last step, or use skops for the Pipeline."
            )
        names = {"target": target, "sample_weight": sample_weight}
        save(self.model, path, rows=rows, columns=steps[0].schema_, **names)

    def _transformed(self, X: Any) -> Any:
        """A table after the transformers."""
        return self.pipe[:-1].transform(X) if len(self.pipe.steps) > 1 else X

    @property
    def _n_threads(self) -> int:
        return self.model._n_threads

    @property
    def _progress(self) -> Progress | None:
        return self.model._progress

    def _inference_fit(self) -> Fit:
        return self.model.fitted_

    def _table_points(self, X: Any) -> Any:
        return self.model._checked_points(self._transformed(X))

    def _table(self, X: Any) -> Table:
        data = X.to_pandas() if hasattr(X, "to_pandas") else X
        names = getattr(self.pipe, "feature_names_in_", None)
        if names is None:
            inputs = data if hasattr(data, "iloc") else _checked_array(data)
            names = getattr(data, "columns", default_feature_names(inputs.shape[1]))
        else:
            if not hasattr(data, "columns"):
                text = "X has no column names, but the Pipeline was fitted to a data frame"
                raise ValueError(f"{text}; pass a data frame with the same columns.")
            missing = [name for name in names if name not in data.columns]
            if missing:
                raise ValueError(f"X lacks the column {missing[0]!r} of the Pipeline.")
            inputs = data[list(names)]
        first, features = self.pipe.steps[0][1], tuple(map(str, names))
        if not isinstance(first, TableEncoder):
            table = PipelineTable(data, inputs, features, self._valid, None)
            table.points(slice(0, 1), {})  # raises an error if the table cannot be transformed
            return table
        encoded = first.transform(inputs)  # also warns once of unknown categories in all rows
        if len(self.pipe.steps) > 2:
            return PipelineTable(data, inputs, features, self._valid, first.schema_)
        points = self.model._valid_points(encoded)
        return EncodedTable(data, inputs, features, self._valid, first.schema_, points)

    def _valid(self, X: Any) -> Array:
        return self.model._valid_points(self._transformed(X))

    def _warn_about_points(self, functionals: Functionals) -> None:
        self.model._warn_about_extrapolation(point_blocks(functionals, self._inference_fit()))


def _checked_array(X: Any) -> np.ndarray:
    """An array of rows and columns; integers become floats, which can be differentiated."""
    if scipy.sparse.issparse(X):
        text = "X is sparse, but inference for a Pipeline changes columns of a dense table"
        raise ValueError(f"{text}; pass X.toarray(), or use the last step with transformed rows.")
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got {X.ndim} axes.")
    return X.astype(float) if X.dtype.kind in "biu" else X
