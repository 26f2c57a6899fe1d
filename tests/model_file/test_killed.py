"""Commands and ``save`` that are killed at any moment leave the old output or a whole new one."""

import multiprocessing
import time

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, done, sample, save_often

import ulmus

KILLS = 4
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


@pytest.mark.parametrize("job", JOBS)
def test_a_killed_process_leaves_the_old_output_or_a_whole_new_one(folder, process, job):
    arguments = [folder / x if "." in str(x) else x for x in JOBS[job]]
    output = next(x for x in arguments if str(x).startswith(str(folder / "out.")))
    process(time.sleep, 0).join()  # the first one waits for the imports
    begun = time.perf_counter()
    whole = process(*arguments)
    whole.join()
    duration = time.perf_counter() - begun
    assert whole.exitcode == 0
    require_whole(output)
    for share in np.arange(KILLS) / KILLS + np.random.default_rng(0).uniform(0, 1 / KILLS, KILLS):
        output.write_bytes(b"old")
        killed = process(*arguments)
        time.sleep(share * duration)
        killed.kill()
        killed.join()
        if output.read_bytes() != b"old":
            require_whole(output)
    hidden = [path.name for path in folder.iterdir() if ".part" in path.name]
    assert all(name.startswith(".out.") for name in hidden)


def require_whole(output):
    """Refuse an output that is not complete."""
    if output.suffix == ".csv":
        frame = pd.read_csv(output)
        assert frame.shape == (N_ROWS, 12)
        assert np.isfinite(frame[["estimate", "pred_high"]]).all(axis=None)
    else:
        columns = ["t", "count"] if output.suffix == ".wide" else list(sample().columns)
        assert np.isfinite(ulmus.load(output).predict(sample()[columns])).all()
