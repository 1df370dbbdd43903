"""Which part of a trail a question is about: times, a table; as SQL, and as conditions that spare the reader the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ggshell.clock import to_datetime
from ggshell.spark.dialect import literal
from ggshell.spark.pushdown import Condition
from ggshell.types import TableName


class Part(NamedTuple):
    """A condition in both forms."""

    sql: str
    condition: Condition


@dataclass(frozen=True, slots=True)
class Span:
    """Transactions committed at ``since`` or later and before ``until`` (microseconds since 1970, 0: open), of one table."""

    since: int = 0
    until: int = 0
    table: TableName | None = None

    @property
    def where(self) -> str:
        """A WHERE clause with a blank before it; empty where all is wanted."""
        parts = self._parts()
        return " WHERE " + " AND ".join(part.sql for part in parts) if parts else ""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(part.condition for part in self._parts())

    def _parts(self) -> list[Part]:
        found = [Part(f"{column} = {literal(value)}", Condition(column, "=", value)) for column, value in self._names()]
        if self.since:
            found.append(_time(">=", self.since))
        if self.until:
            found.append(_time("<", self.until))
        return found

    def _names(self) -> list[tuple[str, str]]:
        return [("owner", self.table.owner), ("table", self.table.name)] if self.table is not None else []


EVERYTHING = Span()


def _time(comparison: str, moment: int) -> Part:
    return Part(
        f"commit_ts {comparison} timestamp_micros({moment})", Condition("commit_ts", comparison, to_datetime(moment))
    )
