"""A report about a fitted model: one HTML page that a scientist can send to a colleague.

``subject.py`` says what is reported on. ``facts.py`` gathers the numbers, which ``columns.py``,
``judgement.py``, ``influences.py``, ``spread.py`` and ``settings.py`` ask of the library.
``figures.py``, ``words.py`` and ``tables.py`` turn them into values for readers, and ``page.py``
makes the page.

Reports need plotly, jinja2 and pandas: ``pip install 'ulmus[report]'``.
"""

from ulmus.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
