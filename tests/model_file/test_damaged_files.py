"""Files that are no models, or no longer: each is refused in one sentence, and none runs code."""

import dataclasses
import gzip
import io
import json
import os
import pickle
import re
import typing
import zipfile
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from models import plain_ensemble
from numpy.testing import assert_array_equal
from safetensors_parts import SIZES, array_of, entry, file_of, joined, sealed, taken_apart

import ulmus
from ulmus.core.data.source import RowBlocks
from ulmus.core.fit.fit import Fit
from ulmus.exceptions import ModelFileError
from ulmus.model_file import container, validation
from ulmus.model_file.container import read_container, write_container
from ulmus.model_file.field_types import construct, field_hints, matches_type
from ulmus.noise import AR1

W = "fit.ensemble.layer.W"
Q = "fit.ensemble.regressions.0.smoother.q"


@pytest.fixture(scope="module")
def training_table(make_table):
    return make_table(40)


@pytest.fixture(scope="module")
def model(training_table):
    return plain_ensemble(2, 5, random_state=0, weight_scale=2.0).fit(
        training_table.X, training_table.y
    )


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    """The bytes of a small model file."""
    path = tmp_path_factory.mktemp("model") / "model.ulmus"
    model.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def parts(data):
    """Its document and its arrays."""
    return taken_apart(data)


@pytest.fixture(scope="module")
def expected(model, training_table):
    """What its model predicts."""
    return model.predict_interval(training_table.X_new, method="jackknife+")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ulmus"


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


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


# ---------------------------------------------------------------- other files


def test_the_file_of_these_tests_is_a_model(parts, data, expected, training_table, path):
    for content in (joined(*parts), sealed(*parts)):
        path.write_bytes(content)
        intervals = ulmus.load(path).predict_interval(training_table.X_new, method="jackknife+")
        assert_array_equal(intervals, expected)
    # Taking apart and joining again changes the order of arrays at most.
    assert len(taken_apart(data)[1]) == len(parts[1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"x,y\n1,2\n", "it is not in the safetensors format"),
        (pickle.dumps({"a": 1}), "it is a pickle, which could run anything and is never loaded"),
        (b"\x89HDF\r\n\x1a\n" + bytes(50), "it is an HDF5 file"),
        (b"\x93NUMPY\x01\x00", "it is a NumPy array"),
        (b"PAR1" + bytes(40), "it is a Parquet file"),
        (gzip.compress(b"abc", mtime=0), "it is a gzip file"),
        (zlib.compress(pickle.dumps([1])), "perhaps of joblib"),
        (b"\x08\x0a\x12\x05skl2o", "perhaps an ONNX file"),
        (zipped(data=b"123"), "it is a zip file"),
        (joined("", {}, metadata={}), "it is another safetensors file"),
        (joined("", {}, metadata={"format": "pt"}), "it is another safetensors file"),
        (joined("{}", {}, metadata={"ulmus": "{}", "x": "y"}), "it is another safetensors file"),
        (file_of(b"{}"), "it is another safetensors file"),
        (joined("[1, 2]", {}), "it has no format"),
        (joined('{"format": true}', {}), "it has no format"),
    ],
)
def test_other_kinds_of_files(path, content, message):
    sentence = refusal(path, content)
    assert sentence.startswith(" is not a model file of ulmus: ")
    assert message in sentence


def test_no_file_at_all(tmp_path):
    for name, message in (("none", "does not exist"), ("", "is not a file")):
        with pytest.raises(ModelFileError, match=message) as caught:
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


@pytest.mark.parametrize(("version", "suggestion"), [(3, "upgrade ulmus"), (1, "fit again")])
def test_another_format_names_its_writer(parts, path, version, suggestion):
    def other(document):
        document["format"], document["ulmus"] = version, "0.9.0"

    assert refusal(path, sealed(*parts, other)) == (
        f" was written in format {version} by ulmus 0.9.0; this ulmus {ulmus.__version__} reads "
        f"format 2: {suggestion}."
    )
    # Its checksums may be made in another way, and its version may be anything.
    text = json.dumps({"format": version, "ulmus": "\x1b[31m"})
    assert f"in format {version} by another ulmus;" in refusal(path, joined(text, {}))


