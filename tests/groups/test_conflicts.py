"""COMPARECOLS and RESOLVECONFLICT with real processes: rows of the target have been changed by others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import REP1, Pipeline
from processes import until

ROWS = "SELECT id, name, price::text FROM b.items ORDER BY id"


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.in_north("ALTER TABLE a.items REPLICA IDENTITY FULL")
    pipeline.write(
        "ext1",
        "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nNOCOMPRESSDELETES\nUPDATERECORDFORMAT FULL\nTABLE a.*;\n",
    )
    yield pipeline
    pipeline.close()


def begin(pipeline: Pipeline, *clauses: str) -> None:
    """Start with rows 1 to 3 on both sides, then change the target independently."""
    lines = ",\n  ".join(["MAP a.items, TARGET b.items", "COMPARECOLS (ON UPDATE ALL, ON DELETE ALL)", *clauses])
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\nDISCARDFILE ./dirrpt/rep1.dsc, APPEND\n{lines};\n")
    pipeline.add()
    # ADD TRANDATA has set the key as replica identity; these tests need all columns.
    pipeline.in_north("ALTER TABLE a.items REPLICA IDENTITY FULL")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 10), (2, 'two', 20), (3, 'three', 30)")
    pipeline.wait_for_rows(3)


def change_and_wait(pipeline: Pipeline, *statements: str, until_rows: list[tuple[object, ...]]) -> None:
    pipeline.in_north(*statements)
    until(f"the rows are {until_rows}", lambda: pipeline.in_south(ROWS) == until_rows)


def test_the_greater_value_wins_and_amounts_are_added(pipeline: Pipeline) -> None:
    begin(
        pipeline,
        "RESOLVECONFLICT (UPDATEROWEXISTS, (money, USEDELTA, COLS (price)), (DEFAULT, USEMAX (name)))",
        "RESOLVECONFLICT (INSERTROWEXISTS, (DEFAULT, OVERWRITE))",
    )
    pipeline.in_south(
        "UPDATE b.items SET name = 'zzz', price = 15 WHERE id = 1", "UPDATE b.items SET price = 25 WHERE id = 2"
    )
    pipeline.in_south("INSERT INTO b.items VALUES (4, 'mine', 4)")
    change_and_wait(
        pipeline,
        "UPDATE a.items SET name = 'uno', price = 12 WHERE id = 1",
        "UPDATE a.items SET name = 'zwei', price = 21 WHERE id = 2",
        "INSERT INTO a.items VALUES (4, 'yours', 44)",
        "UPDATE a.items SET price = 31 WHERE id = 3",
        until_rows=[(1, "zzz", "17"), (2, "zwei", "26"), (3, "three", "31"), (4, "yours", "44")],
    )


def test_missing_rows_are_inserted_and_stale_deletes_are_skipped(pipeline: Pipeline) -> None:
    begin(
        pipeline,
        "RESOLVECONFLICT (UPDATEROWMISSING, (DEFAULT, OVERWRITE))",
        "RESOLVECONFLICT (DELETEROWMISSING, (DEFAULT, IGNORE))",
        "RESOLVECONFLICT (DELETEROWEXISTS, (DEFAULT, IGNORE))",
    )
    pipeline.in_south("DELETE FROM b.items WHERE id < 3", "UPDATE b.items SET price = 33 WHERE id = 3")
    change_and_wait(
        pipeline,
        "UPDATE a.items SET price = 11 WHERE id = 1",
        "DELETE FROM a.items WHERE id = 2",
        "DELETE FROM a.items WHERE id = 3",
        "INSERT INTO a.items VALUES (5, 'last', 5)",
        until_rows=[(1, "one", "11"), (3, "three", "33"), (5, "last", "5")],
    )


def test_a_conflict_can_be_discarded_or_abend_replicat(pipeline: Pipeline) -> None:
    begin(pipeline, "RESOLVECONFLICT (UPDATEROWEXISTS, (DEFAULT, DISCARD))")
    pipeline.in_south("UPDATE b.items SET price = 99 WHERE id = 1")
    change_and_wait(
        pipeline,
        "UPDATE a.items SET price = 11 WHERE id = 1",
        "UPDATE a.items SET price = 21 WHERE id = 2",
        until_rows=[(1, "one", "99"), (2, "two", "21"), (3, "three", "30")],
    )
    assert "price = 11" in (pipeline.home.root / "dirrpt" / "rep1.dsc").read_text()
    pipeline.in_south("UPDATE b.items SET price = 98 WHERE id = 3")
    pipeline.in_north("DELETE FROM a.items WHERE id = 3")
    assert "delete on b.items (id = 3" in pipeline.abended_report(REP1)
