"""A lake Replicat whose batches run on a cluster: hosts without ggshell, and workers that are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lakes import PEOPLE, Lake, key_update, person
from spark_cluster import Cluster, serve_cluster

from ggshell.connectors.lake.target import TableForm

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
def test_batches_that_run_on_a_cluster_arrive_once_although_a_worker_is_killed(cluster: Cluster, lake: Lake) -> None:
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
