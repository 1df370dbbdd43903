"""Two sites that change the same rows, each with the real conflict resolution of Replicat, and a model of the expected rows.

The real Extract makes a site's records from messages of PostgreSQL's log. Changes that a Replicat applies are not captured
again, as Extract excludes the changes of its own Replicat.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batches import Row, Tx, make_batch
from pipeline.apply.hand_made import BEGIN, placed
from pipeline.apply.memory_target import MemoryTarget

from ggshell.connectors.postgres.rows import RelationTable, encode_row
from ggshell.pipeline.apply.conflicts import Resolver
from ggshell.pipeline.apply.counters import OperationCounters
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.error_rules import ErrorRule, Response
from ggshell.pipeline.apply.groups import AnsweredOperation
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.row_mapping import RowMapping
from ggshell.pipeline.apply.target import CheckpointRow, Target, TargetColumn, TargetTable
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.conflicts import read_compared, read_resolutions
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.stage import Stage
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image_rules import ImageRules, Unified
from ggshell.types import TableName

TYPES = {"id": "integer", "name": "text", "price": "numeric", "rank": "numeric(10,0)", "changed": "timestamp"}
COLUMNS = tuple(TYPES)
TABLE = TableDefinition(TableName("s", "t"), tuple(Column(*each) for each in TYPES.items()), (0,))
TARGET = TargetTable(
    TableName("s", "t"), tuple(TargetColumn(*each) for each in TYPES.items()), ("id",), (frozenset({"id"}),)
)
COMPACT = ImageRules(supplemental=True, unified=Unified.COMPACT)
FULL = ImageRules(whole_deletes=True, unified=Unified.FULL)

Values = dict[str, str | None]
Rules = Mapping[str, Sequence[tuple[str, str, str]]]
"""By conflict: the method, its resolution column, and its columns (empty: DEFAULT)."""


class Change(NamedTuple):
    """A row before and after a change; None if it did not exist or no longer exists."""

    before: Values | None
    after: Values | None


class Site:
    """A database with an Extract, and the Replicat that applies the changes of the other site."""

    def __init__(
        self,
        rules: Rules,
        images: ImageRules,
        group: int = 1000,
        compared: str = "ALL",
        real: tuple[Target, str] | None = None,
    ) -> None:
        """``real``: a database in place of the rows in memory, and the table's name there; then only ``run`` is used."""
        self.target = MemoryTarget(TARGET)
        target, table = real or (self.target, "s.t")
        self.answered: list[AnsweredOperation] = []
        self._shape = RelationTable(TABLE, True, images)
        self._written: list[Tx] = []
        self._read = 0
        comparison = f"(ON UPDATE {compared}, ON DELETE {compared})"
        columns = read_compared(comparison, "here")
        clauses = Clauses(compared=columns, resolutions=read_resolutions(texts(rules), columns, "here"))
        rule = MapRule("s.t", table, clauses=clauses)
        mapper = Mapper([rule], target.describe)
        responses = Responses([ErrorRule("DEFAULT", Response.DISCARD)])
        responses.resolver = Resolver()
        mapping = RowMapping([rule], mapper, Environment(), lambda: None, responses.resolver)
        self._stage = Stage(mapping.programs)
        self._delivery = Delivery(
            target,
            mapper,
            group_operations=group,
            position=CheckpointRow(BEGIN, None),
            responses=responses,
            counters=OperationCounters(conflicts=self.answered.append),
        )

    @property
    def rows(self) -> dict[str, Values]:
        found = ({name: _text(row[place]) for place, name in enumerate(COLUMNS)} for row in self.target.rows.values())
        return {str(row["id"]): row for row in found}

    def fill(self, rows: Mapping[str, Values]) -> None:
        """Rows that existed before anything was captured."""
        self.target.rows = {_key(row): dict(enumerate(_bytes(row))) for row in rows.values()}

    def write(self, *changes: Change) -> None:
        """A transaction of the application."""
        for before, after in changes:
            if before is not None:
                del self.target.rows[_key(before)]
            if after is not None:
                self.target.rows[_key(after)] = dict(enumerate(_bytes(after)))
        rows = [Row(TABLE, made.io_type, made.data) for each in changes for made in self._extracted(each)]
        self._written.append(Tx(len(self._written) + 1, rows))

    def run(self, other: Site, transactions: int) -> int:
        """Apply up to ``transactions`` of the other site in one batch; returns how many there were."""
        found = other._written[self._read : self._read + transactions]
        if found:
            first = sum(len(each.rows) for each in other._written[: self._read])
            self._delivery.feed(self._stage.run(placed(make_batch(found), BEGIN.rba + 1 + first)))
            self._delivery.flush()
            self._read += len(found)
        return len(found)

    def _extracted(self, change: Change) -> Sequence[object]:
        kind = b"I" if change.before is None else b"D" if change.after is None else b"U"
        body = struct.pack(">I", 1)
        if change.before is not None:
            body += b"O" + _tuple(change.before)
        if change.after is not None:
            body += b"N" + _tuple(change.after)
        return encode_row(b"w" + bytes(24) + kind + body, self._shape, 1, 26)


