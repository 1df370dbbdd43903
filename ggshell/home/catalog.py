"""The catalog: what commands record in addition to the checkpoint files, in a DuckDB file that is opened per statement.

Running processes never keep it open. A missing catalog is built from the checkpoint files, so a damaged catalog can be
moved away. Only the TRANDATA records are then lost, and the databases still have that information.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from ggshell.clock import Clock, SystemClock, local_text, pause
from ggshell.errors import StoreError
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.home.credential import Credential
from ggshell.home.home import Home

VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS groups (name text PRIMARY KEY, type text, source text, description text, created_us bigint);
CREATE TABLE IF NOT EXISTS trails (name text, group_name text, remote boolean, megabytes integer,
                                   PRIMARY KEY (name, group_name));
CREATE TABLE IF NOT EXISTS paths (name text PRIMARY KEY, source text, target text);
CREATE TABLE IF NOT EXISTS trandata (database text, owner text, name text, identity text, key text[],
                                     PRIMARY KEY (database, owner, name));
CREATE TABLE IF NOT EXISTS credentials (domain text, alias text, userid text, PRIMARY KEY (domain, alias));
CREATE TABLE IF NOT EXISTS catalog_version (number integer);
"""
_FIRST_WAIT = 0.01
_LONGEST_WAIT = 0.25
GROWING_SECONDS = 0.5
_UNFINISHED = "not a valid DuckDB database file"
PATIENCE_SECONDS = 5.0
_LOCKED = "Could not set lock"
"""DuckDB's text for a locked file. A damaged file raises the same exception class, and its text also mentions blocks."""
_HOLDER = re.compile(r"held in (.+?) \(PID (\d+)\)")
_CONFLICTS: Final = ("Unique file handle conflict", "Conflict on ", "write-write conflict")
"""DuckDB's texts for a catalog that this process has open elsewhere, in another connection."""

T = TypeVar("T")
Wait = Callable[[float], object]


class GroupNote(NamedTuple):
    """The catalog's record of a group; ``created`` in microseconds since 1970."""

    name: str
    type: str
    source: str
    description: str
    created: int


class TrailNote(NamedTuple):
    """The catalog's record of a trail and the group that writes it."""

    name: str
    group: str
    remote: bool
    megabytes: int


class PathNote(NamedTuple):
    """The catalog's record of a distribution path: its source trail and its target trail."""

    name: str
    source: str
    target: str


class TrandataNote(NamedTuple):
    """The catalog's record of a table with TRANDATA, with the replica identity that ADD TRANDATA set."""

    database: str
    owner: str
    name: str
    identity: str
    key: tuple[str, ...]


