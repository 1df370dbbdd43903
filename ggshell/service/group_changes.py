"""Changes of groups that Extracts and Replicats share: their status, parameter files, settings, and requests to the process."""

from __future__ import annotations

from typing import Annotated, Any, Final

from ggshell.cli.execute import parse
from ggshell.cli.groups import LONGEST_PATH, Kinds, View
from ggshell.cli.outcome import Outcome
from ggshell.errors import ConflictError, HttpError, StateError, UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.users import Role
from ggshell.parameters.lines import first_of
from ggshell.service.answers import DONE, Answer, Object, Said
from ggshell.service.bodies import Body, GroupBody, described, lines_of
from ggshell.service.call import Call, Steps, objects_of, word
from ggshell.service.documents import Documents
from ggshell.service.group_facts import SETTINGS, find_group, kind_word, settings_of, status_text
from ggshell.service.included_files import refusals_of
from ggshell.service.permissions import require_permission
from ggshell.service.sign_in import required

_STARTED: Final = {GroupKind.EXTRACT: "OGG-15426", GroupKind.REPLICAT: "OGG-15445", GroupKind.PATH: DONE}
STATUSES: Final = ("running", "stopped", "killed")


_REPLIES: Final = {"STATUS": "STATUS", "GETLAG": "GETLAG", "STATS": "STATS", "LOGEND": "GETLAG"}
_READING: Final = frozenset(
    {"SHOWTRANS", "CACHEMGR", "GETPARAMINFO", "GETPORTINFO", "BR", "REPORTCOUNT", "CHILDSTATUS"}
)
_CHANGING: Final = frozenset(
    {"STOP", "FORCESTOP", "KILL", "RESUME", "ROLLOVER", "REPORT", "SKIPTRANS", "FORCETRANS"}
    | {"HANDLECOLLISIONS", "NOHANDLECOLLISIONS", "TRACE", "TRACE2"}
)
_SUPPORTED: Final = sorted({*_REPLIES, *_READING, *_CHANGING})


class GroupCommand(Body):
    """The body of ``command``: a request to the process, as SEND sends it."""

    command: Annotated[str, described(f"The request, as in SEND: {', '.join(_SUPPORTED)}; in any case.")]
    arguments: Annotated[str, described("The options that follow the request in SEND.")] = ""
    is_reported: bool = True


def require_role(call: Call, *added: object) -> None:
    """Check that the user may change what the fields of a PATCH add: a parameter file, trails.

    Altering a group requires OPERATOR; PUT of a parameter file and ADD EXTTRAIL require ADMINISTRATOR, and so do these fields.
    Raises HttpError 403.
    """
    if any(each is not None for each in added):
        required(call.principal, Role.ADMINISTRATOR)


def add_group(call: Call, steps: Steps, kind: GroupKind, name: str, statement: str) -> Outcome:
    """Run the statement that adds a group; undoing deletes the group. Raises GgsError."""
    path = call.home.checkpoint(name, kind)
    return steps.run(statement, undo=f"DELETE {kind} {word(name)} !", exists=path.exists, told=True)


def write_parameters(call: Call, steps: Steps, found: str, kind: GroupKind, config: list[str] | str) -> None:
    """Check a group's parameter file and write it. Raises ParameterError, UsageError for a file that it may not include."""
    path, text = call.home.parameters(found), lines_of(config)
    if refusals := refusals_of(call.home, text, path, kind.capitalize()):
        raise first_of(refusals)
    steps.write_file(path, text)
    call.said.append(Said("OGG-10183", f"Parameter file {path.name} passed validity check."))


def keep_settings(call: Call, name: str, settings: Object) -> None:
    """Keep the settings of a group that no statement sets, merged with those before."""
    given = {key: value for key, value in settings.items() if value is not None}
    if given:
        documents = Documents(call.home, SETTINGS)
        documents.put(name, {**(documents.find(name) or {}), **given})


def forget_settings(call: Call, name: str) -> None:
    documents = Documents(call.home, SETTINGS)
    if documents.find(name) is not None:
        documents.delete(name)


def set_status(call: Call, kinds: Kinds, name: str, wanted: str, *, start_options: str = "") -> None:
    """Start, stop or kill a group, unless it has that status already. Raises GgsError."""
    found = find_group(call, kinds, name)
    if wanted == "running":
        start(call, found, start_options)
    elif wanted in ("stopped", "killed"):
        stop(call, found, killed=wanted == "killed")
    else:
        raise UsageError(f"{wanted} is not a valid status", hint=f"use {', '.join(STATUSES)}")


def start(call: Call, found: View, options: str = "") -> None:
    """Start a group. A running group is left as it is."""
    what = f"{kind_word(found.type)} group {found.group}"
    if found.runs:
        call.said.append(Said("OGG-15426", f"{what} is already running."))
        return
    call.said.append(Said("OGG-00975", f"{what} starting."))
    call.run(f"START {found.type} {word(found.group)}{options}")
    call.said.append(Said(_STARTED[found.type], f"{what} started."))


