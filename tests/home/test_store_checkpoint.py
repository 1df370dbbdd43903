"""Checkpoint files: what is saved is loaded, and every damage is detected."""

from __future__ import annotations

import zlib

import checkpoints
import pytest

from ggshell.errors import StoreError
from ggshell.home import checkpoint as store
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
from ggshell.types import LogPosition, TrailPosition

FULL = Checkpoint(
    "EXT1",
    GroupKind.EXTRACT,
    ReadCheckpoint(SourceType.LOG, "", LogPosition.of_lsn(5), 1, LogPosition.of_lsn(6), 2, LogPosition.of_lsn(7), 3),
    (WriteCheckpoint("./dirdat/ea", False, 10, TrailPosition(3, 400), 4), WriteCheckpoint("./dirdat/eb", True)),
    description="an Extract — with “odd” words",
    stop=StopStatus.GRACEFUL,
    latest_csn="00000000/050056B8",
    options=GroupOptions("postgres", slot="ggs_ext1", watch={"retained": 1}, history=("7", 1)),
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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("{}", GroupOptions()),
        (
            '{"slot":"ggs_e","since":5,"at_csn":"","history":["71",2],"watch":{"retained":1},"not_captured":{"a.b":"x"}}',
            GroupOptions(
                source_kind="postgres",
                slot="ggs_e",
                since=5,
                at_csn="",
                history=("71", 2),
                watch={"retained": 1},
                not_captured={"a.b": "x"},
            ),
        ),
        (
            '{"redo":"redo:///r","br":{"incarnation":4},"decisions":[{"xid":1}],"completed":["1.2.3"]}',
            GroupOptions(
                source_kind="oracle_redo",
                source_login="redo:///r",
                bounded={"incarnation": 4},
                decisions=({"xid": 1},),
                completed=("1.2.3",),
            ),
        ),
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
    body = (_EARLIER % options).encode()
    path = home.checkpoint("G", GroupKind.EXTRACT)
    found = store.decode(b"GGSCHK 1 %08x\n" % zlib.crc32(body) + body, path)
    assert found.options == expected
    store.save(path, found)
    assert store.load(path) == found
