"""Authorizations: the users of the service by role, and the user who makes the request."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any

from ggshell.cli.commands.users import NO_INFO
from ggshell.errors import ConflictError, HttpError, NotFoundError, UsageError
from ggshell.home.users import Role, User, parse_role
from ggshell.service.answers import DONE, Answer, Said, collection, item, links_of
from ggshell.service.bodies import Body, described
from ggshell.service.call import Call
from ggshell.service.responses import Collection, Items, Link, Resource, Response
from ggshell.service.routes import resource
from ggshell.service.sign_in import required
from ggshell.service.statement_words import quoted, word

_BASE = "/authorizations"
_EVERY = "all"
_BEARER = "Bearer"


class AuthorizationBody(Body):
    """A user: the password (``credential``), and what the user is for. ``username`` and ``role`` are those of the address."""

    credential: str | None = None
    info: str | None = None
    type: str | None = None
    user: str | None = None
    username: str | None = None
    role: str | None = None


class AuthorizationsBody(Body):
    """Several users of one role."""

    users: list[AuthorizationBody]


class UserFields(Response):
    """A user, without the password."""

    username: str
    role: str
    type: Annotated[str, described("How the user signs in.", "Basic", "Certificate")]
    info: str


class ShownUser(UserFields, tag_field="$schema", tag="ogg:user"):
    """A user."""


class UserItem(UserFields, tag_field="$schema", tag="ogg:collectionItem"):
    """A user in a list."""

    links: list[Link]
    name: str


class UserInfo(Resource, tag="ogg:userInfo"):
    """The description of a user."""

    info: str


class CurrentUser(Resource, tag="ogg:currentUser"):
    """The user who makes the request, with every role that the user's role includes."""

    user: str
    role: str
    roles: list[str]


class AccessToken(Resource, tag="ogg:accessToken"):
    """A bearer token. ``expires_in``: seconds."""

    access_token: str
    token_type: str
    expires_in: int


@resource("GET", _BASE, role=Role.SECURITY, summary="List the roles", returns=Items)
def list_roles(call: Call) -> Answer:
    roles = [role.title for role in sorted(Role, reverse=True) if role is not Role.ANYONE]
    return Answer(collection(item(call.url(_BASE), role) for role in roles))


@resource(
    "GET",
    f"{_BASE}/{{role}}",
    role=Role.SECURITY,
    summary="List the users of a role; all: of every role",
    returns=Collection[UserItem],
)
def list_users(call: Call, role: str) -> Answer:
    users = [user for user in call.state.users.all() if role.lower() == _EVERY or user.role is parse_role(role)]
    base = call.url(f"{_BASE}/{role}")
    return Answer(
        collection(UserItem(links=links_of(base, each.name), name=each.name, **_fields(each)) for each in users)
    )


@resource("GET", f"{_BASE}/{{role}}/{{user}}", role=Role.USER, summary="Show a user", returns=ShownUser)
def get_user(call: Call, role: str, user: str) -> Answer:
    if user != call.principal.name:
        required(call.principal, Role.SECURITY)
    return Answer(ShownUser(**_fields(_find(call, role, user))))


@resource(
    "GET",
    f"{_BASE}/{{role}}/{{user}}/info",
    role=Role.SECURITY,
    summary="Show the description of a user",
    returns=UserInfo,
)
def get_user_info(call: Call, role: str, user: str) -> Answer:
    return Answer(UserInfo(info=_find(call, role, user).info))


@resource(
    "POST", f"{_BASE}/{{role}}/{{user}}", role=Role.SECURITY, summary="Add a user", body=AuthorizationBody, status=201
)
def create_user(call: Call, role: str, user: str) -> Answer:
    _require_same(call.body, user, parse_role(role))
    _require_new(call, role, user)
    call.run(_addition(role, user, call.body))
    return Answer(status=201)


@resource(
    "POST", f"{_BASE}/{{role}}", role=Role.SECURITY, summary="Add several users", body=AuthorizationsBody, status=201
)
def create_users(call: Call, role: str) -> Answer:
    """Add several users; if one of them cannot be added, none is."""
    body: AuthorizationsBody = call.body
    with ExitStack() as undo:
        for each in body.users:
            if not each.user:
                raise UsageError("user is required: the name of each user")
            _require_same(each, each.user, parse_role(role))
            _require_new(call, role, each.user)
            call.run(_addition(role, each.user, each))
            undo.callback(call.run, f"DELETE USER {word(each.user)}")
        undo.pop_all()
    return Answer(status=201)


def _addition(role: str, user: str, body: AuthorizationBody) -> str:
    """Return the statement that adds a user."""
    how = f"PASSWORD {quoted(body.credential)}" if body.credential is not None else "CERTIFICATE"
    info = f", INFO {_line(body.info)}" if body.info else ""
    return f"ADD USER {word(user)}, ROLE {parse_role(role).name}, {how}{info}"


