"""Extracts: create, change, delete, and what they report."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any

import msgspec

from ggshell.cli.groups import EXTRACT, View
from ggshell.errors import GgsError, UsageError
from ggshell.home.checkpoint import GroupKind, SourceType
from ggshell.home.users import Role
from ggshell.service import group_changes
from ggshell.service.answers import Answer, Object
from ggshell.service.begins import begin_options, moved_options
from ggshell.service.bodies import Alias, Body, GroupBody, described, lines_of
from ggshell.service.call import Call
from ggshell.service.group_commands import GroupCommand, send
from ggshell.service.group_facts import (
    begin_field,
    credentials_of,
    find_group,
    listed,
    parameter_text,
    settings_of,
    status_text,
    written_trails,
)
from ggshell.service.group_responses import CommandReply, Extract
from ggshell.service.named_files import is_outside
from ggshell.service.registration import (
    CREDENTIALS_HINT,
    NONE,
    change_registration,
    check_registration,
    register,
    still_registered,
    unregister_deleted,
)
from ggshell.service.responses import StatusItems
from ggshell.service.routes import resource
from ggshell.service.statement_words import quoted, word
from ggshell.service.steps import Steps
from ggshell.service.trail_names import known_trail, trail_fields, trail_of_file, trail_text

_BASE = "/extracts"


class TrailTarget(Body):
    """A trail that an Extract writes."""

    name: str
    path: str = ""
    size_mb: int = msgspec.field(name="sizeMB", default=500)
    sequence: int = 0
    offset: int = 0
    sequence_length: int = 9
    sequence_length_flip: bool = False
    remote: Any = None

    def trail(self, call: Call, group: str, present: Iterable[str] = ()) -> str:
        """Return the trail's name in statements: without a folder, that of the parameter file or of a ``present`` trail."""
        if self.path or "/" in self.name:
            return trail_text(self.name, self.path)
        of_group = next((each for each in present if trail_fields(each)["name"] == self.name), None)
        return trail_of_file(call.home, group, self.name) or of_group or trail_text(self.name, "")


class ExtractBody(GroupBody):
    """An Extract, for POST and PATCH."""

    source: Annotated[
        str | Object | None,
        described("tranlogs (the log, default), tables (an initial load), or a trail: {name, path}."),
    ] = None
    registration: Annotated[
        str | Object | None,
        described("default, or an object: creates the replication slot. none: does not, as if left out."),
    ] = None
    targets: list[TrailTarget] | None = None
    type: str | None = None
    plugin_type: str | None = None
    replication_slot: str | None = None
    failover_slot: bool | None = None
    rollover: bool | None = None
    passive: bool | None = None
    alias: Object | None = None
    mining_credentials: Object | None = None


@resource("GET", _BASE, role=Role.USER, summary="List the Extracts", returns=StatusItems)
def list_extracts(call: Call) -> Answer:
    return listed(call, _BASE, EXTRACT)


@resource("GET", f"{_BASE}/{{extract}}", role=Role.USER, summary="Show an Extract", returns=Extract)
def get_extract(call: Call, extract: str) -> Answer:
    found = find_group(call, EXTRACT, extract)
    text = parameter_text(call, found.group)
    fields: Object = {
        "$schema": "ogg:extract",
        "begin": begin_field(found),
        "source": _source_field(found),
        "config": None if text is None else text.splitlines(),
        "targets": written_trails(found),
        "status": status_text(found),
        "type": "Unknown" if found.checkpoint.read.source is SourceType.LOG else None,
        "description": found.checkpoint.description or None,
        **group_changes.shown_settings(call, found),
    }
    if (used := credentials_of(text)) is not None:
        fields["credentials"] = used
    return Answer({key: value for key, value in fields.items() if value is not None})


def _source_field(found: View) -> Any:
    if found.checkpoint.read.source is SourceType.TRAIL:
        return trail_fields(found.checkpoint.read.trail)
    return "tables" if found.checkpoint.read.source is SourceType.TABLE else "tranlogs"


@resource(
    "POST", f"{_BASE}/{{extract}}", role=Role.ADMINISTRATOR, summary="Create an Extract", body=ExtractBody, status=201
)
def create_extract(call: Call, extract: str) -> Answer:
    body: ExtractBody = call.body
    name = extract.upper()
    check_registration(body.registration)
    _check_credentials(body)
    group_changes.require_new_group(call, EXTRACT, name)
    with call.steps() as steps:
        if body.config is not None:
            group_changes.write_parameters(call, steps, name, GroupKind.EXTRACT, body.config)
        _add(call, steps, name, body)
        for target in body.targets or ():
            _add_trail(call, steps, name, target)
        group_changes.keep_settings(call, steps, f"EXTRACT {name}", _settings(call, body, new=True), new=True)
        steps.complete()
        if body.status not in (None, "stopped"):
            group_changes.set_status(call, EXTRACT, name, str(body.status))
    return Answer(status=201)


def _check_credentials(body: ExtractBody) -> None:
    """Raise UsageError if config logs in with another alias than credentials: the Extract would read another database."""
    named = credentials_of(lines_of(body.config)) if body.config is not None else None
    if named is None or body.credentials is None or not body.credentials.alias:
        return
    used, given = Alias(**named).connection, body.credentials.connection
    if used.casefold() != given.casefold():
        raise UsageError(f"credentials names {given}, USERIDALIAS in config names {used}", hint="name the same alias")


def _settings(call: Call, body: ExtractBody, *, new: bool = False) -> Object:
    """Return what only the API keeps: how the client named the registration, its login and the log."""
    login = body.credentials
    log = body.source if isinstance(body.source, dict) and "tranlogs" in body.source else None
    given = {"domain": login.domain, "alias": login.alias} if login is not None and login.alias else None
    return {
        **group_changes.common_settings(call, body, new=new),
        "registration": body.registration,
        "source": log,
        "credentials": given,
    }


