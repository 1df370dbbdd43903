"""DDL records: every statement is read back unchanged, and damaged data is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ggshell.record.ddl import DdlColumn, DdlObject, DdlStatement, ddl_pairs, decode_ddl, encode_ddl, object_definition
from ggshell.types import TableName

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.builds(TableName, TEXT, TEXT)
OBJECTS = st.builds(DdlObject, TEXT, NAMES, st.none() | NAMES)
COLUMNS = st.builds(DdlColumn, st.integers(1, 1600), TEXT, TEXT, st.integers(0, 2**32 - 1), st.booleans())
STATEMENTS = st.builds(
    DdlStatement,
    st.sampled_from(["CREATE TABLE", "ALTER INDEX", "DROP FUNCTION", "GRANT"]),
    TEXT,
    st.lists(OBJECTS, max_size=3).map(tuple),
    TEXT,
    st.dictionaries(TEXT, TEXT, max_size=3).map(lambda found: tuple(found.items())),
    TEXT,
    st.lists(COLUMNS, max_size=4).map(tuple),
)


@given(STATEMENTS)
def test_every_statement_is_read_back_unchanged(statement: DdlStatement) -> None:
    found = decode_ddl(encode_ddl(statement))
    assert found == statement


def test_a_record_is_readable_as_pairs_with_doubled_quotes() -> None:
    table = TableName("shop", "orders")
    statement = DdlStatement(
        "CREATE TABLE", "create table orders (a text default ',x=')", (DdlObject("TABLE", table, table),)
    )
    data = encode_ddl(statement)
    assert data.startswith(b",OWNER='shop',,NAME='orders',,TYPE='TABLE',,OPTYPE='CREATE',,TAG='CREATE TABLE',")
    assert ddl_pairs(data)["TEXT"] == statement.text
    assert object_definition(statement).name == table
    assert (statement.operation, statement.object_type) == ("CREATE", "TABLE")


@pytest.mark.parametrize("data", [b"x", b",TAG='a", b",TAG='a',,", b",TEXT='a',", b",TAG='a',,OBJECTS='[1]',"])
def test_damaged_data_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_ddl(data)
