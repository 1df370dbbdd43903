"""What a job of LOAD is asked to do, and what it reports. Both are sent between processes, so they hold plain values only."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.types import TableName


class CopyTask(NamedTuple):
    """Copy one part of a table, in one transaction of the target.

    ``columns``: those with stored values; empty if the table has none. ``blocks``: the range of pages of this part, None for
    the whole table. ``freeze``: the table is truncated first, so its rows can be written frozen. ``encoding``: of both
    streams, empty for that of the sessions. ``bytes``: about how large the part is, which decides what begins first.
    """

    table: TableName
    columns: tuple[str, ...]
    part: int
    parts: int
    csn: str
    bytes: int
    blocks: tuple[int, int | None] | None = None
    binary: bool = False
    freeze: bool = False
    encoding: str = ""

    @property
    def title(self) -> str:
        return f"table {self.table}"


class RunTask(NamedTuple):
    """Run one definition, or one statement about a loaded table, once: its transaction also writes that it is done.

    ``key`` identifies it in the bookkeeping; ``title``: what messages call it. ``table``: the table whose rows it needs;
    ``alone``: nothing else may work on that table at the same time.
    """

    key: str
    title: str
    text: str
    bytes: int = 0
    table: TableName | None = None
    alone: bool = False


Task = CopyTask | RunTask


class Moved(NamedTuple):
    """Progress of a copy: the bytes since the last report."""

    bytes: int


class Done(NamedTuple):
    """A task is committed. ``kept``: it was committed earlier. ``seconds``: how long it took."""

    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    kept: bool = False


class Failed(NamedTuple):
    """A task was rolled back. ``lost``: because a connection was lost, so it can be tried again.

    ``blocked``: because DDL of another session waits for the locks of the snapshot, so another snapshot is needed.
    """

    message: str
    lost: bool
    hint: str = ""
    blocked: bool = False


Report = Moved | Done | Failed
