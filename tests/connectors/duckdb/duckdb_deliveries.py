"""Deliveries to a DuckDB file; ``start`` closes the previous delivery, as a new process would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.apply.hand_made import BEGIN

from ggshell.clock import Clock
from ggshell.connectors.duckdb import session
from ggshell.connectors.duckdb.checkpoint_sql import DuckCheckpointTables
from ggshell.connectors.duckdb.target import GATHER_ROWS, DuckTarget
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.types import TableName

CHECKPOINTS = TableName("main", "checks")
ROWS = "SELECT * FROM t ORDER BY id"


class DuckDBDeliveries:
    """A file with the table t (id, a, b) and a checkpoint table."""

    def __init__(self, file: Path) -> None:
        self.login = session.login_of(file)
        self.target: DuckTarget | None = None
        self.execute("CREATE TABLE t (id integer PRIMARY KEY, a varchar, b decimal(10, 2))")
        connection = session.connect(self.login)
        DuckCheckpointTables(connection).create(CHECKPOINTS)
        connection.close()

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Over the connection of the running delivery, as no other can open the file."""
        target = self.target
        connection = session.connect(self.login) if target is None else target._connection
        try:
            return [session.execute(connection, statement) for statement in statements][-1]
        finally:
            if target is None:
                connection.close()

    def start(
        self,
        group: int = 1000,
        *,
        limit: int | None = None,
        gather: int = GATHER_ROWS,
        discard: DiscardFile | None = None,
        rules: Sequence[MapRule] = (MapRule("hr.*", "main.*"),),
        responses: Responses | None = None,
        clock: Clock | None = None,
    ) -> Delivery:
        self.close()
        self.target = DuckTarget(self.login, "rep1", "/home", CHECKPOINTS, BEGIN, gather=gather, clock=clock)
        delivery = Delivery(
            self.target,
            Mapper(rules, self.target.describe),
            group_operations=group,
            max_operations=limit,
            discard=discard,
            responses=responses,
        )
        delivery.start()
        return delivery

    def content(self) -> dict[int, str | None]:
        return {row[0]: row[1] for row in self.execute(ROWS)}

    def close(self) -> None:
        if self.target is not None:
            self.target.close()
            self.target = None
