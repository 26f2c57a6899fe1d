"""Fitted models that compute from tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from ulmus.cli.steps.columns import ModelColumns
from ulmus.model_file import load
from ulmus.pipelines import inference
from ulmus.tables import TableEncoder


@dataclass(frozen=True)
class TableModel:
    """A model and the columns it requires."""

    pipeline: Pipeline  # an encoder of tables, and a fitted estimator
    columns: ModelColumns

    @property
    def inference(self) -> Any:
        """All methods of the estimator, for tables."""
        return inference(self.pipeline)

    @property
    def estimator(self) -> Any:
        """The fitted estimator behind the encoder."""
        return self.pipeline.steps[-1][1]


def load_model(path: Path, columns: ModelColumns) -> TableModel:
    """The model of a file, whose columns were read before."""
    model = load(path)
    estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    estimator.set_params(n_jobs=-1)
    encoder = TableEncoder.from_schema(columns.schema)
    return TableModel(Pipeline([("columns", encoder), ("model", estimator)]), columns)
