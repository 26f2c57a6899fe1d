"""Model files: a fitted model comes back from a file in which nothing can run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from ulmus.core.arrays.backend import is_foreign, reference_array
from ulmus.core.ensemble.regression import Specification
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer_spec import LayerSpec
from ulmus.core.fit.misfit import Misfit
from ulmus.core.fit.refits import MapRefit
from ulmus.core.layer.hidden_layer import UnitLaw
from ulmus.estimators import ELMEnsembleRegressor, ELMRegressor
from ulmus.estimators._fit_warnings import told, untold
from ulmus.estimators._parameters import checked_choice, checked_noise
from ulmus.estimators._saving import save_model
from ulmus.model_file.archives import Archive, read_archive, read_document, refusals
from ulmus.model_file.serialisation import CLASSES as FIT_CLASSES
from ulmus.model_file.serialisation import restored, restored_value
from ulmus.noise.kinds import KINDS, CorrelatedNoise
from ulmus.tables import Schema, TableEncoder

__all__ = ["SKOPS_TRUSTED_TYPES", "load", "model_document", "save_model"]

CLASSES = {cls.__name__: cls for cls in (ELMEnsembleRegressor, ELMRegressor)}
#: What ``skops.io.load(path, trusted=SKOPS_TRUSTED_TYPES)`` must trust to load a fitted estimator:
#: our own values, and SciPy's sparse arrays for those that were fitted to them.
SKOPS_TRUSTED_TYPES = tuple(
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (
        *CLASSES.values(),
        *FIT_CLASSES.values(),
        *KINDS.values(),
        Misfit,
        LayerSpec,
        MapRefit,
        Specification,
        UnitLaw,
        told,
        untold,
        scipy.sparse.csr_array,
    )
)
PLAIN = (type(None), bool, int, float, str, np.ndarray)


def load(path: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """The fitted model of a file that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    device : str, default=None
        Where a model that was fitted with torch shall compute, for example ``"cuda"``. By default
        every model computes with NumPy.

    Returns
    -------
    model : ELMEnsembleRegressor, ELMRegressor or Pipeline
        The fitted estimator; of a file that ``ulmus fit`` wrote, a Pipeline that takes tables of
        the original columns (``ulmus.inference(pipe)`` has its error bars).

    Raises
    ------
    ulmus.exceptions.ModelFileError
        If the file is damaged, has been changed, is of a newer format, or is something else.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.save : Writes such a file.

    Notes
    -----
    Files hold arrays and JSON; loading one runs nothing of it, whoever wrote it. Checksums show
    damage and careless changes. They cannot show that a file was made to mislead: who may write
    the file may write its checksums too.

    Examples
    --------
    >>> import os, tempfile
    >>> import ulmus
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ulmus.ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.ulmus")
    ...     model.save(path)
    ...     again = ulmus.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    archive = read_archive(os.fspath(path))
    with refusals(path):
        model = _unfitted(archive)
    reference = None if device is None else reference_array(np.empty(0), device, model.dtype)
    with refusals(path):
        fit = restored(archive.arrays, archive.document["fit"], reference)
        _require_sound(fit, model.n_features_in_)
    if device is not None and not is_foreign(fit.ensemble.layer.W):
        raise ValueError(
            f"device={device!r} is for models that were fitted with torch, and this one was fitted "
            "with NumPy; load it with device=None."
        )
    model.fitted_ = _moved(fit, model.device, device)
    model.device = device
    schema = archive.document["columns"]["schema"]
    if schema is None:
        return model
    with refusals(path):
        encoder = TableEncoder.of(Schema.restored(schema))
        if list(encoder.schema_.features) != archive.document["columns"]["names"]:
            raise ValueError("its columns and its inputs do not go together")
    # It loads parts of scikit-learn that others do not need.
    from sklearn.pipeline import Pipeline

    return Pipeline([("columns", encoder), ("model", model)])