@resource(
    "PATCH",
    f"{_BASE}/{{role}}/{{user}}",
    role=Role.USER,
    summary="Change the password or the description of a user",
    body=AuthorizationBody,
)
def update_user(call: Call, role: str, user: str) -> Answer:
    """Change a user. Users may change their own password and description. Nothing here changes a role."""
    body: AuthorizationBody = call.body
    if user != call.principal.name:
        required(call.principal, Role.SECURITY)
    found = _find(call, role, user)
    _require_same(body, found.name, found.role)
    options = f", PASSWORD {quoted(body.credential)}" if body.credential is not None else ""
    if body.info is not None and body.info != found.info:
        options += f", INFO {_line(body.info) or NO_INFO}"
    if options:
        call.run(f"ALTER USER {word(found.name)}{options}")
    return Answer()


@resource("DELETE", f"{_BASE}/{{role}}/{{user}}", role=Role.SECURITY, summary="Delete a user")
def delete_user(call: Call, role: str, user: str) -> Answer:
    """Delete a user. A role in the address must be the user's.

    With ``all``, a user who does not exist is accepted: in the vendor's API, clients first remove a user from a role, then
    from the deployment.
    """
    if role.lower() == _EVERY and call.state.users.find(user) is None:
        return Answer(messages=(Said(DONE, f"User {user} does not exist."),))
    call.run(f"DELETE USER {word(_find(call, role, user).name)}")
    return Answer()


@resource("GET", "/currentuser", role=Role.USER, summary="Show the user who makes the request", returns=CurrentUser)
def get_current_user(call: Call) -> Answer:
    return _current_user(call)


def _current_user(call: Call) -> Answer:
    principal = call.principal
    roles = [role.title for role in Role if Role.ANYONE < role <= principal.role]
    return Answer(CurrentUser(user=principal.name, role=principal.role.title, roles=roles))


@resource("DELETE", "/currentuser", role=Role.USER, summary="Sign out: end the session")
def sign_out(call: Call) -> Answer:
    call.state.sign_in.sign_out(call.principal)
    call.state.shells.close(call.principal.session)
    return Answer(messages=(Said("GGS-00915", f"User {call.principal.name} signed out."),))


@resource(
    "POST",
    "/currentuser/reauthorize",
    role=Role.USER,
    summary="Sign in again within a session",
    body=dict[str, Any],
    optional=True,
    returns=CurrentUser,
)
@resource(
    "GET", "/currentuser/reauthorize", role=Role.USER, summary="Sign in again within a session", returns=CurrentUser
)
def reauthorize(call: Call) -> Answer:
    return _current_user(call)


@resource(
    "POST",
    "/authorization",
    role=Role.USER,
    summary="Issue a bearer token for the user",
    body=dict[str, Any],
    optional=True,
    returns=AccessToken,
)
@resource("GET", "/authorization", role=Role.USER, summary="Issue a bearer token for the user", returns=AccessToken)
def issue_token(call: Call) -> Answer:
    """Issue a token. A GET, which some clients send, requires Basic credentials: a link cannot send those."""
    request = call.request
    if request.method == "HEAD":
        raise HttpError(405, "HEAD does not issue a token", hint="use POST", headers={"Allow": "POST"})
    if request.method == "GET" and not request.headers.get("authorization", "").lower().startswith("basic "):
        raise HttpError(403, "GET issues a token for Basic credentials only", hint="use POST")
    token, seconds = call.state.sign_in.token(call.principal)
    found = AccessToken(access_token=token, token_type=_BEARER, expires_in=seconds)
    return Answer(found, headers={"Cache-Control": "no-store"})


def _find(call: Call, role: str, name: str) -> User:
    """Return a user who has the role. Raises NotFoundError, UsageError for a word that is not a role."""
    user, wanted = call.state.users.find(name), None if role.lower() == _EVERY else parse_role(role)
    if user is None:
        raise NotFoundError(f"user {name} does not exist", hint="list the users with INFO USERS")
    if wanted is not None and user.role is not wanted:
        raise NotFoundError(f"user {name} does not have the role {wanted.title}", hint=_remedy(user))
    return user


def _require_same(body: AuthorizationBody, name: str, role: Role) -> None:
    """Raise UsageError for a body that names another user or role than the address: it would change nothing."""
    for given in (body.user, body.username):
        if given is not None and given != name:
            raise UsageError(f"the body names user {given[:80]!a}, the address names {name}")
    if body.role is not None and parse_role(body.role) is not role:
        raise UsageError(f"the body names the role {body.role[:80]}, the user's role is {role.title}")


def _require_new(call: Call, role: str, name: str) -> None:
    """Raise ConflictError if a user exists; the hint for another role differs, because PATCH does not change it."""
    user = call.state.users.find(name)
    if user is not None:
        hint = "use PATCH to change it" if user.role is parse_role(role) else _remedy(user)
        raise ConflictError(f"user {name} already exists with the role {user.role.title}", hint=hint)


def _remedy(user: User) -> str:
    """Return how to change a user's role: a request never changes it as a side effect."""
    return f"ALTER USER {user.name}, ROLE … changes the role; a client deletes the user and adds the user again"


def _fields(user: User) -> dict[str, str]:
    how = "Certificate" if user.certificate else "Basic"
    return {"username": user.name, "role": user.role.title, "type": how, "info": user.info}


def _line(text: str) -> str:
    """Return a description, which goes to the end of the statement. Raises UsageError for more than one line."""
    if not text.isprintable():
        raise UsageError("info must be one line of printable characters")
    return text
