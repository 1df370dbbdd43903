"""Carries out the commands of scheduled tasks as requests of the users who created them."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import msgspec

from ggshell.errors import DiskError, GgsError, HttpError
from ggshell.home.events import Severity
from ggshell.service import routes
from ggshell.service.answers import Answer
from ggshell.service.bodies import choices
from ggshell.service.call import Call, Request
from ggshell.service.refusals import bug
from ggshell.service.scheduler import OWNER_IDENTITY
from ggshell.service.sign_in import Principal, required
from ggshell.service.state import ServiceState

_PATH: Final = "/commands/execute"
_BASE: Final = "/services/v2"
_CLIENT: Final = "task"
_WAIT_SECONDS: Final = 600.0


def check_command(command: dict[str, Any]) -> None:
    """Check the form of a command. Raises HttpError 400."""
    _body(_route(), command)


def start_tasks(state: ServiceState) -> None:
    """Let the scheduler of a service run its tasks. Raises DiskError."""

    def report(error: GgsError) -> None:
        with contextlib.suppress(DiskError):  # on a full disk there is nowhere to write
            state.event(Severity.ERROR, error.code, f"task: {error}")

    state.tasks.start(lambda name, command, owner: execute(state, name, command, owner), report)


def execute(state: ServiceState, name: str, command: dict[str, Any], owner: str) -> str:
    """Carry out the command of a task as its owner; return its messages, one a line.

    A failure is recorded in ggserr.log with the name of the task. A task whose owner was deleted is disabled, also if a user
    with the same name was added since. Raises GgsError.
    """
    try:
        _require_owner(state, name, owner)
        return _carried_out(state, command, owner)
    except GgsError as error:
        state.event(Severity.ERROR, error.code, f"task {name} of {owner}: {error}")
        raise


def _require_owner(state: ServiceState, name: str, owner: str) -> None:
    """Disable the task and raise HttpError 403 if its owner was deleted."""
    if state.users.identity(owner) == state.tasks.tasks.get(name).get(OWNER_IDENTITY, ""):
        return
    state.tasks.disable(name)
    hint = "the task is disabled: PATCH it with its command to run it in your name, or delete it"
    raise HttpError(403, f"user {owner}, who created the task, was deleted", hint=hint)


def _carried_out(state: ServiceState, command: dict[str, Any], owner: str) -> str:
    route, user = _route(), state.users.find(owner)
    if user is None:
        raise HttpError(403, f"user {owner} does not exist")
    principal = Principal(user.name, user.role)
    required(principal, route.role)
    request = Request("POST", f"{_BASE}{_PATH}", _BASE, {}, {}, _body(route, command), False, _CLIENT)
    call = Call(state, request, principal)
    try:
        changed = routes.changed_objects(route, (), request.body, state.home)
        with state.locks.held(changed, _WAIT_SECONDS):
            answer = routes.handle(route, call, ())
    except GgsError:
        raise
    except Exception as error:
        raise bug(error) from error
    finally:
        call.close()
    said = (*call.said, *(answer.messages if isinstance(answer, Answer) else ()))
    return "\n".join(f"{each.code}  {each.text}" for each in said)


def _route() -> routes.Route:
    return routes.find("POST", _PATH)[0]


def _body(route: routes.Route, command: dict[str, Any]) -> Any:
    try:
        return msgspec.convert(command, route.body)
    except msgspec.ValidationError as error:
        raise HttpError(400, f"the command is not valid: {error}", hint=choices(route.body, str(error))) from error
