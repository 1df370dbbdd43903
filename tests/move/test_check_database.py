"""Each finding about the contents of a database: shown by one that has the cause, and absent from one that has not."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from move.conftest import OpenSides, run

from ggshell.move.check import RULES
from ggshell.move.checks import locales, roles, servers, software, surroundings, tables
from ggshell.move.checks.sides import Rule
from ggshell.move.findings import FindingSeverity

CLEAN = """
CREATE SCHEMA shop;
CREATE TABLE shop.items (id bigint PRIMARY KEY, name text NOT NULL, price numeric);
CREATE TABLE shop.orders (id bigint, placed date, item bigint REFERENCES shop.items, PRIMARY KEY (id, placed))
 PARTITION BY RANGE (placed);
CREATE TABLE shop.orders_2026 PARTITION OF shop.orders FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE SEQUENCE shop.numbers;
SELECT nextval('shop.numbers');
CREATE VIEW shop.prices AS SELECT price FROM shop.items;
CREATE INDEX ON shop.items (name COLLATE "C");
INSERT INTO shop.items SELECT n, 'item', 1 FROM generate_series(1, 100) n;
ANALYZE"""


class Case(NamedTuple):
    """A database with a cause, and the finding about it. ``there``: what the target has."""

    code: str
    severity: FindingSeverity
    rule: Rule
    here: str
    subject: str
    words: str
    there: str = ""


ERROR, WARNING, INFO = FindingSeverity
BY_NAME = "DO $$ BEGIN EXECUTE format('{}', current_database()); END $$"
CASES = (
    Case("GGS-01010", ERROR, servers.target_objects, "", "public.t", "public.t", "CREATE TABLE t ()"),
    Case(
        "GGS-01032",
        WARNING,
        roles.settings,
        BY_NAME.format("ALTER DATABASE %I SET work_mem TO ''7MB''"),
        "work_mem = 7MB",
        "7MB",
    ),
    Case(
        "GGS-01033",
        WARNING,
        roles.grants,
        BY_NAME.format("REVOKE CONNECT ON DATABASE %I FROM PUBLIC"),
        "-CONNECT for PUBLIC",
        "revoke",
    ),
    Case("GGS-01034", ERROR, software.extensions, "CREATE EXTENSION old_snapshot", "old_snapshot", "package"),
    Case(
        "GGS-01038",
        ERROR,
        software.extension_rows,
        "CREATE EXTENSION citext;\nUPDATE pg_extension SET extname = 'timescaledb' WHERE extname = 'citext'",
        "timescaledb",
        "cannot be moved",
    ),
    Case(
        "GGS-01039",
        WARNING,
        software.extension_rows,
        "CREATE EXTENSION citext;\nCREATE TABLE jobs AS SELECT 1 AS a;\n"
        "UPDATE pg_extension SET extconfig = ARRAY['jobs'::regclass::oid] WHERE extname = 'citext'",
        "public.jobs",
        "COPY",
    ),
    Case(
        "GGS-01037", WARNING, software.preloaded, "CREATE EXTENSION pg_stat_statements", "pg_stat_statements", "preload"
    ),
    Case(
        "GGS-01041",
        ERROR,
        software.access_methods,
        "CREATE ACCESS METHOD heap2 TYPE TABLE HANDLER heap_tableam_handler;\nCREATE TABLE t (id int PRIMARY KEY) USING heap2",
        "heap2",
        "heap2",
    ),
    Case(
        "GGS-01042",
        WARNING,
        software.libraries,
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE c AS '$libdir/autoinc', 'autoinc'",
        "$libdir/autoinc",
        "autoinc",
    ),
    Case(
        "GGS-01044",
        ERROR,
        software.large_objects,
        "SELECT lo_create(0);\nCREATE TABLE t (f oid)",
        "1 large object",
        "t.f",
    ),
    Case("GGS-01045", INFO, software.local_values, "CREATE TABLE t (a regclass, b pg_lsn)", "2 columns", "public.t.a"),
    Case("GGS-01047", WARNING, tables.keys, "CREATE TABLE t (a int);\nCREATE TABLE u (a int)", "2 tables", "public.u"),
    Case(
        "GGS-01047",
        WARNING,
        tables.keys,
        "CREATE TABLE t (a int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)",
        "public.t",
        "deferrable",
    ),
    Case("GGS-01048", INFO, tables.keys, "CREATE TABLE t (a int NOT NULL UNIQUE)", "public.t", "USING INDEX"),
    Case(
        "GGS-01049",
        INFO,
        tables.keys,
        "CREATE TABLE t (a int PRIMARY KEY);\nALTER TABLE t REPLICA IDENTITY FULL",
        "public.t",
        "FULL",
    ),
    Case(
        "GGS-01050", WARNING, tables.unlogged, "CREATE UNLOGGED TABLE t (a int PRIMARY KEY)", "public.t", "SET LOGGED"
    ),
    Case(
        "GGS-01051",
        INFO,
        tables.columns,
        "CREATE TABLE t (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a) STORED)",
        "public.t",
        "computes",
    ),
    Case(
        "GGS-01052",
        INFO,
        tables.columns,
        "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)",
        "public.t",
        "identity",
    ),
    Case(
        "GGS-01053",
        WARNING,
        tables.sequences,
        "CREATE SEQUENCE s MAXVALUE 10;\nSELECT setval('s', 10)",
        "public.s (100.0% used)",
        "bigint",
    ),
    Case(
        "GGS-01053",
        WARNING,
        tables.sequences,
        "CREATE TABLE t (a smallint);\nCREATE SEQUENCE s OWNED BY t.a;\nSELECT setval('s', 32000)",
        "public.s (97.7% used)",
        "bigint",
    ),
    Case(
        "GGS-01054",
        INFO,
        tables.inherited,
        "CREATE TABLE p (a int);\nCREATE TABLE c () INHERITS (p)",
        "public.c",
        "public.c",
    ),
    Case(
        "GGS-01055",
        WARNING,
        tables.foreign,
        "CREATE FOREIGN DATA WRAPPER w;\nCREATE SERVER s FOREIGN DATA WRAPPER w;\nCREATE FOREIGN TABLE t (a int) SERVER s",
        "public.t",
        "definition",
    ),
    Case("GGS-01056", INFO, tables.views, "CREATE MATERIALIZED VIEW v AS SELECT 1", "public.v", "REFRESH"),
    Case(
        "GGS-01057",
        WARNING,
        tables.triggers,
        "CREATE TABLE t (a int PRIMARY KEY);\n"
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();\n"
        "ALTER TABLE t ENABLE ALWAYS TRIGGER g",
        "public.t.g",
        "ALWAYS",
    ),
    Case("GGS-01059", WARNING, surroundings.publications, "CREATE PUBLICATION p", "p", "subscribers"),
    Case(
        "GGS-01061",
        WARNING,
        surroundings.slots,
        "SELECT pg_create_logical_replication_slot('other_program', 'pgoutput')",
        "other_program",
        "slot",
    ),
    Case(
        "GGS-01062",
        WARNING,
        surroundings.foreign_servers,
        "CREATE FOREIGN DATA WRAPPER w;\nCREATE SERVER far FOREIGN DATA WRAPPER w",
        "far",
        "USER MAPPING",
    ),
    Case(
        "GGS-01063",
        WARNING,
        surroundings.event_triggers,
        "CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';\n"
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION e()",
        "e",
        "superuser",
    ),
    Case("GGS-01070", ERROR, locales.collations, 'CREATE TABLE t (a text COLLATE "de-x-icu")', "de-x-icu", "install"),
    Case(
        "GGS-01070",
        ERROR,
        locales.collations,
        "CREATE COLLATION german (provider = icu, locale = 'de');\nCREATE TABLE t (a text COLLATE german)",
        "public.german",
        "install",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.subject}")
def test_a_cause_is_found(case: Case, older: str, north: str, sides: OpenSides) -> None:
    run(older, case.here)
    run(north, case.there)
    found = [each for each in case.rule(sides(older, north)) if each.code == case.code]
    assert [(each.severity, each.subject) for each in found] == [(case.severity, case.subject)]
    assert case.words in f"{found[0].text} {found[0].action}"


def test_a_subscription_is_found(older: str, north: str, sides: OpenSides) -> None:
    run(older, "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false, slot_name = NONE)")
    try:
        (found,) = surroundings.subscriptions(sides(older, north))
    finally:
        run(older, "DROP SUBSCRIPTION s")
    assert (found.code, found.subject, found.severity) == ("GGS-01060", "s (disabled)", WARNING)


def test_an_enabled_subscription_is_refused(older: str, north: str, sides: OpenSides) -> None:
    """What it applies has an origin, so Extract leaves it out, and the target would lack it."""
    run(older, "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false, slot_name = NONE)")
    try:
        run(older, "UPDATE pg_subscription SET subenabled = true WHERE subname = 's'")
        (found,) = surroundings.subscriptions(sides(older, north))
    finally:
        run(older, "UPDATE pg_subscription SET subenabled = false WHERE subname = 's';\nDROP SUBSCRIPTION s")
    assert (found.code, found.subject, found.severity) == ("GGS-01060", "s", ERROR)


def test_origins_of_other_programs_are_found(older: str, north: str, sides: OpenSides) -> None:
    run(older, "SELECT pg_replication_origin_create('ggs_other_program')")
    try:
        found = list(surroundings.origins(sides(older, north)))
    finally:
        run(older, "SELECT pg_replication_origin_drop('ggs_other_program')")
    assert [each.code for each in found] == ["GGS-01072"]
    assert "ggs_other_program" in found[0].objects


def test_a_database_without_causes_has_no_findings_but_its_size(older: str, north: str, sides: OpenSides) -> None:
    run(older, CLEAN)
    both = sides(older, north)
    found = [each for rule in RULES if rule is not surroundings.origins for each in rule(both)]
    assert [each.code for each in found] == ["GGS-01018"], found
    assert "2 tables with about 100 rows" in found[0].text


def test_a_table_without_a_key_cannot_be_captured_if_it_has_generated_columns(
    north: str, south: str, older: str, sides: OpenSides
) -> None:
    """Only from version 18 on: earlier servers do not look at generated columns."""
    for dsn in (older, north):
        run(dsn, "CREATE TABLE t (a int, b int GENERATED ALWAYS AS (a) STORED)")
    assert [each.code for each in tables.keys(sides(north, south))] == ["GGS-01046"]
    assert [each.code for each in tables.keys(sides(older, south))] == ["GGS-01047"]


def test_virtual_columns_need_a_target_that_has_them(north: str, south: str, older: str, sides: OpenSides) -> None:
    run(north, "CREATE TABLE t (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a) VIRTUAL)")
    assert [each.code for each in tables.virtual(sides(north, older))] == ["GGS-01058"]
    assert list(tables.virtual(sides(north, south))) == []


def test_an_older_version_of_an_extension_at_the_target_is_found(
    north: str, south: str, older: str, sides: OpenSides
) -> None:
    run(north, "CREATE EXTENSION pg_buffercache")
    found = list(software.extensions(sides(north, older)))
    assert [(each.code, each.subject) for each in found] == [("GGS-01035", "pg_buffercache")]
    assert "1.6, target 1.3" in found[0].text
    assert list(software.extensions(sides(north, south))) == []


def test_a_type_of_a_schema_that_is_not_moved_is_found(older: str, north: str, sides: OpenSides) -> None:
    run(older, "CREATE TYPE mood AS ENUM ('glad');\nCREATE SCHEMA s;\nCREATE TABLE s.t (a mood, b mood[], c int4range)")
    found = list(software.types(sides(older, north, "s")))
    assert [each.code for each in found] == ["GGS-01040"]
    assert found[0].objects == ("public._mood", "public.mood")
    assert list(software.types(sides(older, north))) == []


def test_only_the_schemas_of_the_request_are_checked(older: str, north: str, sides: OpenSides) -> None:
    run(
        older,
        "CREATE SCHEMA one;\nCREATE SCHEMA two;\nCREATE TABLE one.t (a int);\nCREATE UNLOGGED TABLE two.t (a int)",
    )
    run(north, "CREATE SCHEMA two;\nCREATE TABLE two.t ()")
    assert list(tables.unlogged(sides(older, north, "one"))) == []
    assert list(servers.target_objects(sides(older, north, "one"))) == []
    assert [each.objects for each in servers.target_objects(sides(older, north))] == [("two.t",)]
    assert [(each.code, each.subject) for each in servers.schemas(sides(older, north, "one", "three"))] == [
        ("GGS-01008", "three")
    ]
    assert list(servers.schemas(sides(older, north, "one"))) == []


def test_large_objects_do_not_prevent_the_move_of_a_schema(older: str, north: str, sides: OpenSides) -> None:
    run(older, "SELECT lo_create(0)")
    assert [each.severity for each in software.large_objects(sides(older, north, "public"))] == [WARNING]


def test_objects_of_extensions_are_not_counted(older: str, north: str, sides: OpenSides) -> None:
    run(older, "CREATE TABLE jobs (a int);\nCREATE EXTENSION citext;\nALTER EXTENSION citext ADD TABLE jobs")
    assert sides(older, north).source.tables == []


def test_a_schema_without_objects_is_reported(older: str, north: str, sides: OpenSides) -> None:
    assert [each.code for each in surroundings.emptiness(sides(older, north))] == ["GGS-01066"]


def test_long_lists_name_the_first_objects_and_have_all(older: str, north: str, sides: OpenSides) -> None:
    run(older, ";\n".join(f"CREATE TABLE t{number} (a int)" for number in range(10, 20)))
    (found,) = tables.keys(sides(older, north))
    assert found.subject == "10 tables"
    assert "public.t14 and 5 more" in found.text
    assert len(found.objects) == 10


def test_the_script_of_settings_gives_the_target_the_same_values(older: str, north: str, sides: OpenSides) -> None:
    run(older, BY_NAME.format('ALTER DATABASE %I SET search_path TO a, "B c"'))
    run(older, BY_NAME.format("ALTER DATABASE %I SET my.text TO ''it''''s''"))
    (found,) = roles.settings(sides(older, north))
    assert found.objects == ("my.text = it's", 'search_path = a, "B c"')
    run(north, found.script)
    assert list(roles.settings(sides(older, north))) == []
