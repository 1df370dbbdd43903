"""Extract loses its source connections at any time: the trail has each committed transaction once, in order."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from batches import read_rows
from pipelines import EXT1, Pipeline
from processes import until

from ggshell.home.process_file import read_process_file
from ggshell.record.image import decode_image
from ggshell.trail.durable import MarkReader
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

PARAMETERS = "EXTRACT ext1\nUSERIDALIAS north\nCHECKPOINTSECS 1\n{}EXTTRAIL ./dirdat/ea\nTABLE a.log;\n"
FILL = "INSERT INTO a.log SELECT {0}, n, repeat('x', 60) FROM generate_series({1}, {2}) n"
LOSE = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'ggshell extract%'"
ROWS, HALF = 40_000, 1 << 18


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.in_north("CREATE TABLE a.log (worker int, n int, filler text, PRIMARY KEY (worker, n))")
    yield pipeline
    pipeline.close()


def capture(pipeline: Pipeline, *, streamed: bool, lines: str = "") -> None:
    """Start EXT1; open transactions are streamed to it and spilled to files, or sent whole at their commit."""
    database = pipeline.in_north("SELECT current_database()")[0][0]
    if streamed:
        pipeline.in_north(f"ALTER DATABASE {database} SET logical_decoding_work_mem = '64kB'")
    pipeline.write("ext1", PARAMETERS.format("CACHEMGR CACHESIZE 1MB\n" if streamed else "") + lines)
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.log")
    pipeline.start("ext1")


def trail(pipeline: Pipeline) -> TrailName:
    return TrailName(pipeline.home.root / "dirdat", "ea")


def trail_rows(pipeline: Pipeline) -> list[tuple[int, tuple[int, int], bool, bool]]:
    """The rows of the trail: CSN, key, whether the row begins and whether it ends its transaction."""
    found = []
    with closing(TrailReader(trail(pipeline))) as reader:
        while (batch := reader.read(1 << 20)) is not None:
            for csn, _, _, data, _, begins, ends, _, _ in read_rows(batch):
                (_, worker), (_, number), *_ = decode_image(data)
                found.append((csn, (int(worker or 0), int(number or 0)), begins, ends))
    return found


def wait_until_complete(pipeline: Pipeline) -> None:
    """Wait until the trail has the rows of the source: none is missing or repeated, and transactions are complete."""
    before = int(pipeline.in_north("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0][0])
    pipeline.in_north(FILL.format(9, 1, 5))
    expected = sorted(pipeline.in_north("SELECT worker, n FROM a.log"))
    until("all rows are in the trail", lambda: last_csn(pipeline) > before or not pipeline.is_running(EXT1))
    assert pipeline.is_running(EXT1), pipeline.home.report("EXT1").read_text()
    rows = trail_rows(pipeline)
    assert sorted(key for _, key, _, _ in rows) == expected
    csns = [csn for csn, _, begins, _ in rows if begins]
    assert csns == sorted(set(csns)), "a transaction is in the trail twice, or out of order"
    inside = False
    for _, _, begins, ends in rows:
        assert begins is not inside
        inside = not ends
    assert not inside


def last_csn(pipeline: Pipeline) -> int:
    with closing(MarkReader(trail(pipeline))) as reader:
        mark = reader.read()
    return mark.csn.value if mark is not None and mark.csn is not None else 0


def bytes_after_durable_mark(pipeline: Pipeline) -> int:
    """The bytes after the durable mark in the newest trail file: part of a transaction that is being written."""
    with closing(MarkReader(trail(pipeline))) as reader:
        mark = reader.read()
    if mark is None:
        return 0
    newest = trail(pipeline).sequences()[-1]
    size = trail(pipeline).file(newest).stat().st_size
    return size if newest > mark.position.seqno else size - mark.position.rba


@pytest.mark.parametrize(("lost", "streamed"), [("terminated", True), ("timed out", False)])
def test_a_transaction_half_in_the_trail_is_written_once_after_the_connection_is_lost(
    pipeline: Pipeline, lost: str, streamed: bool
) -> None:
    if lost == "timed out":
        database = pipeline.in_north("SELECT current_database()")[0][0]
        pipeline.in_north(f"ALTER DATABASE {database} SET wal_sender_timeout = '1s'")
    capture(pipeline, streamed=streamed)
    entry = read_process_file(pipeline.home.process(*EXT1))
    assert entry is not None
    senders = "SELECT pid FROM pg_stat_replication WHERE application_name LIKE 'ggshell extract%'"
    with psycopg.connect(pipeline.north) as first, psycopg.connect(pipeline.north) as second:
        first.execute(FILL.format(2, 1, 3000))
        second.execute(FILL.format(3, 1, 3000))
        pipeline.in_north(FILL.format(1, 1, 10), FILL.format(1, 11, ROWS))
        until("the transaction is being written", lambda: bytes_after_durable_mark(pipeline) > HALF)
        os.kill(entry.pid, signal.SIGSTOP)
        try:
            before = pipeline.in_north(senders)
            half = bytes_after_durable_mark(pipeline)
            if lost == "terminated":
                pipeline.in_north(LOSE)
            until("the connection is lost", lambda: not set(before) & set(pipeline.in_north(senders)))
            threading.Event().wait(1.1)  # a checkpoint is due, at which Extract notices the loss
        finally:
            os.kill(entry.pid, signal.SIGCONT)
        assert half > HALF, "the transaction was no longer being written when the connection was lost"
        first.execute(FILL.format(2, 3001, 4000))
        first.commit()
        second.rollback()
    wait_until_complete(pipeline)
    total = pipeline.run("STATS EXTRACT ext1, TOTAL")
    assert f" {ROWS + 4005}.00" in total, total


def test_transactions_not_flushed_before_a_lost_connection_are_written_once(
    pipeline: Pipeline, request: pytest.FixtureRequest
) -> None:
    capture(pipeline, streamed=True)
    seed, kills = 7, request.config.getoption("--rounds") or 5
    chance, ended = random.Random(seed), threading.Event()

    def work(worker: int) -> None:
        mine, number = random.Random(f"{seed} {worker}"), 0
        with psycopg.connect(pipeline.north) as connection:
            while not ended.is_set():
                for _ in range(mine.choice([1, 1, 3])):
                    size = mine.choice([1, 1, 5, 50, 900, 3000])
                    connection.execute(FILL.format(worker, number + 1, number + size))
                    number += size
                    ended.wait(mine.choice([0, 0.01, 0.05]))
                if mine.random() < 0.1:
                    connection.rollback()
                else:
                    connection.commit()

    workers = [threading.Thread(target=work, args=(number,)) for number in range(1, 4)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(kills):
            until("Extract is connected", lambda: pipeline.in_north(LOSE.replace("pg_terminate_backend", ""))[0][0] > 0)
            ended.wait(chance.choice([0.05, 0.2, 0.6]))
            pipeline.in_north(LOSE)
    finally:
        ended.set()
        for worker in workers:
            worker.join()
    wait_until_complete(pipeline)
