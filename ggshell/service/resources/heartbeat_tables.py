"""The heartbeat table of a connection's database, and its history with the lags that were measured."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from ggshell.errors import UsageError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, Said, utc_text
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.responses import Resource, Response
from ggshell.service.routes import resource
from ggshell.service.statement_words import word
from ggshell.service.steps import Steps

if TYPE_CHECKING:
    from ggshell.cli.results.heartbeats import HeartbeatInfo
    from ggshell.monitoring.heartbeat_lag import Direction, Lag

_BASE = "/connections/{connection}/tables/heartbeat"
_ROLE = Role.ADMINISTRATOR
_MOST_ROWS = 4095
_PART = {"limit": "the number of heartbeats to show, at most 4095", "offset": "the number of newer heartbeats to skip"}


class HeartbeatBody(Body):
    """The settings of a heartbeat table: ``frequency`` in seconds, the times in days."""

    frequency: float | None = None
    retention_time: int | None = None
    purge_frequency: int | None = None
    partitioned: bool | None = None
    target_only: bool | None = None
    upgrade: bool | None = None
    db_unique_name: bool | None = None
    tracking_extract_restart: bool | None = None

    def options(self) -> str:
        """Return the options of ADD and ALTER HEARTBEATTABLE."""
        given = {
            "FREQUENCY": self.frequency,
            "RETENTION_TIME": self.retention_time,
            "PURGE_FREQUENCY": self.purge_frequency,
        }
        found = "".join(f", {name} {Decimal(str(value))}" for name, value in given.items() if value is not None)
        if self.target_only is not None:
            found += ", TARGETONLY" if self.target_only else ", NOTARGETONLY"
        return found


class TablesHeartbeat(Resource, tag="ogg:tablesHeartbeat"):
    """The settings of a heartbeat table: ``frequency`` in seconds, 0 for none; the times in days."""

    frequency: float
    retention_time: int
    purge_frequency: int
    partitioned: bool
    target_only: bool
    tracking_extract_restart: bool
    db_unique_name: bool
    upgrade: bool


class MeasuredLag(Response, kw_only=True):
    """A heartbeat in one direction of a path between databases: its lag, that of its parts, and its age, in seconds."""

    received_timestamp: str | None
    source: str
    target: str
    path: str
    process_name: str | None = None
    lag_seconds: float
    age_seconds: float
    lag_extract: float | None = None
    lag_route: float | None = None
    lag_read: float | None = None
    lag_replicat: float | None = None


class ProcessHeartbeat(Resource, tag="ogg:processHeartbeat"):
    """The lags that heartbeats have measured."""

    heartbeats: list[MeasuredLag]


@resource("GET", _BASE, role=Role.USER, summary="Show the settings of the heartbeat table", returns=TablesHeartbeat)
def get_heartbeat_table(call: Call, connection: str) -> Answer:
    call.log_in(connection)
    info = cast("HeartbeatInfo", call.run("INFO HEARTBEATTABLE").result)
    frequency = info.frequency or Decimal(0)
    found = TablesHeartbeat(
        frequency=int(frequency) if frequency == int(frequency) else float(frequency),
        retention_time=info.retention_days,
        purge_frequency=info.purge_days,
        partitioned=info.partitioned,
        target_only=info.frequency is None,
        tracking_extract_restart=True,
        db_unique_name=False,
        upgrade=False,
    )
    return Answer(found)


@resource("POST", _BASE, role=_ROLE, summary="Add the heartbeat table", body=HeartbeatBody, optional=True, status=201)
def create_heartbeat_table(call: Call, connection: str) -> Answer:
    body: HeartbeatBody = call.body or HeartbeatBody()
    call.log_in(connection)
    with call.steps() as steps:
        _ensure_schema(call, steps)
        steps.complete()
        call.run(f"ADD HEARTBEATTABLE{body.options()}{', PARTITIONED' if body.partitioned else ''}", told=True)
    call.said.append(_added())
    return Answer(status=201)


def _ensure_schema(call: Call, steps: Steps) -> None:
    """Name a schema for the heartbeat objects in GLOBALS if it names none: a schema of the login's database."""
    from ggshell.groups.heartbeat_settings import home_names

    if home_names(call.home) is not None:
        return
    login = call.session.logged_in()
    present = {each.schema for each in login.table_logging().schemas("*")}
    schema = next((each for each in (login.user, "ggadmin", "public") if each in present), None)
    if schema is None:
        return  # the statement refuses with the reason
    path = call.home.globals
    call.require_shown(path)
    text = path.read_text() if path.exists() else ""
    steps.write_file(path, f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}GGSCHEMA {schema}\n")
    call.said.append(_schema_chosen(schema))


