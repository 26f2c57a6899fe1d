"""``ulmus export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console

GAUSSIAN = (
    "The bounds are Gaussian ones, with Student quantiles: those of `ulmus predict --method "
    "gaussian`,\nnot those of `ulmus predict` by default."
)


@options.command
def export(
    *,
    model: options.Model,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write; needs ulmus[onnx].")],
    confidence_level: options.ConfidenceLevel = 0.95,
    console: Console,
) -> None:
    """Write a model as an ONNX graph: estimate, standard errors and bounds.

    The graph computes in double precision, and any program with an ONNX runtime can call it. Its
    bounds `pred_low` and `pred_high` are those of `ulmus predict --method gaussian`: the mean plus
    and minus a Student quantile. They differ from the default of `ulmus predict`, which uses
    leave-one-out residuals of the training rows.

    ```
    ulmus export model.ulmus --onnx model.onnx
    ```
    """
    steps.files.require_output_file(onnx, [".onnx"], inputs=[model])
    loaded = steps.models.load_model(model, steps.columns.model_columns(model))
    with console.working("Writing the graph"):
        usage, outputs = steps.graphs.write_graph(loaded.estimator, onnx, confidence_level, model)
    facts = {
        "output": onnx,
        "inputs": list(loaded.columns.schema.features),
        "outputs": outputs,
        "bounds": "gaussian" if "pred_low" in outputs else None,
        "confidence_level": confidence_level,
    }
    text = f"Wrote {onnx}.\n\n{usage}"
    console.result(f"{text}\n\n{GAUSSIAN}" if facts["bounds"] else text, facts)
