"""Configuration of the site: `make docs`, or `make docs-short` without running the gallery."""

from importlib.metadata import distribution
from pathlib import Path

import ulmus

project = "ulmus"
author = "The ulmus developers"
copyright = "2026, The ulmus developers"
version = release = ulmus.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
]
exclude_patterns = ["_templates", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
nitpicky = True  # a reference that leads nowhere is a warning, and warnings are errors

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 3

# The reference, from docstrings
# Pages by name: with True, no stubs are generated for a page added to an existing build.
autosummary_generate = [
    f"reference/{page.name}" for page in Path(__file__).parent.glob("reference/*.md")
]
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False  # the templates list them

# Code on the pages runs (`-b doctest`); all blocks of a page share their names.
doctest_global_setup = """
import os, tempfile, warnings
os.chdir(tempfile.mkdtemp())
"""
doctest_test_doctest_blocks = ""  # examples of docstrings are run by pytest

# The gallery: each script runs once, and again when it changes.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        f"../examples/gallery/{name}"
        for name in ("start", "effects", "correlated_errors", "scale", "compare")
    ],
    "parallel": True,  # as many processes as `-j` says
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "show_memory": False,
    "write_computation_times": False,
    "reference_url": {"ulmus": None},
    "doc_module": ("ulmus",),
    "backreferences_dir": "gallery/backreferences",
    "copyfile_regex": r".*\.rst",
}

# Formulas as SVG, from a copy of MathJax that travels with the site: no network, no fonts.
_mathjax = distribution("sphinx-mathjax-offline").locate_file(
    "sphinx-mathjax-offline/static/mathjax"
)
mathjax_path = "tex-svg.js"

# Code can be copied, output cannot.
copybutton_selector = "div:not(.highlight-none):not(.highlight-text) > div.highlight pre"

# The look
html_theme = "pydata_sphinx_theme"
html_title = f"ulmus {version}"
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static", str(_mathjax / "tex-svg.js")]
html_css_files = ["ulmus.css"]
html_extra_path = ["llms.txt"]
html_show_sourcelink = False
html_sidebars = {"start": [], "which_error_bar": [], "comparison": []}  # pages without subpages
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"ulmus {version}", "alt_text": "ulmus, home"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# Link previews
ogp_site_url = "https://ulmus.readthedocs.io/en/latest/"
ogp_site_name = "ulmus"
ogp_social_cards = {"enable": False}
ogp_image = "_images/picture.png"
ogp_image_alt = "A prediction with a narrow confidence band and a wide prediction band."
ogp_description_length = 200


def skipped(app, what, name, obj, skip, options):
    """Skip the fields of named tuples, which are documented as parameters."""
    return skip or type(obj).__name__ == "_tuplegetter" or None


def setup(app):
    app.connect("autodoc-skip-member", skipped)
