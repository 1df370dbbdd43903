"""Each kind of DDL statement arrives: after it, pg_dump prints the same for both sides, and the rows are equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ddl_pipeline import DdlPipeline

TABLE = "CREATE TABLE t (id int PRIMARY KEY, a int, b text); INSERT INTO t SELECT g, g, 'x' || g FROM generate_series(1, 5) g"
PARTITIONS = (
    "CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1, 'one')"
)
KINDS = {
    "table": [TABLE, "CREATE TABLE u (LIKE t INCLUDING ALL)", "INSERT INTO u TABLE t"],
    "columns": [
        TABLE,
        "ALTER TABLE t ADD c numeric(8,2) DEFAULT 1.5, DROP b",
        "ALTER TABLE t RENAME a TO a2",
        "ALTER TABLE t ALTER a2 TYPE bigint, ALTER c SET NOT NULL, ALTER c SET DEFAULT 3",
        "INSERT INTO t VALUES (6, 6)",
        "ALTER TABLE t ALTER a2 TYPE text USING 'n' || a2",
        "UPDATE t SET a2 = 'z' WHERE id = 6",
    ],
    "columns with values of the moment": [
        TABLE,
        "ALTER TABLE t ADD u uuid DEFAULT gen_random_uuid(), ADD w timestamptz DEFAULT now(), ADD n serial",
        "INSERT INTO t VALUES (6, 6)",
    ],
    "values of the moment in a table without a key": [
        "CREATE TABLE k (a int, b int, UNIQUE (a, b)); INSERT INTO k VALUES (1, 1), (2, 2)",
        "ALTER TABLE k ADD u uuid DEFAULT gen_random_uuid()",
        "UPDATE k SET a = 3 WHERE a = 2",
    ],
    "generated and identity columns": [
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED)",
        "INSERT INTO t (a) VALUES (1), (2)",
    ],
    "constraints": [
        TABLE,
        "CREATE TABLE c (id int PRIMARY KEY, t int CONSTRAINT f REFERENCES t ON DELETE CASCADE,"
        " EXCLUDE USING btree (t WITH =))",
        "ALTER TABLE t ADD CONSTRAINT k CHECK (a > 0) NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT k",
        "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a, b) DEFERRABLE",
        "INSERT INTO c VALUES (1, 1)",
        "ALTER TABLE c DROP CONSTRAINT f",
    ],
    "rename and move": [
        TABLE,
        "ALTER TABLE t RENAME TO t2",
        "UPDATE t2 SET a = 9",
        "ALTER TABLE t2 RENAME CONSTRAINT t_pkey TO key",
        "DROP TABLE t2",
    ],
    "partitions": [
        PARTITIONS,
        "CREATE TABLE p2 (id int NOT NULL, v text)",
        "INSERT INTO p2 VALUES (11, 'eleven')",
        "ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20)",
        "INSERT INTO p VALUES (12, 'twelve')",
        "ALTER TABLE p DETACH PARTITION p1",
        "INSERT INTO p1 VALUES (2, 'two')",
        "ALTER TABLE p ADD n int",
        "INSERT INTO p VALUES (13, 'thirteen', 1)",
        "ALTER TABLE p DROP n",
        "TRUNCATE p2",
        "INSERT INTO p VALUES (14, 'fourteen')",
        "DROP TABLE p2",
    ],
    "partitions detached concurrently": [PARTITIONS, "ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY", "DROP TABLE p1"],
    "inheritance": [
        "CREATE TABLE h (a int)",
        "CREATE TABLE i (b int) INHERITS (h)",
        "INSERT INTO i VALUES (1, 2); INSERT INTO h VALUES (1), (2)",
        "UPDATE ONLY h SET a = 3 WHERE a = 1",
        "UPDATE h SET a = a + 10",
        "DELETE FROM ONLY h WHERE a = 12",
    ],
    "indexes": [
        TABLE,
        "CREATE UNIQUE INDEX i ON t (lower(b)) WHERE a > 0",
        "CREATE INDEX CONCURRENTLY i2 ON t (a DESC) INCLUDE (b)",
        "ALTER INDEX i2 RENAME TO i3",
        "CREATE INDEX i4 ON t USING gin (to_tsvector('simple', b))",
        "DROP INDEX CONCURRENTLY i3",
        "REINDEX TABLE t",
        PARTITIONS,
        "REINDEX TABLE p",
        "REINDEX SCHEMA s",
        "BEGIN; REINDEX TABLE t; INSERT INTO t VALUES (7, 7); COMMIT",
    ],
    "sequences": [
        "CREATE SEQUENCE q INCREMENT 5",
        "ALTER SEQUENCE q MAXVALUE 1000",
        "CREATE SEQUENCE q2",
        "DROP SEQUENCE q2",
    ],
    "views": [
        TABLE,
        "CREATE VIEW v AS SELECT id FROM t",
        "CREATE OR REPLACE VIEW v AS SELECT id, a FROM t",
        "CREATE MATERIALIZED VIEW m AS SELECT count(*) FROM t",
        "REFRESH MATERIALIZED VIEW m",
        "ALTER VIEW v RENAME TO v2",
        "CREATE RULE r AS ON INSERT TO v2 DO INSTEAD INSERT INTO t VALUES (new.id)",
    ],
    "functions": [
        "CREATE FUNCTION f(a int, b text DEFAULT 'x') RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a; SELECT a + 1'",
        "CREATE FUNCTION f2() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END",
        "CREATE PROCEDURE pr() LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; END $$",
        "ALTER FUNCTION f(int, text) RENAME TO f3",
        "DROP PROCEDURE pr",
        "CREATE AGGREGATE agg (int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')",
    ],
    "types": [
        "CREATE TYPE e AS ENUM ('a', 'b')",
        "CREATE TABLE t (id int PRIMARY KEY, e e)",
        "INSERT INTO t VALUES (1, 'a')",
        "ALTER TYPE e ADD VALUE 'c' BEFORE 'b'",
        "INSERT INTO t VALUES (2, 'c')",
        "ALTER TYPE e RENAME VALUE 'a' TO 'z'",
        "CREATE TYPE k AS (x int, y text)",
        "ALTER TYPE k ADD ATTRIBUTE z date",
        "CREATE DOMAIN d AS int CHECK (VALUE > 0)",
        "ALTER TABLE t ADD k k, ADD d d",
        "INSERT INTO t VALUES (3, 'b', (1, 'y', '2026-01-01'), 5)",
        "CREATE TYPE r AS RANGE (subtype = int)",
    ],
    "triggers": [
        TABLE,
        "CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION g()",
        "ALTER TABLE t DISABLE TRIGGER g",
        "CREATE CONSTRAINT TRIGGER h AFTER UPDATE ON t DEFERRABLE FOR EACH ROW EXECUTE FUNCTION g()",
        "DROP TRIGGER h ON t",
    ],
    "comments, policies, grants, statistics": [
        TABLE,
        "COMMENT ON COLUMN t.a IS 'it''s a column'",
        "CREATE POLICY p ON t FOR SELECT USING (a > 1)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "GRANT SELECT, UPDATE (a) ON t TO PUBLIC",
        "CREATE STATISTICS st (dependencies) ON a, b FROM t",
        "ALTER TABLE t ALTER a SET STATISTICS 500, SET (fillfactor = 70), CLUSTER ON t_pkey",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO PUBLIC",
    ],
    "operators, casts, collations and text search": [
        "CREATE FUNCTION o(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 = $2'",
        "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = o)",
        "CREATE OPERATOR FAMILY of USING btree",
        "CREATE COLLATION co (provider = libc, locale = 'C')",
        "CREATE TEXT SEARCH DICTIONARY di (TEMPLATE = simple)",
        "CREATE TEXT SEARCH CONFIGURATION cf (COPY = simple)",
        "ALTER TEXT SEARCH CONFIGURATION cf ALTER MAPPING FOR word WITH di",
    ],
    "rows that a query makes": [
        TABLE,
        "CREATE TABLE q AS SELECT * FROM t",
        "SELECT id, random() AS r INTO q2 FROM t",
        "INSERT INTO q VALUES (9, 9, 'nine')",
    ],
    "tables that become captured": [
        "CREATE SCHEMA o CREATE TABLE t (id int PRIMARY KEY) CREATE TABLE p2 (id int PRIMARY KEY, v text)",
        "INSERT INTO o.t SELECT generate_series(1, 3); INSERT INTO o.p2 VALUES (11, 'eleven')",
        "ALTER TABLE o.t SET SCHEMA s",
        "UPDATE t SET id = 4 WHERE id = 3",
        "CREATE UNLOGGED TABLE l (id int, a int); INSERT INTO l VALUES (1, 1), (1, 1)",
        "ALTER TABLE l SET LOGGED",
        PARTITIONS,
        "ALTER TABLE p ATTACH PARTITION o.p2 FOR VALUES FROM (10) TO (20)",
        "INSERT INTO p VALUES (12, 'twelve')",
        "ALTER TABLE o.p2 SET SCHEMA s",
        "ALTER TABLE p DETACH PARTITION p1",
        "UPDATE p1 SET v = 'changed'",
        "DROP SCHEMA o",
    ],
    "several in one string": [
        f"BEGIN; {TABLE}; SAVEPOINT x; DROP TABLE t; ROLLBACK TO x; ALTER TABLE t ADD z int;"
        " INSERT INTO t VALUES (7, 7, 'x', 7); COMMIT",
        "DO $$ BEGIN CREATE TABLE u (a int); FOR i IN 1..3 LOOP"
        " EXECUTE format('ALTER TABLE u ADD c%s int', i); END LOOP; END $$",
        "INSERT INTO u VALUES (1, 2, 3, 4)",
    ],
    "temporary tables": [
        TABLE,
        "CREATE FUNCTION f () RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TEMP TABLE x (a int); ALTER TABLE x ADD b int; CREATE INDEX ON x (a); COMMENT ON COLUMN x.a IS 'c';"
        "CREATE TRIGGER g BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION f (); COMMENT ON TRIGGER g ON x IS 'c';"
        "ALTER TRIGGER g ON x RENAME TO h; DROP TRIGGER h ON x; CREATE RULE r AS ON UPDATE TO x DO NOTHING; DROP RULE r ON x;"
        "CREATE POLICY p ON x; ALTER POLICY p ON x TO PUBLIC; DROP POLICY p ON x; CREATE STATISTICS w ON a, b FROM x;"
        "ALTER TABLE x ADD CONSTRAINT k CHECK (a > 0); COMMENT ON CONSTRAINT k ON x IS 'c'; DROP TABLE x",
    ],
    "computed rows of statements in functions": [
        TABLE,
        "CREATE FUNCTION alters() RETURNS void LANGUAGE plpgsql AS"
        " $$ BEGIN ALTER TABLE t ALTER b TYPE uuid USING gen_random_uuid(); END $$",
        "SELECT alters()",
        "DO $$ BEGIN ALTER TABLE t ADD w timestamptz DEFAULT clock_timestamp(); END $$",
        "CREATE FUNCTION adds() RETURNS void LANGUAGE sql AS 'ALTER TABLE t ADD n float DEFAULT random()'",
        "SELECT adds()",
        "CREATE TABLE child (c int) INHERITS (t); INSERT INTO child (id, c) VALUES (7, 1)",
        "ALTER TABLE t ADD z uuid DEFAULT gen_random_uuid()",
    ],
    "names that need quotes": [
        'CREATE TABLE "a.b" ("c d" int PRIMARY KEY, "é;x" text); INSERT INTO "a.b" VALUES (1, \'x\')',
        'ALTER TABLE "a.b" RENAME TO "Täble ""q"""',
        'ALTER TABLE "Täble ""q""" RENAME "é;x" TO "select"',
        'INSERT INTO "Täble ""q""" VALUES (2, \'y\')',
        'CREATE INDEX "i.x" ON "Täble ""q""" ("select"); CREATE VIEW "v;w" AS SELECT 1 AS one',
        'ALTER TABLE "Täble ""q""" RENAME TO "a.b"',
    ],
    "rows and statements in one transaction": [
        TABLE,
        "CREATE TYPE mood AS ENUM ('sad')",
        "BEGIN; ALTER TYPE mood ADD VALUE 'ok' BEFORE 'sad'; UPDATE t SET b = 'in'; ALTER TABLE t RENAME b TO c;"
        " SAVEPOINT x; ALTER TABLE t ADD lost int; UPDATE t SET lost = 1; ROLLBACK TO x; INSERT INTO t VALUES (8, 8, 'c');"
        " ALTER TABLE t RENAME TO r; UPDATE r SET c = 'r' WHERE id = 1; ALTER TABLE r ADD m mood; COMMIT",
        "INSERT INTO r VALUES (9, 9, 'c', 'ok')",
        "BEGIN; CREATE SCHEMA gone; CREATE TABLE gone.g (id int); ALTER TABLE r SET SCHEMA gone;"
        " ALTER TABLE gone.r SET SCHEMA s; DROP SCHEMA gone CASCADE; COMMIT",
        "UPDATE r SET a = a + 1",
    ],
    "extensions": [
        "CREATE EXTENSION hstore SCHEMA s",
        "CREATE TABLE h (id int PRIMARY KEY, pairs hstore); INSERT INTO h VALUES (1, 'a=>1')",
        "DROP EXTENSION hstore CASCADE",
        "UPDATE h SET id = 2",
    ],
    "unlogged tables": ["CREATE UNLOGGED TABLE l (id int PRIMARY KEY)", "ALTER TABLE l ADD a int"],
}


