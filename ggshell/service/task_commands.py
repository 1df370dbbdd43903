"""Carries out the commands of scheduled tasks as requests of the users who created them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Final

import msgspec

from ggshell.errors import GgsError, HttpError, ProcessError
from ggshell.files import read_json
from ggshell.home.events import Severity
from ggshell.service import routes
from ggshell.service.answers import Answer
from ggshell.service.bodies import choices
from ggshell.service.body_refusals import reason_of
from ggshell.service.call import Call, Request
from ggshell.service.refusals import bug
from ggshell.service.scheduler import OWNER, OWNER_IDENTITY, timed_out
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
        state.event(Severity.ERROR, error.code, f"task: {error}")

    state.tasks.start(lambda name, task: execute(state, name, task), report)


def execute(state: ServiceState, name: str, task: dict[str, Any]) -> str:
    """Carry out the command of a task as its owner; return its messages, one a line.

    A command with a timeout runs in a separate process, which is ended after that time. A failure is recorded in ggserr.log
    with the name of the task. A task whose owner was deleted is disabled, also if a user with the same name was added since.
    Raises GgsError.
    """
    owner, command, timeout = str(task.get(OWNER, "")), task["command"], task.get("timeout")
    try:
        _require_owner(state, name, owner)
        route = _route()
        changed = routes.changed_objects(route, (), _body(route, command), state.home)
        with state.locks.held(changed, _WAIT_SECONDS):
            if timeout is None:
                return carried_out(state, command, owner)
            return _in_process(state, {"command": command, "owner": owner}, int(timeout))
    except GgsError as error:
        state.event(Severity.ERROR, error.code, f"task {name} of {owner}: {error}")
        raise


def _require_owner(state: ServiceState, name: str, owner: str) -> None:
    """Disable the task and raise HttpError 403 if its owner was deleted."""
    if state.users.identity(owner) == state.tasks.tasks.get(name).get(OWNER_IDENTITY, ""):
        return
    state.tasks.disable(name)
    hint = "the task is disabled: PATCH it with its command to run it as your user, or delete it"
    raise HttpError(403, f"user {owner}, who created the task, was deleted", hint=hint)


def _in_process(state: ServiceState, order: dict[str, Any], timeout: int) -> str:
    """Carry out a command in a separate process; end it after the timeout in seconds. Raises GgsError."""
    program = [sys.executable, "-P", "-m", "ggshell.service.task_process", str(state.home.root)]
    over = threading.Event()

    def end() -> None:
        over.set()
        child.kill()

    with _started(program, state.home.root) as child:
        timer = threading.Timer(timeout, end)
        timer.start()
        try:
            line = _answer(child, order)
        finally:
            timer.cancel()
            child.kill()
    if not line:
        raise (
            timed_out(timeout) if over.is_set() else ProcessError("the process of the command ended without an answer")
        )
    try:
        answer = read_json(line)
    except ValueError as error:
        raise ProcessError(f"the process of the command gave an answer that cannot be read: {error}") from error
    if "code" in answer:
        raise GgsError(answer["message"], code=answer["code"])
    return str(answer["output"])


def _started(program: list[str], folder: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
    except OSError as error:
        raise ProcessError(f"the process of the command cannot be started: {error.strerror}") from error


def _answer(child: subprocess.Popen[bytes], order: dict[str, Any]) -> bytes:
    """Send the command and return the line that answers it, empty if the process ends before. Its input stays open."""
    if child.stdin is None or child.stdout is None:
        raise TypeError("the process has no pipes")
    with contextlib.suppress(BrokenPipeError):  # it ended already, and has no answer
        child.stdin.write(json.dumps(order).encode() + b"\n")
        child.stdin.flush()
    return child.stdout.readline()


def carried_out(state: ServiceState, command: dict[str, Any], owner: str) -> str:
    """Carry out a command as a user; return its messages, one a line. Raises GgsError."""
    route, user = _route(), state.users.find(owner)
    if user is None:
        raise HttpError(403, f"user {owner} does not exist")
    principal = Principal(user.name, user.role, "", user.identity)
    required(principal, route.role)
    request = Request("POST", f"{_BASE}{_PATH}", _BASE, {}, {}, _body(route, command), False, _CLIENT)
    call = Call(state, request, principal)
    try:
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
        raise HttpError(
            400, f"the command is not valid: {reason_of(error)}", hint=choices(route.body, str(error))
        ) from error
