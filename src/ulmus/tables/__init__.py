"""The columns of a table and how they become numbers: what a model remembers of its table.

Numbers stay as they are, truth values become 0 and 1, dates become days, and each category becomes
a column of zeros and ones. Columns that say nothing are left out, with a note.

``cells`` reads the cells of one column, ``schema`` is what a model keeps of all columns,
``learning`` finds it in a table, and ``encoder`` is the transformer of scikit-learn.
"""

from ulmus.tables.encoder import TableEncoder
from ulmus.tables.learning import learned_schema
from ulmus.tables.schema import Column, Schema

__all__ = ["Column", "Schema", "TableEncoder", "learned_schema"]
