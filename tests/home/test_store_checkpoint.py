"""Checkpoint files: what is saved is loaded, and every damage is detected."""

from __future__ import annotations

import zlib
from pathlib import Path

import checkpoints
import pytest

from ggshell.errors import StoreError
from ggshell.home import checkpoint as store
from ggshell.home.bounded_state import BoundedState, PersistedTransaction, RecoveryState, TimedPosition
from ggshell.home.checkpoint import (
    AddedAt,
    AdditionalRows,
    Checkpoint,
    GroupKind,
    GroupOptions,
    ReadCheckpoint,
    ReplicatKind,
    SourceType,
    StopStatus,
    WriteCheckpoint,
)
from ggshell.home.home import Home
from ggshell.home.slot_facts import SlotFacts, SlotLimit
from ggshell.types import LogPosition, TrailPosition

FULL = Checkpoint(
    "EXT1",
    GroupKind.EXTRACT,
    ReadCheckpoint(SourceType.LOG, "", LogPosition.of_lsn(5), 1, LogPosition.of_lsn(6), 2, LogPosition.of_lsn(7), 3),
    (WriteCheckpoint("./dirdat/ea", False, 10, TrailPosition(3, 400), 4), WriteCheckpoint("./dirdat/eb", True)),
    description="an Extract — with “odd” words",
    stop=StopStatus.GRACEFUL,
    latest_csn="00000000/050056B8",
    options=GroupOptions("postgres", slot="ggs_ext1", watch=SlotFacts("ggs_ext1", 1), history=("7", 1)),
)


@pytest.mark.parametrize(
    "checkpoint",
    [FULL, checkpoints.extract("E"), checkpoints.path("P"), checkpoints.replicat("R")],
    ids=lambda c: c.group,
)
def test_a_saved_checkpoint_is_loaded_unchanged(home: Home, checkpoint: Checkpoint) -> None:
    path = home.checkpoint(checkpoint.group, checkpoint.type)
    store.save(path, checkpoint)
    assert store.load(path) == checkpoint


def test_the_previous_checkpoint_is_kept(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupKind.EXTRACT)
    for number in range(3):
        store.save(path, FULL._replace(updated=number))
    assert store.load(path).updated == 2
    assert store.load(path.with_name(path.name + ".previous")).updated == 1
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["EXT1.cpe", "EXT1.cpe.previous"]


def test_every_flipped_byte_is_detected(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupKind.EXTRACT)
    store.save(path, FULL)
    data = path.read_bytes()
    for place in range(len(data)):
        for flip in (0x01, 0x20, 0x80):
            damaged = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
            with pytest.raises(StoreError, match=r"EXT1\.cpe"):
                store.decode(damaged, path)


def test_every_truncation_is_detected(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupKind.EXTRACT)
    store.save(path, FULL)
    data = path.read_bytes()
    for length in range(len(data)):
        with pytest.raises(StoreError):
            store.decode(data[:length], path)


def test_a_missing_checkpoint_is_reported(home: Home) -> None:
    with pytest.raises(StoreError, match=r"NONE\.cpr"):
        store.load(home.checkpoint("none", GroupKind.REPLICAT))


def test_a_newer_version_is_refused(home: Home) -> None:
    path = home.checkpoint("EXT1", GroupKind.EXTRACT)
    store.save(path, FULL)
    with pytest.raises(StoreError, match="version 2"):
        store.decode(path.read_bytes().replace(b"GGSCHK 1", b"GGSCHK 2", 1), path)


_ZERO = '{"thread":0,"sequence":0,"csn":0,"rba":0}'
_EARLIER = (
    '{"group":"G","type":"EXTRACT","read":{"source":"TRANLOG","trail":"","startup":'
    + _ZERO
    + ',"startup_time":0,"recovery":'
    '{"thread":0,"sequence":0,"csn":7,"rba":0},"recovery_time":0,"current":' + _ZERO + ',"current_time":0},"write":[],'
    '"description":"","created":1,"begin":"NOW","begin_csn":"","begin_time":0,"started":0,"updated":0,"stop":"A","result":0,'
    '"record_time":0,"caught_up":0,"latest_csn":"","latest_xid":"","options":%s}'
)
"""A checkpoint file as versions with untyped options wrote it."""


