"""Statements that need a database, on a real one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from cli.ground import Shell, replicat
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


class Talk:
    """A shell whose every batch begins with a login."""

    def __init__(self, shell: Shell, dsn: str) -> None:
        self.shell = shell
        self.dsn = dsn
        facts = conninfo_to_dict(dsn)
        self.login = f"DBLOGIN USERID '{dsn}'"
        self.database = str(facts["dbname"])
        self.user = str(facts["user"])

    def batch(self, *statements: str) -> tuple[int, str, str]:
        code, out, err = self.shell.batch(self.login, *statements)
        marker = "Successfully logged into database.\n"
        return code, out.partition(marker)[2], err

    def group(self, name: str) -> Checkpoint:
        return checkpoints.load(self.shell.home.checkpoint(name, GroupKind.EXTRACT))


@pytest.fixture
def talk(shell: Shell, north: str) -> Iterator[Talk]:
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute(TABLES)
    yield Talk(shell, north)


def test_dblogin_says_so_and_shows_in_the_prompt(talk: Talk) -> None:
    out = talk.shell.session(f"{talk.login}\nexit\n")
    assert "INFO    OGG-03036  Database character set identified as UTF-8." in out
    assert "INFO    OGG-03037  Session character set identified as UTF-8.\nSuccessfully logged into database.\n" in out
    assert f" as {talk.user}@{talk.database}) 2> " in out


def test_dblogin_by_alias(talk: Talk) -> None:
    add = f"ALTER CREDENTIALSTORE ADD USER '{talk.dsn}' PASSWORD unused ALIAS north"
    answer = talk.shell.batch(add, "DBLOGIN USERIDALIAS north", "VERSIONS")
    assert answer.code == 0
    assert "Database:   PostgreSQL " in answer.out


def test_a_refused_login_leaves_the_old_one(talk: Talk) -> None:
    bad = "DBLOGIN USERID nobody@127.0.0.1:1/none PASSWORD geheim"
    out = talk.shell.session(f"{talk.login}\n{bad}\nexit\n")
    assert "ERROR: " in out
    assert f"{talk.user}@{talk.database}) 3> " in out


def test_trandata_by_wildcard(talk: Talk) -> None:
    code, out, err = talk.batch("INFO TRANDATA shop.keyed", "ADD TRANDATA shop.*", "INFO TRANDATA shop.*")
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
    assert talk.shell.home.event_log.read_text().count("OGG-15132") == 3
    code, out, _ = talk.batch("DELETE TRANDATA shop.keyed", "INFO TRANDATA shop.keyed")
    assert "disabled for table shop.keyed." in out.splitlines()[-1]


def test_an_unknown_table_is_named(talk: Talk) -> None:
    code, _, err = talk.batch("ADD TRANDATA shop.nowhere")
    assert code == 1
    assert "shop.nowhere" in err


def test_an_extract_begins_at_the_log_s_present_end(talk: Talk) -> None:
    with psycopg.connect(talk.dsn) as connection:
        before = connection.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
    code, out, err = talk.batch("ADD TRANDATA shop.*", "REGISTER EXTRACT ext1", "ADD EXTRACT ext1, TRANLOG, BEGIN NOW")
    assert (code, err) == (0, "")
    found = talk.group("EXT1")
    assert before is not None
    assert Csn.parse(found.begin_csn).value >= int(before[0])
    assert f"Capture begins at LSN {found.begin_csn}." in out
    assert found.options.slot == "ggs_ext1"
    assert found.begin_time > 0
    code, out, _ = talk.batch("DELETE EXTRACT ext1", "UNREGISTER EXTRACT ext1")
    assert code == 0
    assert "still retains the server's log: run UNREGISTER EXTRACT EXT1, unless you add the group again." in out


def test_register_behind_add_moves_the_begin_to_the_slot(talk: Talk) -> None:
    talk.batch("ADD EXTRACT ext1, TRANLOG, BEGIN NOW")
    earlier = talk.group("EXT1").begin_csn
    with psycopg.connect(talk.dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO shop.keyed VALUES (1, 'x')")
    code, out, _ = talk.batch("REGISTER EXTRACT ext1")
    assert code == 0
    assert Csn.parse(talk.group("EXT1").begin_csn) > Csn.parse(earlier)
    assert "OGG-02003" in out


def test_a_begin_in_the_past_is_the_slot_s_begin(talk: Talk) -> None:
    code, _, err = talk.batch("ADD EXTRACT ext1, TRANLOG, BEGIN 2020-01-01 00:00:00")
    assert (code, "not registered" in err) == (1, True)
    talk.batch("REGISTER EXTRACT ext1")
    assert talk.batch("ADD EXTRACT ext1, TRANLOG, BEGIN 2020-01-01 00:00:00")[0] == 0
    with psycopg.connect(talk.dsn) as connection:
        rows = connection.execute("SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots").fetchall()
    assert Csn.parse(talk.group("EXT1").begin_csn).value == int(rows[0][0])


def test_an_explicit_lsn(talk: Talk) -> None:
    assert talk.batch("ADD EXTRACT ext1, TRANLOG, LSN 0/50056B8")[0] == 0
    assert format_lsn(Csn.parse(talk.group("EXT1").begin_csn).value) == "0/50056B8"


def test_registering_twice_and_nothing(talk: Talk) -> None:
    talk.batch("REGISTER EXTRACT ext1")
    code, _, err = talk.batch("REGISTER EXTRACT ext1")
    assert (code, "already registered" in err) == (1, True)
    code, _, err = talk.batch("UNREGISTER EXTRACT other")
    assert (code, "is not registered" in err) == (1, True)


def test_the_slot_of_a_stopped_extract_is_asked_of_the_database(talk: Talk) -> None:
    code, out, _ = talk.batch("REGISTER EXTRACT ext1", "ADD EXTRACT ext1, TRANLOG", "INFO EXTRACT ext1, DETAIL")
    assert code == 0
    lines = r"Replication Slot     ggs_ext1 is inactive in database \w+\nSlot Restart LSN     [0-9A-F]+/[0-9A-F]+\n"
    assert re.search(lines + r"Slot Flush LSN       [0-9A-F/]+\nCurrent Log Position [0-9A-F/]+\n", out)
    assert "\n\nWAL held back        " in out


def test_the_script_of_a_home_makes_a_checkpoint_table(talk: Talk) -> None:
    assert talk.batch("CREATE SUBDIRS")[0] == 0
    script = next(talk.shell.home.root.glob("dirsql/chkpt_postgresql_create.sql")).read_text()
    with psycopg.connect(talk.dsn, autocommit=True) as connection:
        connection.execute(script)
    code, out, _ = talk.batch("INFO CHECKPOINTTABLE public.ggs_checkpoint")
    assert (code, "Checkpoint table public.ggs_checkpoint exists." in out) == (0, True)


def test_checkpoint_tables(talk: Talk) -> None:
    code, out, _ = talk.batch("ADD CHECKPOINTTABLE shop.ckpt", "INFO CHECKPOINTTABLE shop.ckpt")
    assert code == 0
    assert "Successfully created checkpoint table shop.ckpt." in out
    assert re.search(r"\nCheckpoint table shop\.ckpt created \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\n", out)
    assert "already exists" in talk.batch("ADD CHECKPOINTTABLE shop.ckpt")[2]
    assert "Successfully deleted checkpoint table shop.ckpt." in talk.batch("DELETE CHECKPOINTTABLE shop.ckpt")[1]
    assert talk.batch("INFO CHECKPOINTTABLE shop.ckpt")[0] == 1


def test_deleting_a_replicat_removes_its_row(talk: Talk) -> None:
    talk.batch("ADD CHECKPOINTTABLE shop.ckpt")
    talk.shell.save(replicat("REP1", started=1, options=GroupOptions(checkpoint_table="shop.ckpt", group_key=1)))
    with psycopg.connect(talk.dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO shop.ckpt (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
            " VALUES ('REP1', 1, 0, now(), now(), '/'), ('OTHER', 1, 0, now(), now(), '/')"
        )
    assert talk.batch("DELETE CHECKPOINTTABLE shop.ckpt")[0] == 1
    assert talk.batch("DELETE REPLICAT rep1")[0] == 0
    with psycopg.connect(talk.dsn) as connection:
        assert connection.execute("SELECT group_name FROM shop.ckpt").fetchall() == [("OTHER",)]
    assert "1 rows of REPLICAT OTHER" in talk.batch("CLEANUP CHECKPOINTTABLE shop.ckpt, REPLICAT other")[1]


@pytest.fixture
def kept(talk: Talk) -> Talk:
    """A checkpoint table with the rows of a coordinated Replicat that is stopped, and of one of its threads."""
    talk.batch("ADD CHECKPOINTTABLE shop.ckpt")
    options = GroupOptions(checkpoint_table="shop.ckpt", replicat_kind=ReplicatKind.COORDINATED)
    talk.shell.save(replicat("REP1", started=1, options=options))
    home = keys_of(talk.shell.home.root)
    with psycopg.connect(talk.dsn, autocommit=True) as connection:
        for group in ("REP1", "REP1001"):
            connection.execute(
                "INSERT INTO shop.ckpt (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
                " VALUES (%s, %s, 0, now(), now(), '/')",
                [group, group_key(group, home)],
            )
    return talk


def rows(talk: Talk) -> int:
    with psycopg.connect(talk.dsn) as connection:
        found = connection.execute("SELECT count(*) FROM shop.ckpt").fetchone()
    return found[0] if found else 0


def test_a_checkpoint_table_of_a_stopped_group_is_deleted_only_when_forced(kept: Talk) -> None:
    code, _, err = kept.batch("DELETE CHECKPOINTTABLE shop.ckpt")
    assert (code, rows(kept)) == (1, 2)
    assert "REPLICAT REP1 keeps its position" in err
    assert kept.batch("DELETE CHECKPOINTTABLE shop.ckpt !")[0] == 0


def test_a_checkpoint_table_is_never_deleted_under_a_replicat_that_runs(kept: Talk) -> None:
    """Finding 4: it was dropped with ``!``, and the Replicats began again at an older place."""
    with psycopg.connect(kept.dsn) as applying:
        key = group_key("REP1", keys_of(kept.shell.home.root))
        applying.execute("SELECT pg_advisory_lock(%s)", [GROUP_LOCK | key])
        for statement in ("DELETE CHECKPOINTTABLE shop.ckpt !", "CLEANUP CHECKPOINTTABLE shop.ckpt, REPLICAT rep1"):
            code, _, err = kept.batch(statement)
            assert (code, rows(kept)) == (1, 2)
            assert "STOP REPLICAT REP1 first" in err


def test_cleaning_a_checkpoint_table_leaves_the_rows_of_groups_that_there_are(kept: Talk) -> None:
    """A coordinated one's threads have rows under names of their own; without them transactions would come twice."""
    assert "Nothing to remove." in kept.batch("CLEANUP CHECKPOINTTABLE shop.ckpt")[1]
    assert kept.batch("CLEANUP CHECKPOINTTABLE shop.ckpt, REPLICAT rep1")[0] == 1
    assert rows(kept) == 2


