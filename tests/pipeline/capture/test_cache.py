"""The cache of open transactions: its totals agree with the single transactions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ggshell.pipeline.capture.cache import OpenTransaction, TransactionCache
from ggshell.pipeline.capture.decisions import Action, Decision
from ggshell.pipeline.capture.messages import Messages

ACTIONS = {"skip": Action.SKIP, "force": Action.FORCE}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "end", "skip", "force", "take", "clear"]), st.integers(1, 6), st.integers(1, 100)
    ),
    max_size=60,
)


@given(STEPS)
def test_the_oldest_transaction_is_the_one_that_began_first_after_any_decisions(
    steps: list[tuple[str, int, int]],
) -> None:
    cache = TransactionCache(1 << 20, Path())
    for what, xid, begin in steps:
        if what == "begin":
            cache.begin(xid, begin, 0)
        elif what == "end":
            cache.end(xid)
        elif what == "clear":
            cache.clear()
        elif what == "take":
            for decision in cache.undone():
                cache.take_forced(decision)
        elif xid in cache.open:
            cache.decide(Decision(ACTIONS[what], xid, f"0.0.{xid}", cache.open[xid].begin, (begin, 0)))
        found = cache.oldest()
        wanted = min((item.begin for item in cache.unfinished()), default=None)
        assert (found.begin if isinstance(found, OpenTransaction) else None) == wanted


def test_a_spill_frees_room_for_many_messages_largest_transactions_first(tmp_path: Path) -> None:
    cache = TransactionCache(400_000, tmp_path)
    for number in range(1000):
        transaction = cache.begin(number, number, 0)
        data = bytes(1000 + number)
        part = Messages(data, np.array([0, len(data)], dtype=np.int64))
        cache.add(transaction, transaction.chunk(None, streamed=False), part)
    facts = cache.facts()
    assert facts["used"] <= facts["limit"]
    searches = facts["spilled"] / (facts["limit"] / 4)
    assert facts["spills"] / searches > 50, "one search for the largest transactions frees room for many messages"
    smallest = min(item.size for item in cache.open.values() if item.size)
    assert smallest == cache.open[0].size, "the small ones stay in memory"
    cache.clear()
