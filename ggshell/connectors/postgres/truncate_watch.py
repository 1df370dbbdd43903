"""The messages of truncated partitions in the log: reads those that ggshell's trigger wrote, and reports all others."""

from __future__ import annotations

from typing import Any

from ggshell.connectors.postgres import partition_truncates
from ggshell.connectors.postgres.partition_truncates import Noted, noted
from ggshell.connectors.postgres.sealed_messages import UNREADABLE, opened
from ggshell.errors import DatabaseError
from ggshell.home.events import ReportEvent, Severity


class TruncateWatch:
    """Tells genuine messages from others by their seal.

    The function of an earlier release wrote messages without a seal. They are read until the current function is installed,
    and of those in the log before it.
    """

    def __init__(self, report_event: ReportEvent) -> None:
        self._report_event = report_event
        self._secret: str | None = None
        self._sealed_from = 0
        self._connection: Any = None
        self._is_reported = False

    def begin(self, connection: Any) -> None:
        """Prepare to read. A user who may not read the secret of the seal needs it when the first message arrives."""
        self._connection = connection
        self._sealed_from = partition_truncates.sealed_from(connection)
        try:
            self._secret = partition_truncates.secret(connection)
        except DatabaseError as error:
            if error.code != UNREADABLE:
                raise
            self._secret = None

    def read(self, xid: int, lsn: int, content: bytes) -> Noted | None:
        """Return what a message at a position of the log says; None if it is not genuine.

        Raises DatabaseError (GGS-00580) if the Extract's user may not read the secret of the seal."""
        if content[:1] == b"{":
            return self._unsealed(lsn, content)
        try:
            found = self._opened(xid, content)
        except (ValueError, KeyError) as error:
            self._refuse(str(error))
            return None
        return noted(found)

    def _opened(self, xid: int, content: bytes) -> Any:
        try:
            return opened([self._secret] if self._secret is not None else [], xid, content)
        except ValueError:
            if self._connection is None:
                raise
            known, self._secret = self._secret, partition_truncates.secret(self._connection)  # it may be new
            if self._secret is None or self._secret == known:
                raise
            return opened([self._secret], xid, content)

    def _unsealed(self, lsn: int, content: bytes) -> Noted | None:
        if self._sealed_from and lsn >= self._sealed_from:
            self._refuse("it has no seal")
            return None
        try:
            found = noted(partition_truncates.content_of(content))
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(f"its content is not valid: {error}")
            return None
        if not self._sealed_from and not self._is_reported:
            self._is_reported = True
            text = f"TRUNCATE of partition {found.table} is captured from a message that any user could have written"
            hint = f"run ADD TRANDATA {found.root or found.table} again to install the current trigger function."
            self._report_event(Severity.WARNING, "GGS-00589", f"{text}: {hint}")
        return found

    def _refuse(self, reason: str) -> None:
        text = f"A message in the log that claims to be the TRUNCATE of a partition is ignored: {reason}."
        self._report_event(Severity.WARNING, "GGS-00590", text)
