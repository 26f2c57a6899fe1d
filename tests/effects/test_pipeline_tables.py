"""Rows of a table with changed columns are those of the changed table after the encoder."""

import numpy as np
import pandas as pd
import pytest
from command_line import sample
from models import plain_member
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ulmus
from ulmus.effects.encoded_tables import EncodedTable, PipelineTable
from ulmus.tables import TableEncoder

TABLE = sample().assign(rank=np.arange(80) % 3)
INPUTS = TABLE.drop(columns="y")
CHANGES = [
    {},
    {"t": 2.5},
    {"t": np.linspace(0, 6, 80), "kind": "c"},
    {"kind": np.array(["a", "b"] * 40, dtype=object)},
    {"rank": 2, "wet": True},
    {"day": pd.Timestamp("2024-02-01")},
]


@pytest.fixture(scope="module")
def table():
    encoder = TableEncoder(categorical=["rank"])
    pipe = make_pipeline(encoder, plain_member(5)).fit(INPUTS, TABLE.y)
    return ulmus.inference(pipe)._table(TABLE), pipe


@pytest.mark.parametrize("rows", [slice(0, 80), slice(7, 9), np.array([3, 70, 3])], ids=str)
@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: ",".join(changes) or "none")
def test_encoded_rows_are_those_of_the_changed_table(table, rows, changes):
    encoded, pipe = table
    assert isinstance(encoded, EncodedTable)
    plain = PipelineTable(
        encoded.data, encoded.inputs, encoded.features, pipe[0].transform, encoded.schema
    )
    assert_array_equal(encoded.points(rows, changes), plain.points(rows, changes))


def test_infinite_values_are_refused(table):
    with pytest.raises(ValueError, match="column 't' contains infinity"):
        table[0].points(slice(0, 5), {"t": np.inf})


def test_an_unknown_category_is_refused(table):
    with pytest.raises(ValueError, match="'d' is not a category of 'kind'"):
        table[0].points(slice(0, 5), {"kind": "d"})


def test_further_transformers_see_the_encoded_table():
    pipe = make_pipeline(TableEncoder(), StandardScaler(), plain_member(5))
    pipe.fit(INPUTS, TABLE.y)
    table = ulmus.inference(pipe)._table(TABLE)
    assert type(table) is PipelineTable
    expected = pipe[:-1].transform(INPUTS.assign(kind="a"))
    assert_array_equal(table.points(slice(0, 80), {"kind": "a"}), expected)
