"""Watermarks: a restart skips exactly the transactions that were applied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ggshell.pipeline.apply.scheduling import Entry
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.pipeline.apply.watermarks import AppliedWatermarks, WatermarkState
from ggshell.record.transaction import TransactionHeader
from ggshell.types import Csn, TrailPosition

START = CheckpointRow(TrailPosition(0, 0), None)


def entry(csn: int) -> Entry:
    return Entry(TransactionHeader(f"x{csn}", Csn(csn), csn), TrailPosition(0, csn * 10), (), 1)


def skipped(state: WatermarkState, csn: int) -> bool:
    """Whether a restart from these watermarks skips a transaction."""
    low = state.low.csn
    return (low is not None and Csn(csn) < low) or f"x{csn}" in state.applied


@given(order=st.permutations(range(1, 12)), stop=st.integers(0, 11))
def test_a_restart_skips_exactly_the_applied_transactions(order: list[int], stop: int) -> None:
    watermarks = AppliedWatermarks(START)
    entries = {csn: entry(csn) for csn in range(1, 12)}
    for each in entries.values():
        watermarks.add(each)
    for number, csn in enumerate(order[:stop]):
        for done in watermarks.take([f"x{csn}"], [number]):
            done.done = True
        watermarks.advance()
    found = watermarks.state()
    assert {csn for csn in entries if skipped(found, csn)} == set(order[:stop])
    assert found.high == ((Csn(max(order[:stop])), f"x{max(order[:stop])}") if stop else (None, ""))
    lowest = min(set(entries) - set(order[:stop]), default=12)
    assert found.low.position.rba == 10 * (lowest - 1)


@given(order=st.permutations(range(1, 9)), stop=st.integers(0, 8), rest=st.permutations(range(1, 9)))
def test_two_runs_end_where_one_run_would(order: list[int], stop: int, rest: list[int]) -> None:
    first = AppliedWatermarks(START)
    for csn in range(1, 9):
        first.add(entry(csn))
    for number, csn in enumerate(order[:stop]):
        for done in first.take([f"x{csn}"], [number]):
            done.done = True
    first.advance()
    left = first.state()
    above = [f"x{csn}" for csn in order[:stop] if not (left.low.csn is not None and Csn(csn) <= left.low.csn)]
    rows = [order[:stop].index(int(xid[1:])) for xid in above]
    second = AppliedWatermarks(left.low, above, rows)
    begin = left.low.csn.value + 1 if left.low.csn is not None else 1
    for csn in range(begin, 9):
        assert second.knows(f"x{csn}") is (f"x{csn}" in above)
        second.add(entry(csn))
    for number, csn in enumerate(rest):
        if csn >= begin and f"x{csn}" not in above:
            for done in second.take([f"x{csn}"], [100 + number]):
                done.done = True
    second.advance()
    found = second.state()
    assert found.low.csn == Csn(8)
    assert found.applied == ("x8",)
    assert set(rows) <= set(found.finished)


def test_a_row_that_names_several_transactions_is_removed_when_all_are_below_the_mark() -> None:
    watermarks = AppliedWatermarks(START)
    for csn in (1, 2, 3):
        watermarks.add(entry(csn))
    for done in watermarks.take(["x1", "x3"], [7, 8]):
        done.done = True
    watermarks.advance()
    assert watermarks.state().finished == ()
    for done in watermarks.take(["x2"], [9]):
        done.done = True
    watermarks.advance()
    assert sorted(watermarks.state().finished) == [7, 8, 9]
