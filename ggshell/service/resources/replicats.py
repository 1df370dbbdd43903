"""Replicats: create, change, delete, and what they report."""

from __future__ import annotations

from typing import Annotated

from ggshell.cli.commands.checkpoint_table import default_table
from ggshell.cli.groups import REPLICAT, View
from ggshell.errors import NotFoundError, StateError, UsageError
from ggshell.home.checkpoint import GroupKind, ReplicatKind
from ggshell.home.users import Role
from ggshell.service import group_changes
from ggshell.service.answers import Answer, Object, Said
from ggshell.service.begins import begin_options, moved_options
from ggshell.service.bodies import Alias, Body, GroupBody, described
from ggshell.service.call import Call
from ggshell.service.group_commands import GroupCommand, send
from ggshell.service.group_facts import (
    begin_field,
    credentials_of,
    find_group,
    listed,
    parameter_text,
    replicat_mode,
    status_text,
)
from ggshell.service.group_responses import CommandReply, Replicat
from ggshell.service.responses import StatusItems
from ggshell.service.routes import resource
from ggshell.service.statement_words import quoted, word
from ggshell.service.trail_names import known_trail, trail_fields

_BASE = "/replicats"


class Mode(Body):
    """How a Replicat applies."""

    type: Annotated[
        str, described("nonintegrated: a classic Replicat.", "nonintegrated", "integrated", "coordinated")
    ] = "nonintegrated"
    parallel: Annotated[bool, described("true: a parallel Replicat, regardless of the type.")] = False


class TrailSource(Body):
    """The trail that a Replicat reads."""

    name: str
    path: str = ""


class CheckpointTable(Body):
    """The checkpoint table of a Replicat."""

    table: str = ""


class ReplicatBody(GroupBody):
    """A Replicat, for POST and PATCH."""

    source: TrailSource | None = None
    mode: Mode | None = None
    checkpoint: CheckpointTable | None = None
    registration: Annotated[str | None, described("none: a Replicat is not registered with its database.", "none")] = (
        None
    )
    synchronized: bool | None = None


@resource("GET", _BASE, role=Role.USER, summary="List the Replicats", returns=StatusItems)
def list_replicats(call: Call) -> Answer:
    return listed(call, _BASE, REPLICAT)


@resource("GET", f"{_BASE}/{{replicat}}", role=Role.USER, summary="Show a Replicat", returns=Replicat)
def get_replicat(call: Call, replicat: str) -> Answer:
    found = find_group(call, REPLICAT, replicat)
    text = parameter_text(call, found.group)
    table = found.checkpoint.options.checkpoint_table
    fields: Object = {
        "$schema": "ogg:replicat",
        "credentials": credentials_of(text),
        "begin": begin_field(found),
        "source": trail_fields(found.checkpoint.read.trail),
        "config": None if text is None else text.splitlines(),
        "mode": replicat_mode(found),
        "checkpoint": {"table": table} if table else None,
        "status": status_text(found),
        "description": found.checkpoint.description or None,
        **group_changes.shown_settings(call, found),
    }
    return Answer({key: value for key, value in fields.items() if value is not None})


@resource(
    "POST", f"{_BASE}/{{replicat}}", role=Role.ADMINISTRATOR, summary="Create a Replicat", body=ReplicatBody, status=201
)
def create_replicat(call: Call, replicat: str) -> Answer:
    body: ReplicatBody = call.body
    name = replicat.upper()
    _check_registration(body)
    group_changes.require_new_group(call, REPLICAT, name)
    if body.source is None:
        raise UsageError(
            "source is required: the trail that the Replicat reads", hint='"source": {"name": "ea", "path": "dirdat/"}'
        )
    with call.steps() as steps:
        if body.config is not None:
            group_changes.write_parameters(call, steps, name, GroupKind.REPLICAT, body.config)
        group_changes.add_group(call, steps, GroupKind.REPLICAT, name, _added(call, name, body, body.source))
        settings = group_changes.common_settings(call, body, new=True)
        group_changes.keep_settings(call, steps, f"REPLICAT {name}", settings, new=True)
        steps.complete()
        if body.status not in (None, "stopped"):
            group_changes.set_status(call, REPLICAT, name, str(body.status))
    return Answer(status=201)


