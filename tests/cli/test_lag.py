"""How commands show lag: as a clock, and as unknown if a trail is damaged."""

from __future__ import annotations

from cli.shell import Shell, replicat, trail_read

SECOND = 1_000_000


def test_a_damaged_trail_makes_the_lag_unknown_with_the_reason(shell: Shell) -> None:
    shell.save(replicat("REP1")._replace(read=trail_read()))
    (shell.home.root / "dirdat" / "ea000000000").write_bytes(b"no trail at all, but longer than nothing" * 10)
    answer = shell.batch("INFO ALL")
    assert answer.code == 0
    assert next(line.split()[3] for line in answer.out.splitlines() if "REP1" in line) == "Unknown"
    assert answer.err.startswith("WARNING OGG-01028  the lag of REPLICAT REP1 is unknown: ")
    (found,) = shell.run("--format", "json", "-c", "INFO ALL").objects
    assert (found["status"], found["code"], found["rows"][1][3]) == ("ok", "OGG-01028", None)
    out = shell.batch("INFO REPLICAT rep1", "LAG REPLICAT rep1").out
    assert "Checkpoint Lag       Unknown (updated" in out
    assert "The lag is unknown" in out
