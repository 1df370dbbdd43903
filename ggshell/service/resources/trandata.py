"""TRANDATA and SCHEMATRANDATA of a connection's database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from ggshell.home.users import Role
from ggshell.service.answers import DONE, Answer, Object, Said
from ggshell.service.bodies import Body, described
from ggshell.service.call import Call, objects_of
from ggshell.service.connection_names import existing_connection
from ggshell.service.database_names import object_name
from ggshell.service.refusals import not_here
from ggshell.service.responses import Resource
from ggshell.service.routes import resource
from ggshell.service.told import events_of
from ggshell.types import split_name

if TYPE_CHECKING:
    from ggshell.cli.outcome import Outcome

_BASE = "/connections/{connection}/trandata"
Operation = Literal["add", "delete", "info"]


class Logging(Body):
    """What both kinds of bodies have. Options about the columns that Oracle logs have no meaning here and are reported."""

    operation: Operation
    all_columns: bool = False
    scheduling_columns: bool = True
    prepare_csn_mode: str | None = None

    def unused(self) -> list[str]:
        """The fields that differ from what PostgreSQL does anyway."""
        given = {"prepareCsnMode": self.prepare_csn_mode not in (None, "none"), "schedulingColumns": False}
        given["schedulingColumns"] = not self.scheduling_columns
        return [name for name, differs in given.items() if differs]


class SchemaLogging(Logging, kw_only=True):
    """TRANDATA of a schema."""

    schema_name: str
    nonvalidated_keys_allowed: bool = False


class TableLogging(Logging, kw_only=True):
    """TRANDATA of tables; ``table_name`` may contain wildcards."""

    table_name: str
    schema_name: str | None = None
    columns: list[str] | None = None
    key_columns: list[str] | None = None
    primary_key: bool = True


LoggingRow = Annotated[
    Object, described("A row of the statement's result: for info, a table and what is logged of it.")
]


class TrandataSchema(Resource, tag="ogg:trandataSchema"):
    """The logging of a schema's tables."""

    schemas: list[LoggingRow]


class TrandataTable(Resource, tag="ogg:trandataTable"):
    """The logging of tables."""

    tables: list[LoggingRow]


@resource(
    "POST",
    f"{_BASE}/schema",
    role=Role.ADMINISTRATOR,
    summary="Add, delete or show the logging of a schema's tables",
    body=SchemaLogging,
    returns=TrandataSchema,
)
def manage_schema(call: Call, connection: str) -> Answer:
    body: SchemaLogging = call.body
    name = object_name(body.schema_name)
    whole = " ALLCOLS" if body.all_columns and body.operation == "add" else ""
    outcome = _run(call, connection, f"{body.operation.upper()} SCHEMATRANDATA {name}{whole}", body)
    if body.operation == "add" and body.all_columns:
        shown = split_name(body.schema_name)[-1]
        call.said += [_scheduling(shown), _whole(shown)]
    return Answer(TrandataSchema(schemas=objects_of(outcome.result)))


@resource(
    "POST",
    f"{_BASE}/table",
    role=Role.ADMINISTRATOR,
    summary="Add, delete or show the logging of tables",
    body=TableLogging,
    returns=TrandataTable,
)
def manage_table(call: Call, connection: str) -> Answer:
    body: TableLogging = call.body
    name = object_name(f"{body.schema_name}.{body.table_name}" if body.schema_name else body.table_name)
    options = _table_options(body) if body.operation == "add" else ""
    outcome = _run(call, connection, f"{body.operation.upper()} TRANDATA {name}{options}", body)
    return Answer(TrandataTable(tables=objects_of(outcome.result)))


@resource(
    "POST",
    f"{_BASE}/procedure",
    role=Role.ADMINISTRATOR,
    summary="Procedural replication is not supported",
    body=Logging,
)
def manage_procedure(call: Call, connection: str) -> Answer:
    existing_connection(call.home, connection)
    raise not_here(
        "the logging of procedure calls", "use trandata/schema: the changes that procedures make are captured"
    )


def _table_options(body: TableLogging) -> str:
    columns = f", COLS ({_list(body.columns)})" if body.columns else ""
    keys = f", KEYCOLS ({_list(body.key_columns)})" if body.key_columns else ""
    return f"{', ALLCOLS' if body.all_columns else ''}{columns}{keys}"


def _list(columns: list[str]) -> str:
    return ", ".join(map(object_name, columns))


def _run(call: Call, connection: str, statement: str, body: Logging) -> Outcome:
    """Carry out a statement in the database; its events become messages, or its text if it has none."""
    call.log_in(connection)
    outcome = call.run(statement)
    result = outcome.result
    found = events_of(result)
    lines = [] if result is None or found else result.layout.splitlines()
    call.said += found or [Said(DONE, line.strip()) for line in lines if line.strip()]
    if body.operation == "add":
        call.said += [_unused(name) for name in body.unused()]
    return outcome


def _scheduling(schema: str) -> Said:
    return Said("OGG-01976", f'SCHEMATRANDATA for scheduling columns has been added on schema "{schema}".')


def _whole(schema: str) -> Said:
    return Said("OGG-01977", f'SCHEMATRANDATA for all columns has been added on schema "{schema}".')


def _unused(name: str) -> Said:
    return Said("GGS-00918", f"{name} has no effect: it selects what Oracle Database logs.")
