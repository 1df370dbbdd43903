"""The facts of a PostgreSQL server that decide whether a database can be moved from it or to it."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.move_facts import Capacity, DumpProgram, Locale, OpenWork, Rights, ServerFacts
from ggshell.connectors.postgres import ddl_capture_sql, schema_trandata_sql
from ggshell.connectors.postgres.schema_dump import find_program, version_of
from ggshell.connectors.postgres.session import connect, execute, transaction
from ggshell.errors import ConnectionLostError, DatabaseError, NotFoundError

if TYPE_CHECKING:
    import psycopg

_PROVIDERS: Final = {"c": "libc", "i": "icu", "b": "builtin"}
_SETTINGS: Final = [
    "wal_level",
    "max_replication_slots",
    "max_active_replication_origins",
    "max_wal_senders",
    "max_slot_wal_keep_size",
    "idle_replication_slot_timeout",
    "max_connections",
]
_SERVER: Final = """
SELECT current_database(), current_user, current_setting('server_version_num')::int, current_setting('server_version'),
       pg_is_in_recovery(), pg_database_size(current_database()), pg_postmaster_start_time()"""
_LOCALE: Final = """
SELECT pg_encoding_to_char(d.encoding), coalesce(to_jsonb(d)->>'datlocprovider', 'c'), d.datcollate, d.datctype,
       coalesce(to_jsonb(d)->>'datlocale', to_jsonb(d)->>'daticulocale', ''), coalesce(to_jsonb(d)->>'datcollversion', ''),
       coalesce({actual}, '')
  FROM pg_database d WHERE d.datname = current_database()"""
_ACTUAL_SINCE: Final = 150_000
_ACTUAL: Final = "pg_database_collation_actual_version(d.oid)"
_ACTUAL_BEFORE: Final = """(SELECT pg_collation_actual_version(c.oid) FROM pg_collation c
         WHERE c.collprovider = 'c' AND c.collcollate = d.datcollate AND c.collencoding IN (-1, d.encoding) LIMIT 1)"""
_CAPACITY: Final = """
SELECT (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_stat_replication),
       (SELECT count(*) FROM pg_replication_origin), least(
       (SELECT current_setting('max_connections')::int - CASE WHEN r.rolsuper THEN 0 ELSE
               current_setting('superuser_reserved_connections')::int
               + coalesce(current_setting('reserved_connections', true)::int, 0) END - sum(numbackends)
          FROM pg_stat_database),
       CASE WHEN r.rolsuper OR r.rolconnlimit < 0 THEN NULL
            ELSE r.rolconnlimit - (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user) END,
       CASE WHEN r.rolsuper OR d.datconnlimit < 0 THEN NULL
            ELSE d.datconnlimit - (SELECT numbackends FROM pg_stat_database s WHERE s.datid = d.oid) END)
  FROM pg_roles r, pg_database d WHERE r.rolname = current_user AND d.datname = current_database()"""
_RIGHTS: Final = """
SELECT r.rolsuper, has_database_privilege(current_database(), 'CREATE'),
       (SELECT bool_and(has_function_privilege(p.oid, 'EXECUTE')) FROM pg_proc p
         WHERE p.proname ~ '^pg_replication_origin_(create|oid|drop|session_setup|session_reset)$'
           AND p.pronamespace = 'pg_catalog'::regnamespace),
       pg_has_role('pg_read_all_stats', 'USAGE')
  FROM pg_roles r WHERE r.rolname = current_user"""
_PREPARED: Final = """
SELECT gid, database::text, extract(epoch FROM clock_timestamp() - prepared)::float8, true FROM pg_prepared_xacts"""
_WRITING: Final = """
SELECT concat('pid ', pid, ' of ', usename, CASE WHEN application_name <> '' THEN ', ' || application_name END),
       coalesce(datname::text, ''), extract(epoch FROM clock_timestamp() - xact_start)::float8, false
  FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"""
_EVENT_TRIGGER: Final = (
    "CREATE FUNCTION pg_temp.ggshell_move_check() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
    "CREATE EVENT TRIGGER ggshell_move_check ON ddl_command_end EXECUTE FUNCTION pg_temp.ggshell_move_check()",
)
_CLOCK_TRIES: Final = 3


def server(connection: psycopg.Connection[Any]) -> ServerFacts:
    """Read what kind of server this is. Works with every version from 10 on."""
    database, user, version, release, standby, size, started = execute(connection, _SERVER)[0]
    rows = execute(connection, "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY (%s)", [_SETTINGS])
    system = ""
    with suppress(DatabaseError):  # the function can be revoked
        system = str(execute(connection, "SELECT system_identifier FROM pg_control_system()")[0][0])
    identity = f"{system} {started} {database}"
    return ServerFacts(
        identity, database, user, version, release.split()[0], standby, int(size), dict(rows), _ahead(connection)
    )


def _ahead(connection: psycopg.Connection[Any]) -> float:
    """How far the server's clock is ahead, by the shortest of some questions: its time passed halfway."""
    measured = []
    for _ in range(_CLOCK_TRIES):
        before = time.time()
        there = float(execute(connection, "SELECT extract(epoch FROM clock_timestamp())")[0][0])
        after = time.time()
        measured.append((after - before, there - (before + after) / 2))
    return min(measured)[1]


