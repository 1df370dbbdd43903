"""Clients that insert rows all the time into whichever of two databases lets them, and keep a ledger of every commit."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from itertools import pairwise
from typing import Final

import psycopg

PREFIX: Final = "client "
"""How the text of every row begins."""


class Clients:
    """Threads that insert one row in each transaction; ``insert`` is the statement, with the text of a row as parameter.

    A client that cannot write tries the other database. ``acknowledged``: the rows whose commit was confirmed. ``unknown``:
    those whose commit was interrupted. ``pause``: seconds between two rows of a client.
    """

    def __init__(self, dsns: tuple[str, str], insert: str, *, count: int, pause: float) -> None:
        self._dsns = dsns
        self._insert = insert
        self._pause = pause
        self._name = secrets.token_hex(4)
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._ends: list[float] = []
        self.acknowledged: list[str] = []
        self.unknown: set[str] = set()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def _write(self, client: int) -> None:
        place, number = 0, 0
        connection: psycopg.Connection | None = None
        while not self._ending.is_set():
            number += 1
            text = f"{PREFIX}{self._name} {client} row {number}"
            try:
                connection = connection or psycopg.connect(self._dsns[place], autocommit=True)
                connection.execute(self._insert.encode(), [text])
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection, place = None, 1 - place
                with self._lock:
                    self.unknown.add(text)
                continue
            with self._lock:
                self.acknowledged.append(text)
                self._ends.append(time.monotonic())
            self._ending.wait(self._pause)
        if connection is not None:
            connection.close()

    def rate(self, since: float) -> float:
        """Commits of all clients in a second, since a moment of the monotonic clock."""
        with self._lock:
            return sum(end > since for end in self._ends) / max(1e-9, time.monotonic() - since)

    @property
    def downtime(self) -> float:
        """The longest time between two commits of any clients, in seconds: the write downtime."""
        with self._lock:
            ends = sorted(self._ends)
        return max((after - before for before, after in pairwise(ends)), default=0.0)

    def forget_times(self) -> None:
        """Measure the downtime from now on."""
        with self._lock:
            self._ends.clear()

    def stop(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def faults(self, dsn: str, query: str) -> dict[str, int]:
        """Count what is wrong in a database, whose rows ``query`` returns: lost, doubled and unknown rows."""
        with psycopg.connect(dsn) as connection:
            found = Counter(str(text) for (text,) in connection.execute(query.encode()).fetchall())
        mine = {text for text in found if text.startswith(PREFIX)}
        return {
            "lost": len({*self.acknowledged} - mine),
            "doubled": sum(found[text] > 1 for text in mine),
            "unexpected": len(mine - {*self.acknowledged} - self.unknown),
        }
