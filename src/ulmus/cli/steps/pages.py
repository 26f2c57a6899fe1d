"""HTML pages about a model: reports, with the rows of a table, and interactive pages."""

from __future__ import annotations

from pathlib import Path

from ulmus.cli.console import Console
from ulmus.cli.steps.columns import ModelColumns
from ulmus.cli.steps.training import TrainResult
from ulmus.explore import write_explorer
from ulmus.report import TableSource, write_report

__all__ = ["write_explorer", "write_fit_report", "write_report"]


def write_fit_report(report: Path, result: TrainResult, console: Console) -> None:
    """Write a report about a fit and the rows that it was fitted to."""
    config, frame, y, weight = result.config, result.frame, result.y, None
    if frame is None:  # the table was not kept in memory
        column = None if result.model.fitted_.has_working_weights else config.weight
        columns = ModelColumns(result.schema, config.target, column)
        rows = columns.observed_rows(config.table, config.target, column, console)
        frame, y, weight = rows
    source = None
    if str(config.table.path) not in console.titles:  # standard input cannot be read again
        source = TableSource.of_file(
            config.table,
            weight=config.weight,
            locations=config.locations.axes,
            n_excluded=result.n_excluded,
        )
    with console.working(f"Writing {report}"):
        write_report(
            result.model,
            frame,
            y,
            report,
            target=config.target,
            sample_weight=weight,
            source=source,
        )
