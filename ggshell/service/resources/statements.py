"""Statements of connected shells: a session of its own, and its statements one after the other."""

from __future__ import annotations

from ggshell.cli.config import FORMATS
from ggshell.cli.execute import execute, parse
from ggshell.cli.options import ENGINES
from ggshell.cli.outcome import Outcome
from ggshell.cli.session import Session
from ggshell.errors import GgsError, NotFoundError, StateError, UsageError
from ggshell.home.users import Role
from ggshell.language.redaction import redacted
from ggshell.service.answers import Answer, RawAnswer
from ggshell.service.audit import Attempt
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.outcomes import Question, StatementOutcome, outcome_fields
from ggshell.service.permissions import require_permission
from ggshell.service.responses import LongRequest, Resource
from ggshell.service.routes import resource
from ggshell.service.shells import ShellSettings
from ggshell.service.sign_in import COOKIE

_BASE = "/ggshell/statements"


class ShellBody(Body):
    """What a shell chooses for its session."""

    engine: str = ""
    auto_manager: bool = False


class StatementBody(Body):
    """A statement. ``answers``: to the questions that it asks, in order; None if the client cannot prompt.

    ``format``: also return the result as a text in this format. ``interactive``: the statement was typed at a terminal.
    """

    statement: str
    format: str = ""
    answers: list[str] | None = None
    interactive: bool = False


class ShellSession(Resource, tag="ggshell:session"):
    """The session of a shell."""

    deployment: str
    user: str
    role: str


class _Asker:
    """Answers the questions of a statement with the answers of the request; the first one that is left over is returned."""

    def __init__(self, answers: list[str]) -> None:
        self._answers = answers
        self.open: tuple[str, bool] | None = None

    def __call__(self, question: str, hidden: bool) -> str:
        if self._answers:
            return self._answers.pop(0)
        self.open = (question, hidden)
        raise StateError(f"an answer is required: {question}")


@resource(
    "POST",
    "/ggshell/sessions",
    role=Role.USER,
    summary="Start a session for a shell",
    body=ShellBody,
    optional=True,
    status=201,
    statements=True,
    returns=ShellSession,
)
def start_session(call: Call) -> Answer:
    """Start a session that only this shell uses; the answer sets its cookie."""
    body: ShellBody = call.body or ShellBody()
    if body.engine and body.engine not in ENGINES:
        raise UsageError(f"{body.engine} is not a valid engine", hint=f"use {', '.join(ENGINES)}")
    token = call.state.sign_in.separate(call.principal)
    call.state.shells.open(token, ShellSettings(body.engine, body.auto_manager))
    secure = "" if call.state.settings.plaintext else "; Secure"
    found = ShellSession(
        deployment=call.state.settings.deployment, user=call.principal.name, role=call.principal.role.title
    )
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return Answer(found, status=201, headers={"Set-Cookie": cookie, "Cache-Control": "no-store"})


@resource(
    "POST",
    _BASE,
    role=Role.USER,
    summary="Carry out a statement",
    body=StatementBody,
    statements=True,
    returns=StatementOutcome,
)
def run_statement(call: Call) -> Answer:
    """Carry out a statement in the session of the request. A statement that fails is an answer too, with its errors."""
    body: StatementBody = call.body
    if body.format and body.format not in FORMATS:
        raise UsageError(f"{body.format} is not a valid format", hint=f"use {', '.join(FORMATS)}")
    with call.state.shells.use(call.principal.session) as session:
        if session.limit is not None:
            call.adopt(session.limit)
        session.actor = f"{call.principal.name}@{call.request.client}"
        asker = None if body.answers is None else _Asker(list(body.answers))
        session.ask, session.interactive = asker, body.interactive and asker is not None
        fields = outcome_fields(_outcome(call, session, body.statement), body.format)
        fields.login = str(session.login or "")
    if asker is not None and asker.open is not None:
        question, hidden = asker.open
        fields.question = Question(text=question, hidden=hidden)
    return Answer(fields)


@resource(
    "GET",
    f"{_BASE}/{{request}}",
    role=Role.USER,
    summary="Show the outcome of a statement that took longer than its request",
    returns=StatementOutcome,
    continues=True,
)
def get_statement(call: Call, request: str) -> Answer | RawAnswer:
    """Return what a statement returned, or 202 while it is being carried out."""
    found = call.state.long_requests.get(request)
    if found is None or not call.principal.is_user(found.user, found.identity) or not found.path.endswith(_BASE):
        raise NotFoundError(f"statement {request} does not exist")
    if found.future.done():
        return found.future.result()
    found.renew()
    return Answer(LongRequest(name=found.name, status=found.status), status=202)


def _outcome(call: Call, session: Session, text: str) -> Outcome:
    """Carry out a statement if the user's role permits it. Raises HttpError 403, UsageError."""
    try:
        parsed = parse(text)
    except GgsError:
        return execute(session, text)  # the outcome has the syntax error
    try:
        require_permission(call.principal, parsed, call.bounds)
    except GgsError as error:
        call.state.audit.refused(Attempt("statement", redacted(text), call.principal.name, call.request.client), error)
        raise
    return execute(session, text, parsed)
