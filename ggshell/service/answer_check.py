"""A check of every answer against the declaration of its route, for tests: it costs time, and a mistake becomes an answer 500.

The service checks its answers if the variable GGSHELL_CHECK_ANSWERS is set. The OpenAPI document is made from the same types.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ggshell.service.responses import Link, Message, Resource
from ggshell.service.routes import Route

VARIABLE: Final = "GGSHELL_CHECK_ANSWERS"
_NOTHING: Final = msgspec.Raw(b"")
_NOT_MODIFIED: Final = 304


class _Received(Resource, tag="api:standardResponse"):
    """An envelope whose response is not decoded yet."""

    links: list[Link]
    messages: list[Message]
    response: msgspec.Raw = _NOTHING


def check_answer(route: Route, status: int, body: bytes) -> None:
    """Raise ValueError unless an answer of success in JSON has a declared status and response."""
    if status == _NOT_MODIFIED:
        return
    what = f"the answer {status} of {route.method} {route.path} is not as declared"
    if status not in route.successes:
        raise ValueError(what)
    try:
        found = msgspec.json.decode(body, type=_Received).response
        returned = route.returned(status)
        if not found:
            if returned is not None and (returned is not route.returns or route.returns_always):
                raise ValueError(f"{what}: it has no response")
        elif returned is None:
            raise ValueError(f"{what}: it has a response")
        else:
            msgspec.json.decode(found, type=returned)
    except msgspec.ValidationError as error:
        raise ValueError(f"{what}: {error}") from error
