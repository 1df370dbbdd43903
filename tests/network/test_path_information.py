"""What INFO, LAG and STATUS show of a path to another home: a path that waits never looks like one that works."""

from __future__ import annotations

from processes import until
from two_homes import Line, TwoHomes

from ggshell.clock import SystemClock
from ggshell.groups.save_schedule import IDLE_SECONDS
from ggshell.home.home import Home
from ggshell.service.group_snapshot import snapshots
from ggshell.service.transfer_metrics import sent_metrics


def lag_of_info_all(homes: TwoHomes) -> str:
    return next(line.split()[3] for line in homes.run("INFO ALL").splitlines() if "DP1" in line)


def test_info_shows_target_acknowledged_position_and_connection(homes: TwoHomes, line: Line) -> None:
    homes.write(50)
    homes.start_path(line.port)
    homes.until_equal()
    until("the round trip is measured", lambda: " ms" in homes.run("INFO DISTPATH dp1"))
    metrics = sent_metrics(snapshots(Home(homes.source), SystemClock().now()))
    trips = [
        each.value for found in metrics for each in found.samples if each.name == "ggshell_path_round_trip_seconds"
    ]
    assert (
        0 < trips[0] < IDLE_SECONDS / 2
    )  # the answer is taken when it arrives, not at the next turn of an idle process
    until("the checkpoint follows", lambda: "Acknowledged         File" in homes.run("INFO DISTPATH dp1"))
    shown = homes.run("INFO DISTPATH dp1, DETAIL")
    for text in (
        f"Target               {homes.url(line.port, './dirdat/da')}",
        "Connected since",
        "In Flight            0 bytes",
    ):
        assert text in shown
    status = homes.run("SEND DISTPATH dp1 STATUS")
    assert "Connection to the receiver:" in status
    assert "Round Trip: " in status
    assert "At EOF" in homes.run("LAG DISTPATH dp1")


def test_the_target_can_be_named_by_the_port_of_a_manager_or_service(homes: TwoHomes) -> None:
    url = homes.url().replace("wss://", "ogg://")
    homes.run(f"ADD DISTPATH dp2, SOURCE ./dirdat/ea, TARGET {url}, TARGETTYPE MANAGER")
    assert "COLLECTOR" in homes.run(f"ADD DISTPATH dp3, SOURCE ./dirdat/ea, TARGET {url}, TARGETTYPE COLLECTOR", code=1)
    assert "OAUTH" in homes.run(f"ADD DISTPATH dp3, SOURCE ./dirdat/ea, TARGET {url}, AUTHENTICATION OAUTH", code=1)
    url = homes.url().replace("targets", "sources")
    assert "OAUTH" in homes.run(f"ADD RECVPATH rp3, SOURCE {url}, TARGET ./dirdat/ec, AUTHENTICATION OAUTH", code=1)


def test_a_path_that_waits_says_so_everywhere_and_its_lag_grows(homes: TwoHomes, line: Line) -> None:
    homes.write(5)
    homes.start_path(line.port)
    homes.until_equal()
    until("all is acknowledged", lambda: "At EOF" in homes.run("LAG dp1"))
    homes.target.run("STOP SERVICE")
    until("the path waits", lambda: "Waiting since" in homes.run("INFO DISTPATH dp1"))
    assert "At EOF" in homes.run("LAG dp1")  # nothing waits to be sent
    homes.write(5)
    lag = homes.run("LAG DISTPATH *")
    assert "At EOF" not in lag
    assert "Waiting for wss://" in lag
    until("the reason is shown", lambda: "cannot be reached" in homes.run("INFO DISTPATH dp1"))
    assert "Waiting for" in homes.run("SEND DISTPATH dp1 STATUS")
    until("INFO ALL shows the lag", lambda: lag_of_info_all(homes) != "00:00:00")
    homes.target.run("START SERVICE")
    homes.until_equal()
    until("the path is connected", lambda: "Connected since" in homes.run("INFO DISTPATH dp1"))


def test_lag_counts_what_is_sent_and_not_acknowledged(homes: TwoHomes, line: Line) -> None:
    homes.write(5)
    homes.start_path(line.port)
    homes.until_equal()
    line.stall()
    homes.write(5)
    until("the lag grows", lambda: "At EOF" not in homes.run("LAG dp1"))
    line.resume()
    homes.until_equal()
    until("the lag is gone", lambda: "At EOF" in homes.run("LAG dp1"))
