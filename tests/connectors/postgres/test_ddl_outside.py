"""DDL statements that run outside of a transaction, and their repetition after a crash before the checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from batches import Row, Tx
from connectors.postgres.ddl_batches import NAME, add_column, ddl, feed, query, run
from pipeline.apply.hand_made import Replicats, batches_after, insert, trail

from ggshell.connectors.postgres import session
from ggshell.errors import ApplyError
from ggshell.pipeline.apply.ddl_parts import ddl_parts
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.ddl import DdlObject
from ggshell.types import Csn, TableName

INDEX = TableName("hr", "t_a")
ON_T = (DdlObject("INDEX", INDEX, NAME),)
CREATE = ddl("CREATE INDEX CONCURRENTLY t_a ON hr.t (a)", "CREATE INDEX", objects=ON_T)
DROP = ddl("DROP INDEX CONCURRENTLY hr.t_a", "DROP INDEX", objects=(DdlObject("INDEX", INDEX, None),))
REINDEX = ddl("REINDEX TABLE CONCURRENTLY hr.t", "REINDEX", objects=ON_T)
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('public.t_a')"


def crash_before_the_checkpoint(replicats: Replicats, statement: Row) -> None:
    """Execute a statement without its checkpoint row, as a process that is killed in between, and start again."""
    replicat = replicats.start()
    batches = trail([Tx(1, [insert(1)]), Tx(2, [statement]), Tx(3, [insert(2)])])
    feed(replicat, list(ddl_parts(batches[0]))[:1])
    applied = replicat.applied
    assert applied is not None
    assert replicats.target is not None
    target = replicats.target
    target.commit = lambda row, ids=(): _killed(row)  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        feed(replicat, batches_after(batches, applied.position))
    again = replicats.start()
    assert again.applied is not None
    assert again.applied.csn == Csn(1)
    feed(again, batches_after(batches, again.applied.position))
    assert query(replicats, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def _killed(row: CheckpointRow) -> None:
    raise KeyboardInterrupt


def test_an_index_is_made_outside_of_a_transaction(replicats: Replicats) -> None:
    replicat = replicats.start()
    feed(replicat, trail([Tx(1, [insert(1)]), Tx(2, [CREATE]), Tx(3, [insert(2), add_column()])]))
    assert query(replicats, VALID) == [(True,)]
    feed(replicat, trail([Tx(4, [REINDEX]), Tx(5, [DROP])]))
    assert query(replicats, VALID) == []
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(5)


@pytest.mark.parametrize("statement", [CREATE, REINDEX])
def test_a_statement_is_repeated_after_a_crash(replicats: Replicats, statement: Row) -> None:
    crash_before_the_checkpoint(replicats, statement)
    assert query(replicats, VALID) == ([(True,)] if statement is CREATE else [])


def test_a_dropped_index_is_not_missed_after_a_crash(replicats: Replicats) -> None:
    run(replicats, "CREATE INDEX t_a ON t (a)")
    crash_before_the_checkpoint(replicats, DROP)
    assert query(replicats, VALID) == []


def test_an_invalid_index_of_an_interrupted_statement_is_made_again(replicats: Replicats) -> None:
    run(
        replicats,
        "CREATE INDEX t_a ON t (b)",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_a'::regclass",
    )
    feed(replicats.start(), trail([Tx(2, [CREATE])]))
    assert query(replicats, VALID) == [(True,)]
    assert "(a)" in str(query(replicats, "SELECT pg_get_indexdef('t_a'::regclass)"))


def test_an_index_that_exists_is_an_error_in_the_middle_of_a_run(replicats: Replicats) -> None:
    run(replicats, "CREATE INDEX t_a ON t (b)")
    with pytest.raises(ApplyError, match="already exists"):
        feed(replicats.start(), trail([Tx(1, [insert(1)]), Tx(2, [CREATE])]))
    assert query(replicats, "SELECT id FROM t") == [(1,)]


@pytest.mark.parametrize("found", ["attached", "pending", "detached"])
def test_a_partition_is_detached_once(replicats: Replicats, found: str) -> None:
    run(
        replicats,
        "CREATE TABLE p (id int) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (10)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
    )
    if found == "pending":
        _interrupt_detach(replicats)
    elif found == "detached":
        run(replicats, "ALTER TABLE p DETACH PARTITION p1")
    parent = TableName("hr", "p")
    detach = ddl("ALTER TABLE hr.p DETACH PARTITION hr.p1 CONCURRENTLY", "ALTER TABLE", parent)
    feed(replicats.start(), trail([Tx(1, [detach])]))
    assert query(replicats, "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'p'::regclass") == [
        ("p2",)
    ]


def _interrupt_detach(replicats: Replicats) -> None:
    """Leave a partition that is half detached: the statement waits for a reader, and is canceled then."""
    import psycopg

    with session.connect(replicats.dsn) as reader, session.connect(replicats.dsn) as connection:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT * FROM p")
        connection.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY")
    assert query(replicats, "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = 'p1'::regclass") == [(True,)]


def test_a_statement_that_is_not_alone_is_refused_by_the_target(replicats: Replicats) -> None:
    rows: Sequence[Row] = [insert(1), CREATE]
    with pytest.raises(ApplyError, match="cannot run inside a transaction block"):
        feed(replicats.start(), trail([Tx(1, rows)]))
    assert query(replicats, "SELECT count(*) FROM t") == [(0,)]
