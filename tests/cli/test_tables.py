"""Tables of all formats are read and written with the same numbers."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command_line import PLAIN, done, facts, read_csv, refusal, run, sample
from numpy.testing import assert_allclose, assert_array_equal

import ulmus
from ulmus.cli.steps.predictions import COLUMNS
from ulmus.tables import files as tables

WRITERS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "csv.gz": lambda table, path: table.to_csv(path, index=False),
    "csv.zst": lambda table, path: written_packed(csv_of(table), path),
    "parquet": lambda table, path: table.to_parquet(path),
    "pq": lambda table, path: table.to_parquet(path),
    "arrow": lambda table, path: table.to_feather(path),
    "feather": lambda table, path: table.to_feather(path, compression="uncompressed"),
}
READERS = {
    "csv": read_csv,
    "csv.gz": read_csv,
    "parquet": pd.read_parquet,
    "arrow": pd.read_feather,
    "feather": pd.read_feather,
}


def csv_of(table):
    return table.to_csv(index=False).encode()


def written_packed(text, path):
    with pa.output_stream(path, compression="zstd") as file:
        file.write(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table ``t.csv`` and a model of it, ``m.ulmus``."""
    folder = tmp_path_factory.mktemp("tables")
    sample().to_csv(folder / "t.csv", index=False)
    done("fit", folder / "t.csv", "-t", "y", "-o", folder / "m.ulmus", *PLAIN)
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    """Predictions of Python for the same rows."""
    return ulmus.inference(ulmus.load(folder / "m.ulmus")).summary_frame(sample(), 0.95)


@pytest.fixture
def predicted(folder, tmp_path):
    """Function that predicts a table, or bytes of CSV, and reads the result."""

    def predicted(table, *options, kind="csv", out="csv"):
        path, output = tmp_path / f"given.{kind}", tmp_path / f"out.{out}"
        if isinstance(table, bytes):
            path.write_bytes(table)
        else:
            WRITERS[kind](table, str(path))
        done("predict", folder / "m.ulmus", path, "-o", output, *options)
        return READERS[out](output)

    return predicted


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_the_numbers_of_python(predicted, expected, kind):
    frame = predicted(sample(), kind=kind)
    assert tuple(frame.columns) == COLUMNS
    assert_array_equal(frame, expected)


@pytest.mark.slow
@pytest.mark.parametrize("out", READERS)
def test_every_format_can_be_written(predicted, expected, out):
    frame = predicted(sample(), "--keep", "kind,count,day,wet", out=out)
    assert list(frame.columns) == ["kind", "count", "day", "wet", *COLUMNS]
    assert_array_equal(frame[list(COLUMNS)], expected)
    assert list(frame.kind) == list(sample().kind)
    assert list(frame.wet) == list(sample().wet)
    assert list(frame.day.astype(str)) == list(sample().day.astype(str))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "arrow"])
def test_every_format_gives_the_same_model(folder, tmp_path, kind, expected):
    path = tmp_path / f"t.{kind}"
    table = sample()[["y", "count", "wet", "day", "kind", "t"]]  # the target first
    WRITERS[kind](table, str(path))
    names = ("--columns", "t,kind,day", "--columns", "wet,count")
    done("fit", path, "-t", "y", "-o", tmp_path / "m.ulmus", *names, *PLAIN)
    again = ulmus.inference(ulmus.load(tmp_path / "m.ulmus")).summary_frame(sample(), 0.95)
    assert_array_equal(again, expected)


