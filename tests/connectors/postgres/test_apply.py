"""Delivery to a real PostgreSQL server: grouping, the guarantees, restarts, errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from pipeline.apply.hand_made import (
    BEGIN,
    CHECKPOINTS,
    FIRST_RBA,
    Replicats,
    T,
    batches_after,
    delete,
    image,
    insert,
    key_update,
    placed,
    trail,
    truncate,
    update,
)

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import checkpoint_sql, session, session_locks
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.errors import ApplyError, ConflictError, ConnectionLostError, GgsError, NotFoundError
from ggshell.pipeline.apply.checkpoint_table import group_key
from ggshell.pipeline.apply.counters import OperationCounters
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName, TrailPosition


def query(dsn: str, text: str) -> list[tuple[object, ...]]:
    with session.connect(dsn) as connection:
        return [(*row,) for row in connection.execute(text).fetchall()]


def identities(replicats: Replicats) -> list[object]:
    return [row[0] for row in query(replicats.dsn, "SELECT id FROM t ORDER BY id")]


def content(replicats: Replicats) -> dict[object, object]:
    return {row[0]: row[1] for row in query(replicats.dsn, "SELECT id, a FROM t")}


def test_guarantee_1_transactions_covered_by_the_checkpoint_row_are_skipped(replicats: Replicats) -> None:
    batches = trail([Tx(n, [insert(n), insert(100 + n)]) for n in range(1, 6)], rows_a_batch=3)
    first = replicats.start()
    for batch in batches[:2]:
        first.feed(batch)
    first.flush()
    assert first.applied is not None
    assert first.applied.csn == Csn(3)
    restarted = replicats.start()
    for batch in batches:
        restarted.feed(batch)
    restarted.flush()
    assert len(identities(replicats)) == 10


def test_guarantee_1_transactions_with_the_same_csn_are_distinguished_by_xid(replicats: Replicats) -> None:
    def same(*xids: str) -> list[Tx]:
        return [Tx(7, [insert(int(xid))]) for xid in xids]

    def named(transactions: list[Tx], *xids: str) -> object:
        batch = placed(make_batch(transactions))
        pieces = [
            piece.__class__(piece.header._replace(xid=xid), piece.first, piece.count, piece.begins, piece.ends)
            for piece, xid in zip(batch.pieces, xids, strict=True)
        ]
        return batch.__class__(**{**{f: getattr(batch, f) for f in batch.__slots__}, "pieces": tuple(pieces)})

    first = replicats.start()
    first.feed(named(same("1", "2"), "1", "2"))  # type: ignore[arg-type]
    first.flush()
    restarted = replicats.start()
    restarted.feed(named(same("1", "2", "3"), "1", "2", "3"))  # type: ignore[arg-type]
    restarted.flush()
    assert identities(replicats) == [1, 2, 3]
    assert query(replicats.dsn, "SELECT log_cmplt_xids FROM ggs_checkpoint") == [("1,2,3",)]


ROUTED = """
CREATE TABLE part () INHERITS (t);
CREATE FUNCTION route () RETURNS trigger LANGUAGE plpgsql AS
 $$ BEGIN INSERT INTO part SELECT new.*; RETURN NULL; END $$;
