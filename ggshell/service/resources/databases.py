"""What a connection's database contains: schemas, tables, and open transactions."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection, item, utc_text
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items, Resource, Response
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


class ActiveTransaction(Response):
    """An open transaction of the database. ``process_id``: of its session, 0 for a prepared one."""

    xid: str
    start_time: str | None
    user_name: str | None
    process_id: int | None
    status: Literal["ACTIVE", "PREPARED"]


class CurrentScn(Response):
    """The end of the log."""

    csn: str
    current_date: str | None
    user_name: str


class ActiveTransactions(Resource, tag="ogg:activeTransactions"):
    """The open transactions that have written something, and the end of the log."""

    active_transactions: list[ActiveTransaction]
    current_scn: CurrentScn


class TableColumn(Response):
    """A column of a table."""

    name: str
    type: str
    nullable: bool
    primary_key: bool


class DatabaseTable(Resource, tag="ogg:databaseTable"):
    """A table."""

    schema: str
    name: str
    columns: list[TableColumn]


@resource(
    "GET",
    f"{_BASE}/activeTransactions",
    role=Role.USER,
    summary="Show the open transactions of the database",
    returns=ActiveTransactions,
)
def get_active_transactions(call: Call, connection: str) -> Answer:
    login = _login(call, connection)
    position, now = login.log_end()
    found = [
        ActiveTransaction(
            xid=str(each.xid),
            start_time=utc_text(each.begin_time),
            user_name=each.user,
            process_id=each.pid,
            status="ACTIVE" if each.pid else "PREPARED",
        )
        for each in login.open_transactions()
    ]
    current = CurrentScn(csn=position, current_date=utc_text(now), user_name=login.user)
    return Answer(ActiveTransactions(active_transactions=found, current_scn=current))


@resource(
    "GET",
    f"{_BASE}/databases",
    role=Role.USER,
    summary="List the database of the connection",
    query=_NAME,
    returns=Items,
)
def list_databases(call: Call, connection: str) -> Answer:
    return Answer(_list(call, f"/connections/{connection}/databases", [_login(call, connection).database]))


@resource(
    "GET",
    f"{_BASE}/databases/{{database}}",
    role=Role.USER,
    summary="List the schemas with tables",
    query=_NAME,
    returns=Items,
)
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
    returns=Items,
)
def list_tables(call: Call, connection: str, database: str, schema: str) -> Answer:
    tables = [table.name for table in _tables(call, connection, database) if table.owner == schema]
    if not tables:
        raise NotFoundError(f"schema {schema} does not exist, or has no tables")
    return Answer(_list(call, f"/connections/{connection}/databases/{database}/{schema}", tables))


@resource("GET", _TABLE, role=Role.USER, summary="Show the columns of a table", returns=DatabaseTable)
def get_table(call: Call, connection: str, database: str, schema: str, table: str) -> Answer:
    login = _login(call, connection)
    _require(login, database)
    found = [
        TableColumn(name=each.name, type=each.type, nullable=each.nullable, primary_key=each.key)
        for each in login.columns(TableName(schema, table))
    ]
    return Answer(DatabaseTable(schema=schema, name=table, columns=found))


@resource(
    "POST",
    f"{_TABLE}/instantiationCsn",
    role=Role.ADMINISTRATOR,
    summary="A start CSN for one table is not supported",
    body=InstantiationBody,
)
def set_instantiation_csn(call: Call, connection: str, database: str, schema: str, table: str) -> Answer:
    raise not_here("a start CSN for one table", "start the Replicat after the CSN: commands/execute with after")


def _list(call: Call, path: str, names: list[str]) -> Items:
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
