"""Rows, segments, threads and definitions: what the exporter may write, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redo_reading import capturing, collect, read_all

from ggshell.connectors.oracle_redo.definitions import folded, read_definitions
from ggshell.connectors.oracle_redo.rows import Operation, decode_rows, format_xid, parse_xid
from ggshell.connectors.oracle_redo.segments import find_segment, list_segments, scn_of, seek
from ggshell.demo.redo_workload import Workload, WorkloadShape, redo_writers, write_definitions
from ggshell.demo.redo_writer import RedoChange, RedoWriter
from ggshell.errors import CaptureError, ParameterError
from ggshell.record.operation import IoType
from ggshell.types import LogPosition, TableName


def line(**fields: Any) -> bytes:
    return json.dumps({"SCN": 5, "XIDUSN": 10, "XIDSLT": 31, "XIDSQN": 1234, **fields}).encode()


def test_equivalent_columns_may_replace_each_other() -> None:
    one, two, three = decode_rows(
        b"\n".join(
            [
                line(OPERATION_CODE=1, TIMESTAMP="2026-11-20 08:00:00", RBASQN=3, RBABLK=2, RBABYTE=16),
                b'{"SCN":"5","XID":"0A001F00D2040000","OPERATION":"INSERT","TIMESTAMP":"2026-11-20T10:00:00+02:00"}',
                b"",
                line(OPERATION="NEVER SEEN", CSF="1", ROLLBACK=None),
            ]
        ),
        1,
        7,
        "here",
    )
    assert one.xid == two.xid == parse_xid("10.31.1234")
    assert format_xid(one.xid) == "10.31.1234"
    assert one.time == two.time
    assert (one.operation, two.operation, three.operation) == (
        Operation.INSERT,
        Operation.INSERT,
        Operation.UNSUPPORTED,
    )
    assert (one.place, two.place) == (3 << 32 | 1040, 7 << 32)
    assert (three.parts, three.rollback) == (True, False)


@pytest.mark.parametrize(
    "wrong", [b"{", b"[1]", b'{"SCN":"x"}', b'{"OPERATION_CODE":1}', line(OPERATION_CODE="x"), b"[" * 50_000]
)
def test_an_invalid_row_is_named(wrong: bytes) -> None:
    with pytest.raises(CaptureError, match=r"not a valid row of V\$LOGMNR_CONTENTS.*here"):
        decode_rows(line(OPERATION_CODE=7) + b"\n" + wrong, 1, 1, "here")


def test_long_statements_continue_in_the_next_row(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log")
    xid = writer.begin()
    long = "it's " * 3000
    row_id = writer.insert(xid, "ITEMS", {"ID": "1", "NAME": long})
    writer.update(xid, "ITEMS", row_id, {"ID": "1", "NAME": long}, {"NAME": "short"})
    writer.commit(xid)
    writer.flush()
    assert writer.rows > 8
    first, second = read_all(writer.folder)
    assert first.after == {"id": b"1", "name": long.encode()}
    assert second.after == {"id": b"1", "name": b"short"}


def test_a_missing_continuation_is_refused(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log")
    xid = writer.begin()
    writer.insert(xid, "ITEMS", {"ID": "1", "NAME": "x" * 9000})
    writer.commit(xid)
    writer.close()
    lines = writer.path.read_bytes().splitlines(keepends=True)
    writer.path.write_bytes(b"".join([*lines[:2], *lines[4:]]))
    with pytest.raises(CaptureError, match="rest of a row at SCN 1002 is missing"):
        read_all(writer.folder)


def test_a_row_that_is_identified_only_by_its_address_takes_its_columns_from_the_undo(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log")
    xid = writer.begin()
    redo, undo = (
        'delete from "SHOP"."ITEMS" where ROWID = \'A\';',
        'insert into "SHOP"."ITEMS"("ID","NAME") values (\'7\',\'n\');',
    )
    writer.change(xid, RedoChange("DELETE", "ITEMS", "A", redo, undo))
    redo = 'update "SHOP"."ITEMS" set "NAME" = \'m\', "ID" = \'9\' where ROWID = \'A\';'
    undo = 'update "SHOP"."ITEMS" set "NAME" = \'n\', "ID" = \'8\' where ROWID = \'A\';'
    writer.change(xid, RedoChange("UPDATE", "ITEMS", "A", redo, undo))
    lost = 'update "SHOP"."ITEMS" set "NAME" = \'m\' where ROWID = \'B\';'
    writer.change(xid, RedoChange("UPDATE", "ITEMS", "B", lost, lost))
    writer.commit(xid)
    writer.flush()
    messages: list[tuple[str, str]] = []
    deleted, updated = read_all(writer.folder, messages=messages)
    assert (deleted.io_type, deleted.after) == (IoType.DELETE, {"id": b"7"})
    assert (updated.io_type, updated.before) == (IoType.KEY_FIELD_COMP, {"id": b"8"})
    assert updated.after == {"id": b"9", "name": b"m"}
    assert [code for code, _ in messages] == ["GGS-00531"]
    assert "its key is not logged" in messages[0][1]


def test_ddl_discards_the_learned_columns_and_truncate_is_captured(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log")
    one = writer.begin()
    writer.insert(one, "ITEMS", {"ID": "1", "OLD": "o"})
    writer.commit(one)
    writer.ddl("ITEMS", "alter table items drop column old")
    two = writer.begin()
    writer.insert(two, "ITEMS", {"ID": "2", "NEW": "n"})
    writer.commit(two)
    writer.ddl("ITEMS", "TRUNCATE TABLE items")
    writer.flush()
    messages: list[tuple[str, str]] = []
    rows = read_all(writer.folder, messages=messages)
    assert [(row.io_type, row.after) for row in rows] == [
        (IoType.INSERT, {"id": b"1", "old": b"o"}),
        (IoType.INSERT, {"id": b"2", "new": b"n"}),
        (IoType.PURGE_DATA, {}),
    ]
    assert [text for _, text in messages] == [
        "shop.items: DDL is not replicated: ALTER TABLE ITEMS. Such rows are counted, but not captured."
    ]


@given(st.text(min_size=1, max_size=12))
def test_names_are_folded_and_restored(name: str) -> None:
    assert folded(folded(name)) == name
    assert folded("SHOP_1") == "shop_1"
    assert folded("Mixed") == "Mixed"


def test_a_definitions_file_has_types_and_keys(tmp_path: Path) -> None:
    tables = read_definitions(write_definitions(tmp_path))
    found = tables[TableName("shop", "orders")]
    assert [column.name for column in found.columns][:2] == ["order_id", "customer_id"]
    assert [column.type_name for column in found.columns] == [
        "NUMBER",
        "NUMBER",
        "VARCHAR2(12)",
        "NUMBER",
        "TIMESTAMP",
        "VARCHAR2(100)",
    ]
    assert found.key == (0,)
    broken = tmp_path / "broken.def"
    broken.write_text("Definition for table SHOP.X\nColumns: 1\nID 64\nEnd of definition\n")
    with pytest.raises(ParameterError, match="is not a valid column definition"):
        read_definitions(broken)


def test_a_column_missing_in_the_definitions_file_ends_capture(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log")
    xid = writer.begin()
    writer.insert(xid, "ORDERS", {"ORDER_ID": "1", "BRAND_NEW": "x"})
    writer.commit(xid)
    writer.flush()
    with pytest.raises(CaptureError, match=r"shop\.orders has no column BRAND_NEW"):
        read_all(writer.folder, given=read_definitions(write_definitions(tmp_path)))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(0, 32))
def test_a_position_is_found_by_binary_search(
    tmp_path_factory: pytest.TempPathFactory, scns: list[int], wanted: int
) -> None:
    folder = tmp_path_factory.mktemp("halves")
    scns.sort()
    content = b"".join(b'{"SCN":%d,"X":"%s"}\n' % (scn, b"x" * (scn % 7)) for scn in scns)
    path = folder / "redo_1_1.jsonl"
    path.write_bytes(content)
    with path.open("rb") as file:
        seek(file, len(content), wanted)
        left = [scn_of(text) for text in file]
    assert left == [scn for scn in scns if scn >= wanted]
    found = find_segment(list_segments(folder)[1], wanted)
    assert found is not None
    assert found.number == 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("packed", [True, False])
def test_a_workload_gives_the_expected_rows(tmp_path: Path, threads: int, packed: bool) -> None:
    """The trail, applied to empty tables, gives the rows of the transactions, and commits are in the order of their SCN."""
    folder = tmp_path / "log"
    model: dict[str, dict[str, str | None]] = {}
    commits: list[int] = []

    def committed(scn: int, rows: dict[int, dict[str, str | None] | None]) -> None:
        commits.append(scn)
        for order, row in rows.items():
            model.pop(str(order), None)
            if row is not None:
                model[str(order)] = row

    shape = WorkloadShape(
        span=20, rate=40, rollbacks=0.1, statement_rollbacks=0.3, long_share=0.05, long_seconds=10, seed=3
    )
    writers = list(redo_writers(folder, threads, segment_bytes=200_000, packed=packed))
    made = Workload(shape, writers, committed).run()
    assert made.rolled_back > 10
    # A thread without later rows delays the others: each thread records how far it has advanced.
    scn = max(writer.scn for writer in writers)
    for writer in writers:
        writer.scn = scn
        writer.commit(writer.begin(10**6 + writer.thread))
        writer.flush()
    rows = read_all(folder, given=read_definitions(write_definitions(tmp_path)), keys=())
    assert [row.csn for row in rows] == sorted(row.csn for row in rows)
    assert {row.csn for row in rows} <= set(commits)
    state: dict[bytes | None, dict[str, bytes | None]] = {}
    for row in rows:
        key = row.after["order_id"]
        if row.io_type == IoType.DELETE:
            del state[key]
        elif row.io_type == IoType.INSERT:
            assert key not in state
            state[key] = row.after
        else:
            state[key] |= row.after
    assert {key.decode() for key in state if key} == set(model)
    for key, found in state.items():
        wanted = {name.lower(): value for name, value in model[(key or b"").decode()].items()}
        wanted["created"] = "2026-11-20 08:00:00"
        assert {name: None if value is None else value.decode() for name, value in found.items()} == wanted


def test_an_idle_thread_delays_only_rows_that_may_follow_its_own(tmp_path: Path) -> None:
    one, two = redo_writers(tmp_path, 2)
    first = one.begin()
    one.insert(first, "ITEMS", {"ID": "1"})
    two.scn = one.scn + 10
    second = two.begin(77)
    two.insert(second, "ITEMS", {"ID": "2"})
    one.commit(first)
    one.flush()
    two.flush()
    with capturing(tmp_path) as (capture, log):
        assert [row.after["id"] for row in collect(capture)] == [b"1"]
        two.commit(second)
        two.flush()
        assert collect(capture) == []
        assert log.state.read == one.scn
        assert log.waiting == (two.scn - 2, 1, one.scn)
        one.scn = two.scn
        one.commit(one.begin(78))
        one.flush()
        assert [row.after["id"] for row in collect(capture)] == [b"2"]


def test_every_thread_must_reach_back_to_the_start(tmp_path: Path) -> None:
    writers = list(redo_writers(tmp_path, 2, segment_bytes=2000))
    Workload(WorkloadShape(span=2, rate=20), writers).run()
    start = LogPosition(1, 0, 1005, 1)
    second = sorted(tmp_path.glob("redo_2_*"))
    with capturing(tmp_path, start=start):
        second[0].unlink()
        second[1].unlink()
    with pytest.raises(
        CaptureError, match="redo of thread 2 from SCN 1005 is no longer available: the oldest segment is 3"
    ):
        read_all(tmp_path, start=start)


def test_a_thread_that_is_opened_later_is_read(tmp_path: Path) -> None:
    one = RedoWriter(tmp_path)
    first = one.begin(1)
    one.insert(first, "ITEMS", {"ID": "1"})
    one.commit(first)
    one.flush()
    with capturing(tmp_path, start=LogPosition(1, 0, 1001, 1)) as (capture, _):
        assert [row.after["id"] for row in collect(capture)] == [b"1"]
        two = RedoWriter(tmp_path, thread=2, segment=57, scn=one.scn + 100)
        second = two.begin(2)
        two.insert(second, "ITEMS", {"ID": "2"})
        two.commit(second)
        two.flush()
        one.scn = two.scn + 1
        one.begin(3)
        one.flush()
        assert [row.after["id"] for row in collect(capture)] == [b"2"]


def test_a_thread_that_is_opened_while_another_has_much_to_read_is_read_in_order(tmp_path: Path) -> None:
    """Regression: it was found after the end of the other thread, so a restart skipped its rows."""
    one = RedoWriter(tmp_path)
    for number in range(1, 3000):
        xid = one.begin(number)
        one.insert(xid, "ITEMS", {"ID": str(number)})
        one.commit(xid)
    one.flush()
    with capturing(tmp_path) as (capture, _):
        assert capture.read() is not None
        two = RedoWriter(tmp_path, thread=2, scn=one.scn - 100)
        late = two.begin(7000)
        two.insert(late, "ITEMS", {"ID": "late"})
        two.commit(late)
        two.scn = one.scn
        two.commit(two.begin(7001))
        two.flush()
        found = [row.csn for row in collect(capture)]
        assert found == sorted(found)
        assert late.text in (row.xid for row in read_all(tmp_path))


def test_a_row_before_those_that_were_read_ends_capture(tmp_path: Path) -> None:
    """Regression: it was captured, but a restart skipped it."""
    one = RedoWriter(tmp_path)
    first = one.begin(1)
    one.insert(first, "ITEMS", {"ID": "1"})
    one.commit(first)
    one.flush()
    with capturing(tmp_path) as (capture, _):
        assert [row.after["id"] for row in collect(capture)] == [b"1"]
        two = RedoWriter(tmp_path, thread=2, scn=one.scn - 2)
        second = two.begin(2)
        two.insert(second, "ITEMS", {"ID": "2"})
        two.commit(second)
        two.flush()
        with pytest.raises(CaptureError, match="thread 2 has rows from SCN 1002 on, but reading has reached SCN 1003"):
            collect(capture)


def test_two_files_with_the_same_number_are_refused(tmp_path: Path) -> None:
    """Regression: only the first one was read, so the rows of the other one were lost without a message."""
    for name in ("east_1.jsonl", "west_1.jsonl"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(CaptureError, match=r"east_1.jsonl and west_1.jsonl are both segment 1 of thread 1"):
        list_segments(tmp_path)
    (tmp_path / "west_1.jsonl").rename(tmp_path / "east_1.jsonl.gz")
    assert list_segments(tmp_path)[1][1].path.name == "east_1.jsonl"


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    writer = RedoWriter(tmp_path / "log", packed=True)
    xid = writer.begin()
    for number in range(2000):
        writer.insert(xid, "ITEMS", {"ID": str(number)})
    writer.roll()
    writer.commit(xid)
    writer.flush()
    path = writer.folder / "redo_1_000000001.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(CaptureError, match="is damaged"):
        read_all(writer.folder)
