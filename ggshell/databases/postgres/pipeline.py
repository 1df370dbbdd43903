"""Statements through libpq's pipeline mode: sent without waiting, answered in order.

psycopg's own pipeline waits at each commit; the raw connection does not, and costs a third for each statement.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any, NamedTuple

from ggshell.errors import ConnectionLostError, RowError

_FATAL, _SYNC, _COPY_IN = 7, 10, 4
WINDOW = 400
"""Statements sent before their answers are taken: both directions fit the socket's buffers."""


class _Sent(NamedTuple):
    row: int
    affects: int | None


class Pipeline:
    """Sends statements; ``finish`` takes the answers and raises the first refusal."""

    def __init__(self, pgconn: Any) -> None:
        self._pgconn = pgconn
        self._sent: list[_Sent] = []
        self._names: dict[str, bytes] = {}
        self._inside = False
        self._generation = 0

    def send(
        self, statement: str, values: Sequence[bytes | None], *, row: int = -1, affects: int | None = None
    ) -> None:
        """Send one statement, prepared at its first use.  ``row`` names it in errors; ``affects``: how many rows it must."""
        self._enter()
        name = self._names.get(statement)
        if name is None:
            name = self._names[statement] = b"g%d_%d" % (self._generation, len(self._names))
            self._pgconn.send_prepare(name, statement.encode())
            self._sent.append(_Sent(row, None))
        self._pgconn.send_query_prepared(name, values)
        self._sent.append(_Sent(row, affects))
        if len(self._sent) >= WINDOW:
            self.finish()

    def simple(self, statement: bytes) -> None:
        """Send a statement without parameters."""
        self._enter()
        self._pgconn.send_query_params(statement, None)
        self._sent.append(_Sent(-1, None))

    def finish(self) -> None:
        """Wait for every answer.  Raises RowError for the first statement that failed or missed its row."""
        if not self._sent:
            return
        self._pgconn.pipeline_sync()
        self._flush()
        sent, self._sent = self._sent, []
        first: RowError | None = None
        number = 0
        while True:
            result = self._result()
            if result is None:
                if self._pgconn.status != 0:
                    raise ConnectionLostError("the target's connection broke")
                number += 1
                continue
            if result.status == _SYNC:
                break
            if first is not None:
                continue
            if result.status == _FATAL:
                first = refusal(result, sent[number].row)
            elif sent[number].affects is not None and result.command_tuples != sent[number].affects:
                first = RowError("no row was found to change", sent[number].row, missing=True)
        if first is not None:
            # A statement whose preparation was part of the failed run is not there now.
            self._forget()
            raise first

    def copy(self, statement: bytes, data: bytes | memoryview, rows: int, row: int) -> None:
        """Send rows by COPY.  Raises RowError."""
        self.finish()
        self.leave()
        self._pgconn.send_query(statement)
        self._flush()
        result = self._result()
        if result is None or result.status != _COPY_IN:
            self._drain()
            raise refusal(result, row)
        view = memoryview(data)
        for start in range(0, len(view), 1 << 18):
            while self._pgconn.put_copy_data(bytes(view[start : start + (1 << 18)])) == 0:
                self._wait(select.POLLOUT)
        while self._pgconn.put_copy_end() == 0:
            self._wait(select.POLLOUT)
        self._flush()
        result = self._result()
        self._drain()
        if result is None or result.status == _FATAL:
            raise refusal(result, row)
        if result.command_tuples != rows:
            raise RowError(f"{result.command_tuples} of {rows} rows were copied", row)

    def _enter(self) -> None:
        if not self._inside:
            self._pgconn.enter_pipeline_mode()
            self._inside = True

    def leave(self) -> None:
        """Go back to one statement at a time; every answer must have been taken."""
        if self._inside:
            self._pgconn.exit_pipeline_mode()
            self._inside = False

    def _forget(self) -> None:
        self._names.clear()
        self._generation += 1

    def _drain(self) -> None:
        while self._result() is not None:
            continue
        if self._pgconn.status != 0:
            raise ConnectionLostError("the target's connection broke")

    def _flush(self) -> None:
        while self._pgconn.flush():
            self._wait(select.POLLOUT | select.POLLIN)
            self._consume()

    def _wait(self, events: int) -> None:
        poll = select.poll()
        poll.register(self._pgconn.socket, events)
        poll.poll()

    def _consume(self) -> None:
        import psycopg

        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as error:
            raise ConnectionLostError(f"the target's connection broke: {' '.join(str(error).split())}") from error

    def _result(self) -> Any:
        while self._pgconn.is_busy():
            self._wait(select.POLLIN)
            self._consume()
        return self._pgconn.get_result()


def refusal(result: Any, row: int) -> RowError:
    """A failed result as an error: message, detail, SQLSTATE."""
    if result is None:
        return RowError("the target gave no answer", row)
    field = result.error_field
    text = (field(ord("M")) or b"").decode(errors="replace")
    detail = (field(ord("D")) or b"").decode(errors="replace")
    state = (field(ord("C")) or b"").decode()
    return RowError(f"{text}{': ' + detail if detail else ''} (SQLSTATE {state})", row, state=state)
