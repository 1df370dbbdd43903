"""TRANDATA with a login to MariaDB: a check of what the log has."""

from __future__ import annotations

from cli.shell import Shell
from mariadb_servers import execute, only_mariadb, schema_of


@only_mariadb("it has no type uuid")
def test_tables_are_checked_and_what_the_server_lacks_is_named(shell: Shell, mariadb: str) -> None:
    schema = schema_of(mariadb)
    shell.home.ensure()
    execute(mariadb, "CREATE TABLE a (x int, y int, PRIMARY KEY (y, x))", "CREATE TABLE b (u uuid)")
    login = f"DBLOGIN SOURCEDB {mariadb}"
    added = shell.batch(login, f"ADD TRANDATA {schema}.*")
    assert f"enabled for table {schema}.a" in added.out
    assert f"column u of {schema}.b has the type uuid" in added.err
    assert shell.batch(login, f"ADD SCHEMATRANDATA {schema}").code != 0
    told = shell.batch(login, f"INFO TRANDATA {schema}.*", f"INFO SCHEMATRANDATA {schema}").out
    assert "identified by: y, x." in told
    assert f"disabled for table {schema}.b; column u has the type uuid" in told
    refused = shell.batch(login, f"DELETE TRANDATA {schema}.a").err
    assert "TRANDATA cannot be removed" in refused
    (before,) = execute(mariadb, "SELECT @@GLOBAL.binlog_row_image")
    execute(mariadb, "SET GLOBAL binlog_row_image = MINIMAL")
    try:
        assert "binlog_row_image is MINIMAL" in shell.batch(login, f"ADD TRANDATA {schema}.a").err
        told = shell.batch(login, f"INFO TRANDATA {schema}.a").out
        assert f"disabled for table {schema}.a; binlog_row_image is MINIMAL: SET GLOBAL binlog_row_image = FULL" in told
    finally:
        execute(mariadb, f"SET GLOBAL binlog_row_image = {before[0]}")
