"""The open transactions of a running Extract: shows, skips and forces them, warns of old ones, and purges orphans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.clock import to_datetime
from ggshell.connectors.source import BoundedLog, SourceDatabase, Unread
from ggshell.durations import MINUTE
from ggshell.errors import CaptureError
from ggshell.groups.bounded_recovery import ExtractRecovery
from ggshell.groups.lifecycle import GroupContext
from ggshell.home.events import Severity
from ggshell.home.typed_fields import plain
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.pipeline.capture.cache import OpenTransaction, TransactionCache
from ggshell.pipeline.capture.decisions import Action, Decision
from ggshell.pipeline.capture.stream import Capture
from ggshell.types import Csn, CsnForm

CODE = "OGG-01012"


class OpenTransactions:
    """Answers SHOWTRANS, SKIPTRANS, FORCETRANS, CACHEMGR and TRANLOGOPTIONS.

    ``save`` makes the trail, the checkpoint and the decisions durable.
    """

    def __init__(
        self,
        context: GroupContext,
        parameters: ExtractParameters,
        source: SourceDatabase,
        recovery: ExtractRecovery,
        capture: Callable[[], Capture | None],
        save: Callable[[], None],
    ) -> None:
        self._context = context
        self._source = source
        self._recovery = recovery
        self._capture = capture
        self._save = save
        self._long = parameters.long
        self._purge_every = parameters.long.purge_orphans
        self._next_purge = context.clock.steady() + self._purge_every
        context.verb("SHOWTRANS", self.show)
        context.verb("SKIPTRANS", lambda arguments: self.decide(Action.SKIP, arguments))
        context.verb("FORCETRANS", lambda arguments: self.decide(Action.FORCE, arguments))
        context.verb("CACHEMGR", lambda _: self._cache_facts())
        context.verb("TRANLOGOPTIONS", self.set_options)
        context.runner.every(self._long.every, self.warn)
        context.runner.every(MINUTE, self._purge_when_due)

    def show(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """SHOWTRANS: list the open transactions, oldest first.

        ``count``, ``duration`` and ``xid`` select transactions; ``detail`` adds their changes.
        """
        capture, detail = self._capture(), bool(arguments.get("detail"))
        read = capture.cache.open if capture is not None else {}
        asked = bool(arguments)  # an answer for publication is made without arguments; it does not query the database
        found: list[OpenTransaction | Unread] = [*read.values(), *(self._source.unread(read) if asked else ())]
        found.sort(key=_age)
        if arguments.get("xid"):
            found = [item for item in found if self._source.transaction_id(item.xid) == arguments["xid"]]
        if arguments.get("duration"):
            before = self._present() - round(float(arguments["duration"]) * 1_000_000)
            found = [item for item in found if item.begin_time <= before]
        if arguments.get("count") is not None:
            found = found[: int(arguments["count"])]
        return {
            "restart": self._restart(capture),
            "transactions": [
                self._unread_facts(item) if isinstance(item, Unread) else self._facts(item, detail=detail)
                for item in found
            ],
        }

    def _unread_facts(self, item: Unread) -> dict[str, Any]:
        return {
            "xid": self._source.transaction_id(item.xid),
            "items": 0,
            "start_time": to_datetime(item.begin_time).isoformat(),
            "status": f"Running, nothing sent yet ({_whose(item)})",
        }

    def _restart(self, capture: Capture | None) -> str:
        """Return what the source says of the oldest log position that a restart needs.

        With Bounded Recovery, the log of persisted transactions is not read again.
        """
        oldest = capture.cache.oldest() if capture is not None else None
        last = self._recovery.control.last if self._recovery.control is not None else None
        if oldest is None:
            return ""
        read_again = last is None or oldest.begin >= last.restart
        return self._source.restart_text(oldest.begin, None if last is None or read_again else last.restart_place)

    def _facts(self, item: OpenTransaction, *, detail: bool = False) -> dict[str, Any]:
        facts = {
            "xid": self._source.transaction_id(item.xid),
            "items": item.count,
            "start_time": to_datetime(item.begin_time).isoformat(),
            "place": plain(self._source.shown(item.begin)),
            "status": self._state(item),
        }
        return {**facts, "changes": list(self._source.changes(item))} if detail else facts

    def _state(self, item: OpenTransaction) -> str:
        capture = self._capture()
        decision = capture.cache.decided.get(item.xid) if capture is not None else None
        if decision is None:
            return "Running"
        return "Pending COMMIT" if decision.action is Action.FORCE else "Skipped"

    def decide(self, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
        """SKIPTRANS or FORCETRANS: save the decision, then execute it. Raises CaptureError if it is not possible (now)."""
        log, capture, item = self._find(action, arguments)
        until = max(log.cursor, item.held)
        csn = Csn(
            log.state.read, CsnForm.NUMBER
        )  # after everything read so far, before everything that follows; not unique
        name, count = self._source.transaction_id(item.xid), item.count
        self._make(capture.cache, Decision(action, item.xid, name, item.begin, until, csn, log.time))
        text = f"Transaction {name} with {count} items"
        what = "is skipped (SKIPTRANS)" if action is Action.SKIP else "is written as if it were committed (FORCETRANS)"
        self._context.report.event(Severity.WARNING, "GGS-00543", f"{text} {what}.")
        return {"xid": name, "items": count}

    def _make(self, cache: TransactionCache, decision: Decision) -> None:
        """Save a decision, then execute it."""
        cache.decided[decision.xid] = decision
        try:
            self._save()
        except BaseException:
            del cache.decided[decision.xid]
            raise
        cache.decide(decision)

    def _find(self, action: Action, arguments: dict[str, Any]) -> tuple[BoundedLog, Capture, OpenTransaction]:
        capture, log = self._capture(), self._source.bounded
        if self._source.bounded_recovery_refusal:
            raise CaptureError(
                f"{action} does not apply to this source: {self._source.bounded_recovery_refusal}", code=CODE
            )
        if capture is None or log is None or not capture.past_written:
            raise CaptureError(
                "Extract has not yet passed the position of its last run", code=CODE, hint="wait, then try again"
            )
        text = str(arguments.get("xid", ""))
        try:
            found = capture.cache.open.get(self._source.transaction_number(text))
        except ValueError:
            found = None
        if found is None:
            raise CaptureError(
                f"transaction {text} is not open",
                code=CODE,
                hint="use SEND EXTRACT …, SHOWTRANS to list open transactions",
            )
        if found.xid in capture.cache.decided:
            raise CaptureError(f"transaction {text} was already skipped or forced", code=CODE)
        thread = arguments.get("thread")
        if thread is not None and int(thread) != self._source.thread(found):
            raise CaptureError(f"transaction {text} belongs to thread {self._source.thread(found)}", code=CODE)
        return log, capture, found

    def _present(self) -> int:
        """Return the time to which ages are measured: the last record's time, or the clock's if that is configured."""
        log = self._source.bounded
        return log.time if log is not None and log.time and not self._long.by_clock else self._context.clock.now()

    def warn(self) -> None:
        """WARNLONGTRANS: report each transaction that is older than the threshold."""
        capture = self._capture()
        if capture is None or not self._long.threshold:
            return
        before = self._present() - self._long.threshold * 1_000_000
        for item in sorted(capture.cache.open.values(), key=lambda each: each.begin):
            if item.begin_time > before or item.ignored or not item.begin_time:
                continue
            self._warn(item.xid, item.count, self._source.shown(item.begin).text, item.begin_time)
        for unread in self._source.unread(capture.cache.open):
            if unread.begin_time <= before:
                self._warn(unread.xid, 0, _whose(unread), unread.begin_time)

    def _warn(self, xid: int, items: int, where: str, begin_time: int) -> None:
        name, since = self._source.transaction_id(xid), to_datetime(begin_time).isoformat()[:19]
        text = f"Long Running Transaction: XID {name}, Items {items}, Extract {self._context.group}, {where}"
        self._context.report.event(Severity.WARNING, "OGG-01027", f"{text}, open since {since}.")

    def set_options(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """TRANLOGOPTIONS for the rest of the run: whether and how often orphaned transactions are purged."""
        if "minutes" in arguments:
            self._purge_every = int(arguments["minutes"]) * MINUTE
        else:
            self._purge_every = (self._long.purge_orphans or 10 * MINUTE) if arguments.get("purge") else 0
        self._next_purge = self._context.clock.steady() + self._purge_every
        return {"every": self._purge_every}

    def _purge_when_due(self) -> None:
        if self._purge_every and self._context.clock.steady() >= self._next_purge:
            self._next_purge = self._context.clock.steady() + self._purge_every
            self.purge_orphans()

    def purge_orphans(self) -> None:
        """Skip the transactions that the source knows to have ended without an end record."""
        capture, log = self._capture(), self._source.bounded
        if capture is None or log is None or not capture.past_written:
            return
        for xid, reason in self._source.orphans(tuple(capture.cache.open)).items():
            item = capture.cache.open[xid]
            if item.ignored or xid in capture.cache.decided:
                continue
            name, count = self._source.transaction_id(xid), item.count
            self._make(capture.cache, Decision(Action.SKIP, xid, name, item.begin, log.cursor, time=log.time))
            text = f"Orphaned transaction {name} with {count} items is skipped: {reason}."
            self._context.report.event(Severity.WARNING, "GGS-00544", text)

    def _cache_facts(self) -> dict[str, Any]:
        capture = self._capture()
        return capture.cache.facts() if capture is not None else {}


def _age(item: OpenTransaction | Unread) -> tuple[int, int]:
    """Return the sort key by begin: transactions in the log by position, then the others by time."""
    return (0, item.begin) if isinstance(item, OpenTransaction) else (1, item.begin_time)


def _whose(item: Unread) -> str:
    return f"pid {item.pid}, user {item.user}" if item.pid else f"prepared, user {item.user}"
