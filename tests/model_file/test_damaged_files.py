"""Files that are no models, or no longer: each is refused in one sentence, and none can do harm."""

import gzip
import hashlib
import io
import json
import pickle
import re
import struct
import zipfile
import zlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from plain import plain_ensemble

import ulmus
from ulmus.core.data.source import RowBlocks
from ulmus.exceptions import ModelFileError
from ulmus.model_file import archives
from ulmus.model_file.archives import DOCUMENT, read_archive, write_archive
from ulmus.model_file.field_types import is_kind, made
from ulmus.model_file.npy import npy_parts, read_npy

W = "fit.ensemble.layer.W.npy"


@pytest.fixture(scope="module")
def table(make_table):
    return make_table(40)


@pytest.fixture(scope="module")
def members(table, tmp_path_factory):
    """The members of a small model file by name, and what its model predicts."""
    model = plain_ensemble(2, 5, random_state=0, weight_scale=2.0).fit(table.X, table.y)
    path = tmp_path_factory.mktemp("model") / "model.ulmus"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return parts, path.read_bytes(), model.predict_interval(table.X_new, method="jackknife+")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ulmus"


def zipped(parts, kind=zipfile.ZIP_DEFLATED):
    """The bytes of a zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in parts if isinstance(parts, list) else parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=kind)
    return file.getvalue()


def sealed(parts, change=lambda document: None):
    """Members with a changed document and checksums that fit."""
    document = json.loads(parts[DOCUMENT])
    change(document)
    sums = document.get("arrays")
    for name in sums if isinstance(sums, dict) else ():
        if f"{name}.npy" in parts:
            sums[name] = hashlib.sha256(parts[f"{name}.npy"]).hexdigest()
    document.pop("sha256", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return {**parts, DOCUMENT: json.dumps(document).encode()}


def refusal(path, data):
    """The sentence that a file of these bytes is refused with."""
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as caught:
        ulmus.load(path)
    return checked_sentence(caught.value, path)


def checked_sentence(error, path):
    sentence = str(error)
    assert isinstance(error, ValueError)
    assert sentence.startswith(repr(str(path)))
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence.removeprefix(repr(str(path)))


# ---------------------------------------------------------------- other files


def test_the_file_of_these_tests_is_a_model(members, table, path):
    parts, _, expected = members
    path.write_bytes(zipped(sealed(parts)))
    intervals = ulmus.load(path).predict_interval(table.X_new, method="jackknife+")
    assert_array_equal(intervals, expected)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it is empty"),
        (b"x,y\n1,2\n", "it is no zip file"),
        (pickle.dumps({"a": 1}), "it is a pickle, which could run anything and is never loaded"),
        (b"\x89HDF\r\n\x1a\n" + bytes(50), "it is an HDF5 file"),
        (b"\x93NUMPY\x01\x00", "it is a NumPy array"),
        (b"PAR1" + bytes(40), "it is a Parquet file"),
        (gzip.compress(b"abc", mtime=0), "it is a gzip file"),
        (zlib.compress(pickle.dumps([1])), "perhaps of joblib"),
        (b"\x08\x0a\x12\x05skl2o", "perhaps an ONNX file"),
        (zipped({"data.pkl": b"123"}), "a zip file without model.json"),
        (zipped({DOCUMENT: b"[1, 2]"}), "it has no format"),
        (zipped({DOCUMENT: b'{"format": true}'}), "it has no format"),
    ],
)
def test_other_kinds_of_files(path, data, says):
    sentence = refusal(path, data)
    assert sentence.startswith(" is not a model file of ulmus: ")
    assert says in sentence


def test_no_file_at_all(tmp_path):
    for name, says in (("none", "does not exist"), ("", "is not a file")):
        with pytest.raises(ModelFileError, match=says) as caught:
            ulmus.load(tmp_path / name)
        checked_sentence(caught.value, tmp_path / name)
    with pytest.raises(TypeError):
        ulmus.load(None)


def test_a_file_that_must_not_be_read(path, monkeypatch):
    path.touch()

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(ModelFileError, match=r"cannot be read: Permission denied\."):
        ulmus.load(path)


# ---------------------------------------------------------------- documents


def test_a_newer_format_says_who_wrote_it(members, path):
    def newer(document):
        document["format"], document["ulmus"] = 2, "0.9.0"

    parts, _, _ = members
    assert refusal(path, zipped(sealed(parts, newer))) == (
        f" was written in format 2 by ulmus 0.9.0; this ulmus {ulmus.__version__} reads formats up "
        "to 1: upgrade ulmus."
    )
    # Its checksums may be made in another way, and its version may be anything.
    text = json.dumps({"format": 3, "ulmus": "\x1b[31m"}).encode()
    assert "in format 3 by a newer ulmus;" in refusal(path, zipped({DOCUMENT: text}))


def nested(depth):
    return b'{"format": 1, "a": ' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"{", "not a valid model file: Expecting property name"),
        (b'{"format": 1, "format": 1}', "a key twice"),
        (b'{"format": 1, "a": NaN}', "the number NaN"),
        (b'{"format": 1, "a": -Infinity}', "the number -Infinity"),
        (b'{"format": 1, "a": 1e999}', "the number 1e999"),
        (b'{"format": 1, "a": ' + b"9" * 5000 + b"}", "not a valid model file"),
        (nested(150), "nested too deeply"),
        (nested(200_000), "nested too deeply"),
        ('{"format": 1, "a": "ä"}'.encode(), "not a valid model file"),
        (b'{"format": 1}', "its document has been changed or damaged"),
    ],
    ids=range(10),
)
def test_documents_that_are_no_documents(members, path, text, says):
    assert says in refusal(path, zipped({**members[0], DOCUMENT: text}))


def test_a_document_that_was_edited(members, path):
    parts, _, _ = members
    text = parts[DOCUMENT].replace(b'"weight_scale": 2.0', b'"weight_scale": 3.0')
    assert text != parts[DOCUMENT]
    assert "its document has been changed or damaged" in refusal(
        path, zipped({**parts, DOCUMENT: text})
    )


def test_a_document_that_is_too_large(members, path, monkeypatch):
    monkeypatch.setattr(archives, "LARGEST_DOCUMENT", 1000)
    assert "its document has more than 1000 bytes" in refusal(path, members[1])


# ---------------------------------------------------------------- members


def test_members_that_are_not_in_the_document(members, path):
    parts, _, _ = members
    more = {**parts, "evil.py": b"print()"}
    assert "not those of its document: 'evil.py'" in refusal(path, zipped(more))
    fewer = {name: data for name, data in parts.items() if name != W}
    assert f"not those of its document: {W!r}" in refusal(path, zipped(fewer))
    folder = {**parts, "folder/": b""}
    assert "not those of its document: 'folder/'" in refusal(path, zipped(folder))
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zipped([*parts.items(), (W, parts[W])])
    assert "one of them twice" in refusal(path, twice)


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/b", "", ".hidden", "a\n"])
def test_names_that_lead_elsewhere(members, path, name):
    def change(document):
        document["arrays"][name] = "0"

    parts = sealed({**members[0], f"{name}.npy": b"x"}, change)
    assert "an array of a forbidden name" in refusal(path, zipped(parts))


def test_members_that_are_no_plain_data(members, path):
    parts, data, _ = members
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert "is not plain data" in refusal(path, zipped(parts, kind))
    # The flag of encryption in the central directory.
    place = data.index(b"PK\x01\x02") + 8
    assert "is not plain data" in refusal(path, data[:place] + b"\x01" + data[place + 1 :])


def test_a_bomb_is_refused_before_it_is_read(members, path):
    parts, _, _ = members
    header = npy_parts(np.zeros(1))[0].replace(b"(1,)", b"(1000000000000,)")
    small = zipped(sealed({**parts, W: header}))
    # The size of the member, in the central directory and at its head.
    infos = {info.filename: info for info in zipfile.ZipFile(io.BytesIO(small)).infolist()}
    old = struct.pack("<LL", infos[W].compress_size, infos[W].file_size)
    assert small.count(old) == 2
    bomb = small.replace(old, struct.pack("<LL", infos[W].compress_size, 2**32 - 100))
    assert "claims 4294967196 bytes in" in refusal(path, bomb)
    # A member that is as large as it says, but less than its header says.
    assert "has another size than its header says" in refusal(path, small)
    # Real zeros shrink by less than the factor that is refused.
    zeros = zipped({"a": bytes(10**7)})
    assert len(zeros) * archives.LARGEST_RATIO > 10**7


def test_members_that_overlap(members, path):
    """Two entries of the directory that point to the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a", bytes(5000))
        first = archive.infolist()[0]
        for k in range(20):
            copy = zipfile.ZipInfo(f"b{k}")
            for name in ("header_offset", "compress_size", "file_size", "CRC", "external_attr"):
                setattr(copy, name, getattr(first, name))
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
    assert "its members overlap" in refusal(path, file.getvalue())


