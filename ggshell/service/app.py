"""The application: an HTTP request becomes a call of a handler, and its answer or error becomes the HTTP answer.

The steps are: address, route, sign-in, role, body, handler in a worker thread, envelope. Every request has a deadline: a read
that takes longer is refused with 503, a change continues and is followed with ``requests/{name}``. No database may leave a
statement of a request without an answer for longer than ``SILENCE_SECONDS``.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from ggshell.errors import GgsError, HttpError, StoreError
from ggshell.home.events import Severity
from ggshell.home.users import Role
from ggshell.language.redaction import masked
from ggshell.parameters.access_rules import Program
from ggshell.service import routes
from ggshell.service.addresses import Address, parse_address
from ggshell.service.answers import JSON, Answer, RawAnswer, Said, envelope
from ggshell.service.audit import Attempt
from ggshell.service.body_refusals import reason_of
from ggshell.service.call import Call, Request
from ggshell.service.recovery import undo_unfinished
from ggshell.service.refusals import bug, headers_of, status_of
from ggshell.service.request_sign_in import PeerName, RequestSignIn
from ggshell.service.responses import LongRequest, StandardResponse
from ggshell.service.sign_in import ANONYMOUS, COOKIE, Principal, required
from ggshell.service.state import ServiceState
from ggshell.service.trail_endpoints import TrailEndpoints

LONGEST_BODY: Final = 1 << 20
DEEPEST_BODY: Final = 100
BODY_SECONDS: Final = 30.0
DEADLINE_SECONDS: Final = 25.0
LOCK_SHARE: Final = 0.6
"""The part of the deadline for which a change waits for other changes of the same object."""
UNWATCHED_SECONDS: Final = 0.5
"""How long the service does not check whether a client closes its connection. Most answers take less."""
_ENDING: Final = "the service is being stopped, so this request was not completed"
_ABSOLUTE: Final = re.compile("https?://[^/]*", re.IGNORECASE)
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""Headers of every answer: a browser must not guess its type, and nothing may keep it."""


Check = Callable[[routes.Route, int, bytes], None]
"""Raises an error for an answer that is not as its route declares it: the status, and the body in JSON."""


