"""Capture from MariaDB's binary log: every committed change once and in order, through kills, restarts and new files."""

from __future__ import annotations

import random
import re
import threading
from contextlib import closing
from pathlib import Path

import pytest
from mariadb_home import MariadbHome
from mariadb_servers import IS_MYSQL, done_gtids, execute, last_gtid, log_status, only_mariadb, private_server
from processes import until

from ggshell.connectors.mysql.session import connect

ITEMS = "CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40))"


def _insert(login: str, first: int, count: int, step: int = 1) -> None:
    """Insert rows with rising numbers, ``step`` in each transaction."""
    with closing(connect(login)) as connection, connection.cursor() as cursor:
        for number in range(first, first + count, step):
            rows = ", ".join(f"({each}, 'row {each}')" for each in range(number, number + step))
            cursor.execute(f"INSERT INTO items VALUES {rows}")


def test_begin_now_captures_what_commits_afterwards(capture: MariadbHome) -> None:
    capture.execute(ITEMS, "INSERT INTO items VALUES (1, 'before')")
    added = capture.add()
    assert "Capture begins at log file" in added
    capture.execute("INSERT INTO items VALUES (2, 'a')", "INSERT INTO items VALUES (3, 'b'), (4, 'c')")
    capture.start()
    capture.wait_for_ids([2, 3, 4])
    capture.execute("UPDATE items SET name = 'x' WHERE id = 3", "DELETE FROM items WHERE id = 4", "TRUNCATE items")
    capture.execute("INSERT INTO items VALUES (5, 'e')")
    capture.wait_for_ids([2, 3, 4, 3, 4, 0, 5])
    capture.run("STOP EXTRACT ext1")
    shown = capture.run("INFO EXTRACT ext1, SHOWCH")
    assert "MySQL Binary Log" in shown
    assert "LogNum: " in shown
    assert f"GTID: {last_gtid(capture.login)}" in shown


def test_rolled_back_changes_are_not_captured(capture: MariadbHome) -> None:
    capture.execute(ITEMS)
    capture.add()
    capture.start()
    with closing(connect(capture.login)) as connection, connection.cursor() as cursor:
        for statement in (
            "BEGIN", "INSERT INTO items VALUES (1, 'a')", "ROLLBACK",
            "BEGIN", "INSERT INTO items VALUES (2, 'b')", "SAVEPOINT s", "INSERT INTO items VALUES (3, 'c')",
            "ROLLBACK TO s", "INSERT INTO items VALUES (4, 'd')", "COMMIT",
            "XA START 'x'", "INSERT INTO items VALUES (5, 'e')", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'",
            "INSERT INTO items VALUES (6, 'f')",
        ):  # fmt: skip
            cursor.execute(statement)
    capture.wait_for_ids([2, 4, 6])


def test_a_prepared_transaction_is_captured_at_its_commit_also_after_a_restart(capture: MariadbHome) -> None:
    capture.execute(ITEMS)
    capture.add()
    capture.start()
    with closing(connect(capture.login)) as connection, connection.cursor() as cursor:
        for statement in (
            "XA START 'a','b'",
            "INSERT INTO items VALUES (1, 'a')",
            "XA END 'a','b'",
            "XA PREPARE 'a','b'",
        ):
            cursor.execute(statement)
        _insert(capture.login, 2, 3)
        capture.wait_for_ids([2, 3, 4])
        capture.run("STOP EXTRACT ext1")
        assert capture.checkpoint.read.recovery < capture.checkpoint.read.current  # type: ignore[operator]
        capture.start()
        _insert(capture.login, 5, 1)
        capture.wait_for_ids([2, 3, 4, 5])
        cursor.execute("XA COMMIT 'a','b'")
    capture.wait_for_ids([2, 3, 4, 5, 1])