def test_an_array_that_was_changed(members, path):
    parts, _, _ = members
    data = bytearray(parts[W])
    data[-3] ^= 1
    changed = refusal(path, zipped({**parts, W: bytes(data)}))
    assert f"its array {W.removesuffix('.npy')!r} has been changed or damaged" in changed


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b"'<f8'", b"'|O8'", "not of plain numbers"),
        (b"'<f8'", b"'>f8'", "not of plain numbers"),
        (b"'<f8'", b"'<m8'", "not of plain numbers"),
        (b"'<f8'", b"'<c8'", "not of plain numbers"),
        (b"'<f8'", b"['f']", "not of plain numbers"),
        (b"'<f8'", b"'<f4'", "another size"),
        (b"False", b"True ", "not of plain numbers"),
        (b"(2, 5, 3)", b"(2, 5,-3)", "has the shape"),
        (b"(2, 5, 3)", b"(2, 5, 4)", "another size"),
        (b"(2, 5, 3)", b"[2, 5, 3]", "has the shape"),
        (b"(2, 5, 3)", b"(2, 5,1.)", "has the shape"),
        (b"{'descr'", b"{'dexcr'", "cannot be read"),
        (b"{'descr'", b"('descr'", "cannot be read"),
        (b"NUMPY", b"NUMPI", "not in NumPy's format"),
        (b"NUMPY\x01", b"NUMPY\x09", "not in NumPy's format"),
        (b"NUMPY\x01\x00\x76\x00", b"NUMPY\x01\x00\xff\xff", "too long a header"),
    ],
)
def test_headers_of_arrays(members, path, old, new, says):
    parts, _, _ = members
    data = parts[W].replace(old, new)
    assert data != parts[W]
    assert says in refusal(path, zipped(sealed({**parts, W: data})))


