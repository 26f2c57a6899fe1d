"""A page in which one moves the inputs of a model and sees its predictions.

``model``, ``observations``, ``controls`` and ``training_rows`` collect the numbers of a fit;
``page`` writes them with the scripts that compute from them in a browser: ``model.js``,
``intervals.js``, ``response.js`` and ``columns.js`` compute, ``chart.js`` draws, and ``panel.js``
with ``controls.js``, ``rows.js`` and ``links.js`` is the user interface. The page loads nothing
from elsewhere.
"""

from ulmus.explore.page import explorer_html, explorer_panel, write_explorer

__all__ = ["explorer_html", "explorer_panel", "write_explorer"]
