"""An HTML report of a fitted model: one page without external resources.

``report_input`` resolves the model and the rows. ``contents`` collects the numbers, which
``columns``, ``evaluation``, ``relevance``, ``partial_dependence``, ``answers``,
``variance_components`` and ``settings`` compute with the library. ``figures`` are the displays of
``ulmus.plot`` as inline ``svg``; ``text`` and ``tables`` present the numbers, and ``page`` fills
all of them into the template.

Reports require matplotlib, jinja2 and pandas: ``pip install 'ulmus[report]'``.
"""

from ulmus.report.page import report_html, write_report
from ulmus.report.source import TableSource

__all__ = ["TableSource", "report_html", "write_report"]
