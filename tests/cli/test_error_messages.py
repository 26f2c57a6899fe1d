"""Bad input is refused in one line with exit code 2; help, version and completion."""

import errno
import os
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from command_line import COMMANDS, PLAIN, done, refusal, run, sample

import ulmus
from ulmus.cli.app import app


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the sample."""
    folder = tmp_path_factory.mktemp("model")
    sample().to_csv(folder / "t.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", "-o", folder / "m.ulmus", *PLAIN)
    return folder / "m.ulmus"


@pytest.fixture
def place(tmp_path, monkeypatch, model):
    """A working folder with a table, a model and old outputs, which must all stay as they are."""
    monkeypatch.chdir(tmp_path)
    sample().to_csv("t.csv", index=False)
    shutil.copy(model, "m.ulmus")
    for name in ("old.csv", "old.ulmus", "t.xlsx"):
        (tmp_path / name).write_text("old")
    yield tmp_path
    assert (tmp_path / "old.csv").read_text() == "old"
    assert (tmp_path / "old.ulmus").read_text() == "old"
    assert (tmp_path / "m.ulmus").read_bytes() == model.read_bytes()
    assert not [path for path in tmp_path.iterdir() if ".part" in path.name]


def predict(*options, data="t.csv", model="m.ulmus", output="old.csv"):
    return ("predict", model, data, "-o", output, *options)


def fit(*options, data="t.csv", target="y", output="old.ulmus"):
    return ("fit", data, "-t", target, "-o", output, *PLAIN, *options)


OPTIONS = [
    (predict(data="no.csv"), "no.csv does not exist; check the name."),
    (predict(data="."), "the ending of . does not identify a table format; use .csv, .csv.gz"),
    (predict(data="t.xlsx"), "the ending of t.xlsx does not identify a table format"),
    (predict(output="old.xlsx"), "the ending of old.xlsx does not identify a table format"),
    (predict(output="no/o.csv"), "no/o.csv is in a folder that does not exist; create it first."),
    (predict(output="t.csv"), "t.csv is an input; give the output another name."),
    (predict(output="./t.csv"), "t.csv is an input"),
    (predict(model="no.ulmus"), "'no.ulmus' does not exist; give the name of a model file."),
    (
        predict(model="t.csv"),
        "'t.csv' is not a model file of ulmus: it is not in the safetensors format.",
    ),
    (predict("--keep", "x"), "t.csv has no column 'x'. It has t, kind, day, wet, count, y."),
    (predict("--keep", "kin"), "t.csv has no column 'kin'; did you mean 'kind'?"),
    (
        predict("--confidence-level", 1),
        "--confidence-level must lie between 0 and 1, exclusive, got 1.0.",
    ),
    (predict("--confidence-level", 90), "got 90.0; write 0.9 for 90 %."),
    (predict("--quantiles", "a"), "--quantiles takes numbers, got 'a'."),
    (predict("--quantiles", "2"), "--quantiles must lie between 0 and 1, exclusive, got 2.0."),
    (predict("--threshold", "nan"), "--threshold takes numbers, got 'nan'."),
    (predict("--delimiter", ";;"), "--delimiter ;; must be one character."),
    (predict("--decimal", ""), "--decimal must be one character."),
    (predict("--delimiter", ";"), "t.csv has no column 't'. It has t,kind,day,wet,count,y."),
    (predict("--encoding", "klingon"), "--encoding klingon is not a known encoding; try latin-1."),
    (("average", "m.ulmus", "t.csv", "--by", "site"), "t.csv has no column 'site'"),
    (("average", "m.ulmus", "t.csv", "-o", "m.ulmus"), "m.ulmus is an input"),
    (("average", "m.ulmus", "t.csv", "--confidence-level", 0), "--confidence-level must lie"),
    (
        ("slope", "m.ulmus", "t.csv", "--variables", "site"),
        "--variables names 'site', which is not a column of the model. Its columns are t, kind, ",
    ),
    (
        ("slope", "m.ulmus", "t.csv", "--variables", "kind"),
        "--variables kind is not numeric and has no slope; use compare with two of its values.",
    ),
    (
        ("compare", "m.ulmus", "t.csv", "--variables", "site=1"),
        "--variables names 'site', which is not a column of the model. Its columns are t, kind, ",
    ),
    (
        ("compare", "m.ulmus", "t.csv", "--variables", "kind=a,z"),
        "--variables kind: 'z' is not a category of 'kind' ('a', 'b', 'c')",
    ),
    (
        ("compare", "m.ulmus", "t.csv", "--variables", "t=much"),
        "--variables t=much must be one of 'sd', 'iqr', 'minmax', two or more values, or a step.",
    ),
    (fit(target="z"), "t.csv has no column 'z'. It has t, kind"),
    (fit(target="kind"), "the target 'kind' contains categories, such as "),
    (fit(target="day"), "the target 'day' contains dates, such as '2024-01-01'; name a column"),
    (fit("--columns", "y"), "t.csv has no inputs besides the target 'y'; add columns."),
    (fit("--drop", "z"), "t.csv has no column 'z'"),
    (fit("--sample-weight", "kind"), "the weight 'kind' contains categories, such as "),
    (fit("--sample-weight", "y"), "--sample-weight y is the target; name a column of row weights."),
    (fit("--categorical", "z"), "--categorical names the column 'z', which is not an input"),
    (fit("--noise", "loud"), "--noise must be one of auto, homoskedastic, "),
    (fit(output="t.csv"), "t.csv is an input; give the output another name."),
    (fit(output="."), ". is a folder; give a file in it."),
    (fit("--report", "r.txt"), "r.txt: the output must end in .html or .htm."),
    (
        fit("--report", "m.html", output="m.html"),
        "--report m.html is the model file; give the report another name.",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "words"), OPTIONS, ids=lambda v: str(v)[:60])
def test_bad_options(place, command, words):
    assert words in refusal(*command)


TABLES = {
    "empty": ("", "t.csv is empty; give a table with a line of column names."),
    "blank": ("\n\n", "t.csv cannot be read as csv"),
    "no rows": ("t,kind,day,wet,count,y\n", "t.csv has no complete rows; nothing was written."),
    "ragged": ("t,kind,day,wet,count,y\n1,a\n", "Expected 6 columns, got 2"),
    "twice": ("t,t,kind,day,wet,count,y\n1,1,a,2024-01-01,true,1,1\n", "called 't'; rename"),
    "absent": ("t,kind,day,wet,y\n1,a,2024-01-01,true,1\n", "t.csv has no column 'count'."),
    "text": ("t,kind,day,wet,count,y\nx,a,2024-01-01,true,1,1\n", "'x' in data row 1"),
    "infinity": ("t,kind,day,wet,count,y\ninf,a,2024-01-01,true,1,1\n", "infinity in data row 1"),
    "no boolean": (
        "t,kind,day,wet,count,y\n1,a,2024-01-01,2,1,1\n",
        "'2' in data row 1, where a boolean",
    ),
    "no date": ("t,kind,day,wet,count,y\n1,a,tomorrow,true,1,1\n", "'tomorrow' in data row 1"),
    "open quote": (
        't,kind,day,wet,count,y\n1,"a,2024-01-01,true,1,1\n',
        "t.csv cannot be read as csv: ",
    ),
    "zeros": (
        "t,kind,day,wet,count,y\n\0\0\0",
        "t.csv is not a text in utf-8; set its encoding, for example --encoding",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(place, case):
    text, words = TABLES[case]
    (place / "t.csv").write_text(text)
    assert words in refusal(*predict())
    refusal("average", "m.ulmus", "t.csv")
    if case not in ("text", "infinity", "no boolean", "no date", "absent", "twice"):
        refusal(*fit())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "arrow"])
def test_files_that_are_something_else(place, kind):
    for content in (b"", b"hello", (place / "t.csv").read_bytes()):
        (place / f"x.{kind}").write_bytes(content)
        message = refusal(*predict(data=f"x.{kind}"))
        assert (
            f"x.{kind} is empty" in message
            if not content
            else f"x.{kind} cannot be read" in message
        )
        refusal(*fit(data=f"x.{kind}"))


@pytest.mark.slow
def test_problems_of_single_cells_are_found_when_fitting(place):
    table = sample().astype({"t": object})
    table.loc[33, "t"] = "seven"
    table.to_csv("x.csv", index=False)
    message = refusal(*fit(data="x.csv"))
    assert message.startswith(
        "column 't' contains 'seven' in data row 34, where a number is expected;"
    )
    assert message.endswith("; correct it, or add it to --na-values.")
    table.loc[33, "t"] = "-inf"
    table.to_csv("x.csv", index=False)
    assert "'t' contains infinity in data row 34" in refusal(*fit(data="x.csv"))
    assert "data row 34" in refusal(*fit("--stream", data="x.csv"))
    sample().assign(y=lambda t: t.y.where(t.index != 5)).to_csv("x.csv", index=False)
    assert "the target 'y' has no value in data row 6" in refusal(
        *fit("--missing", "error", data="x.csv")
    )
    weights = sample().assign(w=lambda t: t.y.where(t.index != 5).abs())
    weights.to_csv("x.csv", index=False)
    message = refusal(*fit("--sample-weight", "w", "--missing", "error", data="x.csv"))
    assert "the weight 'w' has no value in data row 6" in message
    sample(1).to_csv("x.csv", index=False)
    assert refusal(*fit(data="x.csv")).startswith("x.csv has 1 complete row;")
    pd.concat([sample(1)] * 3).to_csv("x.csv", index=False)
    assert "no column of the table can serve" in refusal(*fit(data="x.csv"))
    sample(3).assign(t=[1, 2, None], wet=[True, None, False]).to_csv("x.csv", index=False)
    message = refusal(*fit("--missing", "drop", data="x.csv"))
    assert message == "X has 1 complete row with a target; give at least two."


def test_rows_are_counted_over_blocks(place, monkeypatch):
    from ulmus.tables import files as tables

    monkeypatch.setattr(tables, "BATCH_ROWS", 10)
    table = sample()
    table["wet"] = table["wet"].astype(float)
    table.loc[42, "wet"] = 7
    table.to_feather("x.arrow")
    message = refusal(*predict(data="x.arrow"))  # after four blocks were written
    assert "contains '7' in data row 43, where a boolean is expected" in message


def test_a_model_of_a_newer_version(place):
    old, new = rb"\"format\": 2", rb"\"format\": 3"
    content = (place / "m.ulmus").read_bytes()
    assert content.count(old) == 1
    (place / "x.ulmus").write_bytes(content.replace(old, new))
    message = refusal(*predict(model="x.ulmus"))
    assert "was written in format 3" in message
    assert message.endswith("upgrade ulmus.")


def test_links_to_inputs_are_inputs(place):
    (place / "link.csv").symlink_to("t.csv")
    assert "link.csv is an input" in refusal(*predict(output="link.csv"))
    (place / "hard.csv").hardlink_to("t.csv")
    assert "hard.csv is an input" in refusal(*predict(output="hard.csv"))
    (place / "loop.csv").symlink_to("loop.csv")
    assert "loop.csv is not a regular file" in refusal(*predict(output="loop.csv"))
    assert pd.read_csv("t.csv").shape == (80, 6)


def test_failures_of_the_machine_are_not_the_users(place, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ulmus.atomic_write._flush", full)
    assert "no space left" in refusal(*predict(), code=1).lower()
    monkeypatch.undo()
    monkeypatch.chdir(place)
    monkeypatch.setattr("ulmus.tables.schema.Schema.parse", lambda *_: 1 / 0)
    assert refusal(*predict(), code=1).startswith("unexpected ZeroDivisionError")


def test_a_full_disk_is_named(place, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space")

    monkeypatch.setattr("ulmus.tables.writers.atomic_write", full)
    assert refusal(*predict(), code=1) == "no space left on device."


def test_negative_weights_are_refused_with_their_row(place):
    sample().assign(w=[1.0] * 40 + [-1.0] * 40).to_csv("w.csv", index=False)
    assert refusal(*fit("--sample-weight", "w", data="w.csv")).startswith(
        "the weight 'w' is negative in data row 41;"
    )


@pytest.mark.slow
def test_a_closed_standard_output_is_no_failure(place):
    for options in ((), ("--json",)):
        output = place / f"closed{len(options)}.csv"
        code = (
            "import sys; sys.stdout = None\n"
            "from ulmus.cli import console\n"
            "from ulmus.cli.app import app\n"
            "console.PATIENCE = 600.0\n"
            f"app({[*map(str, predict(*options, output=output))]!r})"
        )
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (process.returncode, process.stderr) == (0, "")
        assert output.exists()


@pytest.mark.slow
@pytest.mark.parametrize("package", ["numpy", "sklearn", "typer"])
def test_an_interrupt_while_packages_are_loaded_is_one_line(package, tmp_path):
    """NumPy and scikit-learn were imported before the command could handle an interrupt."""
    sample().to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", str(tmp_path / "t.csv"), "-t", "y", "-o", str(tmp_path / "m.ulmus")]
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {package!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        f"sys.argv[1:] = {fit!r}\n"
        "from ulmus.cli import main\n"
        "main()"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 130
    lines = process.stderr.splitlines()
    assert (process.stdout, lines[-1]) == ("", "ulmus: interrupted; nothing was written.")
    assert "Traceback" not in process.stderr
    assert not (tmp_path / "m.ulmus").exists()


def test_help_contains_examples():
    text = done("--help").stdout
    for command in COMMANDS:
        assert command in text
        lines = [line.strip(" •") for line in done(command, "--help").stdout.splitlines()]
        assert any(line.startswith(f"ulmus {command}") for line in lines)
        assert not any("\\b" in line for line in lines)


def test_usage_errors_are_short():
    for arguments in (("fit",), ("predict", "a"), ("fit", "--n-estimators", 1), ("nothing",)):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "Traceback" not in result.output
        assert result.stdout == ""
    assert run("predict", "a", "b", "-o", "c", "--missing", "guess").exit_code == 2


@pytest.mark.slow
def test_a_device_that_is_not_there(torch, place):
    assert "device" in refusal(*fit("--device", "nowhere"))


def test_version_and_commands():
    assert done("--version").stdout == f"ulmus {ulmus.__version__}\n"
    assert {command.callback.__name__ for command in app.registered_commands} == set(COMMANDS)


@pytest.mark.slow
def test_commands_and_options_are_completed():
    code = "from ulmus.cli import main; main()"
    for words, completion in (("ulmus pre", "predict"), ("ulmus fit --n-e", "--n-estimators")):
        # What the script that a shell sources runs, whichever shell runs the tests.
        names = {"_ULMUS_COMPLETE": "complete_bash", "COMP_WORDS": words}
        environment = os.environ | names | {"COMP_CWORD": str(len(words.split()) - 1)}
        command = [sys.executable, "-c", code]
        output = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert output.stdout.split() == [completion]


@pytest.mark.parametrize("command", ["fit", "predict", "average", "plot", "export", "report"])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(place, monkeypatch, command):
    """The fit was computed before the model file could not be written."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: "sealed" not in str(path) and access(path, mode)
    )
    monkeypatch.setattr("ulmus.cli.steps.columns.read_document", lambda *_: 1 / 0)
    (place / "sealed").mkdir()
    words = {
        "fit": ("t.csv", "-t", "y", "-o", "sealed/m.ulmus"),
        "predict": ("m.ulmus", "t.csv", "-o", "sealed/o.csv"),
        "average": ("m.ulmus", "t.csv", "-o", "sealed/o.csv"),
        "plot": ("m.ulmus", "t.csv", "-o", "sealed/o.png"),
        "export": ("m.ulmus", "--onnx", "sealed/o.onnx"),
        "report": ("m.ulmus", "t.csv", "-o", "sealed/o.html"),
    }[command]
    message = refusal(command, *words)
    assert message == "sealed: the folder cannot be written to; choose another."
