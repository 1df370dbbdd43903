"""A connection to MariaDB or MySQL for other threads: what it waits for, and how its statement is canceled."""

from __future__ import annotations

import contextlib
import os
import socket
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.mysql.session import connect, execute
from ggshell.errors import GgsError
from ggshell.links import LINKS, Blocker, Link, Seen

if TYPE_CHECKING:
    from pymysql.connections import Connection

PATIENCE_SECONDS: Final = 5.0
_OBSERVED: Final = "SELECT ID, COALESCE(INFO, '') FROM information_schema.PROCESSLIST WHERE ID IN %s"
_BLOCKERS: Final = """
SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, p.USER, p.COMMAND, UNIX_TIMESTAMP(b.trx_started), COALESCE(p.INFO, '')
  FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id
  JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id
  LEFT JOIN information_schema.PROCESSLIST p ON p.ID = b.trx_mysql_thread_id WHERE r.trx_mysql_thread_id IN %s"""


class MysqlLink:
    """One connection. ``running`` says whether a result is still expected."""

    patience = PATIENCE_SECONDS
    observable = True

    def __init__(self, connection: Connection[Any], login: str) -> None:
        self.canceled = False
        self.running = False
        ((number,),) = execute(connection, "SELECT CONNECTION_ID()")
        self.id = int(number)
        self._connection = weakref.ref(connection)
        self._login = login

    @property
    def waits(self) -> bool:
        connection = self._connection()
        return connection is not None and connection.open and self.running

    def address(self) -> str:
        return parse_login(self._login).shown

    def observe(self, links: Sequence[Link]) -> Mapping[Link, Seen]:
        mine = {link.id: link for link in links if isinstance(link, MysqlLink)}
        found: dict[Link, Seen] = {}
        with connect(self._login, program="ggshell") as beside:
            for number, statement in execute(beside, _OBSERVED, [list(mine)]):
                found[mine[int(number)]] = Seen(str(statement))
            with contextlib.suppress(GgsError):  # without the privilege PROCESS, or on MySQL, blockers are not shown
                for waiting, number, user, state, since, text in execute(beside, _BLOCKERS, [list(mine)]):
                    blocker = Blocker(
                        int(number), str(user or ""), "", str(state or ""), int(since * 1_000_000), str(text)
                    )
                    seen = found.get(mine[int(waiting)], Seen(""))
                    found[mine[int(waiting)]] = seen._replace(blockers=(*seen.blockers, blocker))
        return found

    def cancel(self) -> None:
        self.canceled = True
        with connect(self._login, program="ggshell") as beside:
            execute(beside, f"KILL QUERY {self.id}")

    def break_off(self) -> None:
        self.canceled = True
        connection: Any = self._connection()
        if connection is None or not connection.open:
            return
        with contextlib.suppress(OSError):  # the connection has just ended by itself
            number = os.dup(connection._sock.fileno())
            with socket.socket(fileno=number) as same:
                same.shutdown(socket.SHUT_RDWR)


def enter(connection: Connection[Any], login: str) -> MysqlLink:
    """Register a connection with the process."""
    link = MysqlLink(connection, login)
    LINKS.enter(connection, link)
    return link
