"""Executes a DDL statement in a target: with the settings and the role of its session in the source, and other names.

The settings end with the statement, so the session that applies rows is unchanged afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.apply_wire import ApplyPipeline
from ggshell.connectors.postgres.ddl_names import renamed, search_path
from ggshell.pipeline.apply.target import Noted, Refusal, TargetNames
from ggshell.record.ddl import DdlStatement
from ggshell.types import postgres_literal

if TYPE_CHECKING:
    import psycopg

DATABASE: Final = "postgres"
NO_TEXT: Final = "0A000"
"""The SQLSTATE of a refusal without asking the server: the statement is not supported."""
_CURRENT = "SELECT name, current_setting(name, true) FROM unnest(%s::text[]) AS wanted (name)"
_ROLE = "SELECT rolname = current_user, pg_has_role(oid, %s) FROM pg_roles WHERE rolname = %s"


class DdlExecution:
    """Executes statements over the connection of a target; everything sent must be answered before."""

    def __init__(self, connection: psycopg.Connection[Any], wire: ApplyPipeline, *, marked: bool) -> None:
        """``marked``: the session has a replication origin, so an Extract of the target can tell its statements apart."""
        self._connection = connection
        self._wire = wire
        self._marked = marked
        self._reported: set[str] = set()

    def run(self, statement: DdlStatement, names: TargetNames, noted: Noted, *, local: bool) -> Refusal | None:
        """Execute a statement. ``local``: in the open transaction; otherwise outside of any.

        After a refusal in a transaction, the settings are those of the statement until it is rolled back.
        """
        refusal = _unusable(statement)
        if refusal is not None:
            return refusal
        refusal = self._wire.forget()
        if refusal is not None:
            return refusal
        before, wanted = self._settings(statement, names, noted)
        refusal = self._set(wanted, local=local)
        refusal = refusal or self._wire.run(renamed(statement, names))
        if refusal is None or not local:
            again = self._set(dict(reversed(before.items())), local=local)
            return refusal or again
        return refusal

    def _settings(
        self, statement: DdlStatement, names: TargetNames, noted: Noted
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the settings that must change: their values now, and those for the statement; the role is the last."""
        wanted = {
            name: search_path(value, statement.role, names) if name == "search_path" else value
            for name, value in statement.settings
        }
        wanted["check_function_bodies"] = "off"
        if self._marked:
            wanted[session.OWN_DDL] = session.REPLICATED_DDL
        if self._becomes(statement.role, noted):
            wanted["role"] = statement.role
        self._wire.leave()
        now = dict(session.execute(self._connection, _CURRENT, [list(wanted)]))
        changed = {name: value for name, value in wanted.items() if now[name] is not None and now[name] != value}
        return {name: now[name] for name in changed}, changed

    def _becomes(self, role: str, noted: Noted) -> bool:
        """Whether to execute a statement as another role; if that is not possible, report it once for each role."""
        if not role:
            return False
        self._wire.leave()
        means = "SET" if self._connection.info.server_version >= 160000 else "MEMBER"
        found = session.execute(self._connection, _ROLE, [means, role])
        if found and found[0][1]:
            return not found[0][0]
        if role not in self._reported:
            self._reported.add(role)
            reason = "the Replicat's user is not a member of it" if found else "it does not exist"
            noted(
                "GGS-00578",
                f"DDL statements of role {role} are executed as the Replicat's user: in the target, {reason}.",
            )
        return False

    def _set(self, values: dict[str, str], *, local: bool) -> Refusal | None:
        if not values:
            return None
        calls = (
            f"set_config({postgres_literal(name)}, {postgres_literal(value)}, {'true' if local else 'false'})"
            for name, value in values.items()
        )
        return self._wire.run(f"SELECT {', '.join(f'pg_catalog.{call}' for call in calls)}")


def _unusable(statement: DdlStatement) -> Refusal | None:
    """Return the refusal of a statement that cannot be executed at all."""
    if statement.database not in ("", DATABASE):
        return Refusal(f"it is a statement of {statement.database}, not of PostgreSQL (SQLSTATE {NO_TEXT})", NO_TEXT)
    if not statement.text:
        return Refusal(f"the source could not determine its text (SQLSTATE {NO_TEXT})", NO_TEXT)
    return None
