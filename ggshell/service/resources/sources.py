"""Sources: the distribution paths of the home."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ggshell.cli.groups import PATH, View
from ggshell.errors import UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.users import Role
from ggshell.service import group_changes
from ggshell.service.answers import Answer, Object, Said, collection, status_item
from ggshell.service.bodies import Begin, Body, GroupStatus
from ggshell.service.call import Call
from ggshell.service.group_facts import (
    begin_field,
    checkpoint_fields,
    entries,
    find_group,
    settings_of,
    status_fields,
    status_text,
)
from ggshell.service.group_responses import DistPath, DistPathCheckpoints, DistPathInfo, DistPathStats
from ggshell.service.path_addresses import source_trail, target_of
from ggshell.service.responses import StatusItems
from ggshell.service.routes import resource
from ggshell.service.sign_in import required
from ggshell.service.statement_words import quoted, word

_BASE: Final = "/sources"
_ONE: Final = f"{_BASE}/{{path}}"


class Endpoint(Body, kw_only=True):
    """An end of a path. Only the URI and the size of the target's files (``details``) have a meaning for a local trail."""

    uri: str
    description: str | None = None
    details: Object | None = None
    proxy: Object | None = None
    is_dynamic_ogg_port: bool | None = None
    authentication_method: Any = None


class PathBody(Body):
    """A distribution path, for POST and PATCH."""

    name: str | None = None
    description: str | None = None
    source: Endpoint | None = None
    target: Endpoint | None = None
    begin: Begin = None
    options: Object | None = None
    encryption_profile: str | None = None
    managed_path_settings: str | Object | None = None
    target_initiated: bool | None = None
    ruleset: Object | None = None
    status: GroupStatus | None = None

    def given(self) -> Object:
        """Return the fields that the client sent, except the status."""
        return {name: value for name, value in _filled(msgspec.to_builtins(self)).items() if name != "status"}


def _filled(fields: Object) -> Object:
    """Return the fields that have a value, without schemas, also in objects within objects."""
    found = {name: _filled(value) if isinstance(value, dict) else value for name, value in fields.items()}
    return {name: value for name, value in found.items() if value not in (None, "", {}) and name != "$schema"}


@resource("GET", _BASE, role=Role.USER, summary="List the distribution paths", returns=StatusItems)
def list_paths(call: Call) -> Answer:
    base = call.url(_BASE)
    return Answer(collection(status_item(base, name, status) for name, status in entries(call, PATH)))


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
        "status": status_text(found),
    }
    if found.checkpoint.write[0].is_elsewhere:  # ALTER DISTPATH may have changed it
        fields["target"] = {**fields["target"], "uri": options.target}
    return Answer(fields)


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
    added = f"ADD DISTPATH {word(name)}, SOURCE {_as_path(source)}, TARGET {word(target)}{_megabytes(body.target)}"
    with call.steps() as steps:
        login = f", AUTHENTICATION {found}" if "://" in target and (found := _login(body.target)) else ""
        group_changes.add_group(call, steps, GroupKind.PATH, name, f"{added}{login}")
        call.said.append(_added(name))
        _compress(call, name, body.target, target)
        _begin(call, name, body.begin, new=True)
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
        raise UsageError("a path that its target initiates is not supported", hint="leave targetInitiated out")
    if body.ruleset is not None and any(
        name not in ("$schema", "name", "description") for name in _filled(body.ruleset)
    ):
        raise UsageError("a ruleset is not supported", hint="select the tables in the Extract or Replicat")


def _megabytes(target: Endpoint) -> str:
    trail = (target.details or {}).get("trail") or {}
    size = trail.get("sizeMB") if isinstance(trail, dict) else None
    return f", MEGABYTES {word(str(size))}" if size is not None else ""


def _login(target: Endpoint) -> str:
    """Return how the path signs in to another home, as statements say it: with the alias of authenticationMethod, if any."""
    method = target.authentication_method
    alias = method.get("alias") if isinstance(method, dict) else None
    if not isinstance(alias, str) or not isinstance(method, dict):
        return ""
    domain = method.get("domain")
    return f"USERIDALIAS {word(alias)}" + (f" DOMAIN {word(domain)}" if isinstance(domain, str) and domain else "")


