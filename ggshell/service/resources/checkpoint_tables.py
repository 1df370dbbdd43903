"""The checkpoint table of a connection's database."""

from __future__ import annotations

from typing import Literal

from ggshell.home.users import Role
from ggshell.service.answers import Answer
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.database_names import object_name
from ggshell.service.responses import Resource, Response
from ggshell.service.routes import resource


class CheckpointTableBody(Body):
    """What to do with a checkpoint table. ``name``: the one of GLOBALS if it is not given."""

    operation: Literal["add", "delete", "info", "upgrade", "cleanup"]
    name: str = ""


class TableUse(Response):
    """A Replicat whose position is in the table."""

    group: str
    key: str
    csn: str | None
    updated: str


class TablesCheckpoint(Resource, tag="ogg:tablesCheckpoint"):
    """What a checkpoint table contains."""

    name: str
    groups: list[TableUse]


@resource(
    "POST",
    "/connections/{connection}/tables/checkpoint",
    role=Role.ADMINISTRATOR,
    summary="Add, upgrade, show, clean up or delete a checkpoint table",
    body=CheckpointTableBody,
    returns=TablesCheckpoint | None,
)
def manage_checkpoint_table(call: Call, connection: str) -> Answer:
    body: CheckpointTableBody = call.body
    name = f" {object_name(body.name)}" if body.name else ""
    call.log_in(connection)
    statement = f"{body.operation.upper()} CHECKPOINTTABLE{name}"
    if body.operation != "info":
        call.run(statement, told=True)
        return Answer()
    rows = [
        TableUse(group=row["group"], key=row["key"], csn=row["csn"], updated=str(row["updated"]))
        for row in call.rows(statement)
    ]
    return Answer(TablesCheckpoint(name=body.name, groups=rows))
