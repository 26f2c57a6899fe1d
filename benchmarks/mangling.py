"""Ways to mangle the bytes of tables and model files, as disks, networks and editors do."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import zipfile

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


def _members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def _sealed(members):
    """Members whose checksums are right again."""
    document = json.loads(members["model.json"])
    if isinstance(document, dict):
        document.pop("sha256", None)
        sums = document.get("arrays")
        for name in sums if isinstance(sums, dict) else ():
            if f"{name}.npy" in members:
                sums[name] = hashlib.sha256(members[f"{name}.npy"]).hexdigest()
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return {**members, "model.json": json.dumps(document).encode()}


def _array_names(members):
    return [name for name in members if name.endswith(".npy")]


def members_swapped(rng, data):
    members = _members(data)
    a, b = rng.choice(_array_names(members), 2, replace=False)
    return _zipped({**members, a: members[b], b: members[a]})


def member_lost(rng, data):
    members = _members(data)
    del members[rng.choice(list(members))]
    return _zipped(members)


def _edited(rng, members):
    """Members of which one value of the document, anywhere in it, is another or lost."""
    document = json.loads(members["model.json"])
    parent, key = document, rng.choice(list(document))
    while isinstance(parent[key], (dict, list)) and parent[key] and rng.random() < 0.8:
        parent = parent[key]
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        key = keys[rng.integers(len(keys))]
    if rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    return {**members, "model.json": json.dumps(document).encode()}


def document_edited(rng, data):
    return _zipped(_edited(rng, _members(data)))


def document_edited_and_sealed(rng, data):
    return _zipped(_sealed(_edited(rng, _members(data))))


def _with_other_header(rng, members):
    """Members of which one array has another header of the same length."""
    name = rng.choice(_array_names(members))
    changes = (
        (rb"'<f8'", b"'<i8'"),
        (rb"'<f8'", b"'>f8'"),
        (rb"'[<|]..'", b"'|O8'"),
        (rb"False", b"True "),
        (rb"\((\d)", lambda found: b"(%d" % ((int(found[1]) + 1) % 10)),
        (rb"\(", b"["),
        (rb"'shape'", b"'share'"),
        (rb"\x93NUMPY\x01", b"\x93NUMPY\x02"),
    )
    pattern, replacement = changes[rng.integers(len(changes))]
    return {**members, name: re.sub(pattern, replacement, members[name], count=1)}


def array_header_edited(rng, data):
    return _zipped(_with_other_header(rng, _members(data)))


def array_header_edited_and_sealed(rng, data):
    return _zipped(_sealed(_with_other_header(rng, _members(data))))


def array_changed(rng, data):
    members = _members(data)
    name = rng.choice(_array_names(members))
    return _zipped({**members, name: bits_flipped(rng, members[name])})


MODEL = (
    members_swapped,
    member_lost,
    document_edited,
    document_edited_and_sealed,
    array_header_edited,
    array_header_edited_and_sealed,
    array_changed,
)
WAYS = {
    "csv": (*BYTES, *TEXT),
    "csv.gz": (*BYTES, *map(_packed, TEXT)),
    "parquet": (*BYTES, parquet_names_swapped),
    "arrow": (*BYTES, arrow_names_swapped),
    "ulmus": (*BYTES, *MODEL),
}
# Who writes the checksums too can change a model; nothing else can.
SEALED = (document_edited_and_sealed, array_header_edited_and_sealed)
