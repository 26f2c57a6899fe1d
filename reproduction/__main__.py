"""``python -m reproduction``: the tables and figures of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from joblib import cpu_count
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from reproduction import figures, selection, tables
from reproduction.runs import Options, simulated_results
from reproduction.runs import Progress as ProgressBars
from reproduction.settings import (
    FIGURES,
    PAPER_ENSEMBLES,
    PAPER_REPLICATIONS,
    TABLES,
)

QUICK_REPLICATIONS, QUICK_ENSEMBLES = 100, 500

Target = Enum(  # type: ignore[misc]
    "Target", {name: name for name in (*TABLES, *FIGURES, "selection", "all")}, type=str
)


def reproduce(
    target: Annotated[Target, typer.Argument(help="What to reproduce.")],
    replications: Annotated[
        int | None, typer.Option(min=2, help=f"Replications; by default, {PAPER_REPLICATIONS}.")
    ] = None,
    ensembles: Annotated[
        int | None,
        typer.Option(min=2, help=f"Ensembles of the ground truth; by default, {PAPER_ENSEMBLES}."),
    ] = None,
    quick: Annotated[
        bool, typer.Option(help=f"{QUICK_REPLICATIONS} replications, {QUICK_ENSEMBLES} ensembles.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of outputs and weights.")] = 0,
    inputs: Annotated[
        int | None, typer.Option(min=0, help="Another draw of the inputs than the default.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default, all cores.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="A torch device, such as cuda.")] = None,
    precision: Annotated[
        str, typer.Option(help="Of the large products: float32 or float64.")
    ] = "float32",
    output: Annotated[
        Path, typer.Option(help="Folder of the results; a run continues what it finds there.")
    ] = Path("build/reproduction"),
    json: Annotated[
        Path | None, typer.Option(help="File for the numbers of the tables, as JSON.")
    ] = None,
) -> None:
    """Reproduce a table, a figure, or everything, with the paper's own numbers beside."""
    console = Console(width=None if Console().is_terminal else 200)
    options = _checked_options(
        replications=replications or (QUICK_REPLICATIONS if quick else PAPER_REPLICATIONS),
        ensembles=ensembles or (QUICK_ENSEMBLES if quick else PAPER_ENSEMBLES),
        seed=seed,
        inputs=inputs,
        jobs=jobs or cpu_count(),
        device=device,
        precision=precision,
        output=output,
        progress=progress_bars(console),
    )
    wanted = [*TABLES, *FIGURES, "selection"] if target.value == "all" else [target.value]
    try:
        found = _reproduced(wanted, options, output, console)
    except KeyboardInterrupt:
        console.print(f"Interrupted: the same command continues from {output}.")
        raise typer.Exit(130) from None
    if json is not None:
        tables.write_json(found, json)
        console.print(f"wrote {json}")


def _reproduced(
    wanted: list[str], options: Options, output: Path, console: Console
) -> list[tables.Record]:
    """Print and write everything that is wanted; the numbers of its tables."""
    results = simulated_results(wanted, options)
    found: list[tables.Record] = []
    for name in wanted:
        if name in TABLES:
            numbers = tables.records(name, results)
            console.print(tables.printed_table(name, numbers, options))
            _write(numbers, output / name, console)
            found += numbers
        elif name in FIGURES:
            for path in figures.write_figure(name, figures.DRAWINGS[name](results), output):
                console.print(f"wrote {path}")
        else:
            choices = selection.choices(options)
            console.print(_choices(choices))
            _write(choices, output / name, console)
    return found


def _checked_options(**values: Any) -> Options:
    """Options, or one message about what is wrong, before hours are spent."""
    try:
        options = Options(**values)
        values["output"].mkdir(parents=True, exist_ok=True)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except OSError as error:
        reason = f"--output {values['output']}: {error.strerror}; name a folder."
        raise typer.BadParameter(reason) from error
    try:
        options.machine.reference  # noqa: B018
    except (ImportError, ValueError) as error:
        raise typer.BadParameter(f"--device {options.device}: {error}") from error
    return options


def progress_bars(console: Console) -> ProgressBars:
    """Progress bars on a console; what is not a terminal gets none."""

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        hidden = not console.is_terminal
        with Progress(*columns, console=console, disable=hidden, transient=True) as progress:
            task = progress.add_task(title, total=total)
            yield lambda steps: progress.advance(task, steps)

    return bar


def _write(rows: Sequence[NamedTuple], path: Path, console: Console) -> None:
    for suffix, write in ((".csv", tables.write_csv), (".json", tables.write_json)):
        write(rows, path.with_suffix(suffix))
        console.print(f"wrote {path.with_suffix(suffix)}")


def _choices(found: list[selection.Choice]) -> Table:
    table = Table(title="Hyper-parameters: by the mean score, of single data sets, the paper's")
    for title in ("study", "parameter", "score", "by mean", "median", "quartiles", "paper"):
        table.add_column(title)
    for c in found:
        name = f"{c.parameter} (N = {c.n_neurons})" if c.parameter == "alpha" else c.parameter
        quartiles = f"{c.lower:.3g} to {c.upper:.3g}"
        values = (f"{c.by_mean:.3g}", f"{c.median:.3g}", quartiles, f"{c.paper:.3g}")
        table.add_row(c.study, name, c.score, *values)
    return table


if __name__ == "__main__":
    typer.run(reproduce)
