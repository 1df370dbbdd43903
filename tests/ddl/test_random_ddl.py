"""Random DDL and DML arrive, also under load and while the processes are killed: both sides have the same objects and rows."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from ddl_pipeline import DdlPipeline
from pgbench_load import SCHEMA, PgbenchLoad
from pipelines import EXT1, REP1
from processes import until, until_state
from random_schema import RandomSchema

from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState, read_process_file, state_of

STATEMENTS = 120
"""DDL statements of one round; with ``--rounds 5`` more than 500."""


@pytest.fixture
def pipeline(tmp_path: Path, server: str, south: str, request: pytest.FixtureRequest) -> Iterator[DdlPipeline]:
    made = DdlPipeline(tmp_path / "home", request.getfixturevalue(server), south)
    yield made
    made.close()


@pytest.mark.parametrize(("server", "kind"), [("north", ""), ("north", "PARALLEL, "), ("older", "")])
def test_random_statements_arrive_while_processes_are_killed(
    pipeline: DdlPipeline, kind: str, request: pytest.FixtureRequest
) -> None:
    pipeline.add_and_start(kind, ["s", SCHEMA])
    rounds, chance = request.config.getoption("--rounds") or 1, random.Random(kind)
    with psycopg.connect(pipeline.north, autocommit=True) as connection:
        for number in range(rounds):
            with PgbenchLoad(pipeline.north, seed=f"{number}") as load:
                source = RandomSchema(connection, seed=number)
                while source.ddl < STATEMENTS:
                    source.step()
                    if chance.random() < 0.05:
                        source.ddl += load.alter(connection)
                    if chance.random() < 0.01:
                        _kill(pipeline, chance.choice((EXT1, REP1)))
            pipeline.wait_until_applied(seconds=120)
            pipeline.assert_same()
            pipeline.in_north("DROP SCHEMA s CASCADE", "CREATE SCHEMA s")


def _kill(pipeline: DdlPipeline, group: tuple[str, GroupKind]) -> None:
    """Kill a process and start it again."""
    path = pipeline.home.process(*group)
    entry = read_process_file(path)
    assert entry is not None, pipeline.home.report(group[0]).read_text()[-3000:]
    os.kill(entry.pid, signal.SIGKILL)
    until("the process has ended", lambda: state_of(path)[0] is ProcessState.ABENDED)
    pipeline.start(group[0])
    until_state(pipeline.home, *group, ProcessState.RUNNING)
