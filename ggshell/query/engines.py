"""Chooses the engine for a query: DuckDB in this process for small input, Spark for large input.

Answers are plain Python values, identical for both engines. The last queries are kept in a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ggshell.clock import Clock, SystemClock
from ggshell.errors import UsageError
from ggshell.query.dialect import is_query
from ggshell.query.local import LocalEngine, answered
from ggshell.query.settings import EngineChoice, QuerySettings
from ggshell.query.views import PARTS, FirstHalf, QueryAnswer, RowsView, View, total_size

if TYPE_CHECKING:
    from ggshell.query.session import WarmSession

KEPT = 20
WARM_SHARE = 4
"""From a quarter of the threshold on, Spark is started in the background: the next query can be larger."""


class Ran(NamedTuple):
    """A finished query; ``size`` is the number of bytes that it may have read."""

    query: str
    engine: str
    size: int
    rows: int
    seconds: float


class Engines:
    """The two engines of a shell.

    ``warm_early``: whether a session can be started before it is needed; ``on_progress`` receives the progress of queries;
    ``session``: a session that runs already; ``stopped``: whether the client of the running query has disconnected.
    """

    def __init__(
        self,
        settings: QuerySettings,
        log: Path,
        *,
        warm_early: bool = False,
        clock: Clock | None = None,
        on_progress: Callable[[str], None] | None = None,
        session: WarmSession | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self._log = log
        self._session = session
        self.ran: list[Ran] = []
        self._warm_early = warm_early
        self._on_progress = on_progress
        self._clock = clock or SystemClock()
        self._local = LocalEngine(stopped=stopped)

    @property
    def session(self) -> WarmSession:
        """The session of Spark, which starts when it is first needed."""
        if self._session is None:
            from ggshell.query.session import WarmSession

            self._session = WarmSession(self.settings, self._log)
        return self._session

    def choose(self, size: int) -> str:
        """The engine, ``local`` or ``spark``, for a query over this many bytes."""
        if self.settings.engine is not EngineChoice.AUTO:
            return self.settings.engine.value
        return "spark" if size >= self.settings.threshold else "local"

    def ask(
        self,
        query: str,
        sql: str,
        views: Sequence[View],
        on_progress: Callable[[str], None] | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> QueryAnswer:
        """Run a query over views, until ``stopped`` is true.

        Raises UsageError if it does not only read, StatementError for invalid SQL, StateError if it was stopped.
        """
        if not is_query(sql):
            raise UsageError("TRAIL SQL accepts only SELECT and WITH", code="GGS-00707")

        def on_spark() -> pa.Table:
            from ggshell.query.cluster import ask_spark

            return ask_spark(self.session, sql, views, on_progress or self._on_progress, stopped)

        return self._answered(query, total_size(views), on_spark, lambda: self._local.ask(sql, views, stopped))

    def ask_in_parts(
        self,
        query: str,
        parts: Sequence[FirstHalf],
        schema: pa.Schema,
        sql: str,
        on_progress: Callable[[str], None] | None = None,
    ) -> QueryAnswer:
        """Run a query over ``parts``, the combined results of the first halves. ``schema`` describes their columns."""
        views = [part.view for part in parts]

        def on_spark() -> pa.Table:
            from ggshell.query.cluster import ask_in_parts

            return ask_in_parts(self.session, parts, schema, sql, on_progress or self._on_progress)

        def here() -> pa.Table:
            table = pa.concat_tables(answered(self._local, part, schema) for part in parts)
            return self._local.ask(sql, [RowsView(PARTS, table)])

        return self._answered(query, total_size(views), on_spark, here)

    def _answered(
        self, query: str, size: int, on_spark: Callable[[], pa.Table], here: Callable[[], pa.Table]
    ) -> QueryAnswer:
        began = self._clock.steady()
        engine = self.choose(size)
        table = on_spark() if engine == "spark" else self._here(size, here)
        rows = plain_rows(table)
        seconds = self._clock.steady() - began
        self.ran = [*self.ran, Ran(query, engine, size, len(rows), seconds)][-KEPT:]
        return QueryAnswer(tuple(table.schema.names), rows, engine, seconds)

    def _here(self, size: int, ask: Callable[[], pa.Table]) -> pa.Table:
        may_grow = self._warm_early and self.settings.engine is EngineChoice.AUTO
        if may_grow and size >= self.settings.threshold // WARM_SHARE:
            self.session.warm()
        return ask()

    def close(self) -> None:
        """End the session, if there is one."""
        if self._session is not None:
            self._session.close()

    def facts(self) -> list[tuple[str, Any]]:
        """The output of INFO SPARK: name and value."""
        found = self.session.facts()
        return [
            ("Engine", self.settings.engine.value),
            ("Threshold", self.settings.threshold),
            ("State", found.state),
            ("Master", found.master),
            ("Version", found.version),
            ("Cores", found.cores or ""),
            ("Java", found.java),
            ("Started in seconds", round(found.seconds, 1) if found.seconds else ""),
            ("Log", found.log),
        ]


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    columns = [_column(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def _column(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Converted as numbers: Arrow would look up the time zone's name in a package that may be missing.
        moments = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
        return [None if each is None else _moment(each, zoned=kind.tz is not None) for each in moments]
    if pa.types.is_map(kind):
        return [None if each is None else {key: plain(value) for key, value in each} for each in column.to_pylist()]
    return [plain(value) for value in column.to_pylist()]


def _moment(microseconds: int, *, zoned: bool) -> str:
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC).replace(microsecond=microseconds % 1_000_000)
    return (moment if zoned else moment.replace(tzinfo=None)).isoformat(timespec="microseconds")


def plain(value: Any) -> Any:
    """One plain value: whole decimals become integers, times become text, intervals seconds (with months: text)."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, pa.MonthDayNano):
        months, days, nanoseconds = value
        if months:
            return f"{months} months {days} days {nanoseconds} ns"
        return timedelta(days, microseconds=nanoseconds // 1000).total_seconds()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
