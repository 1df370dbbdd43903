"""The receiving home shows which trails arrive, with and without its service, and forgets a sender when asked."""

from __future__ import annotations

import json
from collections.abc import Iterable

from command_line import run_ggshell
from processes import until, until_state
from prometheus_client.core import Metric
from two_homes import TwoHomes

from ggshell.clock import SystemClock
from ggshell.home.certificate import CERTIFICATE
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState
from ggshell.service.group_snapshot import snapshots
from ggshell.service.transfer_metrics import received_metrics, sent_metrics
from ggshell.trail.removing import trail_lock


def on_target(homes: TwoHomes, statement: str, code: int = 0) -> str:
    done = run_ggshell("--home", homes.target.home, "-c", statement)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_arrivals_are_listed_counted_and_forgotten(homes: TwoHomes) -> None:
    assert "No trails arrive" in on_target(homes, "INFO RECVPATH ALL")
    homes.write(10)
    homes.start_path()
    homes.until_equal()
    shown = on_target(homes, "INFO RECVPATH dp1")
    for text in ("RECVPATH   DP1", "Trail ./dirdat/da   Status CONNECTED", "From 127.0.0.1 since", "RBA", "Received"):
        assert text in shown
    assert "Bytes " in on_target(homes, "STATS RECVPATH *, TOTAL")
    refused = homes.target.run("STATS RECVPATH dp1, HOURLY", code=1)
    assert "counted in total only" in refused
    rows = json.loads(run_ggshell("--home", homes.target.home, "--format", "json", "-c", "INFO RECVPATH ALL").stdout)
    values = dict(zip(rows["columns"], rows["rows"][0], strict=True))
    assert values["sender_group"] == "DP1"
    assert values["bytes"] > 0
    assert "is connected" in on_target(homes, "DELETE RECVPATH dp1 !", code=1)
    homes.run("STOP DISTPATH dp1")
    until("the connection has ended", lambda: "NOT CONNECTED" in on_target(homes, "INFO RECVPATH ./dirdat/da"))
    homes.target.run("STOP SERVICE")
    assert "SERVICE STOPPED" in on_target(homes, "INFO RECVPATH da")
    assert "does not exist" in on_target(homes, "INFO RECVPATH other", code=1)
    assert "a confirmation is required" in on_target(homes, "DELETE RECVPATH dp1", code=1)
    assert "Deleted RECVPATH DP1" in on_target(homes, "DELETE RECVPATH dp1 !")
    assert "No trails arrive" in on_target(homes, "INFO RECVPATH ALL")


def test_a_deleted_sender_continues_its_trail_and_purge_frees_the_name(homes: TwoHomes) -> None:
    homes.write(10)
    homes.start_path()
    homes.until_equal()
    homes.run("STOP DISTPATH dp1; DELETE DISTPATH dp1")
    until("the connection has ended", lambda: "NOT CONNECTED" in on_target(homes, "INFO RECVPATH dp1"))
    assert "the same sender can continue it" in on_target(homes, "DELETE RECVPATH dp1 !")
    on_target(homes, "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/xx")
    local = "ADD EXTTRAIL ./dirdat/da, EXTRACT pmp1"
    assert "wrote it" in on_target(homes, local, code=1)
    homes.run(f"ADD DISTPATH dp2, SOURCE ./dirdat/ea, TARGET {homes.url()}; START DISTPATH dp2")
    until_state(Home(homes.source), "DP2", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00954" in Home(homes.source).report("DP2").read_text()
    homes.write(10)
    homes.start_path()
    homes.until_equal()
    assert "is connected" in on_target(homes, "DELETE RECVPATH dp1 PURGE !", code=1)
    homes.run("STOP DISTPATH dp1")
    until("the connection has ended", lambda: "NOT CONNECTED" in on_target(homes, "INFO RECVPATH dp1"))
    on_target(homes, "DELETE RECVPATH dp1 !")
    with trail_lock(homes.written):
        assert "is locked by another process" in on_target(homes, "DELETE RECVPATH dp1 PURGE !", code=1)
    assert "is removed" in on_target(homes, "DELETE RECVPATH dp1 PURGE !")
    assert homes.written.sequences() == []
    on_target(homes, local)


def test_arrivals_are_targets_of_the_rest_api_and_metrics(homes: TwoHomes) -> None:
    homes.write(10)
    homes.start_path()
    homes.until_equal()
    client = homes.target.client(verify=str(Home(homes.target.home).resolve(CERTIFICATE)))
    assert [(each["name"], each["status"]) for each in client.get("/targets").response["items"]] == [("DP1", "running")]
    shown = client.get("/targets/dp1").response
    assert (shown["sourceGroup"], shown["target"]["uri"].endswith("trail=./dirdat/da")) == ("DP1", True)
    info = client.get("/targets/DP1/info").response
    assert (info["address"], info["position"]["name"], info["position"]["offset"] > 0) == ("127.0.0.1", "da", True)
    assert client.get("/targets/DP1/stats").response["totalBytesReceived"] > 0
    (row,) = client.get("/mpoints/recvsrvr/recvsrvrStats").response["recvsrvrStats"]
    assert (row["pathName"], row["totalMessagesReceived"] > 0) == ("DP1", True)
    assert client.get("/targets/DP9/info").status == 404
    assert client.patch("/targets/DP1", {}).codes == ["GGS-00904"]
    assert client.delete("/targets/DP1").status == 409
    homes.run("STOP DISTPATH dp1")
    until("the connection has ended", lambda: client.get("/targets/DP1").response["status"] == "stopped")
    assert client.delete("/targets/DP1").status == 200
    assert client.get("/targets").response["items"] == []


def test_both_ends_have_metrics(homes: TwoHomes) -> None:
    homes.write(10)
    homes.start_path()
    homes.until_equal()
    here = samples(received_metrics(Home(homes.target.home)))
    assert here["ggshell_received_bytes_total"] > 0
    assert here["ggshell_receiver_connected"] == 1
    there = samples(sent_metrics(snapshots(Home(homes.source), SystemClock().now())))
    assert there["ggshell_path_connected"] == 1
    assert there["ggshell_path_bytes_total"] > 0
    assert there["ggshell_path_in_flight_bytes"] == 0


def samples(metrics: Iterable[Metric]) -> dict[str, float]:
    return {sample.name: sample.value for metric in metrics for sample in metric.samples}
