"""``extract``: rows a second from the slot to a durable trail, compared with pg_recvlogical, which discards the same stream.

Every run reads a slot of its own, all of them made before the rows. Both sides are timed from the start of their
walsender; ours ends when the trail's last byte is durable, the peer when it exits at the end position.
"""

from __future__ import annotations

import subprocess
import time

from benches.figures import Figure, alternate, more_is_better
from benches.ground import Ground, ground, wait_until

_STARTED = """
SELECT extract(epoch FROM a.backend_start)::float8 FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid
 WHERE s.slot_name = %s
"""


def run(rounds: int, quick: bool) -> list[Figure]:
    rows = 100_000 if quick else 1_000_000
    cases = (("100-row transactions", rows // 100, 100, 0.7), (f"one transaction of {rows:,} rows", 1, rows, 0.85))
    return [_case(name, transactions, size, goal, rounds) for name, transactions, size, goal in cases]


def _case(name: str, transactions: int, size: int, goal: float, rounds: int) -> Figure:
    with ground() as place:
        for number in range(rounds):
            place.extract(f"ext{number}", f"./dirdat/e{number}")
            place.one("north", "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (f"peer{number}",))
        rows = transactions * size
        place.fill(transactions, size)
        end = place.end_of_log()
        place.one("north", "SELECT pg_logical_emit_message(true, 'bench', 'end', true)")
        ours, peer = alternate(
            rounds,
            lambda number: rows / read_log(place, f"ext{number}", f"e{number}", end),
            lambda number: rows / _peer(place, f"peer{number}", end),
        )
    return more_is_better("extract", name, "rows/s", ours, peer, "pg_recvlogical, output discarded", goal)


def read_log(place: Ground, group: str, trail: str, end: str) -> float:
    place.obey(f"START EXTRACT {group}")
    began = wait_until(f"{group} reads its slot", lambda: place.one("north", _STARTED, (f"ggs_{group}",)))
    place.wait_for_slot(f"ggs_{group}", end)
    files = [*(place.home / "dirdat").glob(f"{trail}?????????"), place.home / "dirdat" / f".{trail}.durable"]
    ended = max(file.stat().st_mtime for file in files)
    place.obey(f"STOP EXTRACT {group}")
    return float(ended - began)


def _peer(place: Ground, slot: str, end: str) -> float:
    """pg_recvlogical on the Unix socket, with the protocol that our Extract speaks."""
    options = ["-o", "proto_version=4", "-o", "publication_names=ggshell", "-o", "streaming=on"]
    command = [
        *(place.program("pg_recvlogical"), "-d", place.servers.dsn("north"), "-S", slot),
        *("--start", "--no-loop", "-f", "/dev/null", "-F", "0", "-E", end, *options),
    ]
    with subprocess.Popen(command) as process:
        began = wait_until(f"{slot} is read", lambda: place.one("north", _STARTED, (slot,)), every=0.001)
        if process.wait() != 0:
            raise RuntimeError(f"pg_recvlogical failed: {command}")
    return float(time.time() - began)
