"""``ulmus fit``: a model from a table."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from joblib import cpu_count

from ulmus.cli import options
from ulmus.cli.console import Console, counted_rows, in_options
from ulmus.cli.loaded_model import LoadedModel
from ulmus.cli.noise_options import LocationColumns
from ulmus.cli.rows import observed_rows
from ulmus.cli.train import TrainConfig, TrainResult, train_config, train_in_blocks, train_in_memory
from ulmus.diagnostics import Summary
from ulmus.estimators import ELMEnsembleRegressor
from ulmus.pipelines import inference
from ulmus.tables.files import Reading, opened
from ulmus.tables.writers import require_place

LAYER = "The model"
ROWS = "Rows that hang together"


def fit(
    data: options.Data,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write, such as model.ulmus.")
    ],
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write as well; needs ulmus[report].")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Inputs; by default, all other columns.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns that are no inputs.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="Columns of numbers that are names of categories.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of row weights: inverse noise variances.")
    ] = None,
    missing: Annotated[
        options.Missing,
        typer.Option(help="Rows with missing values: refuse, leave out, or fill with medians."),
    ] = options.Missing.error,
    na: Annotated[
        list[str] | None, typer.Option(help="What stands for a missing value, such as -999.")
    ] = None,
    members: Annotated[
        int | None, typer.Option(min=2, help="Members of the ensemble.", rich_help_panel=LAYER)
    ] = None,
    neurons: Annotated[
        int | None, typer.Option(min=1, help="Hidden units of each.", rich_help_panel=LAYER)
    ] = None,
    learned_map: Annotated[
        bool,
        typer.Option(
            "--map/--no-map",
            help="Learn which inputs matter; without it, the model has all of them alike.",
            rich_help_panel=LAYER,
        ),
    ] = True,
    time: Annotated[
        str | None,
        typer.Option(help="Column of times: rows near in time share noise.", rich_help_panel=ROWS),
    ] = None,
    coords: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of coordinates, such as east,north: rows near in space share noise.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column of groups: rows of a group share noise; with --time, several series.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            help="auto, homoskedastic or heteroskedastic for independent rows; ar1 or newey-west "
            "along time, exponential or matern in space, clustered in groups. By default, as the "
            "columns above mean.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel=LAYER)] = 0,
    device: Annotated[
        str | None, typer.Option(help="A torch device, such as cuda.", rich_help_panel=LAYER)
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--in-memory", help="By default, decided by the size of the table."),
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows/--no-rows", help="Keep the training rows in the model file.")
    ] = True,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Fit a model to a table, and say how good it is.

    Text columns become categories, dates become days, and columns that are the same in all rows
    are left out; all of it is said, and kept in the model file for `ulmus predict`.

    ```
    ulmus fit table.csv --target y -o model.ulmus
    ulmus fit table.csv --target y -o model.ulmus --report report.html
    ulmus fit sites.parquet -t ozone -o ozone.ulmus --drop station --missing drop --na -999
    ulmus fit series.csv -t level -o level.ulmus --time date --groups station
    ```
    """
    console = Console(quiet, json)
    with console.handle_errors():
        require_place(output, inputs=[data])
        if report is not None:
            require_place(report, [".html", ".htm"], inputs=[data, output])
            import_module("ulmus.report")  # what it needs may be missing, which is said at once
        table, notes = opened(data, Reading(delimiter, decimal, encoding))
        for text in notes:
            console.note(text)
        plan = train_config(
            table,
            target,
            columns=options.names(columns, table.names),
            drop=options.names(drop, table.names),
            weight=weight,
            categorical=options.names(categorical, table.names),
            missing=missing.value,
            marks=tuple(na or ()),
            locations=LocationColumns(time, options.names(coords, table.names), groups),
            noise=noise,
        )
        if not columns and len(table.named) < len(table.names):
            console.note("Left out: a column without a name, such as the row numbers of pandas.")
        model = ELMEnsembleRegressor(random_state=seed, device=device)
        if not learned_map:
            model.set_params(input_map=None)
        if members is not None:
            model.set_params(n_estimators=members)
        if neurons is not None:
            model.set_params(n_neurons=neurons)
        in_blocks = table.is_large if stream is None else stream
        if in_blocks:
            console.note(
                f"{data} has about {table.n_cells:,} cells and is read in blocks: no row is kept, "
                "so that nothing is known about left-out rows."
            )
            # Blocks side by side make better use of cores than products of one block do.
            model.set_params(n_jobs=cpu_count())
        trained = (train_in_blocks if in_blocks else train_in_memory)(plan, model, console)
        if trained.n_left_out:
            console.note(f"Left out: {counted_rows(trained.n_left_out)} with missing values.")
        _finish(trained, plan, console, output, rows, report)


def _finish(
    trained: TrainResult,
    plan: TrainConfig,
    console: Console,
    output: Path,
    rows: bool,
    report: Path | None,
) -> None:
    """Save the model, write the report, and print the summary."""
    encoder, target = trained.model.steps[0][1], plan.target
    with console.working("What the fit tells about itself"):
        summary = _in_options(inference(trained.model).summary(columns=encoder.schema_.origins))
    with console.working(f"Writing {output}"):
        inference(trained.model).save(output, rows=rows, target=target)
    written = [output]
    if report is not None:
        from ulmus.report import write_report

        frame, y = trained.frame, trained.y
        if frame is None:
            known = LoadedModel(trained.model, encoder.schema_, target)
            frame, y = observed_rows(known, plan.table, target, console)
        with console.working(f"Writing {report}"):
            write_report(trained.model, frame, y, report, target=target)
        written.append(report)
    facts: dict[str, Any] = {
        "model": output,
        "report": report,
        "target": target,
        "rows_left_out": trained.n_left_out,
        "columns": list(encoder.schema_.names),
        "summary": summary.to_dict(),
    }
    files = " and ".join(str(path) for path in written)
    advice = [f"ulmus predict {output} NEW.csv -o OUT.csv"]
    if report is None:
        advice.append(f"ulmus report {output} DATA -o report.html")
    console.result(f"{summary}\n\nWrote {files}. Next:\n  " + "\n  ".join(advice), facts)


def _in_options(summary: Summary) -> Summary:
    """A summary whose advice names options and commands."""
    found = summary.warnings and tuple(
        finding._replace(remedy=in_options(finding.remedy)) for finding in summary.warnings
    )
    notes, advice = (tuple(map(in_options, texts)) for texts in (summary.notes, summary.advice))
    return replace(summary, warnings=found, notes=notes, advice=advice)
