"""A pipeline whose target is a DuckDB file, which only the running Replicat can open."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from pipelines import EXT1, REP1, Pipeline
from processes import until, until_state

from ggshell.connectors.duckdb import session
from ggshell.home.checkpoint import load
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file, state_of
from ggshell.types import Csn


class DuckdbPipeline(Pipeline):
    """Extract EXT1 writes ./dirdat/ea, Replicat REP1 applies it to south.duckdb; ``in_south`` waits for the file."""

    def __init__(self, root: Path, north: str) -> None:
        self.home = Home(root)
        super().__init__(root, north, session.login_of(root / "south.duckdb"))

    def add(self) -> None:
        super().add()
        self.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.*")

    def in_south(self, *statements: str) -> list[tuple[Any, ...]]:
        connection = session.connect(self.south)
        try:
            return [session.execute(connection, statement) for statement in statements][-1]
        finally:
            connection.close()

    def applied(self) -> Csn:
        """The last transaction that is applied according to Replicat's checkpoint file."""
        path = self.home.checkpoint(*REP1)
        latest = load(path).latest_csn if path.exists() else ""
        return Csn.parse(latest) if latest else Csn(0)

    def wait_until_applied(self) -> None:
        """Wait until everything that is committed in north is applied."""
        ((before,),) = self.in_north("SELECT pg_current_wal_lsn() - '0/0'")
        self.in_north("INSERT INTO a.sentinels DEFAULT VALUES")
        self.wait_for_transaction_after(Csn(int(before)))

    def wait_for_transaction_after(self, csn: Csn) -> None:
        """Wait until a transaction after a CSN is applied; fail with the report of a group that abends meanwhile."""

        def done() -> bool:
            for group in (EXT1, REP1):
                assert self.is_running(group), self.home.report(group[0]).read_text()[-3000:]
            return self.applied() > csn

        until(f"a transaction after {csn} is applied", done, 60)

    def kill_replicat(self) -> None:
        """Kill Replicat, as the failure of the machine would."""
        path = self.home.process(*REP1)
        entry = read_process_file(path)
        assert entry is not None
        os.kill(entry.pid, signal.SIGKILL)
        until("Replicat is reported as abended", lambda: state_of(path)[0] is ProcessState.ABENDED)

    def stop(self) -> None:
        """Stop both groups so that the file can be read."""
        self.run("STOP EXTRACT ext1", "STOP REPLICAT rep1")
        for group in (EXT1, REP1):
            until_state(self.home, *group, ProcessState.STOPPED)