class Application:
    """The ASGI application of a service. ``deadline``: seconds that a request may take; ``check``: checks each answer."""

    def __init__(
        self,
        state: ServiceState,
        peer_name: PeerName = lambda _: "",
        deadline: float = DEADLINE_SECONDS,
        check: Check | None = None,
    ) -> None:
        self._state = state
        self._sign_in = RequestSignIn(state, peer_name, deadline)
        self._deadline = deadline
        self._check = check
        self.trails = TrailEndpoints(state, self._sign_in)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of any method for any address: the routes decide which of them there are."""
        if scope["type"] == "websocket":
            await self.trails.serve(WebSocket(scope, receive, send))
            return
        raw = scope.get("raw_path", b"").decode("ascii", "replace") or scope["path"]
        absolute = _ABSOLUTE.match(raw)  # GET http://host/services/…, which a proxy may send
        if absolute is not None:
            raw = raw[absolute.end() :] or "/"
            scope = {**scope, "path": unquote(raw), "raw_path": raw.encode()}
        answer = await self._endpoint(HttpRequest(scope, receive))
        await answer(scope, receive, send)

    async def _endpoint(self, request: HttpRequest) -> Response:
        answer = await self._answer_or_refusal(request)
        answer.headers.update(_ALWAYS)
        if _left_unread(request) and (answer.status_code >= 400 or _unlimited(request)):
            answer.headers["Connection"] = "close"  # instead of receiving the rest of the body
        return answer

    async def _answer_or_refusal(self, request: HttpRequest) -> Response:
        try:
            return await self._answer_or_bug(request)
        except GgsError as error:
            return self._refusal(request, error)
        except asyncio.CancelledError:  # the server ends, and it cancels what it does not wait for any longer
            return self._refusal(
                request, HttpError(503, _ENDING, hint="repeat the request when the service runs again")
            )

    async def _answer_or_bug(self, request: HttpRequest) -> Response:
        """Return the answer. Raises only GgsError: Starlette would answer other errors without the envelope."""
        try:
            return await self._answer(request)
        except GgsError:
            raise
        except Exception as error:
            raise bug(error) from error

    def _refusal(self, request: HttpRequest, error: GgsError) -> Response:
        """Return the answer that reports an error; an unexpected one is also an event."""
        path, status, headers = request.scope["path"], status_of(error), headers_of(error)
        if status == 500:
            with contextlib.suppress(GgsError):  # a disk that is full must not hide the error itself
                self._state.event(Severity.ERROR, error.code, f"{request.method} {path}: {error}")
        said = Said(error.code, masked(error.located), "ERROR", masked(error.hint))
        if "text/plain" in request.headers.get("accept", ""):
            return Response(f"{said.code} {said.text}\n", status, headers, "text/plain")
        try:
            origin = _origin(request)
        except HttpError:
            origin = ""
        found = envelope(str(request.url), f"{origin}/services/v2", (said,), self._state.clock.now(), None)
        return Response(_line(found), status, headers, JSON)

    async def _answer(self, request: HttpRequest) -> Response:
        host, access = _host(request), self._state.access
        access.require(host, Program.MANAGER, Program.SHELL)
        address = self._address(request)
        if request.method == "OPTIONS":
            return self._options(address)
        route, values = routes.find(request.method, address.path)
        if route.changes:
            _require_same_origin(request)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        principal = await self._principal(request, route.role)
        seconds = self._deadline - (loop.time() - begun)
        is_shell = _is_of_shells(address) or self._state.shells.has(principal.session)
        access.require(host, Program.SHELL if is_shell else Program.MANAGER, login=principal.name)
        with self._audited(request, route, principal):
            required(principal, route.role)
            body = await self._body(request, route)
            end = loop.time() + seconds
            limit = self._state.limit(math.inf if route.changes else seconds)
            call = Call(self._state, self._request(request, address, body), principal, limit)
            release = await self._place(route, call, values)
        future = self._submitted(route, call, values, release)
        answer = await self._awaited(request, future, route, call, end - loop.time())
        response = self._response(request, call, answer)
        if self._check is not None and isinstance(answer, Answer) and response.media_type == JSON:
            self._check(route, response.status_code, bytes(response.body))
        return response

    async def _place(self, route: routes.Route, call: Call, values: tuple[str, ...]) -> Callable[[], None]:
        """Wait until a request may be carried out; return what must be called at its end. Raises HttpError (409, 503).

        No thread waits: requests that wait for an object must leave the threads to those for other objects.
        """
        if route.statements:
            return self._state.statement_place()
        if not route.changes:
            return _nothing
        changed = routes.changed_objects(route, values, call.body, self._state.home)
        return await self._state.locks.take(changed, self._deadline * LOCK_SHARE)

    @contextlib.contextmanager
    def _audited(self, request: HttpRequest, route: routes.Route, principal: Principal) -> Iterator[None]:
        """Record a change that is refused before it is carried out. Without credentials it is not a change by anyone."""
        try:
            yield
        except GgsError as error:
            if route.changes and principal is not ANONYMOUS:
                self._state.audit.refused(
                    _attempt(request.method, request.scope["path"], principal, _host(request)), error
                )
            raise

    def _submitted(
        self, route: routes.Route, call: Call, values: tuple[str, ...], release: Callable[[], None]
    ) -> Future[Answer | RawAnswer]:
        """Give a request to a thread."""
        try:
            future = self._workers(route).submit(self._handled, route, call, values)
        except BaseException:
            release()
            raise
        future.add_done_callback(lambda _: release())
        return future

    def _workers(self, route: routes.Route) -> ThreadPoolExecutor:
        if route.statements:
            return self._state.statement_workers
        return self._state.change_workers if route.changes else self._state.workers

    def _address(self, request: HttpRequest) -> Address:
        path = request.scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0] or request.url.path
        found = parse_address(path, self._state.settings.deployment)
        return found or Address("/services/v2", path)

    def _options(self, address: Address) -> Response:
        try:
            routes.find("OPTIONS", address.path)
        except HttpError as error:
            if error.status != 405:
                raise
            return Response(status_code=204, headers=error.headers)
        return Response(status_code=204)

    async def _principal(self, request: HttpRequest, role: Role) -> Principal:
        """Return who makes the request. Raises HttpError (401, 429) and StoreError, except for routes that anyone may use.

        Such a route decides by itself: /metrics also accepts a token of its own, and needs no file of users.
        """
        try:
            return await self._sign_in.principal(request.headers, request.client)
        except (HttpError, StoreError):
            if role is Role.ANYONE:
                return ANONYMOUS
            raise

    async def _body(self, request: HttpRequest, route: routes.Route) -> Any:
        """Read and decode the body. Raises HttpError (400, 408, 413)."""
        if not route.changes:
            return None
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await _limited_body(request)
        except TimeoutError as error:
            raise HttpError(408, f"the body did not arrive within {BODY_SECONDS:g} seconds") from error
        except ClientDisconnect as error:
            raise HttpError(400, "the client has disconnected") from error
        request.state.body_read = True
        return decode_body(route, data)

    def _request(self, request: HttpRequest, address: Address, body: Any) -> Request:
        origin = _origin(request)
        return Request(
            request.method,
            f"{origin}{request.scope['path']}",
            f"{origin}{address.base}",
            dict(request.query_params),
            request.headers,
            body,
            "text/plain" in request.headers.get("accept", ""),
            _host(request),
            address.service,
        )

    def _handled(self, route: routes.Route, call: Call, values: tuple[str, ...]) -> Answer | RawAnswer:
        """Call the handler in a worker thread. Raises GgsError; a bug becomes GGS-00999."""
        try:
            if not route.changes or route.statements:
                return _with_said(routes.handle(route, call, values), call)
            changed = routes.changed_objects(route, values, call.body, self._state.home)
            undo_unfinished(self._state, changed, forced=route.method == "DELETE")
            call.changed = changed[0] if len(changed) == 1 else ""
            answer = routes.handle(route, call, values)
            self._state.audit.done(_attempt_of(call), answer.status)
        except GgsError as error:
            if route.changes and not route.statements:
                self._state.audit.failed(_attempt_of(call), error)
            raise
        except Exception as error:
            raise bug(error) from error
        finally:
            call.close()
        return _with_said(answer, call)

    async def _awaited(
        self,
        request: HttpRequest,
        future: Future[Answer | RawAnswer],
        route: routes.Route,
        call: Call,
        seconds: float,
    ) -> Answer | RawAnswer:
        """Return the answer if it is there within the seconds that are left of the deadline. Raises HttpError 503.

        A read and a statement end when their client closes the connection, a change is completed.
        """
        waiting = asyncio.wrap_future(future)
        ends = not route.changes or route.statements
        gone = await _done(waiting, request if ends else None, max(0.0, seconds))
        if waiting.done():
            return waiting.result()
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        if gone or not route.changes:
            call.limit.end()
        if gone:
            raise HttpError(400, "the client has disconnected")
        if not route.changes:
            raise HttpError(
                503, f"there was no answer within {self._deadline:g} seconds", hint="repeat the request later"
            )
        return self._followed(future, route, call)

    def _followed(self, future: Future[Answer | RawAnswer], route: routes.Route, call: Call) -> Answer:
        """Return the address at which the client asks for the result. It must ask, or a statement of a shell ends."""
        long = self._state.follow(call.principal, route.method, call.request.address, future, call.limit)
        if route.statements:
            long.renew()
        where = call.url(f"/requests/{long.name}")
        return Answer(LongRequest(name=long.name, status=long.status), status=202, headers={"Location": where})

    def _response(self, request: HttpRequest, call: Call, answer: Answer | RawAnswer) -> Response:
        headers = dict(answer.headers)
        if call.principal.session and COOKIE not in request.cookies and "authorization" in request.headers:
            secure = "" if self._state.settings.plaintext else "; Secure"
            cookie = f"{COOKIE}={call.principal.session}; Path=/; HttpOnly; SameSite=Strict{secure}"
            headers.setdefault("Set-Cookie", cookie)
        if isinstance(answer, RawAnswer):
            return Response(answer.body, answer.status, headers, answer.media_type)
        if answer.text is not None and call.request.plain:
            return Response(answer.text, answer.status, headers, "text/plain")
        now = self._state.clock.now()
        found = envelope(call.request.address, call.request.base, answer.messages, now, answer.response)
        return Response(_line(found), answer.status, headers, JSON)


def _attempt(method: str, path: str, principal: Principal, host: str) -> Attempt:
    """Return a request as the audit names it."""
    return Attempt(method, path.partition("/services")[2], principal.name, host)


def _attempt_of(call: Call) -> Attempt:
    return _attempt(call.request.method, call.request.address, call.principal, call.request.client)


def _nothing() -> None:
    """What the end of a read releases."""


async def _done(waiting: asyncio.Future[Any], request: HttpRequest | None, seconds: float) -> bool:
    """Wait for an answer; return whether the client of ``request`` closed the connection before it was there."""
    soon = min(seconds, UNWATCHED_SECONDS)
    await asyncio.wait({waiting}, timeout=soon)
    if waiting.done() or seconds <= soon:
        return False
    if request is None:
        await asyncio.wait({waiting}, timeout=seconds - soon)
        return False
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({waiting, gone}, timeout=seconds - soon, return_when=asyncio.FIRST_COMPLETED)
        return gone.done() and not waiting.done()
    finally:
        gone.cancel()


async def _disconnected(request: HttpRequest) -> None:
    """Wait until the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _with_said(answer: Answer | RawAnswer, call: Call) -> Answer | RawAnswer:
    """Return an answer with the messages of its call; the result of a long request is read without the call."""
    return answer if isinstance(answer, RawAnswer) else answer._replace(messages=(*call.said, *answer.messages))


