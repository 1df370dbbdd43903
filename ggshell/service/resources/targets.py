"""Targets: the paths that deliver to this home. A home has no receiver yet, so there are none."""

from __future__ import annotations

from typing import Any

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.service.answers import Answer, collection
from ggshell.service.call import Call
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items
from ggshell.service.routes import resource

_BASE = "/targets"


@resource("GET", _BASE, role=Role.USER, summary="List the paths that deliver to this home", returns=Items)
def list_targets(call: Call) -> Answer:
    return Answer(collection(()))


def _unknown(call: Call, path: str) -> Answer:
    raise NotFoundError(f"receiver path {path} does not exist", hint="paths of this home are sources")


def _unsupported(call: Call, path: str) -> Answer:
    raise not_here("a path that its target initiates", "create a distribution path with POST sources")


for _part in ("", "/info", "/checkpoints", "/progress", "/stats"):
    resource("GET", f"{_BASE}/{{path}}{_part}", role=Role.USER, summary="Show a path that delivers here")(_unknown)
resource(
    "POST",
    f"{_BASE}/{{path}}",
    role=Role.ADMINISTRATOR,
    summary="Receiver paths are not supported",
    body=dict[str, Any],
)(_unsupported)
resource(
    "PATCH", f"{_BASE}/{{path}}", role=Role.OPERATOR, summary="Change a path that delivers here", body=dict[str, Any]
)(_unknown)
resource("DELETE", f"{_BASE}/{{path}}", role=Role.ADMINISTRATOR, summary="Delete a path that delivers here")(_unknown)
