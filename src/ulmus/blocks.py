"""Tables that come in blocks of rows: checking, reading and streaming them.

A table in blocks is anything that can be iterated more than once and yields ``(X, y)`` or
``(X, y, sample_weight)``: a list of arrays, a function that returns a fresh iterator, or
:func:`from_arrow` for files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, is_array_api_obj

from ulmus.core.backend import Array, like, row_blocks, taken_rows, to_numpy
from ulmus.core.moments import Block
from ulmus.core.rows import RowPass, reduced


@dataclass(frozen=True)
class CheckedBlock:
    """One block as the user gave it, checked: X (n, d), y (K, n), weights (n,) or None."""

    X: Any
    y: Any
    weight: np.ndarray | None
    one_output: bool
    names: tuple[str, ...] | None


def reader(blocks: Any) -> Callable[[], Iterator[Any]]:
    """Return a function that starts reading the blocks from the beginning."""
    if callable(blocks):
        return lambda: iter(blocks())
    if iter(blocks) is blocks:
        raise ValueError(
            "blocks is an iterator, which can be read only once, and a fit reads it several "
            "times; give a list, or a function that returns a fresh iterator."
        )
    return lambda: iter(blocks)


def checked_blocks(
    read: Callable[[], Iterator[Any]], n_features: int | None = None, n_outputs: int | None = None
) -> Iterator[CheckedBlock]:
    """Blocks with their shapes and values checked; empty ones are passed over.

    An error names the block and, where it can, the row.
    """
    for index, raw in enumerate(read()):
        block = checked_block(raw, f"block {index}")
        if block.X.shape[0] == 0:
            continue
        for what, got, wanted in (
            ("features", block.X.shape[1], n_features),
            ("outputs", block.y.shape[0], n_outputs),
        ):
            if wanted is not None and got != wanted:
                raise ValueError(
                    f"block {index} has {got} {what}, the blocks before it have {wanted}; give "
                    "every block the same columns."
                )
        n_features, n_outputs = block.X.shape[1], block.y.shape[0]
        yield block


def checked_block(raw: Any, where: str) -> CheckedBlock:
    """One block, checked; ``where`` is what messages call it."""
    if not isinstance(raw, (tuple, list)) or len(raw) not in (2, 3):
        raise ValueError(f"{where} must be (X, y) or (X, y, sample_weight), got {type(raw)}.")
    X, y = raw[0], raw[1]
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    if scipy.sparse.issparse(X):
        X = X.tocsr()
    elif not _is_foreign(X):
        X = np.asarray(X)
        X = X if X.dtype.kind == "f" else X.astype(float)
    if X.ndim != 2:
        raise ValueError(f"X of {where} must have rows and columns, got {X.ndim} axes.")
    outputs = y if _is_foreign(y) else np.asarray(y, dtype=float)
    weight = None if len(raw) == 2 or raw[2] is None else to_numpy(raw[2]).astype(float)
    if outputs.shape[0] != X.shape[0] or (weight is not None and weight.shape != (X.shape[0],)):
        raise ValueError(
            f"{where} has {X.shape[0]} rows of X, {outputs.shape[0]} of y"
            + ("" if weight is None else f" and sample_weight of shape {weight.shape}")
            + "; give one of each per row."
        )
    _require_finite(X, "X", where)
    _require_finite(outputs, "y", where)
    if weight is not None:
        _require_finite(weight, "sample_weight", where)
        if np.any(weight < 0):
            row = int(np.argmax(weight < 0))
            raise ValueError(f"sample_weight of {where} is negative in row {row}.")
    columns = outputs[None, :] if outputs.ndim == 1 else outputs.T
    return CheckedBlock(X, columns, weight, outputs.ndim == 1, names)


def _is_foreign(values: Any) -> bool:
    return is_array_api_obj(values) and not isinstance(values, np.ndarray)


def _require_finite(values: Any, name: str, where: str) -> None:
    entries = values.data if scipy.sparse.issparse(values) else values
    xp = array_namespace(entries)
    finite = xp.isfinite(entries)
    if bool(xp.all(finite)):
        return
    bad = ~finite if finite.ndim == 1 else xp.any(~finite, axis=tuple(range(1, finite.ndim)))
    row = int(xp.argmax(xp.astype(bad, xp.int8)))
    if scipy.sparse.issparse(values):
        row = int(np.searchsorted(values.indptr, row, side="right")) - 1
    raise ValueError(
        f"{name} of {where} holds NaN or infinity, first in row {row}; drop or fill those rows."
    )


def cut_block(block: CheckedBlock, features: int, reference: Array) -> Iterator[Block]:
    """The rows of a block in pieces of a good size to work on."""
    weight = None if block.weight is None else np.sqrt(block.weight)
    for rows in row_blocks(block.X.shape[0], features, reference):
        yield Block(
            taken_rows(block.X, rows),
            like(block.y[:, rows], reference),
            None if weight is None else like(weight[rows], reference),
        )


@dataclass(frozen=True)
class BlockSource:
    """A table in blocks as a source for the passes of a fit.

    Parameters
    ----------
    read : callable
        Starts reading from the beginning.
    n_features, n_outputs : int
        What every block must have.
    features : int
        Hidden features of a row, which decide how many rows are worked on at a time.
    reference : array
        An array of the kind to compute with.
    n_threads : int
        Threads that share the blocks of a pass.
    progress : callable
        Wraps the blocks of a pass to show how far it is.
    """

    read: Callable[[], Iterator[Any]]
    n_features: int
    n_outputs: int
    features: int
    reference: Array
    n_threads: int
    progress: Callable[[Iterable[Any], str], Iterable[Any]]

    def blocks(self, title: str) -> Iterator[Block]:
        """All rows, in blocks of a good size."""
        given = checked_blocks(self.read, self.n_features, self.n_outputs)
        for block in self.progress(given, title):
            yield from cut_block(block, self.features, self.reference)

    def head(self) -> Iterator[Block]:
        """The rows from the beginning."""
        return self.blocks("sample")

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over all blocks."""
        title = getattr(row_pass, "title", "reading")
        return reduced(row_pass, self.blocks(title), self.n_threads)