def _compress(call: Call, name: str, end: Endpoint, target: str) -> None:
    """Set whether what is sent to another home is compressed, if the request says so."""
    compression = (end.details or {}).get("compression")
    enabled = compression.get("enabled") if isinstance(compression, dict) else None
    if isinstance(enabled, bool) and "://" in target:
        call.run(f"ALTER DISTPATH {word(name)} TARGET COMPRESSION {'ON' if enabled else 'OFF'}")


def _begin(call: Call, name: str, begin: str | Object | None, *, new: bool = False) -> None:
    """Set the position in the source trail. A new path is at its beginning already."""
    if begin is None:
        return
    if isinstance(begin, str):
        place = "NOW" if begin.lower() == "now" else quoted(begin)
    elif "sequence" in begin:
        sequence, offset = str(begin["sequence"]), str(begin.get("offset", 0))
        if new and {sequence, offset} == {"0"}:
            return
        place = f"SEQNO {word(sequence)} RBA {word(offset)}"
    else:
        raise UsageError("begin must be now, a time, or {sequence, offset}")
    call.run(f"ALTER DISTPATH {word(name)} BEGIN {place}", told=True)


@resource("PATCH", _ONE, role=Role.OPERATOR, summary="Change a distribution path", body=PathBody)
def update_path(call: Call, path: str) -> Answer:
    """Change a path. The role Operator may change its status and its position; the rest requires Administrator."""
    body: PathBody = call.body
    found = find_group(call, PATH, path)
    given = body.given()
    if set(given) - {"begin"}:
        required(call.principal, Role.ADMINISTRATOR)
    _require_plain(body)
    _require_same_source(call, found, body)
    with call.steps() as steps:
        group_changes.keep_group(call, steps, found)
        if body.target is not None:
            _change_target(call, found, body.target)
        _begin(call, found.group, body.begin)
        group_changes.keep_settings(call, steps, found.name, given)
    if body.status is not None:
        group_changes.set_status(call, PATH, found.group, body.status)
    return Answer()


def _require_same_source(call: Call, found: View, body: PathBody) -> None:
    """Raise UsageError if another source trail is given: a path keeps it."""
    read, home = found.checkpoint.read.trail, call.home
    if body.source is not None and home.resolve(source_trail(call, body.source.uri)) != home.resolve(read):
        raise UsageError(f"the source of {found.name} cannot be changed", hint="delete the path and add it again")


def _change_target(call: Call, found: View, end: Endpoint) -> None:
    """Change the target trail, the login and the compression as far as they differ."""
    path, options = word(found.group), found.checkpoint.options
    target, before = target_of(call, end.uri, found.checkpoint.read.trail), found.checkpoint.write[0]
    remote = "://" in target
    same = options.target == target if remote else call.home.resolve(target) == call.home.resolve(before.trail)
    if not same or remote != before.is_elsewhere:
        call.run(f"ALTER DISTPATH {path} TARGET {word(target)}", told=True)
    if not remote:
        return
    method = end.authentication_method
    alias = method.get("alias") if isinstance(method, dict) else None
    if alias and alias != options.access_alias:
        call.run(f"ALTER DISTPATH {path} AUTHENTICATION {_login(end)}", told=True)
    details = end.details or {}
    wanted = details.get("compression")
    if isinstance(wanted, dict) and wanted.get("enabled") is not (options.compression is not None):
        _compress(call, found.group, end, target)


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
    summary="Show what a distribution path has delivered, by table",
    returns=DistPathStats,
)
def get_path_stats(call: Call, path: str) -> Answer:
    found = find_group(call, PATH, path)
    tables = call.rows(f"STATS DISTPATH {word(found.group)}, TOTAL") if found.runs else []
    return Answer(DistPathStats(status=status_text(found), tables=tables))
