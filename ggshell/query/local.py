"""The small engine: DuckDB in this process, with the same columns that Spark reads. No Java, no startup time."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ggshell.errors import GgsError, NotFoundError, StateError, StatementError, StoreError
from ggshell.query.dialect import MACROS, literal, pieces, spelled
from ggshell.query.views import ConnectorView, FirstHalf, ParquetView, RowsView, TimeRange, View
from ggshell.types import quote

if TYPE_CHECKING:
    from ggshell.query.trail_read import TrailView

CHECK_SECONDS = 0.2


class LocalEngine:
    """Runs queries on DuckDB, one connection per query.

    ``threads``: the number of cores, 0 for all. ``stopped``: whether the client of the running query has disconnected.
    """

    name = "local"

    def __init__(self, threads: int = 0, stopped: Callable[[], bool] = lambda: False) -> None:
        self._threads = threads
        self._stopped = stopped

    def ask(self, sql: str, views: Sequence[View], stopped: Callable[[], bool] = lambda: False) -> pa.Table:
        """Run a query. Raises StatementError for invalid SQL, TrailError for damage, StateError if its client has disconnected
        or ``stopped`` is true.

        DuckDB works in a separate thread, because Python handles Ctrl-C only in the main thread, and only between two
        bytecodes.
        """
        import duckdb

        connection = duckdb.connect(":memory:")
        over = threading.Event()
        answers: list[pa.Table] = []
        failed: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(self._ask(connection, sql, views))
            except BaseException as error:  # noqa: BLE001 - it is raised again where the answer is awaited
                failed.append(error)
            finally:
                over.set()

        thread = threading.Thread(target=work, name="duckdb", daemon=True)
        try:
            thread.start()
            self._wait(over, stopped)
        except (KeyboardInterrupt, StateError):
            while not over.is_set():  # between two statements there is nothing to interrupt
                connection.interrupt()
                over.wait(CHECK_SECONDS)
            raise
        finally:
            if over.is_set():
                connection.close()
        if failed:
            raise failed[0]
        return answers[0]

    def _wait(self, over: threading.Event, stopped: Callable[[], bool]) -> None:
        """Wait for a query. Raises StateError as soon as its client has disconnected, or it is stopped."""
        while not over.wait(CHECK_SECONDS):
            if stopped():
                raise StateError("the query was canceled")
            if self._stopped():
                raise StateError("the query was canceled because its client disconnected")

    def _ask(self, connection: Any, sql: str, views: Sequence[View]) -> pa.Table:
        import duckdb

        text, failures = spelled(sql), list[Exception]()
        try:
            connection.execute("SET TimeZone = 'UTC'")
            if self._threads:
                connection.execute(f"SET threads = {self._threads}")
            for macro in MACROS:
                connection.execute(macro)
            for view in views:
                self._make_view(connection, view, text, failures.append)
            try:
                return connection.sql(text).to_arrow_table()
            except duckdb.BinderException:
                connection.execute(text)  # raises the error with its position, which the other call omits
                raise
        except duckdb.Error as error:
            raise failures[0] if failures else _unreadable(views, error) or _refused(sql, error) from error

    def _make_view(self, connection: Any, view: View, text: str, fail: Callable[[Exception], None]) -> None:
        if isinstance(view, RowsView):
            connection.register(view.name, view.table)
        elif isinstance(view, ParquetView):
            _make_parquet_view(connection, view)
        else:
            self._read_once(connection, view, text, fail)

    def _read_once(
        self, connection: Any, view: TrailView | ConnectorView, text: str, fail: Callable[[Exception], None]
    ) -> None:
        """Register a trail, or a table that a connector reads, as a view.

        A stream can be read only once. If the statement names the view several times, it is stored as a table, which can
        spill to disk.
        """
        name = view.name.lower()
        uses = sum(piece.strip('"').lower() == name for piece in pieces(text))
        if uses <= 1:
            connection.register(view.name, view.read(fail))
            return
        stream = view.read(fail)
        connection.register("a_view_to_keep", stream)
        connection.execute(f"CREATE TEMP TABLE {quote(view.name)} AS SELECT * FROM a_view_to_keep")
        connection.unregister("a_view_to_keep")


def answered(engine: LocalEngine, part: FirstHalf, schema: pa.Schema) -> pa.Table:
    """The result of the first half for one view."""
    return engine.ask(part.sql, [part.view]).cast(schema)


def _read_parquet(files: Sequence[str]) -> str:
    """The SQL that reads Parquet files. Folder names do not become columns."""
    return f"read_parquet([{', '.join(map(literal, files))}], union_by_name = true, hive_partitioning = false)"


def _make_parquet_view(connection: Any, view: ParquetView) -> None:
    source = _read_parquet(view.files)
    there = connection.sql(f"SELECT * FROM {source}").columns if view.columns else []
    missing = [f", CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in view.columns if name not in there]
    chosen = f"SELECT *{''.join(missing)} FROM {source}"
    connection.execute(f"CREATE VIEW {quote(view.name)} AS SELECT * FROM ({chosen}){_within(view.span)}")


def _unreadable(views: Sequence[View], error: Exception) -> GgsError | None:
    """The error for the Parquet file that a query failed at, which DuckDB does not always name. None for another cause."""
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return None
    for file in (file for view in views if isinstance(view, ParquetView) for file in view.files):
        with duckdb.connect(":memory:") as connection:
            try:
                connection.sql(f"SELECT max(hash(COLUMNS(*))) FROM {_read_parquet([file])}").fetchall()  # all of it
            except duckdb.Error as refused:
                return unreadable_parquet(file, refused)
    return None


def unreadable_parquet(file: str, error: Exception) -> GgsError:
    """The error for a Parquet file that is damaged or missing."""
    if not Path(file).exists():
        return NotFoundError(
            f"{file} no longer exists", hint="repeat the query: the files of a completed day are merged into one"
        )
    reason = str(error).partition("\n")[0]
    return StoreError(
        f"{file} cannot be read as Parquet: {reason}", code="GGS-00714", hint="restore it, or move it out of the folder"
    )


def _within(span: TimeRange | None) -> str:
    if span is None:
        return ""
    limits = [f"{quote(span.column)} >= make_timestamp({span.low})"] if span.low is not None else []
    limits += [f"{quote(span.column)} < make_timestamp({span.high})"] if span.high is not None else []
    return f" WHERE {' AND '.join(limits)}" if limits else ""


def _refused(sql: str, error: Exception) -> GgsError:
    """DuckDB's message without its rendering of the statement, which is shown separately."""
    cause = error.__cause__
    if isinstance(cause, GgsError):
        return cause
    text = " ".join(re.sub(r"^\w+ Error: ", "", str(error).split("\n\nLINE ")[0]).split())
    place = re.search(r"\n(LINE \d+: )(.*)\n( *)\^", str(error))
    column = len(place[3]) - len(place[1]) + 1 if place else 1
    source = " ".join(sql.split()) if place is None else place[2]
    return StatementError(text, code="GGS-00703", column=max(1, column), source=source)
