"""Oracle redo as an Extract's source: nobody keeps the log for us, so the checkpoint's recovery position is what counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ggshell.capture.cache import OpenTransaction
from ggshell.capture.source import LogState
from ggshell.databases.redo.definitions import Definitions, read_definitions
from ggshell.databases.redo.folder import open_rows
from ggshell.databases.redo.log import RedoLog, RowDefinitions
from ggshell.databases.redo.login import folder_of
from ggshell.databases.redo.messages import unpack_row
from ggshell.databases.redo.rows import Operation, format_xid, parse_xid
from ggshell.params.files import ExtractParameters
from ggshell.process.lifecycle import GroupContext
from ggshell.process.source import Places
from ggshell.process.tables import keycols_of
from ggshell.record.definition import TableDefinition
from ggshell.store.events import Severity
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, LogPosition, TableName

_RUN = 1000


class RedoSource:
    """A folder of redo."""

    def __init__(
        self, context: GroupContext, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> None:
        self._context = context
        self._parameters = parameters
        self._wanted = wanted
        self._login = login
        self._log: RedoLog | None = None
        self._recovery = LogPosition(0, 0, 0)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {}

    @property
    def options(self) -> Mapping[str, Any]:
        return {"redo": self._login}

    @property
    def end(self) -> int:
        """What lies behind the last row cannot be seen before it is read."""
        return 0

    def producer(self, group: str) -> Producer:
        return Producer(group, "ggshell Capture", "Oracle", str(folder_of(self._login)), "redo")

    @property
    def bounded(self) -> RedoLog | None:
        return self._log

    @property
    def unbounded(self) -> str:
        return ""

    @property
    def definitions(self) -> RowDefinitions:
        return RowDefinitions()

    def database_fact(self, detail: str) -> str | None:
        return str(folder_of(self._login)) if detail == "DBNAME" else None

    def open(self, after: Csn, begin: Csn, start: LogPosition | None = None) -> RedoLog:
        """Read from ``start``, else from the recovery position, or for the first time from behind BEGIN."""
        start = start or self._start(begin)
        definitions = Definitions(self._given(), lambda name: keycols_of(self._parameters.tables, name))
        self._log = RedoLog(open_rows(self._login, start), start, self._wanted, definitions, self._tell)
        self._recovery = start
        text = f"Capture begins behind CSN {after}, reading redo from SCN {start.csn}, segment {start.sequence}."
        self._context.report.event(Severity.INFO, "OGG-01515", text)
        return self._log

    def look(self) -> str | None:
        return None

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        log = self._log
        if log is None:
            return Places(self._recovery, self._recovery)
        if state.safe != self._recovery.csn:
            self._recovery = log.position(state.safe)
        current, before = log.position(state.read), self._context.checkpoint.read.current
        if isinstance(before, LogPosition) and before.csn > current.csn:
            current = before  # a recovery reads again: that it had been read before stays true
        return Places(self._recovery, current)

    def shown(self, place: int) -> dict[str, Any]:
        found = self._log.position(place) if self._log is not None else LogPosition(0, 0, place)
        return {"scn": str(place), "seqno": found.sequence, "rba": found.rba, "thread": found.thread or 1}

    def transaction_id(self, xid: int) -> str:
        return format_xid(xid)

    def transaction_number(self, text: str) -> int:
        return parse_xid(text)

    def changes(self, transaction: OpenTransaction) -> Iterator[str]:
        for _, parts in transaction.runs(_RUN):
            for part in parts:
                for row in map(unpack_row, part):
                    yield f"{Operation(row.operation).name} {row.owner}.{row.table} {row.row_id}  {row.redo.decode()}"

    def close(self) -> None:
        """Tell how much could not be captured, once a run."""
        log, self._log = self._log, None
        if log is not None:
            for (table, reason), count in sorted(log.problems.items()):
                if count > 1:
                    self._tell("GGS-00532", f"{table or 'Transactions'}: {reason}: {count} in this run, not captured.")

    def _start(self, begin: Csn) -> LogPosition:
        recovery = self._context.checkpoint.read.recovery
        if isinstance(recovery, LogPosition) and recovery.csn > begin.value:
            return recovery
        return LogPosition(0, 0, begin.value + 1 if begin.value else 0)

    def _given(self) -> dict[TableName, TableDefinition]:
        if not self._parameters.definitions:
            return {}
        path = Path(self._parameters.definitions)
        return read_definitions(path if path.is_absolute() else self._context.home.root / path)

    def _tell(self, code: str, text: str) -> None:
        self._context.report.event(Severity.WARNING, code, text)