def nested(depth):
    return '{"format": 2, "a": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a valid model file: Expecting property name"),
        ('{"format": 2, "format": 2}', "a key twice"),
        ('{"format": 2, "a": NaN}', "the number NaN"),
        ('{"format": 2, "a": -Infinity}', "the number -Infinity"),
        ('{"format": 2, "a": 1e999}', "the number 1e999"),
        ('{"format": 2, "a": ' + "9" * 5000 + "}", "not a valid model file"),
        (nested(150), "nested too deeply"),
        (nested(200_000), "nested too deeply"),
        ('{"format": 2, "a": "ä"}', "not a valid model file"),
        ('{"format": 2}', "its document has been changed or damaged"),
    ],
    ids=range(10),
)
def test_documents_that_are_no_documents(parts, path, text, message):
    assert message in refusal(path, joined(text, parts[1]))


def test_a_document_that_was_edited(parts, path):
    text, tensors = parts
    edited = text.replace('"weight_scale": 2.0', '"weight_scale": 3.0')
    assert edited != text
    assert "its document has been changed or damaged" in refusal(path, joined(edited, tensors))


def test_a_document_that_is_too_large(data, model, path, monkeypatch):
    monkeypatch.setattr(container, "LARGEST_DOCUMENT", 1000)
    assert "its document has more than 1000 bytes" in refusal(path, data)
    with pytest.raises(ValueError, match="a model file has room for 1000"):
        model.save(path)
    assert path.read_bytes() == data


# ---------------------------------------------------------------- arrays


def test_arrays_that_are_not_in_the_document(parts, path):
    text, tensors = parts
    more = {**tensors, "evil": entry(np.zeros(3))}
    assert "not those of its document: 'evil'" in refusal(path, joined(text, more))
    fewer = {name: part for name, part in tensors.items() if name != W}
    assert f"not those of its document: {W!r}" in refusal(path, joined(text, fewer))


def test_an_array_given_twice(parts, path):
    """The library keeps the last of two entries; both may name the same bytes."""
    content = joined(*parts)
    length = int.from_bytes(content[:8], "little")
    header, body = content[8 : 8 + length], content[8 + length :]
    info = json.dumps(json.loads(header)[W]).encode()
    again = header[:-1] + b',"' + W.encode() + b'":' + info + b"}"
    assert "a key twice" in refusal(path, file_of(again, body))
    # And other bytes: the first ones are then of no array.
    text, tensors = parts
    damaged = refusal(path, joined(text, [*tensors.items(), (W, tensors[W])]))
    assert "damaged or truncated" in damaged


def test_a_document_given_twice(parts, path):
    content = joined(*parts)
    length = int.from_bytes(content[:8], "little")
    header, body = content[8 : 8 + length], content[8 + length :]
    again = header.replace(b'{"ulmus": ', b'{"ulmus": "{}", "ulmus": ', 1)
    assert again != header
    assert "a key twice" in refusal(path, file_of(again, body))


