"""Generates a workload as redo: interleaved transactions insert, update and delete orders, over any span of log time.

Everything is derived from the seed. The transactions are consistent: a change contains the row as last committed, no
two open transactions change the same row, and a rollback undoes changes in reverse order.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ggshell.demo.redo_writer import OpenXid, RedoWriter

SECOND = 1_000_000
PROGRESS_EVENTS = 1000
"""After how many events the progress is reported."""
TABLE = "ORDERS"
COLUMNS = ("ORDER_ID", "CUSTOMER_ID", "STATUS", "AMOUNT", "CREATED", "NOTE")
_STATES = ("NEW", "PAID", "PACKED", "SENT", "BACK")
_DEFINITION = """* A definitions file as DEFGEN writes it, for redo that scripts/redo made
Definition for table SHOP.ORDERS
Record length: 320
Syskey: 0
Columns: 6
ORDER_ID 64 50 0 0 0 0 0 50 50 50 0 0 0 0 1 0 1 2
CUSTOMER_ID 64 50 56 0 0 0 0 50 50 50 0 0 0 0 1 0 0 2
STATUS 64 12 112 0 0 1 0 12 12 0 0 0 0 0 1 0 0 0
AMOUNT 64 50 128 2 0 1 0 50 50 50 0 0 0 0 1 0 0 2
CREATED 192 19 184 0 0 1 0 19 19 19 0 5 0 0 1 0 0 0
NOTE 64 100 206 0 0 1 0 100 100 0 0 0 0 0 1 0 0 0
End of definition
"""


class WorkloadShape(NamedTuple):
    """The parameters of a generated log.

    ``span``: seconds of log time; ``rate``: transactions per second; ``rollbacks`` and ``statement_rollbacks``: shares
    of the transactions; ``rows``: the maximum number of changes in a transaction (small transactions are more
    frequent); ``open_seconds``: the maximum duration of a transaction; ``long_share``: the share of transactions that
    last up to ``long_seconds``.
    """

    span: float = 60.0
    rate: float = 100.0
    rollbacks: float = 0.05
    statement_rollbacks: float = 0.02
    rows: int = 20
    open_seconds: float = 2.0
    long_share: float = 0.0
    long_seconds: float = 0.0
    seed: int = 1
    threads: int = 1


class RedoTotals(NamedTuple):
    """The contents of a generated log."""

    transactions: int
    committed: int
    rolled_back: int
    changes: int
    rows: int


class _Plan:
    """The plan of one transaction: how many changes are left, and how it ends."""

    def __init__(self, xid: OpenXid, writer: RedoWriter, changes: int, until: int, ending: str) -> None:
        self.xid = xid
        self.writer = writer
        self.left = changes
        self.until = until
        self.ending = ending
        self.before: dict[int, dict[str, str | None] | None] = {}
        self.after: dict[int, dict[str, str | None] | None] = {}


class Workload:
    """Generates one log.

    ``committed`` is called with each commit SCN and the rows that the transaction changed (None: deleted);
    ``progress`` from time to time with the seconds of log time that are written.
    """

    def __init__(
        self,
        shape: WorkloadShape,
        writers: list[RedoWriter],
        committed: Callable[[int, dict[int, dict[str, str | None] | None]], object] | None = None,
        progress: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._shape = shape
        self._writers = writers
        self._committed = committed
        self._progress = progress
        self._random = random.Random(shape.seed)  # noqa: S311 - reproducible, not secret
        self._rows: dict[int, dict[str, str | None]] = {}
        self._row_ids: dict[int, str] = {}
        self._free: list[int] = []
        self._orders = 0
        self._transactions = self._commits = self._changes = 0
        self._scn = writers[0].scn

    def run(self) -> RedoTotals:
        """Write the whole log. Transactions that are open at its end stay open."""
        start = self._writers[0].time
        end = start + round(self._shape.span * SECOND)
        events: list[tuple[int, int, _Plan | None]] = [(start, 0, None)]
        number = 0
        while events and events[0][0] < end:
            time, _, plan = heapq.heappop(events)
            for writer in self._writers:
                writer.time = time
            number += 1
            if number % PROGRESS_EVENTS == 0:
                self._progress((time - start) / SECOND)
            if plan is None:
                plan = self._begin(time)
                heapq.heappush(
                    events, (time + round(self._random.expovariate(self._shape.rate) * SECOND), number, None)
                )
                number += 1
            following = self._step(plan, time)
            if following is not None:
                heapq.heappush(events, (following, number, plan))
        for writer in self._writers:
            writer.flush()
        return RedoTotals(
            self._transactions,
            self._commits,
            self._ended - self._commits,
            self._changes,
            sum(writer.rows for writer in self._writers),
        )

    _ended = 0

    def _begin(self, time: int) -> _Plan:
        chance = self._random
        self._transactions += 1
        long = chance.random() < self._shape.long_share
        seconds = chance.random() * (self._shape.long_seconds if long else self._shape.open_seconds)
        changes = 1 + int(chance.random() ** 3 * self._shape.rows)
        draw = chance.random()
        ending = "rollback" if draw < self._shape.rollbacks else "commit"
        writer = self._writers[self._transactions % len(self._writers)]
        self._turn(writer)
        return _Plan(writer.begin(self._transactions), writer, changes, time + round(seconds * SECOND), ending)

    def _turn(self, writer: RedoWriter) -> None:
        """Advance the SCN, which all threads share."""
        writer.scn = self._scn = max(self._scn, writer.scn) + 1

    def _step(self, plan: _Plan, time: int) -> int | None:
        """Write the transaction's next change or its end; return the time of the following one, or None."""
        self._turn(plan.writer)
        if plan.left <= 0:
            self._end(plan)
            return None
        plan.left -= 1
        self._change(plan)
        if self._random.random() < self._shape.statement_rollbacks / max(1, plan.left):
            self._change(plan)
            self._take_back(plan)
        self._scn = plan.writer.scn
        return time + max(1, (plan.until - time) // (plan.left + 1)) if plan.until > time else time

    def _change(self, plan: _Plan) -> None:
        chance, xid, writer = self._random, plan.xid, plan.writer
        self._changes += 1
        draw = chance.random()
        if draw < 0.5 or not self._free:
            self._orders += 1
            order = self._orders
            row = self._new_row(order)
            self._row_ids[order] = writer.insert(xid, TABLE, row)
            self._note(plan, order, None, row)
            return
        order = self._pick()
        old = self._rows[order]
        if draw < 0.9:
            new: dict[str, str | None] = {"STATUS": chance.choice(_STATES), "AMOUNT": self._amount()}
            writer.update(xid, TABLE, self._row_ids[order], {"ORDER_ID": str(order)} | {n: old[n] for n in new}, new)
            self._note(plan, order, old, {**old, **new})
        else:
            writer.delete(xid, TABLE, self._row_ids[order], old)
            self._note(plan, order, old, None)

    def _pick(self) -> int:
        """Choose a committed row that no open transaction has changed, and lock it."""
        at = self._random.randrange(len(self._free))
        self._free[at], self._free[-1] = self._free[-1], self._free[at]
        return self._free.pop()

    def _note(
        self, plan: _Plan, order: int, old: dict[str, str | None] | None, new: dict[str, str | None] | None
    ) -> None:
        plan.before[order], plan.after[order] = old, new

    def _take_back(self, plan: _Plan) -> None:
        order = next(reversed(plan.after))
        plan.writer.take_back(plan.xid)
        del plan.after[order]
        self._unlock(order, plan.before.pop(order))

    def _unlock(self, order: int, row: dict[str, str | None] | None) -> None:
        if row is None:
            self._row_ids.pop(order, None)
            self._rows.pop(order, None)
            return
        self._rows[order] = row
        self._free.append(order)

    def _end(self, plan: _Plan) -> None:
        self._ended += 1
        if plan.ending == "rollback":
            plan.writer.rollback(plan.xid)
            for order, row in plan.before.items():
                self._unlock(order, row)
        else:
            self._commits += 1
            scn = plan.writer.commit(plan.xid)
            for order, row in plan.after.items():
                self._unlock(order, row)
            if self._committed is not None:
                self._committed(scn, plan.after)
        self._scn = plan.writer.scn

    def _amount(self) -> str:
        return f"{self._random.randrange(100, 1_000_000) / 100:.2f}"

    def _new_row(self, order: int) -> dict[str, str | None]:
        note = self._random.choice((None, "it's urgent", "grüße", "x" * 40))
        return {
            "ORDER_ID": str(order),
            "CUSTOMER_ID": str(self._random.randrange(1, 10_000)),
            "STATUS": "NEW",
            "AMOUNT": self._amount(),
            "CREATED": "=TO_DATE('2026-11-20 08:00:00','YYYY-MM-DD HH24:MI:SS')",
            "NOTE": note,
        }


def write_definitions(folder: Path) -> Path:
    """Write the definitions file of the workload's table into the folder of the segments."""
    path = folder / "redo.def"
    path.write_text(_DEFINITION)
    return path


def redo_writers(folder: Path, threads: int, **options: object) -> Iterator[RedoWriter]:
    """Create one writer for each thread."""
    for thread in range(1, threads + 1):
        yield RedoWriter(folder, thread=thread, **options)  # type: ignore[arg-type]
