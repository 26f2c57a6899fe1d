"""``ulmus export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ulmus.cli import options
from ulmus.cli.models import known_model
from ulmus.cli.outputs import require_place
from ulmus.cli.talk import Talk
from ulmus.writing import replaced


def export(
    model: options.Model,
    onnx: Annotated[Path, typer.Option(help="ONNX file to write; needs ulmus[onnx].")],
    level: options.Level = 0.95,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write a model as an ONNX graph: mean, standard error, standard deviation and bounds.

    It is in double precision, and any program with an ONNX runtime can call it.

    - `ulmus export model.ulmus --onnx model.onnx`
    """
    talk = Talk(quiet, json)
    with talk.politely():
        require_place(onnx, [".onnx"], inputs=[model])
        from ulmus.onnx import to_onnx, usage

        known = known_model(model)
        with talk.working("Writing the graph"):
            graph = to_onnx(known.estimator, confidence_level=level)
            with replaced(onnx) as temporary:
                temporary.write_bytes(graph.SerializeToString())
        facts = {"output": onnx, "inputs": list(known.schema.features), "level": level}
        talk.result(f"Wrote {onnx}.\n\n{usage(graph, onnx)}", facts)
