"""A signed-in session at a service: statements are sent to it, and their outcomes come back as data.

The password stays in memory, so that the client signs in again when the session has ended.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ggshell.client.connection import Connection, Reply
from ggshell.client.credentials import StoredLogin
from ggshell.clock import pause
from ggshell.errors import GgsError, HttpError, NotFoundError

_FOLLOW_SECONDS: Final = 0.5
_UNAUTHORIZED: Final = 401
_ACCEPTED: Final = 202
Answerer = Callable[[str, bool], str]
"""Asks the user a question; the second argument says whether the input is hidden."""


class ShellChoices(NamedTuple):
    """What the shell chooses for its session: the query engine, and whether START also starts Manager."""

    engine: str = ""
    auto_manager: bool = False


class Remote:
    """A connection to another home, as CONNECT opens it. Any thread can use it; completion does.

    ``deployment``: the name given in CONNECT, empty for the only one. ``login``: the database login of the session there.
    """

    def __init__(self, connection: Connection, login: StoredLogin, deployment: str = "") -> None:
        self._connection = connection
        self._login = login
        self._base = connection.url.base(deployment)
        self._cookie = ""
        self._lost_login: str | None = None
        self._lock = threading.Lock()
        self._choices = ShellChoices()
        self.deployment = deployment
        self.user = ""
        self.role = ""
        self.login = ""

    @property
    def url(self) -> str:
        return str(self._connection.url)

    @property
    def title(self) -> str:
        """The connection as the prompt shows it: ``https://host:port deployment``, with the database login."""
        return f"{self.url} {self.deployment}{f' as {self.login}' if self.login else ''}"

    def sign_in(self, choices: ShellChoices) -> None:
        """Start a session. Raises HttpError if the service refuses, and the errors of the connection."""
        self._choices = choices
        body = {"engine": choices.engine, "autoManager": choices.auto_manager}
        reply = self._connection.send("POST", f"{self._base}/ggshell/sessions", body, self._credentials())
        self._require(reply, signing_in=True)
        fields = reply.response
        cookie = reply.headers.get("set-cookie", "").partition(";")[0]
        if not cookie or "deployment" not in fields:
            raise self._foreign(reply)
        self._cookie, self.login = cookie, ""
        self.deployment, self.user, self.role = (str(fields.get(name, "")) for name in ("deployment", "user", "role"))

    def run(self, statement: str, ask: Answerer | None, *, interactive: bool = False) -> Mapping[str, Any]:
        """Carry out a statement; return its outcome's fields. ``ask``: None if its questions cannot be answered.

        Raises ConnectionLostError, HttpError.
        """
        answers: list[str] = []
        while True:  # once more for each question that the statement asks
            body: dict[str, Any] = {"statement": statement, "interactive": interactive}
            if ask is not None:
                body["answers"] = answers
            fields = self._outcome(body)
            question = fields.get("question")
            if ask is None or not isinstance(question, dict):
                return fields
            answers.append(ask(str(question.get("text", "")), bool(question.get("hidden"))))

    def take_renewal(self) -> str | None:
        """Return the database login that the session lost when the client signed in again since the last call.

        It is empty if there was no login, None if the client did not have to sign in again.
        """
        lost, self._lost_login = self._lost_login, None
        return lost

    def names(self, path: str) -> list[str]:
        """Return the names of a collection of the REST API. Raises ConnectionLostError, HttpError."""
        items = self.request("GET", path).response.get("items")
        return (
            [str(each.get("name", "")) for each in items if isinstance(each, dict)] if isinstance(items, list) else []
        )

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a request of the REST API in the session. Raises ConnectionLostError, HttpError."""
        with self._lock:
            reply = self._sent(method, path, body, headers)
            self._require(reply)
            return reply

    def close(self) -> None:
        """Sign out, if the service still answers, and close the connection."""
        cookie, self._cookie = self._cookie, ""
        if cookie:
            with suppress(GgsError):
                self._connection.send("DELETE", f"{self._base}/currentuser", None, {"Cookie": cookie})
        self._connection.close()

    def _outcome(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        with self._lock:
            reply = self._followed(self._sent("POST", "/ggshell/statements", body))
            self._require(reply)
            if "errors" not in reply.response:
                raise self._foreign(reply)
            self.login = str(reply.response.get("login", ""))
            return reply.response

    def _sent(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a request in the session, after signing in again if it has ended."""
        more = headers or {}
        reply = self._connection.send(method, f"{self._base}{path}", body, {**more, "Cookie": self._cookie})
        if reply.status != _UNAUTHORIZED or self._login.token:
            return reply
        self._lost_login = self._lost_login or self.login
        self.sign_in(self._choices)
        return self._connection.send(method, f"{self._base}{path}", body, {**more, "Cookie": self._cookie})

    def _followed(self, reply: Reply) -> Reply:
        """Wait for a statement that takes longer than a request may take."""
        name = str(reply.response.get("name", ""))
        while reply.status == _ACCEPTED:
            pause(_FOLLOW_SECONDS)
            path = f"{self._base}/ggshell/statements/{name}"
            reply = self._connection.send("GET", path, None, {"Cookie": self._cookie})
        return reply

    def _credentials(self) -> dict[str, str]:
        if self._login.token:
            return {"Authorization": f"Bearer {self._login.token}"}
        pair = f"{self._login.user}:{self._login.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}

    def _require(self, reply: Reply, *, signing_in: bool = False) -> None:
        """Raise HttpError unless a request succeeded, NotFoundError for a server without this interface."""
        if reply.status < 400:
            return
        if not reply.messages:
            raise self._foreign(reply)
        found = reply.messages[0]
        if signing_in and reply.status == 404 and "not a resource" in found.title:
            raise NotFoundError(f"{self.url} is not a service of ggshell: {found.title}")
        raise HttpError(reply.status, found.text or found.title, code=found.code or None, hint=found.hint)

    def _foreign(self, reply: Reply) -> HttpError:
        return HttpError(reply.status, f"{self.url} answers with status {reply.status}, but is not a ggshell service")
