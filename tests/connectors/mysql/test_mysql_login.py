"""Logins to MariaDB and MySQL: the forms of a login, the session's settings, refusals, and what DBLOGIN shows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from cli.shell import Shell
from mariadb_servers import IS_MYSQL, execute

from ggshell.connectors.mysql.login import MysqlAddress, parse_login
from ggshell.connectors.mysql.session import ServerVersion, connect
from ggshell.connectors.registry import connector_for
from ggshell.demo.mariadb_server import MariadbServer
from ggshell.errors import ConnectionLostError, DatabaseError


def test_a_login_is_read_with_all_its_parts() -> None:
    found = parse_login(
        "mysql://gg%40corp:p%2Fw@db.example:3307/shop?ssl-mode=verify_ca&ssl-ca=ca.pem&socket=/run/s.sock"
    )
    assert found == MysqlAddress("gg@corp", "p/w", "db.example", 3307, "shop", "/run/s.sock", "VERIFY_CA", "ca.pem")
    assert parse_login(str(found)) == found


@pytest.mark.parametrize(
    ("userid", "password", "source", "expected"),
    [
        ("mariadb://gg@north/shop", "secret", "", MysqlAddress("gg", "secret", "north", 3306, "shop")),
        ("gg", "secret", "mysql://north:3310/shop", MysqlAddress("gg", "secret", "north", 3310, "shop")),
        ("gg", None, "mysql://other:old@north/", MysqlAddress("gg", "old", "north")),
        ("", None, "MYSQL://gg@[::1]:3310/shop", MysqlAddress("gg", "", "::1", 3310, "shop")),
    ],
)
def test_user_and_password_beside_the_url_take_precedence(
    userid: str, password: str | None, source: str, expected: MysqlAddress
) -> None:
    assert parse_login(userid, password, source) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mysql://north/shop", "has no user"),
        ("mysql://gg:secret@north:port/shop", "is not a valid login"),
        ("mysql://gg:secret@north/shop/more", "is not a valid login"),
        ("mysql://gg@north/shop?charset=latin1", "charset is not an option"),
        ("mysql://gg@north/shop?ssl-mode=MAYBE", "MAYBE is not a valid ssl-mode"),
    ],
)
def test_a_login_that_is_not_valid_is_refused_without_its_password(text: str, message: str) -> None:
    with pytest.raises(DatabaseError, match=message) as caught:
        parse_login(text)
    assert "secret" not in str(caught.value)


def test_the_files_and_the_address_of_a_login_are_known_without_a_connection(tmp_path: Path) -> None:
    login = "mysql://gg:secret@north:3307/shop?ssl-ca=ca.pem"
    connector = connector_for(login)
    assert connector.kind == "mysql"
    assert connector.files(tmp_path, login) == (tmp_path / "ca.pem",)
    assert connector.address(login) == "north:3307/shop"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.11.19-MariaDB-0+deb12u1", (True, (10, 11, 19))),
        ("5.5.5-11.4.2-MariaDB-log", (True, (11, 4, 2))),
        ("8.0.36", (False, (8, 0, 36))),
    ],
)
def test_the_version_says_which_of_the_two_products_a_server_is(
    text: str, expected: tuple[bool, tuple[int, ...]]
) -> None:
    assert ServerVersion.parse(text)[:2] == expected


def test_sessions_have_the_same_settings_whatever_the_server_has(mariadb: str) -> None:
    execute(mariadb, "SET GLOBAL time_zone = '+05:00'", "SET GLOBAL sql_mode = ''")
    try:
        with closing(connect(mariadb)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@time_zone, @@sql_mode, @@character_set_client, @@autocommit")
            zone, mode, charset, autocommit = cursor.fetchone() or ()
    finally:
        execute(mariadb, "SET GLOBAL time_zone = 'SYSTEM'", "SET GLOBAL sql_mode = DEFAULT")
    assert (zone, charset, autocommit) == ("+00:00", "utf8mb4", 1)
    assert "STRICT_TRANS_TABLES" in mode
    assert "NO_AUTO_VALUE_ON_ZERO" in mode


def test_refusals_name_what_to_correct(mariadb_server: MariadbServer, port: int) -> None:
    with pytest.raises(DatabaseError, match=r"login failed.*correct the login"):
        connect(mariadb_server.login(user="nobody_here", password="x"))
    with pytest.raises(DatabaseError, match=r"login failed.*check the database name"):
        connect(mariadb_server.login("missing"))
    with pytest.raises(ConnectionLostError, match=r"not responding.*start the server"):
        connect(f"mysql://root@127.0.0.1:{port}/")


def test_dblogin_shows_the_server_and_its_tables(mariadb: str, shell: Shell) -> None:
    execute(mariadb, "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20))")
    answer = shell.batch(f"DBLOGIN SOURCEDB {mariadb}")
    assert answer.code == 0, answer.out + answer.err
    assert "Successfully logged into database." in answer.out
    assert ("MySQL " if IS_MYSQL else "MariaDB 1") in answer.out


def test_a_data_source_of_odbc_names_the_server_and_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "odbc.ini"
    file.write_text(
        "[Shop]\nDriver = MariaDB ODBC 3.1 Driver\nSERVER = db1\nPORT = 3307\nDATABASE = shop\nUID = scott\n"
        "[wrong]\nDriver = libmaodbc.so\nPORT = x\n[pg]\nDriver = PostgreSQL\nServername = db2\nDatabase = hr\n"
    )
    monkeypatch.setenv("ODBCINI", str(file))
    assert connector_for("Shop").kind == connector_for("", "ann@Shop").kind == "mysql"
    assert connector_for("pg").kind == connector_for("nowhere").kind == "postgres"
    assert str(parse_login("Shop")) == "mysql://scott@db1:3307/shop"
    assert str(parse_login("ann@Shop", "secret")) == "mysql://ann:secret@db1:3307/shop"
    assert str(parse_login("ann", None, "Shop")) == "mysql://ann@db1:3307/shop"
    with pytest.raises(DatabaseError, match="is not a number"):
        parse_login("ann", None, "wrong")
