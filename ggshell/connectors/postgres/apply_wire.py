"""The wire to a target: sends statements and COPY data without waiting, and takes the results later.

libpq's pipeline mode carries prepared statements. COPY cannot run in pipeline mode, so steps with COPY are sent as one
simple query of several statements. psycopg's own pipeline waits at every commit; the raw connection does not have to.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from ggshell.errors import ConnectionLostError, StoppedError
from ggshell.pipeline.apply.target import Refusal
from ggshell.record.fields import Value

_COPY_IN, _FATAL, _PIPELINE_SYNC, _PIPELINE_ABORTED = 4, 7, 10, 11
MOST_PREPARED = 1000
"""The minimum number of prepared statements that are kept; up to twice as many are."""

_BLOCK = 1 << 18
MOST_UNSENT = 1 << 20
"""Bytes of values that libpq may hold unsent. The statement that exceeds this is sent completely before returning."""

_TRANSIENT = frozenset({"40001", "40P01", "55P03", "57014"})
_CHECK_FAILED = frozenset({"22012", "42P01", "0A000"})
"""How a check fails: division by zero, a missing table, or result types that changed after preparation."""
_CANCELED = "57014"
_GONE = ("08", "53", "57P", "25P03", "25006")


class ApplyStep(NamedTuple):
    """One statement. With ``values`` it is prepared; with ``data`` it is a COPY of that data.

    ``affects`` is how many rows it must change. ``commits`` marks a commit. ``on_failure`` is the refusal to report when the
    statement divides by zero, its table no longer exists, or its result types have changed. A division by zero makes a
    statement, and everything after it, fail without waiting for its result. ``size`` is the approximate length of the
    values, given where they may be long. ``opening`` is a statement that must succeed right after this one was
    prepared.
    """

    text: str
    values: Sequence[Value] | None = None
    data: bytes | None = None
    affects: int | None = None
    commits: bool = False
    on_failure: Refusal | None = None
    size: int = 0
    opening: ApplyStep | None = None


class _Expected(NamedTuple):
    step: ApplyStep | None
    prepares: str = ""


_NOTHING = _Expected(None)


class ApplyPipeline:
    """Sends steps in order. At most one set of steps awaits its results at any time."""

    def __init__(self, pgconn: Any, canceled: Callable[[], bool] = lambda: False) -> None:
        """``canceled``: whether this process canceled the connection's current statement because it has to stop."""
        self._pgconn = pgconn
        self._canceled = canceled
        self._poll = select.poll()
        self._poll.register(pgconn.socket, select.POLLIN)
        self._waiting: deque[_Expected] = deque()
        self._names: dict[str, bytes] = {}
        self._older: dict[str, bytes] = {}
        self._number = 0
        self._pipelined = False
        self.commits = 0

    @property
    def busy(self) -> bool:
        """Whether something was sent whose results were not taken yet."""
        return bool(self._waiting)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        return int(self._pgconn.transaction_status) in (2, 3)

    def send(self, steps: Sequence[ApplyStep]) -> Refusal | None:
        """Send steps and return. Waits only at a change between COPY and prepared statements.

        The results of everything sent before must have been collected.
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
        """Take the results of everything sent. Return the first refusal among them."""
        if not self._waiting:
            return None
        return self._guarded(self._collect)

    def run(self, text: str) -> Refusal | None:
        """Send one plain statement and wait for its result."""
        return self.send([ApplyStep(text)]) or self.collect()

    def forget(self) -> Refusal | None:
        """Deallocate all prepared statements: the tables that they use have changed. Everything must be collected."""
        names = [*self._names.values(), *self._older.values()]
        self._names, self._older = {}, {}
        return self.run(";".join(f"DEALLOCATE {name.decode()}" for name in names)) if names else None

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
            raise ConnectionLostError(
                f"the connection to the target was lost: {' '.join(str(error).split())}"
            ) from error
        if refusal is not None and refusal.state == _CANCELED and self._canceled():
            raise StoppedError("the current statement was canceled because the process is stopping")
        if refusal is not None and refusal.state.startswith(_GONE):
            raise ConnectionLostError(f"the target is not available: {refusal.text}")
        return refusal

    def _send_part(self, steps: Sequence[ApplyStep], simple: bool) -> Refusal | None:
        if simple:
            self.leave()
            return self._send_simple(steps)
        if not self._pipelined:
            self._pgconn.enter_pipeline_mode()
            self._pipelined = True
        if len(self._names) > MOST_PREPARED:
            self._let_go()
        self._send_pipeline(steps)
        return None

    def _let_go(self) -> None:
        """Deallocate the prepared statements that were not used since the previous call."""
        for name in self._older.values():
            self._pgconn.send_query_params(b"DEALLOCATE " + name, None)
            self._waiting.append(_NOTHING)
        self._older, self._names = self._names, {}

    def _send_pipeline(self, steps: Sequence[ApplyStep]) -> None:
        send, names, expect = self._pgconn.send_query_prepared, self._names, self._waiting.append
        unsent = 0
        for step in steps:
            if step.values is None:
                self._pgconn.send_query_params(step.text.encode(), None)
            else:
                name = names.get(step.text)
                if name is None and (name := self._older.pop(step.text, None)) is not None:
                    names[step.text] = name
                if name is None:
                    self._number += 1
                    name = names[step.text] = b"g%d" % self._number
                    self._pgconn.send_prepare(name, step.text.encode())
                    expect(_Expected(None, step.text))
                    if step.opening is not None:
                        self._pgconn.send_query_params(step.opening.text.encode(), None)
                        expect(_Expected(step.opening, step.text))
                unsent += step.size
                if unsent > MOST_UNSENT:
                    self._send_whole(name, step.values)
                    unsent = 0
                else:
                    send(name, step.values)
            expect(_Expected(step))
        self._pgconn.pipeline_sync()
        self._flush()

    def _send_whole(self, name: bytes, values: Sequence[Value]) -> None:
        """Send a long statement, and return when the socket has taken it.

        In nonblocking mode, libpq moves the rest of its buffer whenever the socket takes a part, so the time would grow
        with the square of the length. In blocking mode it moves nothing, and it reads results while it waits, so the
        server and this process cannot block each other. Of these libpq calls, only ``send_query_prepared`` releases the
        interpreter lock while it waits; the others are made when nothing is left that could wait.
        """
        self._flush()
        self._pgconn.nonblocking = 0
        self._pgconn.send_query_prepared(name, values)
        while not self._writable():
            continue
        self._pgconn.nonblocking = 1

    def _send_simple(self, steps: Sequence[ApplyStep]) -> Refusal | None:
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
        """Take results until the server waits for a COPY's data."""
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
                self._older.pop(expected.prepares, None)
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
            return Refusal.of_missing(step.affects, found)
        return None

    def _refusal(self, result: Any, expected: _Expected) -> Refusal:
        """Convert a failed result to a refusal: message, detail, SQLSTATE."""
        if result is None or not result.error_field(67):
            text = (result.error_message if result is not None else self._pgconn.error_message) or b"no answer"
            raise ConnectionLostError(
                f"the connection to the target was lost: {' '.join(text.decode(errors='replace').split())}"
            )
        message, detail = ((result.error_field(code) or b"").decode(errors="replace") for code in (ord("M"), ord("D")))
        state = result.error_field(ord("C")).decode()
        if state in _CHECK_FAILED and expected.step is not None and expected.step.on_failure is not None:
            return expected.step.on_failure
        text = f"{message}{': ' + detail if detail else ''} (SQLSTATE {state})"
        return Refusal(text, state, transient=state in _TRANSIENT)

    def _drain(self) -> None:
        """Take the remaining results of a failed simple query."""
        while self._result() is not None:
            continue
        self._waiting.clear()

    def _flush(self) -> None:
        while self._pgconn.flush():
            self._writable()

    def _writable(self) -> bool:
        """Wait until the socket accepts data or has data, and read what it has. Return whether it accepts data."""
        self._poll.modify(self._pgconn.socket, select.POLLOUT | select.POLLIN)
        ready = self._poll.poll()
        self._poll.modify(self._pgconn.socket, select.POLLIN)
        if any(event & ~select.POLLOUT for _, event in ready):
            self._pgconn.consume_input()
        return any(event & select.POLLOUT for _, event in ready)

    def _result(self) -> Any:
        pgconn = self._pgconn
        while pgconn.is_busy():
            self._poll.poll()
            pgconn.consume_input()
        return pgconn.get_result()


def _segments(steps: Sequence[ApplyStep]) -> Iterator[tuple[bool, Sequence[ApplyStep]]]:
    """Split steps into runs sent in the same mode: (as a simple query, steps). Plain steps join their neighbors."""
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
        # Plain statements alone are sent as a simple query: COMMIT or ROLLBACK alone need no pipeline.
        yield simple is not False, steps[first:]
