"""The registry of this process's database connections: what each one waits for, and how another thread cancels it.

Code that opens a connection registers it here; the registry holds weak references only. The thread that monitors the
process queries the servers through its own connections, so it gets an answer even while the worker's connections wait.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class Blocker(NamedTuple):
    """A session that holds a lock for which another session waits.

    ``since``: when its transaction began, in microseconds since 1970.
    """

    pid: int
    user: str
    program: str
    state: str
    since: int
    statement: str


class Seen(NamedTuple):
    """What a server reports about one connection: its blockers, and a value that identifies the current statement.

    ``statement`` changes whenever the connection runs another statement.
    """

    statement: str
    blockers: tuple[Blocker, ...] = ()


class Link(Protocol):
    """One database connection."""

    canceled: bool
    """Whether ``cancel`` was called, which explains why the running statement failed."""

    observable: bool
    """Whether ``waits`` and ``observe`` are meaningful; if not, a statement may be running at any time."""

    @property
    def patience(self) -> float:
        """Seconds that a statement may continue after a stop request if no lock blocks it."""
        ...

    @property
    def waits(self) -> bool:
        """Whether a statement is running."""
        ...

    def address(self) -> str:
        """Return the database of the connection."""
        ...

    def observe(self, links: Sequence[Link]) -> Mapping[Link, Seen]:
        """Return what the server reports about connections to the same database. Raises GgsError if it does not answer."""
        ...

    def cancel(self) -> None:
        """Have the server cancel the running statement. Raises GgsError if it does not answer."""
        ...

    def break_off(self) -> None:
        """Close the connection immediately; a thread that waits on it gets an error at once."""
        ...


class Links:
    """The open connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._links: weakref.WeakKeyDictionary[object, Link] = weakref.WeakKeyDictionary()

    def enter(self, connection: object, link: Link) -> None:
        """Register an open connection."""
        with self._lock:
            self._links[connection] = link

    def of(self, connection: object) -> Link | None:
        """Return the link of a connection, or None if it was never registered."""
        with self._lock:
            return self._links.get(connection)

    def waiting(self) -> list[Link]:
        """Return the connections that run a statement."""
        with self._lock:
            found = list(self._links.values())
        return [link for link in found if link.waits]


LINKS = Links()
"""The open connections of this process."""
