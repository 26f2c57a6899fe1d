"""``ulmus demo``: all commands on a small table, to look at and to copy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console as RichConsole
from sklearn.datasets import load_diabetes

from ulmus.cli.console import Console
from ulmus.cli.effects import slope
from ulmus.cli.fit import fit
from ulmus.cli.predict import predict


def demo(
    folder: Annotated[
        Path, typer.Argument(help="Folder for the table, the model and what comes of it.")
    ] = Path("ulmus-demo"),
) -> None:
    """Fit, predict and explain a small table, and leave everything in a folder to look at.

    ```
    ulmus demo
    ```
    """
    console = Console()
    with console.handle_errors():
        folder.mkdir(parents=True, exist_ok=True)
        table, model = folder / "diabetes.csv", folder / "model.ulmus"
        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        X.assign(sex=X["sex"].map({1.0: "a", 2.0: "b"}), progression=y).to_csv(table, index=False)
    report, predictions = folder / "report.html", folder / "predictions.csv"
    _say(f"ulmus fit {table} --target progression -o {model} --report {report}")
    fit(table, "progression", model, report=report)
    _say(f"ulmus predict {model} {table} -o {predictions} --keep age,bmi")
    predict(model, table, predictions, keep=["age,bmi"])
    _say(f"ulmus slope {model} {table} --variable bmi,bp")
    slope(model, table, variable=["bmi,bp"])
    RichConsole().print(f"\nOpen {report} in a browser.", markup=False, highlight=False)


def _say(command: str) -> None:
    """The command that is run next."""
    RichConsole(soft_wrap=True).print(f"\n$ {command}", markup=False, highlight=False, style="bold")
