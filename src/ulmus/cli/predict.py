"""``ulmus predict``: predictions with error bars for the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from ulmus.cli import options
from ulmus.cli.console import Console, counted_rows
from ulmus.cli.loaded_model import LoadedModel, loaded_model
from ulmus.tables.files import Reading, TableFile, file_format
from ulmus.tables.writers import require_place, require_types, table_writer

COLUMNS = ("mean", "se", "ci_lower", "ci_upper", "pi_lower", "pi_upper")


@dataclass(frozen=True)
class PredictOptions:
    """What is to be predicted: level, quantiles, thresholds, and whose interval."""

    level: float
    quantiles: tuple[float, ...]
    exceed: tuple[float, ...]
    of: str

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [*COLUMNS, *map(quantile_name, self.quantiles), *map(exceedance_name, self.exceed)]


def predict(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Table to write: .csv, .parquet or .arrow."),
    ],
    level: options.Level = 0.95,
    quantiles: Annotated[
        list[str] | None, typer.Option(help="Quantiles of a new observation, such as 0.1,0.5,0.9.")
    ] = None,
    exceed: Annotated[
        list[str] | None, typer.Option(help="Probability that an observation exceeds this.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns of the table to write beside; or `all`.")
    ] = None,
    of: Annotated[
        options.Of, typer.Option(help="What ci_lower and ci_upper are for.")
    ] = options.Of.function,
    missing: options.MissingRule = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = "utf-8",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Predict the rows of a table, with error bars.

    Writes `mean`, `se` (of the mean), `ci_lower` and `ci_upper` (for the true function), `pi_lower`
    and `pi_upper` (for a new observation) for each row, in the order of the table.

    ```
    ulmus predict model.ulmus new.csv -o predictions.csv
    ulmus predict model.ulmus new.csv -o predictions.csv --keep site,date --level 0.9
    ulmus predict model.ulmus new.parquet -o out.parquet --quantiles 0.1,0.9 --exceed 120
    ```
    """
    console = Console(quiet, json)
    with console.handle_errors():
        require_place(output, inputs=[data, model])
        file_format(output)
        wanted = PredictOptions(
            level, _numbers("--quantiles", quantiles), _numbers("--exceed", exceed), of
        )
        with console.working(f"Reading {model}"):
            known = loaded_model(model, missing and missing.value)
        n_outputs = known.estimator.fitted_.ensemble.n_outputs
        if n_outputs > 1:
            raise ValueError(f"{model} predicts {n_outputs} targets; fit a model to each of them.")
        table = known.table(data, Reading(delimiter, decimal, encoding), console)
        table.require(known.schema.names)
        kept = _kept_columns(keep, table, wanted)
        table = table.with_copies(name for name in kept if name not in known.schema.names)
        try:
            facts = _written(known, table, wanted, kept, output, console)
        except pa.ArrowNotImplementedError as error:
            raise ValueError(f"{output} cannot hold all of --keep: {error}.") from error
        if facts["rows_left_out"]:
            console.note(f"Left out: {counted_rows(facts['rows_left_out'])} with missing values.")
        console.result(
            f"Wrote {counted_rows(facts['rows'])} to {output}.", {"output": output, **facts}
        )


def _numbers(option: str, given: list[str] | None) -> tuple[float, ...]:
    try:
        return tuple(dict.fromkeys(float(text) for text in options.names(given)))
    except ValueError as error:
        raise ValueError(f"{option} takes numbers, got {', '.join(given or ())!r}.") from error


def _kept_columns(keep: list[str] | None, table: TableFile, wanted: PredictOptions) -> list[str]:
    kept = table.names if keep == ["all"] else [*dict.fromkeys(options.names(keep, table.names))]
    table.require(kept)
    both = [name for name in kept if name in wanted.names]
    if both:
        raise ValueError(
            f"--keep {both[0]} would be written twice, as a prediction has that name too; rename "
            "the column of the table, or leave it out."
        )
    return kept


def _written(
    known: LoadedModel,
    table: TableFile,
    wanted: PredictOptions,
    kept: list[str],
    output: Path,
    console: Console,
) -> dict[str, Any]:
    """Predict and write block by block; how many rows were written and left out."""
    fields = [table.schema.field(name) for name in kept]
    schema = pa.schema([*fields, *(pa.field(name, pa.float64()) for name in wanted.names)])
    require_types(output, fields)
    rows = left_out = 0
    total = max(1, table.n_cells // len(table.names))
    with table_writer(output, schema) as writer, console.counting("Predicting", total) as count:
        for batch, n_read in _predicted(known, table, wanted, kept, console):
            if batch is not None:
                writer.write_table(batch.cast(schema))
            written = 0 if batch is None else batch.num_rows
            rows, left_out = rows + written, left_out + n_read - written
            count(n_read)
        if rows == 0:
            raise ValueError(f"{table.path} has no complete rows; nothing was written.")
    return {"rows": rows, "rows_left_out": left_out, "columns": schema.names}


def _predicted(
    known: LoadedModel, table: TableFile, wanted: PredictOptions, kept: list[str], console: Console
) -> Iterator[tuple[Any, int]]:
    """Blocks of kept columns and predictions, with the number of rows read for each."""
    first_row = 0
    for batch in table.batches([*dict.fromkeys([*known.schema.names, *kept])]):
        tidy, complete = known.schema.tidied(table.data_frame(batch), first_row)
        first_row += batch.num_rows
        complete_rows = batch.filter(pa.array(complete))
        columns = {name: complete_rows.column(name) for name in kept}
        if len(tidy):
            columns |= _predictions(known.ask, tidy, wanted, console)
            yield pa.table(columns), batch.num_rows
        else:
            yield None, batch.num_rows


def _predictions(
    ask: Any, tidy: Any, wanted: PredictOptions, console: Console
) -> dict[str, np.ndarray]:
    try:
        frame = ask.summary_frame(tidy, wanted.level, target=wanted.of)
    except ValueError as error:
        if "target='expectation'" not in str(error):
            raise
        console.note(
            "The model was fitted in blocks and its noise varies: ci_lower and ci_upper are for "
            "the expectation of the prediction, and leave out its bias."
        )
        frame = ask.summary_frame(tidy, wanted.level, target="expectation")
    values = dict(zip(COLUMNS, (frame[name].to_numpy() for name in frame.columns), strict=True))
    if wanted.quantiles:
        q = ask.predict_quantiles(tidy, list(wanted.quantiles))
        values |= {quantile_name(level): q[:, j] for j, level in enumerate(wanted.quantiles)}
    for threshold in wanted.exceed:
        values[exceedance_name(threshold)] = ask.exceedance(tidy, threshold)
    return values


def quantile_name(level: float) -> str:
    """Name of a column of quantiles, such as ``q0.9``."""
    return f"q{level:.15g}"


def exceedance_name(threshold: float) -> str:
    """Name of a column of probabilities, such as ``exceeds_120``."""
    return f"exceeds_{threshold:.15g}"