def test_arrays_of_all_plain_kinds_come_back(tmp_path):
    kinds = "?bhilqBHILQfd"
    arrays = {f"a{ord(kind)}": np.arange(6).astype(kind).reshape(2, 3) for kind in kinds}
    arrays |= {
        "empty": np.empty((0, 3)),
        "scalar": np.array(2.5),
        "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        "big": np.arange(3, dtype=">f8"),
        "strided": np.arange(10)[::3],
        "special": np.array([np.nan, np.inf, -0.0]),
    }
    write_archive(tmp_path / "a", {"kind": "test"}, arrays)
    document, back = read_archive(tmp_path / "a")
    assert document["kind"] == "test"
    assert list(back) == list(arrays)
    for name, array in back.items():
        assert array.shape == arrays[name].shape
        assert array.dtype.isnative
        assert array.dtype == arrays[name].dtype.newbyteorder("=")
        assert array.tobytes() == arrays[name].astype(array.dtype).tobytes()


@pytest.mark.parametrize("bad", [np.array([object()]), np.array(["a"]), np.zeros(1, "c16")])
def test_other_arrays_are_not_written(tmp_path, bad):
    with pytest.raises(ValueError, match="cannot be stored; use plain numbers"):
        write_archive(tmp_path / "a", {}, {"a": bad})


def test_later_versions_of_the_header_are_read():
    file = io.BytesIO()
    np.lib.format.write_array(file, np.arange(4.0), version=(2, 0))
    size = file.tell()
    file.seek(0)
    assert_array_equal(read_npy(file, size, lambda _: None), np.arange(4.0))


# ---------------------------------------------------------------- descriptions


def replaced_value(*keys, value):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        if value is KeyError:
            del document[keys[-1]]
        else:
            document[keys[-1]] = value

    return change


def kind(name, **fields):
    """A kind of noise as a file describes it."""
    return {"class": name, "fields": fields}


