"""Deliveries to MariaDB; ``start`` closes the previous delivery, as a new process would."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mariadb_servers import execute, schema_of
from pipeline.apply.hand_made import BEGIN

from ggshell.clock import SystemClock
from ggshell.connectors.mysql import session
from ggshell.connectors.mysql.appliers import open_target
from ggshell.connectors.mysql.checkpoint_sql import MysqlCheckpointTables
from ggshell.connectors.mysql.target import MysqlTarget
from ggshell.connectors.target_setup import TargetSetup
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import PLAIN_SESSION, CheckpointRow, SessionOptions
from ggshell.types import TableName

KEY = 7


class MysqlDeliveries:
    """A database with the table t (id, a, b) and a checkpoint table."""

    def __init__(self, login: str) -> None:
        self.login, self.schema = login, schema_of(login)
        self.table = TableName(self.schema, "checks")
        self.target: MysqlTarget | None = None
        self.execute("CREATE TABLE t (id int PRIMARY KEY, a varchar(100), b decimal(10, 2)) ENGINE = InnoDB")
        with closing(session.connect(login)) as connection:
            MysqlCheckpointTables(connection).create(self.table)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        return execute(self.login, *statements)

    def setup(self, kind: ReplicatKind = ReplicatKind.CLASSIC, options: SessionOptions = PLAIN_SESSION) -> TargetSetup:
        begin = CheckpointRow(BEGIN, None)
        return TargetSetup(
            self.login, "rep1", Path("/home"), kind, self.table, begin, KEY, SystemClock(), options=options
        )

    def start(
        self,
        group: int = 1000,
        *,
        limit: int | None = None,
        discard: DiscardFile | None = None,
        rules: Sequence[MapRule] = (),
        responses: Responses | None = None,
        options: SessionOptions = PLAIN_SESSION,
    ) -> Delivery:
        self.close()
        self.target = open_target(self.setup(options=options))
        delivery = Delivery(
            self.target,
            Mapper(rules or (MapRule("hr.*", f"{self.schema}.*"),), self.target.describe),
            group_operations=group,
            max_operations=limit,
            discard=discard,
            responses=responses,
        )
        delivery.start()
        return delivery

    def content(self) -> dict[int, str | None]:
        return {row[0]: row[1] for row in self.execute("SELECT * FROM t ORDER BY id")}

    def close(self) -> None:
        if self.target is not None:
            self.target.close()
            self.target = None
