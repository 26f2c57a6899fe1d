"""``ulmus check``: diagnostics of a model."""

from __future__ import annotations

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console

# Exit code where a finding has the severity "error".
ERROR_FOUND = 1


@options.command
def check(
    *,
    model: options.Model,
    data: options.OptionalData = None,
    target: options.Target = None,
    sample_weight: options.NewWeight = None,
    missing: options.MissingRule = None,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Print the diagnostics of a model: calibration, misfit, correlated errors, size.

    Without a table, those of the training rows, leave-one-out, which the model file must contain.
    A table with observations is an out-of-sample test; training rows in it are found by their
    values, and predicted leave-one-out.

    The exit code is 1 if a finding has the severity `error`; findings of severity `warning` are
    printed with exit code 0.

    ```
    ulmus check model.ulmus
    ulmus check model.ulmus new.csv
    ulmus check model.ulmus new.csv --quiet && ulmus predict model.ulmus new.csv -o out.csv
    ```
    """
    report = steps.diagnostics.diagnosed(
        model, data, reading, console, target=target, sample_weight=sample_weight, missing=missing
    )
    facts = {
        "severity": report.severity,
        "title": report.title,
        "findings": [finding.to_dict(console.option) for finding in report.findings],
        "coverage": [row._asdict() for row in report.coverage],
    }
    codes = [finding.code for finding in report.findings]
    console.result(report.format(console.option), facts, codes)
    if report.severity == "error":
        raise typer.Exit(ERROR_FOUND)
