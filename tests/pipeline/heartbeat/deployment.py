"""Real processes between real databases with heartbeat tables in schema ggadmin; the tests send the heartbeats."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import psycopg
from command_line import run_ggshell
from processes import until

from ggshell.demo.processes import end_processes
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home


class Deployment:
    """A home with databases as aliases. ``extract``, ``path`` and ``replicat`` add groups; nothing runs before ``start``."""

    def __init__(self, root: Path, **databases: str) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.databases = databases
        self.home.globals.write_text("GGSCHEMA ggadmin\n")
        store = CredentialStore(self.home)
        for alias, dsn in databases.items():
            store.add(alias, dsn, "")
            self.sql(
                alias, "CREATE SCHEMA ggadmin", "CREATE SCHEMA shop", "CREATE TABLE shop.items (id int PRIMARY KEY)"
            )

    def sql(self, alias: str, *statements: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.databases[alias], autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def database_name(self, alias: str) -> str:
        """The name of a database, as heartbeats carry it."""
        return str(self.sql(alias, "SELECT current_database()")[0][0])

    def run(self, *statements: str, fails: bool = False) -> str:
        result = run_ggshell("--home", self.home.root, "--auto-manager", "-c", "\n".join(statements), timeout=60)
        assert (result.returncode != 0) is fails, result.stdout + result.stderr
        return result.stdout + result.stderr

    def heartbeat_tables(self, options: str = "FREQUENCY 0") -> None:
        for alias in self.databases:
            self.run(f"DBLOGIN USERIDALIAS {alias}", f"ADD HEARTBEATTABLE, {options}")

    def extract(self, group: str, alias: str, trail: str) -> None:
        self.home.parameters(group).write_text(
            f"EXTRACT {group}\nUSERIDALIAS {alias}\nEXTTRAIL ./dirdat/{trail}\nTABLE shop.*;\n"
        )
        self.run(
            f"DBLOGIN USERIDALIAS {alias}",
            "ADD TRANDATA shop.items",
            f"REGISTER EXTRACT {group}",
            f"ADD EXTRACT {group}, TRANLOG, BEGIN NOW",
            f"ADD EXTTRAIL ./dirdat/{trail}, EXTRACT {group}",
        )

    def path(self, name: str, source: str, target: str) -> None:
        self.run(f"ADD DISTPATH {name}, SOURCE ./dirdat/{source}, TARGET ./dirdat/{target}")

    def replicat(self, group: str, alias: str, trail: str, more: str = "") -> None:
        self.home.parameters(group).write_text(f"REPLICAT {group}\nUSERIDALIAS {alias}\n{more}MAP *.*, TARGET *.*;\n")
        self.run(
            f"DBLOGIN USERIDALIAS {alias}",
            f"ADD CHECKPOINTTABLE ggadmin.c_{group}",
            f"ADD REPLICAT {group}, EXTTRAIL ./dirdat/{trail}, CHECKPOINTTABLE ggadmin.c_{group}",
        )

    def start(self, *groups: str) -> None:
        self.run(*(f"START {group}" for group in groups))

    def send_heartbeat(self, *aliases: str) -> None:
        for alias in aliases:
            self.sql(alias, "CALL ggadmin.gg_update_hb_tab()")

    def rows(self, alias: str, columns: str, table: str = "gg_heartbeat") -> list[tuple[Any, ...]]:
        return self.sql(alias, f"SELECT {columns} FROM ggadmin.{table} ORDER BY 1, 2, 3")

    def wait_for(self, alias: str, expected: list[tuple[Any, ...]], columns: str) -> None:
        """Wait until the heartbeat table has exactly these rows."""
        until(f"{alias} has {expected}", lambda: self.rows(alias, columns) == expected)

    def logs(self) -> str:
        """The event log and the reports of the processes, which explain a failed test."""
        files = [self.home.event_log, *sorted(self.home.root.glob("dirrpt/*.rpt"))]
        return "\n".join(f"--- {file.name}\n{file.read_text()}" for file in files if file.exists())

    def close(self) -> None:
        end_processes(self.home.root)
        sys.stdout.write(self.logs())
        shutil.rmtree(self.home.root, ignore_errors=True)