def test_a_file_larger_than_the_memory_is_refused_before_it_is_read(parts, path):
    size = 2**43
    try:
        np.empty(size, dtype=np.uint8)
    except MemoryError:
        pass
    else:
        pytest.skip("this system promises more memory than it has")
    text = sealed(parts[0], {}, lambda document: document.update(arrays={"huge": "0"}))
    document = taken_apart(text)[0]
    info = {"dtype": "F64", "shape": [size // 8], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"ulmus": document}, "huge": info}).encode()
    path.write_bytes(file_of(header))
    try:
        os.truncate(path, path.stat().st_size + size)  # a hole
    except OSError:
        pytest.skip("the file system has no files of this size")
    try:
        with pytest.raises(ModelFileError, match="more than the memory") as caught:
            ulmus.load(path)
        checked_sentence(caught.value, path)
    finally:
        os.truncate(path, 0)
    # A header that claims so much, without the bytes.
    assert "damaged or truncated" in refusal(path, file_of(header))


def test_an_array_that_was_changed(parts, path):
    text, tensors = parts
    dtype, shape, content = tensors[W]
    changed = bytearray(content)
    changed[-3] ^= 1
    forged = joined(text, {**tensors, W: (dtype, shape, bytes(changed))})
    assert f"its array {W!r} has been changed or damaged" in refusal(path, forged)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "O"}, "damaged or truncated"),
        ({"dtype": "F32"}, "damaged or truncated"),
        ({"dtype": "BF16", "shape": [2, 5, 12]}, "BF16, not one of plain numbers"),
        ({"dtype": "F16", "shape": [2, 5, 12]}, "F16, not one of plain numbers"),
        ({"dtype": "C64"}, "C64, not one of plain numbers"),
        ({"shape": [2, 5, -3]}, "damaged or truncated"),
        ({"shape": [2, 5, 4]}, "damaged or truncated"),
        ({"shape": "2"}, "damaged or truncated"),
        ({"shape": [2, 5, 1.5]}, "damaged or truncated"),
        ({"shape": [2**62, 2**62]}, "damaged or truncated"),
        ({"data_offsets": [0, 8]}, "damaged or truncated"),
        ({"data_offsets": [-8, 8]}, "damaged or truncated"),
        ({"data_offsets": [10**9, 10**9 + 240]}, "damaged or truncated"),
    ],
    ids=str,
)
def test_entries_of_arrays_in_the_header(parts, path, entry, message):
    content = sealed(*parts)
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    assert header[W]["shape"] == [2, 5, 3]
    header[W].update(entry)
    assert message in refusal(path, file_of(json.dumps(header).encode(), body))


@pytest.mark.parametrize(("dtype", "shape"), [("I64", [2, 5, 3]), ("F64", [5, 2, 3])])
def test_dtype_and_shape_are_part_of_the_checksum(parts, path, dtype, shape):
    text, tensors = parts
    forged = {**tensors, W: (dtype, shape, tensors[W][2])}
    assert f"its array {W!r} has been changed" in refusal(path, joined(text, forged))


def test_arrays_of_all_plain_dtypes_come_back(tmp_path):
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
    write_container(tmp_path / "a", {"kind": "test"}, arrays)
    document, back = read_container(tmp_path / "a")
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
        write_container(tmp_path / "a", {}, {"a": bad})


# ---------------------------------------------------------------- descriptions


def with_value(*keys, value):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        if value is KeyError:
            del document[keys[-1]]
        else:
            document[keys[-1]] = value

    return change


def structure(name, **fields):
    """A noise structure as a file describes it."""
    return {"class": name, "fields": fields}


