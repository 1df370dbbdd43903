"""DDL of MariaDB: captured from its log and executed in another database, with other names, once, and without a loop."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mariadb_home import MariadbHome
from mariadb_servers import execute, numbers, only_mariadb, schema_of
from processes import until

from ggshell.demo.processes import end_processes
from ggshell.home.credential import CredentialStore

pytestmark = [pytest.mark.mariadb, pytest.mark.slow]


class _Pair:
    """EXT1 captures one database with its DDL, and REP1 applies it to another database of the same server."""

    def __init__(self, root: Path, login: str) -> None:
        self.source = MariadbHome(root, login, "DDL INCLUDE MAPPED\nDDLOPTIONS REPORT\n")
        self.schema = schema_of(login)
        self.copy = f"{self.schema}copy"
        self.target = f"{login.rpartition('/')[0]}/{self.copy}"
        execute(login, f"CREATE DATABASE {self.copy}")
        CredentialStore(self.source.home).add("copy", self.target, "")
        self.parameters()

    def parameters(self, *more: str) -> None:
        lines = ["REPLICAT rep1", "USERIDALIAS copy", "GETTRUNCATES", "DDLOPTIONS REPORT", *more]
        text = "\n".join([*lines, f"MAP {self.schema}.*, TARGET {self.copy}.*;", ""])
        self.source.home.parameters("rep1").write_text(text)

    def start(self, kind: str = "") -> None:
        """Add and start both groups. ``kind``: of the Replicat, an option of ADD REPLICAT."""
        self.source.add()
        checks = f"{self.copy}.checks"
        self.source.run(
            "DBLOGIN USERIDALIAS copy",
            f"ADD CHECKPOINTTABLE {checks}",
            f"ADD REPLICAT rep1{kind}, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE {checks}",
            "START ER *",
        )

    def start_back(self) -> None:
        """Start EXT2, which captures the copy, as in a set-up with two directions."""
        lines = ["EXTRACT ext2", "USERIDALIAS copy", "EXTTRAIL ./dirdat/eb", "DDL INCLUDE MAPPED", "DDLOPTIONS REPORT"]
        self.source.home.parameters("ext2").write_text("\n".join([*lines, f"TABLE {self.copy}.*;", ""]))
        self.source.run(
            "DBLOGIN USERIDALIAS copy",
            "ADD EXTRACT ext2, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/eb, EXTRACT ext2",
            "START EXTRACT ext2",
        )

    def report(self, group: str) -> str:
        return (self.source.home.root / "dirrpt" / f"{group}.rpt").read_text()

    def run(self, *statements: str) -> None:
        execute(self.source.login, *statements)

    def definitions(self, login: str) -> list[str]:
        """The definitions of all tables, views and routines, without the name of their database."""
        schema, found = schema_of(login), list[str]()
        tables = execute(login, "SHOW FULL TABLES")
        for name, kind in sorted(tables):
            if not name.startswith("checks"):
                what = {"VIEW": "VIEW", "SEQUENCE": "SEQUENCE"}.get(kind, "TABLE")
                found.append(str(execute(login, f"SHOW CREATE {what} `{name}`")[0][1]))
        for name, kind in execute(
            login,
            f"SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = '{schema}'",
        ):
            found.append(str(execute(login, f"SHOW CREATE {kind} `{name}`")[0][2]))
        return [re.sub(rf"`|\b{schema}\b`?\.", "", re.sub(r" AUTO_INCREMENT=\d+", "", text)) for text in found]

    def rows(self, login: str, tables: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        return [sorted(execute(login, f"SELECT * FROM `{table}`"), key=repr) for table in tables]

    def until_equal(self, *tables: str) -> None:
        """Wait until a last table has arrived, then compare everything."""
        self.run("CREATE TABLE last_of_all (id int PRIMARY KEY)")
        until("the last table has arrived", lambda: execute(self.target, "SHOW TABLES LIKE 'last_of_all'"), 60)
        assert self.definitions(self.target) == self.definitions(self.source.login)
        assert self.rows(self.target, tables) == self.rows(self.source.login, tables)
        self.run("DROP TABLE last_of_all")
        until("it is gone", lambda: not execute(self.target, "SHOW TABLES LIKE 'last_of_all'"), 60)


@pytest.fixture
def pair(tmp_path: Path, mariadb: str) -> Iterator[_Pair]:
    found = _Pair(tmp_path, mariadb)
    yield found
    end_processes(found.source.home.root)
    execute(mariadb, f"DROP DATABASE IF EXISTS {found.copy}")


STATEMENTS = (
    "CREATE TABLE items (id int AUTO_INCREMENT PRIMARY KEY, name varchar(20) CHARACTER SET latin1 DEFAULT 'é', n int)",
    "INSERT INTO items (name, n) VALUES ('a', 1), ('b', 2)",
    "ALTER TABLE items ADD price decimal(8,2) NOT NULL DEFAULT 7.5, ADD INDEX by_n (n)",
    "INSERT INTO items (name, n, price) VALUES ('c', 3, 1)",
    "SET sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'",
    'CREATE TABLE "order lines" ("item id" int, "line" int, PRIMARY KEY ("item id", "line"),'
    ' FOREIGN KEY ("item id") REFERENCES items (id) ON DELETE CASCADE)',
    'INSERT INTO "order lines" VALUES (1, 1), (2, 1)',
    "SET sql_mode = DEFAULT",
    "CREATE UNIQUE INDEX by_name ON items (name)",
    "ALTER TABLE items CHANGE n amount bigint, DROP INDEX by_n",
    "UPDATE items SET amount = amount * 10000000000",
    "CREATE TABLE copies AS SELECT id, name FROM items",
    "ALTER TABLE copies ADD PRIMARY KEY (id)",
    "CREATE TABLE likes LIKE items",
    "RENAME TABLE likes TO liked",
    "INSERT INTO liked VALUES (9, 'x', 1, 2)",
    "CREATE VIEW cheap AS SELECT id, price FROM items WHERE price < 5",
    "CREATE TRIGGER stamp BEFORE INSERT ON liked FOR EACH ROW SET NEW.amount = NEW.amount + 1",
    "INSERT INTO liked VALUES (10, 'y', 1, 2)",
    "CREATE PROCEDURE twice (x int) SELECT x * 2 AS '; DROP'",
    "CREATE TABLE gone (id int PRIMARY KEY)",
    "INSERT INTO gone VALUES (1)",
    "DROP TABLE gone",
    "CREATE TEMPORARY TABLE hidden (id int)",
    "DROP TEMPORARY TABLE hidden",
    "TRUNCATE TABLE copies",
    "SET foreign_key_checks = 0",
    "CREATE TABLE early (id int PRIMARY KEY, later int, FOREIGN KEY (later) REFERENCES late (id))",
    "SET foreign_key_checks = 1",
    "CREATE TABLE late (id int PRIMARY KEY)",
    "OPTIMIZE TABLE items",
)
TABLES = ("items", "order lines", "copies", "liked", "early", "late")


@pytest.mark.parametrize("kind", ["", ", PARALLEL", ", COORDINATED"])
def test_statements_are_executed_between_the_rows_under_other_names(pair: _Pair, kind: str) -> None:
    pair.start(kind)
    pair.run(*STATEMENTS)
    pair.until_equal(*TABLES)
    assert "Mapped operations" in pair.source.run("STATS EXTRACT ext1, TOTAL")
    assert "GGS-00579  CREATE TRIGGER of" in pair.report("REP1")
    assert "GGS-00572" not in pair.report("REP1")  # the record of a truncation has no columns
    assert not execute(pair.target, "SHOW TRIGGERS")


def test_an_update_leaves_a_column_that_the_server_renews_as_the_source_has_it(pair: _Pair) -> None:
    """Regression: the trail has changed columns only, and the target set the others to the present time."""
    pair.start()
    pair.run(
        "CREATE TABLE stamped (id int PRIMARY KEY, n int, seen timestamp(6) NOT NULL DEFAULT current_timestamp(6)"
        " ON UPDATE current_timestamp(6))",
        f"INSERT INTO stamped SELECT seq, seq, '2020-01-01' FROM {numbers(1, 20)}",
    )
    pair.until_equal("stamped")
    pair.run(
        "UPDATE stamped SET n = n + 1, seen = seen WHERE id < 3",
        "UPDATE stamped SET n = n + 1, seen = seen WHERE id > 10",
        "UPDATE stamped SET id = 100, seen = seen WHERE id = 5",
        "UPDATE stamped SET n = 7 WHERE id = 6",
    )
    pair.until_equal("stamped")


SESSIONS = (
    "CREATE TABLE times (id int PRIMARY KEY, d datetime)",
    "INSERT INTO times VALUES (1, '2020-01-01 10:00:00')",
    "SET timestamp = 1600000000.25, time_zone = '+05:00'",
    "ALTER TABLE times ADD created datetime(6) NOT NULL DEFAULT current_timestamp(6)",
    "ALTER TABLE times ADD ts timestamp NOT NULL DEFAULT '2020-01-01 00:00:00'",
    "ALTER TABLE times MODIFY d timestamp NULL",
    "SET explicit_defaults_for_timestamp = 0, timestamp = DEFAULT, time_zone = DEFAULT",
    "CREATE TABLE old_style (id int PRIMARY KEY, ts timestamp)",
    "SET explicit_defaults_for_timestamp = 1",
    "CREATE TABLE new_style (id int PRIMARY KEY, ts timestamp)",
    "INSERT INTO times VALUES (2, '2020-01-01 10:00:00', '2020-01-01', '2020-01-01')",
)


def test_statements_are_executed_with_the_time_of_their_session(pair: _Pair) -> None:
    """Rows that get a default, and the defaults themselves, depend on the clock and the time zone of the session."""
    pair.start()
    pair.run(*SESSIONS)
    pair.until_equal("times")
    assert "Delivery for MySQL" in pair.report("REP1")
    assert str(execute(pair.target, "SELECT created FROM times WHERE id = 1")[0][0]) == "2020-09-13 17:26:40.250000"


@only_mariadb("it has no such statement")
def test_a_statement_with_settings_of_its_own_is_executed(pair: _Pair) -> None:
    """Regression: TRUNCATE and DDL after SET STATEMENT … FOR were ignored, so the target kept its rows and columns."""
    pair.start()
    pair.run(
        "CREATE TABLE items (id int PRIMARY KEY, name varchar(20))",
        "INSERT INTO items VALUES (1, 'a')",
        "SET STATEMENT lock_wait_timeout = 10, sql_mode = CONCAT('', SUBSTRING('A' FROM 2 FOR 1)) FOR TRUNCATE TABLE items",
        "SET STATEMENT lock_wait_timeout = 10 FOR ALTER TABLE items ADD price int",
        "INSERT INTO items VALUES (2, 'b', 3)",
    )
    pair.until_equal("items")


@only_mariadb("it logs ALTER TABLE once")
def test_an_alter_table_that_is_logged_in_two_phases_is_executed_once_and_only_if_it_succeeds(pair: _Pair) -> None:
    """Regression: it was captured when it began and when it ended, also if it had failed."""
    pair.start()
    pair.run("CREATE TABLE items (id int PRIMARY KEY, n int)", "INSERT INTO items VALUES (1, 5), (2, 5)")
    pair.run("SET binlog_alter_two_phase = ON", "ALTER TABLE items ADD price int DEFAULT 1, ALGORITHM = COPY")
    with pytest.raises(Exception, match="Duplicate entry"):
        pair.run("SET binlog_alter_two_phase = ON", "ALTER TABLE items ADD UNIQUE KEY by_n (n)")
    pair.run("INSERT INTO items VALUES (3, 5, 2)")
    pair.until_equal("items")
    executed = pair.source.run("STATS EXTRACT ext1, TOTAL")
    assert re.search(r"Mapped operations\s+4\.00", executed), executed  # and those of until_equal


def test_a_table_is_truncated_after_its_columns_have_changed(pair: _Pair) -> None:
    pair.start()
    pair.run(
        "CREATE TABLE changed (id int PRIMARY KEY, x int, y int)",
        "INSERT INTO changed VALUES (1, 1, 1)",
        "ALTER TABLE changed RENAME COLUMN x TO z, DROP y",
        "INSERT INTO changed VALUES (2, 2)",
        "TRUNCATE TABLE changed",
        "INSERT INTO changed VALUES (3, 3)",
    )
    pair.until_equal("changed")


def test_a_truncated_table_keeps_the_rows_that_refer_to_it(pair: _Pair) -> None:
    """TRUNCATE deletes no rows of other tables, whatever their foreign keys say."""
    pair.start()
    pair.run(
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE)",
        "INSERT INTO parents VALUES (1), (2)",
        "INSERT INTO children VALUES (1, 1), (2, 2)",
        "SET foreign_key_checks = 0",
        "TRUNCATE TABLE parents",
        "SET foreign_key_checks = 1",
        "INSERT INTO parents VALUES (1)",
    )
    pair.until_equal("parents", "children")
    assert len(pair.rows(pair.target, ["children"])[0]) == 2


def test_a_statement_on_several_tables_concerns_the_captured_ones_only(pair: _Pair) -> None:
    """Tables of other databases stay as they are in the target."""
    other = f"{pair.schema}other"
    pair.start()
    pair.run(
        f"CREATE DATABASE {other}",
        *(f"CREATE TABLE {each} (id int PRIMARY KEY)" for each in ("a", "b", "c", f"{other}.x", f"{other}.y")),
        f"DROP TABLE IF EXISTS {other}.x, a, b",
        f"RENAME TABLE {other}.y TO {other}.z, c TO d",
        f"CREATE TABLE {other}.x (id int PRIMARY KEY)",
    )
    try:
        pair.until_equal("d")
        assert sorted(execute(pair.target, f"SHOW TABLES IN {other}")) == [("x",), ("z",)]
        captured = re.findall(r"is captured: (DROP.*|RENAME.*)", pair.report("EXT1"))
        assert captured[:2] == ["DROP TABLE IF EXISTS `a`, `b` /* generated by server */", "RENAME TABLE c TO d"]
    finally:
        pair.run(f"DROP DATABASE {other}")


@only_mariadb("it has no compressed columns and sequences")
def test_rows_of_every_kind_of_table_are_equal_in_the_target(pair: _Pair) -> None:
    """Regressions: compressed text in the target's own character set, and many deletes by a key with rounded values."""
    pair.start()
    pair.run(
        "CREATE TABLE compressed_ones (id int PRIMARY KEY, a varchar(100) COMPRESSED, b text COMPRESSED, c blob COMPRESSED)"
        " CHARACTER SET utf8mb4",
        "INSERT INTO compressed_ones VALUES (1, 'é', REPEAT('ü€', 900), REPEAT(X'ff00', 900)), (2, '', NULL, 'y')",
        "CREATE TABLE rounded (k float PRIMARY KEY, n int)",
        f"INSERT INTO rounded SELECT seq / 10, seq FROM {numbers(1, 100)}",
        "UPDATE rounded SET n = n + 1 WHERE n > 50",
        "DELETE FROM rounded WHERE n < 40",
    )
    pair.until_equal("compressed_ones", "rounded")


