"""The DDL statements of a source that an Extract captures, and reports of those that it cannot capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.connectors.ddl_choice import UNDETERMINED, described
from ggshell.connectors.postgres import ddl_capture_sql
from ggshell.connectors.postgres.ddl_messages import DdlMessages, TableReport
from ggshell.home.events import ReportEvent, Severity
from ggshell.record.ddl import DdlStatement


class DdlWatch:
    """Reads the messages of DDL statements, and chooses the statements that the parameter DDL includes."""

    def __init__(self, choose: Callable[[DdlStatement], DdlStatement | None], report_event: ReportEvent) -> None:
        """``choose``: returns a statement as it is captured, None if it is not captured."""
        self._choose = choose
        self._report_event = report_event
        self._messages: DdlMessages | None = None
        self._installed = True
        self.connection: Any = None
        """Where to read the secret again if it is another one since ``begin``; None if that is not possible."""

    def begin(self, connection: Any) -> None:
        """Prepare to read; report if the source does not write DDL to its log.

        Raises DatabaseError if the Extract's user may not read what shows that a message is genuine.
        """
        secret = ddl_capture_sql.secret(connection)
        self._messages = DdlMessages(secret) if secret is not None else None
        self._report_state(secret is not None and ddl_capture_sql.fires(connection))

    def check(self, connection: Any) -> None:
        """Report it if the event triggers were disabled, dropped, enabled or installed since the last call."""
        if self._messages is None or not self._installed:
            self.begin(connection)  # the secret may be another one
        else:
            self._report_state(ddl_capture_sql.fires(connection))

    def _report_state(self, installed: bool) -> None:
        if self._installed and not installed:
            text = (
                "The source does not write DDL statements to its log, so they are not captured although the parameter"
            )
            hint = "DDL includes them: run ADD SCHEMATRANDATA as a superuser to install or enable the event triggers."
            self._report_event(Severity.WARNING, "GGS-00581", f"{text} {hint}")
        elif installed and not self._installed:
            text = "The source writes DDL statements to its log again. Those that ran meanwhile are not captured: run them on"
            self._report_event(Severity.INFO, "GGS-00581", f"{text} the targets.")
        self._installed = installed

    def statement(self, xid: int, content: bytes) -> DdlStatement | None:
        """Return the statement of a message; None if it is not captured."""
        if self._messages is None and self.connection is not None:
            self.begin(self.connection)  # installed since the last check
        if self._messages is None:
            return None
        try:
            found = self._read(self._messages, xid, content)
        except (ValueError, KeyError) as error:
            text = f"A message in the log that claims to be a DDL statement is ignored: {error}."
            self._report_event(Severity.WARNING, "GGS-00582", text)
            return None
        if found is None:
            return None
        if isinstance(found, TableReport):
            self._report(found)
            return None
        chosen = self._choose(found)
        if chosen is not None and self._messages.made:
            text = f"The text of CREATE TABLE {found.main.name} cannot be determined: the targets create it with its columns"
            self._report_event(
                Severity.WARNING, "GGS-00587", f"{text} only. Add its constraints, defaults and indexes there."
            )
        if chosen is not None and not found.text:
            text = f"The text of {described(found)} cannot be determined: run the statement on the targets."
            self._report_event(Severity.WARNING, UNDETERMINED, text)
            return None
        return chosen

    def _read(self, messages: DdlMessages, xid: int, content: bytes) -> DdlStatement | TableReport | None:
        """Read a message, if necessary with the present secret: ADD SCHEMATRANDATA makes a new one after the last DELETE."""
        try:
            return messages.read(xid, content)
        except ValueError:
            secret = ddl_capture_sql.secret(self.connection) if self.connection is not None else None
            if secret is None or secret == messages.secret:
                raise
            messages.secret = secret
            return messages.read(xid, content)

    def _report(self, found: TableReport) -> None:
        if found.captured:
            text = (
                f"The rows that table {found.table} had when it was first captured are not in the log: {found.reason}."
            )
            self._report_event(Severity.WARNING, "GGS-00586", f"{text} Load them into the targets.")
        else:
            text = f"The changes of table {found.table} are not in the log: {found.reason}."
            self._report_event(
                Severity.WARNING, "GGS-00588", f"{text} Correct the cause, then ADD TRANDATA {found.table}."
            )

    def ended(self, xid: int) -> None:
        """A transaction has ended."""
        if self._messages is not None:
            self._messages.ended(xid)
