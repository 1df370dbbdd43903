"""HTTP requests to a service: one connection that is opened again after it was closed, with a time limit for every step.

A request is never sent twice: a statement must not be carried out twice. A connection that the other side has closed, or may
soon close, is replaced before the request.
"""

from __future__ import annotations

import http.client
import json
import select
import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ggshell import __version__
from ggshell.clock import Clock, SystemClock
from ggshell.errors import ConnectionLostError, HttpError, UsageError
from ggshell.files import read_json
from ggshell.network.service_url import ServiceUrl
from ggshell.network.trust import Trust

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 60.0
"""How long to wait for an answer: the service answers within 25 seconds, if only to say that the statement takes longer."""
IDLE_SECONDS: Final = 30.0
"""How long a connection may be idle before it is replaced: less than the service keeps it open."""
_NO_ANSWER: Final = "GGS-00921"


class ServiceMessage(NamedTuple):
    """A message of an answer. ``title``: the whole text; ``text`` and ``hint``: its parts, empty for a message without a hint.

    ``severity``: INFO, WARNING or ERROR.
    """

    code: str
    title: str
    severity: str
    text: str
    hint: str


class Reply(NamedTuple):
    """An answer: status, headers (names in lower case) and the decoded body."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def response(self) -> Mapping[str, Any]:
        """The envelope's response; empty if there is none."""
        found = self.body.get("response")
        return found if isinstance(found, dict) else {}

    @property
    def messages(self) -> tuple[ServiceMessage, ...]:
        """The envelope's messages."""
        found = self.body.get("messages")
        objects = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        return tuple(ServiceMessage(*(str(each.get(name, "")) for name in ServiceMessage._fields)) for each in objects)


class Connection:
    """Requests to one service. Only one thread at a time can use it.

    ``trust``: decides about the certificate; None for an address without TLS. ``proxy``: the address of a proxy, or empty.
    """

    def __init__(self, url: ServiceUrl, trust: Trust | None, proxy: str = "", clock: Clock | None = None) -> None:
        self.url = url
        self._trust = trust
        self._proxy = _parse_proxy(proxy) if proxy else None
        self._clock = clock or SystemClock()
        self._http: http.client.HTTPConnection | None = None
        self._used = 0.0

    def send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a request and return its answer.

        A request that only reads is sent again over a new connection if the service closed the old one at that moment; a
        change never is. Raises ConnectionLostError if there is no answer, HttpError (502) for an answer that is not a
        service's, and the errors of a certificate that is not trusted.
        """
        reused = self._http
        connection = self.open()
        try:
            answer, data = self._exchange(connection, method, path, body, headers or {})
        except BaseException as error:
            self.close()
            closed = isinstance(error, ConnectionError) and connection is reused  # RemoteDisconnected is one
            if closed and method in ("GET", "HEAD"):
                return self.send(method, path, body, headers)
            if isinstance(error, OSError | http.client.HTTPException):
                raise self._lost(error, "the connection to {url} was lost before a response arrived") from error
            raise
        self._used = self._clock.steady()
        if answer.will_close:
            self.close()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Reply(answer.status, named, self._decoded(answer.status, data))

    def open(self) -> http.client.HTTPConnection:
        """Return an open connection. Raises ConnectionLostError, and the errors of a certificate that is not trusted."""
        try:
            return self._opened()
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error, "the service at {url} cannot be reached") from error

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        connection, self._http = self._http, None
        if connection is not None:
            connection.close()

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        target = f"{self.url.scheme}://{self.url.place}{path}" if self._proxy and not self.url.is_secure else path
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if data is not None else {}
        common = {"Host": self.url.place, "User-Agent": f"ggshell/{__version__}", "Accept": "application/json"}
        connection.request(method, target, data, {**common, **kind, **headers})
        answer = connection.getresponse()
        return answer, answer.read()

    def _opened(self) -> http.client.HTTPConnection:
        """Return an open connection. Raises OSError, HTTPException, ProcessError, StoreError."""
        found = self._http
        if found is not None and (self._clock.steady() - self._used > IDLE_SECONDS or _is_readable(found)):
            self.close()  # an idle connection has nothing to read unless the other side has closed it
            found = None
        if found is None:
            found = self._connected() if self._trust is None else self._secured(self._trust)
            found.sock.settimeout(ANSWER_SECONDS)
            self._http, self._used = found, self._clock.steady()
        return found

    def _connected(self) -> http.client.HTTPConnection:
        """Connect, through the proxy if there is one."""
        host, port = self._proxy or (self.url.host, self.url.port)
        connection = http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        if self._proxy is not None and self.url.is_secure:
            connection.set_tunnel(self.url.host, self.url.port)
        connection.connect()
        return connection

    def _secured(self, trust: Trust) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self.url.host, self.url.port, timeout=ANSWER_SECONDS)
        connection.sock = trust.open(self._handshake)
        return connection

    def _handshake(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        plain = self._connected()
        try:
            return context.wrap_socket(plain.sock, server_hostname=self.url.host)
        except BaseException:
            plain.close()
            raise

    def _lost(self, error: BaseException, what: str) -> ConnectionLostError:
        reason, hint = _reason(error, self.url)
        return ConnectionLostError(f"{what.format(url=self.url)}: {reason}", code=_NO_ANSWER, hint=hint)

    def _decoded(self, status: int, data: bytes) -> Mapping[str, Any]:
        try:
            found = read_json(data) if data else {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise HttpError(
                502,
                f"{self.url} answers with status {status}, but is not a ggshell service",
                code="GGS-00925",
                hint="check the address",
            )
        return found


def _is_readable(connection: http.client.HTTPConnection) -> bool:
    return connection.sock is None or bool(select.select([connection.sock], [], [], 0)[0])


def _reason(error: BaseException, url: ServiceUrl) -> tuple[str, str]:
    """Return why there is no answer, and what to do."""
    if isinstance(error, TimeoutError):
        return (
            "it did not answer in time",
            "check that the service is running and that no firewall blocks the connection",
        )
    if isinstance(error, ssl.SSLError):
        plain = error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
        return f"TLS: {error.reason or error}", "use http://, if the service is PLAINTEXT" if plain else ""
    if isinstance(error, http.client.BadStatusLine | ConnectionResetError) and not url.is_secure:
        return "it closed the connection", "use https://, unless the service is PLAINTEXT"
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(
            error
        ).__name__, "check the address, and INFO SERVICE in the other home"
    return str(error) or type(error).__name__, "check the address and the proxy"


def _parse_proxy(text: str) -> tuple[str, int]:
    """Parse the address of a proxy. Raises UsageError."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme != "http" or parts.username is not None:
        raise UsageError(f"{text[:200]} is not a valid address of a proxy", hint="use http://host:port")
    return host, port or 80
