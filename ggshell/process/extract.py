"""Extract: from a database's log to durable trails.  Wires capture to trail and answers for it; nothing else lives here.

The order that makes a crash harmless: rows -> trail (fdatasync) -> checkpoint file -> slot.  Each may be behind the one
before it, never ahead: what the trail holds is recognised by CSN and not written again, what the slot sends again is
dropped, and a slot that is ahead of the checkpoint file is refused, since the rows between would be lost in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ggshell.capture.cache import TransactionCache
from ggshell.capture.stream import Capture
from ggshell.databases.postgres import session, slot
from ggshell.databases.postgres.log import PostgresLog
from ggshell.errors import ConnectionLostError
from ggshell.params import ExtractParameters, load_extract
from ggshell.process import path
from ggshell.process.backoff import Backoff
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.process.outputs import Outputs
from ggshell.process.slot_watch import SlotWatch
from ggshell.process.tables import TableFilter
from ggshell.process.tally import tally
from ggshell.store.checkpoint import GroupType, SourceType
from ggshell.store.home import Home
from ggshell.trail import Producer
from ggshell.types import Csn, LogPosition, format_lsn

IDLE_SECONDS = 1.0


def run(home: Home, group: str) -> int:
    """Run an Extract (or a pump, by its source) until it is told to stop; the exit code."""
    return run_group(home, group, GroupType.EXTRACT, _body)


def _body(context: GroupContext) -> None:
    parameters = load_extract(context.home.parameters(context.group))
    if context.checkpoint.read.source is SourceType.TRAIL:
        path.forward(context, TableFilter(parameters.tables, parameters.excludes))
        return
    LogExtract(context, parameters).run()


class LogExtract:
    """One run of an Extract on a PostgreSQL log."""

    def __init__(self, context: GroupContext, parameters: ExtractParameters) -> None:
        self._context = context
        self._parameters = parameters
        self._login = context.login(parameters)
        self._wanted = TableFilter([rule.pattern for rule in parameters.tables], parameters.excludes)
        self._capture: Capture | None = None
        self._caught_up = context.checkpoint.caught_up
        self._recorded = context.checkpoint.record_time
        self._last_lag: float | None = None
        self._watch = SlotWatch(self._login, self.slot_name, context)
        self._outputs = self._open_outputs()
        self._register_verbs()

    @property
    def slot_name(self) -> str:
        return str(self._context.checkpoint.options.get("slot") or slot.slot_name(self._context.group))

    def run(self) -> None:
        """Capture until stopped; a database that goes away is waited for, with the trail and checkpoint as they are."""
        backoff = Backoff()
        try:
            while not self._context.runner.stop_requested:
                try:
                    self._session(backoff)
                except ConnectionLostError as error:
                    self._wait_for_database(error, backoff)
            self._save()
        finally:
            self._close_capture()
            self._outputs.close()

    def _session(self, backoff: Backoff) -> None:
        """One connection's life: read, write, flush, again."""
        context, runner = self._context, self._context.runner
        self._capture = capture = self._open_capture()
        backoff.reset()
        next_save = context.clock.steady()
        while not runner.stop_requested:
            batch = capture.read(0)
            if batch is not None:
                for part in self._outputs.write(batch):
                    self._count(part)
                self._outputs.flush()
            if context.clock.steady() >= next_save:
                self._save()
                next_save = context.clock.steady() + min(self._parameters.checkpoint_seconds, IDLE_SECONDS)
            if batch is None or not capture.buffered:
                runner.wait([capture.fileno()], 0 if batch is not None else IDLE_SECONDS)

    def _open_capture(self) -> Capture:
        context, checkpoint = self._context, self._context.checkpoint
        begin = Csn.parse(checkpoint.begin_csn) if checkpoint.begin_csn else Csn(0)
        after = max(self._outputs.after or Csn(0), begin)
        durable = max(
            after.value, checkpoint.read.current.csn if isinstance(checkpoint.read.current, LogPosition) else 0
        )
        log = PostgresLog.open(self._login.conninfo, self.slot_name, durable)
        folder = context.home.root / "dirtmp"
        cache = TransactionCache(self._parameters.cache_size, folder, context.group)
        self._outputs.begin(self._wanted, after)
        context.report.event("INFO", "OGG-01515", f"Capture begins after CSN {after} of slot {self.slot_name}.")
        return Capture(log, cache, self._wanted, after)

    def _wait_for_database(self, error: ConnectionLostError, backoff: Backoff) -> None:
        """Say what happened, keep answering on the control socket, and come back for another try."""
        self._close_capture()
        pause = backoff.next()
        self._context.report.event("WARNING", error.code, f"{error} - try {backoff.attempts + 1} in {pause:g} s.")
        self._save()
        self._context.runner.wait([], pause)
