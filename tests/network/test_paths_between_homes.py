"""A path into another home: every row arrives once, whatever happens to the line and to the processes."""

from __future__ import annotations

import os
import signal

from command_line import run_ggshell
from processes import until, until_state
from two_homes import Line, TwoHomes, fingerprint, path_pid, service_pid

from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState


def test_rows_arrive_in_the_other_home_and_again_after_each_restart(homes: TwoHomes) -> None:
    homes.write(50, max_bytes=2000)
    homes.start_path()
    homes.until_equal()
    homes.write(50, max_bytes=2000)
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    homes.write(50)
    homes.run("START DISTPATH dp1")
    homes.until_equal()


def test_every_row_arrives_once_after_kills_of_sender_and_receiver(homes: TwoHomes) -> None:
    homes.write(200)
    homes.start_path()
    for round_ in range(3):
        homes.write(300)
        os.kill(path_pid(homes), signal.SIGKILL)
        until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
        homes.write(300)
        if round_ == 1:
            os.kill(service_pid(homes), signal.SIGKILL)
        else:
            homes.target.run("STOP SERVICE")
        homes.run("START DISTPATH dp1")
        homes.target.run("START SERVICE")
    homes.until_equal()


def test_a_path_connects_again_by_itself_when_the_line_was_cut(homes: TwoHomes, line: Line) -> None:
    homes.start_path(line.port)
    for _ in range(3):
        homes.write(100)
        until("a row arrived", lambda: bool(homes.rows()))
        line.cut()
    homes.write(100)
    homes.until_equal()
    assert "GGS-00950" in homes.report()
    assert "Reconnected" in homes.report()


def test_a_connection_that_is_cut_after_any_number_of_bytes_loses_nothing(homes: TwoHomes, line: Line) -> None:
    line.cut_after = [1, 40, 700, 3000, 7000]
    homes.write(30)
    homes.start_path(line.port)
    homes.until_equal(180)
    homes.run("STOP DISTPATH dp1")
    until("the end is in the log", lambda: "GGS-00959" in (homes.target.home / "ggserr.log").read_text())
    lines = [each for each in (homes.target.home / "ggserr.log").read_text().splitlines() if "Trail " in each]
    arrivals = [each for each in lines if "GGS-00958" in each]
    assert ["again, after the connection was lost" in each for each in arrivals] == [False] + [True] * (
        len(arrivals) - 1
    )
    assert len(lines) == len(arrivals) + 1


def test_an_unknown_sender_is_refused_with_the_statement_that_adds_it(homes: TwoHomes) -> None:
    Peers(Home(homes.target.home)).delete("source")
    homes.write(5)
    homes.start_path()
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00951" in homes.report()
    statement = f"ADD PEER {os.uname().nodename.partition('.')[0]}, FINGERPRINT {fingerprint(homes.source)}"
    assert statement in homes.report().replace("\n", " ")
    homes.target.run(statement)
    homes.run("START DISTPATH dp1")
    homes.until_equal()


def test_a_service_with_another_certificate_is_refused(homes: TwoHomes) -> None:
    Peers(Home(homes.source)).alter(f"target{homes.target.port}", fingerprint=fingerprint(homes.source))
    homes.write(5)
    homes.start_path()
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "has changed: pinned is" in homes.report()
    assert homes.rows() == []


def test_access_rules_apply_to_senders(homes: TwoHomes) -> None:
    (homes.target.home / "dirprm" / "mgr.prm").write_text("ACCESSRULE, PROG COLLECTOR, IPADDR 127.0.0.1, DENY\n")
    homes.write(5)
    homes.start_path()
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "403" in homes.report()
    (homes.target.home / "dirprm" / "mgr.prm").write_text("ACCESSRULE, PROG COLLECTOR, IPADDR 127.0.0.*, ALLOW\n")
    homes.run("START DISTPATH dp1")
    homes.until_equal()


def test_a_connection_ends_with_the_trust_in_its_sender(homes: TwoHomes) -> None:
    homes.write(5)
    homes.start_path()
    homes.until_equal()
    Peers(Home(homes.target.home)).add("other", "", fingerprint(homes.target.home))
    homes.write(5)
    homes.until_equal()
    homes.target.run("DELETE PEER source")
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00951" in homes.report()


def test_a_second_path_into_the_same_trail_is_refused(homes: TwoHomes) -> None:
    homes.write(5)
    homes.start_path()
    homes.until_equal()
    homes.run(f"ADD DISTPATH dp2, SOURCE ./dirdat/ea, TARGET {homes.url()}; START DISTPATH dp2")
    until_state(Home(homes.source), "DP2", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00954" in (homes.source / "dirrpt" / "DP2.rpt").read_text()
    homes.write(5)
    homes.until_equal()


def test_a_home_that_is_named_with_two_dots_receives_trails(homes: TwoHomes) -> None:
    homes.target.run("STOP SERVICE")
    dotted = homes.target.home / "dirdat" / ".."
    assert run_ggshell("--home", dotted, "-c", "START SERVICE").returncode == 0
    homes.write(5)
    homes.start_path()
    homes.until_equal()
