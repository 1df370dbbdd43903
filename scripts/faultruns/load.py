"""The load under which things break: lines of a ledger that has no key, and counters, in transactions of every size."""

from __future__ import annotations

import random
import threading
from types import TracebackType

from faultruns.sides import COUNTERS, GONE, Session, Side
from ggshell.errors import ConnectionLostError

PAUSE_SECONDS = 0.003
"""Between two transactions: some 200 a second."""
_AGAIN_SECONDS = 0.05
_BIG = 1500


class Load:
    """Runs in a thread from the beginning of the block to its end; a source that goes away is waited for."""

    def __init__(self, source: Side, seed: int) -> None:
        self.transactions = 0
        self._source = source
        self._chance = random.Random(f"load {seed}")
        self._line = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._broken: BaseException | None = None

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        if self._broken is not None and error is None:
            raise self._broken

    def _run(self) -> None:
        try:
            while not self._end.is_set():
                self._connected()
        except BaseException as error:  # noqa: BLE001 - told where the block ends
            self._broken = error

    def _connected(self) -> None:
        """Transactions until the end, or until the source goes away: whether that one committed does not matter."""
        try:
            with self._source.session() as session:
                while not self._end.is_set():
                    self._transaction(session)
                    self._end.wait(PAUSE_SECONDS)
        except (*GONE, ConnectionLostError):
            self._end.wait(_AGAIN_SECONDS)

    def _transaction(self, session: Session) -> None:
        chance, schema = self._chance, self._source.schema
        lines = _BIG if chance.random() < 0.005 else chance.randint(1, 4)
        new = range(self._line + 1, self._line + lines + 1)
        rows = ", ".join(f"({line}, now(), 'line {line}')" for line in new)
        session.execute(f"INSERT INTO {schema}.ledger VALUES {rows}")
        self._line += lines  # a number is used once, also by what is rolled back
        for number in sorted(chance.sample(range(1, COUNTERS + 1), chance.randint(0, 3))):
            session.execute(f"UPDATE {schema}.counters SET n = n + 1 WHERE id = %s", [number])
        if chance.random() < 0.05:
            session.rollback()
        else:
            session.commit()
            self.transactions += 1