def joined_blocks(blocks: Iterable[Block], n_rows: int) -> Block:
    """The first rows of positive weight as one block: ``n_rows`` of them, if there are."""
    taken: list[Block] = []
    for block in map(_used_rows, blocks):
        taken.append(block)
        if sum(b.y.shape[1] for b in taken) >= n_rows:
            break
    taken = [block for block in taken if block.y.shape[1] > 0]
    if not taken:
        raise ValueError(
            "blocks gave no rows when read again; a function must return a fresh iterator each "
            "time it is called."
        )
    xp = array_namespace(taken[0].y)
    X = [block.X for block in taken]
    sparse = scipy.sparse.issparse(X[0])
    rows = scipy.sparse.vstack(X).tocsr() if sparse else array_namespace(X[0]).concat(X)
    weight = None
    if any(block.root_weight is not None for block in taken):
        weight = xp.concat(
            [xp.ones_like(b.y[0, :]) if b.root_weight is None else b.root_weight for b in taken]
        )
    return Block(rows, xp.concat([block.y for block in taken], axis=1), weight)


def _used_rows(block: Block) -> Block:
    if block.root_weight is None or bool(np.all(to_numpy(block.root_weight) > 0)):
        return block
    used = np.flatnonzero(to_numpy(block.root_weight))
    xp = array_namespace(block.y)
    index = xp.asarray(used, device=block.y.device)
    return Block(
        taken_rows(block.X, used),
        xp.take(block.y, index, axis=1),
        xp.take(block.root_weight, index),
    )


def silent(blocks: Iterable[Any], title: str) -> Iterable[Any]:
    """Show nothing."""
    return blocks


def progress_bar(blocks: Iterable[Any], title: str) -> Iterator[Any]:
    """Show how many blocks of a pass are done; needs rich for a bar, else prints its name."""
    try:
        from rich.progress import track
    except ImportError:
        print(f"{title} ...")
        yield from blocks
    else:
        yield from track(blocks, description=title)


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
        wanted = [*self.columns, *self.target, *extra]
        for batch in self.dataset.to_batches(columns=wanted, batch_size=self.batch_rows):
            X = _float_columns(batch, self.columns)
            y = _float_columns(batch, self.target)
            y = y[:, 0] if self.one_output else y
            yield (X, y, *(_float_columns(batch, extra)[:, 0] for _ in extra))


def _float_columns(batch: Any, names: Sequence[str]) -> np.ndarray:
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
        A file, a folder of files, or several files, as ``pyarrow.dataset.dataset`` takes them.
    target : str or list of str
        Column or columns to predict.
    columns : list of str, default=None
        Input columns; by default all that are not target or weight.
    sample_weight : str, default=None
        Column of row weights.
    format : str, default=None
        ``"parquet"``, ``"csv"``, ``"feather"`` or ``"arrow"``; by default from the file's ending.
    batch_rows : int, default=65536
        Largest number of rows in a block.

    Returns
    -------
    blocks : ArrowBlocks
        To be given to ``fit_blocks``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.blocks import from_arrow
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "table.csv"
    >>> lines = [f"{i / 100},{(i / 100) ** 2}" for i in range(100)]
    >>> _ = file.write_text("x,y\n" + "\n".join(lines))
    >>> blocks = from_arrow(file, target="y", batch_rows=30)
    >>> model = ELMEnsembleRegressor(3, 10, random_state=0).fit_blocks(blocks)
    >>> bool(abs(model.predict([[0.5]])[0] - 0.25) < 0.01)
    True
    >>> folder.cleanup()
    """
    try:
        import pyarrow.dataset as arrow
    except ImportError as error:
        raise ImportError(
            "from_arrow reads files with pyarrow, which is not installed; install ulmus[cli] or "
            "pyarrow."
        ) from error
    first = path[0] if isinstance(path, (list, tuple)) else path
    ending = str(first).rsplit(".", 1)[-1].lower()
    known = {"parquet": "parquet", "csv": "csv", "feather": "feather", "arrow": "arrow"}
    dataset = arrow.dataset(path, format=format or known.get(ending, "parquet"))
    targets = (target,) if isinstance(target, str) else tuple(target)
    used = {*targets, sample_weight}
    names = [name for name in dataset.schema.names if name not in used]
    inputs = tuple(names if columns is None else columns)
    missing = [
        c
        for c in (*inputs, *targets, *filter(None, [sample_weight]))
        if c not in dataset.schema.names
    ]
    if missing:
        raise ValueError(
            f"columns {missing!r} are not in the data set; it has {dataset.schema.names!r}."
        )
    return ArrowBlocks(dataset, targets, inputs, sample_weight, batch_rows, isinstance(target, str))
