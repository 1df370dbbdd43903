"""The demo's MariaDB server: the database shop with customers and orders, and the alias ``maria``."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ggshell.demo.aliases import store_logins
from ggshell.demo.mariadb_server import MariadbServer, find_binaries
from ggshell.demo.servers import ADMIN, ADMIN_PASSWORD, free_ports, reachable, short_folder
from ggshell.errors import StoreError
from ggshell.files import read_json, write_atomically

ALIAS: Final = "maria"
DATABASE: Final = "shop"
_CUSTOMERS, _ORDERS = 1000, 3000
_SETUP: Final = (
    f"CREATE USER IF NOT EXISTS {ADMIN}@localhost IDENTIFIED BY '{ADMIN_PASSWORD}'",
    f"CREATE USER IF NOT EXISTS {ADMIN}@'127.0.0.1' IDENTIFIED BY '{ADMIN_PASSWORD}'",
    f"GRANT ALL PRIVILEGES ON *.* TO {ADMIN}@localhost",
    f"GRANT ALL PRIVILEGES ON *.* TO {ADMIN}@'127.0.0.1'",
    f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4",
    f"""CREATE TABLE IF NOT EXISTS {DATABASE}.customers (customer_id bigint AUTO_INCREMENT PRIMARY KEY,
  name varchar(100) NOT NULL, email varchar(100) UNIQUE, credit_limit decimal(12,2) NOT NULL DEFAULT 0,
  registered datetime(6) NOT NULL, active tinyint(1) NOT NULL)""",
    f"""CREATE TABLE IF NOT EXISTS {DATABASE}.orders (order_id bigint AUTO_INCREMENT PRIMARY KEY, customer_id bigint NOT NULL,
  status enum('new', 'paid', 'shipped', 'canceled') NOT NULL, total decimal(12,2) NOT NULL, placed timestamp(6) NOT NULL,
  details json, FOREIGN KEY (customer_id) REFERENCES customers (customer_id))""",
)
_ROWS: Final = (
    f"""INSERT INTO {DATABASE}.customers SELECT seq, CONCAT('Customer ', seq), CONCAT('c', seq, '@example.com'),
  MOD(seq * {{seed}}, 5000) + 0.25, '2024-01-01' + INTERVAL seq MINUTE, MOD(seq, 9) > 0
  FROM {DATABASE}.seq_1_to_{_CUSTOMERS}""",
    f"""INSERT INTO {DATABASE}.orders SELECT seq, 1 + MOD(seq * {{seed}}, {_CUSTOMERS}), 1 + MOD(seq, 4),
  MOD(seq * 37, 900) + 0.5, '2024-02-01 00:00:00' + INTERVAL seq SECOND, JSON_OBJECT('lines', MOD(seq, 5) + 1)
  FROM {DATABASE}.seq_1_to_{_ORDERS}""",
)


@dataclass(frozen=True, slots=True)
class MariadbDemo:
    """The server of a home. ``home``: the home directory."""

    home: Path
    server: MariadbServer

    @property
    def login(self) -> str:
        return self.server.login(DATABASE, ADMIN)

    def bring_up(self, seed: int) -> None:
        """Start the server, and create the database with its rows and the alias; what exists is kept."""
        self.server.initialize()
        self.server.start()
        for statement in _SETUP:
            self._run(statement)
        if not self._run(f"SELECT 1 FROM {DATABASE}.customers LIMIT 1"):
            for statement in _ROWS:
                self._run(statement.format(seed=seed))
        store_logins(self.home, {ALIAS: self.login})

    def rows(self) -> dict[str, int]:
        """The number of rows of each table."""
        return {name: self._run(f"SELECT COUNT(*) FROM {DATABASE}.{name}")[0][0] for name in ("customers", "orders")}

    def remove(self) -> None:
        """Stop the server and delete all its files."""
        self.server.kill()
        shutil.rmtree(self.server.data, ignore_errors=True)
        shutil.rmtree(self.server.sockets, ignore_errors=True)
        _note(self.home).unlink(missing_ok=True)

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        import pymysql

        with (
            closing(pymysql.connect(unix_socket=str(self.server.socket), user="root", autocommit=True)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
            return list(cursor.fetchall())


def exists(home: Path) -> bool:
    """Whether the home has a MariaDB server, running or not."""
    return _note(home).exists()


def open_demo(home: Path) -> MariadbDemo:
    """Return the home's server with saved or newly chosen settings; starts nothing. Raises NotFoundError without MariaDB."""
    home = home.resolve()
    binaries, short = find_binaries(), short_folder(home)
    if not exists(home):
        folder = home / "demo"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        data = folder if reachable(folder) else short
        note = {"data": str(data), "port": free_ports(1)[0]}
        write_atomically(_note(home), json.dumps(note).encode())
    try:
        found = read_json(_note(home).read_text())
        data, port = Path(found["data"]), int(found["port"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "delete the folder demo and run 'ggshell demo up --kind mariadb' again"
        raise StoreError(f"{_note(home)} cannot be read: {error}", hint=hint) from error
    return MariadbDemo(home, MariadbServer(data / "data-maria", short / "maria", port, binaries))


def _note(home: Path) -> Path:
    return home / "demo" / "mariadb.json"
