"""Two databases that change the same rows, each with an Extract and a Replicat: both end with the same rows."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline
from processes import until

ROWS, ROUNDS = 40, 120
TABLES = ("latest", "sums", "fixed")
"""One table per rule: the latest change wins, amounts are added, or the change of north wins."""
COLUMNS = "id int PRIMARY KEY, val text, site text, amount numeric NOT NULL, changed timestamptz NOT NULL"
LATEST = "(DEFAULT, USEMAX (changed))"
MISSING = "RESOLVECONFLICT (UPDATEROWMISSING, (DEFAULT, {})), RESOLVECONFLICT (DELETEROWMISSING, (DEFAULT, IGNORE))"
KINDS = {
    "classic, COMPACT": ("", "", "LOGALLSUPCOLS"),
    "parallel, FULL": (", PARALLEL", "APPLY_PARALLELISM 3\n", "UPDATERECORDFORMAT FULL\nNOCOMPRESSDELETES"),
    "coordinated, COMPACT": (", COORDINATED MAXTHREADS 3", "", "UPDATERECORDFORMAT COMPACT\nLOGALLSUPCOLS"),
}


def maps(method: str) -> str:
    """The MAP parameters of one site; ``method``: what the site does where one site always wins."""
    rules = {
        "latest": (LATEST, "OVERWRITE", "IGNORE"),
        "sums": (f"(money, USEDELTA, COLS (amount)), {LATEST}", "OVERWRITE", "IGNORE"),
        "fixed": (f"(DEFAULT, {method})", method, method),
    }
    return "".join(
        f"MAP s.{table}, TARGET s.{table}, COMPARECOLS (ON UPDATE ALL, ON DELETE ALL),\n"
        f" RESOLVECONFLICT (UPDATEROWEXISTS, {updates}),\n RESOLVECONFLICT (DELETEROWEXISTS, (DEFAULT, {deletes})),\n"
        f" {MISSING.format(missing)}{', THREADRANGE (1-3)' if table == 'latest' else ''};\n"
        for table, (updates, deletes, missing) in rules.items()
    )


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def prepare(pipeline: Pipeline, kind: str) -> None:
    added, parameters, images = KINDS[kind]
    for run in (pipeline.in_north, pipeline.in_south):
        run("CREATE SCHEMA s", "CREATE TABLE s.ends (id int PRIMARY KEY)")
        run(*(f"CREATE TABLE s.{table} ({COLUMNS})" for table in TABLES))
        rows = f"SELECT id, 'o', 'none', 100, '2026-01-01' FROM generate_series(0, {ROWS}) id"
        run(*(f"INSERT INTO s.{table} {rows}" for table in TABLES))
    statements: list[str] = []
    for number, (here, there, trail, method) in enumerate(
        (("north", "south", "ea", "OVERWRITE"), ("south", "north", "eb", "IGNORE")), 1
    ):
        tables = "".join(f"TABLE s.{table};\n" for table in (*TABLES, "ends"))
        pipeline.write(
            f"ext{number}", f"EXTRACT ext{number}\nUSERIDALIAS {here}\n{images}\nEXTTRAIL ./dirdat/{trail}\n{tables}"
        )
        text = f"REPLICAT rep{number}\nUSERIDALIAS {there}\n{parameters}{maps(method)}MAP s.ends, TARGET s.ends;\n"
        pipeline.write(f"rep{number}", text if "COORD" in added else text.replace(", THREADRANGE (1-3)", ""))
        statements += [
            f"DBLOGIN USERIDALIAS {here}",
            "ADD TRANDATA s.*, ALLCOLS",
            f"ADD CHECKPOINTTABLE public.c{number}",
            f"REGISTER EXTRACT ext{number}",
            f"ADD EXTRACT ext{number}, TRANLOG, BEGIN NOW",
            f"ADD EXTTRAIL ./dirdat/{trail}, EXTRACT ext{number}",
        ]
    statements += [
        f"ADD REPLICAT rep{number}{added}, EXTTRAIL ./dirdat/{trail}, CHECKPOINTTABLE public.c{3 - number}"
        for number, trail in ((1, "ea"), (2, "eb"))
    ]
    pipeline.run(*statements)


def change(chance: random.Random, moment: int, here: int) -> str:
    """A change of some columns and the time, which is later than the row's and never equal to one of the other site."""
    table, key = chance.choice(TABLES), chance.randrange(1, ROWS + 1)
    if chance.random() < 0.1:
        return f"DELETE FROM s.{table} WHERE id = {key}"
    later = f"greatest(date_trunc('second', changed), timestamptz '2026-01-02' + interval '{moment} s')"
    columns = [f"changed = {later} + interval '1 s {here + 1} us'"]
    columns += [f"val = 'v{moment}'"] * (chance.random() < 0.5)
    columns += [f"site = '{'ns'[here]}'"] * (chance.random() < 0.5)
    columns += [f"amount = amount + {chance.randrange(-9, 10)}"] * (chance.random() < 0.5)
    return f"UPDATE s.{table} SET {', '.join(columns)} WHERE id = {key}"


