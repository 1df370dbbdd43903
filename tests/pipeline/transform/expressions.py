"""Expressions over hand-made rows: one table, one operation, one value per row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from batches import Row, Tx, make_batch

from ggshell.clock import FakeClock
from ggshell.language.expressions import parse_expression
from ggshell.pipeline.transform.compiler import Scope, compile_expression
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.table import MAKERS
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import Value
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.types import TableName

COLUMNS = {
    "id": "integer",
    "name": "text",
    "price": "numeric(10,2)",
    "made": "timestamp without time zone",
    "data": "bytea",
    "code": "character varying(10)",
}
T = TableDefinition(TableName("hr", "t"), tuple(Column(name, type_name) for name, type_name in COLUMNS.items()), (0,))
Given = dict[str, str | None]


def image(values: Given) -> bytes:
    """An image of some columns by name."""
    places = [(list(COLUMNS).index(name), value) for name, value in values.items()]
    return encode_image((place, None if value is None else value.encode()) for place, value in sorted(places))


def batch_of(given: Sequence[Given], io_type: int = IoType.INSERT) -> ChangeBatch:
    return make_batch([Tx(10, [Row(T, io_type, image(values)) for values in given])])


def rows_of(batch: ChangeBatch) -> Rows:
    return Rows(batch, np.arange(len(batch)))


def scope(environment: Environment | None = None, length: int | None = None) -> Scope:
    return Scope(T, environment or Environment(FakeClock()), MAKERS, frozenset({"q"}), (0,), length)


def values(text: str, batch: ChangeBatch, environment: Environment | None = None) -> list[Value]:
    """An expression's values for all rows of a batch."""
    found = compile_expression(parse_expression(text), scope(environment))
    return found.evaluate(rows_of(batch))


def value(text: str, length: int | None = None, **given: str | None) -> Value:
    """An expression's value for one row; checks that many rows at once give the same."""
    node = compile_expression(parse_expression(text), scope(length=length))
    alone = node.evaluate(rows_of(batch_of([given])))
    many = node.evaluate(rows_of(batch_of([given] * 20)))
    assert many == alone * 20
    return alone[0]
