"""Two sites that change the same rows, each with the real Replicat's answers to conflicts, and a model of what they must hold.

A site's records are made by the real Extract from messages of PostgreSQL's log.  What a Replicat applies is not captured again,
as Extract leaves out the changes of its own Replicat.
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
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.error_rules import ErrorRule, Response
from ggshell.pipeline.apply.groups import Left
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
    """A row before and after a change; None where there was, or is, none."""

    before: Values | None
    after: Values | None


class Site:
    """A database with an Extract, and the Replicat that applies what the other site's Extract wrote."""

    def __init__(
        self,
        rules: Rules,
        images: ImageRules,
        group: int = 1000,
        compared: str = "ALL",
        real: tuple[Target, str] | None = None,
    ) -> None:
        """``real``: a database in place of the rows in memory, and the table's name there; then ``run`` is all it does."""
        self.target = MemoryTarget(TARGET)
        target, table = real or (self.target, "s.t")
        self.left: list[Left] = []
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
            conflicts=self.left.append,
        )

    @property
    def rows(self) -> dict[str, Values]:
        found = ({name: _text(row[place]) for place, name in enumerate(COLUMNS)} for row in self.target.rows.values())
        return {str(row["id"]): row for row in found}

    def fill(self, rows: Mapping[str, Values]) -> None:
        """Rows that were there before anything was captured."""
        self.target.rows = {_key(row): dict(enumerate(_bytes(row))) for row in rows.values()}

    def write(self, *changes: Change) -> None:
        """A transaction of the application's own."""
        for before, after in changes:
            if before is not None:
                del self.target.rows[_key(before)]
            if after is not None:
                self.target.rows[_key(after)] = dict(enumerate(_bytes(after)))
        rows = [Row(TABLE, made.io_type, made.data) for each in changes for made in self._extracted(each)]
        self._written.append(Tx(len(self._written) + 1, rows))

    def run(self, other: Site, transactions: int) -> int:
        """Apply what the other site wrote, so many transactions in one batch; how many there were."""
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
    """What a site must hold: the manual's rules on whole rows."""

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
        """One change of the other site."""
        before, after = change
        here = self.rows.get(str((before or after or {})["id"]))
        if before is None and after is not None:
            self._put(None, after) if here is None else self._by_groups("INSERTROWEXISTS", None, after, here)
        elif before is not None and after is None:
            if here is not None and (here == before or self._method("DELETEROWEXISTS") == "OVERWRITE"):
                del self.rows[str(here["id"])]
        elif before is not None and after is not None:
            if here is None:
                self._put(None, after) if self._method("UPDATEROWMISSING") == "OVERWRITE" else None
            elif here == before:
                self._put(here, after)
            else:
                self._by_groups("UPDATEROWEXISTS", before, after, here)

    def _method(self, conflict: str) -> str:
        return self._rules[conflict][0][0]

    def _put(self, old: Values | None, row: Values) -> None:
        """A row in place of another; refused where its key is taken."""
        taken = set(self.rows) - {str(old["id"])} if old is not None else set(self.rows)
        if str(row["id"]) not in taken:
            if old is not None:
                del self.rows[str(old["id"])]
            self.rows[str(row["id"])] = row

    def _by_groups(self, conflict: str, before: Values | None, after: Values, here: Values) -> None:
        groups = self._rules[conflict]
        if any(method == "DISCARD" for method, _, _ in groups):
            return
        named = {name for _, _, columns in groups for name in columns.split()}
        row = dict(here)
        for method, by, columns in groups:
            own = columns.split() or [name for name in COLUMNS[1:] if name not in named]
            wins = method in ("OVERWRITE", "USEDELTA") or (by != "" and _greater(method, after[by], here[by]))
            if wins and not columns:
                row["id"] = after["id"]
            for name in own:
                old = before[name] if before is not None else None
                if method != "USEDELTA":
                    row[name] = after[name] if wins else row[name]
                elif old != after[name]:
                    values = (here[name], after[name], old)
                    if None in values:
                        return
                    mine, theirs, was = (int(value or 0) for value in values)
                    row[name] = str(mine + theirs - was)
        self._put(here, row)


def _greater(method: str, mine: str | None, theirs: str | None) -> bool:
    """Whether a value wins; NULL is the loser of every comparison."""
    if mine is None or theirs is None:
        return mine is not None or (theirs is None and method.endswith("EQ"))
    left, right = (mine, theirs) if "-" in mine else (int(mine), int(theirs))
    if left == right:
        return method.endswith("EQ")
    return (left > right) is method.startswith("USEMAX")  # type: ignore[operator]


def texts(rules: Rules) -> list[str]:
    """The bodies of RESOLVECONFLICT."""
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
