"""The page: text, tables and figures in one HTML document without external resources."""

from __future__ import annotations

import base64
import gzip
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ulmus.atomic_write import atomic_write
from ulmus.report import figures, tables, text
from ulmus.report.contents import ReportContents, report_contents
from ulmus.report.drawing import Figure
from ulmus.report.numbers import capitalised, counted, number, plural, share
from ulmus.report.partial_dependence import CURVE_ROWS, partial_dependence_figure
from ulmus.report.relevance import MOST_INPUTS, relevance_figure
from ulmus.report.report_input import LEAVE_ONE_OUT, prepare_input
from ulmus.report.residual_correlation import correlogram_figure, variogram_figure
from ulmus.report.settings import ARTICLE, DOI, SOFTWARE
from ulmus.report.variance_components import ensemble_size_figure, variance_figure
from ulmus.version import __version__


class Section(NamedTuple):
    """A section of the page, with the topics of the findings that it lists."""

    id: str
    title: str
    topics: tuple[str, ...] = ()


SECTIONS = (
    Section("data", "Data"),
    Section("accuracy", "Accuracy"),
    Section("calibration", "Calibration", ("calibration",)),
    Section("correlation", "Residual autocorrelation", ("correlation",)),
    Section("relevance", "Feature relevance and partial dependence"),
    Section("variance", "Variance components"),
    Section("adequacy", "Model adequacy", ("fit", "inputs", "size", "warnings")),
    Section("outliers", "Outliers and leverage"),
    Section("reproducibility", "Reproducibility"),
    Section("citation", "Citation"),
)
# Numbers of rows and inputs that the text of the page names.
LIMITS = {
    "CURVE_ROWS": CURVE_ROWS,
    "MOST_DESCRIBED": tables.MOST_DESCRIBED,
    "MOST_INPUTS": MOST_INPUTS,
}
OVERALL = {
    "ok": "✓ all diagnostic checks are ok",
    "warning": "! some diagnostic checks warn",
    "error": "✗ some diagnostic checks fail",
}


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: Any,
    *,
    title: str | None = None,
    target: str = "y",
    sample_weight: Any = None,
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
    page = report_html(model, X, y, title=title, target=target, sample_weight=sample_weight)
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def report_html(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    target: str = "y",
    sample_weight: Any = None,
) -> str:
    """A report about a fitted model as the text of one HTML page, below 3 MB.

    Parameters
    ----------
    model, X, y, title, target, sample_weight
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
    jinja2, plotly_js = _libraries()
    report_input = prepare_input(model, X, y, sample_weight)
    contents = report_contents(report_input, title or f"A model of {target}", target)
    drawn = _figures(contents)
    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    functions = (number, counted, share, plural, capitalised)
    environment.globals |= {one.__name__: one for one in functions} | LIMITS
    safe = environment.filters["safe"]
    evaluation = contents.evaluation
    report = None if evaluation is None else evaluation.report
    return environment.get_template("page.html.jinja").render(
        contents=contents,
        evaluation=evaluation,
        overall="" if report is None else OVERALL[report.severity],
        findings={s.id: () if report is None else report.about(*s.topics) for s in SECTIONS},
        coverage=None if evaluation is None else tables.coverage_tables(evaluation),
        figures=drawn,
        drawn={name: [_drawn(one) for one in each] for name, each in drawn.items()},
        new_rows=contents.evaluated_on != LEAVE_ONE_OUT,
        text=text,
        tables=tables,
        sections=SECTIONS,
        titles={section.id: section.title for section in SECTIONS},
        software=SOFTWARE.format(version=__version__),
        article=ARTICLE,
        doi=DOI,
        style=safe((folder / "page.css").read_text(encoding="utf-8")),
        script=safe((folder / "page.js").read_text(encoding="utf-8")),
        plotly=safe(_packed(plotly_js())),
    )


def _figures(contents: ReportContents) -> dict[str, list[Figure]]:
    """Figures by their name in the page; several where one of them is chosen."""
    evaluation, correlation = contents.evaluation, contents.residual_correlation
    name = contents.target_name
    out: dict[str, list[Figure]] = {}
    if contents.observed is not None:
        out["target"] = [figures.target_figure(contents.observed, name)]
    if evaluation is not None:
        out["observed"] = [figures.observed_figure(evaluation, name)]
        out["coverage"] = [figures.coverage_figure(evaluation)]
        out["pit"] = [figures.pit_figure(evaluation)]
        out["residuals"] = [figures.residuals_figure(evaluation, name)]
    if correlation is not None:
        out["correlogram"] = [correlogram_figure(correlation.serial)]
        if correlation.spatial is not None:
            out["variogram"] = [variogram_figure(correlation.spatial)]
    out["relevance"] = [relevance_figure(contents.relevance)]
    if contents.curves:
        out["partial-dependence"] = [partial_dependence_figure(c, name) for c in contents.curves]
    out["variance"] = [variance_figure(contents.variance)]
    if contents.ensemble_size is not None:
        out["ensemble-size"] = [ensemble_size_figure(contents.ensemble_size)]
    return out


def _drawn(figure: Figure) -> dict[str, Any]:
    """The fields of a figure that the script of the page uses."""
    return {name: value for name, value in asdict(figure).items() if name != "data"}


@cache
def _packed(script: str) -> str:
    """A script, compressed and base64-encoded: two fifths of its size."""
    return base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode("ascii")


def _libraries() -> tuple[Any, Any]:
    """The module jinja2 and a function that returns plotly's script."""
    try:
        import jinja2
        import pandas  # noqa: F401
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError(
            f"a report requires plotly, jinja2 and pandas; {error.name} is not installed: run "
            "`pip install 'ulmus[report]'`."
        ) from error
    return jinja2, get_plotlyjs
