"""Explanations of message codes, from the pages of the manual."""

from __future__ import annotations

from typing import Final

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.language import pages
from ggshell.service.answers import Answer, collection, item
from ggshell.service.call import Call
from ggshell.service.responses import Items, Resource, Severity
from ggshell.service.routes import resource

_BASE: Final = "/oggerr"
_KIND: Final = "messages"
_SEVERITIES: Final = (("error", "ERROR"), ("warning", "WARNING"))


class MessageExplanation(Resource, tag="ogg:messageExplanation", kw_only=True):
    """The page of a message code."""

    title: str
    severity: Severity
    cause: str | None = None
    action: str | None = None


@resource("GET", _BASE, role=Role.ANYONE, summary="List the message codes", returns=Items)
def list_codes(call: Call) -> Answer:
    return Answer(collection(item(call.url(_BASE), stem.upper()) for stem in pages.index(_KIND)))


@resource("GET", f"{_BASE}/{{message}}", role=Role.ANYONE, summary="Explain a message code", returns=MessageExplanation)
def get_code(call: Call, code: str) -> Answer:
    path = pages.index(_KIND).get(code.lower())
    if path is None:
        raise NotFoundError(f"message code {code} does not exist", hint="list the codes with GET oggerr")
    page = pages.read(path)
    stated = page.facts.get("Severity", "")
    found = MessageExplanation(
        title=page.summary or page.title,
        severity=next((name for word, name in _SEVERITIES if word in stated), "INFO"),
        cause=" ".join(pages.section(path, "Cause")) or None,
        action=" ".join(pages.section(path, "Action")) or None,
    )
    return Answer(found)