DIALECTS = {
    "semicolons": lambda t: t.to_csv(index=False, sep=";").encode(),
    "decimal commas": lambda t: t.to_csv(index=False, sep=";", decimal=",").encode(),
    "quoted decimal commas": lambda t: t.to_csv(
        index=False, sep=";", decimal=",", quoting=1
    ).encode(),
    "tabs": lambda t: t.to_csv(index=False, sep="\t").encode(),
    "bars": lambda t: t.to_csv(index=False, sep="|").encode(),
    "byte order mark": lambda t: t.to_csv(index=False).encode("utf-8-sig"),
    "all quoted": lambda t: t.to_csv(index=False, quoting=1).encode(),
    "windows lines": lambda t: t.to_csv(index=False, lineterminator="\r\n").encode(),
    "blank lines": lambda t: csv_of(t).replace(b"\n", b"\n\n"),
    "other order": lambda t: csv_of(t[t.columns[::-1]].assign(more="u, v\nw")),
    "no last line end": lambda t: csv_of(t).rstrip(b"\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_of_csv(predicted, expected, dialect):
    assert_array_equal(predicted(DIALECTS[dialect](sample())), expected)


def test_decimal_signs_come_from_all_of_the_first_lines(predicted, expected):
    table = sample()
    table.loc[0, "t"] = 3
    text = csv_of(table).decode().replace(",", ";").replace(".", ",").replace("3,0", "3")
    assert_allclose(predicted(text.encode())["estimate"][1:], expected["estimate"][1:], rtol=1e-12)


def test_thousands_are_no_decimals(tmp_path):
    text = "a;b\n1,000;0.5\n2,000;1.5\n"
    (tmp_path / "t.csv").write_text(text)
    table, notes = tables.table_file(tmp_path / "t.csv")
    assert table.dialect.decimal is None
    assert notes == [f"Columns of {tmp_path / 't.csv'} are separated by semicolons."]


@pytest.mark.slow
def test_a_detected_dialect_is_noted_and_can_be_given(folder, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_bytes(DIALECTS["decimal commas"](sample()))
    found = done("predict", folder / "m.ulmus", path, "-o", out)
    assert "are separated by semicolons" in found.stderr
    assert "have decimal commas" in found.stderr
    given = ("--delimiter", ";", "--decimal", ",")
    assert done("predict", folder / "m.ulmus", path, "-o", out, *given).stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_encodings(tmp_path, encoding):
    table = sample().rename(columns={"kind": "größe"}).replace({"größe": {"b": "bé"}})
    path, model, out = (tmp_path / name for name in ("t.csv", "m.ulmus", "o.csv"))
    path.write_bytes(table.to_csv(index=False).encode(encoding))
    how = ("--encoding", encoding)
    columns = facts("fit", path, "-t", "y", "-o", model, *how, *PLAIN)["columns"]
    assert columns == ["t", "größe", "day", "wet", "count"]
    done("predict", model, path, "-o", out, "--keep", "größe", *how)
    assert set(pd.read_csv(out)["größe"]) == {"a", "bé", "c"}
    assert "--encoding" in refusal("predict", model, path, "-o", out)


def test_texts_in_another_encoding(folder, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(csv_of(sample()).replace(b",b,", "é".encode("latin-1").join([b","] * 2)))
    message = refusal("fit", path, "-t", "y", "-o", tmp_path / "m.ulmus")
    assert message.endswith(
        "'kind' is not in utf-8; set its encoding, for example --encoding latin-1."
    )


@pytest.mark.slow
def test_quoted_commas_and_newlines_are_categories(tmp_path):
    table = sample().replace({"kind": {"a": "a, b", "b": "two\nlines", "c": 'a "c"'}})
    table.to_csv(tmp_path / "t.csv", index=False)
    done("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    schema = ulmus.load(tmp_path / "m.ulmus").columns_
    assert schema.columns[1].categories == ('a "c"', "a, b", "two\nlines")
    options = ("--keep", "kind", "-o", tmp_path / "o.csv")
    done("predict", tmp_path / "m.ulmus", tmp_path / "t.csv", *options)
    assert list(pd.read_csv(tmp_path / "o.csv").kind) == list(table.kind)


def test_kept_columns_are_written_as_they_are(predicted):
    table = sample().assign(
        id=np.arange(80) + 9_007_199_254_740_993,
        note='say "a, b"\nand c',
        none="",
        part=[0.1, None] * 40,
    )
    frame = predicted(table, "--keep", "id,note, id", "--keep", "none,part")
    assert list(frame.columns[:4]) == ["id", "note", "none", "part"]
    assert list(frame.id) == list(table.id)
    assert list(frame.note) == list(table.note)
    assert frame.none.isna().all()
    assert_array_equal(frame.part, table.part)


def test_a_single_row_is_no_rows(folder, tmp_path):
    table = sample()[:2]
    table.loc[0, "t"] = np.nan
    table.to_csv(tmp_path / "two.csv", index=False)
    out = tmp_path / "o.csv"
    result = done(
        "predict", folder / "m.ulmus", tmp_path / "two.csv", "-o", out, "--missing", "drop"
    )
    assert result.stdout == f"Wrote 1 row to {out}.\n"
    assert "Excluded: 1 row with missing values." in result.stderr


def test_all_columns_can_be_kept(predicted):
    frame = predicted(sample(), "--keep", "all")
    assert list(frame.columns) == [*sample().columns, *COLUMNS]
    assert_array_equal(frame.y, sample().y)


def test_categories_of_pandas_are_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 30)  # blocks with other dictionaries
    table = sample().astype({"kind": "category"})
    pa.parquet.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet", row_group_size=20)
    for out in ("o.csv", "o.parquet", "o.arrow"):
        output = tmp_path / out
        done("predict", folder / "m.ulmus", tmp_path / "t.parquet", "-o", output, "--keep", "kind")
        frame = READERS[output.suffix[1:]](output)
        assert list(frame.kind) == list(table.kind)


def test_an_index_of_pandas_is_a_column_if_it_has_a_name(folder, tmp_path, expected):
    path, out = tmp_path / "t.parquet", tmp_path / "o.parquet"
    sample().set_index("t").to_parquet(path)
    done("predict", folder / "m.ulmus", path, "-o", out)
    assert_array_equal(pd.read_parquet(out), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_row_numbers_of_pandas_are_no_input(tmp_path, kind):
    table, path = sample().sample(frac=1, random_state=0), tmp_path / f"t.{kind}"
    table.to_csv(path) if kind == "csv" else table.to_parquet(path)
    result = facts("fit", path, "-t", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    assert result["columns"] == ["t", "kind", "day", "wet", "count"]
    assert "Dropped: a column without a name, such as the row numbers of pandas." in result["notes"]


@pytest.mark.slow
def test_names_with_dots_in_parquet(tmp_path):
    table = sample().rename(columns={"count": "t.count"})
    table.to_parquet(tmp_path / "t.parquet")
    result = facts("fit", tmp_path / "t.parquet", "-t", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    assert result["columns"] == ["t", "kind", "day", "wet", "t.count"]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_texts_that_are_views_can_be_used_and_kept(folder, tmp_path, expected, kind):
    table = pa.Table.from_pandas(sample(), preserve_index=False)
    texts = pa.array(sample().kind).cast(pa.string_view())
    table = table.set_column(table.column_names.index("kind"), "kind", texts)
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    for out in ("csv", "parquet", "arrow"):
        output = tmp_path / f"o.{out}"
        done("predict", folder / "m.ulmus", path, "-o", output, "--keep", "kind")
        frame = READERS[out](output)
        assert list(frame.kind) == list(sample().kind)
        assert_array_equal(frame["estimate"], expected["estimate"])


def test_types_that_cannot_be_written_are_refused(folder, tmp_path):
    table = pa.Table.from_pandas(sample(), preserve_index=False)
    spans = pa.array([(1, 2, 3)] * 80, type=pa.month_day_nano_interval())
    table = table.append_column("span", spans)
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    for out in ("csv", "parquet"):
        start = ("predict", folder / "m.ulmus", tmp_path / "t.arrow", "-o", tmp_path / f"o.{out}")
        assert "cannot store all columns of --keep" in refusal(*start, "--keep", "span")
        assert not (tmp_path / f"o.{out}").exists()


def test_lists_can_be_kept_where_the_format_has_them(folder, tmp_path):
    table = sample().assign(some=[[1, 2]] * 80)
    table.to_parquet(tmp_path / "t.parquet")
    start = ("predict", folder / "m.ulmus", tmp_path / "t.parquet", "--keep", "some", "-o")
    done(*start, tmp_path / "o.parquet")
    assert "'some' contains nested values; write .parquet" in refusal(*start, tmp_path / "o.csv")


@pytest.mark.slow
def test_large_tables_are_read_in_blocks_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_CELLS_IN_MEMORY", 100)
    path, model = tmp_path / "t.parquet", tmp_path / "m.ulmus"
    sample().to_parquet(path)
    notes = facts("fit", path, "-t", "y", "-o", model, *PLAIN)["notes"]
    assert (
        f"{path} has about 480 cells and is read in blocks: training rows are not stored"
        in notes[0]
    )
    notes = facts("average", model, path, "--by", "kind")["notes"]
    assert f"{path} is large: 80 evenly spaced rows of 80 are used." in notes
    notes = facts("fit", path, "-t", "y", "-o", model, "--in-memory", *PLAIN)["notes"]
    assert not any("blocks" in note for note in notes)


def test_a_packed_table_is_read_in_blocks(folder, tmp_path, expected, monkeypatch):
    text = gzip.compress(csv_of(sample()))
    (tmp_path / "t.csv.gz").write_bytes(text)
    monkeypatch.setattr(tables, "BATCH_ROWS", 7)
    sample().to_feather(tmp_path / "t.arrow")
    for name in ("t.csv.gz", "t.arrow"):
        done("predict", folder / "m.ulmus", tmp_path / name, "-o", tmp_path / "o.csv")
        assert_allclose(pd.read_csv(tmp_path / "o.csv"), expected, rtol=1e-10)
    (tmp_path / "t.csv.gz").write_bytes(text[:-20])
    result = run("predict", folder / "m.ulmus", tmp_path / "t.csv.gz", "-o", tmp_path / "p.csv")
    assert result.exit_code == 2
    assert not (tmp_path / "p.csv").exists()


def test_digits_with_leading_zeros_are_names(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{i % 4:05d},{i % 7},{i % 4 + i / 100}" for i in range(40)]
    path.write_text("\n".join(["zip,x,y", *rows]))
    done("fit", path, "--target", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    column = ulmus.load(tmp_path / "m.ulmus").columns_.column("zip")
    assert column.categories == ("00000", "00001", "00002", "00003")
    done("predict", tmp_path / "m.ulmus", path, "-o", tmp_path / "out.csv")


def test_all_kinds_of_extrapolation_are_noted(tmp_path):
    path, days = tmp_path / "t.csv", pd.date_range("2020-01-01", periods=45, freq="D")
    table = pd.DataFrame({"day": days, "kind": ["a", "b", "c"] * 15, "y": np.arange(45.0) % 3})
    table[:40].to_csv(path, index=False)
    done("fit", path, "--target", "y", "-o", tmp_path / "m.ulmus", *PLAIN)
    table[40:].assign(kind="d").to_csv(path, index=False)
    result = done("predict", tmp_path / "m.ulmus", path, "-o", tmp_path / "out.csv")
    assert "categories that are in no training row" in result.stderr
    assert "'day' outside 2020-01-01 to 2020-02-09" in result.stderr
