"""Signing in: Basic credentials, session cookies, bearer tokens and client certificates give a principal with a role.

A password that was checked once is recognized by a keyed digest until the users change, because scrypt is slow by design.
``attempts`` slows down guessing.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
from collections.abc import Mapping
from typing import Final, NamedTuple

from ggshell.clock import Clock
from ggshell.errors import HttpError
from ggshell.home.users import LONGEST_PASSWORD, Role, User, Users
from ggshell.service.attempts import Attempts

COOKIE: Final = "ogg_session"
MOST_OWN_SESSIONS: Final = 100
"""How many sessions and bearer tokens a user has. One more ends the oldest of the same user, not that of another."""
_MOST_SESSIONS: Final = 10_000
_BASIC_FORM: Final = "they are user:password in Base64"
CHALLENGE: Final = {"WWW-Authenticate": 'Basic realm="ggshell", charset="UTF-8"'}


class Principal(NamedTuple):
    """Who makes a request. ``session``: the token of the session or bearer token, empty without one.

    ``identity``: that of the user, which a user of the same name who is added later does not have.
    """

    name: str
    role: Role
    session: str = ""
    identity: str = ""

    def is_user(self, name: str, identity: str) -> bool:
        """Whether this is the user with a name and an identity."""
        return (self.name, self.identity) == (name, identity)


ANONYMOUS: Final = Principal("", Role.ANYONE)


class _Session:
    """A signed-in user at one address; it ends when it is not used for the time limit."""

    __slots__ = ("client", "fixed_end", "name", "token", "used")

    def __init__(self, name: str, client: str, used: float, fixed_end: float | None) -> None:
        self.token = secrets.token_urlsafe(32)
        self.name = name
        self.client = client
        self.used = used
        self.fixed_end = fixed_end


class SignIn:
    """Checks credentials and keeps sessions, in memory only. Any thread can call it.

    ``session_seconds``: how long a session stays open without requests; it can be changed at any time.
    """

    def __init__(self, users: Users, clock: Clock, session_seconds: float) -> None:
        self._users = users
        self._clock = clock
        self.session_seconds = session_seconds
        self._lock = threading.Lock()
        self._key = secrets.token_bytes(32)
        self._version: object = None
        self._known: dict[str, User] = {}
        self._credentials: dict[str, str] = {}
        self._checked: set[bytes] = set()
        self._sessions: dict[str, _Session] = {}
        self._by_client: dict[tuple[str, str], str] = {}
        self._attempts = Attempts(clock)

    @property
    def has_users(self) -> bool:
        self._refresh()
        return bool(self._known)

    def quick(self, headers: Mapping[str, str], client: str, certificate: str) -> Principal | None:
        """Return the principal if that needs no password hash, None if ``slow`` must be called. Raises HttpError (401, 429)."""
        self._refresh()
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._of_session(value.strip(), "the token is not valid, or it has expired")
        if scheme.lower() == "basic":
            name, password = _basic(value)
            return self._unless_failed(name, client, self._digest(name, password))
        if scheme:
            raise HttpError(
                401,
                f"{scheme[:20]} is not a supported method to sign in",
                hint="use Basic or Bearer",
                headers=CHALLENGE,
            )
        token = _cookie(headers.get("cookie", ""))
        if token:
            return self._of_session(token, "the session has ended")
        if certificate:
            user = self._known.get(certificate)
            if user is None:
                raise HttpError(
                    401,
                    f"the certificate's name {certificate[:80]} is not a user",
                    hint="use the certificate of a user, or ADD USER name, ROLE role, CERTIFICATE with this name",
                    headers=CHALLENGE,
                )
            if not user.certificate:
                raise HttpError(
                    401,
                    f"user {user.name} does not sign in with a certificate",
                    hint="sign in with the password, or add a user with ADD USER, CERTIFICATE",
                    headers=CHALLENGE,
                )
            return Principal(user.name, user.role, "", user.identity)
        return ANONYMOUS

    def slow(self, headers: Mapping[str, str], client: str) -> Principal:
        """Check a password with scrypt. Raises HttpError: 401 after counting the failure, 429 if the user must wait by now.

        Call it in one thread only: otherwise attempts at the same time are checked before one of them is counted.
        """
        name, password = _basic(headers["authorization"].partition(" ")[2])
        digest = self._digest(name, password)
        found = self._unless_failed(name, client, digest)
        if found is not None:
            return found
        self._refresh()
        before = self._credentials.get(name)
        right = self._users.check(name, password) is not None
        self._refresh()
        with self._lock:  # the user may have changed meanwhile: then this may be the password of a deleted user
            same = self._credentials.get(name) == before
            if right and before is not None and same:
                self._attempts.succeeded(name, client)
                self._checked.add(digest)
                return self._signed_in(self._known[name], client)
            self._attempts.failed(name, client, digest if same and not right else None)
        raise _wrong_password()

    def delay(self, client: str) -> float:
        """Return how many seconds the next call of ``slow`` for an address must wait. Raises HttpError 429."""
        return self._attempts.delay(client)

    def _unless_failed(self, name: str, client: str, digest: bytes) -> Principal | None:
        """Return the principal if the password was checked already. Raises HttpError: 401 if it was wrong, 429."""
        if self._attempts.is_wrong(digest):
            raise _wrong_password()
        self._attempts.require_patience(name, client)
        return self._basic_principal(name, client, digest)

    def token(self, principal: Principal) -> tuple[str, int]:
        """Issue a bearer token for a user; return it with its seconds of validity.

        Raises HttpError 403 for a user who signed in with such a token: it would never expire; 401 if the session has ended.
        """
        with self._lock:
            now, given = self._clock.steady(), self._given(principal)
            if given is not None and given.fixed_end is not None:
                raise HttpError(403, "a bearer token does not issue another token", hint="sign in with the password")
            session = _Session(principal.name, "", now, now + self.session_seconds)
            self._keep(session)
        return session.token, int(self.session_seconds)

    def separate(self, principal: Principal) -> str:
        """Start a session of its own for a shell of the user; return its token.

        It ends without requests, as every session does, and not later than the bearer token that it was started with.
        Raises HttpError 401 if the principal's session has ended.
        """
        with self._lock:
            given = self._given(principal)
            session = _Session(principal.name, "", self._clock.steady(), given.fixed_end if given is not None else None)
            self._keep(session)
        return session.token

    def is_live(self, token: str) -> bool:
        """Whether a token is still valid."""
        self._refresh()
        with self._lock:
            session = self._sessions.get(token)
            return session is not None and session.name in self._known and self._clock.steady() < self._end(session)

    def sign_out(self, principal: Principal) -> None:
        """End the principal's session."""
        with self._lock:
            session = self._sessions.pop(principal.session, None)
            if session is not None:
                self._by_client.pop((session.name, session.client), None)

    def _refresh(self) -> None:
        """Read the users again if they changed.

        The sessions end of users whose password or role changed, and of deleted users, even if they were added again.
        """
        version = self._users.version()
        if version == self._version:
            return
        users, credentials = {user.name: user for user in self._users.all()}, self._users.credentials()
        with self._lock:
            same = {name for name, text in credentials.items() if self._credentials.get(name) == text}
            self._known, self._credentials, self._version = users, credentials, version
            self._checked.clear()
            self._attempts.forget_passwords()
            self._sessions = {token: each for token, each in self._sessions.items() if each.name in same}
            self._by_client = {key: token for key, token in self._by_client.items() if key[0] in same}

    def _of_session(self, token: str, refusal: str) -> Principal:
        with self._lock:
            session, now = self._sessions.get(token), self._clock.steady()
            end = 0.0 if session is None else self._end(session)
            user = self._known.get(session.name) if session is not None else None
            if session is None or user is None or now >= end:
                self._sessions.pop(token, None)
                raise HttpError(401, refusal, hint="sign in again", headers=CHALLENGE)
            session.used = now
        return Principal(user.name, user.role, token, user.identity)

    def _end(self, session: _Session) -> float:
        """Return the monotonic time at which a session ends unless it is used."""
        return session.fixed_end or session.used + self.session_seconds

    def _given(self, principal: Principal) -> _Session | None:
        """Return the session of a principal, None for one without.

        Raises HttpError 401 if the session has ended, for example because the user was deleted during the request.
        """
        given = self._sessions.get(principal.session)
        if principal.session and given is None:
            raise HttpError(401, "the session has ended", hint="sign in again", headers=CHALLENGE)
        return given

    def _basic_principal(self, name: str, client: str, digest: bytes) -> Principal | None:
        """Return the principal of a password that was checked, None for another password."""
        with self._lock:
            user = self._known.get(name) if digest in self._checked else None
            return self._signed_in(user, client) if user is not None else None

    def _signed_in(self, user: User, client: str) -> Principal:
        """Return the principal of a user with the session at an address. The caller holds the lock."""
        name, now = user.name, self._clock.steady()
        session = self._sessions.get(self._by_client.get((name, client), ""))
        if session is None or now >= session.used + self.session_seconds:
            session = _Session(name, client, now, None)
            self._by_client[(name, client)] = session.token
            self._keep(session)
        session.used = now
        return Principal(name, user.role, session.token, user.identity)

    def _keep(self, session: _Session) -> None:
        own = [each for each in self._sessions.values() if each.name == session.name]
        if len(own) >= MOST_OWN_SESSIONS or len(self._sessions) >= _MOST_SESSIONS:
            oldest = min(own or self._sessions.values(), key=lambda each: each.used)
            del self._sessions[oldest.token]
        self._sessions[session.token] = session

    def _digest(self, name: str, password: str) -> bytes:
        return hmac.digest(self._key, f"{name}\0{password}".encode(), "sha256")


