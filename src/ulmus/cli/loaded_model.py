"""A model file, ready to be asked about tables in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from ulmus.cli.console import Console
from ulmus.model_file.load import load, model_document
from ulmus.pipelines import inference
from ulmus.tables import Column, Schema, TableEncoder
from ulmus.tables.cells import CATEGORY, NUMBER
from ulmus.tables.files import Reading, TableFile, opened


@dataclass(frozen=True)
class LoadedModel:
    """A model, the columns it needs, and the name of what it predicts.

    Parameters
    ----------
    model : Pipeline
        Columns, and a fitted estimator.
    schema : Schema
        The columns.
    target : str or None
        What is predicted, if the file says it.
    """

    model: Pipeline
    schema: Schema
    target: str | None

    @property
    def ask(self) -> Any:
        """Everything that can be asked of the model."""
        return inference(self.model)

    @property
    def estimator(self) -> Any:
        """The fitted estimator behind the columns."""
        return self.model.steps[-1][1]

    def table(self, path: Path, reading: Reading, console: Console) -> TableFile:
        """A table in a file that is read as this model needs it."""
        table, notes = opened(path, reading)
        for text in notes:
            console.note(text)
        texts = [column.name for column in self.schema.columns if column.kind == CATEGORY]
        return table.with_texts(texts)


def loaded_model(path: Path, missing: str | None = None) -> LoadedModel:
    """The model of a file, with another rule about missing values if one is given."""
    model = load(path)
    schema = _schema(model, path).with_missing(missing)
    estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    pipe = Pipeline([("columns", TableEncoder.of(schema)), ("model", estimator)])
    return LoadedModel(pipe, schema, model_document(path).get("target"))


def _schema(model: Any, path: Path) -> Schema:
    if isinstance(model, Pipeline):
        return model.steps[0][1].schema_
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{path} was fitted to an array without column names, so that columns of a table "
            "cannot be told; fit it to a data frame, or with `ulmus fit`."
        )
    return Schema(tuple(Column(str(name), NUMBER) for name in names))
