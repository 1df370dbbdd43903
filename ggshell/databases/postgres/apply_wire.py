"""The wire to a target: statements and COPY data go out without waiting, answers are taken later.

libpq's pipeline mode carries prepared statements; COPY cannot run in it, so what holds COPY goes as one simple query of
several statements.  psycopg's own pipeline waits at every commit; the raw connection need not.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ggshell.apply.target import Refusal
from ggshell.errors import ConnectionLostError
from ggshell.record.fields import Value

_COPY_IN, _FATAL, _PIPELINE_SYNC, _PIPELINE_ABORTED = 4, 7, 10, 11
_MOST_PREPARED = 1000
_BLOCK = 1 << 18
_TRANSIENT = frozenset({"40001", "40P01", "55P03", "57014"})
_DIVISION_BY_ZERO = "22012"
CHECKPOINT_GONE = "GGS01"
"""The state of the refusal by a guard."""
_GONE = ("08", "53", "57P", "25P03", "25006")


class Step(NamedTuple):
    """One statement: with ``values`` it is prepared; with ``data`` it is a COPY of that.

    ``affects``: how many rows it must change; ``commits``: it is a commit; ``guard``: what it means when it divides by zero
    (the way to make a statement fail, and all behind it, without waiting for its count).
    """

    text: str
    values: Sequence[Value] | None = None
    data: bytes | None = None
    affects: int | None = None
    commits: bool = False
    guard: str = ""


class _Expected(NamedTuple):
    step: Step | None
    prepares: str = ""


_NOTHING = _Expected(None)


class Wire:
    """Sends steps in order; at most one lot of them is unanswered."""

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn
        self._poll = select.poll()
        self._poll.register(pgconn.socket, select.POLLIN)
        self._waiting: deque[_Expected] = deque()
        self._names: dict[str, bytes] = {}
        self._number = 0
        self._pipelined = False
        self.commits = 0

    @property
    def busy(self) -> bool:
        """Whether something was sent whose answers were not taken."""
        return bool(self._waiting)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        return int(self._pgconn.transaction_status) in (2, 3)

    def send(self, steps: Sequence[Step]) -> Refusal | None:
        """Send steps and return; only what comes before a change between COPY and prepared statements is waited for.

        Everything sent before must be collected.
        """
        segments = list(_segments(steps))
        for number, (simple, part) in enumerate(segments):
            refusal = self._guarded(partial(self._send_part, part, simple))
            if refusal is None and number + 1 < len(segments):
                refusal = self.collect()
            if refusal is not None:
                return refusal
        return None

    def collect(self) -> Refusal | None:
        """Take the answers to everything sent; the first refusal among them."""
        if not self._waiting:
            return None
        return self._guarded(self._collect)

    def run(self, text: str) -> Refusal | None:
        """Send one plain statement and wait."""
        return self.send([Step(text)]) or self.collect()

    def leave(self) -> None:
        """Leave pipeline mode, so that psycopg itself can use the connection."""
        if self._pipelined:
            self._pgconn.exit_pipeline_mode()
            self._pipelined = False

    def _guarded(self, work: Callable[[], Refusal | None]) -> Refusal | None:
        import psycopg

        try:
            refusal = work()
        except psycopg.OperationalError as error:
            raise ConnectionLostError(f"the target's connection broke: {' '.join(str(error).split())}") from error
        if refusal is not None and refusal.state.startswith(_GONE):
            raise ConnectionLostError(f"the target broke off: {refusal.text}")
        return refusal

    def _send_part(self, steps: Sequence[Step], simple: bool) -> Refusal | None:
        if simple:
            self.leave()
            return self._send_simple(steps)
        if len(self._names) > _MOST_PREPARED:
            self.leave()
            self._names.clear()
            self._pgconn.exec_(b"DEALLOCATE ALL")
        if not self._pipelined:
            self._pgconn.enter_pipeline_mode()
            self._pipelined = True
        self._send_pipeline(steps)
        return None

    def _send_pipeline(self, steps: Sequence[Step]) -> None:
        send, names, expect = self._pgconn.send_query_prepared, self._names, self._waiting.append
        for step in steps:
            if step.values is None:
                self._pgconn.send_query_params(step.text.encode(), None)
            else:
                name = names.get(step.text)
                if name is None:
                    self._number += 1
                    name = names[step.text] = b"g%d" % self._number
                    self._pgconn.send_prepare(name, step.text.encode())
                    expect(_Expected(None, step.text))
                send(name, step.values)
            expect(_Expected(step))
        self._pgconn.pipeline_sync()
        self._flush()

    def _send_simple(self, steps: Sequence[Step]) -> Refusal | None:
        self._waiting.extend(_Expected(step) for step in steps)
        self._pgconn.send_query(";".join(step.text for step in steps).encode())
        self._flush()
        for step in steps:
            if step.data is None:
                continue
            refusal = self._until_copy()
            if refusal is not None:
                return refusal
            view = memoryview(step.data)
            for start in range(0, len(view), _BLOCK):
                self._pgconn.put_copy_data(bytes(view[start : start + _BLOCK]))
                self._flush()
            self._pgconn.put_copy_end()
            self._flush()
        return None

    def _until_copy(self) -> Refusal | None:
        """Take answers until the server waits for a COPY's data."""
        while True:
            result = self._result()
            if result is None or result.status == _FATAL:
                refusal = self._refusal(result, self._waiting[0] if self._waiting else _NOTHING)
                self._drain()
                return refusal
            if result.status == _COPY_IN:
                return None
            self._check(result, self._waiting.popleft())

    def _collect(self) -> Refusal | None:
        first: Refusal | None = None
        waiting = self._waiting
        while True:
            result = self._result()
            if result is None:
                if not self._pipelined:
                    break
                continue
            if result.status == _PIPELINE_SYNC:
                break
            expected = waiting.popleft() if waiting else _NOTHING
            if first is None and result.status not in (_FATAL, _PIPELINE_ABORTED):
                first = self._check(result, expected)
                continue
            if expected.prepares:
                self._names.pop(expected.prepares, None)
            if first is None:
                first = self._refusal(result, expected)
        waiting.clear()
        return first

    def _check(self, result: Any, expected: _Expected) -> Refusal | None:
        step = expected.step
        if step is None:
            return None
        if step.commits:
            if result.command_status == b"COMMIT":
                self.commits += 1
                return None
            return Refusal("the transaction had failed and was rolled back")
        if step.affects is not None and (found := result.command_tuples or 0) != step.affects:
            few = "no row was found" if step.affects == 1 else f"{found} of {step.affects} rows were found"
            return Refusal(f"{few} to change", missing=True)
        return None

    def _refusal(self, result: Any, expected: _Expected) -> Refusal:
        """A failed result: message, detail, SQLSTATE."""
        if result is None or not result.error_field(67):
            text = (result.error_message if result is not None else self._pgconn.error_message) or b"no answer"
            raise ConnectionLostError(
                f"the target's connection broke: {' '.join(text.decode(errors='replace').split())}"
            )
        message, detail = ((result.error_field(code) or b"").decode(errors="replace") for code in (ord("M"), ord("D")))
        state = result.error_field(ord("C")).decode()
        if state == _DIVISION_BY_ZERO and expected.step is not None and expected.step.guard:
            return Refusal(expected.step.guard, CHECKPOINT_GONE)
        text = f"{message}{': ' + detail if detail else ''} (SQLSTATE {state})"
        return Refusal(text, state, transient=state in _TRANSIENT)

    def _drain(self) -> None:
        """Take the rest of a failed simple query's answers."""
        while self._result() is not None:
            continue
        self._waiting.clear()

    def _flush(self) -> None:
        while self._pgconn.flush():
            self._poll.modify(self._pgconn.socket, select.POLLOUT | select.POLLIN)
            ready = self._poll.poll()
            self._poll.modify(self._pgconn.socket, select.POLLIN)
            if any(event & ~select.POLLOUT for _, event in ready):
                self._pgconn.consume_input()

    def _result(self) -> Any:
        pgconn = self._pgconn
        while pgconn.is_busy():
            self._poll.poll()
            pgconn.consume_input()
        return pgconn.get_result()


def _segments(steps: Sequence[Step]) -> Iterator[tuple[bool, Sequence[Step]]]:
    """Runs of steps that go the same way: (as a simple query, steps); plain ones go with their neighbours."""
    first, simple = 0, None
    for number, step in enumerate(steps):
        if step.values is None and step.data is None:
            continue
        here = step.data is not None
        if simple is not None and here != simple:
            yield simple, steps[first:number]
            first = number
        simple = here
    if steps:
        # A lone plain statement goes as a simple query: COMMIT or ROLLBACK alone need no pipeline.
        yield simple is not False, steps[first:]
