"""The catalog: what commands remember beside the checkpoint files, in a DuckDB file that is opened for one statement.

It can always be rebuilt from the checkpoint files, but for the notes on TRANDATA.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ggshell.errors import StoreError
from ggshell.store.checkpoint import Checkpoint
from ggshell.store.home import Home

_TABLES = """
CREATE TABLE IF NOT EXISTS groups (name text PRIMARY KEY, type text, source text, description text, created_us bigint);
CREATE TABLE IF NOT EXISTS trails (name text, group_name text, remote boolean, megabytes integer,
                                   PRIMARY KEY (name, group_name));
CREATE TABLE IF NOT EXISTS trandata (database text, owner text, name text, identity text, key text[],
                                     PRIMARY KEY (database, owner, name));
"""
_TRIES = 40
_FIRST_WAIT = 0.01
_LONGEST_WAIT = 0.25


class Catalog:
    """Typed statements on the catalog.  Raises StoreError when it stays locked or is damaged."""

    def __init__(self, home: Home) -> None:
        self._path = home.catalog

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; its rows."""
        import duckdb

        self._path.parent.mkdir(parents=True, exist_ok=True)
        pause, waiter = _FIRST_WAIT, threading.Event()
        for attempt in range(_TRIES):
            try:
                with duckdb.connect(str(self._path)) as connection:
                    connection.execute(_TABLES)
                    rows: list[tuple[Any, ...]] = connection.execute(statement, list(parameters)).fetchall()
                    return rows
            except duckdb.IOException as error:
                if "lock" not in str(error).lower():
                    raise self._damaged(error) from error
                if attempt == _TRIES - 1:
                    raise StoreError(
                        f"the catalog {self._path} stays locked by another command", code="GGS-00304", hint="try again"
                    ) from error
                waiter.wait(pause)
                pause = min(pause * 1.5, _LONGEST_WAIT)
            except duckdb.Error as error:
                raise self._damaged(error) from error
        return []

    def _damaged(self, error: Exception) -> StoreError:
        return StoreError(
            f"the catalog {self._path} cannot be read: {' '.join(str(error).split())}",
            code="GGS-00305",
            hint=f"move it away: groups and trails are rebuilt from dirchk, then repeat ADD TRANDATA ({self._path.name})",
        )

    def save_group(self, checkpoint: Checkpoint) -> None:
        """Note a group and its trails as its checkpoint says."""
        group = checkpoint.group
        self.execute(
            "INSERT OR REPLACE INTO groups VALUES (?, ?, ?, ?, ?)",
            [group, checkpoint.type, checkpoint.read.source, checkpoint.description, checkpoint.created],
        )
        self.execute("DELETE FROM trails WHERE group_name = ?", [group])
        for target in checkpoint.write:
            self.execute(
                "INSERT INTO trails VALUES (?, ?, ?, ?)", [target.trail, group, target.remote, target.megabytes]
            )

    def delete_group(self, group: str) -> None:
        self.execute("DELETE FROM trails WHERE group_name = ?", [group])
        self.execute("DELETE FROM groups WHERE name = ?", [group])

    def save_trandata(self, database: str, owner: str, name: str, identity: str, key: Sequence[str]) -> None:
        """Note that a table's changes are logged."""
        self.execute(
            "INSERT OR REPLACE INTO trandata VALUES (?, ?, ?, ?, ?)", [database, owner, name, identity, list(key)]
        )

    def delete_trandata(self, database: str, owner: str, name: str) -> None:
        self.execute("DELETE FROM trandata WHERE database = ? AND owner = ? AND name = ?", [database, owner, name])

    def trandata(self, database: str) -> list[tuple[str, str]]:
        """(owner, name) of the tables with TRANDATA in a database."""
        return [
            (owner, name)
            for owner, name in self.execute(
                "SELECT owner, name FROM trandata WHERE database = ? ORDER BY 1, 2", [database]
            )
        ]
