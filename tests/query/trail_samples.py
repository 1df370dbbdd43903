"""Trails for the tests of queries and Spark: three tables, every operation, several files."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import NamedTuple

from batches import Row, Tx, make_batch

from ggshell.clock import FakeClock
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.writer import DEFAULT_OPTIONS, TrailWriter, WriterOptions
from ggshell.types import TableName

EMPLOYEES = TableDefinition(
    TableName("hr", "employees"),
    (
        Column("id", "integer", 23, False),
        Column("name", "text", 25),
        Column("salary", "numeric(10,2)", 1700),
        Column("hired", "timestamp with time zone", 1184),
        Column("active", "boolean", 16),
    ),
    (0,),
)
NOTES = TableDefinition(TableName("hr", "notes"), (Column("id", "bigint", 20, False), Column("body", "text", 25)), (0,))
ODD = TableDefinition(TableName("Shop", "Order lines"), (Column("a b", "smallint", 21), Column("t", "date", 1082)), ())
PRODUCER = Producer("EXT1", "Extract", "PostgreSQL", "north", "18.6")
BEGIN = 1_700_000_000_000_000
"""The commit time of CSN 0 (tests/batches.py adds one millisecond per CSN)."""


class Written(NamedTuple):
    """A trail and what was written to it: one tuple (csn, operation name, table, columns) per row."""

    name: TrailName
    rows: list[tuple[int, str, str, dict[str, str | None]]]

    @property
    def path(self) -> str:
        return str(self.name)


def _image(definition: TableDefinition, values: dict[str, str | None]) -> bytes:
    names = [column.name for column in definition.columns]
    return encode_image(
        [(names.index(name), None if value is None else value.encode()) for name, value in values.items()]
    )


def insert(definition: TableDefinition, **values: str | None) -> Row:
    return Row(definition, IoType.INSERT, _image(definition, values))


def update(definition: TableDefinition, **values: str | None) -> Row:
    return Row(definition, IoType.FIELD_COMP, _image(definition, values))


def delete(definition: TableDefinition, **values: str | None) -> Row:
    return Row(definition, IoType.DELETE, _image(definition, values))


def key_update(definition: TableDefinition, before: dict[str, str | None], after: dict[str, str | None]) -> Row:
    """An update of the key."""
    data = join_key_update(_image(definition, before), _image(definition, after))
    return Row(definition, IoType.KEY_FIELD_COMP, data)


def open_writer(name: TrailName, max_bytes: int = 1 << 30, options: WriterOptions = DEFAULT_OPTIONS) -> TrailWriter:
    return TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=max_bytes, options=options)


def write_trail(
    name: TrailName,
    transactions: list[list[Row]],
    *,
    max_bytes: int = 1 << 30,
    first_csn: int = 1,
    options: WriterOptions = DEFAULT_OPTIONS,
) -> None:
    """One flush per transaction; CSNs are 1, 2, 3 …"""
    writer = open_writer(name, max_bytes, options)
    for csn, rows in enumerate(transactions, first_csn):
        writer.write(make_batch([Tx(csn, rows)]))
        writer.flush()
    writer.close()


def random_transactions(seed: int, count: int, most: int = 6) -> list[list[Row]]:
    """Transactions over three tables with consistent row histories: inserts before updates, updates before deletes."""
    rng = random.Random(seed)
    numbers = itertools.count(1)
    existing: list[int] = []
    found = []
    for _ in range(count):
        rows = []
        for _ in range(rng.randint(1, most)):
            kind = rng.random()
            if kind < 0.45 or not existing:
                number = next(numbers)
                existing.append(number)
                rows.append(_hired(number, rng))
            elif kind < 0.7:
                number = rng.choice(existing)
                salary = None if rng.random() < 0.2 else f"{rng.randint(1, 9999)}.{rng.randint(0, 99):02}"
                rows.append(update(EMPLOYEES, id=str(number), salary=salary))
            elif kind < 0.8:
                number, new = existing.pop(rng.randrange(len(existing))), next(numbers)
                existing.append(new)
                rows.append(key_update(EMPLOYEES, {"id": str(number)}, {"id": str(new), "name": f"moved {new} ü"}))
            elif kind < 0.9:
                number = existing.pop(rng.randrange(len(existing)))
                rows.append(delete(EMPLOYEES, id=str(number)))
            else:
                rows.append(insert(NOTES, id=str(rng.randint(1, 1 << 40)), body="x'\\\n" * rng.randint(0, 30)))
        found.append(rows)
    return found


def _hired(number: int, rng: random.Random) -> Row:
    values = {
        "id": str(number),
        "name": None if rng.random() < 0.1 else f"name {number}",
        "salary": f"{rng.randint(1, 9999)}.50",
        "hired": f"2026-11-{rng.randint(1, 28):02} 10:00:0{rng.randint(0, 9)}.25+00",
        "active": rng.choice(["t", "f"]),
    }
    return insert(EMPLOYEES, **values)


def trail_in(folder: Path, name: str = "ea") -> TrailName:
    return TrailName(folder / "dirdat", name)
