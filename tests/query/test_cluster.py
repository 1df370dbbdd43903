"""Queries, the data source, streams and the writer on a standalone cluster whose hosts have no ggshell: as on this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from both_engines import local_engine
from cluster_queries import (
    answer_of_lag,
    answers,
    copied_to_trail,
    count,
    followed,
    hosts_seen,
    read_with_pauses,
    refused_with,
    rows_by_source,
    secrets_seen,
)
from processes import until
from spark_cluster import Cluster, Driver, bare_python, serve_cluster
from test_lag_queries import random_heartbeats
from trail_samples import random_transactions, trail_in, write_trail

from ggshell.monitoring import lag_archive
from ggshell.trail.name import TrailName

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    yield from serve_cluster(tmp_path_factory.mktemp("cluster"))


@pytest.fixture(scope="module")
def driver(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    made = Driver(cluster.settings(), tmp_path_factory.mktemp("home"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> TrailName:
    name = trail_in(tmp_path_factory.mktemp("trail"))
    write_trail(name, random_transactions(11, 100), max_bytes=14_000)
    return name


def test_every_query_gives_the_rows_of_the_local_engine(driver: Driver, trail: TrailName) -> None:
    wanted = answers(local_engine(), str(trail))
    assert driver.run(answers, str(trail)) == wanted
    assert all(wanted.values())


def test_a_lag_report_is_that_of_the_local_engine(driver: Driver, tmp_path: Path) -> None:
    lag_archive.write(tmp_path, "REP1", random_heartbeats(5))
    wanted = answer_of_lag(local_engine(), tmp_path)
    assert driver.run(answer_of_lag, tmp_path) == wanted
    assert wanted


def test_both_workers_run_tasks_with_the_package_that_the_driver_sent(driver: Driver) -> None:
    """Their Python has no ggshell of its own."""
    seen = driver.run(hosts_seen)
    assert len({process for process, _ in seen}) == 2
    assert all(".zip" in place for _, place in seen)


def test_a_batch_a_stream_and_a_written_trail_have_every_row_once(
    driver: Driver, trail: TrailName, tmp_path: Path
) -> None:
    wanted = rows_by_source(local_engine(), str(trail))
    assert driver.run(rows_by_source, str(trail)) == wanted
    assert driver.run(followed, str(trail), str(tmp_path / "lake")) == sorted((seqno, rba) for seqno, rba, _ in wanted)
    copy = TrailName(tmp_path, "co")
    driver.run(copied_to_trail, str(trail), str(copy))
    assert [row[2] for row in rows_by_source(local_engine(), str(copy))] == [row[2] for row in wanted]


def test_the_secret_of_the_cluster_is_in_no_command_line_and_no_log(
    cluster: Cluster, driver: Driver, trail: TrailName
) -> None:
    settings = driver.run(secrets_seen)
    assert settings == {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    lines = b"".join(_command_lines())
    assert b"CoarseGrainedExecutorBackend" in lines
    assert cluster.secret.encode() not in lines
    files = [file for folder in (cluster.folder, driver.log.parents[1]) for file in folder.rglob("*") if file.is_file()]
    held = [
        file for file in files if not file.is_relative_to(cluster.folder / "python") and _holds(file, cluster.secret)
    ]
    assert [file.name for file in held] == ["daemons.properties"]


def _command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:  # it has ended
            continue


def _holds(file: Path, text: str) -> bool:
    try:
        return text.encode() in file.read_bytes()
    except OSError:  # removed meanwhile
        return False


def test_a_host_without_a_library_or_without_python_is_named(
    cluster: Cluster, driver: Driver, trail: TrailName, tmp_path: Path
) -> None:
    for python, lacks in (
        (str(bare_python(tmp_path / "python", "duckdb")), "lacks the Python library duckdb"),
        ("/nowhere/python3", "cannot run /nowhere/python3"),
    ):
        found = driver.run(refused_with, python, str(trail))
        assert found.startswith(f"GGS-00717 host 127.0.0.1 of the cluster {lacks}")
    assert driver.run(refused_with, str(cluster.python), str(trail)) == ""


def _kill_worker(cluster: Cluster, _: int) -> None:
    cluster.kill_worker(1)


def _kill_executor(cluster: Cluster, number: int) -> None:
    os.kill(cluster.executors(number)[0], signal.SIGKILL)


@pytest.mark.parametrize("kill", [_kill_executor, _kill_worker])
def test_a_process_that_is_killed_in_the_middle_changes_no_answer(
    cluster: Cluster, driver: Driver, trail: TrailName, tmp_path: Path, kill: Callable[[Cluster, int], Any]
) -> None:
    """The tasks of the killed process have delivered a part of their rows."""
    mark = tmp_path / "begun"
    mark.mkdir()
    under_way = driver.start(read_with_pauses, str(trail), str(mark))
    until("tasks have begun", lambda: len(list(mark.iterdir())) >= 2, 120)
    kill(cluster, 0)
    (mark / "go on").touch()
    wanted = rows_by_source(local_engine(), str(trail))
    assert under_way.result(300) == [(seqno, rba) for seqno, rba, _ in wanted]
    assert driver.run(count, str(trail)) == count(local_engine(), str(trail))
