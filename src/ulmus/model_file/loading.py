"""Loading a model file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import is_foreign, reference_array
from ulmus.core.fit.fit import Fit
from ulmus.model_file.container import Container, read_container, read_document, refusals
from ulmus.model_file.serialisation import (
    NOISE_CLASSES,
    estimator_class,
    from_arrays,
    from_description,
)
from ulmus.model_file.validation import require_valid_fit
from ulmus.tables.frames import default_feature_names
from ulmus.tables.schema import Schema

PARAMETER_TYPES = (type(None), bool, int, float, str, np.ndarray)


def load(path: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """Load the fitted model of a file that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    device : str, default=None
        Device on which a model that was fitted with torch computes, for example ``"cuda"``. By
        default every model computes with NumPy.

    Returns
    -------
    model : ELMEnsembleRegressor or ELMRegressor
        The fitted estimator. That of a file which ``ulmus fit`` or a Pipeline wrote accepts tables
        with the original columns.

    Raises
    ------
    ulmus.exceptions.ModelFileError
        If the file is damaged, has been changed, has another format, or is something else.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.save : Writes such a file.

    Notes
    -----
    Files contain arrays and JSON; loading a file runs no code of it, whoever wrote it. Checksums
    reveal damage and careless changes, but not intent: whoever can write the file can write its
    checksums too.

    Examples
    --------
    >>> import tempfile
    >>> import ulmus
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ulmus.ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.ulmus")
    ...     again = ulmus.load(f"{folder}/model.ulmus")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    container = read_container(os.fspath(path))
    with refusals(path):
        model = _unfitted(container)
    reference = None if device is None else reference_array(np.empty(0), device, model.dtype)
    with refusals(path):
        fit = from_arrays(container.arrays, container.document["fit"], reference)
        require_valid_fit(fit, _n_inputs(model))
    if device is not None and not is_foreign(fit.ensemble.layer.W):
        text = f"device={device!r} is for models that were fitted with torch, not with NumPy"
        raise ValueError(f"{text}; load this one with device=None.")
    model.fitted_ = _moved(fit, model.device, device)
    model.device = device
    return model


def model_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description in a model file, without its arrays.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    document : dict
        With ``format``, ``ulmus`` (the version that wrote it), ``date``, ``class``, ``parameters``,
        ``columns`` (names, and the schema of the table), ``target`` and ``sample_weight`` (names of
        columns), and ``training`` (rows, outputs, and the range of each input).

    Examples
    --------
    >>> import tempfile
    >>> import ulmus
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ulmus.ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.ulmus")
    ...     document = ulmus.model_file.model_document(f"{folder}/model.ulmus")
    >>> document["class"], document["training"]["rows"]
    ('ELMEnsembleRegressor', 60)
    """
    document = read_document(os.fspath(path))
    return {key: value for key, value in document.items() if key not in ("fit", "arrays")}


def _unfitted(container: Container) -> Any:
    """The estimator of a file with its parameters and columns, without its fit."""
    document = container.document
    cls = estimator_class(document["class"])
    unknown = sorted(set(document["parameters"]) - set(cls().get_params(deep=False)))
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {unknown[0]!r:.80}")
    parameters = {
        name: from_description(container.arrays, value, classes=NOISE_CLASSES)
        for name, value in document["parameters"].items()
    }
    for name, value in parameters.items():
        noise = name == "noise" and type(value) in NOISE_CLASSES.values()
        if not (noise or _is_parameter(value)):
            raise ValueError(f"the parameter {name} cannot be a {type(value).__name__}")
    model = cls(**parameters)
    model._require_saved_parameters()
    count, names = document["columns"]["count"], document["columns"]["names"]
    model.n_features_in_ = count
    if names is not None:
        if len(names) != count or not all(isinstance(name, str) for name in names):
            raise ValueError(f"it does not list the names of {count!r:.20} columns")
        model.feature_names_in_ = np.array(names, dtype=object)
    if document["columns"]["schema"] is not None:
        model.columns_ = _schema(document["columns"]["schema"], names, count)
    return model


def _schema(description: Any, names: list[str] | None, count: int) -> Schema:
    """The schema of a file, whose columns must be those of the model."""
    schema = Schema.from_description(description)
    known = default_feature_names(count) if names is None else names
    if not set(schema.names) <= set(known):
        raise ValueError("the columns of its schema are not those of its model")
    return schema


def _n_inputs(model: Any) -> int:
    """Number of inputs of the fit of an estimator."""
    schema = vars(model).get("columns_")
    return int(model.n_features_in_) if schema is None else len(schema.features)


def _is_parameter(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_parameter, value))
    return isinstance(value, PARAMETER_TYPES)


def _moved(fit: Fit, before: Any, device: str | None) -> Fit:
    """The fit with its device renamed, so that ``partial_fit`` continues on the new one."""
    if fit.spec.parameters.get("device") != repr(before):
        return fit
    return fit.with_parameters(device=repr(device))
