"""Stages of computations, and what receives them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from progress_recorder import Recorder

import ulmus
from ulmus.progress import Lines, counted, detail, reported_to, stage


def clock(times):
    """A clock that shows these times, one at each call."""
    iterator = iter(times)
    return lambda: next(iterator)


def test_stages_within_a_stage_are_not_reported():
    recorder = Recorder()
    with reported_to(recorder):
        with stage("outer") as done:
            with stage("inner") as ignored:
                ignored(0.1)
            done(0.5)
        with stage("next"):
            detail("a number")
    assert recorder.reports == [("outer", None), ("outer", 0.5), ("next", None)]
    assert recorder.details == ["a number"]


def test_a_stage_is_a_decorator():
    @stage("work")
    def double(x):
        return 2 * x

    recorder = Recorder()
    with reported_to(recorder):
        assert [double(1), double(2)] == [2, 4]
    assert double(3) == 6
    assert recorder.reports == [("work", None)] * 2


def test_an_error_ends_a_stage():
    recorder = Recorder()
    with reported_to(recorder):
        with pytest.raises(ValueError, match="wrong"), stage("first"):
            raise ValueError("wrong")
        with stage("second"):
            pass
    assert recorder.stages == ["first", "second"]
    with stage("unreported"):
        detail("nobody")
    assert recorder.stages == ["first", "second"]
    assert recorder.details == []


def test_the_first_receiver_stays():
    outer, inner = Recorder(), Recorder()
    with reported_to(outer), reported_to(inner), reported_to(None), stage("work"):
        pass
    assert (outer.stages, inner.stages) == (["work"], [])


def test_shares_are_reported_from_other_threads():
    recorder = Recorder()
    with reported_to(recorder), stage("tasks") as done, ThreadPoolExecutor(4) as pool:
        assert list(pool.map(counted(lambda i: i * i, 8, done), range(8))) == [
            i * i for i in range(8)
        ]
    assert sorted(share for _, share in recorder.reports[1:]) == [i / 8 for i in range(1, 9)]


def test_lines_name_each_stage_and_repeat_one_that_takes_long():
    written = []
    lines = Lines(written.append, interval=10, clock=clock([100, 100.5, 101, 112.5, 113, 130.5]))
    lines.report("first", None)
    lines.report("first", 0.1)  # within the interval
    lines.report("first", 0.25)
    lines.report("first", 0.5)  # within the interval
    lines.detail("not wanted")
    lines.report("second", None)
    assert written == [
        "[   0.5 s] first",
        "[  12.5 s] first: 25%, about 36 s left",
        "[  30.5 s] second",
    ]


def test_lines_with_details():
    written = []
    Lines(written.append, details=True, clock=clock([0, 2])).detail("a number")
    assert written == ["[   2.0 s]   a number"]


# ---------------------------------------------------------------- stages of the library


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (90, 3))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(90)


@pytest.mark.slow
def test_stages_of_a_fit_and_of_its_first_error_bars(rows, capsys):
    X, y = rows
    recorder, model = Recorder(), ulmus.ELMEnsembleRegressor(3, 20, random_state=0)
    with reported_to(recorder):
        model.fit(X, y)
    assert recorder.stages[:3] == ["Reading rows", "Sampling rows", "Learning the input map"]
    assert {"Residuals and standard errors", "Noise model"} <= set(recorder.stages)
    assert any("likelihood" in text for text in recorder.details)
    recorder.reports.clear()
    with reported_to(recorder):
        model.predict_interval(X[:2])
    (refits,) = (name for name in recorder.stages if name.startswith("Refits for error bars"))
    shares = [share for name, share in recorder.reports if name == refits]
    assert shares == [None, 0.2, 0.4, 0.6, 0.8, 1.0]
    recorder.reports.clear()
    with reported_to(recorder):
        model.predict_interval(X[:2])
    assert refits not in recorder.stages
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_verbose_prints_stages_and_changes_no_result(rows, capsys):
    X, y = rows
    quiet = ulmus.ELMEnsembleRegressor(3, 20, random_state=0).fit(X, y)
    expected = quiet.predict_interval(X[:3])
    assert capsys.readouterr().out == ""
    verbose = ulmus.ELMEnsembleRegressor(3, 20, random_state=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[   0.0 s] Reading rows"
    assert len(lines) == len(set(lines))
    assert not any("likelihood" in line for line in lines)
    np.testing.assert_array_equal(verbose.predict_interval(X[:3]), expected)
    assert "Refits for error bars" in capsys.readouterr().out