def stop(call: Call, found: View, *, killed: bool = False, forced: bool = False) -> None:
    """Stop or kill a group. A group that is not running is left as it is."""
    what = f"{kind_word(found.type)} group {found.group}"
    if not found.runs:
        call.said.append(Said(DONE, f"{what} is not running."))
        return
    verb = "KILL" if killed else "STOP"
    call.said.append(Said(DONE, f"Sending {verb} request to {what} ..."))
    call.run(f"{verb} {found.type} {word(found.group)}{' !' if forced and not killed else ''}")
    call.said.append(Said(DONE, f"{what} is down ({'killed' if killed else 'gracefully'})."))


def delete(call: Call, kinds: Kinds, name: str) -> View:
    """Stop a group if it runs, and delete it with its settings. Its parameter file and its trails stay."""
    found = find_group(call, kinds, name)
    if found.runs:
        stop(call, found)
    call.run(f"DELETE {found.type} {word(found.group)} !", told=True)
    forget_settings(call, found.name)
    file = call.home.parameters(found.group)
    if file.exists():
        call.said.append(Said(DONE, f"Parameter file dirprm/{file.name} is kept."))
    return found


def send(call: Call, kinds: Kinds, name: str, body: GroupCommand) -> Answer:
    """Send a request to a group's process and return its reply.

    It requires the role that the same SEND requires as a statement. Raises HttpError 403, StatementError.
    """
    from ggshell.groups.control import request

    found = find_group(call, kinds, name)
    verb = body.command.strip().upper()
    statement = _statement(call, found, verb, body.arguments)
    if found.process is None or not found.runs:
        raise StateError(f"{found.name} is not running.", hint=f"its status is {status_text(found)}")
    if verb in _REPLIES:
        reply = request(found.process.socket, _REPLIES[verb])
        lines = _lines(call.run(statement)) if verb == "STATS" else []
        return Answer({"$schema": "er:commandResult", "replyData": _reply(verb, reply), "reply": lines})
    outcome = call.run(statement)
    if verb == "KILL":
        return Answer({"$schema": "er:commandResult", "replyData": {}, "reply": []})
    rows = objects_of(outcome.result)
    return Answer({"$schema": "er:commandResult", "replyData": {"rows": rows}, "reply": _lines(outcome)})


def _statement(call: Call, found: View, verb: str, arguments: str) -> str:
    """Return the statement that means the same as a command, after a check that the user may run it.

    Raises HttpError (400, 403), StatementError for arguments that the command does not have.
    """
    if verb in _CHANGING:
        required(call.principal, Role.OPERATOR)
    elif verb not in _READING and verb not in _REPLIES:
        raise HttpError(
            400, f"{verb[:80]} is not a supported command", hint="see HELP SEND EXTRACT, HELP SEND REPLICAT"
        )
    group = f"{found.type} {word(found.group)}"
    if verb in ("KILL", "STATS"):
        statement = f"{verb} {group}"
    else:
        statement = f"SEND {group} {verb}" if verb in _REPLIES else f"SEND {group} {verb} {arguments}".strip()
    require_permission(call.principal, parse(statement), call.home)
    return statement


def _lines(outcome: Outcome) -> list[str]:
    """Return the lines of a statement's output in the layout of GGSCI."""
    return [] if outcome.result is None else [line for line in outcome.result.layout.splitlines() if line.strip()]


def _reply(verb: str, reply: dict[str, Any]) -> Object:
    if verb == "STATUS":
        return {"status": reply}
    if verb == "LOGEND":
        return {"allRecordsProcessed": bool(reply.get("at_eof"))}
    return reply


def require_new_group(call: Call, kinds: Kinds, name: str) -> None:
    """Raise ConflictError if a group of these kinds has the name, before anything is changed; UsageError if it is too long."""
    if len(name) > LONGEST_PATH:
        raise UsageError(f"{name[:LONGEST_PATH]}… is too long for the name of a group")
    for kind in kinds:
        if call.home.checkpoint(name, kind).exists():
            raise ConflictError(f"{kind} {name} already exists.", hint="use PATCH to change it")


def common_settings(body: GroupBody) -> Object:
    """Return the fields of a body that only the API keeps."""
    return {
        "critical": body.critical,
        "encryptionProfile": body.encryption_profile,
        "managedProcessSettings": body.managed_process_settings,
        "intent": body.intent,
    }


def shown_settings(call: Call, found: View) -> Object:
    """Return the kept settings with the defaults that clients expect."""
    return {
        "critical": False,
        "encryptionProfile": "LocalWallet",
        "intent": "Unidirectional",
        "managedProcessSettings": "ogg:managedProcessSettings:Default",
        **settings_of(call, found),
    }
