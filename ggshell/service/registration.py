"""The ``registration`` of an Extract: whether the source database retains its log."""

from __future__ import annotations

from ggshell.cli.groups import View
from ggshell.errors import GgsError, NotFoundError, StateError, UsageError
from ggshell.home.checkpoint import Checkpoint, GroupKind, GroupOptions, ReadCheckpoint, SourceType
from ggshell.home.users import Role
from ggshell.service.answers import Object, Said
from ggshell.service.bodies import Alias
from ggshell.service.call import Call
from ggshell.service.group_facts import settings_of
from ggshell.service.sign_in import required
from ggshell.service.statement_words import word
from ggshell.service.steps import Steps
from ggshell.service.undo import RegisteredExtract

NONE = "none"
CREDENTIALS_HINT = 'add "credentials": {"alias": "name"} to the request, or USERIDALIAS to config'


def check_registration(value: str | Object | None) -> None:
    """Raise UsageError for a registration that is not ``default``, ``none`` or an object."""
    if isinstance(value, str) and value not in ("default", NONE):
        raise UsageError(f"{value[:80]!a} is not a valid registration", hint="use default, none, or an object")


def register(call: Call, steps: Steps, name: str, connection: str) -> None:
    """Register the Extract. A slot that already exists, from an earlier attempt, is used."""
    call.log_in(connection)
    step = RegisteredExtract(name, connection)
    try:
        steps.run(f"REGISTER EXTRACT {word(name)} DATABASE", step, lambda: _registered(call, name))
    except GgsError as error:
        if "already" not in error.message:
            raise
        call.said.append(Said.of(error, "WARNING"))
        return
    call.said.append(Said("OGG-02003", f"Extract group {name} successfully registered with database."))


def change_registration(
    call: Call, steps: Steps, found: View, wanted: str | Object | None, credentials: Alias | None
) -> None:
    """Register an Extract whose registration changes. Raises StateError for a change to ``none``, which would lose log."""
    check_registration(wanted)
    present = settings_of(call, found).get("registration")
    if wanted is None or wanted == present or found.checkpoint.read.source is not SourceType.LOG:
        return
    if wanted == NONE:
        if present is not None:
            hint = f"UNREGISTER EXTRACT {found.group} releases the log of the source database"
            raise StateError(f"{found.name} is registered, and PATCH does not change that to none", hint=hint)
        return
    if present in (None, NONE):
        required(call.principal, Role.ADMINISTRATOR)
        if credentials is None:
            raise UsageError("registration requires a login to the source database", hint=CREDENTIALS_HINT)
        register(call, steps, found.group, credentials.connection)


def _registered(call: Call, name: str) -> bool:
    """Whether the source database already keeps its log for an Extract, which may not exist yet. Raises DatabaseError."""
    login = call.session.logged_in()
    options = GroupOptions(source_kind=login.connector.kind, slot=name)
    found = Checkpoint(name, GroupKind.EXTRACT, ReadCheckpoint(SourceType.LOG), options=options)
    return login.connector.log.registered(login, found)


def unregister_deleted(call: Call, name: str, credentials: Alias) -> None:
    """Release the source's log. If that fails, the answer reports it: the slot would retain log forever."""
    try:
        call.log_in(credentials.connection)
        _unregister(call, name)
    except GgsError as error:
        call.said.append(Said(error.code, f"EXTRACT {name} is deleted but still registered: {error}", "WARNING"))


def still_registered(call: Call, name: str) -> None:
    """Report that the slot of a deleted Extract remains, because no alias names a login to its source."""
    text = f"EXTRACT {name} is deleted but still registered: its parameter file names no alias."
    call.said.append(Said("GGS-00204", text, "WARNING", "DBLOGIN to the source, then UNREGISTER EXTRACT"))


def _unregister(call: Call, name: str) -> None:
    try:
        call.run(f"UNREGISTER EXTRACT {word(name)} DATABASE")
    except NotFoundError:  # it was never registered
        return
