"""ADD, ALTER, DELETE USER and INFO USERS: who may sign in to the service, and with which role."""

from __future__ import annotations

from typing import Final

from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError
from ggshell.home.users import User, Users, parse_role

NO_INFO: Final = '""'
"""The text that removes a description."""


@command("ADD USER")
def add_user(
    session: Session,
    *,
    user_name: str,
    role: str = "USER",
    password: str = "",
    certificate: bool = False,
    info: str = "",
) -> Message:
    """Add a user; prompts for a missing password, unless the user signs in with a certificate."""
    session.home.ensure()
    given = (
        None if certificate else password or session.new_secret(user_name, "specify it with PASSWORD, or CERTIFICATE")
    )
    user = Users(session.home).add(user_name, parse_role(role), given, info)
    return Message((f"User {user.name} added with role {user.role.name}.",), apart=True)


@command("ALTER USER")
def alter_user(
    session: Session, *, user_name: str, role: str = "", password: str = "", info: str | None = None
) -> Message:
    """Change the role, the password or the description of a user; the description ``""`` removes it."""
    if info == NO_INFO:
        info = ""
    changed = Users(session.home).alter(
        user_name, role=parse_role(role) if role else None, password=password or None, info=info
    )
    return Message((f"User {changed.name} altered.",), apart=True)


@command("DELETE USER")
def delete_user(session: Session, *, user_name: str) -> Message:
    """Delete a user; the user's sessions, tokens and scheduled tasks end, also if the user is added again."""
    Users(session.home).delete(user_name)
    return Message((f"User {user_name} deleted.",), apart=True)


@command("INFO USER")
@command("INFO USERS")
def info_users(session: Session, *, user_name: str = "") -> Listing:
    """List the users with their roles."""
    users = Users(session.home)
    found = [users.find(user_name)] if user_name else users.all()
    listed = [user for user in found if user is not None]
    if user_name and not listed:
        raise NotFoundError(f"user {user_name} does not exist", hint="list the users with INFO USERS")
    return Listing(("user", "role", "signs_in_with", "info"), [_row(user) for user in listed], _layout(listed))


def _row(user: User) -> tuple[object, ...]:
    return user.name, user.role.name, "certificate" if user.certificate else "password", user.info


def _layout(users: list[User]) -> str:
    if not users:
        return "\nNo users. ADD USER adds the first one.\n"
    lines = [f"{'User':<24}{'Role':<16}{'Signs in with':<16}Info".rstrip()]
    lines += [f"{user.name:<24}{user.role.name:<16}{_row(user)[2]!s:<16}{user.info}".rstrip() for user in users]
    return "\n" + "\n".join(lines) + "\n"
