"""The network between two homes fails, and so do all processes of both homes: the tests of tests/network, for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benches.ground import Failed

KINDS = {"path": ("", "")}
ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/network/test_network_faults.py",
    "tests/network/test_killed_processes.py",
    "tests/network/test_slow_lines.py",
)
_SHOWN = 4000
"""How many characters of a failure are shown."""


def missing() -> str:
    """The tests make namespaces themselves, or use loopback addresses."""
    return ""


def run(rounds: int) -> None:
    """Break the network in so many rounds of each kind. Raises Failed if a row was lost or arrived twice."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *TESTS, "--rounds", str(rounds)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(done.stdout[-_SHOWN:] + done.stderr[-_SHOWN:])
