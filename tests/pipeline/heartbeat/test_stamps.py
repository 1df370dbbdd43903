"""What each hop does with a heartbeat: the rules, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from batches import Row, Tx, make_batch
from hypothesis import given
from hypothesis import strategies as st

from ggshell.clock import FakeClock
from ggshell.pipeline.heartbeat import hops
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS, HeartbeatNames, heartbeat_names
from ggshell.pipeline.heartbeat.processor import DROPPED, HeartbeatProcessor
from ggshell.pipeline.heartbeat.row import Beat, layout_of, parse_time, time_text
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName

SEED = TableDefinition(TableName("s", "gg_heartbeat_seed"), tuple(Column(n, "text") for n in HEARTBEAT_COLUMNS), (0,))
USER = TableDefinition(TableName("shop", "items"), (Column("id", "integer"),), (0,))
CSNS = {"csn": "1", "restart_csn": "0", "restart_time": 5}


def heartbeat(**values: object) -> Beat:
    return Beat("north", 100)._replace(**values)


@pytest.mark.parametrize(("named", "passes"), [(None, True), ("EXT1", True), ("EXT2", False)])
def test_extract_stamps_heartbeats_that_name_it_or_no_extract(named: str | None, passes: bool) -> None:
    found = hops.at_extract(heartbeat(outgoing_extract=named), "EXT1", 107, **CSNS)  # type: ignore[arg-type]
    assert (found is not None) is passes
    if found is not None:
        assert (found.outgoing_extract, found.outgoing_extract_ts) == ("EXT1", 107)
        assert found[17:] == (None, "1", "0", 5)


@pytest.mark.parametrize(
    ("path", "after"),
    [(None, "P,*"), ("*", "P,*"), ("A,*", "A,P,*"), ("A,P", "A,P"), ("P", "P"), ("A", None), ("PX,AP", None)],
)
def test_a_path_replaces_the_asterisk_or_accepts_its_own_name(path: str | None, after: str | None) -> None:
    found = hops.at_path(heartbeat(outgoing_routing_path=path), "P", 109)
    assert (found.outgoing_routing_path if found is not None else None) == after
    assert found is None or found.outgoing_routing_ts == 109


@pytest.mark.parametrize(
    ("path", "complete"), [(None, None), ("*", None), ("A,*", "A"), ("A,B,*", "A,B"), ("A,B", "A,B")]
)
def test_the_asterisk_is_removed_from_the_complete_path(path: str | None, complete: str | None) -> None:
    assert hops.settled_path(path) == complete


def test_replicat_reverses_the_row() -> None:
    sent = heartbeat(
        remote_database="south",
        outgoing_extract="E1",
        outgoing_routing_path="P1,*",
        outgoing_extract_ts=101,
        outgoing_routing_ts=102,
        incoming_extract="E2",
        incoming_routing_path="P2",
        incoming_replicat="R2",
        incoming_heartbeat_ts=1,
        incoming_extract_ts=2,
        incoming_routing_ts=3,
        incoming_replicat_ts=4,
        incoming_extract_heartbeat_csn="9",
    )
    assert hops.at_replicat(sent, "R1", "south", 103, "8") == Beat(
        "south", 100, "north", "E1", "P1", "R1", 100, 101, 102, 103, "E2", "P2", "R2", 1, 2, 3, 4, "8", "9"
    )


@pytest.mark.parametrize("change", [{"outgoing_replicat": "R2"}, {"remote_database": "east"}])
def test_replicat_drops_heartbeats_for_another_replicat_or_from_a_third_database(change: dict[str, str]) -> None:
    assert hops.at_replicat(heartbeat(**change), "R1", "south", 1, None) is None


def test_for_databases_with_the_same_name_the_path_back_stays_empty() -> None:
    assert hops.at_replicat(heartbeat(remote_database="north", incoming_extract="E2"), "R1", "north", 1, None) is None
    found = hops.at_replicat(heartbeat(incoming_extract="E2"), "R1", "north", 1, None)
    assert found is not None
    assert found[10:17] == (None,) * 7


def processed(processor: HeartbeatProcessor, *rows: Row) -> tuple[list[str], list[bytes]]:
    """The table of each row after a processor, and its data."""
    batch = processor.stamp_heartbeats(make_batch([Tx(5, rows)]))
    names = [batch.tables[int(number)].name.name for number in batch.table]
    ends = zip(batch.start.tolist(), batch.length.tolist(), strict=True)
    return names, [bytes(batch.buffer[start : start + length]) for start, length in ends]


def image(sent: Beat) -> bytes:
    layout = layout_of(SEED)
    assert layout is not None
    return layout.encode(sent)


def test_only_heartbeats_change_in_a_batch_and_all_rows_keep_their_place() -> None:
    user = Row(USER, IoType.INSERT, encode_image([(0, b"7")]))
    whole = join_key_update(image(heartbeat()), image(heartbeat(heartbeat_timestamp=200)))
    own, other = image(heartbeat()), image(heartbeat(outgoing_extract="OTHER"))
    rows = [
        user,
        Row(SEED, 15, own),
        user,
        Row(SEED, 15, other),
        Row(SEED, 115, whole),
        Row(SEED, IoType.DELETE, own),
    ]
    processor = hops.extract_processor("EXT1", FakeClock(300), None, lambda _: 1)
    names, data = processed(processor, *rows)
    seed, nowhere = SEED.name.name, DROPPED.name.name
    assert names == ["items", seed, "items", nowhere, seed, nowhere]
    assert (data[0], data[2]) == (user.data, user.data)
    layout = layout_of(SEED)
    assert layout is not None
    assert [layout.decode(data[place])[:3] for place in (1, 4)] == [("north", 100, None), ("north", 200, None)]
    assert layout.decode(data[4]).outgoing_extract_ts == 300


def test_a_batch_without_heartbeats_is_returned_as_the_same_object() -> None:
    batch = make_batch([Tx(5, [Row(USER, IoType.INSERT, encode_image([(0, b"7")]))])])
    processor = hops.path_processor("P", FakeClock())
    assert processor.stamp_heartbeats(batch) is batch
    assert np.shares_memory(processor.stamp_heartbeats(batch).table, batch.table)


def test_a_table_of_an_older_release_is_a_heartbeat_table_too() -> None:
    older = SEED._replace(columns=SEED.columns[:17])
    layout = layout_of(older)
    assert layout is not None
    assert layout.decode(layout.encode(heartbeat(incoming_extract_restart_csn="1"))) == heartbeat()
    assert layout_of(SEED._replace(columns=SEED.columns[:16])) is None


@given(st.integers(-(10**15), 4 * 10**15))
def test_times_are_read_back_from_their_text(moment: int) -> None:
    assert parse_time(time_text(moment)) == moment


def test_names_are_read_from_globals() -> None:
    assert heartbeat_names("ggadmin") == HeartbeatNames("ggadmin", "gg_heartbeat")
    assert heartbeat_names("ggadmin", "Beats") == HeartbeatNames("ggadmin", "beats")
    assert heartbeat_names("", 'hb."Beats"') == HeartbeatNames("hb", "Beats")
    assert heartbeat_names("") is None
