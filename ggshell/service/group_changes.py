"""Changes of groups that Extracts and Replicats share: their status, parameter files and settings."""

from __future__ import annotations

from typing import Final

from ggshell.cli.commands.extract import SLOT_REMAINS
from ggshell.cli.groups import LONGEST_PATH, Kinds, View
from ggshell.cli.outcome import Outcome
from ggshell.errors import ConflictError, UsageError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.documents import Documents
from ggshell.home.users import Role
from ggshell.language.values import is_reserved
from ggshell.parameters.lines import first_of
from ggshell.parameters.process_profiles import DEFAULT_PROFILE, GROUP_SETTINGS
from ggshell.service.answers import DONE, Object, Said
from ggshell.service.bodies import GroupBody, lines_of
from ggshell.service.call import Call
from ggshell.service.group_facts import find_group, kind_word, settings_of
from ggshell.service.included_files import refusals_of
from ggshell.service.profiles import default_profile, known_profile
from ggshell.service.sign_in import required
from ggshell.service.statement_words import word
from ggshell.service.steps import Steps
from ggshell.service.told import messages_of, result_lines
from ggshell.service.undo import AddedGroup, changed_group
from ggshell.service.written_parameters import require_named

_STARTED: Final = {
    GroupKind.EXTRACT: "OGG-15426",
    GroupKind.REPLICAT: "OGG-15445",
    GroupKind.PATH: DONE,
    GroupKind.RECVPATH: DONE,
}
STATUSES: Final = ("running", "stopped", "killed")


def require_role(call: Call, *added: object) -> None:
    """Check that the user may change what the fields of a PATCH add: a parameter file, trails.

    Altering a group requires OPERATOR; PUT of a parameter file and ADD EXTTRAIL require ADMINISTRATOR, and so do these fields.
    Raises HttpError 403.
    """
    if any(each is not None for each in added):
        required(call.principal, Role.ADMINISTRATOR)


def add_group(call: Call, steps: Steps, kind: GroupKind, name: str, statement: str) -> Outcome:
    """Run the statement that adds a group; undoing deletes the group. Raises GgsError."""
    return steps.run(statement, AddedGroup(kind, name), call.home.checkpoint(name, kind).exists, told=True)


def keep_group(call: Call, steps: Steps, found: View) -> None:
    """Note the definition of a group before it is changed; undoing restores it. A group that runs cannot be changed."""
    if not found.runs:
        steps.note(changed_group(call.home, found.type, found.group))


def write_parameters(call: Call, steps: Steps, found: str, kind: GroupKind, config: list[str] | str) -> None:
    """Check a group's parameter file and write it.

    Raises ParameterError, UsageError for a file that it may not include, HttpError 403 for one that it may not name.
    """
    path, text = call.home.parameters(found), lines_of(config)
    if is_reserved(found):
        raise UsageError(
            f"dirprm/{path.name} is not written for {kind} {found}: this name is reserved for other processes",
            hint=f"add the group again with another name and DELETE {kind} {found}",
        )
    call.require_shown(path)
    if refusals := refusals_of(call.bounds, text, path, kind.capitalize()):
        raise first_of(refusals)
    require_named(call, path, text)
    steps.write_file(path, text)
    call.said.append(Said("OGG-10183", f"Parameter file {path.name} passed validity check."))


def keep_settings(call: Call, steps: Steps, name: str, settings: Object, *, new: bool = False) -> None:
    """Keep the settings of a group that no statement sets, merged with those before unless the group is new."""
    given = {key: value for key, value in settings.items() if value is not None}
    documents = Documents(call.home, GROUP_SETTINGS)
    before = documents.find(name)
    if given or (new and before is not None):
        steps.keep_file(documents.path(name))
        documents.put(name, given if new else {**(before or {}), **given})


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
    """Start a group. A running group does not change."""
    what = f"{kind_word(found.type)} group {found.group}"
    if found.runs:
        call.said.append(Said("OGG-15426", f"{what} is already running."))
        return
    call.said.append(Said("OGG-00975", f"{what} starting."))
    call.run(f"START {found.type} {word(found.group)}{options}")
    call.said.append(Said(_STARTED[found.type], f"{what} started."))


def stop(call: Call, found: View, *, killed: bool = False, forced: bool = False) -> None:
    """Stop or kill a group. A group that is not running does not change."""
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
    outcome = call.run(f"DELETE {found.type} {word(found.group)} !")
    # The request for an Extract releases its slot, or reports that it remains.
    call.said += messages_of(line for line in result_lines(outcome) if SLOT_REMAINS not in line)
    file = call.home.parameters(found.group)
    if file.exists():
        call.said.append(Said(DONE, f"Parameter file dirprm/{file.name} is kept."))
    return found


def require_new_group(call: Call, kinds: Kinds, name: str) -> None:
    """Check the name of a new group before anything is changed.

    Raises ConflictError if a group of these kinds has it, UsageError if it is too long or reserved.
    """
    if is_reserved(name):
        raise UsageError(f"{name} is reserved for commands and files of other processes", hint="use another name")
    if len(name) > LONGEST_PATH:
        raise UsageError(f"{name[:LONGEST_PATH]}… is too long for the name of a group")
    for kind in kinds:
        if call.home.checkpoint(name, kind).exists():
            raise ConflictError(f"{kind} {name} already exists.", hint="use PATCH to change it")


def common_settings(call: Call, body: GroupBody, *, new: bool = False) -> Object:
    """Return the fields of a body that only the API keeps; a ``new`` group gets the default profile.

    Raises UsageError for a profile that does not exist, HttpError 400 for settings that are not valid.
    """
    profile = body.managed_process_settings or (default_profile(call.home) if new else None)
    return {
        "critical": body.critical,
        "encryptionProfile": body.encryption_profile,
        "managedProcessSettings": None if profile is None else known_profile(call, profile),
        "intent": body.intent,
    }


def shown_settings(call: Call, found: View) -> Object:
    """Return the kept settings with the defaults that clients expect."""
    return {
        "critical": False,
        "encryptionProfile": "LocalWallet",
        "intent": "Unidirectional",
        "managedProcessSettings": DEFAULT_PROFILE,
        **settings_of(call, found),
    }