NOISE = ("parameters", "noise")
LAYER = ("fit", "fields", "ensemble", "fields", "layer")
ROWS = ("fit", "fields", "rows", "fields")
SPEC = ("fit", "fields", "spec", "fields")
ESTIMATES = (*SPEC, "regression", "fields", "estimates")
FIRST = ("fit", "fields", "ensemble", "fields", "regressions", "tuple", 0, "fields")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_value("class", value="Popen"), "there is no class 'Popen'"),
        (with_value("class", value=["a"]), "not a valid model file"),
        (with_value("class", value=KeyError), "it lacks 'class'"),
        (with_value(*NOISE, value="white"), "noise must be one of"),
        (with_value(*NOISE, value=structure("Fit")), "no class 'Fit' in a model file"),
        (with_value(*NOISE, value=structure("AR1", nugget="yes")), "nugget cannot be a str"),
        (with_value(*NOISE, value=structure("AR1", phi=0.5)), "AR1 has no field 'phi'"),
        (with_value(*NOISE, value=structure("Sum", parts={"tuple": [3]})), "parts cannot be a"),
        (with_value(*NOISE, value=structure("Conley", cutoff=-1)), "cutoff must be a positive"),
        (with_value(*NOISE, value=structure("Exponential", coords={"list": [3]})), "coords cannot"),
        (with_value("parameters", "hc", value=structure("AR1")), "hc cannot be a AR1"),
        (with_value("fit", value=KeyError), "it lacks 'fit'"),
        (with_value("fit", value=3), "that of a int, not of a fit"),
        (with_value("fit", "class", value="Ensemble"), "Ensemble has no field"),
        (with_value("fit", "class", value="os.system"), "no class 'os.system' in a model file"),
        (with_value("parameters", "evil", value=1), "has no parameter 'evil'"),
        (with_value("parameters", "alpha", value={"class": "Fit"}), "not a valid model file"),
        (with_value("parameters", "dtype", value="save"), "dtype must be one of"),
        (with_value("columns", "names", value=["a"]), "does not list the names of 3 columns"),
        (with_value("columns", "count", value=4), "contradict each other"),
        (with_value(*LAYER, "fields", "more", value=1), "HiddenLayer has no field 'more'"),
        (with_value(*LAYER, "fields", "b", value=KeyError), "lacks its field 'b'"),
        (with_value(*LAYER, "fields", "b", value="text"), "HiddenLayer.b cannot be a str"),
        (with_value(*LAYER, "fields", "constant", value=1), "constant cannot be a int"),
        (with_value(*LAYER, "fields", "activation", value="exec"), "not a valid model file"),
        (with_value(*LAYER, "fields", "W", "array", value="no"), "there is no array 'no'"),
        (with_value(*ESTIMATES, value={"tuple": []}), "contradict each other"),
        (with_value(*ESTIMATES, value={"tuple": ["X"]}), "it lacks 'X'"),
        (with_value(*SPEC, "one_output", value="yes"), "one_output cannot be a str"),
        (with_value(*FIRST, "outputs", value={"tuple": []}), "are of the outputs [], not of 1"),
        (with_value(*FIRST, "outputs", "tuple", 0, value=3), "are of the outputs [3], not"),
        (with_value("fit", "fields", "scale", value=None), "scale cannot be a NoneType"),
        (with_value(*ROWS, "data", "fields", "width", value=0.5), "cannot be a float"),
        (with_value(*ROWS, "largest_leverage", value={"float": "a"}), "not a valid model"),
        (
            with_value(*ROWS, "noise", value={"array": "fit.rows.loo", "foreign": False}),
            "its rows.noise has the shape",
        ),
    ],
)
def test_descriptions_that_do_not_fit(parts, path, change, message):
    assert message in refusal(path, sealed(*parts, change))


def test_fields_with_a_default_may_be_absent(parts, expected, training_table, path):
    """What a later version adds has a default, and need not be in a file."""

    def older(document):
        del document["fit"]["fields"]["noise_covariance"]
        del document["parameters"]["tuning_fraction"]

    path.write_bytes(sealed(*parts, older))
    model = ulmus.load(path)
    assert model.tuning_fraction is None
    assert_array_equal(model.predict_interval(training_table.X_new, method="jackknife+"), expected)


# ---------------------------------------------------------------- forged numbers


def forged(parts, name, change):
    """The bytes of a file with one changed array and checksums that fit."""
    text, tensors = parts
    array = array_of(*tensors[name])
    change(array)
    return sealed(text, {**tensors, name: entry(array)})


def fill(value):
    def change(array):
        array[...] = value

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_predictions_that_are_not_finite(parts, path, value):
    assert "its predictions are not finite" in refusal(path, forged(parts, Q, fill(value)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "fit.ensemble.regressions.0.noise_variance.sigma2",
            -1.0,
            "NoiseVariance.sigma2 has negative",
        ),
        (
            "fit.ensemble.regressions.0.noise_variance.residual",
            -1.0,
            "residual has negative values",
        ),
        (
            "fit.ensemble.regressions.0.noise_variance.residual",
            np.nan,
            "noise variance is negative or",
        ),
        ("fit.ensemble.units.unit", -1.0, "OutputUnits.unit has negative values"),
        ("fit.scale.deviations", -1.0, "FeatureScale.deviations has negative values"),
        ("fit.rows.leverage", -0.1, "TrainingRows.leverage has negative values"),
        ("fit.rows.loo_leverage", -0.1, "TrainingRows.loo_leverage has negative values"),
    ],
)
def test_variances_and_scales_are_not_negative(parts, path, name, value, message):
    assert message in refusal(path, forged(parts, name, fill(value)))


