"""Runs of a whole study: its chunks over processes, from the store where they are finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from reproduction.settings import (
    FIGURES,
    PAPER_ENSEMBLES,
    PAPER_REPLICATIONS,
    STUDIES,
    TABLES,
    Design,
    Study,
)
from reproduction.simulation import Machine, replication_chunk, truth_chunk
from reproduction.store import Chunk, Store
from ulmus.datasets import FloatArray
from ulmus.version import __version__

TRUTH_CHUNK = 50
REPLICATION_CHUNK = 10
# A card takes several groups of ensembles before its results are worth a file.
DEVICE_CHUNKS = 10

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def silent(title: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """No progress bar."""
    return nullcontext(lambda steps: None)


@dataclass(frozen=True)
class Options:
    """How much to simulate, and where.

    Parameters
    ----------
    replications, ensembles : int
        Replications of each experiment and ensembles for its ground truth.
    seed : int
        Seed of outputs and weights.
    inputs : int or None
        Another draw of the inputs than the study's own.
    jobs : int
        Processes.
    device : str or None
        A torch device such as "cuda".
    precision : str
        Of the large products, "float64" or "float32"; estimates agree to 1e-5.
    output : path or None
        Folder of the finished chunks.
    progress : callable
        Context manager of a title and a total that returns a function to advance by steps.
    """

    replications: int = PAPER_REPLICATIONS
    ensembles: int = PAPER_ENSEMBLES
    seed: int = 0
    jobs: int = 1
    device: str | None = None
    precision: str = "float32"
    output: Path | None = None
    inputs: int | None = None
    progress: Progress = field(default=silent, repr=False)

    def __post_init__(self) -> None:
        for name, least in (("replications", 2), ("ensembles", 2), ("jobs", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be >= {least}, got {getattr(self, name)!r}.")
        if self.precision not in ("float64", "float32"):
            raise ValueError(f"precision must be 'float64' or 'float32', got {self.precision!r}.")

    def chosen(self, study: Study) -> Study:
        """The study with the inputs that are wanted."""
        return study if self.inputs is None else replace(study, inputs=self.inputs)

    @property
    def machine(self) -> Machine:
        """Where to compute."""
        return Machine(self.device, self.precision)

    @property
    def store(self) -> Store:
        """Finished chunks."""
        return Store(None if self.output is None else Path(self.output) / "chunks")


class Truth(NamedTuple):
    """The ground truth of a study, for A ridge parameters and K sizes.

    Parameters
    ----------
    bias, sd : arrays of shape (A, K, P)
        Of the ensemble's prediction, at all points.
    curve : array of shape (E, A, C)
        Predictions of all ensembles on the curve, for the size in the figures.
    """

    bias: FloatArray
    sd: FloatArray
    curve: FloatArray


class Result(NamedTuple):
    """Everything the tables and figures are made of.

    Parameters
    ----------
    study, design, truth
        Setting, inputs and ground truth.
    errors : array of shape (R, A, K, estimates, 2, 3)
        se_k, e_k and re_k on training rows and test points.
    fits : array of shape (R, A, K, 2, 2)
        MSE and relative MSE.
    variance, prediction : arrays of shape (R, A, estimates, C) and (R, A, C)
        On the curve, for the size in the figures.
    """

    study: Study
    design: Design
    truth: Truth
    errors: FloatArray
    fits: FloatArray
    variance: FloatArray
    prediction: FloatArray


def simulated(study: Study, options: Options) -> Result:
    """Ground truth and replications of a study."""
    study = options.chosen(study)
    truth = simulated_truth(study, options)
    task = partial(
        replication_chunk, study, options.seed, machine=options.machine, true_sd=truth.sd
    )
    key = {"kind": "replications", "ensembles": options.ensembles}
    chunks = finished_chunks(task, study, options, key, options.replications, REPLICATION_CHUNK)
    return Result(study, study.design, truth, **_joined(chunks))


def simulated_results(names: Iterable[str], options: Options) -> dict[str, Result]:
    """Every study that some tables and figures are made of, once."""
    studies = [
        study
        for name in names
        for study in (*(column.study for column in TABLES.get(name, ())), *FIGURES.get(name, ()))
    ]
    return {study: simulated(STUDIES[study], options) for study in dict.fromkeys(studies)}


def simulated_truth(study: Study, options: Options) -> Truth:
    """Mean error and standard deviation over new ensembles."""
    task = partial(truth_chunk, study, options.seed, machine=options.machine)
    size, count = TRUTH_CHUNK, options.ensembles
    chunks = list(finished_chunks(task, study, options, {"kind": "truth"}, count, size))
    sums, squares = (
        np.sum([chunk[name] for chunk in chunks], axis=0) for name in ("sums", "squares")
    )
    variance = (squares - sums**2 / count) / (count - 1)
    curve = np.concatenate([chunk["curve"] for chunk in chunks])
    return Truth(sums / count, np.sqrt(variance), curve)


def _joined(chunks: Iterable[Chunk]) -> Chunk:
    parts = list(chunks)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def finished_chunks(
    task: Callable[..., Chunk],
    study: Study,
    options: Options,
    kind: dict[str, Any],
    count: int,
    size: int,
) -> list[Chunk]:
    """All chunks in order; those that are missing are computed and stored."""
    size = size if options.machine.on_host else size * DEVICE_CHUNKS
    key = kind | {
        "study": study.key,
        "seed": options.seed,
        "precision": options.precision,
        "version": __version__,
    }
    spans = [range(start, min(start + size, count)) for start in range(0, count, size)]
    done = {span: chunk for span in spans if (chunk := options.store.load(key, span))}
    missing = [span for span in spans if span not in done]
    with options.progress(f"{study.name}: {kind['kind']}", count) as advance:
        advance(sum(map(len, done)))
        for span, chunk in _computed(task, missing, options):
            options.store.save(key, span, chunk)
            done[span] = chunk
            advance(len(span))
    return [done[span] for span in spans]


def _computed(
    task: Callable[..., Chunk], spans: list[range], options: Options
) -> Iterator[tuple[range, Chunk]]:
    """Chunks as they are finished."""
    if options.jobs == 1 or not options.machine.on_host or len(spans) < 2:
        for span in spans:
            yield span, task(span=span)
        return
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    yield from pool(delayed(_labelled)(task, span) for span in spans)


def _labelled(task: Callable[..., Chunk], span: range) -> tuple[range, Chunk]:
    # One process for each core: threads of their own would only get in each other's way.
    with threadpool_limits(1):
        return span, task(span=span)
