"""Searching a trail for a CSN or a time finds the same position as reading the whole trail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from amounts import examples
from batches import Row, Tx, make_batch
from hypothesis import given, settings
from hypothesis import strategies as st
from trail_kit import A, cut_records, mark_file, open_writer, small, write_trail

from ggshell.record.operation import IoType
from ggshell.trail import finding
from ggshell.trail.finding import last_csn, position_of_csn, position_of_time, transactions_of
from ggshell.trail.name import TrailName
from ggshell.trail.positions import first_since
from ggshell.trail.record import decode_record
from ggshell.types import Csn, TrailPosition

TIME = 1_700_000_000_000_000


def transaction_begins(name: TrailName) -> list[tuple[TrailPosition, int]]:
    """The begin of every transaction and its CSN, record by record."""
    found = []
    for seqno in name.sequences():
        for place, data in cut_records(name.file(seqno).read_bytes()):
            csn = decode_record(data).tokens.get("L")
            if csn:
                found.append((TrailPosition(seqno, place), Csn.parse(csn.decode()).value))
    return found


@settings(max_examples=examples(60))
@given(
    csns=st.lists(st.integers(1, 400), min_size=1, max_size=60, unique=True).map(sorted),
    wanted=st.integers(0, 410),
    size=st.sampled_from([300, 2000, 1 << 30]),
    close=st.sampled_from([100, 1 << 20]),
)
def test_a_search_finds_the_first_matching_transaction(
    tmp_path_factory: pytest.TempPathFactory, csns: list[int], wanted: int, size: int, close: int
) -> None:
    name = TrailName(tmp_path_factory.mktemp("trail"), "ea")
    changes = [Row(A, IoType.INSERT, b"x" * 40)] * 3
    write_trail(name, [make_batch([Tx(csn, changes)]) for csn in csns], size)
    every = transaction_begins(name)
    expected = next((place for place, csn in every if csn >= wanted), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "_CLOSE", close)
        assert position_of_csn(name, Csn(wanted)) == expected
        assert position_of_time(name, TIME + wanted * 1000) == expected
        patch.setattr(finding, "_PROBE", close)
        assert last_csn(name) == Csn(csns[-1])


def test_a_search_skips_damage(tmp_path_factory: pytest.TempPathFactory) -> None:
    name = TrailName(tmp_path_factory.mktemp("trail"), "ea")
    write_trail(name, [make_batch([Tx(csn, [Row(A, IoType.INSERT, b"x" * 40)])]) for csn in range(1, 50)])
    every = transaction_begins(name)
    content = bytearray(name.file(0).read_bytes())
    content[every[10][0].rba] ^= 0xFF
    name.file(0).write_bytes(content)
    assert position_of_csn(name, Csn(11)) == every[11][0]
    assert position_of_csn(name, Csn(30)) == every[29][0]
    assert position_of_csn(name, Csn(99)) is None


def test_a_search_finds_no_transaction_that_is_not_durable(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    writer.write(small(1))
    durable = writer.flush()
    mark = mark_file(name).read_bytes()
    writer.write(small(2))
    writer.flush()
    writer.close()
    assert position_of_csn(name, Csn(2)) == durable
    mark_file(name).write_bytes(mark)
    assert position_of_csn(name, Csn(1)) is not None
    assert position_of_csn(name, Csn(2)) is None
    assert first_since(name, small(2).pieces[0].header.commit_time) == durable


def test_transactions_of_the_last_csn_are_found_across_files(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name)
    for csn, number in [(1, 0), (2, 1), (2, 2), (2, 3), (2, 4)]:
        batch = make_batch([Tx(csn, [Row(A, IoType.INSERT, b"")])])
        header = batch.pieces[0].header._replace(xid=f"1.1.{number}")
        writer.write(replace(batch, pieces=(replace(batch.pieces[0], header=header),)))
        if number in (1, 3, 4):
            writer.rollover()
    writer.flush()
    writer.close()
    assert transactions_of(name, Csn(2)) == {f"1.1.{number}" for number in (1, 2, 3, 4)}
    assert transactions_of(name, Csn(3)) == frozenset()


def test_a_last_transaction_that_began_in_an_earlier_file_is_found(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    writer = open_writer(name, max_bytes=1000)
    writer.write(small(1))
    for number in range(4):
        writer.write(small(2, 20, 90, begins=number == 0, ends=number == 3))
    writer.flush()
    writer.close()
    assert len(name.sequences()) > 2
    assert transactions_of(name, Csn(2)) == {small(2).pieces[0].header.xid}