def test_answers_show_log_file_position_csn_and_gtid(capture: MariadbHome) -> None:
    """Regression: SHOWTRANS printed "LSN: None", and STATUS called the CSN a snapshot CSN."""
    capture.execute(ITEMS)
    capture.add()
    capture.start()
    with closing(connect(capture.login)) as connection, connection.cursor() as cursor:
        for statement in ("XA START 'a'", "INSERT INTO items VALUES (1, 'a')", "XA END 'a'", "XA PREPARE 'a'"):
            cursor.execute(statement)
        _insert(capture.login, 2, 1)
        capture.wait_for_ids([2])
        shown = capture.run("SEND EXTRACT ext1, SHOWTRANS")
        status = capture.run("SEND EXTRACT ext1, STATUS")
        cursor.execute("XA ROLLBACK 'a'")
    assert re.search(r"LogNum: +\d+\nLogPos: +\d+\nStart Time: +\S+\nCSN: +\d{6}:\d{15}\n", shown)
    assert re.search(r"necessary to restart Extract is:\nLogNum: \d+, LogPos: \d+, CSN \d{6}:\d{15}\n", shown)
    assert re.search(
        r"LogNum: \d+\n    LogPos: \d+\n    Timestamp: .*\n    CSN: \d{6}:\d{15}\n    GTID: [\da-f:,-]+\n", status
    )


def test_killed_at_any_moment_it_loses_nothing_and_captures_nothing_twice(
    capture: MariadbHome, request: pytest.FixtureRequest
) -> None:
    chance, count = random.Random(3), 3000
    capture.execute(ITEMS)
    capture.add()
    writer = threading.Thread(target=_insert, args=(capture.login, 1, count, 3))
    writer.start()
    capture.start()
    for _ in range(request.config.getoption("--rounds") or 3):
        wanted = len(capture.ids()) + chance.randrange(1, 400)
        if writer.is_alive():
            capture.wait_for_ids_at_least(min(wanted, count))
        capture.kill()
        capture.execute("FLUSH BINARY LOGS")
        capture.start()
    writer.join()
    capture.wait_for_ids(list(range(1, count + 1)))


def test_a_column_added_in_mid_stream_is_captured(capture: MariadbHome) -> None:
    capture.execute(ITEMS)
    capture.add()
    capture.execute("INSERT INTO items VALUES (1, 'a')", "ALTER TABLE items ADD extra INT FIRST")
    capture.execute(
        "INSERT INTO items VALUES (7, 2, 'b')", "ALTER TABLE items DROP extra", "INSERT INTO items VALUES (3, 'c')"
    )
    capture.start()
    capture.wait_for_ids([1, 7, 3])
    assert capture.rows() == [(1, b"a"), (7, b"2"), (3, b"c")]


@pytest.mark.parametrize(
    "begin", ["LOGNUM {number}, LOGPOS 0", "GTIDSET '{gtid}'", "LOGNUM {number}, LOGPOS {position}"]
)
def test_begin_at_a_file_a_position_or_a_gtid(capture: MariadbHome, begin: str) -> None:
    capture.execute(ITEMS, "FLUSH BINARY LOGS", "INSERT INTO items VALUES (1, 'a')")
    gtid = done_gtids(capture.login)
    file, position = log_status(capture.login)
    capture.execute("INSERT INTO items VALUES (2, 'b')")
    capture.add(begin.format(number=int(file.rpartition(".")[2]), position=position, gtid=gtid))
    capture.start()
    capture.wait_for_ids([1, 2] if begin.endswith("LOGPOS 0") else [2])


@pytest.mark.skipif(not IS_MYSQL, reason="GTID sets are of MySQL (GGSHELL_TEST_MYSQL)")
def test_a_gtid_set_with_a_gap_is_refused(capture: MariadbHome) -> None:
    """Regression: the transactions of the set after the gap were captured."""
    capture.execute(ITEMS, "INSERT INTO items VALUES (1, 'a')", "INSERT INTO items VALUES (2, 'b')")
    server, last = last_gtid(capture.login).split(":")
    begin = f"GTIDSET '{server}:1-{int(last) - 2}:{last}'"
    refused = capture.run(f"DBLOGIN SOURCEDB {capture.login}", f"ADD EXTRACT ext1, TRANLOG, {begin}", fails=True)
    assert f"after the first one that it lacks: {server}:{last}" in refused
    capture.add(f"GTIDSET '{server}:1-{int(last) - 2},{server}:{int(last) + 5}'")
    capture.start()
    capture.wait_for_ids([1, 2])


