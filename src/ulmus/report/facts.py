"""All numbers of a report, asked of the library; nothing here is drawn or said."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from ulmus.core.fit.fit import Fit
from ulmus.report.columns import Column, Target, described
from ulmus.report.influences import MOST_INPUTS, Dependence, Relevance, dependences, relevance
from ulmus.report.judgement import Judgement, judgement
from ulmus.report.neighbours import Neighbours, neighbours
from ulmus.report.settings import Settings, settings
from ulmus.report.spread import Members, Parts, members, parts
from ulmus.report.subject import Subject


@dataclass(frozen=True)
class Facts:
    """What a report tells about a model.

    Parameters
    ----------
    title, target_name : str
        Title of the page, and name of what is predicted.
    judged_by : str
        Which rows judge the model.
    is_training, keeps_rows, map_saw_all : bool
        Whether the rows of the report are those of the fit, whether the fit keeps its own, and
        whether a map of the inputs was learned with all of these in view.
    n_rows, n_inside, n_training : int
        Rows of the report, those of them in the range of the training inputs, and rows of the fit.
    columns : tuple of Column
        The inputs of the table.
    target : Target or None
        What was observed.
    judgement : Judgement or None
        How good the model is.
    neighbours : Neighbours or None
        Whether residuals of neighbouring rows agree.
    relevance : Relevance
        Which inputs matter.
    dependences : tuple of Dependence
        The function along the most relevant ones.
    parts : Parts
        What the variance is made of.
    members : Members or None
        What more members would gain.
    settings : Settings
        How the model was made.
    warnings : tuple of str
        What the library warned of meanwhile.
    """

    title: str
    target_name: str
    judged_by: str
    is_training: bool
    keeps_rows: bool
    map_saw_all: bool
    n_rows: int
    n_inside: int
    n_training: int
    columns: tuple[Column, ...]
    target: Target | None
    judgement: Judgement | None
    neighbours: Neighbours | None
    relevance: Relevance
    dependences: tuple[Dependence, ...]
    parts: Parts
    members: Members | None
    settings: Settings
    warnings: tuple[str, ...]


def facts(subject: Subject, title: str, target_name: str) -> Facts:
    """All facts about a subject; warnings on the way become one of them."""
    fit = subject.fit
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        judged = judgement(subject)
        matters = relevance(subject)
        curves = dependences(subject, matters.columns[:MOST_INPUTS])
        spread, sizes = parts(subject), members(subject)
    y = subject.y
    if y is None and fit.rows is not None:
        y = fit.rows.data.y[0, fit.rows.data.used]
    return Facts(
        title=title,
        target_name=target_name,
        judged_by=subject.judged_by,
        is_training=subject.is_training,
        keeps_rows=fit.rows is not None,
        map_saw_all=_map_saw_all(fit),
        n_rows=len(subject.table),
        n_inside=len(subject.inside),
        n_training=fit.n_rows,
        columns=described(subject.table),
        target=None if y is None else Target(target_name, y),
        judgement=judged,
        neighbours=neighbours(subject),
        relevance=matters,
        dependences=curves,
        parts=spread,
        members=sizes,
        settings=settings(subject),
        warnings=_different(str(warning.message) for warning in caught),
    )


def _map_saw_all(fit: Fit) -> bool:
    """Whether left-out rows stand behind a map that was learned from them too."""
    learned = fit.input_map is not None and fit.input_map.relevance is not None
    set_aside = fit.rows is not None and fit.rows.tuned is not None
    return learned and not set_aside and not fit.folded


def _different(messages: Iterable[str]) -> tuple[str, ...]:
    """The first of all messages that differ in nothing but numbers."""
    first: dict[str, str] = {}
    for message in messages:
        first.setdefault(re.sub(r"\d+", "", message), message)
    return tuple(first.values())
