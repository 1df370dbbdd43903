"""The values of sequences arrive in the target: ahead, never back, and exactly after FLUSH SEQUENCE."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state
from trail_kit import cut_records

from ggshell.connectors.postgres import sequence_values
from ggshell.connectors.postgres.sealed_messages import sealed
from ggshell.home.process_file import ProcessState
from ggshell.trail.name import TrailName
from ggshell.trail.record import decode_record

AHEAD = 1000


class Sequences(Pipeline):
    """Sequences a.up, a.down and a.wide in north become those of b in south."""

    def begin(self, kind: str = "") -> None:
        self.write("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nSEQUENCE a.*;\nTABLE a.items;\n")
        for where, schema in ((self.in_north, "a"), (self.in_south, "b")):
            where(
                f"CREATE SEQUENCE {schema}.up",
                f"CREATE SEQUENCE {schema}.down INCREMENT -2 MAXVALUE 9000 START 9000 MINVALUE 1",
                f"CREATE SEQUENCE {schema}.wide CACHE 50",
            )
        self.add(kind=kind)
        self.use("up")  # what nobody has drawn is not captured
        self.start()

    def last(self, name: str) -> int:
        return int(self.in_south(f"SELECT last_value FROM b.{name}")[0][0])

    def use(self, name: str, times: int = 1) -> int:
        """Use values of a sequence in north; returns the last one."""
        return int(self.in_north(f"SELECT nextval('a.{name}') FROM generate_series(1, {times})")[-1][0])

    def await_last(self, name: str, value: int) -> None:
        try:
            until(f"{name} reaches {value}", lambda: self.last(name) == value, seconds=20)
        except AssertionError as error:
            reports = (self.home.report(group).read_text()[-1500:] for group, _ in (EXT1, REP1))
            raise AssertionError("\n".join((str(error), str(self.last(name)), str(self.records()), *reports))) from None

    def emit(self, secret: str, **fields: int) -> None:
        """Write a message with the values of sequence a.up as any user can."""
        with psycopg.connect(self.north) as connection:
            (xid,) = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or (0,)
            body = json.dumps(
                {"xid": fields.get("xid", xid), "values": [["a", "up", fields["last"], True, 1, 0, True]]}
            )
            content = sealed(secret, body)
            connection.execute("SELECT pg_logical_emit_message(true, %s, %s)", [sequence_values.PREFIX, content])

    def records(self) -> list[bytes]:
        """The data areas of the records of sequences in the trail."""
        name = TrailName.parse("./dirdat/ea", self.home.root)
        files = [name.file(seqno).read_bytes() for seqno in name.sequences()]
        records = [decode_record(data) for content in files for _, data in cut_records(content)]
        return [bytes(each.data) for each in records if each.io_type == 132]


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Sequences]:
    found = Sequences(tmp_path / "home", north, south)
    yield found
    found.close()


def test_values_arrive_ahead_and_never_go_back(pipeline: Sequences) -> None:
    pipeline.begin()
    pipeline.await_last("up", 1 + AHEAD)
    assert (pipeline.last("down"), pipeline.last("wide")) == (9000, 1)
    pipeline.await_last("down", pipeline.use("down") - 2 * AHEAD)
    pipeline.use("wide")
    pipeline.await_last("wide", 50 + 100 * 50)
    pipeline.await_last("up", pipeline.use("up", 7) + AHEAD)
    pipeline.await_last("down", pipeline.use("down", 3) - 2 * AHEAD)
    pipeline.in_south("SELECT setval('b.up', 1000000)")
    pipeline.use("up")
    pipeline.await_last("down", pipeline.use("down") - 2 * AHEAD)
    assert pipeline.last("up") == 1_000_000
    pipeline.in_north("SELECT setval('a.down', 2)")
    pipeline.await_last("down", 1)
    assert pipeline.in_south("SELECT is_called FROM b.down") == [(True,)], "the source may have drawn the last value"
    assert "type 132" not in pipeline.home.report("rep1").read_text()
    assert "Total updates" in pipeline.run("STATS REPLICAT rep1")


def test_flush_sets_exact_values_and_a_restart_sets_them_ahead_again(pipeline: Sequences) -> None:
    pipeline.begin()
    pipeline.await_last("up", 1 + AHEAD)
    login = "DBLOGIN USERIDALIAS north"
    assert "no secret" in pipeline.run(login, "FLUSH SEQUENCE a.up", fails=True)
    assert "no sequence" in pipeline.run(login, "FLUSH SEQUENCE a.none", fails=True)
    pipeline.run(login, "ADD SCHEMATRANDATA a")
    used = pipeline.use("up", 5)
    pipeline.await_last("up", used + AHEAD)
    assert "a.up" in pipeline.run(login, "FLUSH SEQUENCE a.*")
    pipeline.await_last("up", used)
    assert pipeline.in_south("SELECT nextval('b.up'), nextval('b.down')") == [(used + 1, 9000)]
    pipeline.run("STOP EXTRACT ext1")
    until_state(pipeline.home, *EXT1, ProcessState.STOPPED)
    pipeline.run("START EXTRACT ext1")
    pipeline.await_last("up", used + AHEAD)


def test_two_directions_do_not_push_each_other_ahead(pipeline: Sequences) -> None:
    """The way back captures a sequence only after somebody has drawn from it in the target."""
    pipeline.write("ext2", "EXTRACT ext2\nUSERIDALIAS south\nEXTTRAIL ./dirdat/eb\nSEQUENCE b.*;\nTABLE b.items;\n")
    pipeline.write("rep2", "REPLICAT rep2\nUSERIDALIAS north\nMAP b.*, TARGET a.*;\n")
    pipeline.begin()
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "ADD TRANDATA b.items",
        "REGISTER EXTRACT ext2",
        "ADD EXTRACT ext2, TRANLOG, BEGIN NOW",
        "ADD EXTTRAIL ./dirdat/eb, EXTRACT ext2",
        "DBLOGIN USERIDALIAS north",
        "ADD CHECKPOINTTABLE a.checks",
        "ADD REPLICAT rep2, EXTTRAIL ./dirdat/eb, CHECKPOINTTABLE a.checks",
    )
    pipeline.start("ext2", "rep2")
    for _ in range(2):  # at least two looks of each Extract
        pipeline.await_last("up", pipeline.use("up", 7) + AHEAD)
    drawn = int(pipeline.in_south("SELECT nextval('b.down')")[0][0])
    until(
        "the way back", lambda: pipeline.in_north("SELECT last_value FROM a.down") == [(drawn - 2 * AHEAD,)], seconds=20
    )
    assert pipeline.in_north("SELECT last_value FROM a.up") == [(15,)]
    assert pipeline.last("down") == drawn


def test_forged_messages_are_ignored(pipeline: Sequences) -> None:
    pipeline.begin()
    pipeline.await_last("up", 1 + AHEAD)
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD SCHEMATRANDATA a")
    ((secret,),) = pipeline.in_north("SELECT secret FROM ggshell.ddl_secret")
    used = pipeline.use("up", 5)
    pipeline.await_last("up", used + AHEAD)  # the Extract has looked again, and knows the secret
    pipeline.emit("guessed", last=77_777)
    pipeline.emit(secret, last=88_888, xid=3)
    pipeline.insert(1)
    pipeline.wait_for_rows(1)
    assert pipeline.last("up") == used + AHEAD
    assert not any(b"77777" in each or b"88888" in each for each in pipeline.records())
    pipeline.emit(secret, last=99_999)
    pipeline.await_last("up", 99_999)


def test_a_missing_sequence_is_named(pipeline: Sequences) -> None:
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET c.*;\n")
    pipeline.begin()
    assert "target sequence c." in pipeline.abended_report(REP1)


@pytest.mark.parametrize("kind", ["PARALLEL, ", "COORDINATED MAXTHREADS 3, "])
def test_every_kind_of_replicat_applies_values_in_their_order(pipeline: Sequences, kind: str) -> None:
    if kind.startswith("COORDINATED"):
        pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, THREADRANGE (1-3);\n")
    pipeline.begin(kind)
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD SCHEMATRANDATA a")
    for number in range(1, 6):
        pipeline.insert(number)
        pipeline.await_last("up", pipeline.use("up", 7) + AHEAD)
    pipeline.wait_for_rows(5)
    used = pipeline.use("up")
    pipeline.await_last("up", used + AHEAD)
    pipeline.run("DBLOGIN USERIDALIAS north", "FLUSH SEQUENCE a.up")
    pipeline.await_last("up", used)


def test_a_pump_passes_values_on(pipeline: Sequences) -> None:
    pipeline.write("pump", "EXTRACT pump\nPASSTHRU\nEXTTRAIL ./dirdat/pa\nSEQUENCE a.up;\nTABLE a.items;\n")
    pipeline.begin()
    pipeline.await_last("up", 1 + AHEAD)
    pipeline.run("STOP REPLICAT rep1")
    until_state(pipeline.home, *REP1, ProcessState.STOPPED)
    pipeline.run(
        "ADD EXTRACT pump, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/pa, EXTRACT pump",
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/pa, CHECKPOINTTABLE b.checks",
    )
    pipeline.start("pump", "rep1")
    pipeline.insert(1)
    pipeline.wait_for_rows(1)
    pipeline.await_last("up", pipeline.use("up", 7) + AHEAD)
    before = pipeline.last("down")
    pipeline.use("down", 3)
    pipeline.await_last("up", pipeline.use("up") + AHEAD)
    assert pipeline.last("down") == before
