"""Statements of a connected shell: sent to the service of the other home, whose answer becomes an ordinary outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.cli.local_statements import AT_THE_HOME, at_the_home
from ggshell.cli.outcome import Outcome
from ggshell.cli.results import Note, Result, Row, Text
from ggshell.cli.session import Session
from ggshell.errors import GgsError, StateError, StatementError

if TYPE_CHECKING:
    from ggshell.client.remote import Remote
    from ggshell.language.grammar import Parsed


class RemoteResult(NamedTuple):
    """A result of another home: its columns, rows and text in GGSCI's layout."""

    columns: tuple[str, ...]
    rows: list[Row]
    layout: str
    errors_first: bool = False


class RemoteTables(NamedTuple):
    """A result of another home whose layout has another form for narrow terminals."""

    columns: tuple[str, ...]
    rows: list[Row]
    layout: str
    narrow_layout: str


def carried_out(session: Session, parsed: Parsed, text: str, shown: str) -> Outcome:
    """Carry out a statement in the other home.

    Raises StateError without a connection, UsageError for a statement that needs a shell there, and the connection's errors.
    """
    if parsed.key in AT_THE_HOME:
        raise at_the_home(parsed.key)
    remote = connected(session)
    outcome = outcome_of(remote.run(text, session.ask, interactive=session.interactive), shown)
    lost = remote.take_renewal()
    if lost is None:
        return outcome
    said = f"The session at {remote.url} had ended: signed in again{f', without the database login {lost}' if lost else ''}."
    return outcome._replace(notes=(Note("GGS-00926", said), *outcome.notes))


def connected(session: Session) -> Remote:
    """Return the connection of a shell. Raises StateError if it is not connected."""
    if session.remote is None:
        raise StateError("not connected to a service.", code="GGS-00927", hint=_remedy(session))
    return session.remote


def outcome_of(fields: Mapping[str, Any], shown: str) -> Outcome:
    """Return the outcome that a service describes. ``shown``: the statement without secrets."""
    found = fields.get("result")
    errors = tuple(_error(each) for each in fields.get("errors", ()))
    notes = tuple(Note(str(each["code"]), str(each["message"])) for each in fields.get("notes", ()))
    return Outcome(shown, None if found is None else _result(found), errors, notes)


def _result(found: Mapping[str, Any]) -> Result:
    if "page" in found:
        return Text(str(found.get("name", "")), str(found["page"]))
    rows = [tuple(row) for row in found["rows"]]
    if "narrowLayout" in found:
        return RemoteTables(tuple(found["columns"]), rows, str(found["layout"]), str(found["narrowLayout"]))
    return RemoteResult(tuple(found["columns"]), rows, str(found["layout"]), bool(found.get("errorsFirst")))


def _error(found: Mapping[str, Any]) -> GgsError:
    """Return an error; one with a column is an error of a statement or a parameter, which marks the place."""
    message, code = str(found["message"]), str(found["code"])
    where, hint = str(found.get("where", "")), str(found.get("hint", ""))
    if "column" not in found:
        return GgsError(message, code=code, where=where, hint=hint)
    error = StatementError(message, code=code, where=where, hint=hint, source=str(found.get("source", "")))
    error.line, error.column = int(found.get("line", 1)), int(found["column"])
    return error


def _remedy(session: Session) -> str:
    hint = "CONNECT url AS user"
    return hint if session.options.admin_client else f"{hint}, or DISCONNECT to work on the home {session.home.root}"
