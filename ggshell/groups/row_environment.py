"""The values of @GETENV in a group's process: the process, its counts, the trail that it reads, and its database."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Callable, Mapping
from functools import lru_cache

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS
from ggshell.connectors.login import connection_string
from ggshell.connectors.registry import connector_for
from ggshell.errors import GgsError
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.statistics import Section
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.values import Value
from ggshell.trail.name import TrailName
from ggshell.trail.opened import open_file

_COUNTED = {
    "INSERTS": ("inserts",),
    "UPDATES": ("updates",),
    "DELETES": ("deletes",),
    "TRUNCATES": ("truncates",),
    "DISCARDS": ("discards",),
    "IGNORES": ("ignores",),
    "OPERATIONS": ("inserts", "updates", "deletes", "truncates"),
}


def row_environment(
    context: GroupContext,
    trail: TrailName | None,
    database: Callable[[], Mapping[str, str]] | None,
    login: str = "",
) -> Environment:
    """Return the environment of column functions in a process.

    ``trail``: the trail that the process reads, or None. ``database``: returns the values of DBENVIRONMENT. ``login``: the
    connection string for SQLEXEC, or an empty text.
    """
    process: dict[str, Value] = {
        "GROUPNAME": context.group,
        "GROUPTYPE": str(context.type.value),
        "HOSTNAME": platform.node(),
        "OSUSERNAME": getpass.getuser(),
        "PROCESSID": os.getpid(),
    }
    if context.checkpoint.description:
        process["GROUPDESCRIPTION"] = context.checkpoint.description

    @lru_cache(maxsize=8)
    def file(seqno: int) -> Mapping[str, Value]:
        return _file_facts(trail, seqno) if trail is not None else {}

    @lru_cache(maxsize=1)
    def facts() -> Mapping[str, Value]:
        return dict(database()) if database is not None else {}

    def report(text: str) -> None:
        context.report.event(Severity.WARNING, "GGS-00541", text)

    program = f"ggshell {context.type} {context.group}"
    queries = connector_for(login).queries(login, program, report) if login else None
    return Environment(context.clock, process, lambda table, kind: _count(context, table, kind), file, facts, queries)


def queries_login(home: Home, parameters: ExtractParameters) -> str:
    """Return the connection string for SQLEXEC in an Extract or a pump; empty if it is not used or there is no login."""
    login = parameters.login
    asked = any(table.clauses.queries for table in parameters.tables)
    return connection_string(home, login) if asked and (login.alias or login.userid) else ""


def _count(context: GroupContext, table: str, statistic: str) -> int | None:
    """Return the number of operations since the start, for one table (as source or target) or for all tables."""
    kinds = _COUNTED.get(statistic)
    if kinds is None:
        return None
    tables = context.statistics.snapshot()["tables"]
    wanted = [each for each in tables if not table or table.lower() in (each["source"].lower(), each["target"].lower())]
    return sum(int(each["counts"][Section.TOTAL.value][kind]) for each in wanted for kind in kinds)


def _file_facts(trail: TrailName, seqno: int) -> Mapping[str, Value]:
    """Return the values in a trail file's header; empty if the file cannot be read."""
    try:
        opened = open_file(trail, seqno)
    except (GgsError, FileNotFoundError):
        return {}
    header = opened.header
    opened.close()
    vendor, name, version = header.database_vendor, header.database_name, header.database_version
    found: dict[str, Value | None] = {
        "COMPATIBILITY": header.compatibility,
        "CREATETIMESTAMP": header.created + JULIAN_EPOCH_MICROSECONDS,
        "FILENAME": header.file_name,
        "FILESEQNO": seqno,
        "URI": header.uri,
        "GROUPNAME": header.producer,
        "GGVERSIONSTRING": header.program,
        "HOSTNAME": header.node,
        "OSTYPE": header.system,
        "OSRELEASE": header.release,
        "DBTYPE": vendor,
        "DBNAME": name,
        "DBVERSIONSTRING": version,
        "RECOVERYMODE": header.recovery_mode,
        "FIRSTRECCSN": None if header.first_csn is None else str(header.first_csn),
        "FIRSTRECIOTIME": None if header.first_time is None else header.first_time + JULIAN_EPOCH_MICROSECONDS,
        "LASTCSN": None if header.previous_csn is None else str(header.previous_csn),
    }
    return {key: value for key, value in found.items() if value is not None and value != ""}
