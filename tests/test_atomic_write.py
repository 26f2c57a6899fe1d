"""Files appear whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ulmus.atomic_write import atomic_write


def written(path, text="new"):
    with atomic_write(path) as temporary:
        temporary.write_text(text)
    return Path(path).read_text()


def interrupted(path, error):
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_file_appears_when_all_is_written(tmp_path):
    target = tmp_path / "table.csv"
    with atomic_write(target) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        assert temporary.name.startswith(".table.csv.")
        assert ".part" in temporary.name
        temporary.write_text("rows")
        assert not target.exists()
    assert os.listdir(tmp_path) == ["table.csv"]
    assert target.read_text() == "rows"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file(tmp_path, error):
    target = tmp_path / "model"
    target.write_text("old")
    with pytest.raises(error):
        interrupted(target, error)
    assert os.listdir(tmp_path) == ["model"]
    assert target.read_text() == "old"


def test_a_writer_that_removes_its_file_fails(tmp_path):
    target = tmp_path / "model"
    with pytest.raises(FileNotFoundError), atomic_write(target) as temporary:
        temporary.unlink()
    assert os.listdir(tmp_path) == []


def test_a_name_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert written("plain") == "new"


def test_names_of_the_longest_kind(tmp_path):
    assert written(tmp_path / ("ü" * 120)) == "new"


def test_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        target = tmp_path / "model"
        written(target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
        target.chmod(0o600)
        with atomic_write(target) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        target.chmod(0o666)
        written(target)
        assert stat.S_IMODE(target.stat().st_mode) == 0o666
    finally:
        os.umask(before)


def test_symbolic_links_are_written_through(tmp_path):
    (tmp_path / "kept").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to("kept/real.csv")
    assert written(link, "first") == "first"  # it pointed to nothing
    assert written(link, "second") == "second"
    assert link.is_symlink()
    assert (tmp_path / "kept" / "real.csv").read_text() == "second"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "is a folder; give a file in it"),
        ("", "is a folder"),
        ("no/such/file", "is in a folder that does not exist; create it"),
        ("loop", "is not a regular file"),
        ("pipe", "is not a regular file"),
        ("file/below", "is in a folder that does not exist"),
    ],
)
def test_what_is_no_place_for_a_file(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=message) as caught, atomic_write(name):
        pytest.fail("nothing can be written")
    assert f"path={name!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_must_not_be_written(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)
    with (
        pytest.raises(PermissionError, match="cannot be written: Permission denied; choose"),
        atomic_write(tmp_path / "model"),
    ):
        pytest.fail("nothing can be written")


def test_a_file_that_must_not_be_written(tmp_path, monkeypatch):
    target = tmp_path / "model"
    target.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="must not be written"), atomic_write(target):
        pytest.fail("nothing can be written")
    assert target.read_text() == "old"


WRITER = """
import sys
from ulmus.atomic_write import atomic_write
text = sys.argv[2] * 2_000_000
print("ready", flush=True)
while True:
    with atomic_write(sys.argv[1]) as temporary, open(temporary, "w") as file:
        for start in range(0, len(text), 100_000):
            file.write(text[start : start + 100_000])
"""


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_file(tmp_path):
    target = tmp_path / "model"
    whole = {"a" * 2_000_000, "b" * 2_000_000}
    for k, letter in enumerate("abab"):
        command = [sys.executable, "-c", WRITER, str(target), letter]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(0.01 + 0.013 * k)
            process.send_signal(signal.SIGKILL)
        assert not target.exists() or target.read_text() in whole
    left = [name for name in os.listdir(tmp_path) if name != "model"]
    assert all(name.startswith(".model.") and ".part" in name for name in left)