class Model:
    """The expected rows of a site: the rules of the manual, on whole rows."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.rows: dict[str, Values] = {}

    def write(self, *changes: Change) -> None:
        for before, after in changes:
            if before is not None:
                del self.rows[str(before["id"])]
            if after is not None:
                self.rows[str(after["id"])] = after

    def apply(self, change: Change) -> None:
        """Apply one change of the other site."""
        before, after = change
        current = self.rows.get(str((before or after or {})["id"]))
        if before is None and after is not None:
            self._put(None, after) if current is None else self._by_groups("INSERTROWEXISTS", None, after, current)
        elif before is not None and after is None:
            if current is not None and (current == before or self._method("DELETEROWEXISTS") == "OVERWRITE"):
                del self.rows[str(current["id"])]
        elif before is not None and after is not None:
            if current is None:
                self._put(None, after) if self._method("UPDATEROWMISSING") == "OVERWRITE" else None
            elif current == before:
                self._put(current, after)
            else:
                self._by_groups("UPDATEROWEXISTS", before, after, current)

    def _method(self, conflict: str) -> str:
        return self._rules[conflict][0][0]

    def _put(self, old: Values | None, row: Values) -> None:
        """Replace a row by another; refused if its key is in use."""
        used_keys = set(self.rows) - {str(old["id"])} if old is not None else set(self.rows)
        if str(row["id"]) not in used_keys:
            if old is not None:
                del self.rows[str(old["id"])]
            self.rows[str(row["id"])] = row

    def _by_groups(self, conflict: str, before: Values | None, after: Values, current: Values) -> None:
        groups = self._rules[conflict]
        if any(method == "DISCARD" for method, _, _ in groups):
            return
        named = {name for _, _, columns in groups for name in columns.split()}
        row = dict(current)
        for method, by, columns in groups:
            own = columns.split() or [name for name in COLUMNS[1:] if name not in named]
            wins = method in ("OVERWRITE", "USEDELTA") or (by != "" and _greater(method, after[by], current[by]))
            if wins and not columns:
                row["id"] = after["id"]
            for name in own:
                old = before[name] if before is not None else None
                if method != "USEDELTA":
                    row[name] = after[name] if wins else row[name]
                elif old != after[name]:
                    values = (current[name], after[name], old)
                    if None in values:
                        return
                    own_value, other_value, before_value = (int(value or 0) for value in values)
                    row[name] = str(own_value + other_value - before_value)
        self._put(current, row)


def _greater(method: str, own: str | None, other: str | None) -> bool:
    """Whether the first value wins; NULL loses every comparison."""
    if own is None or other is None:
        return own is not None or (other is None and method.endswith("EQ"))
    left, right = (own, other) if "-" in own else (int(own), int(other))
    if left == right:
        return method.endswith("EQ")
    return (left > right) is method.startswith("USEMAX")  # type: ignore[operator]


def texts(rules: Rules) -> list[str]:
    """The clauses of RESOLVECONFLICT."""
    return [
        f"({conflict}, {', '.join(_group(number, *each) for number, each in enumerate(groups))})"
        for conflict, groups in rules.items()
    ]


def _group(number: int, method: str, by: str, columns: str) -> str:
    name, cols = (f"g{number}", f", COLS ({', '.join(columns.split())})") if columns else ("DEFAULT", "")
    return f"({name}, {method}{f' ({by})' if by else ''}{cols})"


def _bytes(values: Values) -> list[bytes | None]:
    return [value.encode() if (value := values[name]) is not None else None for name in COLUMNS]


def _text(value: bytes | None) -> str | None:
    return value.decode() if value is not None else None


def _key(values: Values) -> tuple[bytes | None, ...]:
    return (str(values["id"]).encode(),)


def _tuple(values: Values) -> bytes:
    parts = [b"n" if value is None else b"t" + struct.pack(">I", len(value)) + value for value in _bytes(values)]
    return struct.pack(">H", len(parts)) + b"".join(parts)
