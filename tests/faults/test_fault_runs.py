"""``scripts/faults`` at a small size: no fault causes a loss or a repetition.

``--rounds`` makes the runs longer; each has its seed, so a run can be repeated.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from forked_processes import REAL

pytestmark = [pytest.mark.pg, pytest.mark.slow]
SCRIPTS = Path(__file__).parents[2] / "scripts"
FEW = [
    *(("kill", kind, 2) for kind in ("classic", "parallel", "coordinated")),
    ("matrix", "parallel", 3),
    ("cut", "classic", 3),
    ("restart", "coordinated", 2),
    ("kill", "to-mariadb", 2),
    ("matrix", "from-mariadb", 2),
    ("cut", "to-mariadb-parallel", 2),
    ("disk", "parallel", 2),
    ("large", "classic", 8),
    ("many", "parallel", 2),
    ("interleaved", "classic", 2),
    ("files", "classic", 2),
    ("files --case while", "classic", 2),
    ("soak", "classic", 1),
]
"""Faults, kinds of Replicat and rounds; ``scripts/faults`` runs every combination."""


REAL_STARTS = ("large", "soak")
"""Faults that measure the memory of a process, which a fork shares with others."""


def run_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, list[dict[str, object]], str]:
    """Run ``scripts/faults`` in this process, so that its processes are forks; returns exit code, JSON objects and errors."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from faultruns.__main__ import main

    monkeypatch.setattr(sys, "argv", ["faults", "--json", *words])
    if words[0] in REAL_STARTS:
        monkeypatch.setenv(REAL, "1")
    code = main()
    written = capsys.readouterr()
    return code, [json.loads(line) for line in written.out.splitlines()], written.err


@pytest.mark.parametrize(("name", "kind", "few"), FEW)
def test_no_fault_causes_loss_or_repetition(
    name: str,
    kind: str,
    few: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rounds = request.config.getoption("--rounds") or few
    words = [*name.split(), "--kind", kind, "--rounds", str(rounds), "--seed", "5"]
    code, found, complaint = run_faults(monkeypatch, capsys, *words)
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
    from faultruns.sides import PostgresSession
    from faultruns.verdict import Verdict, compare

    class Side(NamedTuple):
        schema: str
        dsn: str

        @contextmanager
        def session(self) -> Iterator[PostgresSession]:
            with psycopg.connect(self.dsn) as connection:
                yield PostgresSession(connection)

    source, target = Side("a", north), Side("b", south)
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
    assert compare(source, target) == Verdict(lost=2 + 2 + 1, twice=2 + 2 + 1)
    with psycopg.connect(south) as connection:
        connection.execute("DELETE FROM b.bulk WHERE line > 5")
    assert compare(source, target) == Verdict(lost=2 + 2 + 4, twice=2 + 2)


def test_a_soak_tells_what_grows_and_ignores_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from faultruns.soak import WARM_ROUNDS, Need, growth

    warm = [Need(20.0 + number, 30) for number in range(WARM_ROUNDS)]
    flat = [*warm, *(Need(60.0 + number % 3, 30 + number % 2) for number in range(200))]
    assert growth(flat) == ""
    assert growth([*warm, *(Need(60.0 + number / 100, 30) for number in range(200))]) == "grows by 3.6 MB an hour"
    assert growth([*flat, Need(60.0, 33)]) == "had 30 file descriptors open at first, 33 in the end"
    assert growth(warm[:1]) == ""
