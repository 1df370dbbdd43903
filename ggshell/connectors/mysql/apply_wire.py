"""Statements sent to MariaDB or MySQL without waiting: several in one packet, whose results are read later.

The server executes the statements of a packet in order and stops at the first one that fails, so a COMMIT at the end of a
packet is executed only if everything before it succeeded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.mysql.refusals import refusal
from ggshell.connectors.mysql.session import execute, translated
from ggshell.errors import ConnectionLostError, StoppedError
from ggshell.pipeline.apply.target import Refusal

if TYPE_CHECKING:
    from pymysql.connections import Connection

PACKET_BYTES: Final = 4 << 20
"""The size from which the statements go into several packets."""
ONE_ROW: Final = b"SELECT IF(ROW_COUNT()=1,1,(SELECT 1 UNION SELECT 2))"
"""Fails (1242) unless the statement before it has found one row."""
_QUERY: Final = 3


class ApplyStep(NamedTuple):
    """A statement. ``affects``: the rows that it must find; ``on_failure``: the refusal that a failure stands for."""

    text: bytes
    affects: int | None = None
    commits: bool = False
    on_failure: Refusal | None = None


class ApplyPipeline:
    """Sends steps over one connection. The results of a packet are taken before the next one is sent."""

    def __init__(self, connection: Connection[Any], canceled: Callable[[], bool]) -> None:
        self._connection: Any = connection
        self._canceled = canceled
        self._waiting: deque[ApplyStep] = deque()
        ((most,),) = execute(connection, "SELECT @@max_allowed_packet")
        self._most = int(most)
        self.commits = 0
        """The commits that have succeeded."""

    @property
    def busy(self) -> bool:
        """Whether results have not been taken yet."""
        return bool(self._waiting)

    def send(self, steps: Sequence[ApplyStep]) -> Refusal | None:
        """Send steps; a refusal is one of a packet before the last one. Everything sent before must be answered.

        Raises ConnectionLostError.
        """
        part: list[ApplyStep] = []
        size = 0
        for step in steps:
            if part and size + len(step.text) > min(PACKET_BYTES, self._most - 1024):
                refused = self._send(part) or self.collect()
                if refused is not None:
                    return refused
                part, size = [], 0
            part.append(step)
            size += len(step.text) + 2
        return self._send(part) if part else None

    def run(self, text: bytes) -> Refusal | None:
        """Execute one statement and wait for its result."""
        return self.send([ApplyStep(text)]) or self.collect()

    def collect(self) -> Refusal | None:
        """Take the results of everything sent; return the first refusal. Raises ConnectionLostError, StoppedError."""
        while self._waiting:
            step = self._waiting.popleft()
            refused = self._take(step)
            if refused is not None:
                self._waiting.clear()
                return refused
            if step.commits:
                self.commits += 1
        return None

    def _send(self, part: list[ApplyStep]) -> Refusal | None:
        text = b";".join([step.text for step in part])
        if len(text) >= self._most:
            return Refusal(
                f"a statement of {len(text)} bytes exceeds max_allowed_packet of the server, {self._most} bytes",
                "54000",
                code="GGS-00485",
                hint="SET GLOBAL max_allowed_packet to a higher value and restart the Replicat",
            )
        with translated():
            self._connection._execute_command(_QUERY, text)
        self._waiting.extend(part)
        return None

    def _take(self, step: ApplyStep) -> Refusal | None:
        """Read the result of one statement."""
        import pymysql

        try:
            found = self._connection._read_query_result()
        except pymysql.Error as error:
            if self._canceled():
                raise StoppedError("the current statement was interrupted because the process is stopping") from error
            return step.on_failure or refusal(error)
        except OSError as error:
            raise ConnectionLostError(f"the database is not responding: {error}") from error
        if step.affects is not None and found != step.affects:
            self._drain()
            return Refusal.of_missing(step.affects, found)
        return None

    def _drain(self) -> None:
        """Read the results of the statements after one whose result is not accepted, up to the end or an error."""
        import pymysql

        while self._waiting and self._connection._result.has_next:
            step = self._waiting.popleft()
            try:
                self._connection._read_query_result()
            except pymysql.Error:
                return
            if step.commits:
                self.commits += 1
