"""Models as ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ulmus.atomic_write import atomic_write
from ulmus.integrations.onnx import to_onnx, usage


def write_graph(
    estimator: Any, path: Path, confidence_level: float, model_file: Path
) -> tuple[str, list[str]]:
    """Write the graph of a fitted estimator; how to call it, and the names of its outputs."""
    graph = to_onnx(estimator, confidence_level=confidence_level)
    with atomic_write(path) as temporary:
        temporary.write_bytes(graph.SerializeToString())
    return usage(graph, path, model_file), [value.name for value in graph.graph.output]
