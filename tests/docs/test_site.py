"""The documentation: nothing public is missing, pages build without a warning, their code runs."""

import importlib
import inspect
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import ulmus
from ulmus.estimators._presentation import DOCUMENTATION

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ESTIMATORS = ("ELMEnsembleRegressor", "ELMRegressor")
MODULES = [
    "dask",
    "datasets",
    "diagnostics",
    "effects",
    "exceptions",
    "intervals",
    "metrics",
    "model_file",
    "noise",
    "onnx",
    "plot",
    "report",
    "skpro",
    "tables",
]
pytest.importorskip("sphinx")
docscrape = pytest.importorskip("numpydoc.docscrape")


def public_names():
    """Every public name with what it is: functions, classes, constants, methods of estimators."""
    for name in ulmus.__all__:
        if name != "__version__":
            yield f"ulmus.{name}", getattr(ulmus, name)
    for name in MODULES:
        module = importlib.import_module(f"ulmus.{name}")
        for each in module.__all__:
            if getattr(ulmus, each, None) is not getattr(module, each):
                yield f"ulmus.{name}.{each}", getattr(module, each)
    for name in ESTIMATORS:
        for method, value in inspect.getmembers(getattr(ulmus, name), callable):
            ours = str(getattr(value, "__module__", None)).startswith("ulmus.")
            if ours and not method.startswith("_"):
                yield f"ulmus.{name}.{method}", value


# ---------------------------------------------------------------- docstrings


def test_public_names_are_many():
    names = dict(public_names())
    assert {"ulmus.load", "ulmus.plot.Curve", "ulmus.ELMRegressor.partial_fit"} <= set(names)
    assert len(names) > 120


def test_every_public_name_has_an_example():
    lacking = [
        name
        for name, value in public_names()
        if callable(value) and not docscrape.NumpyDocString(inspect.getdoc(value) or "")["Examples"]
    ]
    assert lacking == []


def test_every_public_function_documents_what_it_takes_and_returns():
    lacking = []
    for name, value in public_names():
        if not inspect.isroutine(value):
            continue
        sections = docscrape.NumpyDocString(inspect.getdoc(value))
        annotated = str(inspect.signature(value).return_annotation)
        takes = set(inspect.signature(value).parameters) - {"self"}
        if (takes and not sections["Parameters"]) or (
            annotated != "None" and not sections["Returns"]
        ):
            lacking.append(name)
    assert lacking == []


# ---------------------------------------------------------------- the site


@pytest.mark.slow
def test_the_site_builds_and_is_whole(site):
    broken_links = runpy.run_path(str(DOCS / "check_links.py"))["broken_links"]
    assert broken_links(site) == []
    described = set().union(*inventory(site / "objects.inv").values())
    assert [name for name, _ in public_names() if name not in described] == []
    assert [link for link in llms_links() if not (site / link).is_file()] == []
    assert not list(site.rglob("sg_execution_times*"))
    (shown,) = re.findall(r'property="og:image" content="(.*?)"', (site / "index.html").read_text())
    assert (site / shown.removeprefix(f"{DOCUMENTATION}/")).is_file()
    for name in ESTIMATORS:
        link = getattr(ulmus, name)()._get_doc_link()
        assert link.startswith(DOCUMENTATION)
        assert (site / link.removeprefix(f"{DOCUMENTATION}/")).is_file()


def inventory(path):
    """Names of Python objects in the inventory of a site, by their kind."""
    from sphinx.util.inventory import InventoryFile

    found = InventoryFile.loads(path.read_bytes(), uri="").data
    return {kind: set(names) for kind, names in found.items() if kind.startswith("py:")}


def llms_links():
    """Pages of the site that llms.txt leads to."""
    links = re.findall(r"\]\(([^)#\s]+)", (DOCS / "llms.txt").read_text())
    ours = [link.removeprefix(f"{DOCUMENTATION}/") for link in links]
    return [link for link in ours if not link.startswith(("http:", "https:"))]


def pages(*folders):
    """Pages of the site in some folders."""
    return [page for folder in folders for page in sorted((DOCS / folder).glob("*.md"))]


def test_code_copied_from_a_page_needs_nothing_that_is_hidden():
    hiding = [p.name for p in pages("guide", "coming_from") if "{testsetup}" in p.read_text()]
    assert hiding == []


def test_no_page_installs_from_an_index_that_does_not_have_us():
    texts = {
        page: page.read_text() for page in [*pages(".", "guide", "reference"), DOCS / "llms.txt"]
    }
    texts["gallery"] = (ROOT / "examples" / "gallery" / "GALLERY_HEADER.rst").read_text()
    telling = [re.sub(r"\s+", " ", text) for text in texts.values() if "install 'ulmus" in text]
    assert len(telling) == 1
    assert (
        "Once there is a release, the line is `pip install 'ulmus[cli,report,onnx]'`" in telling[0]
    )


@pytest.mark.slow
def test_code_on_the_pages_runs(build):
    build("doctest")


# ---------------------------------------------------------------- pages


def test_every_page_ends_with_what_to_read_next():
    made = ("gallery", "generated")
    pages = [path for path in DOCS.rglob("*.md") if not set(made) & set(path.parts)]
    assert len(pages) > 25
    endings = {path: path.read_text().rpartition("\n## Next\n")[2] for path in pages}
    lacking = [
        path.relative_to(DOCS).as_posix()
        for path, ending in sorted(endings.items())
        if not re.search(r"\]\(|:link:", ending) or re.search(r"^#", ending, flags=re.M)
    ]
    assert lacking == []


def test_indexes_name_every_page_of_the_guide():
    names = {page.stem for page in pages("guide")} - {"index"}
    index = (DOCS / "guide" / "index.md").read_text()
    assert names == set(re.search(r"```\{toctree\}.*?\n\n(.*?)```", index, re.S)[1].split())
    assert names == set(re.findall(r"\]\((\w+)\.md\) \|", index))
    assert names <= {Path(link).stem for link in llms_links() if link.startswith("guide/")}


def architecture():
    return (DOCS / "project" / "architecture.md").read_text()


def test_files_of_the_architecture_exist():
    paths = re.findall(r"`((?:[\w.]+/)*[\w.]+\.(?:py|toml|jinja|md))`", architecture())
    assert len(set(paths)) > 50
    missing = [
        p for p in paths if not (ROOT / p).is_file() and not (ROOT / "src/ulmus" / p).is_file()
    ]
    assert missing == []
    table = architecture().partition("## To change something")[2].partition("## Next")[0]
    assert len(re.findall(r"^\| .* \| `", table, flags=re.M)) >= 15


def test_layers_of_the_architecture_are_those_of_the_linter():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [re.findall(r"ulmus\.(\w+)", layer) for layer in settings["contracts"][0]["layers"]]
    section = architecture().partition("## Imports point downwards")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| [^|]+ \| (`[^|]+`) \|", section, flags=re.M)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == layers


def test_the_picture_is_what_its_script_draws():
    script = runpy.run_path(str(DOCS / "architecture_diagram.py"))
    assert script["FILE"].read_text() == script["diagram"]()
    modules = re.findall(r"(?:core|estimators|intervals|questions)/\w+\.py", script["diagram"]())
    assert all((ROOT / "src" / "ulmus" / module).is_file() for module in modules)


def test_citations_are_of_this_version():
    for name in ("CITATION.cff", "docs/project/cite.md"):
        assert f"{ulmus.__version__}" in (ROOT / name).read_text()
