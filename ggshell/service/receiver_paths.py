"""The paths that this home starts to read a trail of another home (RECVPATH), as targets of the API."""

from __future__ import annotations

from ggshell.cli.groups import RECVPATH, View, matching
from ggshell.errors import UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.users import Role
from ggshell.network.addresses import parse_source
from ggshell.service import group_changes
from ggshell.service.answers import Answer, Object
from ggshell.service.call import Call
from ggshell.service.group_facts import (
    begin_field,
    checkpoint_fields,
    find_group,
    settings_of,
    status_fields,
    status_text,
)
from ggshell.service.group_responses import DistPathCheckpoints, DistPathInfo, DistPathStats
from ggshell.service.path_bodies import PathBody, login_of, rule_of, shown_ruleset
from ggshell.service.path_changes import change, set_up
from ggshell.service.path_options import shown_options
from ggshell.service.sign_in import required
from ggshell.service.statement_words import word


def is_own(call: Call, name: str) -> bool:
    """Whether a path of this name is started by this home."""
    return "*" not in name and "?" not in name and bool(matching(call.home, RECVPATH, name))


def shown(call: Call, path: str) -> Answer:
    """Show a path as POST accepts it."""
    found = find_group(call, RECVPATH, path)
    options, settings = found.checkpoint.options, settings_of(call, found)
    fields: Object = {
        "$schema": "ogg:distPath",
        "name": found.group,
        "begin": begin_field(found),
        "encryptionProfile": "LocalWallet",
        **settings,
        "source": {**settings.get("source", {}), "uri": options.source},
        "target": {**settings.get("target", {}), "uri": options.target},
        "targetInitiated": True,
        "status": status_text(found),
    }
    fields |= {"ruleset": shown_ruleset(options, settings.get("ruleset")), "options": shown_options(options.path)}
    return Answer({name: value for name, value in fields.items() if value not in (None, {})})


def create(call: Call, path: str) -> Answer:
    """Create a path: its source is in another home, its target a trail of this home."""
    body: PathBody = call.body
    name = path.upper()
    group_changes.require_new_group(call, RECVPATH, name)
    if body.source is None or body.target is None:
        raise UsageError(
            "source and target are required", hint='"source": {"uri": "wss://…"}, "target": {"uri": "trail://…"}'
        )
    if body.target_initiated is False:
        raise UsageError("a path that its source starts is created in its source home", hint="use POST sources there")
    parse_source(body.source.uri)
    rule_of(body.ruleset)
    added = f"ADD RECVPATH {word(name)}, SOURCE {word(body.source.uri)}, TARGET {word(body.target.uri)}"
    login = f", AUTHENTICATION {found}" if (found := _login(body)) else ""
    with call.steps() as steps:
        group_changes.add_group(call, steps, GroupKind.RECVPATH, name, f"{added}{login}")
        set_up(call, f"RECVPATH {word(name)}", body, body.target)
        group_changes.keep_settings(call, steps, f"RECVPATH {name}", body.given(), new=True)
        steps.complete()
        if body.status not in (None, "stopped"):
            group_changes.set_status(call, RECVPATH, name, str(body.status))
    return Answer(status=201)


def _login(body: PathBody) -> str:
    """Return the login in the other home; clients name it at either end."""
    ends = [end for end in (body.source, body.target) if end is not None]
    return next((found for end in ends if (found := login_of(end))), "")


def update(call: Call, path: str) -> Answer:
    """Change a path. The role Operator may change its status and its position; the rest requires Administrator."""
    body: PathBody = call.body
    found = find_group(call, RECVPATH, path)
    given = body.given()
    if set(given) - {"begin"} or body.options:
        required(call.principal, Role.ADMINISTRATOR)
    if body.target_initiated is False:
        raise UsageError(
            "the home that starts a path cannot be changed", hint="delete the path and create it in the source home"
        )
    _require_same_ends(found, body)
    with call.steps() as steps:
        group_changes.keep_group(call, steps, found)
        change(call, found, body, body.source if body.source is not None and login_of(body.source) else body.target)
        group_changes.keep_settings(call, steps, found.name, given)
    if body.status is not None:
        group_changes.set_status(call, RECVPATH, found.group, body.status)
    return Answer()


def _require_same_ends(found: View, body: PathBody) -> None:
    """Raise UsageError if another source or target is given: a path keeps them."""
    options = found.checkpoint.options
    same = body.source is None or parse_source(body.source.uri).uri == options.source
    if not same or (body.target is not None and body.target.uri != options.target):
        raise UsageError(
            f"source and target of {found.name} cannot be changed", hint="delete the path and add it again"
        )


def info(call: Call, path: str) -> Answer:
    """Show the lag and the process of a path."""
    found = find_group(call, RECVPATH, path)
    return Answer(DistPathInfo(**status_fields(call, found), thread_id=0, source_extract_name=""))


def checkpoints(call: Call, path: str) -> Answer:
    """Show the positions of a path."""
    return Answer(DistPathCheckpoints(**checkpoint_fields(find_group(call, RECVPATH, path))))


def stats(call: Call, path: str) -> Answer:
    """Show what a path has delivered, by table."""
    found = find_group(call, RECVPATH, path)
    tables = call.rows(f"STATS RECVPATH {word(found.group)}, TOTAL") if found.runs else []
    return Answer(DistPathStats(status=status_text(found), tables=tables))


def delete(call: Call, path: str) -> Answer:
    """Stop and delete a path."""
    group_changes.delete(call, RECVPATH, path)
    return Answer()
