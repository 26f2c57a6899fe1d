# mypy: ignore-errors
from ulmus.tables import cells, columns, dates, encoder, schema
from ulmus.tables.columns import *  # noqa

cells.NUMBER, cells.TRUTH, cells.DATE, cells.CATEGORY = "number", "boolean", "date", "category"
cells.DATE_TEXT = dates.DATE_TEXT
_days, _numbers = dates.days_since_1970, cells.Cells.numbers
cells.days_since_1970_series = None


def _kind(self):
    found = columns.column_type(self)
    return None if found is None else found.type_name


def numbers(self, kind=None):
    return _numbers(self) if kind in (None, "number") else columns.COLUMN_TYPES[kind].values(self)


cells.Cells.kind = property(_kind)
cells.Cells.numbers = numbers
columns.Column.kind = property(lambda self: self.type_name)


def days(values):
    return _days(dates.parsed_dates(values) if hasattr(values, "to_numpy") else values)


cells.days_since_1970 = days
encoder.TableEncoder.of = encoder.TableEncoder.from_schema
schema.Schema.restored = schema.Schema.from_description
schema.Schema.described = schema.Schema.describe
schema.Schema.coded = schema.Schema.parse
schema.Schema.expanded = schema.Schema.encode
schema.Schema.marks = property(lambda self: self.na_values)


def tidied(self, frame, first_row=0, *, gaps=False):
    return self.convert(frame, first_row, keep_missing=gaps)


schema.Schema.tidied = tidied
