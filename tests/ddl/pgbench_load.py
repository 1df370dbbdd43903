"""pgbench on tables of schema load, with DDL on them while it runs."""

from __future__ import annotations

import os
import random
import subprocess
from types import TracebackType

import psycopg

from ggshell.demo.postgres_server import find_binaries

SCHEMA = "load"
RATE = 60
"""Transactions a second."""
_PGBENCH = find_binaries() / "pgbench"


class PgbenchLoad:
    """A running pgbench; ``alter`` changes its tables in ways that its statements survive."""

    def __init__(self, dsn: str, seed: str) -> None:
        self._dsn = dsn
        self._random = random.Random(seed)
        self._number = 0
        self._environment = {**os.environ, "PGOPTIONS": f"-c search_path={SCHEMA}"}
        self._run("-i", "-q", "-s", "1", "--foreign-keys")
        self._process = subprocess.Popen(
            [_PGBENCH, "-n", "-c", "2", "-R", str(RATE), "-T", "36000", dsn],
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> PgbenchLoad:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def alter(self, connection: psycopg.Connection) -> int:
        """Run a random DDL statement on the tables; return how many the server has accepted."""
        table = f"{SCHEMA}.pgbench_{self._random.choice(('accounts', 'tellers', 'branches', 'history'))}"
        self._number += 1
        statements = self._random.choice(
            (
                [f"ALTER TABLE {table} ADD COLUMN x{self._number} int DEFAULT {self._number}"],
                [f"ALTER TABLE {table} ADD COLUMN y{self._number} text DEFAULT clock_timestamp()"],
                [f"CREATE INDEX CONCURRENTLY i{self._number} ON {table} (bid)", f"DROP INDEX {SCHEMA}.i{self._number}"],
                [f"ALTER TABLE {table} ADD CHECK (bid > 0)", f"COMMENT ON TABLE {table} IS '{self._number}'"],
                [f"ALTER TABLE {table} ALTER COLUMN bid TYPE bigint"],
            )
        )
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]
        return len(statements)

    def stop(self) -> None:
        """End pgbench. Fails if it has ended before, because a statement of it was refused."""
        assert self._process.poll() is None, self._process.stderr.read() if self._process.stderr else ""
        self._process.terminate()
        self._process.communicate()

    def _run(self, *options: str) -> None:
        subprocess.run([_PGBENCH, *options, self._dsn], env=self._environment, check=True, capture_output=True)
