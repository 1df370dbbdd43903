"""What an Extract's parameters change about the rows that arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import EXT1, REP1, Pipeline
from processes import until

from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

KEYCOLS = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.items, KEYCOLS (name);\n"


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def test_begin_with_a_time_skips_transactions_committed_before_it(pipeline: Pipeline) -> None:
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items", "REGISTER EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'before', 1)")
    moment = pipeline.in_north("SELECT to_char(clock_timestamp(), 'YYYY-MM-DD HH24:MI:SS.US')")[0][0]
    zone = pipeline.in_north("SHOW timezone")[0][0]
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'behind', 2)")
    pipeline.run(
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, BEGIN {_local(moment, zone)}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1",
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )
    pipeline.start()
    pipeline.wait_for_rows(1)
    assert pipeline.in_south("SELECT name FROM b.items") == [("behind",)]
    pipeline.run("STOP EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'later', 3)")
    pipeline.start("ext1")
    pipeline.wait_for_rows(2)


def _local(text: str, zone: str) -> str:
    """A server's local time as local time of this machine."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.mark.parametrize(("word", "first"), [("ATCSN", 2), ("AFTERCSN", 3)])
def test_capture_begins_at_or_after_a_commit(pipeline: Pipeline, word: str, first: int) -> None:
    pipeline.add()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "INSERT INTO a.items VALUES (2, 'two', 2)")
    slot = "SELECT lsn::text FROM pg_logical_slot_peek_binary_changes('ggs_ext1', NULL, NULL, {})"
    options = "'proto_version', '1', 'publication_names', 'ggshell'"
    ends = pipeline.in_north(f"SELECT max(lsn) FROM ({slot.format(options)}) x (lsn)")[0][0]
    pipeline.run(f"START EXTRACT ext1, {word} {ends}")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.start("rep1")
    pipeline.wait_for_rows(4 - first)
    assert pipeline.in_south("SELECT min(id) FROM b.items") == [(first,)]
    pipeline.run("STOP EXTRACT ext1")
    assert "is in its trail" in pipeline.run(f"START EXTRACT ext1, {word} 0/1", fails=True)
    assert "does not read a log" not in pipeline.run("START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (4, 'four', 4)")
    pipeline.wait_for_rows(5 - first)


def test_keycols_of_table_identify_rows_in_the_trail(pipeline: Pipeline) -> None:
    pipeline.write("ext1", KEYCOLS)
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items, COLS (name)")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "UPDATE a.items SET id = 5, price = 2 WHERE id = 1")
    pipeline.wait_for_rows(1)
    pipeline.in_north("DELETE FROM a.items WHERE id = 5")
    pipeline.wait_for_rows(0)
    reader = TrailReader(TrailName.parse("./dirdat/ea", pipeline.home.root))
    batch = reader.read()
    reader.close()
    assert batch is not None
    assert [batch.tables[0].columns[place].name for place in batch.tables[0].key] == ["name"]


def test_keycols_whose_old_values_the_log_lacks_are_refused_with_the_remedy(pipeline: Pipeline) -> None:
    pipeline.write("ext1", KEYCOLS)
    pipeline.add()
    pipeline.start("ext1")
    report = pipeline.abended_report(EXT1)
    assert "old value of name" in report
    assert "ADD TRANDATA a.items, COLS (name)" in report