def rows(pipeline: Pipeline) -> list[list[tuple[object, ...]]]:
    query = " UNION ALL ".join(f"SELECT '{table}', * FROM s.{table}" for table in TABLES) + " ORDER BY 1, 2"
    return [run(query) for run in (pipeline.in_north, pipeline.in_south)]


@pytest.mark.parametrize("kind", KINDS)
def test_both_databases_end_with_the_same_rows(pipeline: Pipeline, kind: str) -> None:
    prepare(pipeline, kind)
    pipeline.start("ext1", "ext2")
    # The two changes set different columns: both sites must keep the row of the latest change.
    pipeline.in_south("UPDATE s.latest SET site = 's', changed = '2026-01-01 01:00' WHERE id = 0")
    pipeline.in_north("UPDATE s.latest SET val = 'n', changed = '2026-01-01 02:00' WHERE id = 0")
    chance = random.Random(kind)
    written: tuple[list[str], list[str]] = ([], [])
    for moment in range(ROUNDS):
        here = chance.randrange(2)
        written[here].append(change(chance, moment, here))
    pipeline.in_north(*written[0][::2])
    pipeline.in_south(*written[1][::2])
    pipeline.start("rep1", "rep2")
    pipeline.in_north(*written[0][1::2], "INSERT INTO s.ends VALUES (1)")
    pipeline.in_south(*written[1][1::2], "INSERT INTO s.ends VALUES (2)")
    for run in (pipeline.in_north, pipeline.in_south):
        until("the last row of the other side arrives", lambda run=run: run("SELECT count(*) FROM s.ends") == [(2,)])
    # A parallel Replicat can commit the last row before independent rows.
    until("both databases have the same rows", lambda: rows(pipeline)[0] == rows(pipeline)[1])
    found = {(row[0], row[1]): row for row in rows(pipeline)[0]}
    assert len(found) > ROWS
    assert found["latest", 0][2:4] == ("n", "none")
    added = Counter({key: 100 for table, key in found if table == "sums"})
    for delta, key in re.findall(
        r"s\.sums .*amount \+ (-?\d+) WHERE id = (\d+)", "\n".join([*written[0], *written[1]])
    ):
        added[int(key)] += int(delta)
    assert all(row[4] == added[row[1]] for key, row in found.items() if key[0] == "sums")
    counted = pipeline.run("STATS REPLICAT *, TOTAL, REPORTCDR")
    conflicts, succeeded = (
        sum(float(number) for number in re.findall(rf"{label} +(\d+\.\d\d)", counted))
        for label in ("Total CDR conflicts", "CDR resolutions succeeded")
    )
    assert conflicts == succeeded > 5
    assert sum(float(number) for number in re.findall(r"CDR \w+ROW\w+ conflicts +(\d+\.\d\d)", counted)) == conflicts