class Catalog:
    """Typed access to the catalog.

    Every method raises StoreError if the catalog stays locked (the error names the holder) or is damaged. ``wait`` pauses
    between two attempts; it receives the number of seconds.
    """

    def __init__(self, home: Home, *, wait: Wait | None = None, clock: Clock | None = None) -> None:
        self._home = home
        self._path = home.catalog
        self._wait: Wait = wait or pause
        self._clock = clock or SystemClock()

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        return self._use(lambda connection: _rows(connection, statement, parameters))

    def save_group(self, checkpoint: Checkpoint) -> None:
        """Record a group, its trails and its path from its checkpoint."""
        self._mark(checkpoint.group, checkpoint.type)
        self._use(lambda connection: _note_group(connection, checkpoint))

    def delete_group(self, group: str) -> None:
        """Delete a group, its trails and its path."""

        def work(connection: Any) -> None:
            for table, column in (("trails", "group_name"), ("paths", "name"), ("groups", "name")):
                connection.execute(f"DELETE FROM {table} WHERE {column} = ?", [group])

        self._use(work)
        for kind in GroupKind:
            self._home.known(group, kind).unlink(missing_ok=True)

    def _mark(self, group: str, kind: GroupKind) -> None:
        """Create the file by which the home knows a group without opening the catalog.

        If the folder of these files does not exist, it is created with a file for every group in the catalog.
        """
        path = self._home.known(group, kind)
        groups = [(group, kind)]
        try:
            if not path.parent.is_dir():
                groups += [(note.name, GroupKind(note.type)) for note in self.groups()]
                path.parent.mkdir(parents=True, exist_ok=True)
            for each in groups:
                self._home.known(*each).touch(mode=0o600)
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror}", hint="free space, then repeat the command"
            ) from error

    def groups(self) -> list[GroupNote]:
        return [GroupNote(*row) for row in self.execute("SELECT * FROM groups ORDER BY type, name")]

    def trails(self) -> list[TrailNote]:
        return [TrailNote(*row) for row in self.execute("SELECT * FROM trails ORDER BY name, group_name")]

    def paths(self) -> list[PathNote]:
        return [PathNote(*row) for row in self.execute("SELECT * FROM paths ORDER BY name")]

    def save_trandata(self, notes: Sequence[TrandataNote]) -> None:
        """Record several tables with TRANDATA in one transaction."""

        def work(connection: Any) -> None:
            *columns, keys = zip(*notes, strict=True)  # one statement: DuckDB needs 1 ms for each of executemany
            lists = [*map(list, columns), list(map(list, keys))]
            connection.execute(
                "INSERT OR REPLACE INTO trandata SELECT unnest($1::VARCHAR[]), unnest($2::VARCHAR[]),"
                " unnest($3::VARCHAR[]), unnest($4::VARCHAR[]), unnest($5::VARCHAR[][])",
                lists,
            )

        self._use(work)

    def forget_trandata(self, database: str, tables: Sequence[tuple[str, str]]) -> None:
        """Delete several tables, given as (owner, name), in one transaction."""

        def work(connection: Any) -> None:
            owners, names = map(list, zip(*tables, strict=True))
            connection.execute(
                "DELETE FROM trandata WHERE database = $1"
                " AND (owner, name) IN (SELECT unnest($2::VARCHAR[]), unnest($3::VARCHAR[]))",
                [database, owners, names],
            )

        self._use(work)

    def delete_trandata(self, database: str, owner: str, name: str) -> None:
        self.execute("DELETE FROM trandata WHERE database = ? AND owner = ? AND name = ?", [database, owner, name])

    def trandata(self, database: str) -> list[tuple[str, str]]:
        """Return (owner, name) of each table with TRANDATA in a database."""
        return [(note.owner, note.name) for note in self.trandata_notes(database)]

    def trandata_notes(self, database: str) -> list[TrandataNote]:
        """Return the tables with TRANDATA in a database, with their identity and key."""
        rows = self.execute("SELECT * FROM trandata WHERE database = ? ORDER BY owner, name", [database])
        return [TrandataNote(row[0], row[1], row[2], row[3], tuple(row[4] or ())) for row in rows]

    def save_credentials(self, read: Callable[[], Sequence[Credential]]) -> None:
        """Record the aliases of the credential store; the catalog never contains secrets.

        ``read`` returns the aliases; it runs while the catalog is locked, so the last change to be recorded sees the others.
        """

        def work(connection: Any) -> None:
            connection.execute("DELETE FROM credentials")
            for entry in read():
                connection.execute("INSERT INTO credentials VALUES (?, ?, ?)", list(entry))

        self._use(work)

    def credentials(self) -> list[Credential]:
        return [Credential(*row) for row in self.execute("SELECT * FROM credentials ORDER BY domain, alias")]

    def rebuild(self) -> Path | None:
        """Move the catalog away and build a new one from the checkpoint files.

        Returns the path of the old catalog, or None if there was none. Waits, as every use of the catalog does, until
        no other process has it open: a change that is being written would otherwise be lost with the old catalog.
        """
        kept = self._in_turn(self._move_away)
        self._use(lambda _: None)
        return kept

    def _move_away(self) -> Path | None:
        """Rename the catalog's files; return the new path of the first. Raises BlockingIOError while it is open elsewhere."""
        kept = None
        stamp = local_text(self._clock.now(), "%Y%m%d%H%M%S")
        with _unopened(self._path):
            for path in (self._path, self._path.with_name(self._path.name + ".wal")):
                if path.exists():
                    moved = path.with_name(f"{path.name}.{stamp}")
                    path.replace(moved)
                    kept = kept or moved
        return kept

    def _use(self, work: Callable[[Any], T]) -> T:
        """Open the catalog, run ``work`` in one transaction and close it."""
        import _duckdb as duckdb

        def opened() -> T:
            with duckdb.connect(str(self._path)) as connection:
                return self._transaction(connection, work)

        return self._in_turn(opened)

    def _in_turn(self, work: Callable[[], T]) -> T:
        """Run ``work`` when no other thread has the catalog open; retry while another command holds it."""
        import _duckdb as duckdb

        self._path.parent.mkdir(parents=True, exist_ok=True)
        pause, waited = _FIRST_WAIT, 0.0
        while True:
            try:
                with _turns(self._path).turn(PATIENCE_SECONDS - waited) as queued:
                    waited += queued
                    return work()
            except _OpenHereError as error:
                raise self._locked(error) from error
            except (duckdb.Error, BlockingIOError) as error:
                self._require_passing(error, waited)
                jittered = pause * random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries; not used for security
                self._wait(jittered)
                waited += jittered
                pause = min(pause * 1.5, _LONGEST_WAIT)

    def _require_passing(self, error: Exception, waited: float) -> None:
        """Raise StoreError unless an error passes when another command ends, and ``waited`` seconds are not yet too many."""
        text = str(error)
        # A file that another command is creating is not a database yet: retry for a short time.
        growing = _UNFINISHED in text and waited < GROWING_SECONDS
        held = isinstance(error, BlockingIOError) or _LOCKED in text or any(each in text for each in _CONFLICTS)
        if not held and not growing:
            raise self._damaged(error) from error
        if waited >= PATIENCE_SECONDS:
            raise self._locked(error) from error

    def _transaction(self, connection: Any, work: Callable[[Any], T]) -> T:
        connection.execute("BEGIN")
        self._prepare(connection)
        result = work(connection)
        connection.execute("COMMIT")
        return result

    def _prepare(self, connection: Any) -> None:
        """Create the tables of a new catalog from the checkpoint files; check the version of an existing catalog."""
        known = _rows(connection, "SELECT 1 FROM duckdb_tables() WHERE table_name = 'catalog_version'")
        if known:
            ((number,),) = _rows(connection, "SELECT max(number) FROM catalog_version")
            if number > VERSION:
                raise StoreError(
                    f"the catalog {self._path} has version {number}; this program supports version {VERSION}",
                    hint="use the newer program, or move the catalog file away",
                )
            return
        connection.execute(_TABLES)
        connection.execute("INSERT INTO catalog_version VALUES (?)", [VERSION])
        for entry in self._home.groups():
            if entry.checkpoint is not None:
                _note_group(connection, entry.checkpoint)

    def _damaged(self, error: Exception) -> StoreError:
        return StoreError(
            f"the catalog {self._path} cannot be read: {' '.join(str(error).split())}",
            code="GGS-00305",
            hint=f"move {self._path.name} away so that it is rebuilt from dirchk, then repeat ADD TRANDATA",
        )

    def _locked(self, error: Exception) -> StoreError:
        holder = _HOLDER.search(str(error))
        who = f"process {holder[2]} ({holder[1]})" if holder else "another command"
        return StoreError(
            f"the catalog {self._path} is still locked by {who}", code="GGS-00304", hint="try again after it has ended"
        )


