"""Each reader of a lake sees the values that docs/types.md describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from batches import Row
from deliveries import BEGIN, Deliveries
from lakes import Lake, image
from readers import tables_of_readers

from ggshell.connectors.lake.target import TableForm
from ggshell.connectors.lake.types import FROM_MARIADB, FROM_POSTGRESQL
from ggshell.connectors.type_pairs import KindPairs
from ggshell.query.values import texts
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def kinds(table: KindPairs) -> TableDefinition:
    """A table with a column for each type."""
    columns = (Column(f"c{place}", pair.source, 0) for place, pair in enumerate(table.pairs))
    return TableDefinition(TableName("hr", "kinds"), (Column("id", "integer", 23), *columns), (0,))


@pytest.mark.parametrize("lake", list(TableForm), indirect=True)
def test_types_of_users_are_not_taken_for_those_of_mariadb_with_the_same_names(lake: Lake) -> None:
    """PostgreSQL writes types on the search path without their schema: domains, enums, composite types."""
    values = {
        "double": "123456789012345.123456789012345",
        "datetime": "late",
        "tinyint": "70000",
        "blob": "a text",
        "timestamp": "(1,2)",
    }
    columns = (Column(name, name, 16384 + number) for number, name in enumerate(values))
    definition = TableDefinition(TableName("hr", "kinds"), (Column("id", "integer", 23), *columns), (0,))
    rows = [Row(definition, IoType.INSERT, image("1", *values.values()))]
    Deliveries(lake).batch(0, BEGIN, lake.write(rows))
    for reader, read in tables_of_readers(lake.target, definition.name).items():
        assert read.select(list(values)).to_pylist() == [values], reader


@pytest.mark.parametrize("table", [FROM_POSTGRESQL, FROM_MARIADB], ids=lambda table: table.source)
@pytest.mark.parametrize("lake", list(TableForm), indirect=True)
def test_every_reader_sees_the_values_of_the_page(lake: Lake, table: KindPairs, spark: SparkSession) -> None:
    examples: list[list[tuple[str, str | None]]] = [
        [*pair.values.items(), *((value, None) for value in pair.refused)] for pair in table.pairs
    ]
    count = max(map(len, examples))
    filled = [column + [column[0]] * (count - len(column)) for column in examples]
    definition = kinds(table)
    rows = [
        Row(definition, IoType.INSERT, image(str(row), *(column[row][0] for column in filled))) for row in range(count)
    ]
    Deliveries(lake).batch(0, BEGIN, lake.write(rows))
    for reader, read in tables_of_readers(lake.target, definition.name, spark).items():
        ordered = read.sort_by("id")
        for place, column in enumerate(filled):
            found = texts(ordered[f"c{place}"].combine_chunks()).to_pylist()
            assert found == [wanted for _, wanted in column], (reader, table.pairs[place].source)