def _added(call: Call, name: str, body: ReplicatBody, source: TrailSource) -> str:
    """Return the ADD REPLICAT statement of a body."""
    mode = body.mode or Mode()
    kinds = {"integrated": ", INTEGRATED", "coordinated": ", COORDINATED"}
    if mode.type not in ("nonintegrated", *kinds):
        hint = 'use nonintegrated, integrated or coordinated; "mode": {"parallel": true} makes it parallel'
        raise UsageError(f"{mode.type[:80]} is not a valid mode", hint=hint)
    kind = ", PARALLEL" if mode.parallel else kinds.get(mode.type, "")
    table = body.checkpoint.table if body.checkpoint is not None else ""
    if not table and default_table(call.session) is None:
        hint = 'add "checkpoint": {"table": "schema.table"}, or CHECKPOINTTABLE to GLOBALS for all groups'
        raise UsageError("checkpoint is required: the table that holds the position of the Replicat", hint=hint)
    options = f", CHECKPOINTTABLE {word(table)}" if table else ""
    if body.description:
        options += f", DESC {quoted(body.description)}"
    trail = known_trail(call.home, source.name, source.path)
    return f"ADD REPLICAT {word(name)}{kind}, EXTTRAIL {word(trail)}{options}{begin_options(body.begin)}"


def _check_registration(body: ReplicatBody) -> None:
    """Raise UsageError for a registration: only the vendor's integrated Replicats have one."""
    if body.registration not in (None, "none"):
        raise UsageError(
            f"registration {body.registration[:80]!a} is not supported: a Replicat is not registered with its database",
            hint="leave registration out, or use none",
        )


@resource("PATCH", f"{_BASE}/{{replicat}}", role=Role.OPERATOR, summary="Change a Replicat", body=ReplicatBody)
def update_replicat(call: Call, replicat: str) -> Answer:
    """Change a Replicat. ``config`` requires Administrator.

    ALTER REPLICAT is the last step, because it also moves the row in the target database.
    """
    body: ReplicatBody = call.body
    _check_registration(body)
    group_changes.require_role(call, body.config)
    found = find_group(call, REPLICAT, replicat)
    with call.steps() as steps:
        if body.config is not None:
            group_changes.write_parameters(call, steps, found.group, GroupKind.REPLICAT, body.config)
        group_changes.keep_settings(call, steps, found.name, group_changes.common_settings(call, body))
        options = _altered(call, found, body)
        if options:
            _log_in(call, found, body)
            call.run(f"ALTER REPLICAT {word(found.group)}{options}", told=True)
    if body.status is not None:
        group_changes.set_status(call, REPLICAT, found.group, body.status)
    return Answer()


def _altered(call: Call, found: View, body: ReplicatBody) -> str:
    """Return the options of ALTER REPLICAT for what differs."""
    options = moved_options(call, found, body.begin)
    trail = known_trail(call.home, body.source.name, body.source.path) if body.source is not None else ""
    if trail and trail != found.checkpoint.read.trail:
        options += f", EXTTRAIL {word(trail)}"
    if body.description is not None and body.description != found.checkpoint.description:
        options += f", DESC {quoted(body.description)}"
    return options


def _log_in(call: Call, found: View, body: ReplicatBody) -> None:
    """Log in to the target, whose checkpoint table holds the position.

    Raises StateError if the alias does not exist: NotFoundError would say that the Replicat does not.
    """
    alias = body.credentials
    if alias is None and (named := credentials_of(parameter_text(call, found.group))) is not None:
        alias = Alias(**named)
    if alias is not None and found.checkpoint.options.replicat_kind is not ReplicatKind.LAKE:
        try:
            call.log_in(alias.connection)
        except NotFoundError as error:
            raise StateError(error.message, code=error.code, hint=error.hint) from error


@resource("DELETE", f"{_BASE}/{{replicat}}", role=Role.ADMINISTRATOR, summary="Stop and delete a Replicat")
def delete_replicat(call: Call, replicat: str) -> Answer:
    """Delete it with its row in the checkpoint table; the row stays if the alias no longer exists."""
    found = find_group(call, REPLICAT, replicat)
    named = credentials_of(parameter_text(call, found.group))
    if named is not None:
        try:
            call.log_in(Alias(**named).connection)
        except NotFoundError as error:
            text = f"a row of {found.name} in its checkpoint table was not deleted: {error}"
            call.said.append(Said(error.code, text, "WARNING"))
    group_changes.delete(call, REPLICAT, replicat)
    return Answer()


@resource(
    "POST",
    f"{_BASE}/{{replicat}}/command",
    role=Role.USER,
    summary="Send a request to a Replicat",
    body=GroupCommand,
    returns=CommandReply,
)
def send_to_replicat(call: Call, replicat: str) -> Answer:
    return send(call, REPLICAT, replicat, call.body)
