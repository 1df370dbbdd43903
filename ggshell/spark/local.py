"""The small engine: DuckDB in this process, over the same columns that Spark reads.  No Java, no waiting."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ggshell.errors import GgsError, NotFoundError, StatementError, StoreError
from ggshell.spark.dialect import MACROS, literal, pieces, quoted_name, spelled
from ggshell.spark.views import ParquetView, RowsView, Span, TrailView, View

LOOK_SECONDS = 0.2


class LocalEngine:
    """Asks DuckDB; a connection a question.  ``threads``: on so many cores, 0 for all."""

    name = "local"

    def __init__(self, threads: int = 0) -> None:
        self._threads = threads
        self._failures: list[Exception] = []

    def ask(self, sql: str, views: Sequence[View]) -> pa.Table:
        """The answer.  Raises StatementError for SQL that is wrong, TrailError for damage.

        DuckDB works in a thread of its own: Python hears Ctrl-C in its first one alone, and only between two steps there.
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
            over.wait()
        except KeyboardInterrupt:
            while not over.is_set():  # between two statements there is nothing to interrupt
                connection.interrupt()
                over.wait(LOOK_SECONDS)
            raise
        finally:
            if over.is_set():
                connection.close()
        if failed:
            raise failed[0]
        return answers[0]

    def _ask(self, connection: Any, sql: str, views: Sequence[View]) -> pa.Table:
        import duckdb

        text = spelled(sql)
        self._failures.clear()
        try:
            connection.execute("SET TimeZone = 'UTC'")
            if self._threads:
                connection.execute(f"SET threads = {self._threads}")
            for macro in MACROS:
                connection.execute(macro)
            for view in views:
                self._make_view(connection, view, text)
            try:
                return connection.sql(text).to_arrow_table()
            except duckdb.BinderException:
                connection.execute(text)  # refuses with the place, which the other way leaves out
                raise
        except duckdb.Error as error:
            raise self._failures[0] if self._failures else _unreadable(views, error) or _refused(sql, error) from error

    def _make_view(self, connection: Any, view: View, text: str) -> None:
        if isinstance(view, RowsView):
            connection.register(view.name, view.table)
        elif isinstance(view, ParquetView):
            _make_parquet_view(connection, view)
        else:
            self._read_trail(connection, view, text)

    def _read_trail(self, connection: Any, view: TrailView, text: str) -> None:
        """A stream can be read once: where the statement names the view several times, it is kept as a table, which may
        go to disk."""
        name = view.name.lower()
        uses = sum(piece.strip('"').lower() == name for piece in pieces(text))
        if uses <= 1:
            connection.register(view.name, view.read(self._failures.append))
            return
        stream = view.read(self._failures.append)
        connection.register("a_trail_to_keep", stream)
        connection.execute(f"CREATE TEMP TABLE {quoted_name(view.name)} AS SELECT * FROM a_trail_to_keep")
        connection.unregister("a_trail_to_keep")


def _read_parquet(files: Sequence[str]) -> str:
    """Parquet files in SQL: a folder's name is no column of them."""
    return f"read_parquet([{', '.join(map(literal, files))}], union_by_name = true, hive_partitioning = false)"


def _make_parquet_view(connection: Any, view: ParquetView) -> None:
    source = _read_parquet(view.files)
    there = connection.sql(f"SELECT * FROM {source}").columns if view.columns else []
    missing = [f", CAST(NULL AS {kind}) AS {quoted_name(name)}" for name, kind in view.columns if name not in there]
    chosen = f"SELECT *{''.join(missing)} FROM {source}"
    connection.execute(f"CREATE VIEW {quoted_name(view.name)} AS SELECT * FROM ({chosen}){_within(view.span)}")


def _unreadable(views: Sequence[View], error: Exception) -> GgsError | None:
    """The Parquet file that a question failed at, which DuckDB does not always name; None where it was not that."""
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
    """What to tell of a Parquet file that is damaged or gone."""
    if not Path(file).exists():
        return NotFoundError(f"{file} is gone", hint="ask again: a day that is over is put into one file")
    reason = str(error).partition("\n")[0]
    return StoreError(
        f"{file} cannot be read as Parquet: {reason}", code="GGS-00714", hint="restore it, or set it aside"
    )


def _within(span: Span | None) -> str:
    if span is None:
        return ""
    limits = [f"{quoted_name(span.column)} >= make_timestamp({span.low})"] if span.low is not None else []
    limits += [f"{quoted_name(span.column)} < make_timestamp({span.high})"] if span.high is not None else []
    return f" WHERE {' AND '.join(limits)}" if limits else ""


def _refused(sql: str, error: Exception) -> GgsError:
    """DuckDB's words without its own picture of the statement, which stands below anyway."""
    cause = error.__cause__
    if isinstance(cause, GgsError):
        return cause
    text = str(error).split("\n\nLINE ")[0].strip()
    place = re.search(r"\n(LINE \d+: )(.*)\n( *)\^", str(error))
    column = len(place[3]) - len(place[1]) + 1 if place else 1
    source = " ".join(sql.split()) if place is None else place[2]
    return StatementError(text, code="GGS-00703", column=max(1, column), source=source)
