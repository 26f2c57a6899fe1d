"""A safetensors file taken apart and put together again without the library, to forge files."""

import hashlib
import json
import math

import numpy as np

NAMES = {"F64": "float64", "F32": "float32", "I64": "int64", "I32": "int32", "BOOL": "bool"}
SIZES = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "BOOL": 1}


def taken_apart(data):
    """The document as text, and (dtype, shape, bytes) of every array by name."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    text = header.pop("__metadata__")["ulmus"]
    return text, {
        name: (info["dtype"], info["shape"], body[slice(*info["data_offsets"])])
        for name, info in header.items()
    }


def joined(text, tensors, metadata=None):
    """The bytes of a file; ``tensors`` is a dictionary, or pairs to give a name twice."""
    entries, body = [], b""
    for name, (dtype, shape, data) in tensors.items() if hasattr(tensors, "items") else tensors:
        offsets = [len(body), len(body) + len(data)]
        info = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        entries.append(f"{json.dumps(name)}:{json.dumps(info)}")
        body += data
    metadata = json.dumps({"ulmus": text} if metadata is None else metadata)
    header = "{" + ",".join([f'"__metadata__":{metadata}', *entries]) + "}"
    return file_of(header.encode(), body)


def file_of(header, body=b""):
    return len(header).to_bytes(8, "little") + header + body


def sealed(text, tensors, change=lambda document: None):
    """The bytes of a file with a changed document and checksums that fit."""
    document = json.loads(text)
    change(document)
    document.pop("sha256", None)
    sums = document.get("arrays")
    for name in sums if isinstance(sums, dict) else ():
        if name in tensors:
            sums[name] = digest(*tensors[name])
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    document["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    return joined(json.dumps(document), tensors)


def digest(dtype, shape, data):
    """SHA-256 of an array as a model file lists it."""
    start = f"{NAMES.get(dtype, dtype)}{tuple(shape)}"
    return hashlib.sha256(start.encode() + data).hexdigest()


def entry(array):
    """An array as an entry of ``tensors``."""
    dtype = next(key for key, name in NAMES.items() if name == array.dtype.name)
    return dtype, list(array.shape), array.tobytes()


def array_of(dtype, shape, data):
    """The array of an entry."""
    assert len(data) == SIZES[dtype] * math.prod(shape)
    return np.frombuffer(data, NAMES[dtype]).reshape(shape).copy()
