"""A call: one request as a handler sees it, and the statements that carry it out.

A handler translates a resource and a body into statements and runs them with ``run``. Statements are carried out by the same
code as those of the shell, so a request and a statement that mean the same have the same effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.cli.execute import execute, parse
from ggshell.cli.options import Options
from ggshell.cli.outcome import Outcome
from ggshell.cli.session import Session
from ggshell.errors import GgsError
from ggshell.home.last_part import MOST_BYTES
from ggshell.service.answers import Said
from ggshell.service.connection_names import connection_of
from ggshell.service.named_files import Bounds, require_inside
from ggshell.service.permissions import require_places
from ggshell.service.sign_in import Principal
from ggshell.service.statement_words import word
from ggshell.service.steps import Steps
from ggshell.service.told import messages_of, result_lines

if TYPE_CHECKING:
    from ggshell.cli.results import Result
    from ggshell.home.home import Home
    from ggshell.language.grammar import Parsed
    from ggshell.service.state import ServiceState
    from ggshell.time_limit import TimeLimit


class Request(NamedTuple):
    """What the client sent, decoded.

    ``address``: the full URL, for links; ``base``: the URL of the API in the form that the client uses (``…/v2``). ``query``:
    the parameters of the address. ``body``: the decoded body in the type of the route, None without a body. ``plain``: the
    client asks for ``text/plain``.
    """

    method: str
    address: str
    base: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    plain: bool
    client: str
    service: str = ""


class Call:
    """One call of a handler. Close it after use: it may hold a database login.

    ``changed``: the name of the object that the request changes, which only this request does now; empty if it changes none.
    """

    def __init__(
        self, state: ServiceState, request: Request, principal: Principal, limit: TimeLimit | None = None
    ) -> None:
        """``limit``: for its databases; by default the call may take any time, but no database may be silent."""
        self.state = state
        self.request = request
        self.principal = principal
        self.limit = limit or state.limit()
        self.changed = ""
        self.said: list[Said] = []
        self._session: Session | None = None
        self._cleanup = ExitStack()
        self._uses_database = False

    @property
    def home(self) -> Home:
        return self.state.home

    @property
    def bounds(self) -> Bounds:
        """Which files the user may name."""
        return self.state.bounds

    @property
    def body(self) -> Any:
        return self.request.body

    @property
    def session(self) -> Session:
        """The session in which this call's statements run; it has no user to ask and no operating system commands."""
        if self._session is None:
            options = Options(home=str(self.home.root), format="json", shell=False, auto_manager=True)
            self._session = Session(options, clock=self.state.clock)
            self._session.actor = f"{self.principal.name}@{self.request.client}"
            self._session.longest_text = MOST_BYTES
            self._session.limit = self.limit
            self._session.wait = self.limit.pause
            self._cleanup.callback(self._session.close)
        return self._session

    def run(self, statement: str, *, told: bool = False) -> Outcome:
        """Carry out a statement; its notes become messages of the answer.

        ``told``: the lines of its result become messages too. Raises GgsError if it failed, HttpError 403 for a file or a
        trail outside the home that the user may not name.
        """
        outcome = execute(self.session, statement, self._permitted(statement))
        self.said += [Said(note.code, note.message, "WARNING") for note in outcome.notes]
        if outcome.errors:
            raise outcome.errors[0]
        if told:
            self.said += messages_of(result_lines(outcome))
        return outcome

    def _permitted(self, statement: str) -> Parsed | None:
        """Return a parsed statement if the user may name its files; None for a syntax error, which ``execute`` reports."""
        try:
            parsed = parse(statement)
        except GgsError:
            return None
        require_places(self.principal, parsed, self.bounds)
        return parsed

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Carry out a statement and return its result's rows as objects. Raises GgsError."""
        return objects_of(self.run(statement).result)

    def log_in(self, connection: str) -> None:
        """Log in to the database of a connection.

        Raises NotFoundError, DatabaseError, HttpError 503 while too many other requests use databases.
        """
        found = connection_of(self.home, connection)
        if not self._uses_database:
            self._cleanup.enter_context(self.state.database())
            self._uses_database = True
        self.run(f"DBLOGIN USERIDALIAS {word(found.alias)} DOMAIN {word(found.domain)}")

    def adopt(self, limit: TimeLimit) -> None:
        """Carry out a statement of a shell under the limit of its session, which its database login has too."""
        former, self.limit = self.limit, limit
        if former.ended:
            limit.end()

    def steps(self) -> Steps:
        """Return a series of steps that is undone if one of them fails."""
        return Steps(self)

    def url(self, path: str) -> str:
        """Return the URL of another resource in the form of address that the client uses."""
        return f"{self.request.base}{path}"

    def require_shown(self, path: Path) -> None:
        """Check that the user may read a file of the home: a symbolic link can point outside. Raises HttpError, UsageError."""
        require_inside(self.bounds, self.principal, str(path), exact=True)

    def close(self) -> None:
        self._cleanup.close()


def objects_of(result: Result | None) -> list[dict[str, Any]]:
    """Return the rows of a result as objects, none without a result."""
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows] if result is not None else []
