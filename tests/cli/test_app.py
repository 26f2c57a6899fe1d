"""Imports of the command line, and the error where an extra is missing."""

import importlib
import pickle
import subprocess
import sys

import pytest
from command_line import sample

import ulmus
from ulmus.cli import steps

# What help pages and refusals must not wait for.
HEAVY = ("numpy", "scipy", "sklearn", "pandas", "pyarrow")
LAZY_PACKAGES = ("ulmus", "ulmus.tables", "ulmus.model_file", "ulmus.cli.steps")


def loaded_packages(*arguments, code=0):
    """Packages of HEAVY that a command has imported in a process of its own."""
    program = (
        "import sys\n"
        "from ulmus.cli import main\n"
        f"sys.argv = ['ulmus', *{[str(a) for a in arguments]!r}]\n"
        "try:\n    main()\n"
        "except SystemExit as exit:\n"
        f"    print('\\n' + ' '.join(name for name in {HEAVY} if name in sys.modules))\n"
        "    sys.exit(exit.code)\n"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == code, process.stderr
    return set(process.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        *((name, "--help") for name in ("fit", "predict", "compare", "check", "info", "plot")),
    ],
    ids=" ".join,
)
def test_help_loads_no_heavy_package(arguments):
    assert loaded_packages(*arguments) == set()


def test_a_wrong_option_is_refused_before_anything_is_loaded():
    assert loaded_packages("fit", "t.csv", "--no-such-option", code=2) == set()
    assert loaded_packages("predict", "m", "t.csv", "--level", "1", code=2) == set()


def test_the_header_of_a_model_is_read_without_scikit_learn(small_model):
    model = small_model / "m.ulmus"
    assert loaded_packages("info", model, "--header", "--quiet") <= {"numpy"}


@pytest.mark.parametrize("command", ["fit", "predict", "check"])
def test_files_that_do_not_exist_are_refused_before_anything_is_loaded(command, small_model):
    words = {
        "fit": (small_model / "no.csv", "-t", "y", "-o", small_model / "x.ulmus"),
        "predict": (small_model / "no.ulmus", small_model / "t.csv"),
        "check": (small_model / "m.ulmus", small_model / "no.csv"),
    }[command]
    assert loaded_packages(command, *words, code=2) == set()


@pytest.mark.parametrize("refusal", ["no column", "no column of the model"])
def test_files_are_refused_before_scikit_learn_is_loaded(refusal, tmp_path):
    table, model = tmp_path / "t.csv", tmp_path / "m.ulmus"
    sample().to_csv(table, index=False)
    arguments = {
        "no column": ("fit", table, "--target", "z", "-o", model),
        "no column of the model": ("predict", model, table, "-o", tmp_path / "o.csv"),
    }[refusal]
    if refusal == "no column of the model":
        inputs = sample()[["t", "count"]].rename(columns={"t": "time"})
        small = ulmus.ELMEnsembleRegressor(2, 5, input_map=None, random_state=0)
        small.fit(inputs, sample().y).save(model)
    assert loaded_packages(*arguments, code=2) <= {"numpy", "pyarrow"}


@pytest.mark.slow
def test_a_missing_extra_is_named():
    code = "import sys; sys.modules['typer'] = None; import ulmus.cli; ulmus.cli.main()"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.returncode == 1
    assert output.stderr.strip().endswith("pip install 'ulmus[cli]'")


def test_importing_ulmus_loads_no_package():
    packages = (*HEAVY, "typer", "rich", "matplotlib", "torch")
    code = f"import sys, ulmus; print([m for m in {packages} if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.stdout.strip() == "[]"


# ---------------------------------------------------------------- packages with lazy names


@pytest.mark.parametrize("name", LAZY_PACKAGES)
def test_lazy_names_are_listed_and_imported(name):
    package = importlib.import_module(name)
    assert set(package.__all__) <= set(dir(package))
    everything = {}
    exec(f"from {name} import *", everything)
    assert all(everything[public] is getattr(package, public) for public in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_objects_of_lazy_names_are_pickled():
    objects = [ulmus.ELMRegressor, ulmus.inference, ulmus.tables.TableEncoder, ulmus.load]
    assert pickle.loads(pickle.dumps(objects)) == objects


def test_steps_are_all_modules_of_their_package():
    names = {path.stem for path in importlib.resources.files(steps).iterdir()} - {"__init__"}
    assert names - {"__pycache__"} == set(steps.__all__)
