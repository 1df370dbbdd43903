"""The routes of the API, registered by decorators: one declaration gives the address, the role, the types and the page.

``@resource("GET", "/extracts/{extract}", role=Role.USER, summary="…")`` above a function makes it the handler. The function
receives the call and the parts of the address. The OpenAPI document, the check of permissions and the table of HELP SECURITY
all come from these declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args
from urllib.parse import quote, unquote

from ggshell.errors import HttpError
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.service.answers import Answer, RawAnswer
from ggshell.service.responses import LongRequest

if TYPE_CHECKING:
    from ggshell.service.call import Call

Handler = Callable[..., Answer | RawAnswer]
Changed = Callable[[Any, Home], tuple[str, ...]]
CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
CONTINUES: Final = 202
"""The status of a request that continues after its answer."""
LONGEST_NAME = 200
"""The longest part of an address, percent-encoded: names become names of files, which have at most 255 bytes."""


class Route(NamedTuple):
    """A declared route.

    ``path``: below ``/services/v2``, with ``{name}`` for a part. ``role``: the lowest role that may use it. ``body``: the
    type (msgspec.Struct) of the request's body, None if the route takes no body; ``optional``: the body can be left out.
    ``returns``: the type of ``response``, with ``| None`` if some answers have none, None if no answer has one; ``raw``: the
    answer has no envelope. ``tag``: the group of the route in the OpenAPI document. ``changed``: returns from the body and
    the home the names of what the request changes, which only one request at a time does; no name for a request that
    changes nothing; None: the address names it. ``statements``: requests are statements of a shell, which records them and
    carries out one at a time. ``query``: what the parameters after the question mark mean, by name. ``continues``: a GET
    about a request that may still continue.
    """

    method: str
    path: str
    role: Role
    summary: str
    handler: Handler
    body: Any = None
    optional: bool = False
    returns: Any = None
    tag: str = ""
    status: int = 200
    raw: bool = False
    statements: bool = False
    query: Mapping[str, str] = {}
    changed: Changed | None = None
    continues: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts of the address."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def changes(self) -> bool:
        return self.method in CHANGES

    @property
    def returns_always(self) -> bool:
        """Whether every answer of success has a ``response``."""
        return self.returns is not None and NoneType not in get_args(self.returns)

    def returned(self, status: int) -> Any:
        """The type of ``response`` of an answer of success; 202 says that the request continues."""
        return LongRequest if status == CONTINUES != self.status else self.returns

    @property
    def successes(self) -> tuple[int, ...]:
        """The statuses of success, in order."""
        return tuple(sorted({self.status, CONTINUES})) if self.changes or self.continues else (self.status,)


_ROUTES: dict[tuple[str, str], Route] = {}


def resource(
    method: str,
    path: str,
    *,
    role: Role,
    summary: str,
    body: Any = None,
    optional: bool = False,
    returns: Any = None,
    status: int = 200,
    raw: bool = False,
    statements: bool = False,
    query: Mapping[str, str] | None = None,
    changed: Changed | None = None,
    continues: bool = False,
) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of a route."""

    def register(handler: Handler) -> Handler:
        tag = handler.__module__.rpartition(".")[2].replace("_", " ")
        route = Route(
            method,
            path,
            role,
            summary,
            handler,
            body,
            optional,
            returns,
            tag,
            status,
            raw,
            statements,
            query or {},
            changed,
            continues,
        )
        if _ROUTES.setdefault((method, path), route) is not route:
            raise ValueError(f"{method} {path} is declared twice")
        return handler

    return register


@cache
def routes() -> tuple[Route, ...]:
    """Return every route, in the order of its address."""
    package = import_module("ggshell.service.resources")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(_ROUTES.values(), key=lambda route: (route.path, route.method)))


class Branch:
    """A node of the tree of addresses: fixed words, one variable part, and the routes that end here."""

    __slots__ = ("routes", "variable", "words")

    def __init__(self) -> None:
        self.words: dict[str, Branch] = {}
        self.variable: Branch | None = None
        self.routes: dict[str, Route] = {}


@cache
def _tree() -> Branch:
    root = Branch()
    for route in routes():
        place = root
        for word in route.path.strip("/").split("/"):
            if word.startswith("{"):
                place.variable = place.variable or Branch()
                place = place.variable
            else:
                place = place.words.setdefault(word, Branch())
        place.routes[route.method] = route
    return root


def find(method: str, path: str) -> tuple[Route, tuple[str, ...]]:
    """Return the route of a request and the values of its address's parts.

    ``path``: below ``/services/v2``, still percent-encoded. Raises HttpError (404, 405, 400).
    """
    branches: list[tuple[Branch, tuple[str, ...]]] = [(_tree(), ())]
    words = path.strip("/").split("/")
    for word in words:
        branches = [pair for branch, values in branches for pair in _steps(branch, values, word)]
    ends = [(branch, values) for branch, values in branches if branch.routes]
    if not ends:
        raise HttpError(404, f"{path[:200]} is not a resource of this API", hint="see /services/v2/metadata-catalog")
    wanted = "GET" if method == "HEAD" else method
    for branch, values in ends:
        if wanted in branch.routes:
            return branch.routes[wanted], values
    allowed = ", ".join(sorted({method for branch, _ in ends for method in allowed_methods(branch)}))
    raise HttpError(
        405, f"{method} is not supported for {path[:200]}", hint=f"use {allowed}", headers={"Allow": allowed}
    )


def allowed_methods(branch: Branch) -> list[str]:
    """Return the methods of an address, with those that every address has."""
    return sorted({*branch.routes, "OPTIONS", *(("HEAD",) if "GET" in branch.routes else ())})


def _steps(branch: Branch, values: tuple[str, ...], word: str) -> Iterator[tuple[Branch, tuple[str, ...]]]:
    if word in branch.words:
        yield branch.words[word], values
    if branch.variable is not None:
        yield branch.variable, (*values, _part(word))


def _part(word: str) -> str:
    """Decode a part of an address. Raises HttpError for one that cannot be a name."""
    try:
        value = unquote(word, errors="strict")
    except UnicodeDecodeError as error:
        raise HttpError(400, "the address contains a name that is not valid UTF-8") from error
    if (
        not value
        or len(quote(value, safe="")) > LONGEST_NAME
        or not value.isprintable()
        or value in (".", "..")
        or "/" in value
    ):
        raise HttpError(400, f"{value[:80]!a} is not a valid name in an address")
    return value


def changed_objects(route: Route, values: tuple[str, ...], body: Any, home: Home) -> tuple[str, ...]:
    """Return the names of the objects that a request changes. Raises StoreError if the home cannot be read."""
    if route.changed is not None:
        return route.changed(body, home)
    return (object_name(route.path.split("/")[1], values[0] if values else ""),)


def object_name(collection: str, name: str) -> str:
    """Return the name by which requests of all kinds know an object, for example ``extracts EXT1``."""
    return f"{collection} {name.upper()}".strip()


def handle(route: Route, call: Call, values: tuple[str, ...]) -> Answer | RawAnswer:
    """Call a route's handler."""
    return route.handler(call, *values)
