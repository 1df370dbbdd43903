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
from deliveries import BEGIN, Deliveries
from lakes import Lake, person
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
def test_compare_finds_the_same_on_a_cluster_and_in_this_process(cluster: Cluster, lake: Lake, north: str) -> None:
    use(cluster, lake)
    end = lake.write([person(number, "Ada", "1") for number in range(1, 2001)])
    Deliveries(lake, split_bytes=1 << 20).batch(0, BEGIN, end)
    with psycopg.connect(north) as connection:
        connection.execute("CREATE SCHEMA hr")
        connection.execute("CREATE TABLE hr.people (id int PRIMARY KEY, name text, pay numeric(8,2))")
        connection.execute(
            "INSERT INTO hr.people SELECT n, CASE n WHEN 77 THEN 'Eve' ELSE 'Ada' END, 1 FROM generate_series(2, 2000) n"
        )
    for engine in ("local", "spark"):
        found = lake.shell(f"COMPARE '{north}' TO {lake.form}:./lake, TABLE hr.people, LAG 0 SEC", engine=engine)
        assert found.returncode == 1
        assert "changed  id=77  name=Eve" in found.stdout
        assert "extra    id=1" in found.stdout
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


@pytest.mark.parametrize(
    ("lake", "kills"),
    [
        (TableForm.DELTA, (Killed.WORKER, Killed.DRIVER)),
        (TableForm.ICEBERG, (Killed.EXECUTOR, Killed.WORKER)),
    ],
    indirect=["lake"],
)
def test_kills_at_random_tasks_of_a_batch_agree_with_a_client_s_ledger(
    cluster: Cluster, lake: Lake, kills: tuple[Killed, ...], request: pytest.FixtureRequest
) -> None:
    """Each batch loses an executor, a worker or the driver when some of its tasks have started.

    The end of the driver of an Iceberg lake within a batch is tested without a cluster (``test_lake_replicat``).
    """
    use(cluster, lake)
    numbers, ledger = random.Random(5), Ledger(lake, 6)
    lake.end = ledger.write()
    lake.run(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET {lake.form}:./lake\nSTART REPLICAT lake")
    lake.delivered()
    for _ in range(max(1, request.config.getoption("--rounds"))):
        for killed in kills:
            wanted = cluster.tasks_started() + numbers.randint(1, 3)
            for _ in range(numbers.randint(1, 3)):
                ledger.write()
            until("tasks have started", partial(has_begun, cluster, lake, wanted), 120)
            kill(killed, numbers.randrange(2), cluster, lake)
            lake.delivered()
    ledger.agrees([row[0] for row in lake.people()], lake.logged())
