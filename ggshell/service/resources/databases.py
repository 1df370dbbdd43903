"""What a connection's database contains: schemas, tables, and open transactions."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, Object, collection, item, utc_text
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.routes import resource
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn

_BASE = "/connections/{connection}"
_NAME = {"name": "a name, or a pattern with * and ?"}
_TABLE = f"{_BASE}/databases/{{database}}/{{schema}}/{{table}}"


class InstantiationBody(Body):
    """The CSN from which a table's changes are applied."""

    command: str = "set"
    csn: Any = None
    source: str | None = None


@resource("GET", f"{_BASE}/activeTransactions", role=Role.USER, summary="Show the open transactions of the database")
def get_active_transactions(call: Call, connection: str) -> Answer:
    login = _login(call, connection)
    position, now = login.log_end()
    found: list[Object] = [
        {
            "xid": str(each.xid),
            "startTime": utc_text(each.begin_time),
            "userName": each.user,
            "processId": each.pid,
            "status": "ACTIVE" if each.pid else "PREPARED",
        }
        for each in login.open_transactions()
    ]
    current = {"csn": position, "currentDate": utc_text(now), "userName": login.user}
    return Answer({"$schema": "ogg:activeTransactions", "activeTransactions": found, "currentScn": current})


@resource("GET", f"{_BASE}/databases", role=Role.USER, summary="List the database of the connection", query=_NAME)
def list_databases(call: Call, connection: str) -> Answer:
    return Answer(_list(call, f"/connections/{connection}/databases", [_login(call, connection).database]))


@resource("GET", f"{_BASE}/databases/{{database}}", role=Role.USER, summary="List the schemas with tables", query=_NAME)
def list_schemas(call: Call, connection: str, database: str) -> Answer:
    tables = _tables(call, connection, database)
    schemas = sorted({table.owner for table in tables})
    return Answer(_list(call, f"/connections/{connection}/databases/{database}", schemas))


@resource(
    "GET",
    f"{_BASE}/databases/{{database}}/{{schema}}",
    role=Role.USER,
    summary="List the tables of a schema",
    query=_NAME,
)
def list_tables(call: Call, connection: str, database: str, schema: str) -> Answer:
    tables = [table.name for table in _tables(call, connection, database) if table.owner == schema]
    if not tables:
        raise NotFoundError(f"schema {schema} does not exist, or has no tables")
    return Answer(_list(call, f"/connections/{connection}/databases/{database}/{schema}", tables))


@resource("GET", _TABLE, role=Role.USER, summary="Show the columns of a table")
def get_table(call: Call, connection: str, database: str, schema: str, table: str) -> Answer:
    login = _login(call, connection)
    _require(login, database)
    found = [
        {"name": each.name, "type": each.type, "nullable": each.nullable, "primaryKey": each.key}
        for each in login.columns(TableName(schema, table))
    ]
    return Answer({"$schema": "ogg:databaseTable", "schema": schema, "name": table, "columns": found})


@resource(
    "POST",
    f"{_TABLE}/instantiationCsn",
    role=Role.ADMINISTRATOR,
    summary="A start CSN for one table is not supported",
    body=InstantiationBody,
)
def set_instantiation_csn(call: Call, connection: str, database: str, schema: str, table: str) -> Answer:
    raise not_here("a start CSN for one table", "start the Replicat after the CSN: commands/execute with after")


def _list(call: Call, path: str, names: list[str]) -> Object:
    """Return a collection of the names that match the ``name`` of the address, which may contain ``*`` and ``?``."""
    wanted = call.request.query.get("name") or "*"
    return collection(item(call.url(path), name) for name in names if fnmatchcase(name, wanted))


def _login(call: Call, connection: str) -> LoggedIn:
    call.log_in(connection)
    return call.session.logged_in()


def _tables(call: Call, connection: str, database: str) -> list[TableName]:
    login = _login(call, connection)
    _require(login, database)
    try:
        return login.tables()
    except NotFoundError:
        return []


def _require(login: LoggedIn, database: str) -> None:
    """Raise NotFoundError for another database than that of the connection."""
    if database != login.database:
        raise NotFoundError(f"database {database} is not the database of the connection", hint=f"use {login.database}")
