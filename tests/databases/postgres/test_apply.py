"""Replicat's side of PostgreSQL, against a real server: rows and checkpoint row together, and every refusal named."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch

from ggshell.apply.delivery import Delivery
from ggshell.apply.discard import DiscardFile
from ggshell.apply.mapping import Mapper, MapRule
from ggshell.clock import FakeClock
from ggshell.databases.postgres import checkpoint_sql, session
from ggshell.databases.postgres.target import PostgresTarget
from ggshell.errors import ApplyError, ConnectionLostError
from ggshell.record import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.types import Csn, TableName, TrailPosition

CHECKPOINTS = TableName("public", "ggs_checkpoint")
T = TableDefinition(
    TableName("hr", "t"), (Column("id", "integer"), Column("a", "text"), Column("b", "numeric")), (0,)
)  # fmt: skip
BEGIN = TrailPosition(0, 100)


def image(identity: int, a: str | None = "x", b: str | None = "1.5") -> bytes:
    return encode_image(
        [(0, b"%d" % identity), *((n, v.encode() if v is not None else None) for n, v in ((1, a), (2, b)))]
    )


def insert(identity: int, a: str | None = "x") -> Row:
    return Row(T, 5, image(identity, a))


def update(identity: int, a: str) -> Row:
    return Row(T, 15, encode_image([(0, b"%d" % identity), (1, a.encode())]))


def delete(identity: int) -> Row:
    return Row(T, 3, encode_image([(0, b"%d" % identity)]))


@pytest.fixture
def table(south: str) -> str:
    with session.connect(south) as connection:
        connection.execute("CREATE TABLE public.t (id integer PRIMARY KEY, a text, b numeric)")
        checkpoint_sql.create(connection, CHECKPOINTS)
    return south


def delivery(dsn: str, group: int = 1000, discard: DiscardFile | None = None) -> Delivery:
    target = PostgresTarget(dsn, "rep1", "/home", CHECKPOINTS, BEGIN)
    made = Delivery(
        target, Mapper([MapRule("hr.*", "public.*")], target.describe), group_operations=group, discard=discard
    )
    made.start()
    return made


def rows(dsn: str) -> list[tuple[object, ...]]:
    with session.connect(dsn) as connection:
        return connection.execute("SELECT id, a, b::text FROM t ORDER BY id").fetchall()


def test_rows_and_checkpoint_row_are_committed_together(table: str) -> None:
    replicat = delivery(table)
    assert replicat.applied is not None
    assert replicat.applied.position == BEGIN
    replicat.feed(make_batch([Tx(1, [insert(n) for n in range(50)]), Tx(2, [update(3, "y"), delete(4)])]))
    assert rows(table) == []
    replicat.flush()
    assert len(rows(table)) == 49
    again = delivery(table)
    assert again.applied is not None
    assert again.applied.csn == Csn(2)
    assert again.applied.xid == "702"


def test_guard_1_a_transaction_that_the_row_knows_is_skipped(table: str) -> None:
    batch = make_batch([Tx(1, [insert(1)]), Tx(2, [insert(2)])])
    first = delivery(table)
    first.feed(make_batch([Tx(1, [insert(1)])]))
    first.flush()
    again = delivery(table)
    again.feed(batch)
    again.flush()
    assert [row[0] for row in rows(table)] == [1, 2]


def test_guard_2_a_group_ends_only_behind_a_transaction(table: str) -> None:
    replicat = delivery(table, group=2)
    replicat.feed(make_batch([Tx(1, [insert(1), insert(2), insert(3)], ends=False)]))
    replicat.flush()
    assert rows(table) == []
    replicat.feed(make_batch([Tx(1, [insert(4)], begins=False), Tx(2, [insert(5)])]))
    assert len(rows(table)) == 4
    replicat.flush()
    assert len(rows(table)) == 5


def test_guard_4_what_comes_before_the_failing_transaction_stays_and_the_row_is_named(
    table: str, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    replicat = delivery(table, discard=discard)
    batch = make_batch([Tx(1, [insert(1)]), Tx(2, [insert(2), insert(1, "again")]), Tx(3, [insert(3)])])
    replicat.feed(batch)
    with pytest.raises(ApplyError) as raised:
        replicat.flush()
    assert "insert on public.t (id = 1) failed: duplicate key" in str(raised.value)
    assert "RBA" in raised.value.where
    assert [row[0] for row in rows(table)] == [1]
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(1)
    assert "a = again" in discard.path.read_text()


@pytest.mark.parametrize("change", [update(9, "z"), delete(9)])
def test_a_missing_row_is_an_error_that_names_its_key(table: str, change: Row) -> None:
    replicat = delivery(table)
    replicat.feed(make_batch([Tx(1, [change])]))
    with pytest.raises(ApplyError, match="id = 9") as raised:
        replicat.flush()
    assert raised.value.code == "OGG-01403"


def test_special_characters_and_nulls_survive_copy_and_statements(table: str) -> None:
    texts = ["tab\there", "new\nline", "back\\slash", "\\N", "", None, "ünï", "\r\x08\x0b\x0c"] * 4
    replicat = delivery(table)
    replicat.feed(make_batch([Tx(1, [insert(n, text) for n, text in enumerate(texts)])]))
    replicat.feed(make_batch([Tx(2, [insert(100 + n, text)]) for n, text in enumerate(texts[:8])][:1]))
    replicat.flush()
    assert [row[1] for row in rows(table)] == [*texts, texts[0]]


def test_random_operations_give_what_a_dictionary_gives(table: str) -> None:
    chance = random.Random(5)
    expected: dict[int, str] = {}
    transactions = []
    for csn in range(1, 120):
        changes = []
        for _ in range(chance.choice([1, 1, 3, 40])):
            kind = chance.random()
            if kind < 0.6 or not expected:
                identity = max(expected, default=0) + 1
                expected[identity] = "x"
                changes.append(insert(identity))
            elif kind < 0.75:
                identity = chance.choice(list(expected))
                expected[identity] = f"u{csn}"
                changes.append(update(identity, f"u{csn}"))
            elif kind < 0.9:
                identity = chance.choice(list(expected))
                del expected[identity]
                changes.append(delete(identity))
            else:
                identity, new = chance.choice(list(expected)), max(expected) + 1
                expected[new] = expected.pop(identity)
                before = encode_image([(0, b"%d" % identity)])
                changes.append(Row(T, 115, join_key_update(before, image(new, expected[new]))))
        transactions.append(Tx(csn, changes))
    replicat = delivery(table, group=50)
    for start in range(0, len(transactions), 7):
        replicat.feed(make_batch(transactions[start : start + 7]))
    replicat.flush()
    assert {row[0]: row[1] for row in rows(table)} == expected


def test_a_table_without_key_loses_exactly_one_of_equal_rows(south: str) -> None:
    with session.connect(south) as connection:
        connection.execute("CREATE TABLE n (a text, j json)")
        checkpoint_sql.create(connection, CHECKPOINTS)
    n = TableDefinition(TableName("hr", "n"), (Column("a", "text"), Column("j", "json")), ())
    whole = encode_image([(0, None), (1, b'{"k": 1}')])
    replicat = delivery(south)
    replicat.feed(make_batch([Tx(1, [Row(n, 5, whole)] * 3), Tx(2, [Row(n, 3, whole)])]))
    replicat.flush()
    with session.connect(south) as connection:
        assert connection.execute("SELECT count(*) FROM n").fetchall() == [(2,)]


def test_a_lost_connection_is_told_apart_and_the_table_decides(table: str) -> None:
    replicat = delivery(table)
    with session.connect(table) as connection:
        replicat.feed(make_batch([Tx(1, [insert(1)])]))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ggshell rep%%'"
        )
    with pytest.raises(ConnectionLostError):
        replicat.flush()
    again = delivery(table)
    again.feed(make_batch([Tx(1, [insert(1)])]))
    again.flush()
    assert len(rows(table)) == 1


def test_a_missing_target_table_or_column_is_named(table: str) -> None:
    replicat = delivery(table)
    other = TableDefinition(TableName("hr", "other"), (Column("id", "integer"),), (0,))
    with pytest.raises(ApplyError, match=r"public.other does not exist"):
        replicat.feed(make_batch([Tx(1, [Row(other, 5, encode_image([(0, b"1")]))])]))
    wider = TableDefinition(T.name, (*T.columns, Column("extra", "text")), (0,))
    with pytest.raises(ApplyError, match="no column extra"):
        replicat.feed(make_batch([Tx(1, [Row(wider, 5, image(1))])]))
