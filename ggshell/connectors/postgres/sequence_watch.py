"""The sequences of a source that an Extract captures: writes their values to the log, and reads them from there.

A sequence is captured once a value has been drawn from it. The values pass through the log so that they are in the
trail in commit order, and so that a restart reads them again exactly. The secret of the messages exists only in this
process: messages of an earlier run are not read, and each run writes all values again. FLUSH SEQUENCE uses the secret
of ADD SCHEMATRANDATA.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from ggshell.clock import Clock
from ggshell.connectors.postgres import ddl_capture_sql, sequence_values
from ggshell.connectors.postgres.session import execute, transaction
from ggshell.errors import ConnectionLostError, DatabaseError
from ggshell.home.events import ReportEvent, Severity
from ggshell.record.sequences import SequenceValue
from ggshell.types import TableName

SHARE = 20
"""The pause after a check of the sequences, as a multiple of the time that it took."""
GROWTH = 10
"""A target is set ahead at least this many times the values that were used between two checks."""
LOCK_WAIT = "100ms"


class SequenceWatch:
    """Watches the sequences that SEQUENCE parameters select."""

    def __init__(self, takes: Callable[[TableName], bool], report_event: ReportEvent, clock: Clock) -> None:
        self._takes = takes
        self._report_event = report_event
        self._clock = clock
        self._secret = secrets.token_hex(32)
        self._shared: str | None = None
        self._written: dict[TableName, SequenceValue] = {}
        self._exact: dict[TableName, tuple[int, bool]] = {}
        self._next = 0.0
        self._reported = ""
        self._unreadable: set[TableName] = set()
        self.connection: Any = None
        """Where to read the secret of FLUSH SEQUENCE again if it has changed since ``begin``; None if that is not possible."""

    def begin(self, connection: Any) -> None:
        """Prepare to read. Raises DatabaseError if the user may not read the secret of FLUSH SEQUENCE."""
        self._shared = ddl_capture_sql.secret(connection)

    def check(self, connection: Any) -> None:
        """Write the values that have changed since the last call. What the server refuses is reported and tried again."""
        now = self._clock.steady()
        if now < self._next:
            return
        try:
            if self._shared is None:
                self.begin(connection)
            self._write_changed(connection)
            self._reported = ""
        except ConnectionLostError:
            raise
        except DatabaseError as error:
            if error.message != self._reported:
                self._reported = error.message
                text = f"The values of sequences are not captured at the moment: {error.message}."
                self._report_event(Severity.WARNING, "GGS-00598", text)
        after = self._clock.steady()
        self._next = after + SHARE * (after - now)

    def values(self, xid: int, content: bytes) -> list[SequenceValue]:
        """Return the values of a message that are captured; none if the message is not genuine."""
        known = [self._secret] if self._shared is None else [self._secret, self._shared]
        genuine = sequence_values.genuine(known, xid, content)
        if not genuine and self.connection is not None:
            self.begin(self.connection)
            genuine = sequence_values.genuine([self._shared] if self._shared is not None else [], xid, content)
        found = [value for value in genuine if self._takes(value.name)]
        for value in found:
            if value.exact:
                self._exact[value.name] = value.last, value.called
        # A look just before or after FLUSH SEQUENCE has found the same value: it must not set the target ahead again.
        return [value for value in found if value.exact or self._exact.get(value.name) != (value.last, value.called)]

    def _write_changed(self, connection: Any) -> None:
        with transaction(connection):
            execute(connection, f"SET LOCAL lock_timeout = '{LOCK_WAIT}'")
            found = sequence_values.read(connection, self._takes)
        # What nobody has drawn is a start value, or what a Replicat has set ahead (``sequence_steps``).
        values = [self._with_growth(value) for value in found.values if value.called]
        changed = [value for value in values if not self._is_known(value)]
        if changed:
            sequence_values.write(connection, self._secret, changed)
        self._written = {value.name: value for value in values}
        self._report_unreadable({*found.unreadable})

    def _report_unreadable(self, names: set[TableName]) -> None:
        """Report once each sequence that the user may not read."""
        for name in sorted(names - self._unreadable):
            text = f"The values of sequence {name} are not captured: the user may not read it"
            self._report_event(
                Severity.WARNING, "GGS-00598", f"{text}. GRANT SELECT ON SEQUENCE {name}, and USAGE on its schema."
            )
        self._unreadable = names

    def _is_known(self, value: SequenceValue) -> bool:
        known = self._written.get(value.name)
        return known is not None and known[:4] == value[:4]

    def _with_growth(self, value: SequenceValue) -> SequenceValue:
        known = self._written.get(value.name)
        if known is None or known.increment != value.increment:
            return value
        used = (value.last - known.last) // value.increment
        return value._replace(ahead=max(value.ahead, GROWTH * used))
