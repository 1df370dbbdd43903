"""Parallel and coordinated Replicats on real databases: the target equals the source, whatever happens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pipelines import REP1, Pipeline
from processes import until

from ggshell.groups.process_request import request
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

TABLES = (
    "CREATE TABLE {s}.parents (id int PRIMARY KEY, code text UNIQUE, n int)",
    "CREATE TABLE {s}.children (id int PRIMARY KEY, parent int REFERENCES {s}.parents, v text)",
    "CREATE TABLE {s}.notes (line text, at int)",
)
KINDS = {
    "parallel": ("PARALLEL", "APPLY_PARALLELISM 4\n", ""),
    "parallel in order": ("PARALLEL", "APPLY_PARALLELISM 3\nCOMMIT_SERIALIZATION FULL\nGROUPTRANSOPS 20\n", ""),
    "coordinated": ("COORDINATED MAXTHREADS 4", "", "threads"),
}


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def prepare(pipeline: Pipeline, kind: str, *, more: str = "") -> None:
    added, parameters, threads = KINDS[kind]
    maps = "MAP a.*, TARGET b.*;\n"
    if threads:
        maps = "MAP a.notes, TARGET b.notes, THREAD (2);\nMAP a.items, TARGET b.items, THREADRANGE (3-4);\n" + maps
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{parameters}{more}{maps}")
    for schema, run in (("a", pipeline.in_north), ("b", pipeline.in_south)):
        run(*(text.format(s=schema) for text in TABLES))
    pipeline.in_north("ALTER TABLE a.notes REPLICA IDENTITY FULL")
    pipeline.add("a.*", f"{added}, ")


def run_workload(pipeline: Pipeline, chance: random.Random, transactions: int) -> None:
    """Run dependent transactions: parents and children, unique codes that move to other rows, key changes, and equal rows
    without a key."""
    with psycopg.connect(pipeline.north) as connection:
        parents: set[int] = {row[0] for row in connection.execute("SELECT id FROM a.parents")}
        for _ in range(transactions):
            for _ in range(chance.randint(1, 4)):
                _change(connection, chance, parents)
            connection.commit()


def _change(connection: psycopg.Connection[tuple[object, ...]], chance: random.Random, parents: set[int]) -> None:
    number = chance.randint(1, 40)
    action = chance.randint(0, 9)
    if action <= 2 or not parents:
        connection.execute(
            "INSERT INTO a.parents VALUES (%s, %s, 0) ON CONFLICT (id) DO UPDATE SET n = a.parents.n + 1",
            [number, f"c{number}"],
        )
        parents.add(number)
    elif action == 3:
        one, two = chance.choice(sorted(parents)), chance.choice(sorted(parents))
        if one != two:  # codes move to other rows
            connection.execute("UPDATE a.parents SET code = code || 'x' WHERE id = %s", [one])
    elif action == 4:
        gone = chance.choice(sorted(parents))
        connection.execute("DELETE FROM a.children WHERE parent = %s", [gone])
        connection.execute("DELETE FROM a.parents WHERE id = %s", [gone])
        parents.discard(gone)
    elif action <= 6:
        connection.execute(
            "INSERT INTO a.children VALUES (%s, %s, 'v') ON CONFLICT (id) DO UPDATE SET parent = excluded.parent",
            [chance.randint(1, 60), chance.choice(sorted(parents))],
        )
    elif action == 7:
        connection.execute("DELETE FROM a.children WHERE id = %s", [number])
    elif action == 8:
        connection.execute("INSERT INTO a.notes VALUES (%s, %s)", [f"n{number % 5}", number % 3])
        connection.execute("UPDATE a.notes SET at = at + 1 WHERE line = %s", [f"n{number % 5}"])
    else:
        connection.execute(
            "INSERT INTO a.items VALUES (%s, 'i', 1) ON CONFLICT (id) DO UPDATE SET price = a.items.price + 1", [number]
        )
        connection.execute("UPDATE a.items SET id = -id WHERE id = %s", [number - 1])
        connection.execute("DELETE FROM a.items WHERE id = %s", [-number])


def has_same_rows(pipeline: Pipeline) -> bool:
    tables = ("parents", "children", "notes", "items")
    return all(
        pipeline.in_north(f"SELECT * FROM a.{name} ORDER BY 1, 2")
        == pipeline.in_south(f"SELECT * FROM b.{name} ORDER BY 1, 2")
        for name in tables
    )


def wait_and_compare(pipeline: Pipeline) -> None:
    pipeline.in_north("INSERT INTO a.items VALUES (1000, 'end', 0)")
    until(
        "the last row arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.items WHERE id = 1000")[0][0] == 1, 60
    )
    until("source and target are the same", lambda: has_same_rows(pipeline))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_delivers_the_rows_of_the_source(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind)
    pipeline.start("ext1")
    run_workload(pipeline, random.Random(1), 400)
    pipeline.start("rep1")
    run_workload(pipeline, random.Random(2), 100)
    wait_and_compare(pipeline)
    info = pipeline.run("INFO REPLICAT rep1")
    assert ("COORDINATED" in info, "MAXTHREADS 4" in info) == (kind == "coordinated",) * 2
    assert ("\nParallel\n" in info) == (kind != "coordinated")
    found = request(pipeline.home.socket(*REP1), "STATUS")
    if kind == "coordinated":
        assert [each["thread"] for each in found["threads"]] == [0, 1, 2, 3, 4]
        assert sum(each["jobs"] for each in found["threads"]) > 0
    else:
        assert [each["applier"] for each in found["appliers"]] == list(range(4 if kind == "parallel" else 3))
    rows = pipeline.in_south("SELECT group_name, log_csn, log_cmplt_csn FROM b.checks ORDER BY 1")
    pipeline.run("STOP REPLICAT rep1")
    assert pipeline.in_south("SELECT count(*) FROM b.checks_lox WHERE log_cmplt_xids <> ''") == [(0,)]
    if kind == "coordinated":
        assert [row[0] for row in rows] == ["REP1", *(f"REP1{thread:03d}" for thread in range(5))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_replicat_resumes_without_loss_or_repetition(
    pipeline: Pipeline, kind: str, request: pytest.FixtureRequest
) -> None:
    prepare(pipeline, kind)
    pipeline.start("ext1", "rep1")
    chance = random.Random(3)
    for _ in range(max(3, request.config.getoption("--rounds"))):
        run_workload(pipeline, chance, 150)
        pipeline.run("KILL REPLICAT rep1")
        run_workload(pipeline, chance, 20)
        pipeline.start("rep1")
    wait_and_compare(pipeline)


@pytest.mark.parametrize("kind", KINDS)
def test_transactions_applied_before_an_abend_are_not_applied_again(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind)
    pipeline.in_south("ALTER TABLE b.items ADD CONSTRAINT small CHECK (price < 100)")
    pipeline.start("ext1", "rep1")
    run_workload(pipeline, random.Random(5), 100)
    pipeline.in_north("INSERT INTO a.items VALUES (500, 'refused', 1000)")
    run_workload(pipeline, random.Random(6), 100)
    report = pipeline.abended_report(REP1)
    assert "id = 500" in report
    assert "small" in report
    pipeline.in_south("ALTER TABLE b.items DROP CONSTRAINT small")
    pipeline.start("rep1")
    wait_and_compare(pipeline)


@pytest.mark.parametrize("kind", KINDS)
def test_reperror_works_in_every_lane(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind, more="REPERROR (DEFAULT, DISCARD)\n")
    pipeline.in_south("ALTER TABLE b.items ADD CONSTRAINT small CHECK (price < 1000)")
    pipeline.start("ext1", "rep1")
    for number in range(50):
        price = 5000 if number % 10 == 0 else 1
        pipeline.in_north(f"INSERT INTO a.items VALUES ({2000 + number}, 'x', {price})")
    until("45 rows arrive", lambda: pipeline.in_south("SELECT count(*) FROM b.items")[0][0] == 45)
    pipeline.run("STOP REPLICAT rep1")
    assert pipeline.home.discard("rep1").read_text().count("Problem replicating") == 5


def test_deleting_a_coordinated_replicat_removes_the_rows_of_its_threads(pipeline: Pipeline) -> None:
    prepare(pipeline, "coordinated")
    pipeline.start("ext1", "rep1")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "DBLOGIN USERIDALIAS south", "DELETE REPLICAT rep1 !")
    assert pipeline.in_south("SELECT count(*) FROM b.checks") == [(0,)]


@pytest.mark.parametrize(
    ("added", "text"),
    [
        ("COORDINATED, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks", "at most 5 characters"),
        ("PARALLEL, EXTTRAIL ./dirdat/ea, NODBCHECKPOINT", "only for a classic Replicat"),
    ],
)
def test_an_invalid_option_of_a_kind_is_refused(pipeline: Pipeline, added: str, text: str) -> None:
    assert text in pipeline.run(f"ADD REPLICAT replong, {added}", fails=True)


def test_a_group_that_would_share_a_row_with_a_thread_is_refused(pipeline: Pipeline) -> None:
    text = "EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"
    pipeline.run(f"ADD REPLICAT one, COORDINATED, {text}", f"ADD REPLICAT two001, {text}")
    found = pipeline.run(f"ADD REPLICAT one001, {text}", fails=True)
    assert "the row of REPLICAT ONE001 in checkpoint table b.checks would be that of a thread" in found
    assert "thread of the coordinated REPLICAT TWO" in pipeline.run(
        f"ADD REPLICAT two, COORDINATED, {text}", fails=True
    )
    pipeline.run(f"ADD REPLICAT one001, {text}2", f"ADD REPLICAT one00, {text}", f"ADD REPLICAT two, PARALLEL, {text}")


def test_a_thread_beyond_maxthreads_is_refused_with_its_line(pipeline: Pipeline) -> None:
    prepare(pipeline, "coordinated")
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, THREAD (9);\n")
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "thread 9 does not exist: the group has threads 1 to 4" in report
    assert "rep1.prm:3" in report


def captured_rows(pipeline: Pipeline) -> int:
    """The number of rows in the trail."""
    reader = TrailReader(TrailName.parse("./dirdat/ea", pipeline.home.root))
    count = 0
    while (batch := reader.read()) is not None:
        count += len(batch)
    reader.close()
    return count


@pytest.mark.parametrize("added", ["", "COORDINATED MAXTHREADS 4,"])
def test_transactions_above_the_low_watermark_of_a_killed_parallel_replicat_are_not_repeated(
    pipeline: Pipeline, added: str
) -> None:
    for database, schema in ((pipeline.in_north, "a"), (pipeline.in_south, "b")):
        database(f"INSERT INTO {schema}.items VALUES (1, 'one', 1)")
    prepare(pipeline, "parallel")
    pipeline.in_north("UPDATE a.items SET price = price + 1 WHERE id = 1")
    for number in range(2, 22):  # some of them wait for the update, in its lane
        pipeline.in_north(f"INSERT INTO a.items VALUES ({number}, 'x', 0)")
    pipeline.start("ext1")
    until("all rows are captured", lambda: captured_rows(pipeline) == 21)
    with psycopg.connect(pipeline.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 1 FOR UPDATE")
        pipeline.start("rep1")
        until("some rows are applied", lambda: pipeline.in_south("SELECT count(*) FROM b.items")[0][0] > 5)
        pipeline.run("KILL REPLICAT rep1")
    pipeline.run("DELETE REPLICAT rep1 !", f"ADD REPLICAT rep1, {added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00564" in report
    assert "above the low watermark of REP1: a" in report
    pipeline.run(
        "DELETE REPLICAT rep1 !", "ADD REPLICAT rep1, PARALLEL, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"
    )
    pipeline.start("rep1")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "DELETE REPLICAT rep1 !")
    pipeline.run(f"ADD REPLICAT rep1, {added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    pipeline.start("rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (2000, 'last', 0)")
    pipeline.wait_for_rows(23)
    until("source and target are the same", lambda: has_same_rows(pipeline))


END_WAITING = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


def make_thread_2_lead(pipeline: Pipeline) -> None:
    """Kill a coordinated Replicat whose thread 2 has applied a transaction after one of thread 1 that waits for a lock."""
    pipeline.in_north("INSERT INTO a.parents VALUES (1, 'one', 0)")
    pipeline.start("ext1", "rep1")
    until("the parent arrives", lambda: pipeline.in_south("SELECT count(*) FROM b.parents") == [(1,)])
    with psycopg.connect(pipeline.south, autocommit=True) as holder, holder.transaction():
        holder.execute("SELECT FROM b.parents FOR UPDATE")
        pipeline.in_north("UPDATE a.parents SET n = 1", "INSERT INTO a.notes VALUES ('later', 1)")
        until("thread 2 is ahead", lambda: pipeline.in_south("SELECT count(*) FROM b.notes") == [(1,)])
        pipeline.run("KILL REPLICAT rep1")
        pipeline.in_south(END_WAITING)


def test_other_threads_are_refused_where_threads_have_applied_more_than_others(pipeline: Pipeline) -> None:
    """Thread 2 has applied later transactions than thread 1, so that its row would count those of thread 1 as applied."""
    prepare(pipeline, "coordinated")
    parameters = pipeline.home.parameters("rep1")
    before = parameters.read_text()
    make_thread_2_lead(pipeline)
    parameters.write_text(before.replace("MAP a.notes", "MAP a.parents, TARGET b.parents, THREAD (2);\nMAP a.notes"))
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00566  MAP assigns a.parents to thread 2, but the last run assigned it to thread 1" in report
    assert pipeline.in_south("SELECT n FROM b.parents") == [(0,)]
    parameters.write_text(before)
    pipeline.start("rep1")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1")
    parameters.write_text(before.replace("MAP a.notes", "MAP a.parents, TARGET b.parents, THREAD (2);\nMAP a.notes"))
    pipeline.start("rep1")
    run_workload(pipeline, random.Random(8), 50)
    pipeline.in_north("INSERT INTO a.items VALUES (1001, 'end', 0)")
    until("source and target are the same", lambda: has_same_rows(pipeline), 60)


@pytest.mark.parametrize("added", ["", "PARALLEL,"])
def test_transactions_of_threads_that_lead_are_not_repeated_by_another_kind(pipeline: Pipeline, added: str) -> None:
    prepare(pipeline, "coordinated")
    make_thread_2_lead(pipeline)
    again = "ADD REPLICAT rep1, {} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks"
    pipeline.run("DELETE REPLICAT rep1 !", again.format(added))
    parameters = pipeline.home.parameters("rep1")
    before = parameters.read_text()
    parameters.write_text("REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*;\n")
    pipeline.start("rep1")
    report = pipeline.abended_report(REP1)
    assert "GGS-00564" in report
    assert "by the row of REP1002: a " in report
    pipeline.run("DELETE REPLICAT rep1 !", again.format("COORDINATED MAXTHREADS 4,"))
    parameters.write_text(before)
    pipeline.start("rep1")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "DELETE REPLICAT rep1 !", again.format(added))
    parameters.write_text("REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*;\n")
    pipeline.start("rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (1001, 'end', 0)")
    until("source and target are the same", lambda: has_same_rows(pipeline), 60)


def test_rows_of_threads_without_the_row_of_their_group_are_not_used(pipeline: Pipeline) -> None:
    """They are left by an earlier group, and would count everything that the new one reads as applied."""
    prepare(pipeline, "coordinated")
    pipeline.start("ext1", "rep1")
    wait_and_compare(pipeline)
    pipeline.run("STOP REPLICAT rep1", "DELETE REPLICAT rep1 !")
    pipeline.run("DBLOGIN USERIDALIAS south", "CLEANUP CHECKPOINTTABLE b.checks, REPLICAT rep1")
    assert pipeline.in_south("SELECT count(*) FROM b.checks") == [(5,)]
    pipeline.in_south("DELETE FROM b.items")
    pipeline.run(
        "ADD REPLICAT rep1, COORDINATED MAXTHREADS 4, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
        "START REPLICAT rep1",
    )
    until("the rows are applied again", lambda: has_same_rows(pipeline))


@pytest.mark.parametrize("killed", [False, True], ids=["let go", "killed meanwhile"])
def test_a_parallel_replicat_keeps_applying_while_a_row_is_locked(pipeline: Pipeline, killed: bool) -> None:
    prepare(pipeline, "parallel")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 1)")
    pipeline.start("ext1", "rep1")
    pipeline.wait_for_rows(2)
    with psycopg.connect(pipeline.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 1 FOR UPDATE")
        with psycopg.connect(pipeline.north, autocommit=True) as source:
            source.execute("UPDATE a.items SET price = price + 1 WHERE id = 1")
            source.execute("UPDATE a.items SET name = 'dependent' WHERE id = 1")
            for number in range(2003, 3503):
                source.execute("INSERT INTO a.items VALUES (%s, 'x', 0)", [number])
        until("the other rows are applied", lambda: pipeline.in_south("SELECT count(*) FROM b.items")[0][0] > 1400, 30)
        low, high = pipeline.in_south("SELECT log_cmplt_csn, log_csn FROM b.checks WHERE group_name = 'REP1'")[0]
        until(
            "the low watermark stays below what is applied",
            lambda: bool(pipeline.in_south("SELECT 1 FROM b.checks WHERE log_cmplt_csn < log_csn")),
        )
        assert low <= high
        found = request(pipeline.home.socket(*REP1), "STATUS")
        assert sum(each["operations"] for each in found["appliers"]) >= 2
        assert (len(found["appliers"]), found["dependent_transactions"] >= 1) == (4, True)
        assert found["open_transactions"] >= 2
        if killed:
            pipeline.run("KILL REPLICAT rep1")
    if killed:
        pipeline.start("rep1")
    wait_and_compare(pipeline)
    assert pipeline.in_south("SELECT price, name FROM b.items WHERE id = 1") == [(2, "dependent")]
    pipeline.run("STOP REPLICAT rep1")
    assert pipeline.in_south("SELECT count(*) FROM b.checks_lox WHERE log_cmplt_xids <> ''") == [(0,)]


def test_a_child_waits_for_a_parent_whose_key_has_another_type(pipeline: Pipeline) -> None:
    for schema, run in (("a", pipeline.in_north), ("b", pipeline.in_south)):
        run(
            f"CREATE TABLE {schema}.owners (id numeric PRIMARY KEY)",
            f"CREATE TABLE {schema}.owned (id int PRIMARY KEY, owner int REFERENCES {schema}.owners)",
        )
    prepare(pipeline, "parallel")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start("ext1", "rep1")
    pipeline.wait_for_rows(1)
    with psycopg.connect(pipeline.south) as holder:
        holder.execute("LOCK TABLE b.owners IN SHARE MODE")
        pipeline.in_north("INSERT INTO a.owners VALUES (7)", "INSERT INTO a.owned VALUES (1, 7)")
        for number in range(2, 402):
            pipeline.in_north(f"INSERT INTO a.items VALUES ({number}, 'x', 0)")
        until("the other rows are applied", lambda: pipeline.in_south("SELECT count(*) FROM b.items")[0][0] > 300)
    until("the child arrives", lambda: pipeline.in_south("SELECT owner FROM b.owned") == [(7,)])
    wait_and_compare(pipeline)


def test_with_full_serialization_no_transaction_overtakes_a_locked_row(pipeline: Pipeline) -> None:
    prepare(pipeline, "parallel in order")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start("ext1", "rep1")
    pipeline.wait_for_rows(1)
    with psycopg.connect(pipeline.south, application_name="the holder") as holder:
        holder.execute("SELECT FROM b.items WHERE id = 1 FOR UPDATE")
        pipeline.in_north(
            "UPDATE a.items SET price = price + 1 WHERE id = 1", "INSERT INTO a.items VALUES (2, 'two', 1)"
        )
        until("the blocking session is reported", lambda: "the holder" in pipeline.home.report("rep1").read_text())
        assert pipeline.in_south("SELECT count(*) FROM b.items") == [(1,)]
    wait_and_compare(pipeline)
