"""Requests that take longer than their deadline: their progress and their results."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from ggshell.errors import GgsError, NotFoundError, StateError
from ggshell.home.users import Role
from ggshell.language.redaction import masked
from ggshell.service.answers import JSON, Answer, RawAnswer, Said, collection, envelope, links_of, utc_text
from ggshell.service.call import Call
from ggshell.service.refusals import headers_of, status_of
from ggshell.service.responses import Collection, Item, Resource, Response, StandardResponse
from ggshell.service.routes import resource
from ggshell.service.state import LongRequest

_BASE: Final = "/requests"


class RequestItem(Item, tag="ogg:collectionItem"):
    """A request in a list."""

    progress: str


class ShownRequest(Resource, tag="ogg:request", kw_only=True):
    """A request that continues after its answer. ``request_status``: the status of HTTP with which it ended."""

    completed: bool
    progress: str
    start_time: str | None
    method: str
    path: str
    request_status: int | None = None


class ResultStatus(Response):
    """A status of HTTP."""

    code: int
    reason: str


class ResultHeader(Response):
    """A header of HTTP."""

    name: str
    value: str


class RequestResult(Resource, tag="ogg:requestResult"):
    """The answer that the request would have received."""

    status: ResultStatus
    headers: list[ResultHeader]
    body: StandardResponse


@resource(
    "GET",
    _BASE,
    role=Role.ADMINISTRATOR,
    summary="List the requests that continue in the background",
    returns=Collection[RequestItem],
)
def list_requests(call: Call) -> Answer:
    found = list(call.state.long_requests.values())
    base = call.url(_BASE)
    return Answer(
        collection(
            RequestItem(links=links_of(base, each.name), name=each.name, progress=_progress(each)) for each in found
        )
    )


@resource("GET", f"{_BASE}/{{request}}", role=Role.USER, summary="Show the progress of a request", returns=ShownRequest)
def get_request(call: Call, name: str) -> Answer:
    found = _find(call, name)
    shown = ShownRequest(
        completed=found.future.done(),
        progress=_progress(found),
        start_time=utc_text(found.started),
        method=found.method,
        path=found.path,
        request_status=_outcome(found)[0] if found.future.done() else None,
    )
    return Answer(shown)


@resource(
    "GET", f"{_BASE}/{{request}}/result", role=Role.USER, summary="Show the result of a request", returns=RequestResult
)
def get_result(call: Call, name: str) -> Answer:
    found = _find(call, name)
    if not found.future.done():
        raise StateError(f"request {name} has not ended yet", hint=f"ask for requests/{name} until it is completed")
    status, headers, said, response = _outcome(found)
    body = envelope(found.path, call.request.base, said, call.state.clock.now(), response)
    result = RequestResult(
        status=ResultStatus(code=status, reason=HTTPStatus(status).phrase),
        headers=[ResultHeader(name=key, value=value) for key, value in {"Content-Type": JSON, **headers}.items()],
        body=body,
    )
    return Answer(result)


def _find(call: Call, name: str) -> LongRequest:
    """Return a request of the user; administrators see those of all. Raises NotFoundError."""
    found = call.state.long_requests.get(name)
    if found is None or (
        call.principal.role < Role.ADMINISTRATOR and not call.principal.is_user(found.user, found.identity)
    ):
        raise NotFoundError(f"request {name} does not exist")
    return found


def _progress(found: LongRequest) -> str:
    return {"inProgress": "processing", "completed": "succeeded"}.get(found.status, found.status)


def _outcome(found: LongRequest) -> tuple[int, dict[str, str], tuple[Said, ...], object]:
    """Return the status, headers, messages and response of a request that has ended."""
    error = found.future.exception()
    if error is not None:
        refusal = error if isinstance(error, GgsError) else GgsError(masked(str(error)))
        return status_of(refusal), headers_of(refusal), (Said(refusal.code, masked(str(refusal)), "ERROR"),), None
    answer = found.future.result()
    if isinstance(answer, RawAnswer):
        return answer.status, dict(answer.headers), (), answer.body.decode(errors="replace")
    return answer.status, dict(answer.headers), answer.messages, answer.response
