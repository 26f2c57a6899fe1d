"""Tables: reading files and blocks of rows, checking them, and encoding columns as numbers.

- ``columns`` has one class per column type. ``schema`` is what a model keeps of all its columns,
  ``schema_inference`` derives it from a table, and ``training_encoding`` adds what is learned from
  the training rows: ``target_statistics`` and ``level_effects`` of categories, and the
  ``imputation`` of missing numbers. ``encoder`` is the transformer of scikit-learn, ``kinds``
  decides which tables need a schema, and ``new_rows`` encodes rows to predict.
- ``cells``, ``dates`` and ``missing`` parse single values; ``frames`` finds columns by name.
- ``checks`` refuses inputs, outputs and weights that cannot be fitted; ``blocks`` does so for
  tables in blocks of rows, and is their source for a fit.
- ``formats``, ``csv_dialect``, ``files``, ``writers`` and ``arrow`` read and write files.

What concerns a table without a model may enter. Public names are imported with their first use:
``encoder`` loads scikit-learn, which reading a file does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulmus.lazy import lazy_package

if TYPE_CHECKING:
    from ulmus.tables.arrow import from_arrow
    from ulmus.tables.columns import (
        BooleanColumn,
        CategoryColumn,
        Column,
        DateColumn,
        DurationColumn,
        NumberColumn,
        OrderedColumn,
        TargetEncodedColumn,
        TimeColumn,
    )
    from ulmus.tables.encoder import TableEncoder
    from ulmus.tables.schema import Schema
    from ulmus.tables.schema_inference import infer_schema

__all__ = [
    "BooleanColumn",
    "CategoryColumn",
    "Column",
    "DateColumn",
    "DurationColumn",
    "NumberColumn",
    "OrderedColumn",
    "Schema",
    "TableEncoder",
    "TargetEncodedColumn",
    "TimeColumn",
    "from_arrow",
    "infer_schema",
]

__getattr__, __dir__ = lazy_package(
    __name__,
    {
        "BooleanColumn": "columns",
        "CategoryColumn": "columns",
        "Column": "columns",
        "DateColumn": "columns",
        "DurationColumn": "columns",
        "NumberColumn": "columns",
        "OrderedColumn": "columns",
        "TargetEncodedColumn": "columns",
        "TimeColumn": "columns",
        "Schema": "schema",
        "TableEncoder": "encoder",
        "from_arrow": "arrow",
        "infer_schema": "schema_inference",
    },
)
