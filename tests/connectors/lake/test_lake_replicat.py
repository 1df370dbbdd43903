"""A Replicat that delivers to a lake of any form: real processes, real Spark, and unexpected ends."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from batches import Row
from lakes import NOTES, PEOPLE, PLACES, Lake, image, key_update, person
from processes import until, until_state
from time_limits import slowness

from ggshell.connectors.lake.commits import CommitLog
from ggshell.connectors.lake.replicat import stream_failure
from ggshell.connectors.lake.target import TableForm
from ggshell.groups.process_request import request
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName

HERE = Path(__file__).parent
pytestmark = pytest.mark.usefixtures("java")


def place(number: int) -> Row:
    return Row(PLACES, IoType.INSERT, image(str(number), "2026-11-21"))


def add(lake: Lake) -> str:
    return f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {lake.form}:./lake"


def stop_under_load(lake: Lake) -> None:
    """Transactions written after a STOP do not delay it."""
    writing, number = threading.Event(), itertools.count(100)

    def write_on() -> None:
        while not writing.wait(0.3):
            lake.write([person(next(number), "On", "1")])

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        lake.run("STOP REPLICAT lake")
        until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.STOPPED)
    finally:
        writing.set()
        writer.join()


# test_lake_delivery tests all forms, without processes.
@pytest.mark.parametrize("lake", [TableForm.PARQUET], indirect=True)
def test_a_lake_contains_every_change_once_and_the_current_rows_of_each_table(lake: Lake) -> None:
    lake.write([person(1, "Ada", "10.50"), person(2, None, "20"), Row(NOTES, IoType.INSERT, image("a note"))])
    target = "./lake" if lake.form is TableForm.PARQUET else f"{lake.form}:./lake"
    lake.run(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {target}\nSTART REPLICAT lake")
    lake.delivered()
    assert lake.people() == [(1, "Ada", "10.50"), (2, None, "20.00")]
    lake.write(
        [Row(PEOPLE, IoType.FIELD_COMP, encode_image([(0, b"1"), (2, b"11")]))],
        [key_update(PEOPLE, 1, 7)],
        [Row(PEOPLE, IoType.DELETE, encode_image([(0, b"2")])), person(3, "Bo", "1")],
    )
    lake.delivered()
    assert lake.people() == [(3, "Bo", "1.00"), (7, "Ada", "11.00")]
    assert f"Target {target}" in lake.run("INFO REPLICAT lake")
    until("the Replicat is at the end of the trail", lambda: "At EOF" in lake.run("LAG REPLICAT lake"))
    lake.run("KILL REPLICAT lake")
    lake.write([person(4, "Cy", "4")])
    lake.run("START REPLICAT lake")
    lake.delivered()
    assert len(lake.logged()) == len(set(lake.logged())) == 8
    assert [row[0] for row in lake.people()] == [3, 4, 7]
    lake.run("STOP REPLICAT lake")
    # Spark's own checkpoint is lost; the commits of the lake suffice.
    shutil.rmtree(lake.folder / "_ggshell" / "LAKE" / "stream")
    lake.home.parameters("lake").write_text("REPLICAT lake\nLATENCY 10 MIN\nMAP hr.*, TARGET hr.*;\n")
    lake.write([person(5, "Di", "5")])
    lake.run("START REPLICAT lake")
    lake.delivered()
    assert len(lake.logged()) == len(set(lake.logged())) == 9
    assert [row[0] for row in lake.people()] == [3, 4, 5, 7]
    stop_under_load(lake)
    assert [row[0] for row in lake.people()] == [3, 4, 5, 7]  # what came later is held back for the next start
    assert "has no key" in lake.home.report("lake").read_text() or "has no key" in lake.home.event_log.read_text()
    (last,) = [json.loads(path.read_text()) for path in sorted((lake.folder / "_ggshell").rglob("0*.json"))[-1:]]
    assert (last["seqno"], last["form"]) == (0, lake.form)


@pytest.mark.parametrize("lake", [TableForm.ICEBERG], indirect=True)
def test_a_kill_within_a_batch_applies_nothing_twice(lake: Lake) -> None:
    """The process is killed between two tables of a batch; a larger batch is delivered again, as Spark's checkpoint is lost."""
    lake.write(
        [person(1, "Ada", "1"), place(1)], [key_update(PEOPLE, 1, 2), person(1, "Bo", "2")], [key_update(PLACES, 1, 2)]
    )
    lake.run(add(lake))
    killed_replicat = [sys.executable, str(HERE / "killed_replicat.py"), lake.form, "replicat"]
    result = subprocess.run(
        [*killed_replicat, "--home", str(lake.home.root), "--group", "LAKE"],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        cwd=lake.home.root,
        check=False,
        timeout=600,
    )
    assert result.returncode == -signal.SIGKILL
    assert lake.committed is None
    shutil.rmtree(lake.folder / "_ggshell" / "LAKE" / "stream")
    lake.write([key_update(PEOPLE, 2, 3), key_update(PEOPLE, 1, 2)], [place(1)])
    lake.run("START REPLICAT lake")
    lake.delivered()
    assert lake.people() == [(2, "Bo", "2.00"), (3, "Ada", "1.00")]
    assert [number for (number,) in lake.rows(PLACES, ["id"])] == [1, 2]
    assert len(lake.logged()) == len(set(lake.logged())) == 8


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_a_lake_is_seeded_by_an_initial_load_without_a_gap_or_a_double(lake: Lake) -> None:
    """The load's trail has the rows as of CSN 2; the trail of changes begins before it."""
    lake.write([person(1, "Ada", "1")], [key_update(PEOPLE, 1, 2)], [key_update(PEOPLE, 2, 3), person(4, "Bo", "4")])
    load = TrailName.parse("./dirdat/la", lake.home.root)
    loaded = lake.write([person(2, "Ada", "1"), person(9, "Old", "9")], trail=load)
    lake.home.parameters("seed").write_text("REPLICAT seed\nMAP hr.*, TARGET hr.*;\n")
    lake.run(f"ADD REPLICAT seed, SPARK, EXTTRAIL ./dirdat/la, TARGET {lake.form}:./lake\nSTART REPLICAT seed")

    def is_loaded() -> bool:
        done = CommitLog(lake.target, "seed").latest()
        return done is not None and done.position >= loaded

    until("the load is in the lake", is_loaded, 300)
    lake.run("STOP REPLICAT seed")
    lake.end = lake.write([person(5, "Cy", "5")])
    lake.run(add(lake))
    lake.run("START REPLICAT lake, AFTERCSN 00000000/00000002")
    lake.delivered()
    assert [row[:2] for row in lake.people()] == [(3, "Ada"), (4, "Bo"), (5, "Cy"), (9, "Old")]