NOISE = ("parameters", "noise")
LAYER = ("fit", "fields", "ensemble", "fields", "layer")
ROWS = ("fit", "fields", "rows", "fields")
FIRST = ("fit", "fields", "ensemble", "fields", "regressions", "tuple", 0, "fields")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (replaced_value("class", value="Popen"), "there is no class 'Popen'"),
        (replaced_value("class", value=["a"]), "not a valid model file"),
        (replaced_value("class", value=KeyError), "it lacks 'class'"),
        (replaced_value(*NOISE, value="white"), "noise must be one of"),
        (replaced_value(*NOISE, value=kind("Fit")), "no class 'Fit' in a model file"),
        (replaced_value(*NOISE, value=kind("AR1", nugget="yes")), "nugget cannot be a str"),
        (replaced_value(*NOISE, value=kind("AR1", phi=0.5)), "AR1 has no field 'phi'"),
        (replaced_value(*NOISE, value=kind("Sum", parts={"tuple": [3]})), "parts cannot be a"),
        (replaced_value(*NOISE, value=kind("Conley", cutoff=-1)), "cutoff must be a positive"),
        (replaced_value(*NOISE, value=kind("Exponential", coords={"list": [3]})), "coords cannot"),
        (replaced_value("parameters", "hc", value=kind("AR1")), "hc cannot be a AR1"),
        (replaced_value("fit", value=KeyError), "it lacks 'fit'"),
        (replaced_value("fit", value=3), "that of a int, not of a fit"),
        (replaced_value("fit", "class", value="Ensemble"), "Ensemble has no field 'dependence'"),
        (replaced_value("fit", "class", value="os.system"), "no class 'os.system' in a model file"),
        (replaced_value("parameters", "evil", value=1), "has no parameter 'evil'"),
        (replaced_value("parameters", "alpha", value={"class": "Fit"}), "not a valid model file"),
        (replaced_value("parameters", "dtype", value="save"), "dtype must be one of"),
        (replaced_value("columns", "names", value=["a"]), "no names of 3 columns"),
        (replaced_value("columns", "count", value=4), "do not go together"),
        (replaced_value(*LAYER, "fields", "more", value=1), "HiddenLayer has no field 'more'"),
        (replaced_value(*LAYER, "fields", "b", value=KeyError), "lacks its field 'b'"),
        (replaced_value(*LAYER, "fields", "b", value="text"), "HiddenLayer.b cannot be a str"),
        (replaced_value(*LAYER, "fields", "constant", value=1), "constant cannot be a int"),
        (replaced_value(*LAYER, "fields", "activation", value="exec"), "not a valid model file"),
        (replaced_value(*LAYER, "fields", "W", "array", value="no"), "there is no array 'no'"),
        (replaced_value("fit", "fields", "estimates", value={"tuple": []}), "do not go together"),
        (replaced_value("fit", "fields", "estimates", value={"tuple": ["X"]}), "it lacks 'X'"),
        (replaced_value("fit", "fields", "one_output", value="yes"), "one_output cannot be a str"),
        (replaced_value(*FIRST, "outputs", value={"tuple": []}), "are of the outputs [], not of 1"),
        (replaced_value(*FIRST, "outputs", "tuple", 0, value=3), "are of the outputs [3], not"),
        (replaced_value("fit", "fields", "scale", value=None), "scale cannot be a NoneType"),
        (replaced_value(*ROWS, "data", "fields", "n_threads", value=0.5), "cannot be a float"),
        (replaced_value(*ROWS, "largest_leverage", value={"float": "a"}), "not a valid model"),
        (
            replaced_value(*ROWS, "noise", value={"array": "fit.rows.loo", "foreign": False}),
            "the noise of the rows have the shape",
        ),
    ],
)
def test_descriptions_that_do_not_fit(members, path, change, says):
    assert says in refusal(path, zipped(sealed(members[0], change)))


def test_what_a_later_version_adds_may_be_absent(members, table, path):
    """Fields and parameters that have a default need not be in a file."""

    def older(document):
        del document["fit"]["fields"]["kept_held_out"]
        del document["parameters"]["tuning_fraction"]

    parts, _, expected = members
    path.write_bytes(zipped(sealed(parts, older)))
    model = ulmus.load(path)
    assert model.tuning_fraction is None
    assert_array_equal(model.predict_interval(table.X_new, method="jackknife+"), expected)


