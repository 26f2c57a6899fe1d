"""Saving a fitted estimator as a model file; ``ulmus.load`` reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.fit.fit import Fit
from ulmus.estimators._parameters import checked_flag
from ulmus.intervals.distribution import without_rows
from ulmus.model_file.archives import write_archive
from ulmus.model_file.atomic_write import replaced
from ulmus.model_file.serialisation import described, listed
from ulmus.noise.kinds import KINDS

# Classes that a file can be of; ``ulmus.model_file.load`` has the table of them.
SAVED_CLASSES = ("ELMEnsembleRegressor", "ELMRegressor")
# What a file has in the place of a generator, whose state it does not keep.
GENERATOR_NOTE = "random_state was a generator; a file keeps what it drew, and None in its place"


class Saving:
    """The method that writes a model file."""

    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Save the fitted model in a file that holds arrays and JSON, and nothing that can run.

        Parameters
        ----------
        path : str or path-like
            The file, usually ``*.ulmus``. An existing one is replaced at once when all is written.
        rows : bool, default=True
            Whether the training rows are saved, where the fit has them: jackknife+ intervals,
            ``check()`` and attributes of length ``n_samples`` need them, and whoever has the file
            can read them. With False the file has what ``compress()`` leaves; the model in
            memory stays as it is.

        See Also
        --------
        ulmus.load : The model of a file.

        Notes
        -----
        A loaded model answers as before, to the last bit on the same machine. With at most 400
        rows and a learned map, what the error bars need is computed now, if no error bar was asked
        for before: five times as long as the fit. ``method="cv+"`` is kept for such models, and
        for larger ones if it has been asked for. :doc:`/guide/model_files`
        says what is in a file.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> import ulmus
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 6, size=(80, 1))
        >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(80)
        >>> model = ulmus.ELMEnsembleRegressor(4, 20, input_map=None, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.ulmus")
        ...     model.save(path)
        ...     again = ulmus.load(path)
        >>> bool(np.all(again.predict_interval(X) == model.predict_interval(X)))
        True
        """
        save_model(self, path, rows=rows)


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    rows: bool = True,
    columns: Mapping[str, Any] | None = None,
    target: str | None = None,
) -> None:
    """Save a fitted estimator, perhaps with what its table's columns are.

    Parameters
    ----------
    model : ELMEnsembleRegressor or ELMRegressor
        The fitted estimator.
    path : str or path-like
        The file.
    rows : bool, default=True
        Whether its training rows are saved.
    columns : mapping, optional
        Description of the table that the estimator's inputs are made of, as JSON: that of a
        ``ulmus.tables.Schema``. ``ulmus.load`` then gives a Pipeline.
    target : str, optional
        Name of what is predicted.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.save : The same for an estimator without columns.

    Examples
    --------
    >>> import os, tempfile
    >>> import ulmus
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ulmus.ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.ulmus")
    ...     ulmus.model_file.load.save_model(model, path, rows=False, target="height")
    ...     ulmus.model_file.load.model_document(path)["target"]
    'height'
    """
    check_is_fitted(model)
    checked_flag("rows", rows)
    cls = type(model)
    if cls.__name__ not in SAVED_CLASSES or not cls.__module__.startswith("ulmus.estimators."):
        raise ValueError(
            f"a model file is of {' or '.join(SAVED_CLASSES)}, got {cls.__name__}; save the fitted "
            "estimator itself."
        )
    with replaced(path) as temporary:
        parameter_arrays, parameters, notes = _parameters(model)
        fit = model.fitted_ if rows else without_rows(model.fitted_)
        if notes and "random_state" in fit.drawn:
            fit = replace(fit, drawn={**fit.drawn, "random_state": "None"})
        fit_arrays, description = listed(fit)
        document = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "class": cls.__name__,
            "parameters": parameters,
            "notes": notes,
            "columns": _columns(model, columns),
            "target": target,
            "training": _training(fit),
            "fit": description,
        }
        write_archive(temporary, document, {**parameter_arrays, **fit_arrays})


def _parameters(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any], list[str]]:
    """Arrays among the parameters, a description of each, and notes about those left out."""
    arrays, descriptions, notes = {}, {}, []
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, (np.random.Generator, np.random.RandomState)):
            notes.append(GENERATOR_NOTE)
            value = None
        try:
            more, descriptions[name] = described(value, f"parameters.{name}", KINDS)
        except ValueError:
            remedy = (
                "fit with an activation by name" if name == "activation" else "use plain values"
            )
            raise ValueError(
                f"{name}={value!r} cannot be saved, as a model file holds nothing that can run; "
                f"{remedy}."
            ) from None
        arrays.update(more)
    return arrays, descriptions, notes


def _columns(model: Any, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """The inputs of an estimator, and of what table they are made."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "count": int(model.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "dtype": "float64",
        "schema": None if schema is None else dict(schema),
    }


def _training(fit: Fit) -> dict[str, Any]:
    """What a reader may want to know of the rows behind a model."""
    return {
        "rows": fit.n_rows,
        "outputs": fit.ensemble.n_outputs,
        "low": [float(x) for x in fit.scale.low],
        "high": [float(x) for x in fit.scale.high],
        "rows_kept": fit.rows is not None,
    }
