"""Table definitions in Metadata records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ggshell.record.definition import Column, TableDefinition
from ggshell.trail.markers import decode_definition, encode_definition
from ggshell.types import TableName

texts = st.text(min_size=1, max_size=9)
columns = st.builds(
    Column, texts, texts, st.integers(0, 1 << 32), st.booleans(), st.integers(0, 1600), st.none() | st.text(max_size=9)
)


@st.composite
def definitions(draw: st.DrawFn) -> TableDefinition:
    found = draw(st.lists(columns, max_size=5))
    key = draw(st.sets(st.integers(0, max(0, len(found) - 1)))) if found else set[int]()
    return TableDefinition(TableName(draw(texts), draw(texts)), tuple(found), tuple(sorted(key)))


@given(definitions())
def test_a_definition_is_read_as_it_was_written(definition: TableDefinition) -> None:
    assert decode_definition(encode_definition(definition)) == definition


def test_a_definition_of_an_earlier_version_has_no_numbers_and_no_values_of_earlier_rows() -> None:
    found = decode_definition(b'{"owner":"a","table":"b","key":[0],"columns":[["id","integer",23,false]]}')
    assert found.columns == (Column("id", "integer", 23, False, 0, None),)
