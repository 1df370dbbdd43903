"""Any execution order of the appliers gives the result of the source order."""

from __future__ import annotations

import random
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from ggshell.pipeline.apply.dependencies import Touched
from ggshell.pipeline.apply.scheduling import Entry, Scheduler
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TrailPosition

Keys = tuple[frozenset[int], frozenset[int]]
"""What a transaction writes and what it reads."""
transactions = st.lists(
    st.tuples(st.frozensets(st.integers(0, 6), max_size=3), st.frozensets(st.integers(0, 6), max_size=2)), max_size=40
)


def entry(number: int) -> Entry:
    return Entry(TransactionHeader(str(number), Csn(number), 0), TrailPosition(0, number), (), 1)


class Ledger:
    """The last writer of each key, and the keys' values that each transaction saw."""

    def __init__(self) -> None:
        self.keys: dict[int, int] = {}
        self.seen: dict[int, dict[int, int | None]] = {}

    def apply(self, number: int, keys: Keys) -> None:
        writes, reads = keys
        self.seen[number] = {key: self.keys.get(key) for key in writes | reads}
        self.keys |= dict.fromkeys(writes, number)


@given(found=transactions, appliers=st.integers(1, 4), seed=st.integers(0, 1000), stretch=st.integers(1, 5))
def test_any_interleaving_gives_the_result_of_the_source_order(
    found: list[Keys], appliers: int, seed: int, stretch: int
) -> None:
    serial, parallel, rng = Ledger(), Ledger(), random.Random(seed)
    for number, keys in enumerate(found):
        serial.apply(number, keys)
    scheduler, queues = Scheduler(appliers), [deque[tuple[int, Entry]]() for _ in range(appliers)]
    coming, waiting = deque(enumerate(found)), list[tuple[int, Entry]]()
    while coming or waiting or any(queues):
        busy = [applier for applier in range(appliers) if queues[applier]]
        if coming and (not busy or rng.random() < 0.6):
            number, (writes, reads) = coming.popleft()
            new = entry(number)
            scheduler.note(new, Touched(set(writes), set(reads)))
            waiting.append((number, new))
        elif busy:
            number, done = queues[rng.choice(busy)].popleft()
            parallel.apply(number, found[number])
            scheduler.complete(done)
        still = []
        for number, each in waiting:
            applier = scheduler.choose(each, stretch)
            if applier is None:
                still.append((number, each))
            else:
                scheduler.dispatch(each, applier)
                queues[applier].append((number, each))
        assert len(still) < len(waiting) or any(queues) or not waiting
        waiting = still
    assert parallel.keys == serial.keys
    assert parallel.seen == serial.seen


def test_independent_neighbors_go_to_one_applier_together_then_to_the_next() -> None:
    scheduler = Scheduler(2)
    chosen = []
    for number in range(8):
        new = entry(number)
        scheduler.note(new, Touched({number}))
        applier = scheduler.choose(new, 2)
        assert applier is not None
        scheduler.dispatch(new, applier)
        chosen.append(applier)
    assert chosen == [0, 0, 1, 1, 0, 0, 1, 1]


def test_a_transaction_that_depends_on_two_appliers_waits_for_one_of_them() -> None:
    scheduler = Scheduler(2)
    first, second, third = entry(1), entry(2), entry(3)
    for new, keys, applier in ((first, {1}, 0), (second, {2}, 1)):
        scheduler.note(new, Touched(keys))
        scheduler.dispatch(new, applier)
    scheduler.note(third, Touched({1, 2}))
    assert scheduler.choose(third) is None
    scheduler.complete(first)
    assert scheduler.choose(third) == 1
