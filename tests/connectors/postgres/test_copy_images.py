"""An initial load reads rows with the same bytes as the log has."""

from __future__ import annotations

import random
from pathlib import Path

import psycopg
import pytest
from connectors.postgres.slot_reading import capturing, prepare
from processes import until

from ggshell.connectors.postgres.table_copy import TableCopy, images_of_copy
from ggshell.errors import DatabaseError
from ggshell.record.change import ChangeBatch
from ggshell.record.image import LONGEST_SHORT, decode_image
from ggshell.types import TableName

SLOTS = "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'ggs_load%'"
AWKWARD = ["", "a", "\\", "\\\\", "\\N", "\t", "\n", "\\\t\\", "\r\b\f\v", "N", "ä€", "\\\\N", "x" * 20, None]


def escaped(value: str | None) -> str:
    """A value in the text format of COPY."""
    if value is None:
        return "\\N"
    text = value.replace("\\", "\\\\")
    for character, letter in zip("\b\f\n\r\t\v", "bfnrtv", strict=True):
        text = text.replace(character, "\\" + letter)
    return text


def images(rows: list[list[str | None]]) -> list[list[tuple[int, bytes | None]]]:
    text = "".join("\t".join(map(escaped, row)) + "\n" for row in rows).encode()
    found = images_of_copy(text, len(rows[0]))
    return [
        decode_image(found.buffer[start : start + length].tobytes())
        for start, length in zip(found.start.tolist(), found.length.tolist(), strict=True)
    ]


def wanted(rows: list[list[str | None]]) -> list[list[tuple[int, bytes | None]]]:
    return [[(index, None if value is None else value.encode()) for index, value in enumerate(row)] for row in rows]


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_every_value_is_read_back_unchanged(columns: int) -> None:
    numbers = random.Random(columns)
    rows = [[numbers.choice(AWKWARD) for _ in range(columns)] for _ in range(500)]
    assert images(rows) == wanted(rows)


def test_very_long_values_among_short_ones() -> None:
    rows: list[list[str | None]] = [["1", "a"], ["2", "\\" * (LONGEST_SHORT + 1)], ["3", None], [None, "y" * 70_000]]
    assert images(rows) == wanted(rows)


def _rows(batches: list[ChangeBatch]) -> list[list[tuple[int, bytes | None]]]:
    return [
        decode_image(bytes(batch.buffer[start : start + length]))
        for batch in batches
        for start, length in zip(batch.start.tolist(), batch.length.tolist(), strict=True)
    ]


def test_the_snapshot_contains_every_commit_up_to_its_csn_and_none_after_it(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, b bool)")
        source.execute("INSERT INTO t VALUES (1, DEFAULT, true), (2, DEFAULT, NULL)")
        before = source.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        copy = TableCopy.open(north, "LOAD1", _wait_readable)
        assert copy is not None
        source.execute("INSERT INTO t VALUES (3, DEFAULT, false)")
        after = source.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        until("its slot, which would retain the log, is dropped", lambda: source.execute(SLOTS).fetchone() == (0,))
    assert before is not None
    assert after is not None
    assert before[0] <= copy.csn.value <= after[0]
    (table,) = copy.tables(["public.t"], lambda _: True, lambda _: ())
    assert table.definition.name == TableName("public", "t")
    batches = list(copy.read(1, table))
    copy.close()
    assert _rows(batches) == [[(0, b"1"), (1, b"t")], [(0, b"2"), (1, None)]]
    assert [(piece.begins, piece.ends) for batch in batches for piece in batch.pieces] == [(True, True)]


def test_a_table_has_the_same_definition_in_a_load_as_in_the_log(north: str, tmp_path: Path) -> None:
    """Regression: without the table's number, a column that is renamed after the load was another column."""
    with psycopg.connect(north, autocommit=True) as source:
        source.execute(
            "CREATE TABLE t (id int PRIMARY KEY, gone int, a text, twice int GENERATED ALWAYS AS (id * 2) STORED)"
        )
        source.execute("INSERT INTO t VALUES (1, 1, 'a')")
        source.execute("ALTER TABLE t DROP gone, ADD later text DEFAULT 'é'")
        start = prepare(north, "public.t")
        copy = TableCopy.open(north, "LOAD1", _wait_readable)
        assert copy is not None
        (loaded,) = copy.tables(["public.t"], lambda _: True, lambda _: ())
        copy.close()
        source.execute("INSERT INTO t VALUES (2, 'b')")
    found: list[ChangeBatch] = []
    with capturing(north, start, tmp_path) as capture:
        until("the row is captured", lambda: found.extend(filter(None, [capture.read(0.2)])) or bool(found))
    assert found[0].tables == (loaded.definition,)
    assert [(each.number & 0xFFFF, each.missing) for each in loaded.definition.columns] == [
        (1, None),
        (3, None),
        (5, "é"),
    ]


