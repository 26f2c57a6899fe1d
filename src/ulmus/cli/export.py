"""``ulmus export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options, steps
from ulmus.cli.console import Console


@options.command
def export(
    *,
    model: options.Model,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write; needs ulmus[onnx].")],
    confidence_level: options.ConfidenceLevel = 0.95,
    console: Console,
) -> None:
    """Write a model as an ONNX graph: estimate, standard errors and bounds.

    The graph computes in double precision, and any program with an ONNX runtime can call it.

    ```
    ulmus export model.ulmus --onnx model.onnx
    ```
    """
    steps.files.require_output_path(onnx, [".onnx"], inputs=[model])
    loaded = steps.models.load_model(model, steps.columns.model_columns(model))
    with console.working("Writing the graph"):
        usage = steps.graphs.write_graph(loaded.estimator, onnx, confidence_level)
    inputs = list(loaded.columns.schema.features)
    facts = {"output": onnx, "inputs": inputs, "confidence_level": confidence_level}
    console.result(f"Wrote {onnx}.\n\n{usage}", facts)