@pytest.mark.parametrize("lake", [TableForm.PARQUET], indirect=True)
def test_a_java_process_out_of_memory_ends_the_replicat(lake: Lake) -> None:
    """On a cluster, where the rows of a batch pass through Java."""
    (lake.home.root / "dirprm" / "spark.conf").write_text(
        "master local-cluster[1,1,1024]\nmemory 500m\nspark.task.maxFailures 1\n"
    )
    lake.write([person(1, "x" * 250_000_000, "1")])  # One row is always in one task.
    lake.run(add(lake))
    lake.run("START REPLICAT lake")
    until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.ABENDED, 200)
    report = lake.home.report("lake").read_text()
    assert "GGS-00708" in report, report


def start_with_a_row(lake: Lake) -> None:
    lake.write([person(1, "Ada", "1")])
    lake.run(add(lake))
    lake.run("START REPLICAT lake")
    lake.delivered()


def answers_at_once(lake: Lake) -> None:
    entry = read_process_file(lake.home.process("LAKE", GroupKind.REPLICAT))
    assert entry is not None
    for verb in ("STATUS", "GETLAG", "STATS", "REPORT"):
        begun = time.monotonic()
        request(entry.socket, verb, timeout=30)
        assert time.monotonic() - begun < slowness(), verb


def java_of(lake: Lake) -> int:
    """The Java process that the Replicat has started."""
    entry = read_process_file(lake.home.process("LAKE", GroupKind.REPLICAT))
    assert entry is not None
    left = [entry.pid]
    while left:
        process = left.pop()
        if Path(f"/proc/{process}/comm").read_text().strip() == "java":
            return process
        for task in Path(f"/proc/{process}/task").iterdir():
            left += map(int, (task / "children").read_text().split())
    raise AssertionError("there is no Java")


