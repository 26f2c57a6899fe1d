"""``ulmus fit``: a model from a table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.loaded_model import LoadedModel, note_excluded, open_table
from ulmus.cli.noise_options import NoiseOptions
from ulmus.cli.train import (
    ColumnOptions,
    TrainConfig,
    TrainResult,
    train_config,
    train_in_blocks,
    train_in_memory,
)
from ulmus.estimators import ELMEnsembleRegressor
from ulmus.pipelines import inference
from ulmus.tables.writers import require_output_path

PANEL = "Model"


class MapChoice(StrEnum):
    """How the map of the inputs is learned."""

    auto = "auto"
    ard = "ard"
    full = "full"
    none = "none"


@dataclass(frozen=True)
class ModelOptions:
    """Parameters of the estimator."""

    n_estimators: Annotated[
        int | None,
        typer.Option(min=2, help="Number of networks in the ensemble.", rich_help_panel=PANEL),
    ] = None
    n_neurons: Annotated[
        int | None,
        typer.Option(min=1, help="Hidden units of each network.", rich_help_panel=PANEL),
    ] = None
    input_map: Annotated[
        MapChoice,
        typer.Option(
            help="Learn a relevance of each input (ard) or a linear map (full); auto chooses by "
            "the number of rows; none gives all inputs the same scale.",
            rich_help_panel=PANEL,
        ),
    ] = MapChoice.auto
    random_state: Annotated[
        int, typer.Option(min=0, help="Seed of the random weights.", rich_help_panel=PANEL)
    ] = 0
    device: Annotated[
        str | None, typer.Option(help="A torch device, such as cuda.", rich_help_panel=PANEL)
    ] = None

    def estimator(self) -> ELMEnsembleRegressor:
        """An estimator with these parameters."""
        parameters: dict[str, Any] = {
            "n_estimators": self.n_estimators,
            "n_neurons": self.n_neurons,
            "device": self.device,
        }
        model = ELMEnsembleRegressor(random_state=self.random_state)
        model.set_params(input_map=None if self.input_map == "none" else self.input_map.value)
        return model.set_params(
            **{name: value for name, value in parameters.items() if value is not None}
        )


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
    model: ModelOptions,
    errors: NoiseOptions,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Fit a model to a table, and print its accuracy and diagnostics.

    Text columns become categories, dates become days, and constant columns are dropped. This
    encoding is printed, and stored in the model file for `ulmus predict`.

    ```
    ulmus fit table.csv --target y -o model.ulmus
    ulmus fit table.csv --target y -o model.ulmus --report report.html
    ulmus fit sites.parquet -t ozone -o ozone.ulmus --drop id --missing drop --na-values -999
    ulmus fit series.csv -t level -o level.ulmus --time date --groups station
    ```
    """
    require_output_path(output, inputs=[data])
    if report is not None:
        require_output_path(report, [".html", ".htm"], inputs=[data])
        if report.resolve() == output.resolve():
            raise ValueError(f"--report {report} is the model file; give the report another name.")
        import_module("ulmus.report")  # fails before the fit if a package is missing
    table = open_table(data, reading, console)
    config = train_config(table, target, columns, errors)
    if not columns.columns and len(table.named_columns) < len(table.names):
        console.note("Dropped: a column without a name, such as the row numbers of pandas.")
    if table.is_large if stream is None else stream:
        console.note(
            f"{data} has about {table.n_cells:,} cells and is read in blocks: training rows are "
            "not stored, so leave-one-out diagnostics are not available."
        )
        result = train_in_blocks(config, model.estimator(), console)
    else:
        result = train_in_memory(config, model.estimator(), console)
    note_excluded(result.n_excluded, console)
    _write(result, config, console, output, rows, report)


def _write(
    result: TrainResult,
    config: TrainConfig,
    console: Console,
    output: Path,
    rows: bool,
    report: Path | None,
) -> None:
    """Save the model, write the report, and print the summary."""
    encoder, target = result.model.steps[0][1], config.target
    with console.working("Computing diagnostics"):
        summary = inference(result.model).summary(columns=encoder.schema_.origins)
    with console.working(f"Writing {output}"):
        inference(result.model).save(output, rows=rows, target=target)
    if report is not None:
        from ulmus.report import write_report

        frame, y = result.frame, result.y
        if frame is None:
            loaded = LoadedModel(result.model, encoder.schema_, target)
            frame, y = loaded.observed_rows(config.table, target, console)
        with console.working(f"Writing {report}"):
            write_report(result.model, frame, y, report, target=target)
    facts: dict[str, Any] = {
        "model": output,
        "report": report,
        "target": target,
        "rows_excluded": result.n_excluded,
        "columns": list(encoder.schema_.names),
        "summary": summary.to_dict(console.option),
    }
    written = f"Wrote {output}." if report is None else f"Wrote {output} and {report}."
    following = [f"ulmus predict {output} NEW.csv -o OUT.csv"]
    if report is None:
        following.append(f"ulmus report {output} {config.table.path} -o report.html")
    text = f"{summary.format(console.option, ())}\n\n{written} Next:\n  " + "\n  ".join(following)
    console.result(text, facts, [finding.code for finding in summary.warnings or ()])