def _wrong_password() -> HttpError:
    return HttpError(
        401,
        "the user name or the password is not valid",
        code="GGS-00906",
        hint="check both, or ask a user with the role SECURITY for a new password",
        headers=CHALLENGE,
    )


def _basic(value: str) -> tuple[str, str]:
    """Return user name and password of Basic credentials. Raises HttpError."""
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise HttpError(401, "the Basic credentials are not valid", hint=_BASIC_FORM, headers=CHALLENGE) from error
    if not colon or len(name) > LONGEST_PASSWORD or len(password) > LONGEST_PASSWORD:
        raise HttpError(401, "the Basic credentials are not valid", hint=_BASIC_FORM, headers=CHALLENGE)
    return name, password


def user_name(headers: Mapping[str, str]) -> str:
    """Return the user name of Basic credentials. Raises HttpError."""
    return _basic(headers["authorization"].partition(" ")[2])[0]


def _cookie(header: str) -> str:
    """Return the session cookie of a Cookie header, or an empty text."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def required(principal: Principal, role: Role) -> None:
    """Raise HttpError (401 without credentials, 403 for a role that is too low)."""
    if principal.role >= role:
        return
    if principal.role is Role.ANYONE:
        raise HttpError(
            401, "sign in to use this resource", hint="send a user name and a password, or a token", headers=CHALLENGE
        )
    if principal.role is Role.DISTRIBUTION:
        raise HttpError(
            403,
            f"user {principal.name} has the role Distribution, which only sends trails",
            hint="sign in as another user",
        )
    raise HttpError(
        403,
        f"user {principal.name} has the role {principal.role.title}; this requires {role.title}",
        hint=f"ask a user with the role SECURITY for ALTER USER {principal.name}, ROLE {role.name}",
    )


def require_sender(principal: Principal) -> None:
    """Raise HttpError 403 for a user who may not send trails to this home."""
    if not principal.role.sends_trails:
        raise HttpError(
            403,
            f"user {principal.name} has the role {principal.role.title}, which does not send trails",
            hint=f"ALTER USER {principal.name}, ROLE {Role.DISTRIBUTION.name}",
        )
