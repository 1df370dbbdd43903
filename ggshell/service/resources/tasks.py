"""Tasks: commands that the service carries out at their times."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec

from ggshell.errors import ConflictError, UsageError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, Object, collection, item, status_item, utc_text
from ggshell.service.bodies import Body, described
from ggshell.service.call import Call
from ggshell.service.profiles import AutoRestart, plain
from ggshell.service.responses import Items, Resource, StatusItems
from ggshell.service.routes import resource
from ggshell.service.scheduler import DEFAULT_HISTORY, OWNER, OWNER_IDENTITY, parse_schedule
from ggshell.service.task_commands import check_command

_BASE: Final = "/tasks"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class TaskBody(Body):
    """A task, for POST and PATCH."""

    description: Annotated[str, msgspec.Meta(max_length=4095)] | None = None
    command: Annotated[
        dict[str, Any] | None, described("The body of POST /commands/execute that the task carries out.")
    ] = None
    schedule: Annotated[
        dict[str, Any] | None,
        described(
            "{every: {units, value}} with units seconds, minutes, hours, days or weeks; or {once: time}."
            " A task without a schedule runs on request."
        ),
    ] = None
    enabled: bool | None = None
    critical: bool | None = None
    status: Annotated[str, described("running: runs the task now.", "running", "starting", "stopped")] | None = None
    max_history: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    timeout: (
        Annotated[int, msgspec.Meta(ge=1, le=65_535, description="Seconds after which a running command is ended.")]
        | None
    ) = None
    restart: Annotated[AutoRestart | None, described("Whether the task runs again after an execution.")] = None


class ShownTask(Resource, tag="ogg:task", kw_only=True):
    """A task, in the form in which POST accepts it. ``status``: running, or how its last execution ended."""

    command: Object
    enabled: bool
    critical: bool
    max_history: int
    status: str
    description: str | None = None
    schedule: Object | None = None
    timeout: int | None = None
    restart: Object | None = None


class TaskExecution(Resource, tag="ogg:taskStatus", kw_only=True):
    """An execution of a task. ``output``: its messages, one a line; ``exit_code``: 1 if it failed."""

    status: str
    started: str | None
    finished: str | None
    killed: bool
    output: str
    exit_code: int | None = None


class TaskHistory(Resource, tag="ogg:taskHistory"):
    """The past executions of a task, the newest first."""

    history: list[TaskExecution]


class TaskStatus(Resource, tag="ogg:taskStatus", kw_only=True):
    """The status of a task, its last execution and its next time."""

    status: str
    started: str | None = None
    finished: str | None = None
    killed: bool | None = None
    output: str | None = None
    exit_code: int | None = None
    next: str | None = None


@resource("GET", _BASE, role=Role.USER, summary="List the tasks", returns=StatusItems)
def list_tasks(call: Call) -> Answer:
    tasks = call.state.tasks
    base = call.url(_BASE)
    return Answer(collection(status_item(base, name, _status(call, name)) for name in tasks.tasks.names()))


@resource("GET", f"{_BASE}/{{task}}", role=Role.USER, summary="Show a task", returns=ShownTask)
def get_task(call: Call, name: str) -> Answer:
    found = call.state.tasks.tasks.get(name)
    shown = {key: value for key, value in found.items() if key not in (OWNER, OWNER_IDENTITY)}
    return Answer({"$schema": "ogg:task", **shown, "status": _status(call, name)})


@resource("POST", f"{_BASE}/{{task}}", role=Role.ADMINISTRATOR, summary="Create a task", body=TaskBody, status=201)
def create_task(call: Call, name: str) -> Answer:
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"{name[:80]} is not a valid name of a task", hint="use letters, digits, _ and -, at most 64")
    tasks = call.state.tasks
    if tasks.tasks.find(name) is not None:
        raise ConflictError(f"task {name} already exists", hint="use PATCH to change it")
    given = _given(call)
    if "command" not in given:
        raise UsageError("command is required", hint='"command": {"name": "report", "reportType": "lag"}')
    defaults: Object = {"enabled": True, "critical": False, "maxHistory": DEFAULT_HISTORY}
    tasks.put(name, {**defaults, **given, **_owner(call)})
    _run_if_wanted(call, name)
    return Answer(status=201)


@resource("PATCH", f"{_BASE}/{{task}}", role=Role.ADMINISTRATOR, summary="Change a task, or run it", body=TaskBody)
def update_task(call: Call, name: str) -> Answer:
    """Change a task.

    A user who changes the command, or gives it again after its owner was deleted, becomes the one in whose name it runs.
    """
    tasks = call.state.tasks
    found, given = tasks.tasks.get(name), _given(call)
    deleted = call.state.users.identity(found[OWNER]) != found.get(OWNER_IDENTITY, "")
    taken = "command" in given and (deleted or given["command"] != found["command"])
    tasks.put(name, {**found, **given, **(_owner(call) if taken else {})})
    _run_if_wanted(call, name)
    return Answer()


@resource("DELETE", f"{_BASE}/{{task}}", role=Role.ADMINISTRATOR, summary="Delete a task")
def delete_task(call: Call, name: str) -> Answer:
    call.state.tasks.delete(name)
    return Answer()


@resource("GET", f"{_BASE}/{{task}}/info", role=Role.USER, summary="List the reports of a task", returns=Items)
def list_info(call: Call, name: str) -> Answer:
    call.state.tasks.tasks.get(name)
    return Answer(collection(item(call.url(f"{_BASE}/{name}/info"), each) for each in ("history", "status")))


@resource(
    "GET",
    f"{_BASE}/{{task}}/info/history",
    role=Role.USER,
    summary="Show the past executions of a task",
    returns=TaskHistory,
)
def get_history(call: Call, name: str) -> Answer:
    call.state.tasks.tasks.get(name)
    history = call.state.tasks.state(name).get("history", [])
    return Answer({"$schema": "ogg:taskHistory", "history": [_execution(each) for each in reversed(history)]})


@resource(
    "GET",
    f"{_BASE}/{{task}}/info/status",
    role=Role.USER,
    summary="Show the status and the next time of a task",
    returns=TaskStatus,
)
def get_status(call: Call, name: str) -> Answer:
    call.state.tasks.tasks.get(name)
    state = call.state.tasks.state(name)
    last = _execution(state["history"][-1]) if state.get("history") else {}
    fields: Object = {"$schema": "ogg:taskStatus", **last, "status": _status(call, name)}
    if state.get("running"):
        fields = {"$schema": "ogg:taskStatus", "status": "running", "started": utc_text(state.get("began", 0))}
    if state.get("next"):
        fields["next"] = utc_text(state["next"])
    return Answer(fields)


def _owner(call: Call) -> Object:
    """Return the fields that name the user of the request as the owner."""
    name = call.principal.name
    return {OWNER: name, OWNER_IDENTITY: call.state.users.identity(name)}


def _given(call: Call) -> Object:
    """Return the fields that a body sets, checked. Raises UsageError, HttpError."""
    body: TaskBody = call.body
    if body.command is not None:
        check_command(body.command)
    if body.schedule is not None:
        parse_schedule(body.schedule)
    if body.status not in (None, "running", "stopped", "starting"):
        raise UsageError(f"{body.status} is not a valid status", hint="use running to run the task now")
    found: Object = msgspec.to_builtins(body)
    if body.restart is not None:
        found["restart"] = plain(body.restart)
    return {key: value for key, value in found.items() if value not in (None, {}) and key not in ("$schema", "status")}


def _run_if_wanted(call: Call, name: str) -> None:
    if call.body.status in ("running", "starting") and _status(call, name) != "running":
        call.state.tasks.run_soon(name)


def _status(call: Call, name: str) -> str:
    """Return the status of a task: running, or how its last execution ended."""
    state = call.state.tasks.state(name)
    if state.get("running"):
        return "running"
    return str(state["history"][-1]["status"]) if state.get("history") else "stopped"


def _execution(each: Object) -> Object:
    times = {"started": utc_text(each["started"]), "finished": utc_text(each["finished"])}
    return {"$schema": "ogg:taskStatus", **each, **times}
