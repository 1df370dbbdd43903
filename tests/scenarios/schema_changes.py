"""Schema changes during replication, as cases: each in both orders, the target first and the source first.

Rows are written before, between and after the two changes. In the order *source first* a Replicat may
abend; then the target is changed and the Replicat started again. Either way both sides are equal at the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from scenarios.case import Case, Step

KEY = "id int PRIMARY KEY"


class Change(NamedTuple):
    """A table, the rows of its old shape, the change, and the rows of its new shape; ``{n}``: a number that no row has yet.

    ``rounds``: a target of the old shape accepts new rows without an error but rounds them; the report names the column, so
    the order *source first* writes old rows until the target follows. ``refused``: the error of a target of the new shape for
    old rows; ``back`` makes it accept them. ``converts``: USING computes other values from old ones, which no target can know,
    so the source is changed first.
    """

    name: str
    table: str
    rows: str
    change: str
    new_rows: str
    rounds: bool = False
    refused: str = ""
    back: str = ""
    converts: bool = False
    equal: str = "t"
    trandata: str = Case.trandata
    extract: str = Case.extract


def _type(
    name: str,
    old: str,
    new: str,
    value: str,
    new_value: str,
    *,
    using: str = "",
    rounds: bool = False,
    converts: bool = False,
    equal: str = "t",
) -> Change:
    how = f" USING {using}" if using else ""
    return Change(
        f"type {name}",
        f"CREATE TABLE t ({KEY}, v {old});",
        f"INSERT INTO t VALUES ({{n}}, {value}); UPDATE t SET v = {value} WHERE id = {{n}};",
        f"ALTER TABLE t ALTER v TYPE {new}{how};",
        f"INSERT INTO t VALUES ({{n}}, {new_value}); UPDATE t SET v = {new_value} WHERE id = {{n}} - 1;",
        rounds=rounds,
        converts=converts,
        equal=equal,
    )


TYPES = [
    _type("smallint to int", "smallint", "int", "7", "70000"),
    _type("int to bigint", "int", "bigint", "7", "5000000000"),
    _type("int to numeric", "int", "numeric", "7", "7.25"),
    _type("int to text", "int", "text", "7", "'seven'"),
    _type("bigint to numeric", "bigint", "numeric", "7", "99999999999999999999"),
    _type("real to double", "real", "float8", "0.5", "0.123456789012345", rounds=True),
    _type("double to numeric", "float8", "numeric", "0.1", "0.12345678901234567890123", rounds=True),
    _type("money to numeric", "money", "numeric", "'1.25'", "1.23456", using="v::numeric", rounds=True, converts=True),
    _type("numeric to wider numeric", "numeric(6,2)", "numeric(20,6)", "1.25", "1.234567", rounds=True),
    _type("numeric to any numeric", "numeric(6,2)", "numeric", "1.25", "12345678.123456789"),
    _type("date to timestamp", "date", "timestamp", "'2026-01-01'", "'2026-01-01 10:11:12.123456'", rounds=True),
    _type("date to timestamptz", "date", "timestamptz", "'2026-01-01'", "'2026-01-01 10:11:12+02'", rounds=True),
    _type(
        "timestamp to timestamptz",
        "timestamp",
        "timestamptz",
        "'2026-01-01 1:00'",
        "'2026-01-01 10:11:12+02'",
        rounds=True,
    ),
    _type(
        "timestamp(0) to timestamp",
        "timestamp(0)",
        "timestamp",
        "'2026-01-01 1:00'",
        "'2026-01-01 1:00:00.123'",
        rounds=True,
    ),
    _type("time to interval", "time", "interval", "'01:02:03'", "'25:00:00'"),
    _type("varchar to text", "varchar(5)", "text", "'abc'", "'abcdefgh'"),
    _type("char to text", "char(5)", "text", "'abc'", "'abc  '", rounds=True, equal="t (id, rtrim(v))"),
    _type("one char to text", '"char"', "text", "'a'", "'abc'", rounds=True),
    _type("name to text", "name", "text", "'abc'", "repeat('n', 100)", rounds=True),
    _type("text to varchar", "text", "varchar(20)", "'abc'", "'abcd'"),
    _type("json to jsonb", "json", "jsonb", "'{\"b\": 1}'", '\'{"b":1, "a":2}\''),
    _type("jsonb to json", "jsonb", "json", "'{\"b\": 1}'", '\'{"b":1,   "a":2}\'', rounds=True),
    _type("text to jsonb", "text", "jsonb", "'[1]'", "'{\"a\": 2}'", using="v::jsonb"),
    _type("text to bytea", "text", "bytea", "'abc'", "'\\x00ff'", using="v::bytea", converts=True),
    _type("bytea to text", "bytea", "text", "'abc'", "'abc'", using="encode(v, 'escape')", converts=True),
    _type("bool to int", "bool", "int", "true", "7", using="v::int", converts=True),
    _type("int to bool", "int", "bool", "1", "true", using="v::bool", converts=True),
    _type("bit to varbit", "bit(4)", "varbit", "'1010'", "'10101'"),
    _type("cidr to inet", "cidr", "inet", "'10.0.0.0/8'", "'10.1.2.3/8'"),
    _type("int array to bigint array", "int[]", "bigint[]", "'{1,2}'", "'{5000000000}'"),
    _type("text to uuid", "text", "uuid", "gen_random_uuid()", "gen_random_uuid()", using="v::uuid"),
]

SHAPES = [
    Change(
        "add a column",
        f"CREATE TABLE t ({KEY}, v text);",
        "INSERT INTO t VALUES ({n}, 'old'); UPDATE t SET v = 'x' WHERE id = {n};",
        "ALTER TABLE t ADD w text;",
        "INSERT INTO t VALUES ({n}, 'new', 'w'); UPDATE t SET w = 'u' WHERE id = {n};",
    ),
    Change(
        "add a column with a default",
        f"CREATE TABLE t ({KEY}, v text);",
        "INSERT INTO t VALUES ({n}, 'old');",
        "ALTER TABLE t ADD w int NOT NULL DEFAULT 7;",
        "INSERT INTO t VALUES ({n}, 'new'); UPDATE t SET w = 8 WHERE id = {n};",
    ),
    Change(
        "drop a column",
        f"CREATE TABLE t ({KEY}, v text, w text);",
        "INSERT INTO t (id, v) VALUES ({n}, 'old');",
        "ALTER TABLE t DROP w;",
        "INSERT INTO t VALUES ({n}, 'new'); UPDATE t SET v = 'u' WHERE id = {n};",
        refused="has no column w",
        back="ALTER TABLE t ADD w text;",
    ),
    Change(
        "rename a column",
        f"CREATE TABLE t ({KEY}, v text);",
        "INSERT INTO t VALUES ({n}, 'old');",
        "ALTER TABLE t RENAME v TO w;",
        "INSERT INTO t VALUES ({n}, 'new'); UPDATE t SET w = 'u' WHERE id = {n};",
        refused="has no column v",
        back="ALTER TABLE t RENAME w TO v;",
    ),
    Change(
        "change the key",
        "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL);",
        "INSERT INTO t VALUES ({n}, {n});",
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (v);",
        "INSERT INTO t VALUES ({n}, {n}); UPDATE t SET id = -id WHERE v = {n}; UPDATE t SET v = -v WHERE v = {n};",
    ),
    Change(
        "replica identity full",
        f"CREATE TABLE t ({KEY}, v text);",
        "INSERT INTO t VALUES ({n}, 'old');",
        "ALTER TABLE t REPLICA IDENTITY FULL;",
        "INSERT INTO t VALUES ({n}, 'new'); UPDATE t SET v = 'u', id = -id WHERE id = {n}; DELETE FROM t WHERE id = {n} - 1;",
    ),
    Change(
        "identity column",
        f"CREATE TABLE t ({KEY}, v int NOT NULL);",
        "INSERT INTO t VALUES ({n}, {n});",
        "ALTER TABLE t ALTER v ADD GENERATED ALWAYS AS IDENTITY (START 1000);",
        "INSERT INTO t (id) VALUES ({n}); UPDATE t SET v = DEFAULT WHERE id = {n};",
    ),
    Change(
        "swap the table",
        f"CREATE TABLE t ({KEY}, v real);",
        "INSERT INTO t VALUES ({n}, 1.5);",
        "BEGIN; CREATE TABLE u (id int PRIMARY KEY, v float8); INSERT INTO u SELECT * FROM t; DROP TABLE t;"
        " ALTER TABLE u RENAME TO t; COMMIT;",
        "INSERT INTO t VALUES ({n}, 0.123456789012345);",
        rounds=True,
        trandata="ADD SCHEMATRANDATA {schema}",
        extract="TABLE {schema}.t;",
    ),
    Change(
        "attach and detach a partition",
        "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
        " CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);"
        " CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (900) TO (1000);",
        "INSERT INTO t VALUES ({n}, 'old');",
        "ALTER TABLE t DETACH PARTITION t2; CREATE TABLE t3 (v text, id int PRIMARY KEY); ALTER TABLE t ATTACH PARTITION t3"
        " FOR VALUES FROM (100) TO (200);",
        "INSERT INTO t VALUES ({n}, 'new'), ({n} + 100, 'other'); UPDATE t SET v = 'u' WHERE id = {n} + 100;",
    ),
    Change(
        "add a child by inheritance",
        f"CREATE TABLE t ({KEY}, v text);",
        "INSERT INTO t VALUES ({n}, 'old');",
        "ALTER TABLE t ADD w int;",
        "INSERT INTO t VALUES ({n}, 'new', 1);",
    ),
]


def cases(sample: int | None = None) -> list[Case]:
    """Each change in both orders; with ``sample``, only so many type changes, always the same ones."""
    types = TYPES if sample is None else random.Random(1).sample(TYPES, sample)
    return [
        Case(
            f"{change.name}, {order}",
            f"{order[0]}{number:02}",
            change.table,
            change.table,
            change.trandata,
            change.extract,
            steps=tuple(steps(change)),
        )
        for number, change in enumerate([*SHAPES, *types], start=1)
        for order, steps in (("target first", _target_first), ("source first", _source_first))
        if not (change.converts and steps is _target_first)
    ]


def _rows(text: str, first: int) -> Step:
    return Step("source", "\n".join(text.replace("{n}", str(first + count)) for count in range(3)))


def _target_first(change: Change) -> Iterator[Step]:
    yield _rows(change.rows, 1)
    yield Step("equal", change.equal)
    yield Step("target", change.change)
    yield _rows(change.rows, 11)
    if change.refused:
        yield Step("abends", change.refused)
        yield Step("target", change.back)
        yield Step("start", "")
        yield Step("equal", change.equal)
        yield Step("target", change.change)
    yield Step("source", change.change)
    yield _rows(change.new_rows, 21)
    yield Step("equal", change.equal)


def _source_first(change: Change) -> Iterator[Step]:
    yield _rows(change.rows, 1)
    yield Step("equal", change.equal)
    yield Step("source", change.change)
    yield _rows(change.rows if change.rounds else change.new_rows, 11)
    yield Step("settles", "")
    if change.rounds:
        yield Step("reports", "column v of {schema}.t is")
    yield Step("target", change.change)
    yield Step("start", "")
    yield _rows(change.new_rows, 21)
    yield Step("equal", change.equal)