def _line(found: StandardResponse) -> bytes:
    """Encode an answer as a line, so that the prompt of a terminal does not follow it on the same line."""
    return msgspec.json.encode(found) + b"\n"


def decode_body(route: routes.Route, data: bytes) -> Any:
    """Decode a body in the type of its route, regardless of its Content-Type. Raises HttpError 400."""
    if route.body is None:
        return None
    if not data.strip():
        if route.optional:
            return None
        raise HttpError(400, "this request requires a body", code="GGS-00903")
    deep = HttpError(400, f"the body is nested over more than {DEEPEST_BODY} levels", code="GGS-00903")
    try:
        found = msgspec.json.decode(data, type=route.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HttpError(400, f"the body is not valid: {reason_of(error)}", code="GGS-00903") from error
    except RecursionError:
        raise deep from None
    if _depth(data) > DEEPEST_BODY:
        raise deep
    return found


_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]')


def _depth(data: bytes) -> int:
    """Return over how many levels valid JSON is nested."""
    if data.count(b"[") + data.count(b"{") <= DEEPEST_BODY:
        return 0
    deepest = depth = 0
    for found in _STRING_OR_BRACKET.finditer(data):
        word = found[0]
        depth += word in b"[{"
        depth -= word in b"]}"
        deepest = max(deepest, depth)
    return deepest


