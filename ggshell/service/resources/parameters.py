"""The parameters of parameter files, from the pages of the manual."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from ggshell.errors import NotFoundError
from ggshell.home.users import Role
from ggshell.language import pages
from ggshell.language.suggest import did_you_mean
from ggshell.service.answers import Answer, collection, item
from ggshell.service.call import Call
from ggshell.service.responses import Items, Resource, Response
from ggshell.service.routes import resource

_BASE: Final = "/parameters"
_KIND: Final = "parameters"
_LONGEST: Final = 1024


class ParameterInfo(Response, kw_only=True):
    """What the manual says about a parameter."""

    description: str
    components: list[str]
    databases: list[str]
    platforms: list[str]
    mandatory: bool
    dynamic: bool
    syntax: list[str]
    examples: list[str]
    default: str | None = None
    not_supported: str | None = None
    aliases: list[str] | None = None


class ShownParameter(Resource, tag="ogg:parameter"):
    """A parameter."""

    name: str
    info: list[ParameterInfo]


@resource("GET", _BASE, role=Role.ANYONE, summary="List the parameters", returns=Items)
def list_parameters(call: Call) -> Answer:
    return Answer(collection(item(call.url(_BASE), name) for name in sorted(_pages())))


@resource("GET", f"{_BASE}/{{parameter}}", role=Role.ANYONE, summary="Describe a parameter", returns=ShownParameter)
def get_parameter(call: Call, name: str) -> Answer:
    page = _pages().get(name.upper())
    if page is None:
        hint = did_you_mean(name.upper(), list(_pages())) or "list them with GET parameters"
        raise NotFoundError(f"parameter {name} does not exist", hint=hint)
    others = [other for other, each in _pages().items() if each is page and other != name.upper()]
    info = ParameterInfo(
        description=page.summary[:_LONGEST],
        components=[part.strip() for part in page.facts.get("For", "").split(",") if part.strip()],
        databases=[part.strip() for part in page.facts.get("Databases", "All").split(",")],
        platforms=["All"],
        mandatory=False,
        dynamic=False,
        syntax=list(page.syntax),
        examples=list(page.examples),
        default=page.facts.get("Default"),
        not_supported=page.facts.get("Not supported"),
        aliases=others or None,
    )
    return Answer(ShownParameter(name=name.upper(), info=[info]))


@cache
def _pages() -> dict[str, pages.Page]:
    """Return the page of every parameter; a page about two opposite parameters appears under both names."""
    found = {}
    for path in pages.index(_KIND).values():
        page = pages.read(path)
        for word in re.findall(r"[A-Z][A-Z0-9_]*", page.title):
            found[word] = page
    return found
