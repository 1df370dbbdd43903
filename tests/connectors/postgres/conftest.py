"""A target database with a table and a checkpoint table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pipeline.apply.hand_made import CHECKPOINTS, Replicats

from ggshell.connectors.postgres import checkpoint_sql, session


@pytest.fixture
def replicats(south: str) -> Iterator[Replicats]:
    with session.connect(south) as connection:
        connection.execute("CREATE TABLE public.t (id integer PRIMARY KEY, a text, b numeric)")
        checkpoint_sql.create(connection, CHECKPOINTS)
    made = Replicats(south)
    yield made
    made.close()
