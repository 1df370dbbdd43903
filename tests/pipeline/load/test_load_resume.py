"""LOAD after an interruption: killed processes, lost connections, changed definitions, and what it refuses."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import load_kit
import psycopg
import pytest
from processes import until

from ggshell.connectors.postgres.move_side import PostgresMoveSide
from ggshell.errors import GgsError

ONE_LOAD = "import sys, load_kit; load_kit.load(sys.argv[1], sys.argv[2], definitions=True, part_bytes=1 << 20)"
ROWS = "INSERT INTO shop.empty SELECT generate_series(1, 60000)"
_CLOCK = threading.Event()


def start(north: str, south: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", ONE_LOAD, north, south], env=environment, stderr=subprocess.DEVNULL)


def test_a_load_that_is_killed_again_and_again_is_completed(north: str, south: str) -> None:
    load_kit.sql(north, load_kit.EVERY_KIND, ROWS)
    dice = random.Random(19)
    for _ in range(4):
        with start(north, south) as process:
            _CLOCK.wait(dice.uniform(0.8, 2.5))
            process.send_signal(signal.SIGKILL)
    load_kit.load(north, south, definitions=True)
    assert load_kit.definitions(south) == load_kit.definitions(north)
    assert load_kit.content(south) == load_kit.content(north)


def test_lost_connections_of_the_target_do_not_end_a_load(north: str, south: str) -> None:
    """Only the task of the lost connection is done again, in the same snapshot."""
    load_kit.sql(north, load_kit.EVERY_KIND, ROWS)
    ended, cut = threading.Event(), list[int]()

    def disturb() -> None:
        asked = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'ggshell load' AND query LIKE 'COPY%shop%plain%' AND state = 'active'"
        )
        with psycopg.connect(south, autocommit=True) as connection:
            while not ended.wait(0.001) and sum(cut) < 2:
                cut.append(connection.execute(asked).fetchone()[0])

    worker = threading.Thread(target=disturb)
    worker.start()
    try:
        found = load_kit.load(north, south, definitions=True, part_bytes=64 << 10)
    finally:
        ended.set()
        worker.join()
    assert len(found.csns) == 1
    assert load_kit.content(south) == load_kit.content(north)


def test_a_complete_load_is_kept_and_restart_begins_again(north: str, south: str) -> None:
    load_kit.sql(north, load_kit.EVERY_KIND)
    first = load_kit.load(north, south, definitions=True)
    again = load_kit.load(north, south, definitions=True)
    assert all(table.kept for table in again.tables)
    assert again.csns == first.csns
    load_kit.sql(north, "INSERT INTO shop.empty VALUES (7)")
    third = load_kit.load(north, south, definitions=True, restart=True)
    assert not any(table.kept for table in third.tables)
    assert load_kit.content(south) == load_kit.content(north)


def test_all_partitions_of_a_table_are_loaded_as_of_one_csn(north: str, south: str) -> None:
    """The trail has their changes under the name of the table, so one CSN must tell which of them are loaded."""
    load_kit.sql(
        north,
        "CREATE TABLE root (id int, a text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF root FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE middle PARTITION OF root FOR VALUES FROM (10) TO (30) PARTITION BY RANGE (id)",
        "CREATE TABLE high PARTITION OF middle DEFAULT",
        "CREATE TABLE other (id int)",
        "INSERT INTO root VALUES (1, 'a'), (11, 'b')",
    )
    first = load_kit.load(north, south, definitions=True)
    load_kit.sql(south, "DELETE FROM ggshell.load_part WHERE name = 'high'", "TRUNCATE high")  # as if interrupted
    load_kit.sql(north, "INSERT INTO root VALUES (2, 'a'), (12, 'b')", "INSERT INTO other VALUES (1)")
    second = load_kit.load(north, south, definitions=True)
    assert {table.table.name for table in second.tables if table.kept} == {"other"}
    assert {table.csn for table in second.tables if not table.kept}.isdisjoint(first.csns)
    assert load_kit.sql(south, "SELECT id FROM root ORDER BY 1") == [(1,), (2,), (11,), (12,)]
    side = PostgresMoveSide(south)
    loaded = side.loaded(["public"])
    side.close()
    later = dict.fromkeys(["public.root", "public.low", "public.high"], max(second.csns))
    assert {str(name): str(csn) for name, csn in loaded.items()} == {**later, "public.other": min(second.csns)}


def test_changed_definitions_begin_again(north: str, south: str) -> None:
    load_kit.sql(north, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
    load_kit.load(north, south, definitions=True)
    load_kit.sql(north, "ALTER TABLE a ADD b text DEFAULT 'new'")
    assert load_kit.load(north, south, definitions=True).again
    assert load_kit.sql(south, "SELECT * FROM a") == [(1, "new")]


def test_the_csn_is_exact_while_changes_flow(north: str, south: str) -> None:
    """Rows that were committed up to the CSN are there, and no others: a slot from before shows each commit's place."""
    load_kit.sql(
        north,
        "CREATE TABLE a (id serial PRIMARY KEY)",
        "SELECT pg_create_logical_replication_slot('t19', 'test_decoding')",
    )
    stop = threading.Event()

    def insert() -> None:
        with psycopg.connect(north, autocommit=True) as connection:
            while not stop.is_set():
                connection.execute("INSERT INTO a DEFAULT VALUES")

    writers = [threading.Thread(target=insert) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        until("rows are written", lambda: load_kit.sql(north, "SELECT count(*) FROM a")[0][0] > 200)
        found = load_kit.load(north, south, definitions=True)
        after = load_kit.sql(north, "SELECT count(*) FROM a")[0][0]
        until("more rows are written", lambda: load_kit.sql(north, "SELECT count(*) FROM a")[0][0] > after + 50)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    changes = load_kit.sql(north, "SELECT lsn, data FROM pg_logical_slot_get_changes('t19', NULL, NULL)")
    csn = int(found.csns[0].replace("/", ""), 16)
    before, ids = set[int](), list[int]()
    for lsn, data in changes:
        if data.startswith("table public.a: INSERT"):
            ids.append(int(data.rpartition(":")[2]))
        elif data.startswith("COMMIT"):
            high, low = lsn.split("/")
            before |= set(ids) if (int(high, 16) << 32 | int(low, 16)) <= csn else set()
            ids = []
    assert {row[0] for row in load_kit.sql(south, "SELECT id FROM a")} == before


REFUSED = {
    "GGS-00740 exists": ("CREATE TABLE a (id int)", "CREATE TABLE a (id int)", True),
    "GGS-00740 filled": ("CREATE TABLE a (id int)", "CREATE TABLE a (id int); INSERT INTO a VALUES (1)", False),
    "GGS-00741": ("CREATE TABLE a (id int)", "SELECT 1", False),
    "GGS-00753": ("CREATE TABLE a (id int, b int)", "CREATE TABLE a (id int)", False),
    "GGS-00746": ("CREATE TABLE a (id int); SELECT lo_create(0)", "SELECT 1", True),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_what_is_wrong_and_change_nothing(north: str, south: str, case: str) -> None:
    source, target, definitions = REFUSED[case]
    load_kit.sql(north, source)
    load_kit.sql(south, target)
    with pytest.raises(GgsError) as refused:
        load_kit.load(north, south, definitions=definitions)
    assert refused.value.code == case.split(maxsplit=1)[0]
    assert load_kit.sql(south, "SELECT to_regclass('ggshell.load')") == [(None,)]


def test_missing_roles_and_row_security_are_refused(older: str, south: str, tmp_path: Path) -> None:
    load_kit.sql(
        older,
        "DROP ROLE IF EXISTS only_here; CREATE ROLE only_here LOGIN REPLICATION",
        "CREATE TABLE a (id int); ALTER TABLE a OWNER TO only_here; CREATE TABLE b (id int); GRANT SELECT ON b TO only_here",
        "ALTER TABLE b ENABLE ROW LEVEL SECURITY",
    )
    ended = load_kit.statement(tmp_path, older, south, ", DEFINITIONS")
    assert "roles that do not exist" in ended.stderr + ended.stdout
    assert "only_here" in ended.stderr + ended.stdout
    with pytest.raises(GgsError) as refused:
        load_kit.load(older.replace("user=postgres", "user=only_here"), south)
    assert refused.value.code == "GGS-00745"
    load_kit.sql(older, "DROP OWNED BY only_here; DROP ROLE only_here")
