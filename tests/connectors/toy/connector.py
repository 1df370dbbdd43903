"""A database in memory as a kind of database: the minimum that a new kind must implement."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pipeline.apply.memory_target import MemoryTarget
from pipeline.capture.list_log import Entry, ListSource

from ggshell.connectors.connector import Connector
from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.connectors.source import Places, SourceDatabase
from ggshell.connectors.source_log import AlteredLog, AskedPosition, LogStart, SourceLog
from ggshell.connectors.target_setup import TargetSetup
from ggshell.home.checkpoint import Checkpoint, GroupOptions
from ggshell.pipeline.apply.target import CheckpointRow, Refusal, TargetColumn, TargetTable
from ggshell.pipeline.capture.cache import OpenTransaction
from ggshell.pipeline.capture.source import LogState
from ggshell.record.transaction import Completed
from ggshell.time_limit import TimeLimit
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, CsnForm, LogPosition, TableName, TrailPosition

LOG: list[Entry] = []
ROWS: dict[Any, Any] = {}
CHECKPOINTS: dict[TableName, dict[int, CheckpointRow]] = {}
TABLE = TargetTable(TableName("shop", "t"), (TargetColumn("c", "text", "text"),), ("c",))


class ToyLogin(LoggedIn):
    """A login, with checkpoint tables."""

    @contextmanager
    def checkpoint_tables(self) -> Iterator[Any]:
        yield self

    def transaction(self) -> Any:
        return nullcontext()

    def create(self, table: TableName) -> None:
        CHECKPOINTS[table] = {}

    def groups(self, table: TableName) -> list[tuple[str, int, str, str]]:
        return [("REP1", key, str(row.csn), "") for key, row in CHECKPOINTS[table].items()]


class ToyLog(SourceLog):
    """The log as commands see it."""

    title = "Toy Log"

    def start(self, login: LoggedIn | None, group: str, asked: AskedPosition) -> LogStart:
        return LogStart(Csn(0, CsnForm.NUMBER), asked.moment, GroupOptions())

    def alter(self, login: LoggedIn | None, group: Checkpoint, asked: AskedPosition) -> AlteredLog:
        return AlteredLog(group, "the first record")

    def start_text(self, csn: str) -> str:
        return "at the first record"

    def source_name(self, options: GroupOptions) -> str:
        return "toy"

    def read_position(self, group: Checkpoint) -> list[tuple[str, str]]:
        return [("Log Read Checkpoint", "Toy Log"), ("", f"CSN {group.latest_csn or 0}")]

    def position_facts(self, options: GroupOptions, position: LogPosition) -> list[str]:
        return [f"CSN: {position.csn}"]


class ToyReader(ListSource):
    """The log as an Extract reads it."""

    def __init__(self) -> None:
        super().__init__(LOG, 0)
        self._event = os.eventfd(0)

    def fileno(self) -> int:
        return self._event

    def close(self) -> None:
        os.close(self._event)


class ToySource(SourceDatabase):
    """The source of an Extract."""

    def producer(self, group: str) -> Producer:
        return Producer(group, "ggshell Capture", "Toy", "shop", "1")

    def open(self, after: Completed, begin: Csn, start: LogPosition | None = None) -> ToyReader:
        return ToyReader()

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        return Places(LogPosition.of_lsn(state.safe), LogPosition.of_lsn(state.safe))

    def close(self) -> None: ...


class ToyTarget(MemoryTarget):
    """The target of a Replicat."""

    database = "shop"

    def __init__(self, setup: TargetSetup) -> None:
        super().__init__(TABLE)
        self.rows, self.key = ROWS, setup.key
        self._checkpoints = CHECKPOINTS[setup.table] if setup.table is not None else {}
        self.found = self.key in self._checkpoints
        self._checkpoints.setdefault(self.key, setup.begin)

    def checkpoint(self) -> CheckpointRow:
        return self._checkpoints[self.key]

    def commit(self, row: CheckpointRow, ids: Sequence[str] = ()) -> Refusal | None:
        super().commit(row, ids)
        ROWS.update(self.rows)
        self._checkpoints[self.key] = row
        return None

    def move(self, position: TrailPosition) -> None:
        self._checkpoints[self.key] = self.checkpoint()._replace(position=position)

    def database_facts(self) -> dict[str, str]:
        return {"DBNAME": self.database}


class ToyConnector(Connector):
    """The kind."""

    kind = "toy"
    title = vendor = "Toy"
    log = ToyLog()

    def log_in(self, given: Credentials, home: Path, limit: TimeLimit | None = None) -> ToyLogin:
        return ToyLogin(self, given.names_kind, "me", "shop")

    def source(self, process: object, parameters: object, wanted: Callable[[TableName], bool], login: str) -> ToySource:
        return ToySource()

    def target(self, setup: TargetSetup) -> ToyTarget:
        return ToyTarget(setup)


CONNECTOR = ToyConnector()
