"""A private MySQL server, with which the tests of MariaDB run if its programs are there.

Debian's releases have no MySQL. ``GGSHELL_TEST_MYSQL=/folder/of/mysqld scripts/test tests/connectors/mysql`` runs these tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from contextlib import closing
from typing import ClassVar

from ggshell.connectors.mysql.session import connect, execute
from ggshell.demo.mariadb_server import REPLICATION_SETTINGS, MariadbServer, server_user
from ggshell.demo.server_user import give_to_server
from ggshell.errors import DatabaseError

MYSQL_BINARIES = "GGSHELL_TEST_MYSQL"
_MARIADB_ONLY = {"gtid-strict-mode", "innodb-log-file-size", "loose-innodb-use-native-aio"}
_ADDED = {
    "gtid-mode": "ON",
    "enforce-gtid-consistency": "ON",
    "mysqlx": "OFF",
    "innodb-redo-log-capacity": "64M",
    "secure-file-priv": "",
    "innodb-use-native-aio": "0",
}

_PLAIN_IO = ["--innodb-use-native-aio=0"]
"""The requests of native I/O of all servers of a machine are limited together."""
_USERS = """CREATE USER 'root'@'127.0.0.1';
GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
GRANT PROXY ON ''@'' TO 'root'@'127.0.0.1' WITH GRANT OPTION;
"""


class MysqlServer(MariadbServer):
    """A server of MySQL instead of MariaDB; its settings are those of MariaDB without what MySQL does not have."""

    program: ClassVar[str] = "mysqld"

    def initialize(self) -> None:
        if (self.data / "mysql").exists():
            return
        self.sockets.mkdir(parents=True, exist_ok=True)
        for folder in (self.sockets.parent, self.sockets):
            give_to_server(folder)
        statements = self.sockets / "users.sql"
        statements.write_text(_USERS)
        statements.chmod(0o644)
        options = [
            "--no-defaults",
            "--initialize-insecure",
            f"--datadir={self.data}",
            f"--init-file={statements}",
            *_PLAIN_IO,
        ]
        command = [self.binaries / self.program, *options]
        result = subprocess.run(command, check=False, capture_output=True, text=True, **server_user())
        assert result.returncode == 0, result.stderr

    def start(self, settings: Mapping[str, str] = REPLICATION_SETTINGS) -> None:
        kept = {name: value for name, value in settings.items() if name not in _MARIADB_ONLY}
        super().start({**kept, **_ADDED})
        with closing(connect(self.login())) as connection:
            try:
                execute(connection, "SELECT MD5('')")
            except DatabaseError:
                execute(connection, "INSTALL COMPONENT 'file://component_classic_hashing'")
