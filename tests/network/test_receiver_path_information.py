"""What INFO, LAG and STATUS show of a path that the target starts: its connection, and what waits on either side."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_ggshell
from processes import until
from reading_homes import ReadingHomes
from trail_kit import A, read_all, small
from two_homes import Line

from ggshell.clock import SystemClock, local_text
from ggshell.home.home import Home
from ggshell.service.group_snapshot import snapshots
from ggshell.service.transfer_metrics import sent_metrics


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[ReadingHomes]:
    found = ReadingHomes(tmp_path)
    yield found
    found.close()


def test_a_receiver_path_shows_its_connection_and_its_lag_grows_without_one(reading: ReadingHomes) -> None:
    line = Line(reading.source.port)
    reading.trust(line.port)
    reading.write(50)
    reading.start_path(line.port)
    reading.until_equal()
    until("the round trip is measured", lambda: " ms" in reading.run("INFO RECVPATH rp1"))
    shown = reading.run("INFO RECVPATH rp1")
    for text in (
        f"Source               {reading.url(line.port)}",
        "Connected since",
        "Waiting Here",
        " on the line",
    ):
        assert text in shown
    assert "Connection to the source:" in reading.run("SEND RECVPATH rp1 STATUS")
    until("everything is copied", lambda: "At EOF" in reading.run("LAG RECVPATH rp1"))
    row = json.loads(run_ggshell("--home", reading.target, "--format", "json", "-c", "INFO RECVPATH rp1").stdout)
    values = dict(zip(row["columns"], row["rows"][0], strict=True))
    assert (values["receiver"], values["connected"]) == (reading.url(line.port), True)
    metrics = sent_metrics(snapshots(Home(reading.target), SystemClock().now()))
    figures = {sample.name: sample for metric in metrics for sample in metric.samples}
    assert figures["ggshell_path_connected"].value == 1
    assert figures["ggshell_path_bytes_total"].value > 0
    assert figures["ggshell_path_bytes_total"].labels["receiver"] == f"127.0.0.1:{line.port}"
    reading.source.run("STOP SERVICE")
    until("the path waits", lambda: "Waiting since" in reading.run("INFO RECVPATH rp1"))
    until("the reason is shown", lambda: "the source at 127.0.0.1" in reading.run("INFO RECVPATH rp1"))
    status = reading.run("SEND RECVPATH rp1 STATUS")
    assert f"Waiting for the source at 127.0.0.1:{line.port}" in status
    assert "the receiver" not in reading.report()
    lag = reading.run("LAG RECVPATH *")
    assert "At EOF" not in lag
    until("INFO ALL shows the lag", lambda: "00:00:00" not in _line(reading).split()[3])
    reading.run("STOP RECVPATH rp1")
    assert "At EOF" not in reading.run("LAG RECVPATH rp1")  # nobody knows what waits in the other home
    line.close()


def _line(reading: ReadingHomes) -> str:
    return next(line for line in reading.run("INFO ALL").splitlines() if "RP1" in line)


def test_a_receiver_path_fetches_compressed_and_writes_the_tables_of_its_rule(reading: ReadingHomes) -> None:
    reading.write(300, max_bytes=20_000)
    reading.add_path()
    reading.run("ALTER RECVPATH rp1 TARGET COMPRESSION THRESHOLD 0; ALTER RECVPATH rp1 TARGET SIZEMB 1")
    reading.run(f"ALTER RECVPATH rp1 RULE FILTER OBJECTNAMES {A.name} ACTION EXCLUDE; START RECVPATH rp1")
    until("everything was read", lambda: "At EOF" in reading.run("SEND RECVPATH rp1 STATUS"))
    assert reading.rows() == []
    shown = reading.run("INFO RECVPATH rp1")
    found = re.search(r"Received .* on the line \((\d+)%\)", shown)
    assert found is not None
    assert int(found[1]) < 90
    reading.run("STOP RECVPATH rp1; ALTER RECVPATH rp1 RULE PASSTHRU; ALTER RECVPATH rp1 BEGIN SEQNO 0 RBA 0")
    reading.run("START RECVPATH rp1")
    reading.until_equal()


def test_a_receiver_path_begins_at_a_time(reading: ReadingHomes) -> None:
    reading.write(20)
    reading.write(20)
    times = [small(csn, 1).pieces[0].header.commit_time for csn in (1, 2)]
    reading.add_path()
    altered = reading.run(f"ALTER RECVPATH rp1 BEGIN {local_text(times[1], '%Y-%m-%d %H:%M:%S.%f')}")
    assert "the first transaction of the source trail since" in altered
    reading.run("START RECVPATH rp1")
    wanted = read_all(reading.read)
    until("the rows since then arrived", lambda: bool(reading.rows()) and reading.rows()[-1] == wanted[-1])
    assert reading.rows() == wanted[2:]