def test_cleaning_a_checkpoint_table_takes_what_this_home_has_no_longer(talk: Talk) -> None:
    talk.batch("ADD CHECKPOINTTABLE shop.ckpt")
    home = keys_of(talk.shell.home.root)
    with psycopg.connect(talk.dsn, autocommit=True) as connection:
        for group, key in (("GONE", group_key("GONE", home)), ("REP1", group_key("REP1", home)), ("GONE", 1)):
            connection.execute(
                "INSERT INTO shop.ckpt (group_name, group_key, rba, create_ts, last_update_ts, current_dir)"
                " VALUES (%s, %s, 0, now(), now(), '/')",
                [group, key],
            )
    talk.shell.save(replicat("REP1", started=1, options=GroupOptions(checkpoint_table="shop.ckpt")))
    assert "REPLICAT GONE removed from shop.ckpt." in talk.batch("CLEANUP CHECKPOINTTABLE shop.ckpt")[1]
    with psycopg.connect(talk.dsn) as connection:
        left = connection.execute("SELECT group_name, group_key = 1 FROM shop.ckpt ORDER BY 1").fetchall()
    assert left == [("GONE", True), ("REP1", False)]
    assert "Nothing to remove." in talk.batch("CLEANUP CHECKPOINTTABLE shop.ckpt")[1]
