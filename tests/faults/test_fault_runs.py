"""``scripts/faults`` at a small size: no fault causes a loss or a repetition.

``--rounds`` makes the runs longer; each has its seed, so a run can be repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

pytestmark = [pytest.mark.pg, pytest.mark.slow]
SCRIPTS = Path(__file__).parents[2] / "scripts"
FEW = [
    *(("kill", kind, 2) for kind in ("classic", "parallel", "coordinated")),
    ("matrix", "parallel", 3),
    ("cut", "classic", 3),
    ("restart", "coordinated", 2),
    ("disk", "parallel", 2),
    ("large", "classic", 8),
    ("many", "parallel", 2),
    ("interleaved", "classic", 2),
    ("files", "classic", 2),
    ("files --case while", "classic", 2),
]
"""Faults, kinds of Replicat and rounds; ``scripts/faults`` runs every combination."""


def run_faults(*words: str) -> tuple[int, list[dict[str, object]], str]:
    """Run ``scripts/faults``; returns exit code, JSON objects and standard error."""
    path = os.pathsep.join([str(SCRIPTS), str(SCRIPTS.parent)])
    command = [sys.executable, "-m", "faultruns", "--json", *words]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    return result.returncode, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize(("name", "kind", "few"), FEW)
def test_no_fault_causes_loss_or_repetition(name: str, kind: str, few: int, request: pytest.FixtureRequest) -> None:
    rounds = request.config.getoption("--rounds") or few
    code, found, complaint = run_faults(*name.split(), "--kind", kind, "--rounds", str(rounds), "--seed", "5")
    assert code == 0, complaint
    (outcome,) = found
    assert list(outcome)[:5] == ["fault", "rounds", "lost", "twice", "seconds"]
    if outcome["skipped"]:
        pytest.skip(str(outcome["skipped"]))
    assert (outcome["rounds"], outcome["lost"], outcome["twice"]) == (rounds, 0, 0)
    assert int(str(outcome["transactions"])) > 0


def test_the_verdict_counts_missing_and_repeated_rows(north: str, south: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that the counts of the verdict can be other than zero."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from faultruns.verdict import Verdict, compare

    sides = {north: ("a", [1, 2, 3, 4], (5, 7)), south: ("b", [1, 2, 2, 2], (7, 5))}
    for dsn, (schema, lines, steps) in sides.items():
        with psycopg.connect(dsn) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(f"CREATE TABLE {schema}.ledger (line int)")
            connection.execute(f"CREATE TABLE {schema}.counters (id int, n int)")
            connection.execute(f"CREATE TABLE {schema}.bulk (line bigint, note text)")
            connection.execute(f"INSERT INTO {schema}.ledger SELECT unnest(%s::int[])", [lines])
            connection.execute(f"INSERT INTO {schema}.bulk SELECT g, %s FROM generate_series(1, 9) g", [schema])
            connection.execute(f"INSERT INTO {schema}.counters VALUES (1, %s), (2, %s)", steps)
    assert compare(north, south) == Verdict(lost=2 + 2 + 1, twice=2 + 2 + 1)
    with psycopg.connect(south) as connection:
        connection.execute("DELETE FROM b.bulk WHERE line > 5")
    assert compare(north, south) == Verdict(lost=2 + 2 + 4, twice=2 + 2)