@pytest.mark.parametrize("lake", [TableForm.PARQUET], indirect=True)
def test_a_lake_replicat_answers_and_stops_while_java_or_its_disk_hangs(lake: Lake) -> None:
    """Finding 19, for Spark: STOP was answered, but the process waited forever for Java or for the disk."""
    start_with_a_row(lake)
    os.kill(java_of(lake), signal.SIGSTOP)
    lake.write([person(2, "Bo", "2")])
    answers_at_once(lake)
    lake.shell("STOP REPLICAT lake")
    until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.STOPPED)
    assert "did not respond after STOP" in lake.home.report("lake").read_text()
    lake.run("START REPLICAT lake")
    lake.delivered()
    done, entry = lake.committed, read_process_file(lake.home.process("LAKE", GroupKind.REPLICAT))
    assert done is not None
    assert entry is not None
    commit = lake.folder / "_ggshell" / "LAKE" / "commits" / f"{done.batch + 1:012d}.json"
    fifo = commit.with_name(f".{commit.name}.{entry.pid}.tmp")
    assert commit.parent.is_dir()
    os.mkfifo(fifo)  # Opening it for writing waits for a reader that never comes.
    lake.write([person(3, "Cy", "3")])
    version = lake.folder / "current" / str(PEOPLE.name) / f"v={done.batch + 1:012d}"
    until("the batch is being written", version.is_dir)
    answers_at_once(lake)
    lake.shell("SEND REPLICAT lake, FORCESTOP")
    until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.STOPPED)
    assert not commit.exists()
    assert [row[0] for row in lake.people()] == [1, 2]


@pytest.mark.parametrize("lake", [TableForm.ICEBERG], indirect=True)
def test_the_loss_of_the_lake_or_of_java_is_reported_by_its_cause(lake: Lake) -> None:
    start_with_a_row(lake)
    elsewhere = lake.folder.rename(lake.folder.with_name("elsewhere"))
    lake.write([person(2, "Bo", "2")])
    until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.ABENDED)
    report = lake.home.report("lake").read_text()
    assert "GGS-00734" in report, report
    assert "restore the folder" in report
    assert not lake.folder.exists()
    elsewhere.rename(lake.folder)
    lake.run("START REPLICAT lake")
    lake.delivered()
    os.kill(java_of(lake), signal.SIGKILL)
    until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.ABENDED)
    report = lake.home.report("lake").read_text()
    assert "GGS-00704" in report, report
    assert "ended unexpectedly" in report
    assert "GGS-00402" not in report


JAVA = """[FOREACH_BATCH_USER_FUNCTION_ERROR] Reason: An exception was \
raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "session.py", line 1, in call
py4j.protocol.Py4JJavaError: An error occurred while calling o250.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: {cause}
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.mark.parametrize(
    "cause",
    [
        "OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device",
        "pyarrow.lib.ArrowInvalid: Schema at index 1 was different",
        "StopIteration",
    ],
)
def test_the_failure_of_python_in_a_stream_is_reported_with_its_last_line(cause: str) -> None:
    text = f"""[FOREACH_BATCH_USER_FUNCTION_ERROR] Reason: An exception was \
raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "delivery.py", line 1, in write
    raise ValueError: not this one
ValueError: not this one

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "delivery.py", line 2, in write
    raise
    ^^^^^
{cause}
More: of its text
"""
    assert stream_failure(RuntimeError(text)).message == f"the Spark stream ended: {cause}"


@pytest.mark.parametrize(
    ("cause", "code", "message"),
    [
        (
            "java.io.IOException: No space left on device",
            "GGS-00402",
            "the Spark stream ended: No space left on device",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "GGS-00708", "Spark ran out of memory"),
        (
            "org.apache.spark.SparkException: Task 0: TaskResultLost (result lost)",
            "GGS-00708",
            "Spark ran out of memory",
        ),
    ],
)
def test_the_failure_of_a_stream_is_reported_with_its_cause(cause: str, code: str, message: str) -> None:
    failure = stream_failure(RuntimeError(JAVA.format(cause=cause)))
    assert (failure.code, failure.message) == (code, message)
    assert "Traceback" not in str(failure)
