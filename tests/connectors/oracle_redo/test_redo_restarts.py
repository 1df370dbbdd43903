"""After a crash at any point of any interleaving, a restart returns each committed transaction once, in commit order."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from amounts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redo_reading import BEGINNING, Read, capturing, collect

from ggshell.connectors.oracle_redo.definitions import Definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import RedoLog
from ggshell.demo.redo_writer import OpenXid, RedoWriter
from ggshell.pipeline.capture.cache import Committed
from ggshell.pipeline.capture.source import MessageRun
from ggshell.types import LogPosition

_NUMBERS = itertools.count()
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["begin", "insert", "insert", "insert", "back", "commit", "rollback", "roll", "hold", "look", "crash"]
        ),
        st.integers(0, 5),
    ),
    min_size=5,
    max_size=60,
)


class Model:
    """A log that is written step by step, and what a correct reader finds in it."""

    def __init__(self, folder: Path) -> None:
        self.writer = RedoWriter(folder, segment_bytes=1500)
        self.open: list[tuple[OpenXid, list[str]]] = []
        self.expected: list[tuple[int, str]] = []
        self._ids = 0

    def step(self, what: str, which: int) -> None:
        if what == "begin" or not self.open:
            if what != "roll":
                self.open.append((self.writer.begin(), []))
            return
        if what == "roll":
            self.writer.roll()
            return
        xid, rows = self.open[which % len(self.open)]
        if what == "insert":
            self._ids += 1
            self.writer.insert(xid, "ITEMS", {"ID": str(self._ids)})
            rows.append(str(self._ids))
        elif what == "back" and rows:
            self.writer.take_back(xid)
            rows.pop()
        elif what in ("commit", "hold"):
            self.open.remove((xid, rows))
            # With ``hold``, two commits have the same SCN.
            scn = self.writer.commit(xid)
            self.expected += [(scn, row) for row in rows]
            if what == "hold" and self.open:
                self.writer.hold = True
                other, others = self.open.pop()
                self.expected += [(self.writer.commit(other), row) for row in others]
                self.writer.hold = False
        elif what == "rollback":
            self.open.remove((xid, rows))
            self.writer.rollback(xid)


def found(rows: list[Read]) -> list[tuple[int, str]]:
    return [(row.csn, (row.after["id"] or b"").decode()) for row in rows]


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
@pytest.mark.slow
def test_a_restart_at_any_point_returns_everything_once(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    model = Model(tmp_path / str(next(_NUMBERS)))
    trail: list[tuple[int, str]] = []
    seen: list[tuple[int, str]] = []
    start = BEGINNING
    reading = capturing(model.writer.folder, start=start)
    capture, log = reading.__enter__()
    for what, which in [*steps, ("crash", 0)]:
        if what not in ("look", "crash"):
            model.step(what, which)
            continue
        model.writer.flush()
        rows = collect(capture)
        seen += [(row.csn, row.xid) for row in rows]
        trail += found(rows)
        if what == "crash":
            # The checkpoint may be older than the content of the trail.
            state = capture.state
            reading.__exit__(None, None, None)
            if which % 2 == 0:
                start = log.position(state.safe)
                assert start.csn == state.safe
                _delete_before(model.writer.folder, start)
            after = trail[-1][0] if trail else 0
            # The trail has these transactions of the last CSN; others may still commit with that SCN.
            done = frozenset(xid for csn, xid in seen if csn == after)
            reading = capturing(model.writer.folder, start=start, after=after, xids=done)
            capture, log = reading.__enter__()
    trail += found(collect(capture))
    reading.__exit__(None, None, None)
    model.writer.close()
    assert trail == model.expected


def _delete_before(folder: Path, start: LogPosition) -> None:
    """Segments before the restart position may be deleted."""
    for path in folder.glob("redo_1_*"):
        if int(path.stem.split("_")[2]) < start.sequence:
            path.unlink()


def test_rows_that_were_restored_after_a_restart_are_not_captured_again(tmp_path: Path) -> None:
    """As in Bounded Recovery: rows up to a cursor are restored, and the log is read from an earlier position."""
    writer = RedoWriter(tmp_path / "log")
    xid, other = writer.begin(), writer.begin()
    for number in range(10):
        writer.hold = number % 3 == 0
        writer.insert(xid, "ITEMS", {"ID": str(number)})
    writer.hold = False
    writer.flush()
    with capturing(writer.folder) as (capture, log):
        assert collect(capture) == []
        kept, cursor = capture.cache.open[xid.value], log.cursor
        begin = log.begin_of(kept)
        for number in range(10, 13):
            writer.insert(xid, "ITEMS", {"ID": str(number)})
        writer.take_back(xid, 4)
        writer.commit(other)
        writer.commit(xid)
        writer.flush()
        again = RedoLog(
            open_rows(f"redo://{writer.folder}", begin),
            begin,
            lambda _: True,
            Definitions({}, lambda _: ("id",)),
            lambda code, text: None,
        )
        again.resume(xid.value, begin)
        kept.limit(held=cursor)
        cache = capture.cache
        committed = again.feed(cache, 1000)
        again.close()
        found = [item for item in committed if item.header.xid == xid.text]
        (batch,) = [again.encode([_run(item) for item in found])]
        assert batch is not None
        assert len(batch) == 9


def _run(item: Committed) -> MessageRun:
    ((chunk, parts),) = list(item.transaction.runs(1000))
    return MessageRun(item.header, chunk, parts, begins=True, ends=True)
