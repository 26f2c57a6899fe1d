"""An HTML report of a fitted model: one page without external resources.

``report_input`` resolves the model and the rows. ``contents`` collects the numbers, which
``columns``, ``evaluation``, ``residual_correlation``, ``relevance``, ``partial_dependence``,
``variance_components`` and ``settings`` compute with the library. ``figures``, ``text`` and
``tables`` present them, and ``page`` fills them into the template.

Reports require plotly, jinja2 and pandas: ``pip install 'ulmus[report]'``.
"""

from ulmus.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
