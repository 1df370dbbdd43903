"""Who answers a question: DuckDB here when it is small, Spark when it is large; and what was asked so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ggshell.clock import Clock, SystemClock
from ggshell.errors import UsageError
from ggshell.spark.dialect import is_query
from ggshell.spark.local import LocalEngine
from ggshell.spark.plain_values import plain_rows
from ggshell.spark.session import WarmSession
from ggshell.spark.settings import EngineChoice, Settings
from ggshell.spark.slices import answered
from ggshell.spark.views import PARTS, Answer, Part, RowsView, View, total_size

KEPT = 20
WARM_SHARE = 4
"""From a quarter of the threshold on Spark is started in the background: the next question may be larger."""


class Ran(NamedTuple):
    """A question that was answered; ``size`` is what it may have read, in bytes."""

    question: str
    engine: str
    size: int
    rows: int
    seconds: float


class Engines:
    """The two engines of a shell.

    ``warm_early``: whether a session may be started before it is needed; ``told`` hears how far questions are.
    """

    def __init__(
        self,
        settings: Settings,
        log: Path,
        *,
        warm_early: bool = False,
        clock: Clock | None = None,
        told: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = settings
        self.session = WarmSession(settings, log)
        self.ran: list[Ran] = []
        self._warm_early = warm_early
        self._told = told
        self._clock = clock or SystemClock()
        self._local = LocalEngine()

    def choose(self, size: int) -> str:
        """``local`` or ``spark`` for a question about so many bytes."""
        if self.settings.engine is not EngineChoice.AUTO:
            return self.settings.engine.value
        return "spark" if size >= self.settings.threshold else "local"

    def ask(
        self,
        question: str,
        sql: str,
        views: Sequence[View],
        told: Callable[[str], None] | None = None,
    ) -> Answer:
        """Answer a statement about views.  Raises UsageError unless it only asks, StatementError for wrong SQL."""
        if not is_query(sql):
            raise UsageError("only questions are asked here: SELECT or WITH", code="GGS-00707")

        def on_spark() -> pa.Table:
            from ggshell.spark.cluster import ask_spark

            return ask_spark(self.session, sql, views, told or self._told)

        return self._answered(question, total_size(views), on_spark, lambda: self._local.ask(sql, views))

    def ask_in_parts(
        self,
        question: str,
        parts: Sequence[Part],
        schema: pa.Schema,
        sql: str,
        told: Callable[[str], None] | None = None,
    ) -> Answer:
        """Answer a statement about ``parts``, all the answers of first halves, whose columns are ``schema``'s."""
        views = [part.view for part in parts]

        def on_spark() -> pa.Table:
            from ggshell.spark.cluster import ask_in_parts

            return ask_in_parts(self.session, parts, schema, sql, told or self._told)

        def here() -> pa.Table:
            table = pa.concat_tables(answered(self._local, part, schema) for part in parts)
            return self._local.ask(sql, [RowsView(PARTS, table)])

        return self._answered(question, total_size(views), on_spark, here)

    def _answered(
        self, question: str, size: int, on_spark: Callable[[], pa.Table], here: Callable[[], pa.Table]
    ) -> Answer:
        began = self._clock.steady()
        engine = self.choose(size)
        table = on_spark() if engine == "spark" else self._here(size, here)
        rows = plain_rows(table)
        seconds = self._clock.steady() - began
        self.ran = [*self.ran, Ran(question, engine, size, len(rows), seconds)][-KEPT:]
        return Answer(tuple(table.schema.names), rows, engine, seconds)

    def _here(self, size: int, ask: Callable[[], pa.Table]) -> pa.Table:
        may_grow = self._warm_early and self.settings.engine is EngineChoice.AUTO
        if may_grow and size >= self.settings.threshold // WARM_SHARE:
            self.session.warm()
        return ask()

    def close(self) -> None:
        """End the session, if there is one."""
        self.session.close()

    def facts(self) -> list[tuple[str, Any]]:
        """What INFO SPARK tells, name and value."""
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
