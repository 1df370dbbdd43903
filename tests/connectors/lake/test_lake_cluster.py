"""A lake Replicat whose batches run on a cluster: hosts without ggshell, and workers that are killed."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from enum import StrEnum
from functools import partial

import psycopg
import pytest
from lakes import PEOPLE, Lake, key_update, person
from ledger import Ledger
from processes import until
from spark_cluster import Cluster, serve_cluster

from ggshell.connectors.lake.target import TableForm
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import alive, read_process_file

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("java")]


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    yield from serve_cluster(tmp_path_factory.mktemp("cluster"))


def use(cluster: Cluster, lake: Lake) -> None:
    """Settings of the home: Spark is the cluster."""
    settings = cluster.settings()
    lines = [
        f"master {settings.master}",
        "memory 512m",
        *(f"{name} {value}" for name, value in settings.options.items()),
    ]
    file = lake.home.root / "dirprm" / "spark.conf"
    file.touch(0o600)
    file.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("lake", [TableForm.DELTA], indirect=True)
def test_batches_that_run_on_a_cluster_arrive_once_although_a_worker_is_killed(
    cluster: Cluster, lake: Lake, north: str
) -> None:
    """COMPARE finds the same on the cluster and in this process."""
    use(cluster, lake)
    lake.write([person(number, "Ada", "1") for number in range(1, 2001)])
    lake.run(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {lake.form}:./lake\nSTART REPLICAT lake")
    lake.delivered()
    expected = set(range(1, 2001))
    for number in (1, 2):
        lake.write([key_update(PEOPLE, number, 9000 + number), person(5000 + number, "Bo", "2")])
        expected = expected - {number} | {9000 + number, 5000 + number}
        cluster.replace_worker(number - 1)
        lake.delivered()
    assert {row[0] for row in lake.people()} == expected
    assert len(lake.logged()) == len(set(lake.logged())) == 2004
    with psycopg.connect(north) as connection:
        connection.execute("CREATE SCHEMA hr")
        connection.execute("CREATE TABLE hr.people (id int PRIMARY KEY, name text, pay numeric(8,2))")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO hr.people VALUES (%s, %s, %s)", lake.people())
        connection.execute("UPDATE hr.people SET name = 'Eve' WHERE id = 77")
        connection.execute("DELETE FROM hr.people WHERE id = 9001")
    lake.run("STOP REPLICAT lake")  # It has all cores of the cluster.
    until("the cores are free", lambda: cluster.executors(0) == cluster.executors(1) == [])
    compare = f"COMPARE '{north}' TO {lake.form}:./lake, TABLE hr.people, LAG 0 SEC"
    for engine in ("local", "spark"):
        found = lake.shell(compare, engine=engine)
        assert found.returncode == 1
        assert "changed  id=77    name=Eve  name=Ada" in found.stdout
        assert "2 rows differ" in found.stderr
        assert "load a table that differs again with an initial load" in found.stderr


class Killed(StrEnum):
    """What ends in the middle of a batch."""

    EXECUTOR = "an executor"
    WORKER = "a worker with its executor"
    DRIVER = "the Replicat"


def has_begun(cluster: Cluster, lake: Lake, tasks: int) -> bool:
    """Whether so many tasks have started, or all batches have ended with fewer."""
    return cluster.tasks_started() >= tasks or lake.is_delivered


def kill(killed: Killed, number: int, cluster: Cluster, lake: Lake) -> None:
    """``number``: which of the two workers."""
    if killed is Killed.EXECUTOR:
        for process in cluster.executors(number)[:1]:
            os.kill(process, signal.SIGKILL)
    elif killed is Killed.WORKER:
        cluster.replace_worker(number)
    else:
        entry = read_process_file(lake.home.process("LAKE", GroupKind.REPLICAT))
        assert entry is not None
        os.kill(entry.pid, signal.SIGKILL)
        until("the process has ended", lambda: not alive(entry))
        lake.run("START REPLICAT lake")


@pytest.mark.parametrize("lake", [TableForm.DELTA, TableForm.ICEBERG], indirect=True)
def test_kills_at_random_tasks_of_a_batch_agree_with_a_client_s_ledger(
    cluster: Cluster, lake: Lake, request: pytest.FixtureRequest
) -> None:
    """Each batch loses an executor, a worker or the driver when some of its tasks have started."""
    use(cluster, lake)
    numbers, ledger = random.Random(5), Ledger(lake, 6)
    lake.end = ledger.write()
    lake.run(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {lake.form}:./lake\nSTART REPLICAT lake")
    lake.delivered()
    for _ in range(max(1, request.config.getoption("--rounds"))):
        for killed in Killed:
            wanted = cluster.tasks_started() + numbers.randint(1, 3)
            for _ in range(numbers.randint(1, 3)):
                ledger.write()
            until("tasks have started", partial(has_begun, cluster, lake, wanted), 120)
            kill(killed, numbers.randrange(2), cluster, lake)
            lake.delivered()
    ledger.agrees([row[0] for row in lake.people()], lake.logged())
