"""FILTER, WHERE, COLMAP and changed operations, with real processes and databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.home.process_file import ProcessState


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def replicat(pipeline: Pipeline, *lines: str) -> None:
    pipeline.write("rep1", "\n".join(["REPLICAT rep1", "USERIDALIAS south", *lines, ""]))


def wait_for_result(pipeline: Pipeline, query: str, expected: list[tuple[object, ...]]) -> None:
    until(f"{query} gives {expected}", lambda: pipeline.in_south(query) == expected)


def test_colmap_computes_columns_and_filter_selects_rows(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.wares (ware int PRIMARY KEY, label text, price numeric, origin text, made text)")
    replicat(
        pipeline,
        "MAP a.items, TARGET b.wares, FILTER (ON INSERT, price > 0), WHERE (name = @ABSENT OR name <> 'never'),",
        "  COLMAP (USEDEFAULTS, ware = id, label = @STRCAT (@STRUP (name), '-', id), origin = 'north',",
        "  made = @GETENV ('GGHEADER', 'OPTYPE'));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north(
        "INSERT INTO a.items VALUES (1, 'one', 1.50), (2, 'two', -1), (3, 'never', 3), (4, 'four', 4)",
        "UPDATE a.items SET name = 'eins', price = 2 WHERE id = 1",
        "UPDATE a.items SET id = 5 WHERE id = 4",
        "INSERT INTO a.items VALUES (6, 'six', 6)",
        "DELETE FROM a.items WHERE id = 6",
        "INSERT INTO a.items VALUES (9, 'last', 9)",
    )
    expected = [
        (1, "EINS-1", "2", "north", "SQL COMPUPDATE"),
        (5, "FOUR-5", "4", "north", "PK UPDATE"),
        (9, "LAST-9", "9", "north", "INSERT"),
    ]
    wait_for_result(pipeline, "SELECT ware, label, price::text, origin, made FROM b.wares ORDER BY ware", expected)
    pipeline.run("STOP REPLICAT rep1")
    assert pipeline.in_south("SELECT count(*) FROM b.items") == [(0,)]


def test_a_table_is_mapped_to_a_copy_and_a_history_table(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.history (id int, name text, operation text, changed text)")
    replicat(
        pipeline,
        "MAP a.items, TARGET b.items;",
        "INSERTALLRECORDS",
        "MAP a.items, TARGET b.history, COLMAP (USEDEFAULTS, operation = @GETENV ('GGHEADER', 'OPTYPE'),",
        "  changed = @GETENV ('TRANSACTION', 'CSN'));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north(
        "INSERT INTO a.items SELECT number, 'x', 1 FROM generate_series(1, 40) number",
        "UPDATE a.items SET name = 'y' WHERE id = 7",
        "DELETE FROM a.items WHERE id = 7",
    )
    wait_for_result(pipeline, "SELECT count(*) FROM b.history", [(42,)])
    found = pipeline.in_south("SELECT name, operation FROM b.history WHERE id = 7 ORDER BY changed")
    assert found == [("x", "INSERT"), ("y", "SQL COMPUPDATE"), (None, "DELETE")]
    pipeline.assert_same_rows()
    shown = pipeline.run("STATS REPLICAT rep1, TOTAL")
    assert "a.items to b.history" in shown
    assert "a.items to b.items" in shown


def test_deletes_become_updates(pipeline: Pipeline) -> None:
    pipeline.in_south("ALTER TABLE b.items ADD gone text")
    replicat(
        pipeline,
        "UPDATEDELETES",
        "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, gone = @CASE (GGS_OP_TYPE, 'DELETE', 'yes', 'no'));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)", "DELETE FROM a.items WHERE id = 2")
    wait_for_result(pipeline, "SELECT id, name, gone FROM b.items ORDER BY id", [(1, "one", "no"), (2, "two", "yes")])


def test_replicat_abends_at_the_position_of_an_unknown_column(pipeline: Pipeline) -> None:
    replicat(pipeline, "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, name = @STRUP (nmae));")
    pipeline.add()
    pipeline.start("ext1")
    pipeline.run("START REPLICAT rep1", fails=False)
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    report = pipeline.abended_report(REP1)
    assert "a.items has no column nmae" in report
    assert "did you mean name" in report


def extract(pipeline: Pipeline, *lines: str) -> None:
    pipeline.write("ext1", "\n".join(["EXTRACT ext1", "USERIDALIAS north", "EXTTRAIL ./dirdat/ea", *lines, ""]))


def test_extract_writes_selected_rows_and_columns_under_another_name(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.short (id int PRIMARY KEY, label text, twice numeric)")
    extract(
        pipeline,
        "TABLE a.items, TARGET a.short, FILTER (ON INSERT, ON UPDATE, price > 0), COLSEXCEPT (price),",
        "  COLMAP (USEDEFAULTS, label = @STRUP (name), twice = @COMPUTE (price * 2));",
    )
    replicat(pipeline, "MAP a.short, TARGET b.short, COLMAP (USEDEFAULTS);")
    pipeline.add()
    pipeline.start()
    pipeline.in_north(
        "INSERT INTO a.items SELECT number, 'n' || number, number - 1 FROM generate_series(1, 30) number",
        "UPDATE a.items SET price = 7.5 WHERE id = 2",
        "UPDATE a.items SET id = 100 WHERE id = 3",
        "DELETE FROM a.items WHERE id > 3 AND id < 30",
        "INSERT INTO a.items VALUES (200, NULL, 1)",
    )
    expected = [(2, "N2", "15.0"), (30, "N30", "58"), (100, "N3", "4"), (200, None, "2")]
    wait_for_result(pipeline, "SELECT id, label, twice::text FROM b.short ORDER BY id", expected)
    assert "a.short" in pipeline.run("STATS EXTRACT ext1, TOTAL")


def test_a_pump_filters_and_maps_rows(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.few (id int PRIMARY KEY, name text)")
    pipeline.write(
        "pmp1",
        "EXTRACT pmp1\nEXTTRAIL ./dirdat/eb\nTABLE a.items, TARGET a.few, COLS (id, name), WHERE (name <> 'no');\n",
    )
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.few, TARGET b.few;\n")
    pipeline.add()
    pipeline.run(
        "DELETE REPLICAT rep1 !",
        "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTTRAIL ./dirdat/eb, EXTRACT pmp1, MEGABYTES 10",
        "DBLOGIN USERIDALIAS south",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/eb, CHECKPOINTTABLE b.checks",
    )
    pipeline.start("ext1", "pmp1", "rep1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'no', 2), (3, 'three', 3)")
    wait_for_result(pipeline, "SELECT * FROM b.few ORDER BY id", [(1, "one"), (3, "three")])


def test_extract_refuses_to_omit_the_key(pipeline: Pipeline) -> None:
    extract(pipeline, "TABLE a.items, COLS (name);")
    pipeline.add()
    pipeline.run("START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    until_state(pipeline.home, *EXT1, ProcessState.ABENDED)
    assert "id belongs to the key of a.items" in pipeline.home.report("EXT1").read_text()


def test_failed_operations_are_inserted_into_the_exceptions_table(pipeline: Pipeline) -> None:
    pipeline.in_south(
        "CREATE TABLE b.refused (id int, name text, code text, message text, operation text)",
        "INSERT INTO b.items VALUES (2, 'in the way', 0)",
    )
    replicat(
        pipeline,
        "REPERROR (DEFAULT, ABEND)",
        "REPERROR (23505, EXCEPTION)",
        "REPERROR (1403, EXCEPTION)",
        "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, name = @STRUP (name));",
        "MAP a.items, TARGET b.refused, EXCEPTIONSONLY, INSERTALLRECORDS, COLMAP (USEDEFAULTS,",
        "  code = @GETENV ('LASTERR', 'DBERRNUM'), message = @GETENV ('LASTERR', 'DBERRMSG'),",
        "  operation = @GETENV ('LASTERR', 'OPTYPE'));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    pipeline.in_south("DELETE FROM b.items WHERE id = 3")
    pipeline.in_north("UPDATE a.items SET name = 'drei' WHERE id = 3", "INSERT INTO a.items VALUES (4, 'four', 4)")
    pipeline.wait_for_rows(3)
    wait_for_result(pipeline, "SELECT name FROM b.items ORDER BY id", [("ONE",), ("in the way",), ("FOUR",)])
    found = pipeline.in_south("SELECT id, name, code, operation FROM b.refused ORDER BY id")
    assert found == [(2, "two", "23505", "INSERT"), (3, "drei", "1403", "SQL COMPUPDATE")]
    assert "duplicate key" in str(pipeline.in_south("SELECT message FROM b.refused WHERE id = 2"))


def test_mapexception_works_with_wildcards(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.refused (id int, what text)", "INSERT INTO b.items VALUES (2, 'in the way', 0)")
    replicat(
        pipeline,
        "REPERROR (DEFAULT, EXCEPTION)",
        "MAP a.*, TARGET b.*, MAPEXCEPTION (TARGET b.refused, INSERTALLRECORDS, COLMAP (id = id,",
        "  what = @STRCAT (@GETENV ('GGHEADER', 'TABLENAME'), ' ', @GETENV ('LASTERR', 'ERRTYPE'))));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    assert pipeline.in_south("SELECT * FROM b.refused") == [(2, "a.items DB")]


def test_raiseerror_passes_rows_to_reperror(pipeline: Pipeline) -> None:
    pipeline.in_south("CREATE TABLE b.refused (id int, code text, kind text)")
    replicat(
        pipeline,
        "REPERROR (21000, DISCARD)",
        "REPERROR (21001, EXCEPTION)",
        "DISCARDFILE ./dirrpt/rep1.dsc, APPEND",
        "MAP a.items, TARGET b.items, FILTER (ON INSERT, RAISEERROR 21000, price < 100),",
        "  FILTER (RAISEERROR 21001, price > 0);",
        "MAP a.items, TARGET b.refused, EXCEPTIONSONLY, COLMAP (id = id,",
        "  code = @GETENV ('LASTERR', 'DBERRNUM'), kind = @GETENV ('LASTERR', 'ERRTYPE'));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'much', 200), (3, 'little', -1), (4, 'four', 4)")
    pipeline.wait_for_rows(2)
    assert pipeline.in_south("SELECT id FROM b.items ORDER BY id") == [(1,), (4,)]
    assert pipeline.in_south("SELECT * FROM b.refused") == [(3, "21001", "MAP")]
    assert "error 21000" in (pipeline.home.root / "dirrpt" / "rep1.dsc").read_text()


def test_sqlexec_looks_up_and_calls_in_the_target(pipeline: Pipeline) -> None:
    pipeline.in_south(
        "CREATE TABLE b.kinds (code text PRIMARY KEY, title text)",
        "INSERT INTO b.kinds VALUES ('a', 'apples'), ('p', 'pears 100%')",
        "CREATE FUNCTION b.taxed(amount numeric) RETURNS numeric LANGUAGE sql AS 'SELECT amount * 1.2'",
        "CREATE PROCEDURE b.both(given text, OUT upper text, OUT size int) LANGUAGE plpgsql AS"
        " $$ BEGIN upper := upper(given); size := length(given); END $$",
        "CREATE TABLE b.wares (id int PRIMARY KEY, kind text, title text, taxed numeric, said text)",
    )
    replicat(
        pipeline,
        "MAP a.items, TARGET b.wares,",
        "  SQLEXEC (ID look, QUERY 'SELECT title FROM b.kinds WHERE code = left(:name::text, 1) AND title LIKE ''%''',",
        "    PARAMS (name = name)),",
        "  SQLEXEC (SPNAME b.taxed, ID tax, PARAMS (amount = price), ERROR RAISE),",
        "  SQLEXEC (SPNAME b.both, ID both, PARAMS (given = name), ERROR RAISE),",
        "  COLMAP (id = id, kind = name, title = @IF (@COLTEST (look.title, PRESENT), look.title, 'none'),",
        "  taxed = @GETVAL (tax.return_value), said = @STRCAT (both.upper, both.size));",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'ab', 10), (2, 'pq', 20), (3, 'xyz', NULL)")
    query = "SELECT title, taxed::text, said FROM b.wares ORDER BY id"
    wait_for_result(pipeline, query, [("apples", "12.0", "AB2"), ("pears 100%", "24.0", "PQ2"), ("none", None, "XYZ3")])


def test_extract_filters_by_the_result_of_a_query(pipeline: Pipeline) -> None:
    pipeline.in_north("CREATE TABLE public.wanted (id int)", "INSERT INTO public.wanted VALUES (2)")
    extract(
        pipeline,
        "TABLE a.items, SQLEXEC (ID w, QUERY 'SELECT count(*) AS n FROM public.wanted WHERE id = :id', PARAMS (id = id),",
        "  BEFOREFILTER), FILTER (w.n > 0);",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    pipeline.wait_for_rows(1)
    assert pipeline.in_south("SELECT id FROM b.items") == [(2,)]


def test_a_failed_query_abends_replicat_only_on_request(pipeline: Pipeline) -> None:
    replicat(
        pipeline,
        "MAP a.items, TARGET b.items, SQLEXEC (ID q, QUERY 'SELECT 1 / (:id::int - 1) AS x', PARAMS (id = id), ERROR REPORT),",
        "  COLMAP (USEDEFAULTS, price = q.x);",
    )
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    assert pipeline.in_south("SELECT price::text FROM b.items ORDER BY id") == [(None,), ("1",)]
    assert "SQLEXEC q: the database returned an error: division by zero" in pipeline.home.report("REP1").read_text()


def test_a_parallel_replicat_maps_rows_and_reports_failed_ones(pipeline: Pipeline) -> None:
    pipeline.in_south(
        "CREATE TABLE b.refused (id int, code text)",
        "INSERT INTO b.items SELECT number * 50, 'in the way', 0 FROM generate_series(1, 4) number",
    )
    replicat(
        pipeline,
        "MAP_PARALLELISM 2",
        "APPLY_PARALLELISM 3",
        "REPERROR (23505, EXCEPTION)",
        "MAP a.items, TARGET b.items, COLMAP (USEDEFAULTS, name = @STRUP (name));",
        "MAP a.items, TARGET b.refused, EXCEPTIONSONLY, COLMAP (id = id, code = @GETENV ('LASTERR', 'DBERRNUM'));",
    )
    pipeline.add()
    pipeline.run(
        "DBLOGIN USERIDALIAS south",
        "DELETE REPLICAT rep1 !",
        "ADD REPLICAT rep1, PARALLEL, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )
    pipeline.start()
    for first in range(0, 200, 20):
        pipeline.in_north(f"INSERT INTO a.items SELECT {first} + number, 'x', 1 FROM generate_series(1, 20) number")
    pipeline.in_north("UPDATE a.items SET name = 'y' WHERE id = 7")
    pipeline.wait_for_rows(200)
    wait_for_result(pipeline, "SELECT name FROM b.items WHERE id IN (7, 50) ORDER BY id", [("Y",), ("in the way",)])
    assert pipeline.in_south("SELECT id, code FROM b.refused ORDER BY id") == [
        (each, "23505") for each in (50, 100, 150, 200)
    ]
