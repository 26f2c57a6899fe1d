"""The page: text, tables and figures in one HTML document without external resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ulmus.atomic_write import atomic_write
from ulmus.estimators._base import BaseELM
from ulmus.exceptions import InputError
from ulmus.explore import explorer_panel
from ulmus.report import tables, text
from ulmus.report.contents import report_contents
from ulmus.report.figures import report_figures
from ulmus.report.numbers import capitalised, counted, number, plural, share
from ulmus.report.partial_dependence import CURVE_ROWS
from ulmus.report.relevance import MOST_INPUTS
from ulmus.report.report_input import LEAVE_ONE_OUT, prepare_input
from ulmus.report.settings import ARTICLE, DOI, SOFTWARE
from ulmus.report.source import TableSource
from ulmus.version import __version__

# Numbers of rows and inputs that the text of the page names.
LIMITS = {
    "CURVE_ROWS": CURVE_ROWS,
    "MOST_DESCRIBED": tables.MOST_DESCRIBED,
    "MOST_INPUTS": MOST_INPUTS,
}
# Curves and problems that are shown unfolded.
SHOWN_CURVES, SHOWN_PROBLEMS = 4, 4


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: Any,
    *,
    title: str | None = None,
    target: str = "y",
    sample_weight: Any = None,
    source: TableSource | None = None,
    explorer: bool = True,
) -> Path:
    """Write a report about a fitted model as one HTML file.

    Parameters
    ----------
    model : Pipeline, search over one, ELMEnsembleRegressor or ELMRegressor
        A fitted model of one output.
    X : data frame or array of shape (n_samples, n_features)
        Rows of the original columns: those of the fit, or new ones.
    y : array-like of shape (n_samples,) or None
        Observations. Rows of the fit, which are found by their values, are evaluated leave-one-out;
        new rows are an out-of-sample test.
    path : str or Path
        Path of the file.
    title : str, optional
        Title of the page.
    target : str, default="y"
        Name of the target.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of new rows, as in ``predict_interval``.
    source : TableSource, optional
        The file of the training rows, which the code of the page reads.
    explorer : bool, default=True
        Whether the page contains the interactive panel of :mod:`ulmus.explore`, folded. It is left
        out for Pipelines, and for models that a page cannot compute.

    Returns
    -------
    path : Path
        Path of the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.report import write_report
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     write_report(model, X, y, path, target="height").name
    'report.html'
    """
    page = report_html(
        model,
        X,
        y,
        title=title,
        target=target,
        sample_weight=sample_weight,
        source=source,
        explorer=explorer,
    )
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def _panel(model: Any, target: str) -> str:
    """The interactive panel; empty for models that a page cannot compute."""
    if not isinstance(model, BaseELM):
        return ""
    try:
        return explorer_panel(model, target=target)
    except InputError:
        return ""


def report_html(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    target: str = "y",
    sample_weight: Any = None,
    source: TableSource | None = None,
    explorer: bool = True,
) -> str:
    """A report about a fitted model as the text of one HTML page.

    Parameters
    ----------
    model, X, y, title, target, sample_weight, source, explorer
        As in :func:`write_report`.

    Returns
    -------
    page : str
        It loads no external resources.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> from ulmus.report import report_html
    >>> X, y, *_ = make_sine(60, random_state=0)
    >>> model = ELMEnsembleRegressor(3, 20, input_map=None, random_state=0).fit(X, y)
    >>> page = report_html(model, X, y, title="Sines")
    >>> page.startswith("<!DOCTYPE html>"), "Sines" in page
    (True, True)
    """
    jinja2 = _template_library()
    report_input = prepare_input(model, X, y, sample_weight)
    contents = report_contents(report_input, title or f"A model of {target}", target, source)
    drawn = report_figures(contents)
    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    functions = (number, counted, share, plural, capitalised)
    environment.globals |= {one.__name__: one for one in functions} | LIMITS
    safe, evaluation = environment.filters["safe"], contents.evaluation
    curves = [figure for name, figure in drawn.items() if name.startswith("curve-")]
    return environment.get_template("page.html.jinja").render(
        contents=contents,
        evaluation=evaluation,
        problems=(contents.problems[:SHOWN_PROBLEMS], contents.problems[SHOWN_PROBLEMS:]),
        coverage=None if evaluation is None else tables.coverage_tables(evaluation),
        figures=drawn,
        curves=(curves[:SHOWN_CURVES], curves[SHOWN_CURVES:]),
        new_rows=contents.evaluated_on != LEAVE_ONE_OUT,
        text=text,
        tables=tables,
        explorer=safe(_panel(model, target)) if explorer else None,
        software=SOFTWARE.format(version=__version__),
        article=ARTICLE,
        doi=DOI,
        style=safe((folder / "page.css").read_text(encoding="utf-8")),
        script=safe((folder / "page.js").read_text(encoding="utf-8")),
    )


def _template_library() -> Any:
    """The module jinja2, once all libraries of a report are found."""
    try:
        import jinja2
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"a report requires matplotlib, jinja2 and pandas; {error.name} is not installed: run "
            "`pip install 'ulmus[report]'`."
        ) from error
    return jinja2