def test_numbers_that_predict_nothing(members, path):
    parts, _, _ = members
    name = "fit.ensemble.regressions.0.smoother.q.npy"
    header = parts[name][: parts[name].index(b"\n") + 1]
    nothing = np.full((len(parts[name]) - len(header)) // 8, np.nan).tobytes()
    broken = sealed({**parts, name: header + nothing})
    assert "it predicts no numbers" in refusal(path, zipped(broken))


@pytest.mark.parametrize("indices", [[0, 9], [-1, 0]])
def test_sparse_rows_with_indices_outside(make_table, path, indices):
    from scipy.sparse import csr_array

    X, y, _, _ = make_table(40)
    plain_ensemble(2, 5, random_state=0).fit(csr_array(X), y).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "fit.rows.data.X.1.npy"
    array = np.load(io.BytesIO(parts[name])).copy()
    array[:2] = indices
    parts[name] = b"".join(map(bytes, npy_parts(array)))
    assert "not a valid model file" in refusal(path, zipped(sealed(parts)))


def test_a_kind_is_told_from_others():
    numbers = np.zeros(2)
    assert is_kind(3, float)
    assert is_kind(3, int | None)
    assert is_kind(None, int | None)
    assert not is_kind(True, int)
    assert not is_kind(True, float)
    assert not is_kind("a", int | None)
    assert is_kind((1, 2), tuple[int, ...])
    assert not is_kind([1, 2], tuple[int, ...])
    assert is_kind([numbers], list[np.ndarray])
    assert not is_kind({"a": 1}, dict[str, str])
    assert RowBlocks(numbers, numbers, None, numbers) == made(
        RowBlocks, {"X": numbers, "y": numbers, "root_weight": None, "reference": numbers}
    )


# ---------------------------------------------------------------- a mangling loop


def flipped(rng, parts, data):
    """A few bits of the file."""
    out = bytearray(data)
    for place in rng.integers(len(out), size=rng.integers(1, 4)):
        out[place] ^= 1 << int(rng.integers(8))
    return bytes(out)


def shortened(rng, parts, data):
    """A part of the file, cut off at its end or in its middle."""
    start, stop = sorted(rng.integers(len(data), size=2))
    return data[:start] if rng.random() < 0.5 else data[:start] + data[stop:]


def swapped(rng, parts, data):
    """Two arrays in each other's place."""
    names = sorted(name for name in parts if name != DOCUMENT)
    a, b = rng.choice(names, size=2, replace=False)
    return zipped({**parts, a: parts[b], b: parts[a]})


def with_other_header(rng, parts, data):
    """A header of an array with another byte, and checksums that fit."""
    name = rng.choice(sorted(name for name in parts if name != DOCUMENT))
    out = bytearray(parts[name])
    out[rng.integers(out.index(b"\n"))] = int(rng.integers(32, 127))
    return zipped(sealed({**parts, name: bytes(out)}))


ODD = (None, True, -1, 10**30, 0.5, "text", "", [], {}, {"float": "nan"}, {"array": "x"}, [[1]])


def with_other_description(rng, parts, data):
    """A document with an odd value somewhere, and checksums that fit."""

    def change(document):
        here = document if rng.random() < 0.3 else document["fit"]
        while True:
            keys = sorted(here) if isinstance(here, dict) else range(len(here))
            key = keys[rng.integers(len(keys))]
            inner = here[key]
            if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.1:
                here[key] = ODD[rng.integers(len(ODD))]
                return
            here = inner

    return zipped(sealed(parts, change))


MANGLERS = {
    flipped: 50,
    shortened: 25,
    swapped: 20,
    with_other_header: 25,
    with_other_description: 80,
}


@pytest.mark.parametrize("mangled", MANGLERS, ids=lambda mangler: mangler.__name__)
def test_a_mangled_file_is_refused_or_is_the_same_model(members, table, path, mangled):
    rng = np.random.default_rng(0)
    parts, data, expected = members
    refused = 0
    for _ in range(MANGLERS[mangled]):
        path.write_bytes(mangled(rng, parts, data))
        try:
            model = ulmus.load(path)
        except ModelFileError as error:
            checked_sentence(error, path)
            refused += 1
            continue
        if mangled in (with_other_header, with_other_description):
            # Whoever makes the checksums fit has made another model, but one that predicts.
            assert np.all(np.isfinite(model.predict(table.X_new)))
        else:
            intervals = model.predict_interval(table.X_new, method="jackknife+")
            assert_array_equal(intervals, expected)
    assert refused > MANGLERS[mangled] // 3


def test_every_byte_of_the_arrays_counts(members, path):
    """Flipping any bit of an array's data is noticed."""
    parts, _, _ = members
    rng = np.random.default_rng(1)
    data = zipped(parts, zipfile.ZIP_STORED)
    for _ in range(30):
        name = rng.choice(sorted(name for name in parts if len(parts[name]) > 200))
        place = data.index(parts[name]) + int(rng.integers(128, len(parts[name])))
        out = bytearray(data)
        out[place] ^= 1 << int(rng.integers(8))
        assert re.search("damaged", refusal(path, bytes(out)))
