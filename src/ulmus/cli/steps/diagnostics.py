"""Diagnostics of a model, from its training rows or a table, and its summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ulmus.cli.console import Console
from ulmus.cli.options import Missing, ReadingOptions
from ulmus.cli.steps.columns import model_columns
from ulmus.cli.steps.models import load_model
from ulmus.diagnostics import DiagnosticReport, Summary, fit_summary
from ulmus.model_file import load
from ulmus.model_file.container import read_document


def diagnosed(
    path: Path,
    data: Path | None,
    reading: ReadingOptions,
    console: Console,
    *,
    target: str | None,
    sample_weight: str | None,
    missing: Missing | None,
) -> DiagnosticReport:
    """The diagnostics of a model file, from the rows of a table if there is one."""
    columns = model_columns(path, missing)
    if data is None:
        if not read_document(path)["training"]["rows_kept"]:
            text = f"{path} contains no training rows, which a check without a table requires"
            raise ValueError(f"{text}; give a table with the target, as in `check {path} TABLE`.")
        model = load_model(path, columns).estimator
        with console.working("Computing diagnostics"):
            found: DiagnosticReport = model.check()
        return found
    with console.working("Reading"):
        table = columns.table(data, reading, console)
        name = columns.target if target is None else target
        if name is None:
            raise ValueError(f"{path} does not name its target; give its column with --target.")
        table.require([name])
        weight = columns.weight_column(sample_weight, table, console)
        rows, y, weights = columns.observed_rows(table, name, weight, console)
        model = load_model(path, columns).estimator
    with console.working("Computing diagnostics"):
        found = model.check(rows, y, sample_weight=weights)
    return found


def brief_summary(model: Any) -> Summary:
    """The summary of a fitted estimator without what would have to be computed."""
    names, columns = model._input_names(), model._input_columns()
    title = type(model).__name__
    summary = fit_summary(model.fitted_, title, names, columns=columns, brief=True)
    return replace(summary, notes=())


def saved_summary(path: Path) -> Summary:
    """The brief summary of a model file, of tables with or without named columns."""
    return brief_summary(load(path))