class _OpenHereError(Exception):
    """Another thread of this process has had the catalog open for too long."""


class _Turns:
    """Lets one thread at a time open a catalog, in the order in which they came: none waits for all that come later."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._threads: deque[object] = deque()

    @contextmanager
    def turn(self, seconds: float) -> Iterator[float]:
        """Wait for this thread's turn; yields the seconds that it waited. Raises _OpenHereError after ``seconds``."""
        mine, began = object(), SystemClock().steady()
        with self._changed:
            self._threads.append(mine)
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: self._threads[0] is mine, max(0.0, seconds)):
                    raise _OpenHereError
            yield SystemClock().steady() - began
        finally:
            with self._changed:
                self._threads.remove(mine)
                self._changed.notify_all()


@contextmanager
def _unopened(path: Path) -> Iterator[None]:
    """Keep other processes from opening a catalog. Raises BlockingIOError if one has it open.

    The lock is of the kind that DuckDB uses. Call it in this thread's turn: closing the file also ends DuckDB's own lock.
    """
    if not path.exists():
        yield
        return
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


_TURNS: Final[dict[Path, _Turns]] = {}
"""The turns of each catalog that this process has opened. DuckDB excludes other processes, but not other threads."""
os.register_at_fork(after_in_child=_TURNS.clear)


def _turns(path: Path) -> _Turns:
    return _TURNS.setdefault(path.resolve(), _Turns())


def _rows(connection: Any, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = connection.execute(statement, list(parameters)).fetchall()
    return rows


def _note_group(connection: Any, checkpoint: Checkpoint) -> None:
    group, read = checkpoint.group, checkpoint.read
    connection.execute(
        "INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?, ?)",
        [group, checkpoint.type, read.source, checkpoint.description, checkpoint.created],
    )
    connection.execute("DELETE FROM trails WHERE group_name = ?", [group])
    for target in checkpoint.write:
        connection.execute(
            "INSERT INTO trails VALUES (?, ?, ?, ?)", [target.trail, group, target.remote, target.megabytes]
        )
    if checkpoint.type.is_path and checkpoint.write:
        connection.execute(
            "INSERT OR REPLACE INTO paths VALUES (?, ?, ?)", [group, read.trail, checkpoint.write[0].trail]
        )