def model_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about itself, without its arrays.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    document : dict
        With ``format``, ``ulmus`` (the version that wrote it), ``date``, ``class``, ``parameters``,
        ``columns`` (names, and the schema of the table), ``target`` and ``training`` (rows,
        outputs, and the range of each input).

    Examples
    --------
    >>> import os, tempfile
    >>> import ulmus
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ulmus.ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.ulmus")
    ...     model.save(path)
    ...     document = ulmus.model_file.load.model_document(path)
    >>> document["class"], document["training"]["rows"]
    ('ELMEnsembleRegressor', 60)
    """
    document = read_document(os.fspath(path))
    return {key: value for key, value in document.items() if key not in ("fit", "arrays")}


def _unfitted(archive: Archive) -> Any:
    """The estimator of a file with its parameters and columns, without its fit."""
    document = archive.document
    if document["class"] not in CLASSES:
        raise ValueError(f"there is no class {document['class']!r:.80}")
    cls = CLASSES[document["class"]]
    known = cls().get_params(deep=False)
    unknown = sorted(set(document["parameters"]) - set(known))
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {unknown[0]!r:.80}")
    parameters = {
        name: restored_value(archive.arrays, value, classes=KINDS)
        for name, value in document["parameters"].items()
    }
    for name, value in parameters.items():
        if not (_is_plain(value) or (name == "noise" and isinstance(value, CorrelatedNoise))):
            raise ValueError(f"the parameter {name} cannot be a {type(value).__name__}")
    model = cls(**parameters)
    checked_choice("dtype", model.dtype, ("float64", "float32"))
    checked_noise(model.noise)
    count, names = document["columns"]["count"], document["columns"]["names"]
    model.n_features_in_ = count
    if names is not None:
        if len(names) != count or not all(isinstance(name, str) for name in names):
            raise ValueError(f"it has no names of {count!r:.20} columns")
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, PLAIN)


def _moved(fit: Fit, before: Any, device: str | None) -> Fit:
    """The same fit for another device, to which rows can still be added if they could before."""
    if fit.drawn.get("device") != repr(before):
        return fit
    return replace(fit, drawn={**fit.drawn, "device": repr(device)})


def _require_sound(fit: Fit, n_features: Any) -> None:
    """Refuse a fit whose parts do not go together."""
    K, M, d = fit.ensemble.n_outputs, fit.ensemble.n_members, len(fit.scale.mean)
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "range": (fit.scale.low, (d,)),
        "range above": (fit.scale.high, (d,)),
        "points": (fit.points, (fit.points.shape[0], d)),
    }
    if fit.rows is not None:
        rows, n = fit.rows, fit.rows.data.n_rows
        if rows.locations is not None and rows.locations.n != n:
            raise ValueError(f"it has {rows.locations.n} locations of {n} rows")
        shapes |= {
            "inputs of the rows": (rows.data.X, (n, d)),
            "outputs of the rows": (rows.data.y, (K, n)),
            "weights of the rows": (rows.data.root_weight, (n,)),
            "labels of blocks": (rows.data.cut, (n,)),
            "leverages": (rows.leverage, (K, n)),
            "left-out residuals": (rows.loo, (M, K, n)),
            "errors of left-out rows": (rows.norm, (K, n)),
            "noise of the rows": (rows.noise, (K, n)),
            "squared residuals": (rows.omega, (K, n)),
            "rows set aside": (rows.tuned, (n,)),
        }
    for name, (array, expected) in shapes.items():
        if array is not None and tuple(array.shape) != expected:
            raise ValueError(f"the {name} have the shape {tuple(array.shape)}, not {expected}")
    outputs = sorted(k for part in fit.ensemble.regressions for k in part.outputs)
    if outputs != list(range(K)):
        raise ValueError(f"its regressions are of the outputs {outputs!r:.80}, not of {K}")
    if d != n_features or (fit.one_output and K != 1) or not fit.estimates:
        raise ValueError("inputs, outputs and estimates do not go together")
    point = np.asarray(fit.scale.mean, dtype=float)[None, :]
    with np.errstate(all="ignore"):
        parts = [fit.parts(point, estimate) for estimate in fit.estimates]
        noise = fit.noise_variance(point) + fit.choice_variance(point)
    means = [fit.mean(point).T, *(part.mean for part in parts)]
    if noise.shape != (1, K) or not all(m.shape == (1, K) for m in means):
        raise ValueError("outputs and predictions do not go together")
    if not np.all(np.isfinite(means)):
        raise ValueError("it predicts no numbers")
