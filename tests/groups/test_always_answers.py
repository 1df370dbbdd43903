"""A process answers within a second whatever it waits for, reports what it waits for, and stops on request."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from black_hole import BlackHole
from pipelines import TABLE, Pipeline
from processes import until, until_state
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from time_limits import slowness

from ggshell.connectors.duckdb import session
from ggshell.errors import GgsError
from ggshell.groups.process_request import request
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.process_file import ProcessState, read_process_file

LIMIT_SECONDS = 1.0
REQUESTS = ("REPORT", "STATUS", "GETLAG", "STATS")
EXT1, PUMP1, PATH1 = ("EXT1", GroupKind.EXTRACT), ("PUMP1", GroupKind.EXTRACT), ("PATH1", GroupKind.PATH)
LOAD1 = ("LOAD1", GroupKind.EXTRACT)


class Replicat(NamedTuple):
    """A Replicat of these tests: how it is added, its parameters and its target; its table has the name of the group."""

    group: str
    added: str = ""
    parameters: str = ""
    alias: str = "south"

    @property
    def table(self) -> str:
        return f"b.{self.group.lower()}"

    @property
    def id(self) -> tuple[str, GroupKind]:
        return self.group, GroupKind.REPLICAT


CLASSIC = Replicat("REPC")
PARALLEL = Replicat("REPP", "PARALLEL,", "APPLY_PARALLELISM 2\n")
IN_ORDER = Replicat("REPF", "PARALLEL,", "APPLY_PARALLELISM 2\nCOMMIT_SERIALIZATION FULL\n")
COORDINATED = Replicat("REPO", "COORDINATED MAXTHREADS 2,")
LOST = Replicat("REPN", alias="lost")
STOPPED = Replicat("REPS")
DUCKDB = Replicat("REPK", alias="duck")
REPLICATS = (CLASSIC, PARALLEL, IN_ORDER, COORDINATED, LOST, STOPPED, DUCKDB)


@pytest.fixture
def hole(south: str) -> Iterator[BlackHole]:
    hole = BlackHole(int(str(conninfo_to_dict(south)["port"])))
    yield hole
    hole.close()


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str, hole: BlackHole) -> Iterator[Pipeline]:
    """One source, a pump, a path and every kind of Replicat, all of them running and at the end of their trails."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    store = CredentialStore(pipeline.home)
    store.add("lost", make_conninfo(south, host="127.0.0.1", port=hole.port), "")
    store.add("duck", session.login_of(pipeline.home.root / "south.duckdb"), "")
    pipeline.add()
    pipeline.write("pump1", "EXTRACT pump1\nEXTTRAIL ./dirdat/pa\nTABLE a.*;\n")
    pipeline.write("load1", "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/la\nTABLE a.locked;\n")
    added = [
        "ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/pa, EXTRACT pump1",
        "ADD DISTPATH path1 SOURCE ./dirdat/ea TARGET ./dirdat/da",
        "ADD EXTRACT load1, SOURCEISTABLE",
        "DBLOGIN USERIDALIAS duck",
        "ADD CHECKPOINTTABLE b.checks",
    ]
    duck = session.connect(session.login_of(pipeline.home.root / "south.duckdb"))
    session.execute(duck, "CREATE SCHEMA b")
    session.execute(duck, f"CREATE TABLE {DUCKDB.table} (id int PRIMARY KEY, name text, price numeric)")
    duck.close()
    for each in REPLICATS:
        name = each.group.lower()
        pipeline.write(
            name, f"REPLICAT {name}\nUSERIDALIAS {each.alias}\n{each.parameters}MAP a.items, TARGET {each.table};\n"
        )
        if each is not DUCKDB:
            pipeline.in_south(TABLE.format(schema="b").replace("b.items", each.table))
        added.append(f"ADD REPLICAT {name}, {each.added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    pipeline.run(*added)
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start("ext1", "pump1", "DISTPATH path1", *(each.group for each in REPLICATS))
    until(
        "every group is at the end", lambda: all(arrived(pipeline, each, 1) for each in REPLICATS if each is not DUCKDB)
    )
    yield pipeline
    pipeline.close()


def arrived(pipeline: Pipeline, replicat: Replicat, price: int) -> bool:
    return pipeline.in_south(f"SELECT price FROM {replicat.table} WHERE id = 1") == [(price,)]


def ask(pipeline: Pipeline, group: str, kind: GroupKind, verb: str) -> tuple[float, dict[str, Any]]:
    """How long a process takes to answer, and the answer; an error counts as an answer."""
    entry = read_process_file(pipeline.home.process(group, kind))
    assert entry is not None
    begun = time.monotonic()
    try:
        answer = request(entry.socket, verb, timeout=30)
    except GgsError as error:
        assert error.code != "GGS-00602", f"{group} {verb}: {error}"
        answer = {"error": str(error)}
    return time.monotonic() - begun, answer


def answers(
    pipeline: Pipeline, groups: list[tuple[str, GroupKind]], verbs: tuple[str, ...] = REQUESTS
) -> dict[str, Any]:
    """The answers of all groups to every request, sent at the same time: verb -> group -> answer."""
    replies: dict[str, Any] = {}
    for verb in verbs:
        with ThreadPoolExecutor(len(groups)) as pool:
            found = list(pool.map(lambda group, verb=verb: ask(pipeline, *group, verb), groups))
        late = {
            group[0]: took for group, (took, _) in zip(groups, found, strict=True) if took > LIMIT_SECONDS * slowness()
        }
        assert late == {}, verb
        replies[verb] = {group[0]: answer for group, (_, answer) in zip(groups, found, strict=True)}
    return replies


def lag(pipeline: Pipeline, replicat: Replicat) -> float:
    return float(ask(pipeline, *replicat.id, "GETLAG")[1]["lag_seconds"])


def suspend_backends(pipeline: Pipeline) -> list[int]:
    """Suspend the server processes of two groups."""
    found = pipeline.in_south(
        f"SELECT pid FROM pg_stat_activity WHERE application_name = 'ggshell replicat {STOPPED.group}'"
    )
    found += pipeline.in_north("SELECT pid FROM pg_stat_activity WHERE application_name = 'ggshell extract EXT1'")
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    return [pid for (pid,) in found]


def block(pipeline: Pipeline, hole: BlackHole, held: ExitStack) -> int:
    """Block every process in a different way; returns the pid of the backend that holds the locks."""
    holder = held.enter_context(psycopg.connect(pipeline.south, application_name="holder"))
    for each in (CLASSIC, PARALLEL, IN_ORDER):
        holder.execute(f"SELECT FROM {each.table} WHERE id = 1 FOR UPDATE")
    holder.execute(f"LOCK TABLE {COORDINATED.table}")
    pipeline.in_north("CREATE TABLE a.locked (id int)")
    held.enter_context(psycopg.connect(pipeline.north)).execute("LOCK TABLE a.locked")
    pipeline.start("load1")
    hole.swallow()
    for group in ("PUMP1", "PATH1", "REPK"):
        report = pipeline.home.report(group)
        report.unlink()
        os.mkfifo(report)  # opening it for writing waits for a reader
    return int(holder.info.backend_pid)


def test_every_process_answers_and_stops_while_its_work_is_blocked(pipeline: Pipeline, hole: BlackHole) -> None:
    locked = (CLASSIC, PARALLEL, IN_ORDER, COORDINATED)
    with ExitStack() as held:
        holder = block(pipeline, hole, held)
        for pid in suspend_backends(pipeline):
            held.callback(os.kill, pid, signal.SIGCONT)
        pipeline.in_north("UPDATE a.items SET price = 2 WHERE id = 1")
        for each in locked:
            report = pipeline.home.report(each.group)
            until(
                f"{each.group} reports the blocking session",
                lambda report=report: f"pid {holder} (" in report.read_text(),
            )
            assert report.read_text().count(f"pid {holder} (") == 1
        groups = [EXT1, LOAD1, PUMP1, PATH1, *(each.id for each in REPLICATS)]
        replies = answers(pipeline, groups)
        for each in locked:
            assert f"pid {holder} (user postgres, holder, idle in transaction" in str(replies["STATUS"][each.group])
            first = replies["GETLAG"][each.group]
            assert not first["at_eof"]
            until("lag grows", lambda each=each, first=first: lag(pipeline, each) >= first["lag_seconds"] + 0.2)
        assert f"pid {holder} (" in pipeline.run("INFO REPLICAT repc, DETAIL")
        answers(pipeline, groups, ("STOP",))
        for group in (LOAD1, *(each.id for each in REPLICATS if each is not DUCKDB)):
            until_state(pipeline.home, *group, ProcessState.STOPPED)
    until_state(pipeline.home, *EXT1, ProcessState.STOPPED)
    hole.pass_on()
    databases = [each for each in REPLICATS if each is not DUCKDB]
    pipeline.start("ext1", *(each.group for each in databases))
    until("the canceled transaction is applied", lambda: all(arrived(pipeline, each, 2) for each in databases))


def test_manager_answers_while_its_report_cannot_be_written(tmp_path: Path, north: str, south: str) -> None:
    pipeline = Pipeline(tmp_path / "home", north, south)
    try:
        pipeline.add()
        pipeline.start("ext1")
        entry = read_process_file(pipeline.home.manager)
        assert entry is not None
        pipeline.home.report("mgr").unlink()
        os.mkfifo(pipeline.home.report("mgr"))
        with ThreadPoolExecutor(4) as pool:
            starting = pool.submit(request, entry.socket, "START", timeout=20, group="REP1", type="REPLICAT")
            begun = time.monotonic()
            found = [
                pool.submit(request, entry.socket, verb, timeout=20).result() for verb in ("STATUS", "CHILDSTATUS")
            ]
            assert time.monotonic() - begun < 2 * LIMIT_SECONDS * slowness()
            assert found[0]["pid"] == entry.pid
            assert [child["state"] for child in found[1]["children"]] == ["RUNNING", "STOPPED"]
            assert request(entry.socket, "STOP", timeout=20) == {"pid": entry.pid}
            os.kill(entry.pid, signal.SIGKILL)
            assert isinstance(starting.exception(), GgsError)
    finally:
        pipeline.close()


def test_lag_stats_and_info_report_the_lock_that_a_started_group_waits_for(
    tmp_path: Path, north: str, south: str
) -> None:
    """Regression: they reported only "No records yet processed." and "No active replication maps."."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    try:
        pipeline.add()
        pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
        with psycopg.connect(pipeline.south) as holder:
            holder.execute("LOCK TABLE b.items")
            pipeline.start()
            named = f"blocked by pid {holder.info.backend_pid} ("
            until("LAG reports the blocking session", lambda: named in pipeline.run("LAG REPLICAT rep1"))
            for statement in ("STATS REPLICAT rep1", "INFO ALL", "INFO REPLICAT rep1"):
                assert named in pipeline.run(statement)
        pipeline.wait_for_rows(1)
        until(
            "no blocking session is reported",
            lambda: named not in pipeline.run("LAG REPLICAT rep1", "STATS REPLICAT rep1", "INFO ALL"),
        )
    finally:
        pipeline.close()
