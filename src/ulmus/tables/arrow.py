"""Blocks of rows from Parquet, CSV, Feather and Arrow files, larger than memory or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.tables.formats import file_format


@dataclass(frozen=True)
class NamedArray:
    """An array (n, d) of numbers with the names of its columns."""

    values: np.ndarray
    columns: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.values, dtype=dtype)


@dataclass(frozen=True)
class ArrowBlocks:
    """Blocks of rows read from files by pyarrow; iterable as often as needed."""

    dataset: Any
    target: tuple[str, ...]
    columns: tuple[str, ...]
    sample_weight: str | None
    batch_rows: int
    one_output: bool

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        extra = () if self.sample_weight is None else (self.sample_weight,)
        names = [*self.columns, *self.target, *extra]
        for batch in self.dataset.to_batches(columns=names, batch_size=self.batch_rows):
            y = _matrix(batch, self.target)
            X = self._inputs(batch)
            weight = [_matrix(batch, extra)[:, 0]] if extra else []
            yield (X, y[:, 0] if self.one_output else y, *weight)

    def _inputs(self, batch: Any) -> Any:
        """A matrix if all inputs are numbers, else a data frame."""
        if all(_is_number(batch.schema.field(name).type) for name in self.columns):
            return NamedArray(_matrix(batch, self.columns), self.columns)
        return batch.select(list(self.columns)).replace_schema_metadata().to_pandas()


def _is_number(dtype: Any) -> bool:
    import pyarrow.types as types

    number = types.is_integer(dtype) or types.is_floating(dtype) or types.is_boolean(dtype)
    return bool(number or types.is_decimal(dtype) or types.is_null(dtype))


def _matrix(batch: Any, names: Sequence[str]) -> np.ndarray:
    columns = [np.asarray(batch.column(name).to_numpy(zero_copy_only=False)) for name in names]
    return np.stack(columns, axis=1).astype(float)


def from_arrow(
    path: Any,
    *,
    target: str | Sequence[str],
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    format: str | None = None,
    batch_rows: int = 65_536,
) -> ArrowBlocks:
    r"""Blocks of a Parquet, CSV, Feather or Arrow data set, larger than memory or not.

    Parameters
    ----------
    path : path-like or list of them
        A file (CSV may be compressed, as ``table.csv.gz``), a folder of files of one format,
        or several files.
    target : str or list of str
        Column or columns to predict.
    columns : list of str, default=None
        Input columns, of numbers, categories or dates; by default all that are not target or
        weight.
    sample_weight : str, default=None
        Column of row weights.
    format : str, default=None
        ``"parquet"``, ``"csv"``, ``"feather"`` or ``"arrow"``; by default from the file's ending.
    batch_rows : int, default=65536
        Largest number of rows in a block.

    Returns
    -------
    blocks : ArrowBlocks
        The argument of ``fit_blocks``. ``predict`` checks the names of the columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ulmus.tables import from_arrow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "table.csv"
    ...     _ = file.write_text("x,y\n1,2\n2,3\n")
    ...     from_arrow(file, target="y").columns
    ('x',)
    """
    try:
        import pyarrow.dataset as arrow
        import pyarrow.lib as arrow_errors
    except ImportError as error:
        raise ImportError("from_arrow requires pyarrow; install ulmus[cli] or pyarrow.") from error
    format = _format(path) if format is None else format
    try:
        dataset = arrow.dataset(path, format=format)
    except (arrow_errors.ArrowInvalid, arrow_errors.ArrowTypeError) as error:
        raise ValueError(f"{path} cannot be read as {format}: {error}") from error
    targets = (target,) if isinstance(target, str) else tuple(target)
    if columns is None:
        used = {*targets, sample_weight}
        columns = [name for name in dataset.schema.names if name not in used]
    inputs = tuple(columns)
    _require_columns(dataset.schema, inputs, targets, sample_weight)
    return ArrowBlocks(dataset, targets, inputs, sample_weight, batch_rows, isinstance(target, str))


def _format(path: Any) -> str:
    """Format of a file, or of the first file in a folder."""
    first = Path(path[0] if isinstance(path, (list, tuple)) else path)
    if first.is_dir():
        files = sorted(f for f in first.rglob("*") if f.is_file() and f.name[0] not in "._")
        if not files:
            raise ValueError(f"the folder {str(first)!r} contains no files; give one with data.")
        first = files[0]
    return file_format(first)


def _require_columns(
    schema: Any, inputs: tuple[str, ...], targets: tuple[str, ...], weight: str | None
) -> None:
    names = (*inputs, *targets, *([] if weight is None else [weight]))
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise ValueError(f"columns {missing!r} are not in the data set; it has {schema.names!r}.")
    if not inputs:
        raise ValueError("columns names no input; give at least one, or None for all.")
    if not targets:
        raise ValueError("target names no column; give the one to predict.")
    both = [name for name in inputs if name in {*targets, weight}]
    if both:
        text = f"columns {both!r} are inputs and also target or sample_weight"
        raise ValueError(f"{text}; remove them from columns.")
    for name in names[len(inputs) :]:
        dtype = schema.field(name).type
        if not _is_number(dtype):
            text = f"column {name!r} contains {dtype}, not numbers"
            raise ValueError(f"{text}; name another target or weight, or convert it first.")