async def _limited_body(request: HttpRequest) -> bytes:
    """Return the body. Raises HttpError 413 as soon as it is too large."""
    refusal = HttpError(413, f"the body is larger than {LONGEST_BODY} bytes", headers={"Connection": "close"})
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > LONGEST_BODY:
        raise refusal
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LONGEST_BODY:
            raise refusal
    return bytes(data)


def _host(request: HttpRequest) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client is not None else "local"


def _is_of_shells(address: Address) -> bool:
    """Whether only shells that are connected to this home use an address."""
    return address.path.startswith("/ggshell/")


def _left_unread(request: HttpRequest) -> bool:
    """Whether a request has a body that was not read."""
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    return has_body and not getattr(request.state, "body_read", False)


def _unlimited(request: HttpRequest) -> bool:
    """Whether the body of a request can be larger than the limit. That of a GET is not read and must not be received."""
    length = request.headers.get("content-length", "")
    return not length.isdigit() or int(length) > LONGEST_BODY


def _origin(request: HttpRequest) -> str:
    """Return the scheme and the host of a request. Raises HttpError 400 for a Host that cannot be in a URL."""
    try:
        return f"{request.url.scheme}://{request.url.netloc}"
    except ValueError as error:
        raise HttpError(400, "the header Host is not valid") from error


def _require_same_origin(request: HttpRequest) -> None:
    """Refuse a request that a page of another site sent with the browser's cookie or password. Raises HttpError 403."""
    origin = request.headers.get("origin", _origin(request))
    if origin.lower() != _origin(request).lower() or request.headers.get("sec-fetch-site", "") == "cross-site":
        raise HttpError(403, "a page of another site sent this request", hint="send it from a page of this service")
