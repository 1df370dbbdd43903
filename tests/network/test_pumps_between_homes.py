"""Pumps with RMTHOST and RMTTRAIL, with parameter files as they are published: every row arrives once in the other home."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from processes import until, until_state
from two_homes import Line, TwoHomes

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.trail.name import TrailName

pytestmark = pytest.mark.slow
PUMP = ("PMP1", GroupKind.EXTRACT)


def add_pump(homes: TwoHomes, host: str, more: str = "", group: str = "pmp1") -> None:
    """Add a pump that writes ``./dirdat/da`` of the home that RMTHOST names, and start it."""
    text = f"EXTRACT {group}\nRMTHOST {host}\nRMTTRAIL ./dirdat/da\n{more}PASSTHRU\nTABLE *.*;\n"
    Home(homes.source).parameters(group).write_text(text)
    homes.run(
        f"ADD EXTRACT {group}, EXTTRAILSOURCE ./dirdat/ea; ADD RMTTRAIL ./dirdat/da, EXTRACT {group}, MEGABYTES 1"
        f"; START EXTRACT {group}"
    )


def report(homes: TwoHomes) -> str:
    return Home(homes.source).report("PMP1").read_text()


def kill(homes: TwoHomes) -> None:
    found = read_process_file(Home(homes.source).process(*PUMP))
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until_state(Home(homes.source), *PUMP, ProcessState.ABENDED)


def local_files(homes: TwoHomes) -> list[Path]:
    return list((homes.source / "dirdat").glob("da*"))


def test_a_published_pump_reaches_the_other_home_through_the_port_of_its_manager(tmp_path: Path) -> None:
    homes = TwoHomes(tmp_path, manager_port=True)
    try:
        homes.write(50)
        options = (
            ", ENCRYPT AES192, KEYNAME newyork, COMPRESS, COMPRESSTHRESHOLD 750, TCPBUFSIZE 100000, TCPFLUSHBYTES 3000"
        )
        add_pump(homes, f"127.0.0.1, MGRPORT {homes.manager_port}{options}")
        homes.until_equal()
        assert local_files(homes) == []
        assert "every connection to another machine is encrypted with TLS" in report(homes)
    finally:
        homes.close()


def test_a_pump_continues_after_kills_and_cut_lines_without_streaming(homes: TwoHomes, line: Line) -> None:
    line.cut_after = [3000, 9000]
    homes.write(60)
    add_pump(homes, f"127.0.0.1 MGRPORT {line.port} NOSTREAMING TCPFLUSHBYTES 500 TIMEOUT 6")
    for _ in range(2):
        homes.write(60)
        kill(homes)
        homes.run("START EXTRACT pmp1")
        homes.write(60)
        until("a row arrived", lambda: bool(homes.rows()))
        line.cut()
    homes.until_equal()
    assert local_files(homes) == []


def test_timeout_tells_a_short_stall_from_a_lost_connection(homes: TwoHomes, line: Line) -> None:
    """A half-open connection: without RMTHOST's TIMEOUT it is noticed after 30 seconds."""
    homes.write(10)
    add_pump(homes, f"127.0.0.1, PORT {line.port}, TIMEOUT 2")
    homes.until_equal()
    line.stall()
    homes.write(10)
    threading.Event().wait(0.7)
    line.resume()
    homes.until_equal()
    assert line.connections == 1
    line.stall()
    homes.write(10)
    until("the pump has noticed", lambda: "nothing has arrived for 2 seconds" in report(homes))
    until("the status says so", lambda: "Waiting for" in homes.run("SEND EXTRACT pmp1, STATUS"))
    line.resume()
    homes.write(10)
    homes.until_equal()


def test_a_pump_waits_for_a_receiver_and_writes_nothing_here(homes: TwoHomes) -> None:
    homes.target.run("STOP SERVICE")
    homes.write(10)
    add_pump(homes, f"127.0.0.1, PORT {homes.target.port}")
    until("the pump has tried", lambda: "GGS-00950" in report(homes) and "retrying" in report(homes))
    waiting = f"Waiting for wss://127.0.0.1:{homes.target.port}"
    until("the status says so", lambda: waiting in homes.run("SEND EXTRACT pmp1, STATUS"))
    assert "GGS-00950" in (homes.source / "ggserr.log").read_text()
    assert local_files(homes) == []
    homes.target.run("START SERVICE")
    homes.until_equal()


def test_etrollover_and_the_file_size_apply_in_the_other_home(homes: TwoHomes) -> None:
    homes.write(20)
    add_pump(homes, f"127.0.0.1, PORT {homes.target.port}")
    homes.until_equal()
    homes.run(
        "STOP EXTRACT pmp1; ALTER EXTRACT pmp1, ETROLLOVER; ALTER RMTTRAIL ./dirdat/da, EXTRACT pmp1, MEGABYTES 2"
    )
    homes.write(20)
    homes.run("START EXTRACT pmp1")
    homes.until_equal()
    assert homes.written.sequences() == [0, 1]
    assert "2M" in homes.run("INFO RMTTRAIL ./dirdat/da")
    homes.write(400, rows=200)
    homes.until_equal()
    assert homes.written.sequences()[-1] > 1
    assert all(homes.written.file(seqno).stat().st_size < 4 << 20 for seqno in homes.written.sequences())


def test_a_service_without_tls_is_used_on_a_loopback_address(tmp_path: Path) -> None:
    homes = TwoHomes(tmp_path, "PLAINTEXT\n")
    try:
        homes.write(20)
        add_pump(homes, f"localhost, MGRPORT {homes.target.port}")
        homes.until_equal()
    finally:
        homes.close()


def test_rmthost_with_this_homes_own_port_stays_here(homes: TwoHomes) -> None:
    homes.write(20)
    add_pump(homes, "localhost, MGRPORT 7809")
    homes.written = TrailName(homes.source / "dirdat", "da")
    homes.until_equal()


def test_a_loopback_address_without_a_port_is_this_home(homes: TwoHomes) -> None:
    homes.write(5)
    add_pump(homes, "localhost")
    until("the pump has written a trail here", lambda: bool(local_files(homes)))
    assert "GGS-00950" not in report(homes)
