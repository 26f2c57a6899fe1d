"""Saving a fitted estimator as a model file."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.atomic_write import atomic_write
from ulmus.core.arrays.threads import thread_pool
from ulmus.core.fit.fit import Fit
from ulmus.core.response import Counts
from ulmus.core.response.transformer import Fitted
from ulmus.exceptions import InputError
from ulmus.intervals.distribution import without_rows
from ulmus.messages import Message, Setting
from ulmus.model_file.container import write_container
from ulmus.model_file.serialisation import (
    ESTIMATORS,
    NOISE_CLASSES,
    describe,
    estimator_class,
    to_arrays,
)
from ulmus.tables.schema import Schema


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    rows: bool = True,
    columns: Schema | None = None,
    target: str | None = None,
    sample_weight: str | None = None,
) -> None:
    """Save a fitted estimator, optionally with the schema of its table.

    Parameters
    ----------
    model : ELMEnsembleRegressor or ELMRegressor
        The fitted estimator.
    path : str or path-like
        The file; an existing one is replaced when all is written.
    rows : bool, default=True
        Whether the training rows are saved.
    columns : ulmus.tables.Schema, optional
        Columns of the table that the inputs are computed from, for an estimator that was fitted
        behind a ``TableEncoder``. That of ``ulmus.load`` then accepts such tables. By default,
        the attribute ``columns_`` of the estimator.
    target : str, optional
        Name of the response.
    sample_weight : str, optional
        Name of the column of row weights.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.save : The same for an estimator without a table.

    Examples
    --------
    >>> import tempfile
    >>> import ulmus
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ulmus.ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/model.ulmus"
    ...     ulmus.model_file.save(model, path, rows=False, target="height")
    ...     ulmus.model_file.model_document(path)["target"]
    'height'
    """
    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not estimator_class(name):
        text = f"a model file requires an estimator of class {' or '.join(ESTIMATORS)}, got {name}"
        raise ValueError(f"{text}; save the fitted estimator itself.")
    check_is_fitted(model)
    if not isinstance(rows, (bool, np.bool_)):
        raise ValueError(f"rows must be True or False, got {rows!r}.")
    _refuse_transformer(model)
    with atomic_write(path) as temporary:
        parameter_arrays, parameters, notes = _parameters(model)
        with thread_pool(model._n_threads):  # refits may have to be computed
            fit = model.fitted_ if rows else without_rows(model.fitted_)
            if notes and "random_state" in fit.spec.parameters:
                fit = fit.with_parameters(random_state="None")
            fit_arrays, description = to_arrays(fit)
        document = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "class": name,
            "parameters": parameters,
            "notes": notes,
            "columns": _columns(model, columns),
            "target": target,
            "sample_weight": sample_weight,
            "training": _training(fit),
            "fit": description,
        }
        write_container(temporary, document, {**parameter_arrays, **fit_arrays})


def _refuse_transformer(model: Any) -> None:
    """Raise an error for a target that is transformed by an object of any class."""
    for family in model.fitted_.response or ():
        transform = None if isinstance(family, Counts) else family.transform
        if isinstance(transform, Fitted):
            text = "is an object of another package, and a model file contains no code"
            named = Setting("target_transform", "yeo-johnson", "fit with a name such as {}")
            remedies = named, "use skops, with ulmus.model_file.SKOPS_TRUSTED_TYPES"
            name = transform.name
            raise InputError(
                Message("transformer-not-saved", text, "target_transform", name, remedies)
            )


def _parameters(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any], list[str]]:
    """Arrays among the parameters, a description of each, and notes about those not saved."""
    arrays, descriptions, notes = {}, {}, []
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            notes.append(f"{name} was a generator; its draws are saved, and None in its place")
            value = None
        try:
            more, descriptions[name] = describe(value, f"parameters.{name}", NOISE_CLASSES)
        except ValueError:
            text = f"{name}={value!r} cannot be saved, as a model file contains no code"
            plain = "an activation by name" if name == "activation" else "plain values"
            raise ValueError(f"{text}; use {plain}.") from None
        arrays.update(more)
    return arrays, descriptions, notes


def _columns(model: Any, schema: Schema | None) -> dict[str, Any]:
    """Number and names of the columns of a table, and how they are encoded as inputs."""
    names, count = getattr(model, "feature_names_in_", None), int(model.n_features_in_)
    if schema is not None:  # the names of a Pipeline's table
        names, count = schema.names, len(schema.names)
    schema = vars(model).get("columns_") if schema is None else schema
    return {
        "count": count,
        "names": None if names is None else [str(name) for name in names],
        "dtype": "float64",
        "schema": None if schema is None else schema.describe(),
    }


def _training(fit: Fit) -> dict[str, Any]:
    """Facts about the training rows."""
    return {
        "rows": fit.n_rows,
        "outputs": fit.ensemble.n_outputs,
        "low": [float(x) for x in fit.scale.low],
        "high": [float(x) for x in fit.scale.high],
        "rows_kept": fit.rows is not None,
        # The variance of a new observation follows from its mean, whatever weights the rows had.
        "weights_of_means": fit.has_working_weights,
    }
