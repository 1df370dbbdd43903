"""Any history of transactions, decisions, checkpoints and crashes gives each committed transaction once, in commit order."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from amounts import examples
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pipeline.capture.crashing_disk import Crash
from pipeline.capture.list_log import Entry
from pipeline.capture.small_extract import Machine, SmallExtract, crash, expected

from ggshell.pipeline.capture import stream
from ggshell.pipeline.capture.decisions import Action

SECOND = 1_000_000
INTERVAL = 1200
STEP = INTERVAL // 6
LATE = 6 * STEP
"""A checkpoint is made after the rows read have been delivered: at most two reads of three records later."""


class Order(NamedTuple):
    """The next action, and after how many steps of disk, trail or checkpoint something fails (None: nothing does)."""

    kind: str
    number: int
    breaks: int | None


def random_log(seed: int, size: int) -> list[Entry]:
    """Transactions that begin, change, commit and roll back in random order; some stay open."""
    found: list[Entry] = []
    open_now: list[int] = []
    alive: dict[int, int] = {}
    time, csn, latest = 1_000_000 * SECOND, 100, 0
    dice = random.Random(seed)
    for number in range(size):
        kind = dice.choice("BBCCCCUKKR")
        time += dice.randint(0, STEP) * SECOND
        csn += dice.randint(0, 2)
        position = 10 * number + 1
        if kind == "B" or not open_now:
            latest += 1
            open_now.append(latest)
            found.append(Entry(position, time, "B", latest, csn))
            continue
        last = len(open_now) - 1
        xid = open_now[max(dice.randint(0, last) for _ in range(3 if kind in "KR" else 1))]  # Old ones live long.
        alive[xid] = alive.get(xid, 0) + {"C": 1, "U": -1}.get(kind, 0)
        if alive[xid] < 0:
            kind, alive[xid] = "C", 1
        if kind in "KR":
            open_now.remove(xid)
            csn += 1
        found.append(Entry(position, time, kind, xid, csn, b"%04d of %d " % (number, xid)))
    return found


def random_orders(seed: int, size: int) -> list[Order]:
    """What happens meanwhile."""
    dice = random.Random(seed)
    kinds = ["turn"] * 6 + ["save", "checkpoint", "skip", "force", "kill", "kill"]
    return [
        Order(dice.choice(kinds), dice.randint(0, 5), dice.choice([None, dice.randint(0, 25)])) for _ in range(size)
    ]


logs = st.builds(random_log, st.integers(0, 1 << 64), st.integers(5, 120))
order_lists = st.builds(random_orders, st.integers(0, 1 << 64), st.integers(0, 40))


def carry_out(extract: SmallExtract, order: Order) -> None:
    if order.kind == "turn":
        for _ in range(order.number + 1):
            extract.turn()
    elif order.kind == "save":
        extract.save()
    elif order.kind == "checkpoint" and extract.capture.handed_out:
        extract.checkpoint()
    elif order.kind == "skip":
        extract.decide(Action.SKIP, order.number)
    elif order.kind == "force":
        extract.decide(Action.FORCE, order.number)
    elif order.kind == "kill":
        raise Crash


def restart(machine: Machine) -> SmallExtract:
    """Restart, and check that no more than two intervals of log are read again."""
    extract = SmallExtract(machine)
    event(extract.started.kind)
    first = next((e for e in machine.log if e.position >= extract.started.position), None)
    if first is not None and not machine.fuse.error:
        assert machine.reached - first.time <= (2 * INTERVAL + LATE) * SECOND
    return extract


def run(machine: Machine, orders: list[Order], *, error: bool = False) -> None:
    """Carry out the orders with their failures, then run undisturbed to the end of the log."""
    machine.fuse.error = error
    extract = restart(machine)
    for number, order in enumerate(orders):
        machine.fuse.left = order.breaks
        try:
            carry_out(extract, order)
        except Crash:
            machine.fuse.left = None
            crash(machine, number)
            extract = restart(machine)
        machine.fuse.left = None
    while extract.turn():
        pass
    extract.save()


def check(machine: Machine) -> None:
    assert machine.trail == expected(machine.log, machine.made)


@settings(max_examples=examples(400), suppress_health_check=list(HealthCheck))
@given(log=logs, orders=order_lists)
@pytest.mark.slow
def test_the_trail_contains_each_committed_transaction_once_in_order(log: list[Entry], orders: list[Order]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(stream, "BATCH_MESSAGES", 4),
        mock.patch.object(stream, "PIECE_MESSAGES", 2),
    ):
        machine = Machine(Path(folder), log=log, interval=INTERVAL)
        run(machine, orders)
        check(machine)


@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(log=logs, orders=order_lists)
def test_a_failing_disk_loses_no_rows(log: list[Entry], orders: list[Order]) -> None:
    """A checkpoint that cannot be written is skipped; the previous one stays valid, and no row is lost."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), log=log, interval=INTERVAL, purge=False)
        run(machine, orders, error=True)
        check(machine)