CREATE TRIGGER route BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION route ()"""


def test_a_truncate_that_leaves_rows_where_a_trigger_has_stored_them_is_refused(replicats: Replicats) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute(ROUTED)
    delivery = replicats.start()
    for batch in trail([Tx(1, [insert(1), insert(2), update(2, "y")])]):
        delivery.feed(batch)
    delivery.flush()
    assert content(replicats) == {1: "x", 2: "y"}
    with pytest.raises(ApplyError, match="tables that inherit from it still have rows"):
        _feed_all(replicats.start(), [Tx(1, [insert(1), insert(2), update(2, "y")]), Tx(2, [truncate()])])
    with session.connect(replicats.dsn) as connection:
        connection.execute("TRUNCATE part")
    _feed_all(replicats.start(), [Tx(1, [insert(1), insert(2), update(2, "y")]), Tx(2, [truncate()])])
    assert content(replicats) == {}


def _feed_all(delivery: Delivery, transactions: list[Tx]) -> None:
    for batch in trail(transactions):
        delivery.feed(batch)
    delivery.flush()


@pytest.mark.parametrize("rows", [1, 100])
def test_a_rule_of_the_target_applies_to_many_rows_as_to_one(replicats: Replicats, rows: int) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("CREATE TABLE noted (id int)")
        connection.execute("CREATE RULE note AS ON INSERT TO t DO ALSO INSERT INTO noted VALUES (new.id)")
    _feed_all(replicats.start(), [Tx(1, [insert(number) for number in range(rows)])])
    assert query(replicats.dsn, "SELECT count(*) FROM noted") == [(rows,)]


def test_guarantee_2_a_group_ends_only_after_a_transaction(replicats: Replicats) -> None:
    replicat = replicats.start(group=2)
    batches = trail([Tx(1, [insert(n) for n in range(5)]), Tx(2, [insert(9)])], rows_a_batch=3)
    replicat.feed(batches[0])
    replicat.flush()
    assert identities(replicats) == []
    assert replicat.pending
    replicat.feed(batches[1])
    replicat.flush()
    assert len(identities(replicats)) == 6
    assert not replicat.pending


def test_guarantee_2_a_split_transaction_is_continued_where_it_was_split(replicats: Replicats) -> None:
    batches = trail([Tx(1, [insert(0)]), Tx(2, [insert(n) for n in range(1, 30)]), Tx(3, [insert(30)])], 11)
    for stop in range(1, 3):
        replicat = replicats.start(limit=4)
        assert replicat.applied is not None
        for batch in batches_after(batches, replicat.applied.position)[:stop]:
            replicat.feed(batch)
        replicat._await_answers()
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(1)
    assert replicat.applied.split is not None
    assert replicat.applied.position == TrailPosition(0, FIRST_RBA + 1)
    assert query(replicats.dsn, "SELECT log_csn, log_cmplt_csn FROM ggs_checkpoint") == [(str(Csn(2)), str(Csn(1)))]
    replicat = replicats.start(limit=4)
    assert replicat.applied is not None
    for batch in batches_after(batches, replicat.applied.position):
        replicat.feed(batch)
    replicat.flush()
    assert identities(replicats) == list(range(31))
    assert query(replicats.dsn, "SELECT max(n) FROM (SELECT count(*) n FROM t GROUP BY xmin) x") == [(4,)]


def test_guarantee_3_the_checkpoint_row_has_the_position_after_the_last_row(replicats: Replicats) -> None:
    transactions = [Tx(n, [insert(10 * n + k) for k in range(n % 3 + 1)]) for n in range(1, 12)]
    batches = trail(transactions, rows_a_batch=4)
    expected, seen = [], 0
    for transaction in transactions:
        seen += len(transaction.rows)
        expected.append(seen)
    replicat = replicats.start(group=1)
    for batch in batches:
        replicat.feed(batch)
        replicat.flush()
        assert replicat.applied is not None
        done = expected[replicat.applied.csn.value - 1] if replicat.applied.csn is not None else 0
        assert replicat.applied.position == (TrailPosition(0, FIRST_RBA + done) if done else BEGIN)
        assert len(identities(replicats)) == done
    row = PostgresCheckpointTables(session.connect(replicats.dsn)).read(CHECKPOINTS, "REP1", group_key("rep1", "/home"))
    assert row == replicat.applied


def test_guarantee_4_transactions_before_the_failing_one_are_kept_and_the_row_is_named(
    replicats: Replicats, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    replicat = replicats.start(discard=discard)
    (batch,) = trail([Tx(1, [insert(1)]), Tx(2, [insert(2), insert(1, "again")]), Tx(3, [insert(3)])])
    replicat.feed(batch)
    with pytest.raises(ApplyError) as raised:
        replicat.flush()
    assert "insert on public.t (id = 1) failed: duplicate key" in str(raised.value)
    assert "SQLSTATE 23505" in str(raised.value)
    assert raised.value.where == f"trail file 0, RBA {FIRST_RBA + 2}"
    assert str(discard.path) in raised.value.hint
    assert identities(replicats) == [1]
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(1)
    lines = discard.path.read_text().splitlines()
    assert f"Operation failed at seqno 0 rba {FIRST_RBA + 2}" in lines
    assert "Problem replicating hr.t to public.t" in lines
    assert lines[lines.index("*") + 1 :] == ["id = 1", "a = again", "b = 1.5", "*"]


def test_guarantee_4_holds_if_the_error_appears_after_the_next_group_began(replicats: Replicats) -> None:
    replicat = replicats.start(group=2)
    transactions = [Tx(n, [insert(n)]) for n in range(1, 10)]
    transactions[2] = Tx(3, [insert(1, "twice")])
    with pytest.raises(ApplyError, match=r"id = 1"):
        for batch in trail(transactions, rows_a_batch=1):
            replicat.feed(batch)
        replicat.flush()
    assert identities(replicats) == [1, 2]
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(2)


def test_guarantee_4_a_deferred_constraint_names_the_transaction(replicats: Replicats) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("ALTER TABLE t ADD UNIQUE (b) DEFERRABLE INITIALLY DEFERRED")
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(1, b="1")]), Tx(2, [insert(2, b="1")]), Tx(3, [insert(3, b="3")])])[0])
    with pytest.raises(ApplyError, match="refuses to commit transaction 702"):
        replicat.flush()
    assert identities(replicats) == [1]


@pytest.mark.parametrize("change", [update(9, "z"), delete(9), key_update(9, 10)])
@pytest.mark.parametrize("others", [0, 40])
def test_the_error_for_a_missing_row_names_its_key(replicats: Replicats, change: Row, others: int) -> None:
    replicat = replicats.start()
    change_others = [
        update(100 + n, "u") if change.io_type != IoType.DELETE else delete(100 + n) for n in range(others)
    ]
    replicat.feed(trail([Tx(1, [insert(100 + n) for n in range(others)] or [insert(100)])])[0])
    replicat.feed(placed(make_batch([Tx(2, [*change_others, change])]), 5000))
    with pytest.raises(ApplyError, match="id = 9") as raised:
        replicat.flush()
    assert raised.value.code == "OGG-01403"
    assert raised.value.where.endswith(str(5000 + others))


def test_guarantee_5_statistics_count_confirmed_rows(replicats: Replicats) -> None:
    counts: Counter[int] = Counter()

    def counted(source: TableName, target: TableName, io_type: int, number: int) -> None:
        assert (str(source), str(target)) == ("hr.t", "public.t")
        counts[io_type] += number

    replicat = replicats.start(group=2, counters=OperationCounters(counted))
    replicat.feed(trail([Tx(1, [insert(1), insert(2)]), Tx(2, [update(1, "y")]), Tx(3, [insert(1), delete(2)])])[0])
    with pytest.raises(ApplyError):
        replicat.flush()
    assert counts == {IoType.INSERT: 2, IoType.FIELD_COMP: 1}


def test_guarantee_6_after_a_lost_connection_the_checkpoint_row_decides(replicats: Replicats) -> None:
    batches = trail([Tx(n, [insert(n)]) for n in range(1, 21)], rows_a_batch=5)
    replicat = replicats.start(group=3)
    with session.connect(replicats.dsn) as connection:
        replicat.feed(batches[0])
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ggshell rep%%'"
        )
    with pytest.raises(ConnectionLostError):
        for batch in batches[1:]:
            replicat.feed(batch)
        replicat.flush()
    row = replicat.restart()
    assert row is not None
    for batch in batches_after(batches, row.position):
        replicat.feed(batch)
    replicat.flush()
    assert identities(replicats) == list(range(1, 21))


def test_a_restart_after_any_transaction_gives_the_same_table(replicats: Replicats) -> None:
    transactions = [Tx(1, [insert(n) for n in range(25)])]
    transactions += [Tx(n, [update(n, f"v{n}"), delete(n - 1), insert(100 + n)]) for n in range(2, 14)]
    batches = trail(transactions, rows_a_batch=7)
    for stop in range(1, len(batches) + 1):
        replicat = replicats.start(group=4)
        assert replicat.applied is not None
        for batch in batches_after(batches, replicat.applied.position)[:stop]:
            replicat.feed(batch)
    replicat.flush()
    assert identities(replicats) == [0, *range(13, 25), *range(102, 114)]


@pytest.mark.parametrize(
    "state", ["40P01", "40001", "55P03"], ids=["deadlock", "serialization failure", "lock time-out"]
)
def test_a_temporary_error_is_retried(replicats: Replicats, state: str) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute(
            "CREATE SEQUENCE tries;"
            "CREATE FUNCTION stumble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF nextval('tries') < 3 THEN RAISE EXCEPTION 'stumbled' USING ERRCODE = '{state}'; END IF;"
            " RETURN NEW; END $$;"
            "CREATE TRIGGER stumble BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION stumble()"
        )
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(1)]), Tx(2, [insert(2)])])[0])
    replicat.flush()
    assert identities(replicats) == [1, 2]


def test_a_second_session_of_a_group_is_refused(replicats: Replicats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ggshell.connectors.postgres.session_locks.LOCK_SECONDS", 0.2)
    replicats.start()
    with pytest.raises(ConflictError, match="another session"):
        Replicats(replicats.dsn).start()


def test_the_time_limit_of_a_wait_for_appliers_ends_with_the_wait(
    replicats: Replicats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_locks, "LOCK_SECONDS", 0.2)
    with session.connect(replicats.dsn) as waiting:
        with session.connect(replicats.dsn) as applier:
            session.execute(applier, session_locks.applier_lock(), [checkpoint_sql.GROUP_LOCK | 7])
            with pytest.raises(ConflictError, match="another session is applying for group REP1"):
                session_locks.wait_for_appliers(waiting, "rep1", 7, "ggs_rep1")
            assert session.execute(waiting, "SHOW lock_timeout") == [("0",)]
        session_locks.wait_for_appliers(waiting, "rep1", 7, "ggs_rep1")
        assert session.execute(
            waiting, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'"
        ) == [(0,)]


@pytest.mark.parametrize(
    ("done", "error", "said"),
    [
        ("DELETE FROM ggs_checkpoint", ApplyError, "has no row in checkpoint table"),
        ("DROP TABLE ggs_checkpoint", NotFoundError, r"checkpoint table public\.ggs_checkpoint does not exist"),
    ],
    ids=["row", "table"],
)
def test_a_missing_checkpoint_row_stops_the_delivery(
    replicats: Replicats, done: str, error: type[GgsError], said: str
) -> None:
    replicat = replicats.start()
    with session.connect(replicats.dsn) as connection:
        connection.execute(done)
    replicat.feed(trail([Tx(1, [insert(1)])])[0])
    with pytest.raises(error, match=said):
        replicat.flush()
    assert identities(replicats) == []


OTHER = TableDefinition(TableName("hr", "other"), (Column("id", "integer"),), (0,))
WIDER = TableDefinition(T.name, (*T.columns, Column("extra", "text")), (0,))
STAMPED = TableDefinition(T.name, (*T.columns[:2], Column("b", "timestamp with time zone")), (0,))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (OTHER, r"public.other does not exist"),
        (WIDER, "no column extra"),
        (STAMPED, "b of target table public.t is numeric, which cannot hold the timestamp"),
    ],
    ids=["table", "column", "type"],
)
def test_a_missing_table_or_column_of_the_target_is_named(
    replicats: Replicats, table: TableDefinition, message: str
) -> None:
    replicat = replicats.start()
    with pytest.raises(ApplyError, match=message):
        replicat.feed(trail([Tx(1, [Row(table, 5, image("1"))])])[0])