def test_etrollover_begins_a_new_file_once_and_readers_follow(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    pipeline.run("STOP EXTRACT ext1", "ALTER EXTRACT ext1, ETROLLOVER", "START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    trail = TrailName.parse("./dirdat/ea", pipeline.home.root)
    assert trail.sequences() == [0, 1]
    pipeline.run("STOP EXTRACT ext1", "START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    assert trail.sequences() == [0, 1]


@pytest.mark.parametrize("asked", ["ALTER", "SEND"])
@pytest.mark.parametrize("end", ["STOP", "KILL"])
def test_a_rollover_is_kept_if_the_extract_ends_before_the_next_transaction(
    pipeline: Pipeline, asked: str, end: str
) -> None:
    pipeline.add()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    if asked == "ALTER":
        pipeline.run("STOP EXTRACT ext1", "ALTER EXTRACT ext1, ETROLLOVER", "START EXTRACT ext1")
        report = pipeline.home.report("EXT1")
        until("the trail is open", lambda: "Capture begins after" in report.read_text())
    else:
        pipeline.run("SEND EXTRACT ext1, ROLLOVER")
    pipeline.run(f"{end} EXTRACT ext1", "START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    pipeline.wait_for_rows(2)
    pipeline.run("STOP EXTRACT ext1", "START EXTRACT ext1")
    pipeline.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    pipeline.wait_for_rows(3)
    assert TrailName.parse("./dirdat/ea", pipeline.home.root).sequences() == [0, 1]


def test_an_unsupported_parameter_is_a_warning_unless_it_would_change_the_rows(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.write(
        "ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTRANLOGOPTIONS EXCLUDETAG 00\nTABLE a.*;\n"
    )
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    pipeline.wait_for_rows(1)
    assert re.search(r"WARNING GGS-00103  Line 4: .*EXCLUDETAG", pipeline.home.report("EXT1").read_text())
    pipeline.run("STOP EXTRACT ext1")
    for line in ("IGNOREAPPLOPS",):
        pipeline.write("ext1", f"EXTRACT ext1\nUSERIDALIAS north\n{line}\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n")
        pipeline.start("ext1")
        report = pipeline.abended_report(EXT1)
        assert "ext1.prm:3:1" in report
        assert "is not supported" in report


def test_replicat_abends_before_any_row_if_a_map_clause_is_not_supported(pipeline: Pipeline) -> None:
    pipeline.add()
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, EVENTACTIONS (STOP);\n")
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    pipeline.start()
    assert "EVENTACTIONS of MAP is not supported" in pipeline.abended_report(REP1)
    assert pipeline.in_south("SELECT count(*) FROM b.items") == [(0,)]
    pipeline.write(
        "rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, MAPALLCOLUMNS, EVENTACTIONS (STOP);\n"
    )
    pipeline.start("rep1")
    assert "EVENTACTIONS of MAP" in pipeline.abended_report(REP1), "a harmless gap does not hide a harmful one"
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, MAPALLCOLUMNS;\n")
    pipeline.start("rep1")
    pipeline.wait_for_rows(1)
    assert "MAPALLCOLUMNS of MAP" in pipeline.home.report("REP1").read_text()


def test_extract_omits_operations_of_the_table_parameters_that_follow(pipeline: Pipeline) -> None:
    pipeline.in_north("CREATE TABLE a.more (id int PRIMARY KEY, name text)")
    pipeline.in_south("CREATE TABLE b.more (id int PRIMARY KEY, name text)")
    pipeline.write(
        "ext1",
        "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nIGNOREDELETES\nIGNOREUPDATES\nTABLE a.items;\n"
        "GETDELETES\nTABLE a.more;\n",
    )
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.more")
    pipeline.start()
    for table in ("items", "more"):
        pipeline.in_north(
            f"INSERT INTO a.{table} (id, name) VALUES (1, 'one'), (2, 'two')",
            f"UPDATE a.{table} SET name = 'uno' WHERE id = 1",
            f"DELETE FROM a.{table} WHERE id = 2",
        )
    pipeline.in_north("INSERT INTO a.items (id) VALUES (3)")
    pipeline.wait_for_rows(3)
    assert pipeline.in_south("SELECT id, name FROM b.items ORDER BY id") == [(1, "one"), (2, "two"), (3, None)]
    assert pipeline.in_south("SELECT id, name FROM b.more") == [(1, "one")]


def test_replicat_omits_operations_of_the_map_parameters_that_follow(pipeline: Pipeline) -> None:
    pipeline.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nIGNOREDELETES\nMAP a.*, TARGET b.*;\n")
    pipeline.add()
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items (id) VALUES (1), (2)", "DELETE FROM a.items WHERE id = 1")
    pipeline.in_north("INSERT INTO a.items (id) VALUES (3)")
    pipeline.wait_for_rows(3)
    assert pipeline.in_south("SELECT id FROM b.items ORDER BY id") == [(1,), (2,), (3,)]