@only_mariadb("it logs when a transaction really committed")
def test_begin_at_a_time_captures_what_committed_since(capture: MariadbHome) -> None:
    capture.execute(ITEMS, "SET timestamp = 1000000000", "INSERT INTO items VALUES (1, 'a')")
    ((moment,),) = execute(capture.login, "SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s')")
    capture.execute("INSERT INTO items VALUES (2, 'b')")
    capture.add(f"BEGIN {moment}")
    capture.start()
    capture.wait_for_ids([2])


def test_settings_that_capture_needs_are_named_with_what_to_set(capture: MariadbHome) -> None:
    capture.execute(ITEMS, "SET GLOBAL binlog_row_image = 'MINIMAL'", "SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    try:
        refused = capture.run(f"DBLOGIN SOURCEDB {capture.login}", "ADD EXTRACT ext1, TRANLOG, BEGIN NOW", fails=True)
    finally:
        capture.execute("SET GLOBAL binlog_row_image = 'FULL'", "SET GLOBAL binlog_row_metadata = 'FULL'")
    assert "binlog_row_image is MINIMAL" in refused
    assert "SET GLOBAL binlog_row_image = FULL" in refused
    assert "SET GLOBAL binlog_row_metadata = FULL" in refused


@only_mariadb("it has fewer of these statements")
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO items VALUES (2, 'b')",
        "SET STATEMENT lock_wait_timeout = 10 FOR INSERT INTO items VALUES (2, 'b')",
        "ANALYZE UPDATE items SET name = 'b'",
        "ANALYZE FORMAT = JSON DELETE FROM items",
        "/*!50000 INSERT INTO items VALUES (2, 'b') */",
        "CREATE OR REPLACE TABLE others AS SELECT id FROM items",
    ],
)
def test_changes_that_are_logged_as_statements_are_refused(capture: MariadbHome, statement: str) -> None:
    """Regression: some forms of statements were ignored, so their changes were lost without a message."""
    capture.execute(ITEMS, "INSERT INTO items VALUES (1, 'a')")
    capture.add()
    capture.start()
    capture.execute("SET binlog_format = STATEMENT", statement)
    assert "GGS-00478" in capture.abended_report()


@only_mariadb("it has no such type")
def test_a_column_whose_type_the_log_does_not_name_is_refused_at_the_start(capture: MariadbHome) -> None:
    capture.execute("CREATE TABLE items (id INT PRIMARY KEY, name UUID)")
    capture.add()
    capture.start()
    report = capture.abended_report()
    assert "GGS-00481" in report
    assert f"column name of {capture.schema}.items has the type uuid" in report


@only_mariadb("it does not have DROP PARTITION IF EXISTS")
@only_mariadb("its settings cannot be changed after the first start")
def test_statements_find_their_table_in_any_case_if_the_server_has_lower_case_names(tmp_path: Path, port: int) -> None:
    """Regression: TRUNCATE and DDL of a table in another case were ignored, because its rows have the name in lower case."""
    with private_server(port, {"lower-case-table-names": "1"}) as server:
        execute(server.login(), "CREATE DATABASE shop")
        home = MariadbHome(tmp_path, f"{server.login()}shop", "DDL INCLUDE MAPPED\n")
        text = home.home.parameters("ext1").read_text()
        home.home.parameters("ext1").write_text(text.replace("TABLE shop.*", "TABLE shop.items"))
        try:
            home.execute(ITEMS)
            home.add()
            home.start()
            home.execute("INSERT INTO Items VALUES (1, 'a')", "TRUNCATE Shop.ITEMS", "ALTER TABLE `Items` ADD n INT")
            home.execute("INSERT INTO items VALUES (2, 'b', 3)")

            def shown() -> str:
                return home.run("STATS EXTRACT ext1, TOTAL")

            until("both rows are captured", lambda: re.search(r"Total inserts\s+2\.00", shown()))
            assert re.search(r"Total truncates\s+1\.00", shown())
            assert re.search(r"Mapped operations\s+1\.00", shown())
            assert shown().count("Extracting from") == 1
        finally:
            home.close()


