"""A target database with a table and a checkpoint table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pipeline.apply.hand_made import CHECKPOINTS, Replicats

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables


@pytest.fixture
def replicats(south: str) -> Iterator[Replicats]:
    with session.connect(south) as connection:
        connection.execute("CREATE TABLE public.t (id integer PRIMARY KEY, a text, b numeric)")
        PostgresCheckpointTables(connection).create(CHECKPOINTS)
    made = Replicats(south)
    yield made
    made.close()
