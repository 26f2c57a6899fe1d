"""The page: numbers of a model, and the script that computes from them in a browser."""

from __future__ import annotations

import html
import json
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.atomic_write import atomic_write
from ulmus.core.arrays.threads import thread_pool
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.small_forms import SmallForms, small_forms
from ulmus.estimators._base import BaseELM
from ulmus.estimators._parameters import checked_levels
from ulmus.exceptions import InputError
from ulmus.explore.arrays import packed
from ulmus.explore.controls import Columns, controls, model_columns
from ulmus.explore.model import Output, form_arrays, prediction_arrays
from ulmus.explore.observations import (
    LEVELS,
    MOST_SHIFTS,
    needs_shifts,
    observation_arrays,
)
from ulmus.explore.training_rows import ShownRows, shown_rows, start_codes
from ulmus.messages import invalid
from ulmus.version import __version__

FOLDER = Path(__file__).parent
# In the order in which they use each other.
SCRIPTS = (
    "special",
    "model",
    "intervals",
    "response",
    "columns",
    "format",
    "chart",
    "rows",
    "controls",
    "links",
    "panel",
)
# Bytes of all numbers, four thirds of which are the size of the page. What other numbers leave is
# for forms of low rank, with elements of two bytes, of which there are at least some. Where these
# are not accurate, forms are larger.
MOST_BYTES = 2.1e6
FEWEST_ELEMENTS, MOST_ELEMENTS = 3 * 10**5, 8 * 10**5
LARGER = (2 * 10**6,)
# Rank of these forms that leave-one-out shifts are expected to have.
EXPECTED_RANK = 300
# Smaller relative errors of standard errors, on average, need no note.
NEGLIGIBLE_ERROR = 0.002


def write_explorer(
    model: Any,
    path: Any,
    *,
    target: str = "y",
    title: str | None = None,
    output: int = 0,
    confidence_level: float = 0.95,
    max_rows: int = 1000,
) -> Path:
    """Write a page in which one moves the inputs of a model and sees its predictions.

    Parameters
    ----------
    model, target, title, output, confidence_level, max_rows
        As in :func:`explorer_html`.
    path : str or Path
        Path of the file.

    Returns
    -------
    path : Path
        Path of the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.explore import write_explorer
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_explorer(model, os.path.join(folder, "page.html"), target="height").name
    'page.html'
    """
    options: dict[str, Any] = {
        "output": output,
        "confidence_level": confidence_level,
        "max_rows": max_rows,
    }
    page = explorer_html(model, target=target, title=title, **options)
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def explorer_html(
    model: Any,
    *,
    target: str = "y",
    title: str | None = None,
    output: int = 0,
    confidence_level: float = 0.95,
    max_rows: int = 1000,
) -> str:
    """A page in which one moves the inputs of a model, as the text of one HTML document.

    Parameters
    ----------
    model : ELMRegressor or ELMEnsembleRegressor
        A fitted model.
    target : str, default="y"
        Name of the target.
    title : str, optional
        Title of the page.
    output : int, default=0
        Which output, of a model with several.
    confidence_level : float, default=0.95
        Level at which the page opens; it offers others.
    max_rows : int, default=1000
        Largest number of training rows in the page, drawn at random. They are the histogram of
        observations, the start of the controls, and the nearest rows. 0 for a page without rows.

    Returns
    -------
    page : str
        It loads no external resources.

    Notes
    -----
    The page computes ``predict``, ``predict_var(component="model")``, ``predict_interval`` and
    ``exceedance``, intervals for the mean by ``predict_interval(kind="confidence",
    target="expectation")``, and differences as ``functional``. Predictions agree with those of the
    model to 1e-6 of their size. Variances use forms of low rank; a note on the page states by how
    much standard errors differ from those of the exact forms if that is more than 1 %.

    With at most 400 rows and a learned map, the map is refitted without each fifth of the rows, if
    no error bar was computed before.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.explore import explorer_html
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> explorer_html(model, title="Sines").startswith("<!DOCTYPE html>")
    True
    """
    options: dict[str, Any] = {
        "output": output,
        "confidence_level": confidence_level,
        "max_rows": max_rows,
    }
    panel = explorer_panel(model, target=target, reads_link=True, **options)
    heading = f"A model of {target}" if title is None else title
    fit = model.fitted_
    columns = vars(model).get("columns_")
    n_inputs = fit.ensemble.layer.inputs.offset.shape[0] if columns is None else len(columns.names)
    return Template(_text("page.html")).substitute(
        title=html.escape(heading),
        summary=html.escape(f"{fit.n_rows} rows, {n_inputs} inputs"),
        style=_text("page.css"),
        panel=panel,
        version=__version__,
    )