def test_rows_of_partitions_that_a_statement_removes_are_reported(capture: MariadbHome) -> None:
    """Regression: the target kept the rows, without any report."""
    parts = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
    capture.execute(f"{ITEMS} {parts}", "CREATE TABLE other (id INT PRIMARY KEY, name VARCHAR(40))")
    capture.add()
    capture.start()
    capture.execute(
        "INSERT INTO items VALUES (1, 'a'), (11, 'b')",
        "ALTER TABLE items TRUNCATE PARTITION p0",
        "ALTER TABLE items EXCHANGE PARTITION p1 WITH TABLE other",
        "ALTER TABLE items COMMENT 'drop partition'",
        f"ALTER TABLE items DROP PARTITION {'' if IS_MYSQL else 'IF EXISTS'} p1",
        "INSERT INTO items VALUES (2, 'c')",
    )
    capture.wait_for_ids([1, 11, 2])
    told = [line for line in capture.home.report("EXT1").read_text().splitlines() if "GGS-00489" in line]
    items, other = f"{capture.schema}.items", f"{capture.schema}.other"
    assert ["TRUNCATE PARTITION" in told[0], "EXCHANGE PARTITION" in told[1], "DROP PARTITION" in told[2]] == [True] * 3
    assert [
        f"rows of {names}:" in line for names, line in zip((items, f"{items} and {other}", items), told, strict=True)
    ]


@only_mariadb("it has no versioned tables")
def test_system_versioned_tables_are_refused_at_the_start_and_when_they_become_so(capture: MariadbHome) -> None:
    """Regression: the former version of a row had the key of the row, and a deleted row stayed in the target."""
    capture.execute(ITEMS)
    capture.add()
    capture.start()
    capture.execute("INSERT INTO items VALUES (1, 'a')")
    capture.wait_for_ids([1])
    capture.execute("ALTER TABLE items ADD SYSTEM VERSIONING", "UPDATE items SET name = 'b'")
    text = f"table {capture.schema}.items is system-versioned"
    assert text in capture.abended_report()
    assert capture.ids() == [1]
    capture.start()
    assert text in capture.abended_report()
    added = f"ADD TRANDATA {capture.schema}.items"
    assert text in capture.run(f"DBLOGIN SOURCEDB {capture.login}", added, fails=True)


def test_changes_that_the_log_does_not_show_are_reported_once_for_each_table(capture: MariadbHome) -> None:
    """Rows that foreign keys change, rows changed without foreign keys, and rows without all columns."""
    child = "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES items (id) ON DELETE {})"
    capture.execute(
        ITEMS, f"CREATE TABLE cascades {child.format('CASCADE')}", f"CREATE TABLE restricts {child.format('RESTRICT')}"
    )
    capture.add()
    capture.start()
    capture.execute(
        "INSERT INTO items VALUES (1, 'a'), (2, 'b')",
        "DELETE FROM items WHERE id = 1",
        "SET foreign_key_checks = 0",
        "INSERT INTO items VALUES (3, 'c')",
        "DELETE FROM items WHERE id = 2",
        "DELETE FROM items WHERE id = 3",
        "SET binlog_row_image = MINIMAL",
        "UPDATE items SET name = 'z'",
        "INSERT INTO restricts (id) VALUES (4)",
        "INSERT INTO restricts (id, p) VALUES (5, 5)",
    )
    capture.wait_for_ids([1, 2, 1, 3, 2, 3, 4, 5])
    report = capture.home.report("EXT1").read_text()
    schema = capture.schema
    told = [line.partition("GGS-")[2] for line in report.splitlines() if "WARNING" in line and "GGS-0048" in line]
    if not IS_MYSQL:  # MySQL 9.6 and newer log what foreign keys change
        assert told[0].startswith("00486")
        assert f"Foreign keys of {schema}.cascades change" in told.pop(0)
    assert [line[:5] for line in told] == ["00487", "00488"]
    assert f"rows of {schema}.items:" in told[0]
    assert f"inserted into {schema}.restricts:" in told[1]