_WATCH = (
    '{"name":"ggs_e","retained":1048576,"growth_per_hour":10,"hours_left":null,"room":5,"limit":"disk",'
    '"wal_status":"reserved","current":9,"at":3}'
)
_BOUNDED = (
    '{"incarnation":4,"status":"ON","interval":1200,"last_number":3,"last_time":7,"next_time":8,"forced_time":0,"objects":1,'
    '"state":10,"data":20,"outstanding":0,"outstanding_data":0,"failure":"","log_time":9,"folder":"/h/BR/G","recovering":'
    '{"kind":"bounded recovery","bounded":true,"reason":"it was killed","complete":false,"percent":5,"bytes":100,'
    '"seconds":0.5,"left_bytes":null,"left_seconds":null},"begin":[1,2,3,4,5],"end":[6,7,8,9,10],"restart_name":"1.2.3",'
    '"previous":null,"persisted":[["1.2.3",5,10,20,2,true]]}'
)
"""The state of Bounded Recovery as versions wrote it in which it was not typed."""
BOUNDED = BoundedState(
    *(4, "ON", 1200, 3, 7, 8, 0, 1, 10, 20),
    log_time=9,
    folder="/h/BR/G",
    recovering=RecoveryState("bounded recovery", True, "it was killed", False, 5, 100, 0.5),
    begin=TimedPosition(1, 2, 3, 4, 5),
    end=TimedPosition(6, 7, 8, 9, 10),
    restart_name="1.2.3",
    persisted=(PersistedTransaction("1.2.3", 5, 10, 20, 2, True),),
)


def _decoded(path: Path, options: str) -> Checkpoint:
    body = (_EARLIER % options).encode()
    return store.decode(b"GGSCHK 1 %08x\n" % zlib.crc32(body) + body, path)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("{}", GroupOptions()),
        (
            '{"slot":"ggs_e","since":5,"at_csn":"","history":["71",2],"watch":'
            + _WATCH
            + ',"not_captured":{"a.b":"x"}}',
            GroupOptions(
                source_kind="postgres",
                slot="ggs_e",
                since=5,
                at_csn="",
                history=("71", 2),
                watch=SlotFacts("ggs_e", 1 << 20, 10, None, 5, SlotLimit.DISK, "reserved", current=9, at=3),
                not_captured={"a.b": "x"},
            ),
        ),
        (
            '{"redo":"redo:///r","br":{"incarnation":4},"decisions":[{"xid":1}],"completed":["1.2.3"]}',
            GroupOptions(
                source_kind="oracle_redo",
                source_login="redo:///r",
                bounded=BoundedState(4),
                decisions=({"xid": 1},),
                completed=("1.2.3",),
            ),
        ),
        ('{"redo":"redo:///r","br":' + _BOUNDED + "}", GroupOptions("oracle_redo", "redo:///r", bounded=BOUNDED)),
        (
            '{"added":"placed","checkpoint_table":"gg.c","row_keys":"/h","kind":"COORDINATED","maxthreads":8,"group_key":9,'
            '"beside":{"threads":[0,1],"all":false},"refused":[3,77],"lost":["","5"],"start":{"csn":"5"}}',
            GroupOptions(
                added=AddedAt.PLACED,
                checkpoint_table="gg.c",
                row_keys="/h",
                replicat_kind=ReplicatKind.COORDINATED,
                maxthreads=8,
                group_key=9,
                additional=AdditionalRows((0, 1), all=False),
                refused=TrailPosition(3, 77),
                uncertain=("", "5"),
                start={"csn": "5"},
            ),
        ),
        (
            '{"kind":"SPARK","target":"./lake","nodbcheckpoint":true}',
            GroupOptions(replicat_kind=ReplicatKind.LAKE, target="./lake", nodbcheckpoint=True),
        ),
        ('{"slot":"s","history":[],"later":[1]}', GroupOptions("postgres", slot="s", unknown={"later": [1]})),
    ],
)
def test_the_options_of_an_earlier_version_are_loaded_and_saved(
    home: Home, options: str, expected: GroupOptions
) -> None:
    path = home.checkpoint("G", GroupKind.EXTRACT)
    found = _decoded(path, options)
    assert found.options == expected
    store.save(path, found)
    assert store.load(path) == found


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("[]", "options: [] is not a valid object"),
        ('{"since":"5"}', "since: '5' is not a valid integer"),
        ('{"kind":"DOUBLE"}', "replicat_kind: 'DOUBLE' is not a valid ReplicatKind"),
        ('{"watch":{"retained":1}}', "watch.name is missing"),
        ('{"watch":{"name":"s","retained":1,"limit":"moon"}}', "watch.limit: 'moon' is not a valid SlotLimit"),
        ('{"br":{"interval":"20M"}}', "bounded.interval: '20M' is not a valid integer"),
        ('{"br":{"begin":[1,2,3,4]}}', "bounded.begin.time is missing"),
        ('{"bounded":{"persisted":[["1.2.3",5,10,20,2,1]]}}', "bounded.persisted[0].dirty: 1 is not a valid Boolean"),
        ('{"refused":[3,null]}', "refused.rba: None is not a valid integer"),
        ('{"beside":{"threads":["a"],"all":false}}', "additional.threads[0]: 'a' is not a valid integer"),
    ],
)
def test_an_option_that_is_not_valid_is_reported_with_its_name(home: Home, options: str, why: str) -> None:
    with pytest.raises(StoreError) as damaged:
        _decoded(home.checkpoint("G", GroupKind.EXTRACT), options)
    assert damaged.value.code == store.DAMAGED
    assert damaged.value.message.endswith(f"is damaged: its content cannot be read ({why})")
