"""The receiving home shows which trails arrive, with and without its service, and forgets a sender when asked."""

from __future__ import annotations

import json

from command_line import run_ggshell
from processes import until
from two_homes import TwoHomes


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
    assert "Bytes " in on_target(homes, "STATS RECVPATH *")
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
    on_target(homes, "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/xx; ADD EXTTRAIL ./dirdat/da, EXTRACT pmp1")
