"""Every type, applied by every method: COPY, single inserts, single and batch updates, deletes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import (
    CHECKPOINTS,
    Replicats,
    Value,
    delete,
    image,
    insert,
    key_update,
    trail,
    truncate,
    update,
    update_a,
)

from ggshell.connectors.postgres import apply_steps, session
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.errors import ApplyError
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName

LONG = "ä" * 40_000 + "\\end"
SAMPLES: dict[str, list[Value]] = {
    "smallint": ["-32768", None],
    "bigint": ["9223372036854775807", "0"],
    "numeric": ["NaN", "1." + "0" * 900 + "7"],
    "numeric(12,2)": ["-1234567890.10", None],
    "real": ["-Infinity", "1.1754944e-38"],
    "double precision": ["NaN", "0.1"],
    "money": ["$1,234.50", "-$0.01"],
    "boolean": ["t", "f"],
    "text": ["", "tab\t new\nline \\N back\\slash \"quoted\" 'single' {brace},NULL \r\x08\x0b\x0c ünï"],
    "varchar(5)": ["ab   ", None],
    "char(6)": ["ab    ", "abcdef"],
    '"char"': ["x", None],
    "name": ["some_name", ""],
    "bytea": ["\\x00ff5c0a", "\\x"],
    "date": ["infinity", "4713-01-01 BC"],
    "time": ["24:00:00", "00:00:00.000001"],
    "timetz": ["12:00:00+05:30", None],
    "timestamp": ["-infinity", "2024-02-29 23:59:59.999999"],
    "timestamptz": ["2024-03-31 01:30:00+00", "4714-11-24 00:00:00+00 BC"],
    "interval": ["1 year 2 mons -3 days +04:05:06.789", "00:00:00"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", None],
    "json": ['{"b": 1, "a" : [1,2], "b": 2}', "null"],
    "jsonb": ['{"a": "\\\\ \\" \\t"}', "null"],
    "inet": ["192.168.0.1/24", "fe80::1/64"],
    "cidr": ["10.0.0.0/8", None],
    "macaddr": ["08:00:2b:01:02:03", None],
    "bit(3)": ["101", None],
    "varbit": ["", "10111"],
    "point": ["(1,2)", None],
    "circle": ["<(1,2),3>", None],
    "polygon": ["((0,0),(1,1),(2,0))", None],
    "tsvector": ["'fat' 'rat'", ""],
    "int4range": ["empty", "[1,5)"],
    "tstzrange": ['["2024-01-01 00:00:00+00",)', None],
    "int4multirange": ["{[1,3),[5,7)}", "{}"],
    "integer[]": ["{}", "{{1,2},{NULL,4}}"],
    "text[]": ['{"a,b",NULL,"NULL","","q\\"\\\\"}', None],
    "json[]": ['{"{\\"a\\": 1}"}', None],
    "mood": ["sad", "so so"],
    "small": ["7", None],
    "pair": ['(1,"x,""y")', "(,)"],
    "oid": ["4294967295", None],
    "pg_lsn": ["16/B374D848", None],
}
EXTRA = """CREATE TYPE mood AS ENUM ('sad', 'so so');
CREATE DOMAIN small AS integer CHECK (VALUE < 10);
CREATE TYPE pair AS (a integer, b text)"""
COLUMNS = (Column("id", "integer"), Column("big", "text"), *(Column(f"c{n}", kind) for n, kind in enumerate(SAMPLES)))
WIDE = TableDefinition(TableName("hr", "wide"), COLUMNS, (0,))
HEAP = TableDefinition(TableName("hr", "heap"), COLUMNS, ())


def values(identity: int) -> list[Value]:
    return [str(identity), LONG if identity == 3 else "short", *(found[identity % 2] for found in SAMPLES.values())]


def changed(identity: int) -> list[Value]:
    """Another row with the same key."""
    return [str(identity), *values(identity + 1)[1:]]


@pytest.fixture
def wide(south: str) -> Iterator[Replicats]:
    names = ", ".join(f"c{n} {kind}" for n, kind in enumerate(SAMPLES))
    with session.connect(south) as connection:
        connection.execute(EXTRA)
        connection.execute(f"CREATE TABLE wide (id integer PRIMARY KEY, big text, {names})")
        connection.execute(f"CREATE TABLE heap (id integer, big text, {names})")
        PostgresCheckpointTables(connection).create(CHECKPOINTS)
    made = Replicats(south)
    yield made
    made.close()


def run(replicats: Replicats, *rows: Sequence[Row]) -> None:
    replicat = replicats.start()
    for batch in trail([Tx(csn, of_this) for csn, of_this in enumerate(rows, 1)]):
        replicat.feed(batch)
    replicat.flush()


def stored(replicats: Replicats, table: str) -> dict[int, list[Value]]:
    names = ", ".join(f"c{n}::text" if kind != "char(6)" else f"rpad(c{n}::text, 6)" for n, kind in enumerate(SAMPLES))
    with session.connect(replicats.dsn) as connection:
        found = connection.execute(f"SELECT id, big, {names} FROM {table} ORDER BY id").fetchall()
    return {row[0]: [str(row[0]), *row[1:]] for row in found}


def wanted(made: dict[int, list[Value]]) -> dict[int, list[Value]]:
    """Booleans are cast to text with other words than those used for sending."""
    place = 2 + list(SAMPLES).index("boolean")
    words: dict[Value, Value] = {"t": "true", "f": "false"}
    return {key: [*row[:place], words[row[place]], *row[place + 1 :]] for key, row in made.items()}


@pytest.mark.parametrize("number", [6, 50], ids=["alone", "together"])
def test_every_type_is_applied_by_insert_update_and_delete(wide: Replicats, number: int) -> None:
    inserts = [Row(WIDE, IoType.INSERT, image(*values(n))) for n in range(number)]
    updates = [Row(WIDE, IoType.FIELD_COMP, image(*changed(n))) for n in range(number)]
    deletes = [Row(WIDE, IoType.DELETE, image(str(n))) for n in range(0, number, 2)]
    run(wide, inserts)
    assert stored(wide, "wide") == wanted({n: values(n) for n in range(number)})
    replicat = wide.start()
    for batch in trail([Tx(1, inserts), Tx(2, updates)]):
        replicat.feed(batch)
    replicat.flush()
    assert stored(wide, "wide") == wanted({n: changed(n) for n in range(number)})
    replicat = wide.start()
    for batch in trail([Tx(1, inserts), Tx(2, updates), Tx(3, deletes)]):
        replicat.feed(batch)
    replicat.flush()
    assert stored(wide, "wide") == wanted({n: changed(n) for n in range(1, number, 2)})


def test_every_type_identifies_the_row_of_a_table_without_a_key(wide: Replicats) -> None:
    whole = [image(*values(n)) for n in (0, 1, 3)]
    inserts = [Row(HEAP, IoType.INSERT, found) for found in whole for _ in range(2)]
    new = image(*changed(0))
    run(
        wide,
        inserts,
        [Row(HEAP, IoType.KEY_FIELD_COMP, join_key_update(whole[0], new))],
        [Row(HEAP, IoType.DELETE, found) for found in whole],
    )
    with session.connect(wide.dsn) as connection:
        found = connection.execute("SELECT id, count(*) FROM heap GROUP BY id ORDER BY id").fetchall()
    assert found == [(0, 1), (1, 1), (3, 1)]
    assert stored(wide, "heap")[0] == wanted({0: changed(0)})[0]


def test_equal_numbers_in_different_notation_are_different_rows_without_a_key(south: str) -> None:
    with session.connect(south) as connection:
        connection.execute("CREATE TABLE n (v numeric) ; INSERT INTO n VALUES (1.0), (1.00)")
        PostgresCheckpointTables(connection).create(CHECKPOINTS)
    table = TableDefinition(TableName("hr", "n"), (Column("v", "numeric"),), ())
    replicats = Replicats(south)
    run(replicats, [Row(table, IoType.DELETE, image("1.00"))])
    replicats.close()
    with session.connect(south) as connection:
        assert connection.execute("SELECT v::text FROM n").fetchall() == [("1.0",)]


def test_generated_and_identity_columns_partitions_and_unusual_names(south: str) -> None:
    with session.connect(south) as connection:
        connection.execute(
            'CREATE TABLE "Select" (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "From" integer,'
            ' twice integer GENERATED ALWAYS AS ("From" * 2) STORED)'
        )
        connection.execute("CREATE TABLE parts (day date, v text) PARTITION BY RANGE (day)")
        for year in (2023, 2024):
            connection.execute(
                f"CREATE TABLE parts_{year} PARTITION OF parts FOR VALUES FROM ('{year}-01-01') TO ('{year + 1}-01-01')"
            )
        PostgresCheckpointTables(connection).create(CHECKPOINTS)
    odd = TableDefinition(
        TableName("hr", "Select"),
        (Column("id", "integer"), Column("From", "integer"), Column("twice", "integer")),
        (0,),
    )
    parts = TableDefinition(TableName("hr", "parts"), (Column("day", "date"), Column("v", "text")), ())
    rows: list[Row] = []
    for many in (1, 30):
        rows += [Row(odd, IoType.INSERT, image(str(100 * many + n), "1", "2")) for n in range(many)]
        rows += [Row(odd, IoType.FIELD_COMP, image(str(100 * many + n), "7", "14")) for n in range(many)]
    days = [Row(parts, IoType.INSERT, image(f"{year}-05-05", "x")) for year in (2023, 2024) for _ in range(2)]
    days.append(Row(parts, IoType.DELETE, image("2024-05-05", "x")))
    replicats = Replicats(south)
    run(replicats, rows, days)
    replicats.close()
    with session.connect(south) as connection:
        assert connection.execute('SELECT count(*), sum(twice) FROM "Select"').fetchall() == [(31, 31 * 14)]
        assert connection.execute("SELECT day::text, count(*) FROM parts GROUP BY 1 ORDER BY 1").fetchall() == [
            ("2023-05-05", 2),
            ("2024-05-05", 1),
        ]


@pytest.fixture
def numbered(south: str) -> Iterator[Replicats]:
    """Tables with an identity column GENERATED ALWAYS: ``i`` outside its key, ``k`` as its key, ``parents`` with children."""
    with session.connect(south) as connection:
        connection.execute(
            "CREATE TABLE i (id integer PRIMARY KEY, n integer GENERATED ALWAYS AS IDENTITY, v text, long text,"
            " twice integer GENERATED ALWAYS AS (n * 2) STORED)"
        )
        for name in ("k", "parents"):
            connection.execute(
                f"CREATE TABLE {name} (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text, long text)"
            )
        connection.execute("CREATE TABLE children (id integer REFERENCES parents ON DELETE CASCADE)")
        PostgresCheckpointTables(connection).create(CHECKPOINTS)
    made = Replicats(south)
    yield made
    made.close()


BESIDE = TableDefinition(TableName("hr", "i"), tuple(Column(n, "text") for n in ("id", "n", "v", "long")), (0,))


def keyed(name: str) -> TableDefinition:
    return TableDefinition(TableName("hr", name), tuple(Column(n, "text") for n in ("id", "v", "long")), (0,))


def test_an_identity_column_updated_outside_the_key_gets_its_value(numbered: Replicats) -> None:
    first = Row(BESIDE, IoType.INSERT, image("1", "50", "a", "kept"))
    run(numbered, [first], [Row(BESIDE, IoType.FIELD_COMP, image("1", "50", "b"))])
    assert one(numbered, "SELECT n, v, long, twice FROM i") == (50, "b", "kept", 100)
    replicat = numbered.start()
    replicat.feed(trail([Tx(3, [Row(BESIDE, IoType.FIELD_COMP, image("1", "51", "c"))])])[0])
    replicat.flush()
    assert one(numbered, "SELECT n, v, long, twice FROM i") == (51, "c", "kept", 102)
    replicat = numbered.start()
    replicat.feed(trail([Tx(4, [Row(BESIDE, IoType.FIELD_COMP, image("2", "51", "c"))])])[0])
    with pytest.raises(ApplyError, match="no row was found"):
        replicat.flush()


def test_an_identity_column_that_is_the_only_change_gets_its_value(numbered: Replicats) -> None:
    with session.connect(numbered.dsn) as connection:
        connection.execute("CREATE TABLE lone (id integer PRIMARY KEY, n integer GENERATED ALWAYS AS IDENTITY)")
    table = TableDefinition(TableName("hr", "lone"), tuple(Column(n, "text") for n in ("id", "n")), (0,))
    run(numbered, [Row(table, IoType.INSERT, image("1", "50"))], [Row(table, IoType.FIELD_COMP, image("1", "51"))])
    assert one(numbered, "SELECT * FROM lone") == (1, 51)


def test_update_set_id_default_of_an_identity_key_changes_the_key(numbered: Replicats) -> None:
    table = keyed("k")
    moved = Row(table, IoType.KEY_FIELD_COMP, join_key_update(image("1"), image("7", "b")))
    run(numbered, [Row(table, IoType.INSERT, image("1", "a", "kept"))], [moved])
    assert one(numbered, "SELECT * FROM k") == (7, "b", "kept")


def test_an_identity_key_with_child_rows_is_refused_with_a_hint(numbered: Replicats) -> None:
    table = keyed("parents")
    moved = Row(table, IoType.KEY_FIELD_COMP, join_key_update(image("1"), image("7", "b")))
    with pytest.raises(ApplyError) as raised:
        run(numbered, [Row(table, IoType.INSERT, image("1", "a", "kept"))], [moved])
    assert "GENERATED ALWAYS AS IDENTITY" in str(raised.value)
    with session.connect(numbered.dsn) as connection:
        connection.execute("ALTER TABLE parents ALTER COLUMN id SET GENERATED BY DEFAULT")
    run(numbered, [Row(table, IoType.INSERT, image("1", "a", "kept"))], [moved])
    assert one(numbered, "SELECT * FROM parents") == (7, "b", "kept")


def one(replicats: Replicats, query: str) -> tuple[object, ...]:
    with session.connect(replicats.dsn) as connection:
        (row,) = connection.execute(query).fetchall()
    return (*row,)


def history(rng: random.Random) -> tuple[list[Tx], dict[int, tuple[Value, Value]]]:
    """Random transactions, and the resulting table."""
    state: dict[int, tuple[Value, Value]] = {}
    transactions = []
    for csn in range(1, 60):
        rows: list[Row] = []
        kind = rng.random()
        for n in range(rng.choice([1, 1, 2, 5, 45])):
            some = rng.choice(list(state)) if state else None
            text = rng.choice([None, "", f"t{csn}", "a\\b\t\n", f"{n}"])
            if some is None or kind < 0.4:
                identity = max(state, default=0) + 1
                state[identity] = (text, "1.50")
                rows.append(insert(identity, text, "1.50"))
            elif kind < 0.6:
                state[some] = (text, "2")
                rows.append(update(some, text, "2"))
            elif kind < 0.7:
                state[some] = (text, state[some][1])
                rows.append(update_a(some, text))
            elif kind < 0.85:
                del state[some]
                rows.append(delete(some))
            elif kind < 0.98:
                identity = max(state) + 1
                state[identity] = (text, state.pop(some)[1])
                rows.append(key_update(some, identity, *state[identity]))
            else:
                state.clear()
                rows.append(truncate())
        transactions.append(Tx(csn, rows))
    return transactions, state


@pytest.mark.parametrize("seed", range(8))
def test_random_histories_give_the_same_rows_by_every_method(
    south: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    transactions, state = history(rng)
    with session.connect(south) as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY, a text, b numeric)")
    for bulk_rows, group, limit in ((1 << 30, 1, None), (1, 1000, None), (5, 20, None), (20, 1000, 7)):
        monkeypatch.setattr(apply_steps, "BULK_ROWS", bulk_rows)
        with session.connect(south) as connection:
            connection.execute("TRUNCATE t; DROP TABLE IF EXISTS ggs_checkpoint, ggs_checkpoint_lox")
            PostgresCheckpointTables(connection).create(CHECKPOINTS)
        replicats = Replicats(south)
        replicat = replicats.start(group=group, limit=limit)
        for batch in trail(transactions, rng.choice([3, 17, 100])):
            replicat.feed(batch)
        replicat.flush()
        replicats.close()
        with session.connect(south) as connection:
            found = connection.execute("SELECT id, a, b::text FROM t").fetchall()
        assert {row[0]: (row[1], row[2]) for row in found} == state
