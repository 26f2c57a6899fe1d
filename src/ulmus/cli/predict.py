"""``ulmus predict``: predictions with error bars for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console, counted_rows

if TYPE_CHECKING:
    from ulmus.cli.steps.predictions import PredictedTable

# Rows that are shown on a terminal.
PREVIEW = 20


@options.command
def predict(
    *,
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Table to write: .csv, .parquet or .arrow; `-` for CSV on standard output, also "
            "the default in a pipe (on a terminal: the first rows).",
        ),
    ] = None,
    confidence_level: options.ConfidenceLevel = 0.95,
    quantiles: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBERS", help="Quantiles of a new observation, such as 0.1,0.5,0.9."
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBERS", help="Probability that an observation exceeds this value."),
    ] = None,
    keep: Annotated[
        list[str] | None, options.columns_option(help="Columns of the table to copy, or `all`.")
    ] = None,
    interval_target: Annotated[
        options.IntervalTarget | None,
        typer.Option(
            help="What conf_low and conf_high cover (default: function, or expectation where the "
            "model has no undersmoothed fit)."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Method of pred_low and pred_high: auto, jackknife+, cv+ or gaussian.",
        ),
    ] = None,
    tails: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Tails of pred_low and pred_high: equal or shortest."),
    ] = None,
    residual_kriging: Annotated[
        bool,
        typer.Option(
            "--residual-kriging",
            help="Correlated errors: estimate, pred_low and pred_high use the residuals of the "
            "nearest training rows, as in a forecast of a few steps.",
        ),
    ] = False,
    sample_weight: options.NewWeight = None,
    missing: options.MissingRule = None,
    reading: options.ReadingOptions,
    console: Console,
) -> None:
    """Predict the rows of a table, with error bars.

    Writes `estimate`, its standard error `std_error`, `conf_low` and `conf_high` (confidence
    interval for the function), `pred_low` and `pred_high` (prediction interval for a new
    observation) for each row, in the order of the table. With --residual-kriging, `std_error`,
    `conf_low` and `conf_high` remain those of the function.

    ```
    ulmus predict model.ulmus new.csv -o predictions.csv
    ulmus predict model.ulmus new.csv -o predictions.csv --keep site,date --confidence-level 0.9
    ulmus predict model.ulmus new.parquet -o out.parquet --quantiles 0.1,0.9 --threshold 120
    ulmus predict series.ulmus future.csv -o forecast.csv --residual-kriging --keep date
    ulmus predict model.ulmus new.csv | head -3
    head -3 new.csv | ulmus predict model.ulmus - --keep all -o -
    ```
    """
    steps.files.require_table_output(output, [data, model], console)
    columns = steps.predictions.prediction_columns(
        confidence_level,
        quantiles,
        threshold,
        interval_target and interval_target.value,
        method=method,
        tails=tails,
        residual_kriging=residual_kriging,
    )
    needed = steps.columns.model_columns(model, missing)
    if needed.n_outputs > 1:
        text = f"{model} predicts {needed.n_outputs} targets"
        raise ValueError(f"{text}; fit a model to each of them.")
    table = needed.table(data, reading, console)
    table.require(needed.schema.names)
    weight = needed.weight_column(sample_weight, table, console)
    copied = steps.predictions.copied_columns(keep, table, columns)
    table = table.with_copied_columns(name for name in copied if name not in needed.schema.names)
    with console.working(f"Reading {model}"):
        loaded = steps.models.load_model(model, needed)
    if residual_kriging:
        steps.predictions.require_location_columns(loaded.estimator.noise)
    predictions = steps.predictions.PredictedTable(loaded, table, columns, copied, weight, console)
    text, facts = _result(predictions, output, console)
    steps.files.note_excluded(facts["rows_excluded"], console)
    console.result(text, facts)


def _result(
    predictions: PredictedTable, output: Path | None, console: Console
) -> tuple[str, dict[str, Any]]:
    """Predict, and write or keep the rows; the text to print and the facts."""
    if console.json and output is None:
        frame, facts = predictions.frame()
        return "", facts | {"output": None, "predictions": frame.to_dict("records")}
    if steps.streams.writes_to_pipe(output):
        return "", predictions.write(None)
    if output is not None:
        facts = {"output": output, **predictions.write(output)}
        return f"Wrote {counted_rows(facts['rows'])} to {output}.", facts
    frame, facts = predictions.frame(PREVIEW + 1)
    if len(frame) > PREVIEW:
        console.note(f"The first {PREVIEW} rows; -o FILE.csv writes all of them.")
    return steps.printed.printed_frame(frame[:PREVIEW]), facts
