"""Fitted models that compute from tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulmus.cli.steps.columns import ModelColumns
from ulmus.model_file import load


@dataclass(frozen=True)
class TableModel:
    """A model and the columns it requires."""

    estimator: Any  # a fitted estimator, which accepts tables of these columns
    columns: ModelColumns


def load_model(path: Path, columns: ModelColumns) -> TableModel:
    """The model of a file, whose columns were read before."""
    model = load(path)
    model.set_params(n_jobs=-1)
    if "columns_" in vars(model):
        model.columns_ = columns.schema
    return TableModel(model, columns)