def capacity(connection: psycopg.Connection[Any]) -> Capacity:
    """Read how much of the server's limits is in use."""
    return Capacity(*map(int, execute(connection, _CAPACITY)[0]))


def locale(connection: psycopg.Connection[Any]) -> Locale:
    """Read the database's encoding and default collation."""
    actual = _ACTUAL if connection.info.server_version >= _ACTUAL_SINCE else _ACTUAL_BEFORE
    encoding, provider, *rest = execute(connection, _LOCALE.format(actual=actual))[0]
    return Locale(encoding, _PROVIDERS.get(provider, provider), *rest)


def rights(connection: psycopg.Connection[Any], conninfo: str) -> Rights:
    """Read or try what the login may do; nothing is changed."""
    superuser, creates, origins, sees = execute(connection, _RIGHTS)[0]
    installed = schema_trandata_sql.fires(connection) and ddl_capture_sql.fires(connection)
    triggers = superuser or installed or _accepts(connection, *_EVENT_TRIGGER)
    suppresses = superuser or _accepts(connection, "SET LOCAL session_replication_role = replica")
    return Rights(superuser, _log_refusal(conninfo), triggers, creates, suppresses, bool(origins), sees)


def _accepts(connection: psycopg.Connection[Any], *statements: str) -> bool:
    """Whether the server accepts statements, which are rolled back. The rules of a cloud provider are its own."""
    import psycopg

    try:
        with transaction(connection):
            for statement in statements:
                execute(connection, statement)
            raise psycopg.Rollback
    except ConnectionLostError:
        raise
    except DatabaseError:
        return False
    return True


def _log_refusal(conninfo: str) -> str:
    """Why the server does not let the login read its log: by trying, because pg_hba.conf can refuse it as well."""
    try:
        connect(conninfo, replication=True, program="ggshell move").close()
    except ConnectionLostError:  # no free session: that is another finding
        return ""
    except DatabaseError as error:
        return error.message
    return ""


def open_work(connection: psycopg.Connection[Any]) -> list[OpenWork]:
    """Read the open transactions with an ID; a new logical slot waits for all of them, in every database."""
    return [OpenWork(*row) for row in execute(connection, f"{_PREPARED} UNION ALL {_WRITING} ORDER BY 3 DESC")]


def dump_program(source: int, target: int) -> DumpProgram | None:
    """Find the pg_dump that LOAD uses for servers of these major versions; None if it finds none that reads the source."""
    try:
        path = find_program(source, target)
    except NotFoundError:
        return None
    return DumpProgram(str(path), version_of(path) or 0)