def _added() -> Said:
    return Said("OGG-14101", "Successfully added heartbeat table.")


def _schema_chosen(schema: str) -> Said:
    return Said("GGS-00919", f"Schema {schema} is entered in GLOBALS as the schema of the heartbeat objects.")


@resource("PATCH", _BASE, role=_ROLE, summary="Change the settings of the heartbeat table", body=HeartbeatBody)
def update_heartbeat_table(call: Call, connection: str) -> Answer:
    body: HeartbeatBody = call.body
    call.log_in(connection)
    info = cast("HeartbeatInfo", call.run("INFO HEARTBEATTABLE").result)
    if body.partitioned is not None and body.partitioned != info.partitioned:
        raise UsageError("partitioned cannot be changed", hint="delete the heartbeat table and add it again")
    if body.upgrade:
        call.run("UPGRADE HEARTBEATTABLE", told=True)
    options = body.options()
    if options:
        call.run(f"ALTER HEARTBEATTABLE{options}", told=True)
    return Answer()


@resource("DELETE", _BASE, role=_ROLE, summary="Delete the heartbeat table with its history")
def delete_heartbeat_table(call: Call, connection: str) -> Answer:
    call.log_in(connection)
    call.run("DELETE HEARTBEATTABLE", told=True)
    return Answer()


@resource(
    "GET",
    f"{_BASE}/{{process}}",
    role=Role.USER,
    summary="Show the heartbeats of a process",
    query=_PART,
    returns=ProcessHeartbeat,
)
def get_process_heartbeats(call: Call, connection: str, process: str) -> Answer:
    found = _received(call, connection, _part(call), process.upper())
    return Answer(_heartbeats(each for lag in found for each in _fields(lag, process.upper())))


@resource(
    "DELETE", f"{_BASE}/{{process}}", role=_ROLE, summary="Delete the heartbeats of a process that no longer exists"
)
def delete_process_heartbeats(call: Call, connection: str, process: str) -> Answer:
    call.log_in(connection)
    call.run(f"DELETE HEARTBEATENTRY {word(process)}", told=True)
    return Answer()


@resource(
    "GET",
    f"{_BASE}Data",
    role=Role.USER,
    summary="Show the received heartbeats with their lags",
    query=_PART,
    returns=ProcessHeartbeat,
)
def get_heartbeat_data(call: Call, connection: str) -> Answer:
    """Show the heartbeats in the history table, the newest first, with the lag in both directions of their path."""
    return Answer(_heartbeats(each for lag in _received(call, connection, _part(call)) for each in _fields(lag)))


def _part(call: Call) -> tuple[int, int]:
    """Return how many rows of the history ``limit`` and ``offset`` choose, and how many they leave out before. UsageError."""
    return min(_number(call, "limit", _MOST_ROWS), _MOST_ROWS), _number(call, "offset", 0)


def _number(call: Call, name: str, usual: int) -> int:
    text = call.request.query.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{text[:40]!a} is not a valid {name}")
    return int(text) if text else usual


def _heartbeats(found: Iterable[MeasuredLag]) -> ProcessHeartbeat:
    return ProcessHeartbeat(heartbeats=list(found))


def _received(call: Call, connection: str, part: tuple[int, int], process: str = "") -> list[Lag]:
    from ggshell.groups.heartbeat_settings import required_names

    call.log_in(connection)
    tables = call.session.logged_in().heartbeat_tables(required_names(call.home))
    return tables.received(*part, process)


def _fields(lag: Lag, process: str = "") -> list[MeasuredLag]:
    """Return the directions of a path that have measured something; ``process``: only those that it belongs to."""
    here, there = lag.beat.local_database or "", lag.beat.remote_database or ""
    beat = lag.beat
    ways = ((there, here, lag.incoming, beat.incoming_replicat), (here, there, lag.outgoing, beat.outgoing_replicat))
    shown = (way for way in ways if way[2].path and (not process or process in way[2].path.upper().split(" ")))
    return [_way(lag, *way) for way in shown]


def _way(lag: Lag, source: str, target: str, direction: Direction, replicat: str | None) -> MeasuredLag:
    parts = direction.parts
    return MeasuredLag(
        received_timestamp=utc_text(lag.received or 0),
        source=source,
        target=target,
        path=direction.path,
        process_name=replicat,
        lag_seconds=parts.total or 0.0,
        age_seconds=direction.age or 0.0,
        lag_extract=parts.extract,
        lag_route=parts.routing,
        lag_read=parts.read,
        lag_replicat=parts.apply,
    )
