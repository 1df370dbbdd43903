"""Hand-made batches as a trail reader returns them: with positions in a file, cut wherever a test needs it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from batches import Row, Tx, make_batch

from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.pipeline.apply.counters import NO_COUNTERS, OperationCounters
from ggshell.pipeline.apply.ddl_choices import ALL_AS_THEY_ARE, DdlChoices
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import PLAIN_SESSION, SessionOptions
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

CHECKPOINTS = TableName("public", "ggs_checkpoint")
BEGIN = TrailPosition(0, 100)
FIRST_RBA = 1000
T = TableDefinition(TableName("hr", "t"), (Column("id", "integer"), Column("a", "text"), Column("b", "numeric")), (0,))
Value = str | None


def image(*values: Value, columns: Iterable[int] | None = None) -> bytes:
    """An image of the first columns, or of the named ones."""
    numbers = range(len(values)) if columns is None else columns
    return encode_image(
        (n, value.encode() if value is not None else None) for n, value in zip(numbers, values, strict=True)
    )


def insert(identity: int, a: Value = "x", b: Value = "1.5") -> Row:
    return Row(T, IoType.INSERT, image(str(identity), a, b))


def update(identity: int, a: Value, b: Value = "1.5") -> Row:
    return Row(T, IoType.FIELD_COMP, image(str(identity), a, b))


def update_a(identity: int, a: Value) -> Row:
    """An update without column b, as for an unchanged long value."""
    return Row(T, IoType.FIELD_COMP, image(str(identity), a))


def delete(identity: int) -> Row:
    return Row(T, IoType.DELETE, image(str(identity)))


def key_update(old: int, new: int, a: Value = "x", b: Value = "1.5") -> Row:
    return Row(T, IoType.KEY_FIELD_COMP, join_key_update(image(str(old)), image(str(new), a, b)))


def truncate(table: TableDefinition = T) -> Row:
    return Row(table, IoType.PURGE_DATA, b"")


def placed(batch: ChangeBatch, first: int = FIRST_RBA, seqno: int = 0) -> ChangeBatch:
    """The batch as read from a trail, with one byte of the file per row."""
    rba = np.arange(first, first + len(batch), dtype=np.int64)
    return replace(batch, rba=rba, seqno=seqno, end_rba=first + len(batch))


def trail(transactions: Sequence[Tx], rows_a_batch: int = 1 << 30) -> list[ChangeBatch]:
    """A whole trail, in batches that cut transactions wherever they are full."""
    batches: list[ChangeBatch] = []
    current: list[Tx] = []
    first, room = FIRST_RBA, rows_a_batch

    def finish() -> None:
        nonlocal first, room, current
        if current:
            batches.append(placed(make_batch(current), first))
            first += len(batches[-1])
        current, room = [], rows_a_batch

    for csn, rows, *_ in transactions:
        done = 0
        while done < len(rows):
            part = rows[done : done + room]
            current.append(Tx(csn, part, done == 0, done + len(part) == len(rows)))
            done += len(part)
            room -= len(part)
            if not room:
                finish()
    finish()
    return batches


def batches_after(batches: Iterable[ChangeBatch], position: TrailPosition) -> list[ChangeBatch]:
    """What a reader returns from a position on; positions are the begins of transactions."""
    result = []
    for batch in batches:
        first = max(0, position.rba - int(batch.rba[0]))
        if first >= len(batch):
            continue
        pieces = tuple(replace(piece, first=piece.first - first) for piece in batch.pieces if piece.first >= first)
        assert pieces
        assert pieces[0].first == 0, "a position within a transaction"
        result.append(
            replace(
                batch,
                table=batch.table[first:],
                io_type=batch.io_type[first:],
                position=batch.position[first:],
                start=batch.start[first:],
                length=batch.length[first:],
                rba=batch.rba[first:],
                pieces=pieces,
            )
        )
    return result


def workload(seed: int, transactions: int) -> tuple[list[Tx], dict[int, str | None]]:
    """Transactions that a source could have committed, and the resulting rows."""
    rng = random.Random(seed)
    rows: dict[int, str | None] = {}
    made: list[Tx] = []
    for csn in range(1, transactions + 1):
        operations: list[Row] = []
        for number in range(rng.randint(1, 9)):
            value = rng.choice([None, f"{csn}.{number}", "ä\t\\ '\""])
            here, free = sorted(rows), [n for n in range(12) if n not in rows]
            choice = rng.choice(["insert", "insert", "update", "update", "delete", "move", "truncate"])
            if choice == "truncate" and rng.random() < 0.1:
                rows.clear()
                operations.append(truncate())
            elif choice in ("insert", "truncate") and free:
                identity = rng.choice(free)
                rows[identity] = value
                operations.append(insert(identity, value))
            elif choice == "update" and here:
                identity = rng.choice(here)
                rows[identity] = value
                operations.append(rng.choice([update, update_a])(identity, value))
            elif choice == "delete" and here:
                identity = rng.choice(here)
                del rows[identity]
                operations.append(delete(identity))
            elif choice == "move" and here and free:
                old, new = rng.choice(here), rng.choice(free)
                del rows[old]
                rows[new] = value
                operations.append(key_update(old, new, value))
        if operations:
            made.append(Tx(csn, operations))
    return made, rows


class Replicats:
    """Deliveries to one database; ``start`` closes the previous one, as a new process would."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.target: PostgresTarget | None = None

    def start(
        self,
        group: int = 1000,
        *,
        limit: int | None = None,
        discard: DiscardFile | None = None,
        counters: OperationCounters = NO_COUNTERS,
        rules: Sequence[MapRule] = (MapRule("hr.*", "public.*"),),
        truncates: bool = True,
        responses: Responses | None = None,
        ddl: DdlChoices = ALL_AS_THEY_ARE,
        options: SessionOptions = PLAIN_SESSION,
    ) -> Delivery:
        self.close()
        self.target = PostgresTarget(self.dsn, "rep1", "/home", CHECKPOINTS, BEGIN, options=options)
        delivery = Delivery(
            self.target,
            Mapper(rules, self.target.describe),
            group_operations=group,
            max_operations=limit,
            counters=counters,
            discard=discard,
            truncates=truncates,
            responses=responses,
            ddl=ddl,
        )
        delivery.start()
        return delivery

    def close(self) -> None:
        if self.target is not None:
            self.target.close()
            self.target = None
