"""Ways to mangle the bytes of tables and model files, as disks, networks and editors do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

ODD_CELLS = ("", "NaN", "inf", "1e999", '"', "-", "tomorrow", "9" * 400, "\0", "1_000", "É", "0x1F")
ODD_VALUES = (None, True, -1, 0, 0.5, 10**9, 1e300, "x", [], {}, [1], "a" * 5000)

# ---------------------------------------------------------------- bytes


def _stretch(rng, size, longest=200):
    start = int(rng.integers(size))
    return start, min(size, start + int(rng.integers(1, longest)))


def bits_flipped(rng, data):
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


def ends_changed(rng, data):
    """Other bytes where files keep their headers and tables of contents."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(-min(300, len(data)), min(100, len(data))))
        changed[place] = rng.integers(256)
    return bytes(changed)


def truncated(rng, data):
    return data[: rng.integers(len(data))]


def zeroed(rng, data):
    start, end = _stretch(rng, len(data))
    return data[:start] + bytes(end - start) + data[end:]


def stretch_lost(rng, data):
    start, end = _stretch(rng, len(data))
    return data[:start] + data[end:]


def stretch_doubled(rng, data):
    start, end = _stretch(rng, len(data))
    return data[:end] + data[start:]


BYTES = (bits_flipped, ends_changed, truncated, zeroed, stretch_lost, stretch_doubled)

# ---------------------------------------------------------------- text


def other_encoding(rng, data):
    text = data.decode().replace("north", "nörd")
    return text.encode(rng.choice(["latin-1", "utf-16", "utf-32", "cp500", "utf-8-sig"]))


def line_doubled(rng, data):
    lines = data.splitlines(keepends=True)
    place = int(rng.integers(len(lines)))
    return b"".join([*lines[: place + 1], *lines[place:]])


def line_cut(rng, data):
    lines = data.splitlines(keepends=True)
    place = int(rng.integers(len(lines)))
    lines[place] = lines[place][: rng.integers(len(lines[place]))] + b"\n"
    return b"".join(lines)


def names_swapped(rng, data):
    header, rest = data.split(b"\n", 1)
    names = header.split(b",")
    return b",".join(names[j] for j in rng.permutation(len(names))) + b"\n" + rest


def cells_changed(rng, data):
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(rng.integers(1, 4)):
        row = rows[rng.integers(len(rows))]
        row[rng.integers(len(row))] = str(rng.choice(ODD_CELLS))
    return "\n".join(map(",".join, rows)).encode()


TEXT = (other_encoding, line_doubled, line_cut, names_swapped, cells_changed)


def _packed(way):
    def packed(rng, data):
        return gzip.compress(way(rng, gzip.decompress(data)), mtime=0)

    packed.__name__ = f"{way.__name__}, packed again"
    return packed


# ---------------------------------------------------------------- Arrow's tables


def _renamed(rng, table):
    return table.rename_columns([table.column_names[j] for j in rng.permutation(table.num_columns)])


def parquet_names_swapped(rng, data):
    sink = io.BytesIO()
    pa.parquet.write_table(_renamed(rng, pa.parquet.read_table(io.BytesIO(data))), sink)
    return sink.getvalue()


def arrow_names_swapped(rng, data):
    sink = io.BytesIO()
    pa.feather.write_feather(_renamed(rng, pa.feather.read_table(io.BytesIO(data))), sink)
    return sink.getvalue()


# ---------------------------------------------------------------- model files

ITEM_SIZES = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "BOOL": 1, "F16": 2, "C64": 8}
NAMES = {"F64": "float64", "F32": "float32", "I64": "int64", "I32": "int32", "BOOL": "bool"}


def _taken_apart(data):
    """The document, and (dtype, shape, bytes) of every array by name."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    document = json.loads(header.pop("__metadata__")["ulmus"])
    return document, {
        name: (info["dtype"], info["shape"], body[slice(*info["data_offsets"])])
        for name, info in header.items()
    }


def _joined(document, tensors):
    """The bytes of a file."""
    header, body = {"__metadata__": {"ulmus": json.dumps(document)}}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(body), len(body) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        body += content
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def _sealed(document, tensors):
    """The document with checksums that are right again."""
    if not isinstance(document, dict):
        return document
    document = {key: value for key, value in document.items() if key != "sha256"}
    if isinstance(document.get("arrays"), dict):
        sums = {name: _digest(*tensors[name]) for name in document["arrays"] if name in tensors}
        document["arrays"] = {**document["arrays"], **sums}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return {**document, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _digest(dtype, shape, content):
    start = f"{NAMES.get(dtype, dtype)}{tuple(shape)}"
    return hashlib.sha256(start.encode() + content).hexdigest()


def arrays_swapped(rng, data):
    document, tensors = _taken_apart(data)
    a, b = rng.choice(list(tensors), 2, replace=False)
    return _joined(document, {**tensors, a: tensors[b], b: tensors[a]})


def array_lost(rng, data):
    document, tensors = _taken_apart(data)
    del tensors[rng.choice(list(tensors))]
    return _joined(document, tensors)


def _edited(rng, document):
    """The document with one value, anywhere in it, replaced or lost."""
    parent, key = document, rng.choice(list(document))
    while isinstance(parent[key], (dict, list)) and parent[key] and rng.random() < 0.8:
        parent = parent[key]
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        key = keys[rng.integers(len(keys))]
    if rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    return document


def document_edited(rng, data):
    document, tensors = _taken_apart(data)
    return _joined(_edited(rng, document), tensors)


def document_edited_and_sealed(rng, data):
    document, tensors = _taken_apart(data)
    return _joined(_sealed(_edited(rng, document), tensors), tensors)


def header_edited(rng, data):
    """Another byte in the header, which is text."""
    place = 8 + int(rng.integers(int.from_bytes(data[:8], "little")))
    return data[:place] + bytes([rng.integers(32, 127)]) + data[place + 1 :]


def _with_other_entry(rng, tensors):
    """Arrays of which one has another dtype or shape, often of the same size."""
    name = rng.choice(list(tensors))
    dtype, shape, content = tensors[name]
    dtype = dtype if rng.random() < 0.4 else str(rng.choice(list(ITEM_SIZES)))
    shape = (shape[::-1], [len(content) // ITEM_SIZES[dtype]], [*shape, 1])[rng.integers(3)]
    return {**tensors, name: (dtype, shape, content)}


def entry_edited(rng, data):
    document, tensors = _taken_apart(data)
    return _joined(document, _with_other_entry(rng, tensors))


def entry_edited_and_sealed(rng, data):
    document, tensors = _taken_apart(data)
    tensors = _with_other_entry(rng, tensors)
    return _joined(_sealed(document, tensors), tensors)


def array_changed(rng, data):
    document, tensors = _taken_apart(data)
    name = rng.choice([name for name, part in tensors.items() if part[2]])
    dtype, shape, content = tensors[name]
    return _joined(document, {**tensors, name: (dtype, shape, bits_flipped(rng, content))})


MODEL = (
    arrays_swapped,
    array_lost,
    document_edited,
    document_edited_and_sealed,
    header_edited,
    entry_edited,
    entry_edited_and_sealed,
    array_changed,
)
WAYS = {
    "csv": (*BYTES, *TEXT),
    "csv.gz": (*BYTES, *map(_packed, TEXT)),
    "parquet": (*BYTES, parquet_names_swapped),
    "arrow": (*BYTES, arrow_names_swapped),
    "ulmus": (*BYTES, *MODEL),
}
# Whoever writes the checksums too can change a model; nothing else can.
SEALED = (document_edited_and_sealed, entry_edited_and_sealed)
