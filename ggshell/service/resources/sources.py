"""Sources: the distribution paths of the home."""

from __future__ import annotations

from typing import Final

from ggshell.cli.commands.path import DEFAULT_MEGABYTES
from ggshell.cli.groups import PATH, View
from ggshell.errors import UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.users import Role
from ggshell.service import group_changes
from ggshell.service.answers import Answer, Object, Said
from ggshell.service.call import Call
from ggshell.service.group_facts import (
    begin_field,
    checkpoint_fields,
    find_group,
    listed,
    settings_of,
    status_fields,
    status_text,
)
from ggshell.service.group_responses import DistPath, DistPathCheckpoints, DistPathInfo, DistPathStats
from ggshell.service.path_addresses import source_trail, target_of
from ggshell.service.path_bodies import PathBody, login_of, rule_of, shown_ruleset, size_of
from ggshell.service.path_changes import change, set_up
from ggshell.service.path_options import shown_options
from ggshell.service.responses import StatusItems
from ggshell.service.routes import resource
from ggshell.service.sign_in import required
from ggshell.service.statement_words import word

_BASE: Final = "/sources"
_ONE: Final = f"{_BASE}/{{path}}"


@resource("GET", _BASE, role=Role.USER, summary="List the distribution paths", returns=StatusItems)
def list_paths(call: Call) -> Answer:
    return listed(call, _BASE, PATH)


@resource("GET", _ONE, role=Role.USER, summary="Show a distribution path", returns=DistPath)
def get_path(call: Call, path: str) -> Answer:
    found = find_group(call, PATH, path)
    options, settings = found.checkpoint.options, settings_of(call, found)
    fields: Object = {
        "$schema": "ogg:distPath",
        "name": found.group,
        "source": {"uri": options.source},
        "target": {"uri": options.target},
        "begin": begin_field(found),
        "encryptionProfile": "LocalWallet",
        "targetInitiated": False,
        **settings,
        "ruleset": shown_ruleset(options, settings.get("ruleset")),
        "options": shown_options(options.path) or None,
        "status": status_text(found),
    }
    _show_size(fields, found)
    if found.checkpoint.write[0].is_elsewhere:  # ALTER DISTPATH may have changed it
        fields["target"] = {**fields["target"], "uri": options.target}
    return Answer(fields)


def _show_size(fields: Object, found: View) -> None:
    """Show the size of the target's files unless it is the default one."""
    details = fields["target"].get("details") or {}
    trail = details.get("trail")
    size = found.checkpoint.write[0].megabytes
    given = trail.get("sizeMB") if isinstance(trail, dict) else None
    if str(size) != str(given or DEFAULT_MEGABYTES):
        shown = {**(trail if isinstance(trail, dict) else {}), "sizeMB": size}
        fields["target"] = {**fields["target"], "details": {**details, "trail": shown}}


@resource("POST", _ONE, role=Role.ADMINISTRATOR, summary="Create a distribution path", body=PathBody, status=201)
def create_path(call: Call, path: str) -> Answer:
    body: PathBody = call.body
    name = path.upper()
    group_changes.require_new_group(call, PATH, name)
    if body.source is None or body.target is None:
        raise UsageError(
            "source and target are required", hint='"source": {"uri": "trail://…"}, "target": {"uri": "…"}'
        )
    _require_plain(body)
    source = source_trail(call, body.source.uri)
    target = target_of(call, body.target.uri, source)
    size = f", MEGABYTES {word(given)}" if (given := size_of(body.target)) else ""
    added = f"ADD DISTPATH {word(name)}, SOURCE {_as_path(source)}, TARGET {word(target)}{size}"
    with call.steps() as steps:
        login = f", AUTHENTICATION {found}" if "://" in target and (found := login_of(body.target)) else ""
        group_changes.add_group(call, steps, GroupKind.PATH, name, f"{added}{login}")
        call.said.append(_added(name))
        set_up(call, f"DISTPATH {word(name)}", body, body.target if "://" in target else None)
        group_changes.keep_settings(call, steps, f"DISTPATH {name}", body.given(), new=True)
        steps.complete()
        if body.status not in (None, "stopped"):
            group_changes.set_status(call, PATH, name, str(body.status))
    return Answer(status=201)