def explorer_panel(
    model: Any,
    *,
    target: str = "y",
    output: int = 0,
    confidence_level: float = 0.95,
    max_rows: int = 1000,
    reads_link: bool = False,
) -> str:
    """The same panel as a part of another page: style, markup and script.

    Parameters
    ----------
    model, target, output, confidence_level, max_rows
        As in :func:`explorer_html`.
    reads_link : bool, default=False
        Whether the panel starts at the values of the link by which the page was opened.

    Returns
    -------
    fragment : str
        HTML without external resources, for one place of a page.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.explore import explorer_panel
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> "ulmus-explorer" in explorer_panel(model)
    True
    """
    _require_model(model)
    (level,) = checked_levels([confidence_level])
    K = model.fitted_.ensemble.n_outputs
    if not isinstance(output, (int, np.integer)) or not 0 <= output < K:
        raise InputError(invalid("output", f"must be a whole number from 0 to {K - 1}", output))
    if not isinstance(max_rows, (int, np.integer)) or max_rows < 0:
        raise InputError(
            invalid("max_rows", "must be a whole number that is not negative", max_rows)
        )
    with thread_pool(model._n_threads):
        spec = _specification(model, Output(model.fitted_, int(output)), level, int(max_rows))
    spec |= {"target": target, "reads_link": reads_link}
    data = json.dumps(spec, allow_nan=False).replace("<", "\\u003c")
    return Template(_text("fragment.html")).substitute(
        style=_text("panel.css"), panel=_text("panel.html"), script=_script(), data=data
    )


def _require_model(model: Any) -> None:
    if not isinstance(model, BaseELM):
        found = f"got a {type(model).__name__}; of a Pipeline, give its last step"
        raise ValueError(f"model must be a fitted ELMRegressor or ELMEnsembleRegressor, {found}.")
    check_is_fitted(model)


def _specification(model: Any, output: Output, level: float, max_rows: int) -> dict[str, Any]:
    """All data of the panel."""
    fit = output.fit
    fit.prepare()
    columns = model_columns(vars(model).get("columns_"), model._feature_names())
    rows = shown_rows(fit, columns, output.k, max_rows) if max_rows else None
    start = start_codes(fit, columns, rows)
    prediction = prediction_arrays(output)
    shown = None if rows is None else _rows(fit, columns, rows)
    most_elements = _form_elements(fit, [prediction, shown])
    small = small_forms(fit, (most_elements, *LARGER))
    levels = sorted({*LEVELS, level})
    observations = observation_arrays(output, small, levels)
    return {
        "controls": controls(columns, fit, None if rows is None else rows.codes, start),
        "prediction": prediction | {"forms": form_arrays(output, small, most_elements)},
        "observations": observations,
        "rows": shown,
        "level": levels.index(level),
        "notes": _notes(fit, small, rows, neglected=bool(observations.get("neglected"))),
    }


def _form_elements(fit: Fit, others: list[Any]) -> int:
    """Number of elements of forms that the other numbers of the page leave."""
    used = 0.75 * len(json.dumps(others))
    if needs_shifts(fit):
        used += 2 * min(EXPECTED_RANK * fit.n_rows, MOST_SHIFTS)
    return int(np.clip((MOST_BYTES - used) / 2, FEWEST_ELEMENTS, MOST_ELEMENTS))


def _rows(fit: Fit, columns: Columns, rows: ShownRows) -> dict[str, Any]:
    matrix = fit.map_matrix
    diagonal = matrix is not None and np.count_nonzero(matrix) == np.count_nonzero(np.diag(matrix))
    shown = np.diag(matrix) if matrix is not None and diagonal else matrix
    return {
        "index": packed(rows.index),
        "codes": packed(rows.codes, single=columns.fit_single(rows.codes)),
        "y": packed(rows.y),
        "mapped": packed(rows.mapped, single=True),
        "matrix": None if shown is None else packed(shown),
        "diagonal": bool(diagonal),
    }


def _notes(fit: Fit, small: SmallForms, rows: ShownRows | None, *, neglected: bool) -> list[str]:
    """What a reader of the numbers has to know."""
    notes = ["Intervals for the mean cover the expectation of the model and neglect its bias."]
    if small.typical_error > NEGLIGIBLE_ERROR:
        typical, largest = (
            f"{100 * e:.2g} %" for e in (small.typical_error, small.forms.tolerance)
        )
        notes.append(
            f"Standard errors are approximate, because the exact ones need a larger page: they "
            f"differ by {typical} on average (root mean square), and at most {largest} at the "
            "points that were compared."
        )
    if neglected:
        notes.append(
            "Intervals of new observations neglect the effect of single rows on the prediction."
        )
    if fit.noise_covariance is not None:
        notes.append(
            "Errors are correlated. Intervals of a new observation are those far from the "
            "training rows, without kriging of the residuals."
        )
    if rows is not None and len(rows.index) < fit.n_rows:
        notes.append(f"Nearest rows are among {len(rows.index)} of {fit.n_rows} training rows.")
    return notes


@cache
def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """All scripts in one scope."""
    return "\n".join(_text(f"{name}.js") for name in SCRIPTS)