def test_a_stop_within_a_table_leaves_its_transaction_without_an_end(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE t (id int PRIMARY KEY, filler text)")
        source.execute("INSERT INTO t SELECT n, repeat('x', 200) FROM generate_series(1, 60000) n")
    running = [True]
    copy = TableCopy.open(north, "LOAD1", lambda descriptor: running[0] and _wait_readable(descriptor))
    assert copy is not None
    (table,) = copy.tables(["public.t"], lambda _: True, lambda _: ())
    pieces = []
    for batch in copy.read(1, table):
        pieces += batch.pieces
        running[0] = False
    copy.close()
    assert pieces[0].begins
    assert not any(piece.ends for piece in pieces)


def test_a_table_with_rows_that_row_security_hides_is_refused(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        source.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY seen ON t USING (id < 2)")
        source.execute("CREATE ROLE clerk LOGIN REPLICATION; GRANT SELECT ON t TO clerk")
        try:
            copy = TableCopy.open(f"{north} user=clerk", "LOAD1", _wait_readable)
            assert copy is not None
            with pytest.raises(DatabaseError, match=r"row security applies to the user for public\.t"):
                copy.tables(["public.t"], lambda _: True, lambda _: ())
            copy.close()
        finally:
            source.execute("DROP OWNED BY clerk; DROP ROLE clerk")


REWRITES = {
    "type": "ALTER TABLE t ALTER v TYPE bigint",
    "partition": "ALTER TABLE parts DETACH PARTITION first",
    "type of a partition": "ALTER TABLE parts ALTER v TYPE bigint",
}


@pytest.mark.parametrize("statement", REWRITES.values(), ids=REWRITES)
def test_a_table_that_is_rewritten_after_the_snapshot_is_refused(north: str, statement: str) -> None:
    """Its rows are not visible in the snapshot any more."""
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1), (2)")
        source.execute("CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY LIST (id)")
        source.execute("CREATE TABLE first PARTITION OF parts FOR VALUES IN (1); INSERT INTO parts VALUES (1)")
        copy = TableCopy.open(north, "LOAD1", _wait_readable)
        assert copy is not None
        source.execute(statement)
        with pytest.raises(DatabaseError, match="after the snapshot was taken"):
            copy.tables(["public.*"], lambda _: True, lambda _: ())
        copy.close()


def test_ddl_waits_until_a_load_has_read_the_tables(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1), (2)")
        copy = TableCopy.open(north, "LOAD1", _wait_readable)
        assert copy is not None
        (table,) = copy.tables(["public.t"], lambda _: True, lambda _: ())
        source.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            source.execute("ALTER TABLE t ALTER v TYPE bigint")
        assert sum(len(batch) for batch in copy.read(1, table)) == 2
        copy.close()


def test_child_tables_come_after_their_parents(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE z (id int PRIMARY KEY)")
        source.execute("CREATE TABLE m (id int PRIMARY KEY REFERENCES z, self int REFERENCES m)")
        source.execute("CREATE TABLE a (id int PRIMARY KEY REFERENCES m)")
        source.execute("CREATE TABLE b (id int PRIMARY KEY, c int)")
        source.execute("CREATE TABLE c (id int PRIMARY KEY REFERENCES b)")
        source.execute("ALTER TABLE b ADD FOREIGN KEY (c) REFERENCES c")
    copy = TableCopy.open(north, "LOAD1", _wait_readable)
    assert copy is not None
    found = [table.definition.name.name for table in copy.tables(["public.*"], lambda _: True, lambda _: ())]
    some = [table.definition.name.name for table in copy.tables(["public.a", "public.z"], lambda _: True, lambda _: ())]
    copy.close()
    assert found == ["z", "m", "a", "c", "b"]
    assert some == ["z", "a"]


def _wait_readable(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 30)[0])


def test_the_number_of_rows_is_estimated_with_and_without_statistics(north: str) -> None:
    with psycopg.connect(north, autocommit=True) as source:
        source.execute("CREATE TABLE small (id int)")
        source.execute("INSERT INTO small SELECT generate_series(1, 500)")
        source.execute("CREATE TABLE large (id int, v text)")
        source.execute("INSERT INTO large SELECT n, repeat('x', 100) FROM generate_series(1, 100000) n")
        source.execute("CREATE TABLE parts (id int) PARTITION BY LIST (id)")
        source.execute("CREATE TABLE first PARTITION OF parts FOR VALUES IN (1)")
        source.execute("CREATE TABLE other PARTITION OF parts DEFAULT")
        source.execute("INSERT INTO parts SELECT n % 3 FROM generate_series(1, 900) n")
        source.execute("CREATE TABLE empty (id int)")
        source.execute("CREATE TABLE analyzed AS SELECT generate_series(1, 700) AS id")
        source.execute("ANALYZE analyzed")
        copy = TableCopy.open(north, "LOAD1", _wait_readable)
    assert copy is not None
    names = ("small", "large", "parts", "empty", "analyzed")
    try:
        found = {name: copy.about(TableName("public", name)) for name in names}
    finally:
        copy.close()
    assert (found["small"], found["parts"], found["empty"], found["analyzed"]) == (500, 900, 0, 700)
    assert 95_000 < found["large"] < 105_000
