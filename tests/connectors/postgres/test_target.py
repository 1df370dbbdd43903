"""PostgreSQL as a target: table descriptions, sending, durability; COPY text and arrays on their own."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from batches import Tx, make_batch
from hypothesis import given
from hypothesis import strategies as st
from pipeline.apply.hand_made import CHECKPOINTS, Replicats, image, insert, placed, trail, update

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.row_formats import array_literal, copy_text, runs_of_distinct
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.connectors.postgres.target_tables import target_table
from ggshell.errors import ConnectionLostError, NotFoundError
from ggshell.pipeline.apply.target import SessionOptions
from ggshell.record.fields import split_image, values_of, walk
from ggshell.record.image import encode_image
from ggshell.types import TableName, TrailPosition

VALUES = st.one_of(st.none(), st.binary(max_size=12), st.just(b"x" * 70_000), st.sampled_from([b"\\", b"\t\n\r", b'"']))
ROWS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=6)
)


def slow_copy(rows: list[list[bytes | None]]) -> bytes:
    def text(value: bytes | None) -> bytes:
        if value is None:
            return b"\\N"
        value = value.replace(b"\\", b"\\\\").replace(b"\t", b"\\t")
        return value.replace(b"\n", b"\\n").replace(b"\r", b"\\r")

    return b"".join(b"\t".join(map(text, row)) + b"\n" for row in rows)


@given(ROWS)
def test_many_images_are_read_like_single_ones(rows: list[list[bytes | None]]) -> None:
    images = [encode_image(enumerate(row)) for row in rows]
    length = np.array([len(found) for found in images], dtype=np.int64)
    start = np.cumsum(length) - length
    buffer = b"".join(images)
    fields = walk(np.frombuffer(buffer, dtype=np.uint8), start, length)
    assert fields is not None
    assert [split_image(found) for found in images] == [(tuple(range(len(row))), row) for row in rows]
    assert list(map(list, zip(*(values_of(buffer, field) for field in fields), strict=True))) == rows
    assert copy_text(np.frombuffer(buffer, dtype=np.uint8), fields) == slow_copy(rows)


def test_images_with_different_columns_are_not_read_together() -> None:
    images = [image("1", "a"), image("2", columns=[0]), image("3", "x", columns=[0, 2])]
    for pair in ((0, 1), (0, 2)):
        length = np.array([len(images[n]) for n in pair], dtype=np.int64)
        raw = np.frombuffer(b"".join(images[n] for n in pair), dtype=np.uint8)
        assert walk(raw, np.cumsum(length) - length, length) is None


@pytest.mark.parametrize(
    ("values", "literal"),
    [
        ([b"a", b"b"], b'{"a","b"}'),
        ([b"a", None], b'{"a",NULL}'),
        ([b'q"', b"\\"], b'{"q\\"","\\\\"}'),
        ([b""], b'{""}'),
    ],
)
def test_values_as_an_array(values: list[bytes | None], literal: bytes) -> None:
    assert array_literal(values) == literal


def test_no_part_contains_a_key_twice() -> None:
    assert runs_of_distinct([1, 2, 3]) == [(0, 3)]
    assert runs_of_distinct([1, 2, 1, 3, 3]) == [(0, 2), (2, 4), (4, 5)]


def test_a_table_is_described_with_keys_types_and_parents(south: str) -> None:
    with session.connect(south) as connection:
        connection.execute(
            "CREATE TABLE p (id integer PRIMARY KEY); CREATE DOMAIN d AS timestamp(3)[]; CREATE DOMAIN e AS d;"
            "CREATE TABLE c (id bigint GENERATED ALWAYS AS IDENTITY, p integer REFERENCES p ON DELETE CASCADE, j json,"
            " n numeric(5,1), g integer GENERATED ALWAYS AS (p + 1) STORED, t char(3), js json[], at e,"
            " PRIMARY KEY (p, id), UNIQUE (n));"
            "CREATE UNIQUE INDEX ON c (t) WHERE p > 0; CREATE UNIQUE INDEX ON c (lower(t))"
        )
        table = target_table(connection, TableName("public", "c"))
        assert table is not None
        assert table.key == ("p", "id")
        assert table.unique == (frozenset({"p", "id"}), frozenset({"n"}))
        assert table.cascades == (TableName("public", "p"),)
        by_name = {column.name: column for column in table.columns}
        assert by_name["id"].identity_always
        assert not by_name["g"].writable
        assert (by_name["j"].comparable, by_name["js"].comparable, by_name["n"].comparable) == (False, False, True)
        assert (by_name["n"].exact, by_name["p"].exact) == (False, True)
        assert (by_name["n"].type_name, by_name["n"].base_type) == ("numeric(5,1)", "numeric")
        assert by_name["t"].base_type == "bpchar"
        assert (by_name["at"].type_name, by_name["at"].holds) == ("e", "timestamp(3) without time zone[]")
        assert by_name["t"].holds == by_name["t"].type_name
        assert target_table(connection, TableName("public", "nothing")) is None


def test_a_value_too_long_for_its_column_is_refused_by_every_method(replicats: Replicats) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("ALTER TABLE t ALTER a TYPE varchar(3)")
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(n, "abc") for n in range(30)])])[0])
    replicat.flush()
    replicat.feed(placed(make_batch([Tx(2, [update(n, "abcd" if n == 20 else "xyz") for n in range(30)])]), 9000))
    with pytest.raises(Exception, match="value too long") as raised:
        replicat.flush()
    assert "id = 20" in str(raised.value)


def test_durable_answers_while_a_commit_is_in_progress(replicats: Replicats) -> None:
    replicat = replicats.start(group=1)
    target = replicats.target
    assert target is not None
    replicat.feed(trail([Tx(n, [insert(n)]) for n in range(1, 5)])[0])
    target.durable()
    replicat.flush()
    target.durable()
    with session.connect(replicats.dsn) as connection:
        in_progress = connection.execute(
            "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() - 65536"
        ).fetchall()
        assert in_progress == [(True,)]
    assert replicat.applied is not None
    assert target.confirmed == 4


def test_a_server_that_goes_away_and_comes_back(replicats: Replicats) -> None:
    replicat = replicats.start()
    batches = trail([Tx(n, [insert(n)]) for n in range(1, 4)], rows_a_batch=1)
    replicat.feed(batches[0])
    replicat.flush()
    replicat.feed(batches[1])
    with session.connect(replicats.dsn) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ggshell rep%%'"
        )
    with pytest.raises(ConnectionLostError):
        replicat.flush()
    row = replicat.restart()
    assert row is not None
    assert row.position == TrailPosition(0, 1001)
    for batch in batches[1:]:
        replicat.feed(batch)
    replicat.flush()
    with session.connect(replicats.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_without_a_checkpoint_table_none_is_written(replicats: Replicats) -> None:
    target = PostgresTarget(replicats.dsn, "rep2", "/home", None, TrailPosition(0, 0))
    assert target.checkpoint() is None
    target.close()
    with pytest.raises(NotFoundError, match="nowhere"):
        PostgresTarget(replicats.dsn, "rep2", "/home", TableName("public", "nowhere"), TrailPosition(0, 0))


def test_triggers_can_be_suppressed(replicats: Replicats) -> None:
    target = PostgresTarget(
        replicats.dsn, "rep3", "/", CHECKPOINTS, TrailPosition(0, 0), options=SessionOptions(suppress_triggers=True)
    )
    assert target._connection.execute("SHOW session_replication_role").fetchall() == [("replica",)]
    target.close()


def test_a_transaction_of_200_000_rows_needs_little_memory(replicats: Replicats) -> None:
    replicat = replicats.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(100):
        fresh = [insert(number * 2000 + n, "some text that fills the row a little") for n in range(2000)]
        batch = placed(make_batch([Tx(1, fresh, number == 0, number == 99)]), 1000 + number * 2000)
        replicat.feed(batch)
    replicat.flush()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    with session.connect(replicats.dsn) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(200_000,)]
    assert grown < 60_000


def test_references_show_whether_they_have_the_text_of_their_parents(south: str) -> None:
    with session.connect(south) as connection:
        session.execute(
            connection,
            "CREATE TABLE p (id numeric PRIMARY KEY, code int8 UNIQUE, name text UNIQUE, day timestamp UNIQUE,"
            " UNIQUE (code, name))",
        )
        session.execute(
            connection,
            "CREATE TABLE c (a int4 REFERENCES p, b int4 REFERENCES p (code), c varchar REFERENCES p (name),"
            " d date REFERENCES p (day), FOREIGN KEY (b, c) REFERENCES p (code, name))",
        )
        child, parent = (target_table(connection, TableName("public", name)) for name in "cp")
    assert child is not None
    assert parent is not None
    assert {each.columns: each.same_text for each in child.foreign} == {
        ("a",): False,
        ("b",): True,
        ("c",): True,
        ("d",): False,
        ("b", "c"): True,
    }
    found = ({"id"}, {"code"}, {"name"}, {"day"}, {"code", "name"})
    assert set(parent.referred) == set(map(frozenset, found))


def test_a_table_is_referenced_by_foreign_keys_of_any_table(south: str) -> None:
    with session.connect(south) as connection:
        for statement in (
            "CREATE TABLE parent (id int PRIMARY KEY)",
            "CREATE TABLE child (id int PRIMARY KEY REFERENCES parent)",
            "CREATE TABLE tree (id int PRIMARY KEY, above int REFERENCES tree)",
            "CREATE TABLE parted (x int, y int, PRIMARY KEY (x, y)) PARTITION BY RANGE (x)",
            "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (9)",
            "CREATE TABLE leaf (x int, y int, FOREIGN KEY (x, y) REFERENCES parted)",
        ):
            connection.execute(statement)
        found = {
            name: target_table(connection, TableName("public", name))
            for name in ("parent", "child", "tree", "parted", "parted_low", "leaf")
        }
    assert {name for name, table in found.items() if table and table.referenced} == {
        *("parent", "tree", "parted", "parted_low")
    }