def _add(call: Call, steps: Steps, name: str, body: ExtractBody) -> None:
    """Log in, register the Extract with the source database, and add the group."""
    source = body.source if body.source is not None else "tranlogs"
    description = f", DESC {quoted(body.description)}" if body.description else ""
    add = partial(group_changes.add_group, call, steps, GroupKind.EXTRACT, name)
    if source == "tables":
        add(f"ADD EXTRACT {word(name)}, SOURCEISTABLE{description}")
        return
    if isinstance(source, dict) and "name" in source:
        trail = known_trail(call.home, str(source["name"]), str(source.get("path", "")))
        add(f"ADD EXTRACT {word(name)}, EXTTRAILSOURCE {word(trail)}{begin_options(body.begin)}{description}")
        return
    if source != "tranlogs" and not (isinstance(source, dict) and "tranlogs" in source):
        raise UsageError("source must be tranlogs, tables, or a trail with its name", hint='"source": "tranlogs"')
    credentials = body.credentials or _credentials_in(call, name)
    if credentials is not None:
        call.log_in(credentials.connection)
        if body.registration not in (None, "none"):
            register(call, steps, name, credentials.connection)
    try:
        add(f"ADD EXTRACT {word(name)}, TRANLOG{begin_options(body.begin or 'now', log=True)}{description}")
    except GgsError as error:
        if error.code == "GGS-00204":
            error.hint = CREDENTIALS_HINT
        raise


def _credentials_in(call: Call, name: str) -> Alias | None:
    """Return the alias of the group's parameter file."""
    found = credentials_of(parameter_text(call, name))
    return Alias(**found) if found is not None else None


def _add_trail(call: Call, steps: Steps, name: str, target: TrailTarget) -> None:
    """Add a trail, and the folder in the home that holds it; the Extract creates a folder outside the home."""
    trail = target.trail(call, name)
    if not is_outside(call.bounds, trail):
        steps.make_folder(call.home.resolve(trail).parent)
    text = f"ADD EXTTRAIL {word(trail)}, EXTRACT {word(name)}, MEGABYTES {target.size_mb}"
    call.run(f"{text}{f', SEQNO {target.sequence}' if target.sequence else ''}", told=True)


@resource("PATCH", f"{_BASE}/{{extract}}", role=Role.OPERATOR, summary="Change an Extract", body=ExtractBody)
def update_extract(call: Call, extract: str) -> Answer:
    """Change what differs from the Extract as GET shows it; a ``begin`` that it has already does not move it.

    ``config`` and ``targets`` require Administrator.
    """
    body: ExtractBody = call.body
    group_changes.require_role(call, body.config, body.targets)
    found = find_group(call, EXTRACT, extract)
    with call.steps() as steps:
        if body.config is not None:
            group_changes.write_parameters(call, steps, found.group, GroupKind.EXTRACT, body.config)
        group_changes.keep_group(call, steps, found)
        moved = moved_options(call, found, body.begin, log=True)
        options = f"{moved}{', ETROLLOVER' if body.rollover else ''}"
        if body.description is not None and body.description != found.checkpoint.description:
            options += f", DESC {quoted(body.description)}"
        credentials = body.credentials or _credentials_in(call, found.group)
        if moved and found.checkpoint.read.source is SourceType.LOG and credentials is not None:
            call.log_in(credentials.connection)
        if options:
            call.run(f"ALTER EXTRACT {word(found.group)}{options}", told=True)
        change_registration(call, steps, found, body.registration, credentials)
        for target in body.targets or ():
            _alter_trail(call, steps, found, target)
        group_changes.keep_settings(call, steps, found.name, _settings(call, body))
    if body.status is not None:
        group_changes.set_status(call, EXTRACT, found.group, body.status)
    return Answer()


def _alter_trail(call: Call, steps: Steps, found: View, target: TrailTarget) -> None:
    written = found.checkpoint.write
    trail = target.trail(call, found.group, [each.trail for each in written])
    present = {call.home.resolve(each.trail): each.megabytes for each in written}
    place = call.home.resolve(trail)
    if place not in present:
        _add_trail(call, steps, found.group, target)
    elif present[place] != target.size_mb:
        text = f"ALTER EXTTRAIL {word(trail)}, EXTRACT {word(found.group)}, MEGABYTES {target.size_mb}"
        call.run(text, told=True)


@resource("DELETE", f"{_BASE}/{{extract}}", role=Role.ADMINISTRATOR, summary="Stop and delete an Extract")
def delete_extract(call: Call, extract: str) -> Answer:
    """Delete it and release the source's log, with the login of the request that registered it or of its parameter file."""
    present = find_group(call, EXTRACT, extract)
    kept = settings_of(call, present)
    credentials = kept.get("credentials") or credentials_of(parameter_text(call, present.group))
    found = group_changes.delete(call, EXTRACT, present.group)
    if found.checkpoint.read.source is not SourceType.LOG:
        return Answer()
    if credentials is not None:
        unregister_deleted(call, found.group, Alias(**credentials))
    elif kept.get("registration") not in (None, NONE):
        still_registered(call, found.group)
    return Answer()


@resource(
    "POST",
    f"{_BASE}/{{extract}}/command",
    role=Role.USER,
    summary="Send a request to an Extract",
    body=GroupCommand,
    returns=CommandReply,
)
def send_to_extract(call: Call, extract: str) -> Answer:
    return send(call, EXTRACT, extract, call.body)
