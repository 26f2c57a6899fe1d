"""``ulmus export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options
from ulmus.cli.console import Console
from ulmus.cli.loaded_model import loaded_model
from ulmus.model_file.atomic_write import replaced
from ulmus.tables.writers import require_place


def export(
    model: options.Model,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write; needs ulmus[onnx].")],
    level: options.Level = 0.95,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write a model as an ONNX graph: mean, standard error, standard deviation and bounds.

    It is in double precision, and any program with an ONNX runtime can call it.

    ```
    ulmus export model.ulmus --onnx model.onnx
    ```
    """
    console = Console(quiet, json)
    with console.handle_errors():
        require_place(onnx, [".onnx"], inputs=[model])
        from ulmus.integrations.onnx import to_onnx, usage

        known = loaded_model(model)
        with console.working("Writing the graph"):
            graph = to_onnx(known.estimator, confidence_level=level)
            with replaced(onnx) as temporary:
                temporary.write_bytes(graph.SerializeToString())
        facts = {"output": onnx, "inputs": list(known.schema.features), "level": level}
        console.result(f"Wrote {onnx}.\n\n{usage(graph, onnx)}", facts)
