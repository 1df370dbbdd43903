"""Positions that do not match their CSN are recognized, also in a trail that was written again with different file sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from amounts import examples
from batches import Row, Tx, make_batch
from hypothesis import given, settings
from hypothesis import strategies as st
from trail_kit import A, open_writer

from ggshell.errors import TrailError
from ggshell.record.operation import IoType
from ggshell.trail import misplaced as module
from ggshell.trail.misplaced import misplaced, require_placed
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=30)
REMEDY = "ALTER REPLICAT r, EXTSEQNO {seqno}, EXTRBA {rba}"


def written(
    root: Path, rows: list[int], session: int, size: int
) -> tuple[TrailName, list[TrailPosition], list[TrailPosition]]:
    """A trail of transactions with CSN 1, 2, 3 … and the given numbers of rows; the writer restarts every ``session``
    transactions. Also where each transaction begins and ends."""
    name = TrailName(root, "ea")
    begins, ends = [], []
    for first in range(0, len(rows), session):
        writer = open_writer(name, size)
        for csn, count in enumerate(rows[first : first + session], first + 1):
            begins.append(writer.flush())
            writer.write(make_batch([Tx(csn, [Row(A, IoType.INSERT, b"x" * 40)] * count)]))
            ends.append(writer.flush())
        writer.close()
    return name, begins, ends


@settings(max_examples=examples(40))
@given(
    rows=SIZES, session=st.integers(1, 40), size=st.sampled_from([2000, 1 << 30]), probe=st.sampled_from([100, 1 << 17])
)
def test_the_position_after_each_transaction_matches_its_csn(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], session: int, size: int, probe: int
) -> None:
    name, _, ends = written(tmp_path_factory.mktemp("trail"), rows, session, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PROBE", probe)
        for csn, place in enumerate(ends, 1):
            assert misplaced(name, place, Csn(csn)) is None
            assert misplaced(name, place, Csn(csn + 5)) is None


@settings(max_examples=examples(40))
@given(rows=SIZES, size=st.sampled_from([2000, 1 << 30]), probe=st.sampled_from([100, 1 << 17]), data=st.data())
def test_a_position_after_a_later_csn_is_reported_with_the_position_to_continue_from(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], size: int, probe: int, data: st.DataObject
) -> None:
    name, begins, ends = written(tmp_path_factory.mktemp("trail"), rows, 40, size)
    before = data.draw(st.integers(1, len(rows)))
    csn = data.draw(st.integers(0, before - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PROBE", probe)
        found = misplaced(name, ends[before - 1], Csn(csn))
    assert found is not None
    assert found.before == Csn(before)
    assert found.resume <= begins[csn]


@settings(max_examples=examples(40))
@given(rows=SIZES, more=st.integers(1, 40), data=st.data())
def test_a_position_within_a_record_is_reported(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], more: int, data: st.DataObject
) -> None:
    name, begins, _ = written(tmp_path_factory.mktemp("trail"), rows, 40, 1 << 30)
    which = data.draw(st.integers(0, len(rows) - 1))
    within = begins[which]._replace(rba=begins[which].rba + more)
    found = misplaced(name, within, Csn(which))
    assert found is not None
    assert found.before is None
    assert (begins[which - 1] if which else TrailPosition(0, 0)) <= found.resume <= begins[which]


def test_a_damaged_record_at_the_position_is_left_to_the_reader(tmp_path: Path) -> None:
    name, begins, _ = written(tmp_path, [1, 1, 1], 40, 1 << 30)
    content = bytearray(name.file(0).read_bytes())
    content[begins[1].rba] ^= 0xFF
    name.file(0).write_bytes(content)
    assert misplaced(name, begins[1], Csn(1)) is None


def test_the_error_names_the_statement_that_repositions_the_group(tmp_path: Path) -> None:
    name, begins, ends = written(tmp_path, [1, 1, 1], 40, 1 << 30)
    require_placed(name, ends[1], Csn(2), "REPLICAT R", REMEDY)
    require_placed(name, ends[1], None, "REPLICAT R", REMEDY)
    with pytest.raises(TrailError, match="is after CSN 00000000/00000003") as raised:
        require_placed(name, ends[2], Csn(2), "REPLICAT R", REMEDY)
    assert raised.value.code == "GGS-00565"
    assert raised.value.hint == f"ALTER REPLICAT r, EXTSEQNO 0, EXTRBA {begins[1].rba}"
    with pytest.raises(TrailError, match="is not the beginning of a record"):
        require_placed(name, begins[2]._replace(rba=begins[2].rba + 1), Csn(2), "REPLICAT R", REMEDY)
