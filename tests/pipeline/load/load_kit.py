"""Databases with every kind of table, LOAD between them, and the proof that both sides are equal."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import psycopg
from command_line import run_ggshell

from ggshell.connectors import loading
from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.connectors.postgres.schema_dump import find_program
from ggshell.connectors.registry import connector_for
from ggshell.pipeline.load.outcome import LoadOutcome, LoadRequest

EVERY_KIND = Path(__file__).with_name("every_kind.sql").read_text()
"""Statements that create and fill each kind of table and the objects around them."""

_NOISE = re.compile(r"(?m)^(--.*|\\(un)?restrict .*|SET .*|SELECT pg_catalog.set_config.*|)\n")


def sql(dsn: str, *statements: str) -> list[tuple]:
    """Run statements; the rows of the last one."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def login(dsn: str) -> LoggedIn:
    return connector_for(dsn).log_in(Credentials(dsn), Path("/"))


def load(north: str, south: str, *tables: str, definitions: bool = False, restart: bool = False, **more) -> LoadOutcome:
    """LOAD as ``ggshell move`` calls it, with two jobs."""
    request = LoadRequest(tables, definitions, 2, restart)
    here, there = login(north), login(south)
    try:
        return loading.load(here, there, request, lambda _: False, **more)
    finally:
        here.close()
        there.close()


def statement(home: Path, north: str, south: str, options: str = "", **environment: str) -> subprocess.CompletedProcess:
    """LOAD as a user runs it."""
    return run_ggshell("--home", home, "-c", f'LOAD "{north}" TO "{south}"{options}', **environment)


def definitions(dsn: str) -> str:
    """The definitions of a database as pg_dump shows them, without the bookkeeping of LOAD."""
    program = find_program(18, 18)
    command = [program, "--schema-only", "--exclude-schema=ggshell", "--dbname", dsn]
    return _NOISE.sub("", subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout)


def content(dsn: str) -> dict[str, tuple]:
    """For each table: the number of its own rows and a sum of their texts; for each sequence its value."""
    found: dict[str, tuple] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'; SET search_path = ''; SET extra_float_digits = 3")
        names = connection.execute(
            "SELECT format('%I.%I', nspname, relname), relkind::text"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'm', 'S')"
            " AND nspname !~ '^(pg_|information_schema|ggshell)' AND (relkind <> 'm' OR relispopulated)"
        ).fetchall()
        for name, kind in names:
            asked = (
                f"SELECT count(*), md5(string_agg(md5(t::text), '' ORDER BY t::text COLLATE \"C\")) FROM ONLY {name} t"
            )
            asked = f"SELECT last_value, is_called FROM {name}" if kind == "S" else asked
            found[name] = connection.execute(asked.encode()).fetchone()
    return found
