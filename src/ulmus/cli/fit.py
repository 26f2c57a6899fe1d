"""``ulmus fit``: a model from a table."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.column_options import ColumnOptions
from ulmus.cli.console import Console
from ulmus.cli.model_options import AdvancedOptions, ModelOptions
from ulmus.cli.noise_options import NoiseOptions
from ulmus.cli.target_options import TargetOptions


@options.command
def fit(
    *,
    data: options.Data,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write, such as model.ulmus.")
    ],
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write as well; needs ulmus[report].")
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--in-memory", help="Read in blocks (default: large tables only)."),
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows/--no-rows", help="Store the training rows in the model file.")
    ] = True,
    columns: ColumnOptions,
    response: TargetOptions,
    model: ModelOptions,
    errors: NoiseOptions,
    advanced: AdvancedOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Fit a model to a table, and print its accuracy and diagnostics.

    Text columns become categories, dates become trend and seasons, and constant columns are
    dropped. This encoding is printed, and stored in the model file for `ulmus predict`.

    ```
    ulmus fit table.csv --target y -o model.ulmus
    ulmus fit table.csv --target y -o model.ulmus --report report.html
    ulmus fit sites.parquet -t ozone -o ozone.ulmus --drop id --missing drop --na-values -999
    ulmus fit series.csv -t level -o level.ulmus --time date --groups station
    ulmus fit claims.csv -t claims -o claims.ulmus --target-kind count
    ```
    """
    parameters = model.parameters | response.parameters | advanced.parameters
    steps.files.require_output_file(output, inputs=[data])
    if report is not None:
        steps.files.require_output_file(report, [".html", ".htm"], inputs=[data])
        if report.resolve() == output.resolve():
            raise ValueError(f"--report {report} is the model file; give the report another name.")
    table = steps.files.open_table(data, reading, console)
    config = steps.roles.train_config(table, target, columns, errors)
    if report is not None:
        write_report = steps.pages.write_fit_report  # fails before the fit if a package is missing
    if not columns.columns and len(table.named_columns) < len(table.names):
        console.note("Dropped: a column without a name, such as the row numbers of pandas.")
    result = steps.training.train(config, parameters, stream, console)
    summary = result.summary(console)
    result.save(output, rows=rows, console=console)
    if report is not None:
        write_report(report, result, console)
    facts = {
        "model": output,
        "report": report,
        "target": target,
        "rows_excluded": result.n_excluded,
        "columns": list(result.schema.names),
        "summary": summary.to_dict(console.option),
    }
    written = f"Wrote {output}." if report is None else f"Wrote {output} and {report}."
    following = [["predict", output, "NEW.csv", "-o", "OUT.csv"]]
    if report is None and not steps.streams.is_standard(data):
        following.append(["report", output, data, "-o", "report.html"])
    following.append(["explore", output, "-o", "page.html"])
    lines = [f"  ulmus {shlex.join(map(str, words))}" for words in following]
    text = "\n".join([summary.format(console.option, ()), "", f"{written} Next:", *lines])
    # The notes about the columns contain what their warning says.
    console.result(text, facts, ["columns", *(finding.code for finding in summary.warnings or ())])
