"""The checkpoint table in PostgreSQL: created, read, upgraded, cleaned up, dropped."""

from __future__ import annotations

import pytest

from ggshell.connectors.postgres import checkpoint_sql, session
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.errors import ConflictError, NotFoundError
from ggshell.pipeline.apply.checkpoint_table import group_key
from ggshell.pipeline.apply.target import CheckpointRow
from ggshell.types import Csn, TableName, TrailPosition

TABLE = TableName("public", "Chk")
ROW = CheckpointRow(TrailPosition(2, 99), Csn(77), "5'\\0", 1_700_000_000_000_000, 70, ("5'\\0",))
EXPECTED = [
    ("group_name", "character varying(8)", True),
    ("group_key", "bigint", True),
    ("seqno", "integer", False),
    ("rba", "bigint", True),
    ("audit_ts", "character varying(29)", False),
    ("create_ts", "timestamp without time zone", True),
    ("last_update_ts", "timestamp without time zone", True),
    ("current_dir", "character varying(255)", True),
    ("log_bsn", "character varying(128)", False),
    ("log_csn", "character varying(128)", False),
    ("log_xid", "character varying(128)", False),
    ("log_cmplt_csn", "character varying(128)", False),
    ("log_cmplt_xids", "character varying(2000)", False),
    ("version", "integer", False),
]


def test_both_tables_are_created_with_the_columns_that_tools_know(south: str) -> None:
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(TABLE)
        found = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
            " WHERE attrelid = 'public.\"Chk\"'::regclass AND attnum > 0 ORDER BY attnum"
        ).fetchall()
        assert found == EXPECTED
        key = connection.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE contype = 'p' AND connamespace = 'public'::regnamespace"
        ).fetchall()
        assert {row[0] for row in key} == {
            "PRIMARY KEY (group_name, group_key)",
            "PRIMARY KEY (group_name, group_key, log_cmplt_csn, log_cmplt_xids_seq)",
        }
        with pytest.raises(ConflictError, match="already exists"):
            tables.create(TABLE)


def test_an_incomplete_checkpoint_table_can_be_completed(south: str) -> None:
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(TABLE)
        connection.execute('DROP TABLE "Chk_lox"')
        with pytest.raises(ConflictError) as raised:
            tables.create(TABLE)
        assert "UPGRADE CHECKPOINTTABLE" in str(raised.value.hint)
        assert tables.upgrade(TABLE) == ["Chk_lox"]
        connection.execute('DROP TABLE "Chk"')
        tables.create(TABLE)
        assert tables.groups(TABLE) == []


def test_rows_are_inserted_once_read_listed_and_cleaned_up(south: str) -> None:
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(TABLE)
        assert tables.read(TABLE, "rep1", 5) is None
        tables.insert(TABLE, "rep1", 5, ROW, "/home")
        tables.insert(TABLE, "rep1", 5, ROW._replace(csn=Csn(1)), "/home")
        tables.insert(TABLE, "rep1", 6, ROW, "/other")
        assert tables.read(TABLE, "REP1", 5) == ROW
        assert [row[:3] for row in tables.groups(TABLE)] == [
            ("REP1", 5, str(Csn(77))),
            ("REP1", 6, str(Csn(77))),
        ]
        tables.replace(TABLE, "rep1", 5, ROW._replace(csn=Csn(3)), "/home")
        row = tables.read(TABLE, "rep1", 5)
        assert row is not None
        assert row.csn == Csn(3)
        assert tables.cleanup(TABLE, "rep1", 6) == 1
        assert tables.cleanup(TABLE, "rep1") == 1
        assert tables.cleanup(TABLE, "rep1") == 0


def test_both_forms_of_the_update_write_the_same_values(south: str) -> None:
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(TABLE)
        for key in (1, 2):
            tables.insert(TABLE, "r", key, CheckpointRow(TrailPosition(0, 0), None), "/")
        connection.execute(checkpoint_sql.update_literally(TABLE, ROW, "r", 1))
        pgconn = connection.pgconn
        result = pgconn.exec_params(
            checkpoint_sql.update_text(TABLE).encode(), checkpoint_sql.update_values(ROW, "r", 2)
        )
        assert result.error_message == b""
        assert tables.read(TABLE, "r", 1) == ROW
        assert tables.read(TABLE, "r", 2) == ROW
        gone = pgconn.exec_(checkpoint_sql.update_literally(TABLE, ROW, "r", 3).encode())
        assert b"division by zero" in gone.error_message


def test_upgrade_adds_the_columns_that_an_older_table_does_not_have(south: str) -> None:
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(TABLE)
        assert tables.upgrade(TABLE) == []
        connection.execute('ALTER TABLE "Chk" DROP log_bsn, DROP log_cmplt_xids; DROP TABLE "Chk_lox"')
        assert tables.upgrade(TABLE) == ["log_bsn", "log_cmplt_xids", "Chk_lox"]
        assert tables.upgrade(TABLE) == []


def test_drop_removes_both_tables_and_names_a_missing_one(south: str) -> None:
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(TABLE)
        tables.drop(TABLE)
        with pytest.raises(NotFoundError, match="Chk"):
            tables.drop(TABLE)
        tables.create(TABLE)


def test_the_key_of_a_group_depends_on_its_home_but_not_on_letter_case() -> None:
    assert group_key("rep", "/a") == group_key("REP", "/a")
    assert group_key("rep", "/a") != group_key("rep", "/b")


def test_the_name_of_a_table_may_contain_a_percent_sign(south: str) -> None:
    """Regression: its rows could not be read, because the sign was taken for the mark of a parameter."""
    table = TableName("public", "100%s")
    with session.connect(south) as connection:
        tables = PostgresCheckpointTables(connection)
        tables.create(table)
        assert tables.insert(table, "rep1", 5, ROW, "/home")
        assert tables.read(table, "rep1", 5) == ROW
        assert len(tables.groups(table)) == 1
        assert tables.busy(table) == []
        tables.drop(table)
