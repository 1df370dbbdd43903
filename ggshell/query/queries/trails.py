"""The trails to query, the part of them that a query covers, and the engine that runs the queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from ggshell.clock import to_datetime
from ggshell.errors import StatementError
from ggshell.query import paths
from ggshell.query.dialect import columns_of, literal, pieces
from ggshell.query.pushdown import Condition
from ggshell.query.trail_read import COLUMNS, SCHEMA, HomeKeys, TrailView
from ggshell.query.views import Engine, FirstHalf, QueryAnswer, View
from ggshell.trail.columnar import OnDamage
from ggshell.types import TableName

VIEW = "trail"
"""The SQL name of all selected trails together; each single trail has its own two characters."""
_UNKNOWN_VIEW = re.compile(
    r"Table with name (\S+) does not exist|TABLE_OR_VIEW_NOT_FOUND\] The table or view `?([^` ]+)`? cannot"
)
"""The message of DuckDB or Spark for a view that does not exist."""


@dataclass(frozen=True, slots=True)
class QueriedTrails:
    """The files of some trails (``files``, in order), an engine, a receiver of progress, and keys for encrypted files."""

    files: tuple[str, ...]
    engine: Engine
    on_progress: Callable[[str], None] | None = None
    keys: HomeKeys | None = None

    def ask(
        self,
        name: str,
        sql: str,
        conditions: Sequence[Condition] = (),
        more: Sequence[View] = (),
        *,
        tells_damage: bool = False,
    ) -> QueryAnswer:
        """Run a query over the view ``trail``, and over each trail by its name.

        ``conditions`` must not exclude more than the statement does; ``more``: additional views; ``tells_damage``: damage is
        returned as a row with ``fault`` instead of an error.
        """
        every = tuple(SCHEMA.names if tells_damage else COLUMNS)
        damage = OnDamage.TELL if tells_damage else OnDamage.RAISE

        def asked(columns: tuple[str, ...]) -> QueryAnswer:
            views = [TrailView(*view, columns, tuple(conditions), damage, keys=self.keys) for view in self._meant(sql)]
            return self.engine.ask(name, sql, [*views, *more], self.on_progress)

        columns = columns_of(sql, every) or ("rba",)
        try:
            return asked(columns)
        except StatementError as error:
            self._explain(error)
            if columns == every:
                raise
            return asked(every)  # so that the error message lists every column

    def _explain(self, error: StatementError) -> None:
        """Raise the error of an engine again with the views that exist, if the statement names another one."""
        unknown = _UNKNOWN_VIEW.search(error.message)
        if unknown is not None:
            error.message = f"the view {unknown[1] or unknown[2]} does not exist"
            error.hint = f"the views are {', '.join((VIEW, *self._by_name()))}"
            raise error

    def ask_in_parts(
        self, name: str, part: str, schema: pa.Schema, sql: str, conditions: Sequence[Condition] = ()
    ) -> QueryAnswer:
        """Run a query over ``parts``: the results of ``part`` for each slice of the view ``trail``."""
        columns = columns_of(part, COLUMNS) or ("rba",)
        view = TrailView(VIEW, self.files, columns, tuple(conditions), keys=self.keys)
        return self.engine.ask_in_parts(name, [FirstHalf(view, part)], schema, sql, self.on_progress)

    def _meant(self, sql: str) -> list[tuple[str, tuple[str, ...]]]:
        """The views that a statement can refer to, with their files."""
        words = {piece.strip('"').lower() for piece in pieces(sql)}
        return [each for each in {VIEW: self.files, **self._by_name()}.items() if each[0].lower() in words]

    def _by_name(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for file in self.files:
            prefix = Path(file).name[:2]
            found[prefix] = (*found.get(prefix, ()), file)
        return found


def trails(
    texts: Sequence[str],
    base: Path,
    engine: Engine,
    on_progress: Callable[[str], None] | None = None,
    keys: HomeKeys | None = None,
) -> QueriedTrails:
    """The trails that texts refer to. Raises NotFoundError if there is none, UsageError for a mixed folder."""
    files = dict.fromkeys(file for text in texts for file in paths.trail_files(text.strip(), base))
    return QueriedTrails(tuple(files), engine, on_progress, keys)


class SpanCondition(NamedTuple):
    """A condition in both forms."""

    sql: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class TrailSpan:
    """Transactions committed at ``since`` or later and before ``until`` (microseconds since 1970, 0: open), of one table."""

    since: int = 0
    until: int = 0
    table: TableName | None = None

    @property
    def where(self) -> str:
        """A WHERE clause with a leading blank; empty if nothing is excluded."""
        parts = self._parts()
        return " WHERE " + " AND ".join(part.sql for part in parts) if parts else ""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(part.condition for part in self._parts())

    def _parts(self) -> list[SpanCondition]:
        found = [
            SpanCondition(f"{column} = {literal(value)}", Condition(column, "=", value))
            for column, value in self._names()
        ]
        if self.since:
            found.append(_time(">=", self.since))
        if self.until:
            found.append(_time("<", self.until))
        return found

    def _names(self) -> list[tuple[str, str]]:
        return [("owner", self.table.owner), ("table", self.table.name)] if self.table is not None else []


EVERYTHING = TrailSpan()


def _time(comparison: str, moment: int) -> SpanCondition:
    return SpanCondition(
        f"commit_ts {comparison} timestamp_micros({moment})", Condition("commit_ts", comparison, to_datetime(moment))
    )
