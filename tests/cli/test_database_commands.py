"""Statements that need a database, on a real one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from cli.shell import Answer, Shell, replicat
from psycopg.conninfo import conninfo_to_dict

from ggshell.connectors.postgres.checkpoint_sql import GROUP_LOCK
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, GroupOptions, ReplicatKind
from ggshell.home.identity import keys_of
from ggshell.pipeline.apply.checkpoint_table import group_key
from ggshell.types import Csn, format_lsn

TABLES = """
CREATE SCHEMA shop;
CREATE TABLE shop.keyed (id int PRIMARY KEY, t text);
CREATE TABLE shop.keyless (a int, b int);
CREATE TABLE shop."Mixed Case" (id int PRIMARY KEY);
"""


class LoggedInShell:
    """A shell that starts each batch with a login."""

    def __init__(self, shell: Shell, dsn: str) -> None:
        self.shell = shell
        self.dsn = dsn
        facts = conninfo_to_dict(dsn)
        self.login = f"DBLOGIN USERID '{dsn}'"
        self.database = str(facts["dbname"])
        self.user = str(facts["user"])

    def batch(self, *statements: str) -> Answer:
        code, out, err = self.shell.batch(self.login, *statements)
        marker = "Successfully logged into database.\n"
        return Answer(code, out.partition(marker)[2], err)

    def group(self, name: str) -> Checkpoint:
        return checkpoints.load(self.shell.home.checkpoint(name, GroupKind.EXTRACT))


@pytest.fixture
def logged_in(shell: Shell, north: str) -> Iterator[LoggedInShell]:
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute(TABLES)
    yield LoggedInShell(shell, north)


def test_dblogin_is_confirmed_and_shown_in_the_prompt(logged_in: LoggedInShell) -> None:
    out = logged_in.shell.session(f"{logged_in.login}\nexit\n")
    assert "INFO    OGG-03036  Database character set identified as UTF-8." in out
    assert "INFO    OGG-03037  Session character set identified as UTF-8.\nSuccessfully logged into database.\n" in out
    assert f" as {logged_in.user}@{logged_in.database}) 2> " in out


def test_dblogin_by_alias(logged_in: LoggedInShell) -> None:
    add = f"ALTER CREDENTIALSTORE ADD USER '{logged_in.dsn}' PASSWORD unused ALIAS north"
    answer = logged_in.shell.batch(add, "DBLOGIN USERIDALIAS north", "VERSIONS")
    assert answer.code == 0
    assert "Database:   PostgreSQL " in answer.out


def test_a_refused_login_keeps_the_previous_one(logged_in: LoggedInShell) -> None:
    bad = "DBLOGIN USERID nobody@127.0.0.1:1/none PASSWORD geheim"
    out = logged_in.shell.session(f"{logged_in.login}\n{bad}\nexit\n")
    assert "ERROR: " in out
    assert f"{logged_in.user}@{logged_in.database}) 3> " in out


def test_tables_are_listed_by_wildcard(logged_in: LoggedInShell) -> None:
    code, out, err = logged_in.batch("LIST TABLES shop.key*")
    assert (code, err) == (0, "")
    assert out == "\nshop.keyed\nshop.keyless\n\nFound 2 tables matching list criteria.\n"
    assert '\nshop."Mixed Case"\n' in logged_in.batch("LIST TABLES shop.*").out
    assert "Found 0 tables matching list criteria." in logged_in.batch("LIST TABLES none.*").out
    assert "specify schema and table" in logged_in.batch("LIST TABLES keyed").err
    assert "use DBLOGIN" in logged_in.shell.batch("LIST TABLES shop.*").err


def test_trandata_by_wildcard(logged_in: LoggedInShell) -> None:
    code, out, err = logged_in.batch("INFO TRANDATA shop.keyed", "ADD TRANDATA shop.*", "INFO TRANDATA shop.*")
    assert (code, err) == (0, "")
    assert "Logging of supplemental log data is disabled for table shop.keyed." in out
    line = "Logging of supplemental log data is enabled for table shop.{} with REPLICA IDENTITY set to {}."
    assert f"OGG-15132  {line.format('keyed', 'DEFAULT')}" in out
    assert "OGG-15133  Key columns logged for table shop.keyed: id." in out
    assert f"OGG-15132  {line.format('keyless', 'FULL')}" in out
    assert "REPLICA IDENTITY of table shop.keyless was DEFAULT before" in out
    assert f"\n{line.format('keyed', 'DEFAULT')}\n" in out
    assert 'is enabled for table shop."Mixed Case" with REPLICA IDENTITY' in out
    assert "Columns supplementally logged for table shop.keyed: id." in out
    assert logged_in.shell.home.event_log.read_text().count("OGG-15132") == 3
    code, out, _ = logged_in.batch("DELETE TRANDATA shop.keyed", "INFO TRANDATA shop.keyed")
    assert "disabled for table shop.keyed." in out.splitlines()[-1]


def test_an_unknown_table_is_reported(logged_in: LoggedInShell) -> None:
    code, _, err = logged_in.batch("ADD TRANDATA shop.nowhere")
    assert code == 1
    assert "shop.nowhere" in err


def test_begin_now_is_the_current_end_of_the_log(logged_in: LoggedInShell) -> None:
    with psycopg.connect(logged_in.dsn) as connection:
        before = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    code, out, err = logged_in.batch(
        "ADD TRANDATA shop.*", "REGISTER EXTRACT ext1", "ADD EXTRACT ext1, TRANLOG, BEGIN NOW"
    )
    assert (code, err) == (0, "")
    found = logged_in.group("EXT1")
    assert before is not None
    assert Csn.parse(found.begin_csn).value >= int(before[0])
    assert f"Capture begins at LSN {found.begin_csn}." in out
    assert found.options.slot == "ggs_ext1"
    assert found.begin_time > 0
    code, out, _ = logged_in.batch("DELETE EXTRACT ext1", "UNREGISTER EXTRACT ext1")
    assert code == 0
    assert "still retains the server's log: run UNREGISTER EXTRACT EXT1, unless you add the group again." in out


def test_register_after_add_moves_the_begin_to_the_slot(logged_in: LoggedInShell) -> None:
    logged_in.batch("ADD EXTRACT ext1, TRANLOG, BEGIN NOW")
    earlier = logged_in.group("EXT1").begin_csn
    with psycopg.connect(logged_in.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO shop.keyed VALUES (1, 'x')")
    code, out, _ = logged_in.batch("REGISTER EXTRACT ext1")
    assert code == 0
    assert Csn.parse(logged_in.group("EXT1").begin_csn) > Csn.parse(earlier)
    assert "OGG-02003" in out


def test_a_begin_in_the_past_is_the_begin_of_the_slot(logged_in: LoggedInShell) -> None:
    code, _, err = logged_in.batch("ADD EXTRACT ext1, TRANLOG, BEGIN 2020-01-01 00:00:00")
    assert (code, "not registered" in err) == (1, True)
    logged_in.batch("REGISTER EXTRACT ext1")
    assert logged_in.batch("ADD EXTRACT ext1, TRANLOG, BEGIN 2020-01-01 00:00:00")[0] == 0
    with psycopg.connect(logged_in.dsn) as connection:
        checkpoint_rows = connection.execute("SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots").fetchall()
    assert Csn.parse(logged_in.group("EXT1").begin_csn).value == int(checkpoint_rows[0][0])


def test_an_explicit_lsn(logged_in: LoggedInShell) -> None:
    assert logged_in.batch("ADD EXTRACT ext1, TRANLOG, LSN 0/50056B8")[0] == 0
    assert format_lsn(Csn.parse(logged_in.group("EXT1").begin_csn).value) == "0/50056B8"


def test_eof_begins_at_the_current_end_of_the_log(logged_in: LoggedInShell) -> None:
    logged_in.batch("REGISTER EXTRACT ext1")
    assert logged_in.batch("ADD EXTRACT ext1, TRANLOG, EOF, THREADS 2")[0] == 0
    added = logged_in.group("EXT1")
    assert added.begin == "NOW"
    with psycopg.connect(logged_in.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO shop.keyed VALUES (1, 'x')")
    assert logged_in.batch("ALTER EXTRACT ext1, EOF")[0] == 0
    assert Csn.parse(logged_in.group("EXT1").begin_csn) > Csn.parse(added.begin_csn)
    assert "cannot be used with" in logged_in.batch("ALTER EXTRACT ext1, EOF, LSN 0/1").err


def test_registering_twice_and_unregistering_an_unknown_group_are_refused(logged_in: LoggedInShell) -> None:
    logged_in.batch("REGISTER EXTRACT ext1")
    code, _, err = logged_in.batch("REGISTER EXTRACT ext1")
    assert (code, "already registered" in err) == (1, True)
    code, _, err = logged_in.batch("UNREGISTER EXTRACT other")
    assert (code, "is not registered" in err) == (1, True)


def test_the_extract_of_another_database_keeps_its_slot(logged_in: LoggedInShell, north_other: str) -> None:
    logged_in.batch("REGISTER EXTRACT ext1", "ADD EXTRACT ext1, TRANLOG, BEGIN NOW")
    other = LoggedInShell(logged_in.shell, north_other)
    wanted = f"replication slot ggs_ext1 belongs to database {logged_in.database}, not to database {other.database}"
    for statements in (
        ["REGISTER EXTRACT ext1"],
        ["UNREGISTER EXTRACT ext1"],
        ["DELETE EXTRACT ext1", "ADD EXTRACT ext1, TRANLOG, BEGIN 2020-01-01 00:00:00"],
    ):
        code, out, err = other.batch(*statements)
        assert (code, wanted in err, "UNREGISTER EXTRACT" in out + err) == (1, True, False)
    assert logged_in.batch("UNREGISTER EXTRACT ext1")[0] == 0


def test_detail_shows_the_slot_of_a_stopped_extract_from_the_database(logged_in: LoggedInShell) -> None:
    code, out, _ = logged_in.batch("REGISTER EXTRACT ext1", "ADD EXTRACT ext1, TRANLOG", "INFO EXTRACT ext1, DETAIL")
    assert code == 0
    lines = r"Replication Slot     ggs_ext1 is inactive in database \w+\nSlot Restart LSN     [0-9A-F]+/[0-9A-F]+\n"
    assert re.search(lines + r"Slot Flush LSN       [0-9A-F/]+\nCurrent Log Position [0-9A-F/]+\n", out)
    assert "\n\nWAL held back        " in out


def test_the_script_of_a_home_creates_a_checkpoint_table(logged_in: LoggedInShell) -> None:
    assert logged_in.batch("CREATE SUBDIRS")[0] == 0
    script = next(logged_in.shell.home.root.glob("dirsql/chkpt_postgresql_create.sql")).read_text()
    with psycopg.connect(logged_in.dsn, autocommit=True) as connection:
        connection.execute(script)
    code, out, _ = logged_in.batch("INFO CHECKPOINTTABLE public.ggs_checkpoint")
    assert (code, "Checkpoint table public.ggs_checkpoint exists." in out) == (0, True)


def test_checkpoint_tables(logged_in: LoggedInShell) -> None:
    code, out, _ = logged_in.batch("ADD CHECKPOINTTABLE shop.ckpt", "INFO CHECKPOINTTABLE shop.ckpt")
    assert code == 0
    assert "Successfully created checkpoint table shop.ckpt." in out
    assert re.search(r"\nCheckpoint table shop\.ckpt created \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\n", out)
    assert "already exists" in logged_in.batch("ADD CHECKPOINTTABLE shop.ckpt")[2]
    assert "Successfully deleted checkpoint table shop.ckpt." in logged_in.batch("DELETE CHECKPOINTTABLE shop.ckpt")[1]
    for statement in ("INFO CHECKPOINTTABLE", "DELETE CHECKPOINTTABLE", "UPGRADE CHECKPOINTTABLE"):
        code, _, err = logged_in.batch(f"{statement} nope.ckpt")
        assert (code, "ADD CHECKPOINTTABLE" in err, "Hint: check its schema, spelling and case" in err) == (
            1,
            False,
            True,
        )


def test_deleting_a_replicat_removes_its_row(logged_in: LoggedInShell) -> None:
    logged_in.batch("ADD CHECKPOINTTABLE shop.ckpt")
    logged_in.shell.save(replicat("REP1", started=1, options=GroupOptions(checkpoint_table="shop.ckpt", group_key=1)))
    with psycopg.connect(logged_in.dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO shop.ckpt (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
            " VALUES ('REP1', 1, 0, now(), now(), '/'), ('OTHER', 1, 0, now(), now(), '/')"
        )
    assert logged_in.batch("DELETE CHECKPOINTTABLE shop.ckpt")[0] == 1
    assert logged_in.batch("DELETE REPLICAT rep1")[0] == 0
    with psycopg.connect(logged_in.dsn) as connection:
        assert connection.execute("SELECT group_name FROM shop.ckpt").fetchall() == [("OTHER",)]
    assert "1 rows of REPLICAT OTHER" in logged_in.batch("CLEANUP CHECKPOINTTABLE shop.ckpt, REPLICAT other")[1]


@pytest.fixture
def with_checkpoints(logged_in: LoggedInShell) -> LoggedInShell:
    """A checkpoint table with the rows of a stopped coordinated Replicat and of one of its threads."""
    logged_in.batch("ADD CHECKPOINTTABLE shop.ckpt")
    options = GroupOptions(checkpoint_table="shop.ckpt", replicat_kind=ReplicatKind.COORDINATED)
    logged_in.shell.save(replicat("REP1", started=1, options=options))
    home = keys_of(logged_in.shell.home.root)
    with psycopg.connect(logged_in.dsn, autocommit=True) as connection:
        for group in ("REP1", "REP1001"):
            connection.execute(
                "INSERT INTO shop.ckpt (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
                " VALUES (%s, %s, 0, now(), now(), '/')",
                [group, group_key(group, home)],
            )
    return logged_in


def checkpoint_rows(logged_in: LoggedInShell) -> int:
    with psycopg.connect(logged_in.dsn) as connection:
        found = connection.execute("SELECT count(*) FROM shop.ckpt").fetchone()
    return found[0] if found else 0


def test_the_checkpoint_table_of_a_stopped_group_is_deleted_only_with_force(with_checkpoints: LoggedInShell) -> None:
    code, _, err = with_checkpoints.batch("DELETE CHECKPOINTTABLE shop.ckpt")
    assert (code, checkpoint_rows(with_checkpoints)) == (1, 2)
    assert "REPLICAT REP1 keeps its position" in err
    assert with_checkpoints.batch("DELETE CHECKPOINTTABLE shop.ckpt !")[0] == 0


def test_the_checkpoint_table_of_a_running_replicat_is_never_deleted(with_checkpoints: LoggedInShell) -> None:
    """Regression: ``!`` dropped it, and the Replicats restarted at an older position."""
    with psycopg.connect(with_checkpoints.dsn) as applying:
        key = group_key("REP1", keys_of(with_checkpoints.shell.home.root))
        applying.execute("SELECT pg_advisory_lock(%s)", [GROUP_LOCK | key])
        for statement in ("DELETE CHECKPOINTTABLE shop.ckpt !", "CLEANUP CHECKPOINTTABLE shop.ckpt, REPLICAT rep1"):
            code, _, err = with_checkpoints.batch(statement)
            assert (code, checkpoint_rows(with_checkpoints)) == (1, 2)
            assert "STOP REPLICAT REP1 first" in err


def test_cleanup_checkpointtable_keeps_the_rows_of_existing_groups(with_checkpoints: LoggedInShell) -> None:
    """The threads of a coordinated Replicat have rows of their own; without them transactions would be repeated."""
    assert "Nothing to remove." in with_checkpoints.batch("CLEANUP CHECKPOINTTABLE shop.ckpt")[1]
    assert with_checkpoints.batch("CLEANUP CHECKPOINTTABLE shop.ckpt, REPLICAT rep1")[0] == 1
    assert checkpoint_rows(with_checkpoints) == 2


def test_cleanup_checkpointtable_removes_the_rows_of_deleted_groups(logged_in: LoggedInShell) -> None:
    logged_in.batch("ADD CHECKPOINTTABLE shop.ckpt")
    home = keys_of(logged_in.shell.home.root)
    with psycopg.connect(logged_in.dsn, autocommit=True) as connection:
        for group, key in (("GONE", group_key("GONE", home)), ("REP1", group_key("REP1", home)), ("GONE", 1)):
            connection.execute(
                "INSERT INTO shop.ckpt (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
                " VALUES (%s, %s, 0, now(), now(), '/')",
                [group, key],
            )
    logged_in.shell.save(replicat("REP1", started=1, options=GroupOptions(checkpoint_table="shop.ckpt")))
    assert "REPLICAT GONE removed from shop.ckpt." in logged_in.batch("CLEANUP CHECKPOINTTABLE shop.ckpt")[1]
    with psycopg.connect(logged_in.dsn) as connection:
        left = connection.execute("SELECT group_name, group_key = 1 FROM shop.ckpt ORDER BY 1").fetchall()
    assert left == [("GONE", True), ("REP1", False)]
    assert "Nothing to remove." in logged_in.batch("CLEANUP CHECKPOINTTABLE shop.ckpt")[1]
