"""The page: facts, figures and words in one HTML document that needs nothing else."""

from __future__ import annotations

import base64
import gzip
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from ulmus.model_file.atomic_write import replaced
from ulmus.report import figures, neighbour_figures, tables, words
from ulmus.report.drawing import Figure
from ulmus.report.facts import Facts, facts
from ulmus.report.settings import ARTICLE, DOI, SOFTWARE
from ulmus.report.subject import subject
from ulmus.version import __version__

SECTIONS = (
    ("data", "The data"),
    ("accuracy", "How well it does"),
    ("honesty", "Is 95% really 95%?"),
    ("neighbours", "Do rows hang together?"),
    ("inputs", "Which inputs matter"),
    ("variance", "Variance"),
    ("enough", "Is it enough?"),
    ("points", "Rows to look at"),
    ("settings", "Make it again"),
    ("cite", "How to cite"),
)
OVERALL = {
    "green": "✓ all checks are fine",
    "yellow": "! some checks ask for a look",
    "red": "✗ some checks show a problem",
}


def write_report(
    model: Any, X: Any, y: Any, path: Any, *, title: str | None = None, target: str = "y"
) -> Path:
    """Write a report about a fitted model as one HTML file.

    Parameters
    ----------
    model : Pipeline, search over one, ELMEnsembleRegressor or ELMRegressor
        A fitted model of one output.
    X : data frame or array of shape (n_samples, n_features)
        Rows of the original columns: those of the fit, or new ones.
    y : array-like of shape (n_samples,) or None
        What was observed there. With the rows of the fit, each is judged by predictions without
        it; new rows are an honest test.
    path : str or Path
        Where to write.
    title : str, optional
        Title of the page.
    target : str, default="y"
        Name of what is predicted.

    Returns
    -------
    path : Path
        Where it was written.

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
    page = report_html(model, X, y, title=title, target=target)
    with replaced(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return Path(path)


def report_html(model: Any, X: Any, y: Any, *, title: str | None = None, target: str = "y") -> str:
    """A report about a fitted model as the text of one HTML page, below 3 MB.

    Parameters
    ----------
    model, X, y, title, target
        As in :func:`write_report`.

    Returns
    -------
    page : str
        It loads nothing from elsewhere.

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
    told = facts(subject(model, X, y), title or f"A model of {target}", target)
    drawn = _figures(told)
    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    safe = environment.filters["safe"]
    judged = told.judgement
    return environment.get_template("page.html.jinja").render(
        facts=told,
        judged=judged,
        overall="" if judged is None else OVERALL[judged.report.light],
        coverage=None if judged is None else tables.coverage(judged),
        figures=drawn,
        drawn={name: [_drawn(one) for one in each] for name, each in drawn.items()},
        words=words,
        tables=tables,
        sections=SECTIONS,
        software=SOFTWARE.format(version=__version__),
        article=ARTICLE,
        doi=DOI,
        style=safe((folder / "page.css").read_text(encoding="utf-8")),
        script=safe((folder / "page.js").read_text(encoding="utf-8")),
        plotly=safe(_packed(plotly_js())),
    )


def _figures(told: Facts) -> dict[str, list[Figure]]:
    """Figures by their place in the page; several where one of them is chosen."""
    judged, out = told.judgement, {}
    if told.target is not None:
        out["target"] = [figures.histogram(told.target)]
    if judged is not None:
        out["observed"] = [figures.against_observed(judged, told.target_name)]
        out["calibration"] = [figures.calibration(judged)]
        out["places"] = [figures.places(judged)]
        out["residuals"] = [figures.residuals(judged, told.target_name)]
    if told.neighbours is not None:
        out["correlogram"] = [neighbour_figures.correlogram(told.neighbours.serial)]
        if told.neighbours.in_space is not None:
            out["variogram"] = [neighbour_figures.variogram(told.neighbours.in_space)]
    out["relevance"] = [figures.relevances(told.relevance)]
    if told.dependences:
        out["dependence"] = [figures.dependence(d, told.target_name) for d in told.dependences]
    out["variance"] = [figures.variance_parts(told.parts)]
    if told.members is not None:
        out["members"] = [figures.member_curve(told.members)]
    return out


def _drawn(figure: Figure) -> dict[str, Any]:
    """What the script of the page needs of a figure."""
    return {name: value for name, value in asdict(figure).items() if name != "data"}


@cache
def _packed(script: str) -> str:
    """A script, compressed and in letters: two fifths of its size."""
    return base64.b64encode(gzip.compress(script.encode(), mtime=0)).decode("ascii")


def _libraries() -> tuple[Any, Any]:
    """The module jinja2 and a function that returns plotly's script."""
    try:
        import jinja2
        import pandas  # noqa: F401
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError(
            f"a report needs plotly, jinja2 and pandas, and {error.name} is not installed; run "
            "`pip install 'ulmus[report]'`."
        ) from error
    return jinja2, get_plotlyjs
