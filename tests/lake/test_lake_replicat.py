"""A Replicat that delivers to a lake: real processes, real Spark, and a kill in between."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from batches import Row, Tx, make_batch
from processes import until, until_state

from ggshell.clock import FakeClock
from ggshell.demo.processes import end_processes
from ggshell.lake.commits import CommitLog
from ggshell.lake.target import Form, LakeTarget
from ggshell.process.state import ProcessState
from ggshell.record import Column, IoType, TableDefinition
from ggshell.record.image import encode_image, join_key_update
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import Home
from ggshell.trail import Producer, TrailName, TrailWriter
from ggshell.types import TableName

pytest.importorskip("pyspark", reason="pyspark is not installed here")

PEOPLE = TableDefinition(
    TableName("hr", "people"),
    (Column("id", "integer", 23), Column("name", "text", 25), Column("pay", "numeric(8,2)")),
    (0,),
)
NOTES = TableDefinition(TableName("hr", "notes"), (Column("line", "text", 25),), ())


def image(*values: str | None) -> bytes:
    return encode_image((index, None if value is None else value.encode()) for index, value in enumerate(values))


def person(number: int, name: str | None, pay: str) -> Row:
    return Row(PEOPLE, IoType.INSERT, image(str(number), name, pay))


class Lake:
    """A home with one trail and one Replicat that delivers to ./lake."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.folder = root / "lake"
        self.trail = TrailName.parse("./dirdat/ea", root)
        self.home.parameters("lake").write_text("REPLICAT lake\nMAP hr.*, TARGET hr.*;\n")
        self._csn = 0

    def write(self, *transactions: list[Row]) -> None:
        writer = TrailWriter.open(
            self.trail, clock=FakeClock(), producer=Producer("EXT1", "Extract"), max_bytes=1 << 30
        )
        for rows in transactions:
            self._csn += 1
            writer.write(make_batch([Tx(self._csn, rows)]))
        self.end = writer.flush()
        writer.close()

    def run(self, text: str) -> str:
        command = [
            sys.executable,
            "-m",
            "ggshell.shell.cli",
            "--home",
            str(self.home.root),
            "--auto-manager",
            "-c",
            text,
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def delivered(self) -> None:
        def there() -> bool:
            done = CommitLog(LakeTarget(Form.PARQUET, self.folder), "lake").latest()
            return done is not None and done.position >= self.end

        until("the trail is in the lake", there, 120)

    def people(self) -> list[tuple[object, ...]]:
        done = CommitLog(LakeTarget(Form.PARQUET, self.folder), "lake").latest()
        assert done is not None
        files = self.folder / "current" / "hr.people" / f"v={done.tables['hr.people']:012d}" / "*.parquet"
        query = f"SELECT id, name, pay FROM read_parquet('{files}') ORDER BY id"
        return duckdb.sql(query).fetchall()

    def logged(self) -> int:
        files = self.folder / "log" / "*" / "*" / "*" / "*.parquet"
        (count,) = duckdb.sql(f"SELECT count(*) FROM read_parquet('{files}')").fetchall()[0]
        return int(count)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path / "home")
    yield made
    end_processes(made.home.root)
    shutil.rmtree(made.home.root, ignore_errors=True)


@pytest.mark.timeout(400)
def test_a_lake_holds_every_change_once_and_each_table_as_it_stands(lake: Lake) -> None:
    lake.write([person(1, "Ada", "10.50"), person(2, None, "20"), Row(NOTES, IoType.INSERT, image("a note"))])
    lake.run("ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET ./lake\nSTART REPLICAT lake")
    lake.delivered()
    assert [(number, name, str(pay)) for number, name, pay in lake.people()] == [
        (1, "Ada", "10.50"),
        (2, None, "20.00"),
    ]
    lake.write(
        [Row(PEOPLE, IoType.FIELD_COMP, encode_image([(0, b"1"), (2, b"11")]))],
        [Row(PEOPLE, IoType.KEY_FIELD_COMP, join_key_update(encode_image([(0, b"1")]), encode_image([(0, b"7")])))],
        [Row(PEOPLE, IoType.DELETE, encode_image([(0, b"2")])), person(3, "Bo", "1")],
    )
    lake.delivered()
    now = [(3, "Bo", "1.00"), (7, "Ada", "11.00")]
    assert [(number, name, str(pay)) for number, name, pay in lake.people()] == now
    assert "Target ./lake" in lake.run("INFO REPLICAT lake")
    assert "At EOF" in lake.run("LAG REPLICAT lake")
    lake.run("KILL REPLICAT lake")
    lake.write([person(4, "Cy", "4")])
    lake.run("START REPLICAT lake")
    lake.delivered()
    assert lake.logged() == 8
    assert [row[0] for row in lake.people()] == [3, 4, 7]
    lake.run("STOP REPLICAT lake")
    shutil.rmtree(lake.folder / "_ggshell" / "LAKE" / "stream")  # Spark's own memory is lost: the commits know
    lake.write([person(5, "Di", "5")])
    lake.run("START REPLICAT lake")
    lake.delivered()
    assert lake.logged() == 9
    assert [row[0] for row in lake.people()] == [3, 4, 5, 7]
    writing, number = threading.Event(), itertools.count(100)

    def write_on() -> None:
        while not writing.wait(0.3):
            lake.write([person(next(number), "On", "1")])

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        lake.run("STOP REPLICAT lake")  # what comes behind the stop does not hold it up
        until_state(lake.home, "LAKE", GroupType.REPLICAT, ProcessState.STOPPED)
    finally:
        writing.set()
        writer.join()
    assert "has no key" in lake.home.report("lake").read_text() or "has no key" in lake.home.event_log.read_text()
    (last,) = [json.loads(path.read_text()) for path in sorted((lake.folder / "_ggshell").rglob("*.json"))[-1:]]
    assert last["seqno"] == 0
