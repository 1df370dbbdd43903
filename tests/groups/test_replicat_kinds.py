"""Parallel and coordinated Replicats on real databases: the same rows as the source, whatever happens on the way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from processes import until
from ways import REP1, Way

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
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def prepare(way: Way, kind: str, *, more: str = "") -> None:
    added, parameters, threads = KINDS[kind]
    maps = "MAP a.*, TARGET b.*;\n"
    if threads:
        maps = "MAP a.notes, TARGET b.notes, THREAD (2);\nMAP a.items, TARGET b.items, THREADRANGE (3-4);\n" + maps
    way.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{parameters}{more}{maps}")
    for schema, run in (("a", way.in_north), ("b", way.in_south)):
        run(*(text.format(s=schema) for text in TABLES))
    way.in_north("ALTER TABLE a.notes REPLICA IDENTITY FULL")
    way.add("a.*", f"{added}, ")


def work(way: Way, chance: random.Random, transactions: int) -> None:
    """Transactions that depend on each other in every way: parents and children, unique codes that change hands, keys that
    move, equal rows without a key."""
    with psycopg.connect(way.north) as connection:
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
        if one != two:  # codes change hands
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


def same(way: Way) -> bool:
    tables = ("parents", "children", "notes", "items")
    return all(
        way.in_north(f"SELECT * FROM a.{name} ORDER BY 1, 2") == way.in_south(f"SELECT * FROM b.{name} ORDER BY 1, 2")
        for name in tables
    )


def drained(way: Way) -> None:
    way.in_north("INSERT INTO a.items VALUES (1000, 'end', 0)")
    until("the end arrives", lambda: way.in_south("SELECT count(*) FROM b.items WHERE id = 1000")[0][0] == 1, 60)
    until("source and target are the same", lambda: same(way))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_delivers_what_the_source_holds(way: Way, kind: str) -> None:
    prepare(way, kind)
    way.start("ext1")
    work(way, random.Random(1), 400)
    way.start("rep1")
    work(way, random.Random(2), 100)
    drained(way)
    info = way.run("INFO REPLICAT rep1")
    assert ("COORDINATED" in info, "MAXTHREADS 4" in info) == (kind == "coordinated",) * 2
    assert ("\nParallel\n" in info) == (kind != "coordinated")
    rows = way.in_south("SELECT group_name, log_csn, log_cmplt_csn FROM b.checks ORDER BY 1")
    way.run("STOP REPLICAT rep1")
    assert way.in_south("SELECT count(*) FROM b.checks_lox WHERE log_cmplt_xids <> ''") == [(0,)]
    if kind == "coordinated":
        assert [row[0] for row in rows] == ["REP1", *(f"REP1{thread:03d}" for thread in range(5))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_replicat_goes_on_without_loss_or_repetition(
    way: Way, kind: str, request: pytest.FixtureRequest
) -> None:
    prepare(way, kind)
    way.start("ext1", "rep1")
    chance = random.Random(3)
    for _ in range(max(3, request.config.getoption("--rounds"))):
        work(way, chance, 150)
        way.run("KILL REPLICAT rep1")
        work(way, chance, 20)
        way.start("rep1")
    drained(way)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_row_ends_the_run_and_what_was_applied_beside_it_is_not_applied_again(way: Way, kind: str) -> None:
    prepare(way, kind)
    way.in_south("ALTER TABLE b.items ADD CONSTRAINT small CHECK (price < 100)")
    way.start("ext1", "rep1")
    work(way, random.Random(5), 100)
    way.in_north("INSERT INTO a.items VALUES (500, 'refused', 1000)")
    work(way, random.Random(6), 100)
    report = way.ends(REP1)
    assert "id = 500" in report
    assert "small" in report
    way.in_south("ALTER TABLE b.items DROP CONSTRAINT small")
    way.start("rep1")
    drained(way)


@pytest.mark.parametrize("kind", KINDS)
def test_reperror_answers_on_every_lane(way: Way, kind: str) -> None:
    prepare(way, kind, more="REPERROR (DEFAULT, DISCARD)\n")
    way.in_south("ALTER TABLE b.items ADD CONSTRAINT small CHECK (price < 1000)")
    way.start("ext1", "rep1")
    for number in range(50):
        price = 5000 if number % 10 == 0 else 1
        way.in_north(f"INSERT INTO a.items VALUES ({2000 + number}, 'x', {price})")
    until("45 rows arrive", lambda: way.in_south("SELECT count(*) FROM b.items")[0][0] == 45)
    way.run("STOP REPLICAT rep1")
    assert way.home.discard("rep1").read_text().count("Problem replicating") == 5


def test_a_deleted_coordinated_replicat_leaves_no_row_of_its_threads(way: Way) -> None:
    prepare(way, "coordinated")
    way.start("ext1", "rep1")
    drained(way)
    way.run("STOP REPLICAT rep1", "DBLOGIN USERIDALIAS south", "DELETE REPLICAT rep1 !")
    assert way.in_south("SELECT count(*) FROM b.checks") == [(0,)]


@pytest.mark.parametrize(
    ("added", "text"),
    [
        ("COORDINATED, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks", "at most 5 characters"),
        ("PARALLEL, EXTTRAIL ./dirdat/ea, NODBCHECKPOINT", "only for a classic Replicat"),
    ],
)
def test_what_a_kind_cannot_be_is_refused(way: Way, added: str, text: str) -> None:
    assert text in way.run(f"ADD REPLICAT replong, {added}", fails=True)


def test_a_thread_beyond_maxthreads_is_refused_with_its_line(way: Way) -> None:
    prepare(way, "coordinated")
    way.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, THREAD (9);\n")
    way.start("rep1")
    report = way.ends(REP1)
    assert "thread 9 is asked for, the group has 1 to 4" in report
    assert "rep1.prm:3" in report


def captured(way: Way) -> int:
    """How many rows the trail holds."""
    reader = TrailReader(TrailName.parse("./dirdat/ea", way.home.root))
    count = 0
    while (batch := reader.read()) is not None:
        count += len(batch)
    reader.close()
    return count


@pytest.mark.parametrize("added", ["", "COORDINATED MAXTHREADS 4,"])
def test_what_a_killed_parallel_one_left_above_its_low_watermark_is_not_taken_over(way: Way, added: str) -> None:
    for database, schema in ((way.in_north, "a"), (way.in_south, "b")):
        database(f"INSERT INTO {schema}.items VALUES (1, 'one', 1)")
    prepare(way, "parallel")
    way.in_north("UPDATE a.items SET price = price + 1 WHERE id = 1")
    for number in range(2, 22):  # some of them wait behind the update, in its lane
        way.in_north(f"INSERT INTO a.items VALUES ({number}, 'x', 0)")
    way.start("ext1")
    until("all is captured", lambda: captured(way) == 21)
    with psycopg.connect(way.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 1 FOR UPDATE")
        way.start("rep1")
        until("some are applied", lambda: way.in_south("SELECT count(*) FROM b.items")[0][0] > 5)
        way.run("KILL REPLICAT rep1")
    way.run("DELETE REPLICAT rep1 !", f"ADD REPLICAT rep1, {added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    way.start("rep1")
    report = way.ends(REP1)
    assert "GGS-00564" in report
    assert "above the low watermark of REP1: a" in report
    way.run("DELETE REPLICAT rep1 !", "ADD REPLICAT rep1, PARALLEL, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    way.start("rep1")
    drained(way)
    way.run("STOP REPLICAT rep1", "DELETE REPLICAT rep1 !")
    way.run(f"ADD REPLICAT rep1, {added} EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks")
    way.start("rep1")
    way.in_north("INSERT INTO a.items VALUES (2000, 'last', 0)")
    way.arrives(23)
    until("source and target are the same", lambda: same(way))


@pytest.mark.parametrize("killed", [False, True], ids=["let go", "killed meanwhile"])
def test_a_parallel_replicat_that_follows_live_goes_on_beside_a_locked_row(way: Way, killed: bool) -> None:
    prepare(way, "parallel")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 1)")
    way.start("ext1", "rep1")
    way.arrives(2)
    with psycopg.connect(way.south) as holder:
        holder.execute("SELECT FROM b.items WHERE id = 1 FOR UPDATE")
        with psycopg.connect(way.north, autocommit=True) as source:
            source.execute("UPDATE a.items SET price = price + 1 WHERE id = 1")
            source.execute("UPDATE a.items SET name = 'dependent' WHERE id = 1")
            for number in range(2003, 3503):
                source.execute("INSERT INTO a.items VALUES (%s, 'x', 0)", [number])
        until("the others are applied", lambda: way.in_south("SELECT count(*) FROM b.items")[0][0] > 1400, 30)
        low, high = way.in_south("SELECT log_cmplt_csn, log_csn FROM b.checks WHERE group_name = 'REP1'")[0]
        until(
            "the low watermark stays below what is applied",
            lambda: bool(way.in_south("SELECT 1 FROM b.checks WHERE log_cmplt_csn < log_csn")),
        )
        assert low <= high
        if killed:
            way.run("KILL REPLICAT rep1")
    if killed:
        way.start("rep1")
    drained(way)
    assert way.in_south("SELECT price, name FROM b.items WHERE id = 1") == [(2, "dependent")]
    way.run("STOP REPLICAT rep1")
    assert way.in_south("SELECT count(*) FROM b.checks_lox WHERE log_cmplt_xids <> ''") == [(0,)]


def test_with_full_serialization_nothing_overtakes_a_locked_row(way: Way) -> None:
    prepare(way, "parallel in order")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start("ext1", "rep1")
    way.arrives(1)
    with psycopg.connect(way.south, application_name="the holder") as holder:
        holder.execute("SELECT FROM b.items WHERE id = 1 FOR UPDATE")
        way.in_north("UPDATE a.items SET price = price + 1 WHERE id = 1", "INSERT INTO a.items VALUES (2, 'two', 1)")
        until("the holder is named", lambda: "the holder" in way.home.report("rep1").read_text())
        assert way.in_south("SELECT count(*) FROM b.items") == [(1,)]
    drained(way)