@pytest.fixture(scope="module")
def heteroskedastic_parts(training_table, tmp_path_factory):
    """A model file with a noise model."""
    path = tmp_path_factory.mktemp("model") / "model.ulmus"
    noise = training_table.y - np.mean(training_table.y)
    y = noise * np.exp(3 * training_table.X[:, 0])
    plain_ensemble(2, 5, noise="heteroskedastic", random_state=0).fit(training_table.X, y).save(
        path
    )
    return taken_apart(path.read_bytes())


@pytest.mark.parametrize(
    ("field", "array", "message"),
    [
        ("factor", np.array([-1.0]), "NoiseVarianceModel.factor has negative values"),
        ("flat", np.array([-1.0]), "NoiseVarianceModel.flat has negative values"),
        ("share", np.array([-1.0]), "NoiseVarianceModel.share has negative values"),
        ("factor", np.array([np.nan]), "share, factor or bounds"),
        ("factor", np.array([0.0]), "share, factor or bounds"),
        ("factor", np.array([np.inf]), "noise model has a share, factor"),
        ("share", np.array([1.5]), "share, factor or bounds"),
        ("low", np.array([np.nan]), "share, factor or bounds"),
        ("low", np.array([1e300]), "share, factor or bounds"),
        ("high", np.array([np.inf]), "share, factor or bounds"),
        ("flat", np.array([np.inf]), "share, factor or bounds"),
        ("flat", np.array([0.5]), "noise models are not those of the outputs whose noise varies"),
        ("factor", np.zeros(2), "its noise_model.factor has the shape (2,), not (1,)"),
        ("low", np.zeros((1, 1)), "its noise_model.low has the shape (1, 1), not (1,)"),
    ],
    ids=str,
)
def test_a_forged_noise_model(heteroskedastic_parts, path, field, array, message):
    text, tensors = heteroskedastic_parts
    name = f"fit.noise_model.{field}"
    assert "fit.noise_model.logs.0.layer.W" in tensors
    assert array_of(*tensors[name]).shape == (1,)
    assert message in refusal(path, sealed(text, {**tensors, name: entry(array)}))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("scale", -1.0, "PairForms.scale has negative values"),
        ("scale", np.nan, "its variances are negative or not numbers"),
        ("forms.0.single", -1.0, "its variances are negative or not numbers"),
    ],
)
def test_forged_forms_of_a_variance(heteroskedastic_parts, path, field, value, message):
    name = f"fit.ensemble.regressions.0.forms.own.{field}"
    assert message in refusal(path, forged(heteroskedastic_parts, name, fill(value)))


@pytest.mark.parametrize(
    ("field", "forgery", "message"),
    [
        ("sill", "-1.0", "CovarianceEstimate.sill has negative values"),
        ("values", '{"tuple": [-3.0]}', "CovarianceEstimate.values has negative values"),
        ("shares", '{"tuple": [1.5]}', "its shares of noise variance sum to 1.5"),
    ],
)
def test_a_forged_noise_covariance(training_table, path, field, forgery, message):
    model = plain_ensemble(2, 5, noise=AR1(), random_state=0)
    model.fit(training_table.X, training_table.y).save(path)
    text, tensors = taken_apart(path.read_bytes())
    forged_text, n = re.subn(rf'"{field}": ({{[^}}]*}}|[^,]*)', f'"{field}": {forgery}', text)
    assert n == 1
    assert message in refusal(path, sealed(forged_text, tensors))


def test_rows_whose_number_differs(parts, path):
    text, tensors = parts
    short = {**tensors, "fit.rows.leverage": entry(np.full((1, 39), 0.1))}
    assert "its rows.leverage has the shape (1, 39), not (1, 40)" in refusal(
        path, sealed(text, short)
    )


@pytest.mark.parametrize("indices", [[0, 9], [-1, 0]])
def test_sparse_rows_with_indices_outside(make_table, path, indices):
    from scipy.sparse import csr_array

    X, y, _, _ = make_table(40)
    plain_ensemble(2, 5, random_state=0).fit(csr_array(X), y).save(path)

    def outside(array):
        array[:2] = indices

    content = forged(taken_apart(path.read_bytes()), "fit.rows.data.X.1", outside)
    assert "not a valid model file" in refusal(path, content)


