"""DDL statements are captured between the rows of their transaction, each as a single statement with its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from batches import read_rows
from processes import until
from psycopg.conninfo import make_conninfo
from slot_reading import capturing, end_of

from ggshell.connectors.postgres import ddl_capture_sql, session, slot
from ggshell.connectors.postgres.ddl_watch import DdlWatch
from ggshell.connectors.postgres.table_logging import PostgresTableLogging
from ggshell.connectors.postgres.truncate_watch import TruncateWatch
from ggshell.errors import DatabaseError
from ggshell.home.events import Severity
from ggshell.record.ddl import DdlStatement, decode_ddl
from ggshell.record.operation import IoType
from ggshell.types import TableName


class Source(NamedTuple):
    """A source whose schema s is captured: ``captured`` returns what ran since the last call, in order."""

    application: psycopg.Connection
    captured: Callable[[], list[str | DdlStatement]]
    told: list[str]


@pytest.fixture
def source(north: str, tmp_path: Path) -> Iterator[Source]:
    told: list[str] = []

    def tell(severity: Severity, code: str, text: str) -> None:
        told.append(f"{code} {text}")

    with session.connect(north) as owner, psycopg.connect(north, autocommit=True) as application:
        owner.execute("CREATE SCHEMA s")
        PostgresTableLogging(owner).add_schema("s", all_columns=False)
        start = slot.register(owner, "ext1")
        application.execute("SET search_path = s, public")

        def captured() -> list[str | DdlStatement]:
            with capturing(north, start, tmp_path, ddl=DdlWatch(lambda found: found, tell)) as capture:
                return list(_found(capture, end_of(north)))

        yield Source(application, captured, told)
        ddl_capture_sql.remove(owner)


def _found(capture: object, until: int) -> Iterator[str | DdlStatement]:
    """Statements, and rows as the names of their operations."""
    while True:
        batch = capture.read(0.2)  # type: ignore[attr-defined]
        if batch is not None:
            for row in read_rows(batch):
                yield decode_ddl(row[3]) if row[2] == IoType.DDL else IoType(row[2]).name
        elif capture.state.safe >= until:  # type: ignore[attr-defined]
            return


def texts(found: list[str | DdlStatement]) -> list[str]:
    return [each if isinstance(each, str) else each.text for each in found]


def statements(found: list[str | DdlStatement]) -> list[DdlStatement]:
    return [each for each in found if isinstance(each, DdlStatement)]


ORDERS = "create table orders (id int primary key)"


def test_statements_stand_between_the_rows_of_their_transaction(source: Source) -> None:
    with source.application.transaction():
        for text in (
            ORDERS,
            "insert into orders values (1)",
            "alter table orders add b text",
            "update orders set b = 'x'",
        ):
            source.application.execute(text)
    assert texts(source.captured()) == [ORDERS, "INSERT", "alter table orders add b text", "FIELD_COMP"]


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (
            f"{ORDERS}; insert into orders values (1); create index i on orders (id)",
            [ORDERS, "create index i on orders (id)"],
        ),
        (
            f"do $$ begin {ORDERS}; execute 'alter table orders add a int'; end $$",
            [ORDERS, "alter table orders add a int"],
        ),
        (
            f"begin; {ORDERS}; savepoint x; drop table orders; rollback to x; create table b (); commit",
            [ORDERS, "create table b ()"],
        ),
        (f"begin; {ORDERS}; rollback; create table b ()", ["create table b ()"]),
        (f"/* ; */ {ORDERS}; -- ;", [ORDERS]),
        ("create temp table c (a int)", []),
        (
            f"do $$ begin for i in 1..2 loop execute '{ORDERS}; drop table orders'; end loop; create table b (); end $$",
            [ORDERS, "drop table orders", ORDERS, "drop table orders", "create table b ()"],
        ),
        (f"{ORDERS}; create table if not exists orders ()", [ORDERS]),
        (
            "create extension pg_trgm; create table b (); drop extension pg_trgm",
            ["create extension pg_trgm", "create table b ()", "drop extension pg_trgm"],
        ),
        ("drop table if exists absent", []),
        (
            f"{ORDERS}; create temp table x (); create table y (); drop table x, y, orders cascade",
            [ORDERS, "create table y ()", 'DROP TABLE "s"."orders", "s"."y" CASCADE'],
        ),
    ],
)
def test_each_statement_of_a_string_is_captured_alone(source: Source, sent: str, found: list[str]) -> None:
    source.application.execute(sent)
    assert [each.text for each in statements(source.captured())] == found


def test_statements_inside_functions_are_captured(source: Source) -> None:
    source.application.execute(
        "create function f() returns void language sql as 'create table a (); create table b ()'"
    )
    source.application.execute(
        "create function g() returns void language plpgsql as 'begin perform s.f(); drop table a; end'"
    )
    source.application.execute("select g()")
    assert texts(source.captured())[2:] == ["create table a ()", "create table b ()", "drop table a"]


@pytest.mark.parametrize(
    ("before", "sent", "tag", "kind", "name", "table"),
    [
        ("", ORDERS, "CREATE TABLE", "TABLE", "orders", "orders"),
        (ORDERS, "alter table orders rename to o2", "ALTER TABLE", "TABLE", "o2", "o2"),
        (ORDERS, "alter table orders rename id to id2", "ALTER TABLE", "TABLE", "orders", "orders"),
        (ORDERS, "drop table orders", "DROP TABLE", "TABLE", "orders", "orders"),
        (ORDERS, "create index i on orders (id)", "CREATE INDEX", "INDEX", "i", "orders"),
        (ORDERS, "create index concurrently i on orders (id)", "CREATE INDEX", "INDEX", "i", "orders"),
        (ORDERS, "comment on column orders.id is 'x'", "COMMENT", "TABLE", "orders", "orders"),
        (ORDERS, "grant select on orders to public", "GRANT", "TABLE", "orders", "orders"),
        (ORDERS, "create policy p on orders using (true)", "CREATE POLICY", "POLICY", "p", "orders"),
        (ORDERS, "create view v as select * from orders", "CREATE VIEW", "VIEW", "v", None),
        ("", "create sequence q", "CREATE SEQUENCE", "SEQUENCE", "q", None),
        ("", "create type e as enum ('a')", "CREATE TYPE", "TYPE", "e", None),
        ("", "create function f(int) returns int language sql as 'select 1'", "CREATE FUNCTION", "FUNCTION", "f", None),
    ],
)
def test_a_statement_names_its_object(
    source: Source, before: str, sent: str, tag: str, kind: str, name: str, table: str | None
) -> None:
    if before:
        source.application.execute(before)
    source.application.execute(sent)
    found = statements(source.captured())[-1]
    assert (found.tag, found.text, found.main.kind) == (tag, sent, kind)
    assert found.main.name.name == name
    assert found.main.name.owner in ("s", "")
    assert (found.main.table.name if found.main.table else None) == table


def test_a_statement_has_its_session_and_the_columns_after_it(source: Source, north: str) -> None:
    source.application.execute("set timezone = 'Asia/Tokyo'")
    source.application.execute(ORDERS)
    source.application.execute("alter table orders rename id to number; alter table orders add b numeric(5,1)")
    first, second, third = statements(source.captured())
    settings = dict(first.settings)
    assert (settings["search_path"], settings["TimeZone"], first.database) == ("s, public", "Asia/Tokyo", "postgres")
    assert first.role == psycopg.conninfo.conninfo_to_dict(north)["user"]
    assert [(column.number, column.name, column.nullable) for column in second.columns] == [(1, "number", False)]
    assert [(column.number, column.name, column.type_name) for column in third.columns][1] == (2, "b", "numeric(5,1)")


def test_a_table_made_from_a_query_is_created_with_its_columns_and_its_rows_follow(source: Source) -> None:
    source.application.execute("create table made as select 1::bigint a, 'x'::text collate \"C\" b")
    found = source.captured()
    assert texts(found)[0] == 'CREATE TABLE "s"."made" ("a" bigint, "b" text COLLATE "C")'
    assert "INSERT" in texts(found)


def test_statements_of_ggshell_itself_are_not_captured(source: Source, north: str) -> None:
    source.application.execute("create table plain (a int)")
    with session.connect(north) as connection:
        PostgresTableLogging(connection).add("s.plain", (), all_columns=True)
    assert texts(source.captured()) == ["create table plain (a int)"]


def test_a_large_transaction_that_is_streamed_keeps_its_statements(source: Source) -> None:
    with source.application.transaction():
        source.application.execute(f"{ORDERS}; create table b (a text)")
        source.application.execute("insert into b select repeat('x', 1000) from generate_series(1, 80000)")
        source.application.execute("alter table b add c int; drop table orders")
        source.application.execute("insert into b values ('y', 1)")
    found = texts(source.captured())
    assert found[:2] == [ORDERS, "create table b (a text)"]
    assert found[-3:] == ["alter table b add c int", "drop table orders", "INSERT"]
    assert len(found) == 80_005


def test_statements_are_captured_in_a_database_with_another_encoding(north: str, tmp_path: Path) -> None:
    told: list[str] = []

    def tell(severity: Severity, code: str, text: str) -> None:
        told.append(f"{code} {text}")

    name = f"latin_{psycopg.conninfo.conninfo_to_dict(north)['dbname']}"
    dsn = make_conninfo(north, dbname=name)
    with psycopg.connect(north, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            with session.connect(dsn) as owner, psycopg.connect(dsn, autocommit=True) as application:
                owner.execute("CREATE SCHEMA s")
                PostgresTableLogging(owner).add_schema("s", all_columns=False)
                start = slot.register(owner, "ext1")
                application.execute('create table s."Größe" (id int primary key) partition by range (id)')
                application.execute('create table s."für" partition of s."Größe" default')
                application.execute('truncate s."für"')
                truncates = TruncateWatch(tell)
                ddl = DdlWatch(lambda found: found, tell)
                with capturing(dsn, start, tmp_path, ddl=ddl, truncates=truncates) as capture:
                    found = texts(list(_found(capture, end_of(dsn))))
                active = "SELECT count(*) FROM pg_replication_slots WHERE active AND database = current_database()"
                until("the slot is free", lambda: owner.execute(active).fetchall() == [(0,)])
                slot.unregister(owner, "ext1")
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert (found[0][:22], found[-1], told) == ('create table s."Größe"', "PURGE_DATA", [])


def test_a_forged_message_is_ignored_and_reported(source: Source) -> None:
    source.application.execute(ORDERS)
    (genuine,) = statements(source.captured())
    content = '{"xid": 1, "tag": "DROP TABLE"}'
    source.application.execute("select pg_logical_emit_message(true, 'ggshell.ddl', %s)", ["0" * 64 + content])
    assert statements(source.captured()) == [genuine]
    assert any("GGS-00582" in text and "seal" in text for text in source.told)


def test_statements_are_captured_after_schematrandata_was_deleted_and_added_again(
    north: str, source: Source, tmp_path: Path
) -> None:
    told: list[str] = []

    def tell(severity: Severity, code: str, text: str) -> None:
        told.append(f"{code} {text}")

    start = end_of(north)
    with capturing(north, start, tmp_path, ddl=DdlWatch(lambda found: found, tell)) as capture:
        with session.connect(north) as owner:
            PostgresTableLogging(owner).delete_schema("s")
            PostgresTableLogging(owner).add_schema("s", all_columns=False)
        source.application.execute(ORDERS)
        assert texts(list(_found(capture, end_of(north)))) == [ORDERS]
    assert told == []


def test_a_genuine_message_is_valid_only_in_its_own_transaction(source: Source, north: str) -> None:
    source.application.execute(ORDERS)
    with session.connect(north) as connection:
        slot_rows = connection.execute(
            "select pg_create_logical_replication_slot('spy', 'test_decoding', true)"
        ).fetchall()
        assert slot_rows
        source.application.execute("create table b ()")
        rows = connection.execute("select data from pg_logical_slot_get_changes('spy', null, null)").fetchall()
    copied = next(data.split("content:", 1)[1] for (data,) in rows if "ggshell.ddl" in data)
    source.application.execute("select pg_logical_emit_message(true, 'ggshell.ddl', %s)", [copied])
    assert texts(source.captured()) == [ORDERS, "create table b ()"]
    assert any("GGS-00582" in text and "transaction" in text for text in source.told)


def test_users_without_privileges_can_run_ddl_but_not_write_messages(source: Source, north: str) -> None:
    source.application.execute("drop role if exists dev; create role dev login; grant all on schema s to dev")
    with psycopg.connect(make_conninfo(north, user="dev"), autocommit=True) as dev:
        dev.execute("create table s.own (a int)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            dev.execute("select ggshell.write_ddl('ddl_command_end', 'DROP TABLE', 'x', '{}')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            dev.execute("select secret from ggshell.ddl_secret")
    assert texts(source.captured())[-1] == "create table s.own (a int)"
    assert statements(source.captured())[-1].role == "dev"
    source.application.execute("drop owned by dev cascade; drop role dev")


def test_an_extract_user_that_cannot_read_the_secret_is_told_the_grant(source: Source, north: str) -> None:
    source.application.execute("drop role if exists reader; create role reader login")
    with session.connect(make_conninfo(north, user="reader")) as reader, pytest.raises(DatabaseError) as refused:
        DdlWatch(lambda found: found, lambda *_: None).begin(reader)
    assert refused.value.code == "GGS-00580"
    assert "GRANT SELECT ON ggshell.ddl_secret" in refused.value.hint
    source.application.execute("drop role reader")


def test_the_last_deleted_schema_removes_the_triggers_and_a_capture_then_warns(source: Source, north: str) -> None:
    with session.connect(north) as owner:
        PostgresTableLogging(owner).delete_schema("s")
        assert not ddl_capture_sql.fires(owner)
        told: list[str] = []
        watch = DdlWatch(lambda found: found, lambda severity, code, _: told.append(f"{severity} {code}"))
        watch.begin(owner)
        watch.check(owner)
        assert told == ["WARNING GGS-00581"]
        PostgresTableLogging(owner).add_schema("s", all_columns=False)
        watch.check(owner)
        assert told == ["WARNING GGS-00581", "INFO GGS-00581"]
        owner.execute("ALTER EVENT TRIGGER ggshell_ddl DISABLE")
        watch.check(owner)
        assert told == ["WARNING GGS-00581", "INFO GGS-00581", "WARNING GGS-00581"]
        PostgresTableLogging(owner).delete_schema("s")
    source.application.execute(ORDERS)
    assert source.captured() == []


def test_a_disabled_trigger_is_enabled_again_by_add_schematrandata(source: Source, north: str) -> None:
    with session.connect(north) as owner:
        owner.execute("alter event trigger ggshell_ddl disable")
        assert not ddl_capture_sql.fires(owner)
        PostgresTableLogging(owner).add_schema("s", all_columns=False)
        assert ddl_capture_sql.fires(owner)


def test_names_in_other_schemas_are_captured_too(source: Source) -> None:
    source.application.execute("create schema other create table t (a int)")
    (found,) = statements(source.captured())
    assert found.main.name in (TableName("", "other"), TableName("other", "t"))


KEYED = "create table t (id int primary key, v text default 'x')"
PLAIN = "create table t (id int, v text default 'x')"


@pytest.mark.parametrize(
    ("table", "statement", "rows"),
    [
        (KEYED, "alter table t add c uuid default gen_random_uuid()", ["FIELD_COMP"] * 2),
        (KEYED, "alter table t add c timestamptz default now()", ["FIELD_COMP"] * 2),
        (KEYED, "alter table t add c timestamptz default current_timestamp", ["FIELD_COMP"] * 2),
        (KEYED, "alter table t add c int generated always as identity", ["FIELD_COMP"] * 2),
        (KEYED, "alter table t alter v type text using v || clock_timestamp()", ["FIELD_COMP"] * 2),
        (
            PLAIN,
            "alter table t add c uuid default gen_random_uuid()",
            ["TRUNCATE TABLE ONLY s.t", "PURGE_DATA", "INSERT", "INSERT"],
        ),
        (f"{KEYED}; alter table t replica identity full", "alter table t add c serial", ["FIELD_COMP"] * 2),
        (KEYED, "alter table t add c int default 5", []),
        (KEYED, "alter table t alter id type bigint", []),
        (KEYED, "alter table t alter v type varchar(20) using upper(v)", []),
        (KEYED, "alter table t add c timestamptz", []),
        (KEYED, "alter table t alter v set default now()::text", []),
    ],
)
def test_rows_that_a_statement_computes_are_in_the_log_if_a_replicat_would_compute_others(
    source: Source, table: str, statement: str, rows: list[str]
) -> None:
    source.application.execute(table)
    source.application.execute("insert into t values (1), (2)")
    source.application.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'fired'; end $$"
    )
    source.application.execute("create trigger refuses before update on t execute function refuse()")
    source.application.execute(statement)
    found = texts(source.captured())
    place = len(found) - 1 - found[::-1].index(statement)
    assert found[place + 1 :] == rows


def test_the_rows_of_a_partitioned_table_are_repeated(source: Source) -> None:
    source.application.execute(
        "create table t (id int primary key) partition by range (id); create table low partition of t for values from (0)"
        " to (10); create table high partition of t for values from (10) to (20); insert into t values (1), (11)"
    )
    source.application.execute("alter table t add c uuid default gen_random_uuid()")
    assert texts(source.captured())[-3:] == [
        "alter table t add c uuid default gen_random_uuid()",
        "FIELD_COMP",
        "FIELD_COMP",
    ]


OTHER = "create schema other; create table other.t (id int primary key, v text); insert into other.t values (1), (2)"
PARTITIONED = "create table p (id int primary key, v text) partition by range (id)"
ATTACH = "alter table p attach partition other.t for values from (0) to (10)"


@pytest.mark.parametrize(
    ("before", "statement", "rows"),
    [
        (OTHER, "alter table other.t set schema s", ["TRUNCATE TABLE ONLY s.t", "INSERT", "INSERT"]),
        (
            "create unlogged table t (id int primary key); insert into t values (1)",
            "alter table t set logged",
            ["TRUNCATE TABLE ONLY s.t", "INSERT"],
        ),
        (f"{OTHER}; {PARTITIONED}", ATTACH, ["TRUNCATE TABLE ONLY other.t", "INSERT", "INSERT"]),
        (
            f"{PARTITIONED}; create unlogged table u partition of p default; insert into u values (1)",
            "alter table u set logged",
            ["TRUNCATE TABLE ONLY s.u", "INSERT"],
        ),
        (f"{PARTITIONED}; create table t (id int primary key, v text)", ATTACH.replace("other.", ""), []),
        (
            f"{OTHER}; create table other.u (id int references other.t); insert into other.u values (1)",
            "alter table other.t set schema s",
            ["DELETE FROM ONLY s.t", "INSERT", "INSERT"],
        ),
        (
            "create schema other; create table other.t (id int, v text) partition by list (id);"
            "create table other.t1 partition of other.t for values in (1); insert into other.t values (1)",
            "alter table other.t set schema s",
            ["TRUNCATE TABLE s.t", "INSERT"],
        ),
        (
            f"{PARTITIONED}; create table low partition of p for values from (0) to (10); insert into p values (1)",
            "alter table p detach partition low",
            [],
        ),
        (
            "create table t (id int, v int); create table u () inherits (t);"
            " insert into t values (1); insert into u values (2)",
            "alter table t add c uuid default gen_random_uuid()",
            ["TRUNCATE TABLE ONLY s.t", "PURGE_DATA", "INSERT", "TRUNCATE TABLE ONLY s.u", "PURGE_DATA", "INSERT"],
        ),
        ("create table t (id int primary key)", "alter table t replica identity full", []),
    ],
)
def test_rows_of_a_table_that_becomes_captured_are_in_the_log(
    source: Source, before: str, statement: str, rows: list[str]
) -> None:
    source.application.execute(before)
    source.application.execute(statement)
    found = texts(source.captured())
    assert found[found.index(statement) + 1 :] == rows


@pytest.mark.parametrize("in_one_transaction", [True, False])
@pytest.mark.parametrize("again", [ATTACH, "alter table other.t set schema s"])
def test_rows_that_a_table_got_while_it_was_no_partition_are_in_the_log(
    source: Source, again: str, in_one_transaction: bool
) -> None:
    """A table of a schema that is not captured, which was a partition before."""
    steps = [OTHER, PARTITIONED, ATTACH, "alter table p detach partition other.t"]
    steps += ["insert into other.t values (3); delete from other.t where id = 1", again]
    for statement in ["; ".join(steps)] if in_one_transaction else steps:
        source.application.execute(statement)
    found = texts(source.captured())
    name = "other.t" if again == ATTACH else "s.t"
    assert found[-4:] == [again, f"TRUNCATE TABLE ONLY {name}", "INSERT", "INSERT"]


def test_rows_that_cannot_be_written_to_the_log_are_reported(source: Source) -> None:
    source.application.execute("create unlogged table t (); insert into t default values")
    source.application.execute("alter table t set logged")
    assert texts(source.captured())[-1] == "alter table t set logged"
    assert any("GGS-00586" in text and "s.t" in text for text in source.told), source.told


def test_a_table_that_cannot_be_captured_is_reported_and_captured_with_its_rows_once_it_can(source: Source) -> None:
    source.application.execute("create table t (a int, b int generated always as (a * 2) stored)")
    source.application.execute("insert into t values (1)")
    assert texts(source.captured()) == ["create table t (a int, b int generated always as (a * 2) stored)"]
    assert any("GGS-00588" in text and "s.t" in text for text in source.told), source.told
    source.application.execute("alter table t add primary key (a)")
    assert texts(source.captured())[-3:] == ["alter table t add primary key (a)", "TRUNCATE TABLE ONLY s.t", "INSERT"]


def test_statements_of_functions_of_the_same_name_are_told_apart_or_made_from_columns(source: Source) -> None:
    for argument, body in (
        ("int", "create table a (x int not null, y text default 'z'); drop table a"),
        ("text", "create table b (); create index i on a (x)"),
    ):
        source.application.execute(f"create function f({argument}) returns void language sql as $$ {body} $$")
    source.application.execute("select f(1)")
    assert texts(source.captured())[2:] == ['CREATE TABLE "s"."a" ("x" integer NOT NULL, "y" text)', "drop table a"]
    assert [text[:9] for text in source.told] == ["GGS-00587"]


def test_a_statement_whose_text_cannot_be_determined_is_reported(source: Source) -> None:
    body = "$$ ALTER TABLE s.orders ADD c int; $$"
    source.application.execute(ORDERS)
    source.application.execute(f"CREATE FUNCTION s.twice(int) RETURNS void LANGUAGE sql AS {body}")
    source.application.execute(
        f"CREATE FUNCTION s.twice(text) RETURNS void LANGUAGE sql AS {body.replace('c int', 'd int')}"
    )
    source.application.execute("SELECT s.twice(1)")
    found = texts(source.captured())
    assert not [text for text in found if "ADD c" in text and "FUNCTION" not in text]
    assert [text for text in source.told if text.startswith("GGS-00583 The text of ALTER TABLE on TABLE s.orders")]
