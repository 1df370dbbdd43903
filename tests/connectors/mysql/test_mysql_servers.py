"""Bad days of the server: it ends, purges or resets its log, drops a slow reader, or another one takes over."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from batches import Row, Tx
from mariadb_home import EXT1, MariadbHome
from mariadb_servers import (
    DURABLE,
    end_replication,
    execute,
    log_status,
    only_mariadb,
    private_server,
    replicate,
    reset_log,
)
from mysql_deliveries import MysqlDeliveries
from pipeline.apply.hand_made import image, trail
from processes import until
from service_client import free_port

from ggshell.connectors.mysql.session import connect
from ggshell.demo.mariadb_server import REPLICATION_SETTINGS, MariadbServer
from ggshell.errors import ApplyError
from ggshell.home.process_file import state_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

ITEMS = "CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40))"
DATABASE = "shop"


@pytest.fixture
def server(mariadb_binaries: Path, port: int) -> Iterator[MariadbServer]:
    """A server of its own, with an empty database."""
    with private_server(port) as found:
        execute(found.login(), f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", ITEMS)
        yield found


@pytest.fixture
def capture(tmp_path: Path, server: MariadbServer) -> Iterator[MariadbHome]:
    found = MariadbHome(tmp_path, server.login(DATABASE))
    found.add()
    yield found
    found.close()


def _insert(login: str, *numbers: int) -> None:
    execute(login, *(f"INSERT INTO items VALUES ({number}, 'row {number}')" for number in numbers))


@only_mariadb("its data folder is made for one value of lower_case_table_names")
def test_tables_that_a_target_does_not_distinguish_are_refused(mariadb_binaries: Path, port: int) -> None:
    """Regression: with lower_case_table_names = 1, the rows of both tables were in one."""
    with private_server(port, {"lower-case-table-names": "1"}) as server:
        execute(server.login(), "CREATE DATABASE shop", "CREATE TABLE shop.ab (id INT PRIMARY KEY)")
        deliveries = MysqlDeliveries(server.login("shop"))
        try:
            delivery = deliveries.start()
            sources = [
                TableDefinition(TableName("hr", name), (Column("id", "integer"),), (0,)) for name in ("Ab", "aB")
            ]
            delivery.feed(trail([Tx(1, [Row(sources[0], IoType.INSERT, image("1"))])])[0])
            with pytest.raises(ApplyError, match=r'tables shop\."Ab" and shop\."aB" are the same table') as raised:
                delivery.feed(trail([Tx(2, [Row(sources[1], IoType.INSERT, image("2"))])])[0])
            assert raised.value.code == "GGS-00491"
        finally:
            deliveries.close()


def _restart(server: MariadbServer) -> None:
    server.start({**REPLICATION_SETTINGS, **DURABLE})


def test_it_continues_after_the_server_was_killed_or_stopped(capture: MariadbHome, server: MariadbServer) -> None:
    capture.start()
    _insert(capture.login, 1, 2)
    capture.wait_for_ids([1, 2])
    server.kill()
    _restart(server)
    _insert(capture.login, 3)
    capture.wait_for_ids([1, 2, 3])
    server.stop()
    _restart(server)
    _insert(capture.login, 4, 5)
    capture.wait_for_ids([1, 2, 3, 4, 5])


def _is_purged_to(login: str, file: str) -> bool:
    """Purge the log, and return whether the server did: it keeps a file as long as a reader that has gone still counts."""
    execute(login, f"PURGE BINARY LOGS TO '{file}'")
    return bool(execute(login, "SHOW BINARY LOGS")[0][0] == file)


def test_a_purged_log_is_refused_by_one_sentence(capture: MariadbHome, server: MariadbServer) -> None:
    capture.start()
    _insert(capture.login, 1)
    capture.wait_for_ids([1])
    capture.run("STOP EXTRACT ext1")
    _insert(capture.login, 2)
    execute(capture.login, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    file, _ = log_status(capture.login)
    until("the files are purged", lambda: _is_purged_to(capture.login, file))
    capture.start()
    report = capture.abended_report()
    assert "GGS-00474" in report
    assert "purged" in report
    assert capture.ids() == [1]


@only_mariadb("only a set of all GTIDs would show that nothing else was in these files")
def test_files_that_were_captured_may_be_purged(capture: MariadbHome, server: MariadbServer) -> None:
    capture.start()
    _insert(capture.login, 1)
    capture.wait_for_ids([1])
    capture.run("STOP EXTRACT ext1")
    execute(capture.login, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    file, _ = log_status(capture.login)
    execute(capture.login, f"PURGE BINARY LOGS TO '{file}'")
    _insert(capture.login, 2)
    capture.start()
    capture.wait_for_ids([1, 2])


def test_reset_master_is_refused_even_if_the_same_gtids_exist_again(
    capture: MariadbHome, server: MariadbServer
) -> None:
    capture.start()
    _insert(capture.login, 1, 2)
    capture.wait_for_ids([1, 2])
    capture.run("STOP EXTRACT ext1")
    reset_log(capture.login)
    _insert(capture.login, *range(3, 20))
    capture.start()
    report = capture.abended_report()
    assert "GGS-00474" in report
    assert "RESET MASTER" in report
    assert capture.ids() == [1, 2]
    capture.run(f"DBLOGIN SOURCEDB {capture.login}", "ALTER EXTRACT ext1, BEGIN NOW", "START EXTRACT ext1")
    _insert(capture.login, 20, 21)
    capture.wait_for_ids([1, 2, 20, 21])


@pytest.mark.parametrize("has_checkpoint", [True, False], ids=["after a checkpoint", "before the next checkpoint"])
def test_another_server_takes_over_by_gtid(
    tmp_path: Path, server: MariadbServer, capture: MariadbHome, has_checkpoint: bool
) -> None:
    """It is killed there again, when the last checkpoint is one of the new server or still of the former one."""
    with ExitStack() as stack:
        replica = stack.enter_context(private_server(free_port(), {"server-id": "2", "log-slave-updates": "1"}))
        replicate(replica, server)
        capture.start()
        _insert(capture.login, 1, 2, 3)
        capture.wait_for_ids([1, 2, 3])
        capture.kill()
        _insert(capture.login, 4)

        def arrived() -> bool:
            return execute(
                replica.login(), "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'items'"
            ) == [(1,)] and execute(replica.login(DATABASE), "SELECT COUNT(*) FROM items") == [(4,)]

        until("the replica has the rows", arrived)
        server.kill()
        end_replication(replica)
        capture.lead_to(replica.login(DATABASE))
        before = {path: path.read_bytes() for path in (capture.home.root / "dirchk").glob("EXT1.*")}
        _insert(capture.login, 5)
        capture.start()
        capture.wait_for_ids([1, 2, 3, 4, 5])
        capture.kill()
        for path, content in before.items():
            if not has_checkpoint:
                path.write_bytes(content)
        _insert(capture.login, 6)
        capture.start()
        capture.wait_for_ids([1, 2, 3, 4, 5, 6])
        assert "a different server" in capture.home.report("EXT1").with_name("EXT10.rpt").read_text()


def test_a_slow_reader_that_the_server_drops_misses_nothing_and_gets_nothing_twice(
    capture: MariadbHome, server: MariadbServer
) -> None:
    """The server ends the connection in the middle of an event, while the Extract does not read (SIGSTOP)."""
    capture.start()
    _insert(capture.login, 1)
    capture.wait_for_ids([1])
    process = state_of(capture.home.process(*EXT1))[1]
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with closing(connect(capture.login)) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE large (id INT PRIMARY KEY, data LONGBLOB)")
            for number in range(100, 120):
                cursor.execute("INSERT INTO large VALUES (%s, REPEAT('x', 1000000))", [number])
        dumps = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"
        writing = f"{dumps} AND STATE IN ('Writing to net', 'Sending to client')"
        until("the server waits for the reader", lambda: len(execute(capture.login, writing)) == 1)
        ((number,),) = execute(capture.login, dumps)
        execute(capture.login, f"KILL {number}")
        until("the server has dropped the reader", lambda: not execute(capture.login, dumps))
    finally:
        os.kill(process.pid, signal.SIGCONT)
    _insert(capture.login, 2)
    capture.wait_for_ids([1, *range(100, 120), 2])
