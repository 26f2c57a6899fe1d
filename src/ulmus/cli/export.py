"""``ulmus export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.atomic_write import atomic_write
from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.loaded_model import load_model
from ulmus.tables.writers import require_output_path


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
    require_output_path(onnx, [".onnx"], inputs=[model])
    from ulmus.integrations.onnx import to_onnx, usage

    loaded = load_model(model)
    with console.working("Writing the graph"):
        graph = to_onnx(loaded.estimator, confidence_level=confidence_level)
        with atomic_write(onnx) as temporary:
            temporary.write_bytes(graph.SerializeToString())
    inputs = list(loaded.schema.features)
    facts = {"output": onnx, "inputs": inputs, "confidence_level": confidence_level}
    console.result(f"Wrote {onnx}.\n\n{usage(graph, onnx)}", facts)
