"""Commands and ``save`` that are killed at any moment leave the old output or a whole new one."""

import multiprocessing
import os
import time

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, done, sample, save_often

import ulmus

pytestmark = pytest.mark.slow

KILLS = 4  # at moments spread over the whole run
ATTEMPTS = 40  # to kill a process while its temporary file exists
N_ROWS = 20_000
ENSEMBLE = {"n_neurons": 200, "input_map": None, "random_state": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables, a model of the command line and one of Python."""
    folder = tmp_path_factory.mktemp("killed")
    sample().to_csv(folder / "t.csv", index=False)
    sample().sample(N_ROWS, replace=True, random_state=0).to_csv(folder / "large.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", "-o", folder / "m.ulmus", *SMALL)
    model = ulmus.ELMEnsembleRegressor(4, **ENSEMBLE).fit(
        sample(400)[["t", "count"]], sample(400).y
    )
    model.save(folder / "wide.ulmus")
    return folder


@pytest.fixture(scope="module")
def process():
    """Function that starts a process in which everything is imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ulmus.cli.app", "pandas", "pyarrow.parquet"])

    def process(function, *arguments):
        process = context.Process(target=function, args=arguments)
        process.start()
        return process

    return process


JOBS = {
    "fit": (done, "fit", "t.csv", "-t", "y", "-o", "out.ulmus", *SMALL),
    "predict": (done, "predict", "m.ulmus", "large.csv", "-o", "out.csv", "--keep", "all"),
    "save": (save_often, "wide.ulmus", "out.wide"),
}


@pytest.fixture
def job(request, folder, process):
    """Function that starts a command or a save over an old output, and the output's path."""
    arguments = [folder / x if "." in str(x) else x for x in JOBS[request.param]]
    output = next(x for x in arguments if str(x).startswith(str(folder / "out.")))
    process(time.sleep, 0).join()  # the first one waits for the imports

    def start():
        output.write_bytes(b"old")
        return process(*arguments)

    return start, output


jobs = pytest.mark.parametrize("job", JOBS, indirect=True)


@pytest.mark.slow
@jobs
def test_a_process_killed_at_any_moment_leaves_the_old_output_or_a_whole_new_one(job):
    start, output = job
    begun = time.perf_counter()
    whole = start()
    whole.join()
    duration = time.perf_counter() - begun
    assert whole.exitcode == 0
    require_whole(output)
    for share in np.arange(KILLS) / KILLS + np.random.default_rng(0).uniform(0, 1 / KILLS, KILLS):
        killed = start()
        time.sleep(share * duration)
        kill(killed)
        require_old_or_whole(output)
    remove_temporary_files(output)


@pytest.mark.slow
@jobs
def test_a_process_killed_during_the_write_leaves_the_old_output_or_a_whole_new_one(job):
    start, output = job
    for _ in range(ATTEMPTS):
        killed = start()
        while killed.is_alive() and not temporary_files(output):
            pass  # a write of a small file takes less than any pause
        kill(killed)
        require_old_or_whole(output)
        if remove_temporary_files(output):
            return
    pytest.fail(f"no process out of {ATTEMPTS} was killed while its temporary file existed")


def kill(process):
    process.kill()
    process.join()


def temporary_files(output):
    """Hidden files beside an output, whose names begin with its name."""
    return [f for f in os.scandir(output.parent) if f.name.startswith(f".{output.name}.")]


def remove_temporary_files(output):
    """Remove what a killed process left, and return whether there was anything."""
    left = temporary_files(output)
    for file in left:
        os.unlink(file)
    assert not [f.name for f in os.scandir(output.parent) if ".part" in f.name]
    return bool(left)


def require_old_or_whole(output):
    """Refuse an output that is neither the old one nor complete."""
    if output.read_bytes() != b"old":
        require_whole(output)


def require_whole(output):
    """Refuse an output that is not complete."""
    if output.suffix == ".csv":
        frame = pd.read_csv(output)
        assert frame.shape == (N_ROWS, 12)
        assert np.isfinite(frame[["estimate", "pred_high"]]).all(axis=None)
    else:
        columns = ["t", "count"] if output.suffix == ".wide" else list(sample().columns)
        assert np.isfinite(ulmus.load(output).predict(sample()[columns])).all()
