"""GETTRUNCATES decides whether TRUNCATE is passed on, and so do conditions on other facts than those of a row."""

from __future__ import annotations

import numpy as np
import pytest
from batches import Row, Tx, make_batch, read_rows

from ggshell.clock import FakeClock
from ggshell.language.clauses import FilterClause, parse_clause
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.projection import projected
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.selection import Selection
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

T = TableDefinition(TableName("s", "t"), (Column("a", "integer"),), (0,))


@pytest.mark.parametrize(("wanted", "left"), [(True, [5, 100, 100]), (False, [5])])
def test_truncate_is_passed_on_only_if_requested(wanted: bool, left: list[int]) -> None:
    truncate = Row(T, IoType.PURGE_DATA, b"")
    batch = make_batch([Tx(1, [Row(T, IoType.INSERT, b"x"), truncate]), Tx(2, [truncate])])
    parts = list(Selection(lambda _: True, truncates=wanted).select(batch))
    assert [row[2] for part in parts for row in read_rows(part)] == left
    assert all(part.pieces[-1].ends for part in parts)


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("@STRCMP (@GETENV ('TRANSACTION', 'CSN'), '00000000/00000001') > 0", [1]),
        ('@STRCMP (@GETENV ("TRANSACTION", "CSN"), "00000000/00000001") > 0', [1]),
        ("@STREQ (@GETENV ('GGHEADER', 'OPTYPE'), 'INSERT') = 1", []),
        ("ON INSERT, @STREQ (@GETENV ('TRANSACTION', 'CSN'), 'x') = 1", [0, 1]),
        ("a > 5", [0, 1]),
        ("@RANGE (1, 2)", [0, 1]),
        ("@STRCMP (@GETENV ('TRANSACTION', 'CSN'), '00000000/00000001') > 0 AND a > 5", [0, 1]),
    ],
)
def test_a_condition_that_reads_no_row_decides_on_a_truncate(condition: str, left: list[int]) -> None:
    """A table that was loaded later must not lose its rows by a TRUNCATE from before its load."""
    table = T._replace(columns=(*T.columns, Column("csn", "text")))
    batch = make_batch([Tx(1, [Row(table, IoType.PURGE_DATA, b"")]), Tx(2, [Row(table, IoType.PURGE_DATA, b"")])])
    clause = parse_clause("filter", f"({condition})")
    assert isinstance(clause, FilterClause)
    program = projected(table, table.name, Clauses(filters=(clause,), source=condition), Environment(FakeClock()))
    assert program.run(Rows(batch, np.arange(2))).numbers.tolist() == left