def _added(name: str) -> Said:
    return Said("OGG-08511", f"The path '{name}' has been added.")


def _as_path(trail: str) -> str:
    """Return a trail as ADD DISTPATH names it: without a folder it would look in dirdat."""
    return word(trail if "/" in trail else f"./{trail}")


def _require_plain(body: PathBody) -> None:
    """Raise UsageError for what would change which rows are delivered, or who connects to whom."""
    if body.target_initiated:
        raise UsageError(
            "a path that its target initiates is created in its target home", hint="use POST targets there"
        )
    rule_of(body.ruleset)


@resource("PATCH", _ONE, role=Role.OPERATOR, summary="Change a distribution path", body=PathBody)
def update_path(call: Call, path: str) -> Answer:
    """Change a path. The role Operator may change its status and its position; the rest requires Administrator."""
    body: PathBody = call.body
    found = find_group(call, PATH, path)
    given = body.given()
    if set(given) - {"begin"} or body.options:
        required(call.principal, Role.ADMINISTRATOR)
    _require_plain(body)
    _require_same_source(call, found, body)
    with call.steps() as steps:
        group_changes.keep_group(call, steps, found)
        remote = None
        if body.target is not None:
            target = target_of(call, body.target.uri, found.checkpoint.read.trail)
            _change_target(call, found, target)
            remote = body.target if "://" in target else None
        change(call, found, body, remote)
        group_changes.keep_settings(call, steps, found.name, given)
    if body.status is not None:
        group_changes.set_status(call, PATH, found.group, body.status)
    return Answer()


def _require_same_source(call: Call, found: View, body: PathBody) -> None:
    """Raise UsageError if another source trail is given: a path keeps it."""
    read, home = found.checkpoint.read.trail, call.home
    if body.source is not None and home.resolve(source_trail(call, body.source.uri)) != home.resolve(read):
        raise UsageError(f"the source of {found.name} cannot be changed", hint="delete the path and add it again")


def _change_target(call: Call, found: View, target: str) -> None:
    """Change the target trail if it differs."""
    before = found.checkpoint.write[0]
    remote = "://" in target
    same = (
        found.checkpoint.options.target == target
        if remote
        else call.home.resolve(target) == call.home.resolve(before.trail)
    )
    if not same or remote != before.is_elsewhere:
        call.run(f"ALTER DISTPATH {word(found.group)} TARGET {word(target)}", told=True)


@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="Stop and delete a distribution path")
def delete_path(call: Call, path: str) -> Answer:
    found = group_changes.delete(call, PATH, path)
    call.said.append(_deleted(found.group))
    return Answer()


def _deleted(name: str) -> Said:
    return Said("OGG-08516", f"The path '{name}' is deleted.")


@resource(
    "GET",
    f"{_ONE}/info",
    role=Role.USER,
    summary="Show the lag and the process of a distribution path",
    returns=DistPathInfo,
)
def get_path_info(call: Call, path: str) -> Answer:
    found = find_group(call, PATH, path)
    return Answer(DistPathInfo(**status_fields(call, found), thread_id=0, source_extract_name=_writer(call, found)))


def _writer(call: Call, found: View) -> str:
    """Return the group that writes the source trail, or an empty text."""
    wanted = call.home.resolve(found.checkpoint.read.trail)
    for entry in call.home.groups():
        if entry.checkpoint is not None and any(
            call.home.resolve(each.trail) == wanted for each in entry.checkpoint.written_here
        ):
            return entry.group
    return ""


@resource(
    "GET",
    f"{_ONE}/checkpoints",
    role=Role.USER,
    summary="Show the positions of a distribution path",
    returns=DistPathCheckpoints,
)
def get_path_checkpoints(call: Call, path: str) -> Answer:
    return Answer(DistPathCheckpoints(**checkpoint_fields(find_group(call, PATH, path))))


@resource(
    "GET",
    f"{_ONE}/stats",
    role=Role.USER,
    summary="Show the data that a distribution path has delivered, by table",
    returns=DistPathStats,
)
def get_path_stats(call: Call, path: str) -> Answer:
    found = find_group(call, PATH, path)
    tables = call.rows(f"STATS DISTPATH {word(found.group)}, TOTAL") if found.runs else []
    return Answer(DistPathStats(status=status_text(found), tables=tables))
