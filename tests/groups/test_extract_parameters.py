"""What an Extract's parameters change about the rows that arrive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ways import EXT1, REP1, Way

from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

KEYCOLS = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.items, KEYCOLS (name);\n"


@pytest.fixture
def way(tmp_path: Path, north: str, south: str) -> Iterator[Way]:
    way = Way(tmp_path / "home", north, south)
    yield way
    way.close()


def test_begin_with_a_time_leaves_out_what_committed_before_it(way: Way) -> None:
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items", "REGISTER EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (1, 'before', 1)")
    moment = way.in_north("SELECT to_char(clock_timestamp(), 'YYYY-MM-DD HH24:MI:SS.US')")[0][0]
    zone = way.in_north("SHOW timezone")[0][0]
    way.in_north("INSERT INTO a.items VALUES (2, 'behind', 2)")
    way.run(
        "DBLOGIN USERIDALIAS north",
        f"ADD EXTRACT ext1, TRANLOG, BEGIN {_local(moment, zone)}",
        "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1",
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE b.checks",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE b.checks",
    )
    way.start()
    way.arrives(1)
    assert way.in_south("SELECT name FROM b.items") == [("behind",)]
    way.run("STOP EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (3, 'later', 3)")
    way.start("ext1")
    way.arrives(2)


def _local(text: str, zone: str) -> str:
    """A server's wall time as this machine's."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.mark.parametrize(("word", "first"), [("ATCSN", 2), ("AFTERCSN", 3)])
def test_capture_begins_at_a_commit_or_behind_it(way: Way, word: str, first: int) -> None:
    way.add()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "INSERT INTO a.items VALUES (2, 'two', 2)")
    slot = "SELECT lsn::text FROM pg_logical_slot_peek_binary_changes('ggs_ext1', NULL, NULL, {})"
    options = "'proto_version', '1', 'publication_names', 'ggshell'"
    ends = way.in_north(f"SELECT max(lsn) FROM ({slot.format(options)}) x (lsn)")[0][0]
    way.run(f"START EXTRACT ext1, {word} {ends}")
    way.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    way.start("rep1")
    way.arrives(4 - first)
    assert way.in_south("SELECT min(id) FROM b.items") == [(first,)]
    way.run("STOP EXTRACT ext1")
    assert "is in its trail" in way.run(f"START EXTRACT ext1, {word} 0/1", fails=True)
    assert "does not read a log" not in way.run("START EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (4, 'four', 4)")
    way.arrives(5 - first)


def test_keycols_of_table_identify_rows_in_the_trail(way: Way) -> None:
    way.write("ext1", KEYCOLS)
    way.add()
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items, COLS (name)")
    way.start()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)", "UPDATE a.items SET id = 5, price = 2 WHERE id = 1")
    way.arrives(1)
    way.in_north("DELETE FROM a.items WHERE id = 5")
    way.arrives(0)
    reader = TrailReader(TrailName.parse("./dirdat/ea", way.home.root))
    batch = reader.read()
    reader.close()
    assert batch is not None
    assert [batch.tables[0].columns[place].name for place in batch.tables[0].key] == ["name"]


def test_keycols_whose_old_values_the_log_lacks_are_refused_with_the_remedy(way: Way) -> None:
    way.write("ext1", KEYCOLS)
    way.add()
    way.start("ext1")
    report = way.ends(EXT1)
    assert "old value of name" in report
    assert "ADD TRANDATA a.items, COLS (name)" in report


def test_etrollover_begins_a_new_file_once_and_readers_follow(way: Way) -> None:
    way.add()
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    way.arrives(1)
    way.run("STOP EXTRACT ext1", "ALTER EXTRACT ext1, ETROLLOVER", "START EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (2, 'two', 2)")
    way.arrives(2)
    trail = TrailName.parse("./dirdat/ea", way.home.root)
    assert trail.sequences() == [0, 1]
    way.run("STOP EXTRACT ext1", "START EXTRACT ext1")
    way.in_north("INSERT INTO a.items VALUES (3, 'three', 3)")
    way.arrives(3)
    assert trail.sequences() == [0, 1]


def test_what_is_not_carried_out_is_a_warning_unless_other_rows_would_arrive(way: Way) -> None:
    way.add()
    way.write(
        "ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTRANLOGOPTIONS EXCLUDETAG 00\nTABLE a.*;\n"
    )
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    way.arrives(1)
    assert re.search(r"WARNING GGS-00103  Line 4: .*EXCLUDETAG", way.home.report("EXT1").read_text())
    way.run("STOP EXTRACT ext1")
    for line in ("GETREPLICATES",):
        way.write("ext1", f"EXTRACT ext1\nUSERIDALIAS north\n{line}\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n")
        way.start("ext1")
        report = way.ends(EXT1)
        assert "ext1.prm:3:1" in report
        assert "is not supported" in report


def test_a_clause_of_map_that_is_not_carried_out_ends_replicat_before_any_row(way: Way) -> None:
    way.add()
    way.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, EVENTACTIONS (STOP);\n")
    way.in_north("INSERT INTO a.items VALUES (1, 'one', 1)")
    way.start()
    assert "EVENTACTIONS of MAP is not supported" in way.ends(REP1)
    assert way.in_south("SELECT count(*) FROM b.items") == [(0,)]
    way.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, MAPALLCOLUMNS, EVENTACTIONS (STOP);\n")
    way.start("rep1")
    assert "EVENTACTIONS of MAP" in way.ends(REP1), "a harmless gap does not hide a harmful one"
    way.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nMAP a.*, TARGET b.*, MAPALLCOLUMNS;\n")
    way.start("rep1")
    way.arrives(1)
    assert "MAPALLCOLUMNS of MAP" in way.home.report("REP1").read_text()


def test_operations_are_left_out_of_the_tables_below(way: Way) -> None:
    way.in_north("CREATE TABLE a.more (id int PRIMARY KEY, name text)")
    way.in_south("CREATE TABLE b.more (id int PRIMARY KEY, name text)")
    way.write(
        "ext1",
        "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nIGNOREDELETES\nIGNOREUPDATES\nTABLE a.items;\n"
        "GETDELETES\nTABLE a.more;\n",
    )
    way.add()
    way.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.more")
    way.start()
    for table in ("items", "more"):
        way.in_north(
            f"INSERT INTO a.{table} (id, name) VALUES (1, 'one'), (2, 'two')",
            f"UPDATE a.{table} SET name = 'uno' WHERE id = 1",
            f"DELETE FROM a.{table} WHERE id = 2",
        )
    way.in_north("INSERT INTO a.items (id) VALUES (3)")
    way.arrives(3)
    assert way.in_south("SELECT id, name FROM b.items ORDER BY id") == [(1, "one"), (2, "two"), (3, None)]
    assert way.in_south("SELECT id, name FROM b.more") == [(1, "one")]


def test_replicat_leaves_out_operations_of_the_maps_below(way: Way) -> None:
    way.write("rep1", "REPLICAT rep1\nUSERIDALIAS south\nIGNOREDELETES\nMAP a.*, TARGET b.*;\n")
    way.add()
    way.start()
    way.in_north("INSERT INTO a.items (id) VALUES (1), (2)", "DELETE FROM a.items WHERE id = 1")
    way.in_north("INSERT INTO a.items (id) VALUES (3)")
    way.arrives(3)
    assert way.in_south("SELECT id FROM b.items ORDER BY id") == [(1,), (2,), (3,)]