@pytest.fixture(params=["north", "older"])
def pipeline(tmp_path: Path, south: str, request: pytest.FixtureRequest) -> Iterator[DdlPipeline]:
    """From a server of the same version, and from an older one."""
    made = DdlPipeline(tmp_path / "home", request.getfixturevalue(request.param), south)
    made.add_and_start()
    yield made
    made.close()


def test_every_kind_of_statement_arrives(pipeline: DdlPipeline) -> None:
    """One pipeline for all kinds, because it takes seconds to start; the schema is dropped after each."""
    differences: dict[str, list[str]] = {}
    for kind, statements in KINDS.items():
        pipeline.in_north("SET search_path = s", *statements)
        pipeline.wait_until_applied()
        if found := pipeline.differences():
            differences[kind] = found
        pipeline.in_north("DROP SCHEMA s CASCADE", "CREATE SCHEMA s")
    assert differences == {}


def test_the_replica_identity_of_a_table_is_replicated(tmp_path: Path, north: str, south: str) -> None:
    """The way back needs it. What ADD SCHEMATRANDATA sets by itself, it sets on both sides, where it is added."""
    pipeline = DdlPipeline(tmp_path / "home", north, south)
    try:
        pipeline.add_and_start()
        pipeline.in_north(
            "SET search_path = s",
            "CREATE TABLE whole (id int PRIMARY KEY); ALTER TABLE whole REPLICA IDENTITY FULL",
            "CREATE TABLE indexed (id int NOT NULL); CREATE UNIQUE INDEX i ON indexed (id);"
            "ALTER TABLE indexed REPLICA IDENTITY USING INDEX i",
            "CREATE TABLE back (id int PRIMARY KEY); ALTER TABLE back REPLICA IDENTITY FULL;"
            "ALTER TABLE back REPLICA IDENTITY DEFAULT",
            "CREATE TABLE keyless (id int)",
        )
        pipeline.wait_until_applied()
        assert _identities(pipeline) == {"whole": "f", "indexed": "i", "back": "d", "keyless": "d"}
        pipeline.run("DBLOGIN USERIDALIAS south", "ADD SCHEMATRANDATA s")
        pipeline.in_north("CREATE TABLE s.later (id int)", "ALTER TABLE s.keyless ADD v int")
        pipeline.wait_until_applied()
        found = _identities(pipeline)
        assert (found["later"], found["keyless"]) == ("f", "f")
    finally:
        pipeline.close()


def _identities(pipeline: DdlPipeline) -> dict[str, str]:
    rows = pipeline.in_south(
        "SELECT relname, relreplident::text FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind = 'r'"
        " AND relname <> 'ends'"
    )
    return dict(rows)