def test_every_checked_field_exists():
    """Tables of paths and fields follow the classes that they are about."""
    for cls, names in validation.NON_NEGATIVE.items():
        assert set(names) <= set(field_hints(cls)), cls
    for path in validation.SHAPES:
        cls = Fit
        for name in path.split("."):
            hint = field_hints(cls)[name]
            inner = [a for a in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(a)]
            cls = inner[0] if inner else None


def test_types_are_distinguished():
    numbers = np.zeros(2)
    assert matches_type(3, float)
    assert matches_type(3, int | None)
    assert matches_type(None, int | None)
    assert not matches_type(True, int)
    assert not matches_type(True, float)
    assert not matches_type("a", int | None)
    assert matches_type((1, 2), tuple[int, ...])
    assert not matches_type([1, 2], tuple[int, ...])
    assert matches_type((1, "a"), tuple[int, str])
    assert not matches_type((1, "a", 2), tuple[int, str])
    assert matches_type([numbers], list[np.ndarray])
    assert not matches_type({"a": 1}, dict[str, str])
    assert not matches_type(print, Callable[[str], None])
    assert RowBlocks(numbers, numbers, None, numbers) == construct(
        RowBlocks, {"X": numbers, "y": numbers, "root_weight": None, "reference": numbers}
    )


# ---------------------------------------------------------------- random changes


def flipped(rng, parts, data):
    """A few bits of the file."""
    out = bytearray(data)
    for place in rng.integers(len(out), size=rng.integers(1, 4)):
        out[place] ^= 1 << int(rng.integers(8))
    return bytes(out)


def flipped_header(rng, parts, data):
    """A bit of the header."""
    out = bytearray(data)
    out[rng.integers(8 + int.from_bytes(data[:8], "little"))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def shortened(rng, parts, data):
    """A part of the file, truncated at its end or in its middle."""
    start, stop = sorted(rng.integers(len(data), size=2))
    return data[:start] if rng.random() < 0.5 else data[:start] + data[stop:]


def swapped(rng, parts, data):
    """Two arrays in each other's place."""
    text, tensors = parts
    a, b = rng.choice(sorted(tensors), size=2, replace=False)
    return joined(text, {**tensors, a: tensors[b], b: tensors[a]})


def with_other_entry(rng, parts, data):
    """Another dtype or shape of an array, of the same size, and checksums that fit."""
    text, tensors = parts
    name = rng.choice(sorted(name for name, part in tensors.items() if len(part[2]) > 8))
    dtype, shape, content = tensors[name]
    dtype = dtype if rng.random() < 0.5 else str(rng.choice(["F64", "I64", "F32", "BOOL", "I32"]))
    shape = [len(content) // SIZES[dtype]] if rng.random() < 0.5 else shape[::-1]
    return sealed(text, {**tensors, name: (dtype, shape, content)})


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

    return sealed(*parts, change)


MANGLERS = {
    flipped: 50,
    flipped_header: 100,
    shortened: 25,
    swapped: 20,
    with_other_entry: 25,
    with_other_description: 80,
}


@pytest.mark.parametrize("mangled", MANGLERS, ids=lambda mangler: mangler.__name__)
def test_a_mangled_file_is_refused_or_is_the_same_model(
    parts, data, expected, training_table, path, mangled
):
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(MANGLERS[mangled]):
        path.write_bytes(mangled(rng, parts, data))
        try:
            model = ulmus.load(path)
        except ModelFileError as error:
            checked_sentence(error, path)
            refused += 1
            continue
        if mangled in (with_other_entry, with_other_description):
            # Whoever makes the checksums fit has made another model, but one that predicts.
            assert np.all(np.isfinite(model.predict(training_table.X_new)))
        else:
            intervals = model.predict_interval(training_table.X_new, method="jackknife+")
            assert_array_equal(intervals, expected)
    assert refused > MANGLERS[mangled] // 3


def test_every_bit_of_the_file_counts(data, path):
    """Flipping any bit, of an array or of the header, is noticed."""
    rng = np.random.default_rng(1)
    for place in rng.integers(len(data), size=60):
        out = bytearray(data)
        out[place] ^= 1 << int(rng.integers(8))
        refusal(path, bytes(out))
