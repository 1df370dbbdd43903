"""DuckDB as a target: exactly once, in bulk, and row by row after an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from connectors.duckdb.duckdb_deliveries import CHECKPOINTS, DuckDBDeliveries
from pipeline.apply.hand_made import (
    BEGIN,
    T,
    batches_after,
    delete,
    image,
    insert,
    key_update,
    placed,
    trail,
    update,
    workload,
)

from ggshell.clock import FakeClock
from ggshell.connectors.duckdb import session
from ggshell.connectors.duckdb.checkpoint_sql import DuckCheckpointTables
from ggshell.connectors.duckdb.session import target_table
from ggshell.connectors.duckdb.target import GATHER_SECONDS, DuckTarget
from ggshell.errors import ApplyError, ConflictError, DatabaseError, NotFoundError
from ggshell.pipeline.apply.checkpoint_table import transaction_table
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, Response, Switches
from ggshell.pipeline.apply.folding import ChangeKind, changes, statement_rows
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import join_key_update
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName, TrailPosition


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_changes_gives_the_rows_of_the_source(deliveries: DuckDBDeliveries, seed: int) -> None:
    if seed % 2:  # A second unique column: rows may not exchange its values.
        deliveries.execute("ALTER TABLE t ADD COLUMN c integer", "CREATE UNIQUE INDEX beside ON t (c)")
    transactions, rows = workload(seed, 60)
    delivery = deliveries.start(group=5, gather=(50_000, 40)[seed // 2 % 2])
    for batch in trail(transactions, rows_a_batch=37):
        delivery.feed(batch)
    delivery.flush()
    assert deliveries.content() == rows


@pytest.mark.slow
def test_after_a_crash_at_any_point_everything_is_applied_once(deliveries: DuckDBDeliveries) -> None:
    transactions, rows = workload(7, 60)
    batches = trail(transactions, rows_a_batch=11)
    for _ in range(len(batches) + 1):
        delivery = deliveries.start(group=4, gather=20)
        assert delivery.applied is not None
        for batch in batches_after(batches, delivery.applied.position)[:3]:
            delivery.feed(batch)
        if delivery.applied.csn == Csn(transactions[-1].csn):
            break
        if len(batches_after(batches, delivery.applied.position)) <= 3:
            delivery.flush()
    assert deliveries.content() == rows
    ((csn, low),) = deliveries.execute(f"SELECT log_csn, log_cmplt_csn FROM {CHECKPOINTS}")
    assert csn == low == str(Csn(transactions[-1].csn))


def test_nothing_is_confirmed_or_visible_before_the_commit(deliveries: DuckDBDeliveries) -> None:
    delivery = deliveries.start(group=2)
    delivery.feed(trail([Tx(n, [insert(n), insert(100 + n)]) for n in range(1, 6)])[0])
    assert delivery.applied is not None
    assert delivery.applied.csn is None
    assert delivery.pending
    deliveries.close()  # As a kill would: what was not committed is lost.
    assert deliveries.content() == {}
    assert deliveries.execute(f"SELECT log_csn FROM {CHECKPOINTS}") == [(None,)]


def test_many_groups_share_one_commit_and_the_limit_is_kept(deliveries: DuckDBDeliveries) -> None:
    batches = trail([Tx(n, [insert(10 * n + k) for k in range(3)]) for n in range(1, 5)])
    delivery = deliveries.start(group=3)
    delivery.feed(batches[0])
    assert deliveries.target is not None
    assert deliveries.target.confirmed == 0
    delivery.flush()
    assert deliveries.target.confirmed == 4
    delivery = deliveries.start(limit=2, gather=2)
    delivery.feed(placed(make_batch([Tx(9, [insert(90 + k) for k in range(5)])]), 5000))
    assert deliveries.target.confirmed == 2
    assert delivery.applied is not None
    assert delivery.applied.split is not None
    delivery = deliveries.start(limit=2, gather=2)
    delivery.feed(placed(make_batch([Tx(9, [insert(90 + k) for k in range(5)])]), 5000))
    delivery.flush()
    assert len(deliveries.content()) == 17


def test_a_commit_waits_for_other_groups_for_a_limited_time(deliveries: DuckDBDeliveries) -> None:
    clock = FakeClock()
    delivery = deliveries.start(group=1, clock=clock)
    assert deliveries.target is not None
    for n, batch in enumerate(trail([Tx(n, [insert(n)]) for n in range(1, 5)], rows_a_batch=1)):
        delivery.feed(batch)
        assert deliveries.target.confirmed == (3 if n >= 2 else 0)
        clock.advance(GATHER_SECONDS * 0.6)


def test_changes_of_one_key_are_merged_into_few_statements(deliveries: DuckDBDeliveries) -> None:
    deliveries.start()
    assert deliveries.target is not None
    table = deliveries.target.describe(TableName("main", "t"))
    assert table is not None
    rows = [insert(n) for n in range(50)] + [update(n, f"u{k}") for k in range(9) for n in range(50)]
    rows += [delete(n) for n in range(25)] + [insert(n, "again") for n in range(25)]
    batch = make_batch([Tx(1, rows)])
    mapping = Mapper([MapRule("hr.*", "main.*")], lambda _: table).resolve(T)
    assert mapping is not None
    made = list(statement_rows(changes(batch, 0, len(batch), {0: mapping})))
    assert [(work.kind, len(work.rows)) for work in made] == [
        (ChangeKind.INSERT, 50),
        (ChangeKind.DELETE, 25),
        (ChangeKind.INSERT, 25),
    ]
    assert {row[1] for row in made[0].rows} == {b"u8"}


def test_a_refused_row_is_named_and_earlier_transactions_are_committed(
    deliveries: DuckDBDeliveries, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    delivery = deliveries.start(discard=discard)
    delivery.feed(trail([Tx(1, [insert(1)]), Tx(2, [insert(2), insert(3, "x", "no number")]), Tx(3, [insert(4)])])[0])
    with pytest.raises(ApplyError, match=r"insert on main\.t \(id = 3\) failed: .*no number"):
        delivery.flush()
    assert list(deliveries.content()) == [1]
    assert "no number" in discard.path.read_text()
    assert delivery.applied is not None
    assert delivery.applied.csn == Csn(1)


def test_a_missing_row_is_refused(deliveries: DuckDBDeliveries) -> None:
    delivery = deliveries.start()
    delivery.feed(trail([Tx(1, [insert(1), update(2, "y")])])[0])
    with pytest.raises(ApplyError, match="no row was found to change") as raised:
        delivery.flush()
    assert raised.value.code == "OGG-01403"
    assert deliveries.content() == {}


def test_collisions_are_handled_row_by_row(deliveries: DuckDBDeliveries) -> None:
    deliveries.execute("INSERT INTO t VALUES (1, 'old', 1), (5, 'old', 5), (6, 'old', 6)")
    delivery = deliveries.start(responses=Responses(switches=Switches(collisions=True)))
    delivery.feed(
        trail(
            [
                Tx(1, [insert(0), insert(1, "new"), update(2, "none"), delete(3)]),
                Tx(2, [key_update(4, 7, "moved"), key_update(5, 6, "took"), insert(8)]),
            ]
        )[0]
    )
    delivery.flush()
    assert deliveries.content() == {0: "x", 1: "new", 6: "took", 7: "moved", 8: "x"}


def test_a_discarded_row_does_not_affect_the_others_of_its_transaction(
    deliveries: DuckDBDeliveries, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    responses = Responses([ErrorRule("DEFAULT", Response.DISCARD)])
    delivery = deliveries.start(discard=discard, responses=responses)
    rows = [insert(n, "x", "no number" if n in (3, 7) else "1.5") for n in range(10)]
    delivery.feed(trail([Tx(1, rows), Tx(2, [insert(20)])])[0])
    delivery.flush()
    assert sorted(deliveries.content()) == [0, 1, 2, 4, 5, 6, 8, 9, 20]


def test_a_large_transaction_is_applied_while_it_is_read_and_rolled_back_to_a_savepoint(
    deliveries: DuckDBDeliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggshell.pipeline.apply.groups.LARGE_BYTES", 2000)
    monkeypatch.setattr("ggshell.pipeline.apply.delivery.MARK_BYTES", 3000)
    rows = [insert(n, "x" * 100, "no number" if n == 95 else "1.5") for n in range(120)]
    responses = Responses([ErrorRule("DEFAULT", Response.IGNORE)])
    delivery = deliveries.start(responses=responses)
    for batch in trail([Tx(1, rows), Tx(2, [insert(500)])], rows_a_batch=10):
        delivery.feed(batch)
        if delivery.large:
            deliveries.execute("SELECT count(*) FROM t")
    delivery.flush()
    assert sorted(deliveries.content()) == [*(n for n in range(120) if n != 95), 500]


def test_in_a_table_without_a_key_only_one_of_several_equal_rows_is_deleted(deliveries: DuckDBDeliveries) -> None:
    deliveries.execute("CREATE TABLE k (a varchar, b decimal(10, 2))")
    table = TableDefinition(TableName("hr", "k"), (Column("a", "text"), Column("b", "numeric")), ())
    full = image("x", "1.5")
    rows = [Row(table, IoType.INSERT, full)] * 3
    rows += [
        Row(table, IoType.DELETE, full),
        Row(table, IoType.KEY_FIELD_COMP, join_key_update(full, image("y", None))),
    ]
    delivery = deliveries.start()
    delivery.feed(trail([Tx(1, rows)])[0])
    delivery.flush()
    assert sorted(row[0] for row in deliveries.execute("SELECT a FROM k")) == ["x", "y"]


def test_parent_and_child_rows_stay_in_order(deliveries: DuckDBDeliveries) -> None:
    deliveries.execute(
        "CREATE TABLE p (id integer PRIMARY KEY)", "CREATE TABLE c (id integer PRIMARY KEY, p integer REFERENCES p)"
    )
    parent = TableDefinition(TableName("hr", "p"), (Column("id", "integer"),), (0,))
    child = TableDefinition(TableName("hr", "c"), (Column("id", "integer"), Column("p", "integer")), (0,))
    rows = []
    for n in range(5):
        rows += [Row(parent, IoType.INSERT, image(str(n))), Row(child, IoType.INSERT, image(str(n), str(n)))]
    rows.append(Row(child, IoType.DELETE, image("2")))
    delivery = deliveries.start()
    delivery.feed(trail([Tx(1, rows)])[0])
    delivery.flush()
    assert deliveries.execute("SELECT count(*) FROM c") == [(4,)]


def test_a_table_is_described_with_keys_and_types(deliveries: DuckDBDeliveries) -> None:
    deliveries.execute(
        "CREATE TABLE p (id integer PRIMARY KEY)",
        'CREATE TABLE d (id bigint, "a b" varchar, n decimal(5, 1), g integer GENERATED ALWAYS AS (id + 1),'
        " p integer REFERENCES p, PRIMARY KEY (p, id), UNIQUE (n))",
        'CREATE UNIQUE INDEX one ON d ("a b")',
    )
    connection = session.connect(deliveries.login)
    try:
        found = target_table(connection, TableName("main", "d"))
        parent = target_table(connection, TableName("main", "p"))
        assert found is not None
        assert parent is not None
        assert target_table(connection, TableName("main", "nothing")) is None
        assert found.key == ("p", "id")
        assert set(found.unique) == {frozenset({"p", "id"}), frozenset({"n"}), frozenset({"a b"})}
        assert [column.writable for column in found.columns] == [True, True, True, False, True]
        assert [key.parent for key in found.foreign] == [TableName("main", "p")]
        assert (parent.referenced, found.referenced, found.opaque) == (True, False, False)
        session.execute(connection, "CREATE UNIQUE INDEX two ON p ((id + 1))")
        again = target_table(connection, TableName("main", "p"))
        assert again is not None
        assert again.opaque
    finally:
        connection.close()


def test_a_missing_checkpoint_table_or_row_stops_the_delivery(deliveries: DuckDBDeliveries) -> None:
    with pytest.raises(NotFoundError, match="ADD CHECKPOINTTABLE"):
        DuckTarget(deliveries.login, "rep1", "/home", TableName("main", "other"), BEGIN)
    delivery = deliveries.start()
    deliveries.execute(f"DELETE FROM {CHECKPOINTS}")
    delivery.feed(trail([Tx(1, [insert(1)])])[0])
    with pytest.raises(ApplyError, match="no row in checkpoint table"):
        delivery.flush()
    assert deliveries.content() == {}


def test_nodbcheckpoint_stores_no_position(deliveries: DuckDBDeliveries) -> None:
    target = DuckTarget(deliveries.login, "rep1", "/home", None, TrailPosition(0, 0))
    assert target.checkpoint() is None
    target.close()


def test_the_current_row_is_returned_in_the_format_of_the_source(deliveries: DuckDBDeliveries) -> None:
    deliveries.execute(
        "CREATE TABLE w (id integer PRIMARY KEY, truth boolean, raw blob, moment timestamptz, nothing text)",
        "INSERT INTO w VALUES (1, true, '\\x00\\xFF', '2026-01-02 03:04:05.5+02', NULL)",
    )
    names = ("id integer", "truth boolean", "raw bytea", "moment timestamp with time zone", "nothing text")
    columns = tuple(Column(*name.split(" ", 1)) for name in names)
    source = TableDefinition(TableName("hr", "w"), columns, (0,))
    deliveries.start()
    assert deliveries.target is not None
    mapping = Mapper([MapRule("hr.*", "main.*")], deliveries.target.describe).resolve(source)
    assert mapping is not None
    assert deliveries.target.fetch(mapping, {0: b"2"}) is None
    assert deliveries.target.fetch(mapping, {0: b"1"}) == {
        0: b"1",
        1: b"t",
        2: b"\\x00ff",
        3: b"2026-01-02 01:04:05.5+00",
        4: None,
    }


@pytest.mark.parametrize("value", ["2.5", "1e-05"])
def test_a_fraction_is_not_rounded_to_an_integer(deliveries: DuckDBDeliveries, value: str) -> None:
    deliveries.execute("CREATE TABLE i (id integer PRIMARY KEY, n integer)")
    source = TableDefinition(TableName("hr", "i"), (Column("id", "numeric"), Column("n", "numeric")), (0,))
    delivery = deliveries.start()
    delivery.feed(trail([Tx(1, [Row(source, IoType.INSERT, image("1", "2"))])])[0])
    delivery.flush()
    delivery.feed(placed(make_batch([Tx(2, [Row(source, IoType.INSERT, image("2", value))])]), 5000))
    with pytest.raises(ApplyError, match=f'invalid input for type INTEGER: "{value}"'):
        delivery.flush()
    assert deliveries.execute("SELECT * FROM i") == [(1, 2)]


def test_an_incomplete_checkpoint_table_can_be_completed(tmp_path: Path) -> None:
    connection = session.connect(session.login_of(tmp_path / "target.duckdb"))
    tables = DuckCheckpointTables(connection)
    try:
        tables.create(CHECKPOINTS)
        connection.execute("DROP TABLE checks_lox")
        with pytest.raises(ConflictError) as raised:
            tables.create(CHECKPOINTS)
        assert "UPGRADE CHECKPOINTTABLE" in str(raised.value.hint)
        assert tables.upgrade(CHECKPOINTS) == ["checks_lox"]
        connection.execute("DROP TABLE checks")
        tables.create(CHECKPOINTS)
        assert tables.groups(CHECKPOINTS) == []
    finally:
        connection.close()


def test_an_upgrade_changes_tables_and_version_together(tmp_path: Path) -> None:
    connection = session.connect(session.login_of(tmp_path / "target.duckdb"))
    tables = DuckCheckpointTables(connection)
    try:
        tables.create(CHECKPOINTS)
        tables.insert(CHECKPOINTS, "r", 1, CheckpointRow(TrailPosition(0, 0), None), "/home")
        connection.execute("DROP TABLE checks_lox")
        connection.execute("ALTER TABLE checks DROP COLUMN log_bsn")
        connection.execute("ALTER TABLE checks RENAME COLUMN version TO edition")
        with pytest.raises(DatabaseError, match="version"):
            tables.upgrade(CHECKPOINTS)
        assert not tables.exists(transaction_table(CHECKPOINTS))
        connection.execute("ALTER TABLE checks RENAME COLUMN edition TO version")
        assert tables.upgrade(CHECKPOINTS) == ["log_bsn", "checks_lox"]
    finally:
        connection.close()
