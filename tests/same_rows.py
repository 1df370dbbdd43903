"""Compares two schemas of the demo as COMPARE does, for tests that need no shell."""

from __future__ import annotations

from contextlib import closing

from ggshell.connectors.postgres.compare_side import PostgresComparison
from ggshell.connectors.postgres.session import connect
from ggshell.pipeline.compare.tables import ComparedTable, compare_tables, table_pairs


def unequal_tables(source: str, target: str, source_schema: str, target_schema: str) -> dict[str, ComparedTable]:
    """The tables of a schema that differ or cannot be compared, by their names in the target."""
    with closing(connect(source)) as north, closing(connect(target)) as south:
        databases = PostgresComparison(north), PostgresComparison(south)
        pairs = table_pairs(databases, [f"{source_schema}.*"], f"{target_schema}.*")
        found = list(compare_tables(databases, pairs, 0.0, lambda _: False))
    return {str(each.target): each for each in found if each.differences or each.problem}