def test_the_way_back_does_not_capture_what_the_replicat_executes(pair: _Pair) -> None:
    pair.start()
    pair.start_back()
    pair.run(*STATEMENTS)
    pair.until_equal(*TABLES)
    execute(pair.target, "CREATE TABLE own (id int PRIMARY KEY)", "DROP TABLE own")
    until("the own statements are captured", lambda: "is captured: DROP TABLE `own`" in pair.report("EXT2"), 60)
    captured = re.findall(r"is captured: (.*)", pair.report("EXT2"))
    assert captured == ["CREATE TABLE own (id int PRIMARY KEY)", "DROP TABLE `own` /* generated by server */"]


def test_a_killed_replicat_executes_no_statement_twice(pair: _Pair) -> None:
    pair.start()
    for number in range(6):
        pair.run(
            f"CREATE TABLE t{number} (id int PRIMARY KEY, a int)",
            f"INSERT INTO t{number} VALUES (1, 1)",
            f"ALTER TABLE t{number} ADD b int DEFAULT {number}, DROP a",
            f"INSERT INTO t{number} VALUES (2, 2)",
            f"CREATE TABLE c{number} (PRIMARY KEY (id)) AS SELECT * FROM t{number}",
            f"RENAME TABLE t{number} TO r{number}",
        )
        pair.source.run("KILL REPLICAT rep1", "START REPLICAT rep1")
    pair.until_equal(*(f"{letter}{number}" for letter in "rc" for number in range(6)))


@pytest.mark.parametrize("more", ["", " AS SELECT 1 AS id"], ids=["alone", "with rows"])
def test_a_refused_statement_stops_the_replicat_until_it_can_be_executed(pair: _Pair, more: str) -> None:
    execute(pair.target, "CREATE TABLE items (other int)")
    pair.start()
    pair.run(f"CREATE TABLE items (id int PRIMARY KEY){more}", "INSERT INTO items VALUES (2)")
    until("abended", lambda: "ABENDED" in pair.source.run("STATUS REPLICAT rep1"), 60)
    assert "OGG-00519" in pair.source.run("INFO REPLICAT rep1")
    execute(pair.target, "DROP TABLE items")
    pair.source.run("START REPLICAT rep1")
    pair.until_equal("items")
