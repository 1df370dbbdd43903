"""Applying mapped rows: a crash after any batch loses nothing and applies nothing twice."""

from __future__ import annotations

import pytest
from batches import Tx
from pipeline.apply.hand_made import (
    BEGIN,
    CHECKPOINTS,
    Replicats,
    batches_after,
    delete,
    insert,
    key_update,
    trail,
    update,
)

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.language.clauses import ColumnMap, parse_clause
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.row_mapping import RowMapping
from ggshell.pipeline.transform.clauses import Clauses, Conversion
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.stage import Stage

TRAIL = [
    Tx(1, [insert(1), insert(2), update(1, "y"), insert(3), insert(4), insert(5), delete(4)]),
    Tx(2, [key_update(1, 10, "z")]),
    Tx(3, [update(2, "w"), insert(6), insert(7)]),
    Tx(4, [delete(3)]),
]
EXPECTED_ROWS = [(2, "W"), (5, "X"), (6, "X"), (7, "X"), (10, "Z")]
EXPECTED_HISTORY = 12


def rules() -> list[MapRule]:
    column_map = parse_clause("colmap", "(USEDEFAULTS, a = @STRUP (a))")
    history = parse_clause("colmap", "(id = id, what = GGS_OP_TYPE)")
    assert isinstance(column_map, ColumnMap)
    assert isinstance(history, ColumnMap)
    return [
        MapRule("hr.t", "public.t", clauses=Clauses(column_map=column_map)),
        MapRule(
            "hr.t",
            "public.history",
            clauses=Clauses(column_map=history, conversions=frozenset({Conversion.ALL_RECORDS})),
        ),
    ]


class Run:
    """The life of one process: a target, a delivery, and the mapping stage before it."""

    def __init__(self, dsn: str, limit: int | None) -> None:
        self.target = PostgresTarget(dsn, "rep1", "/home", CHECKPOINTS, BEGIN)
        mapper = Mapper(rules(), self.target.describe)
        self.delivery = Delivery(self.target, mapper, group_operations=3, max_operations=limit)
        self.stage = Stage(RowMapping(rules(), mapper, Environment(), self.delivery.flush).programs)
        found = self.delivery.start()
        self.position = found.position if found is not None else BEGIN


@pytest.mark.parametrize("limit", [None, 4])
def test_a_crash_after_any_batch(replicats: Replicats, limit: int | None) -> None:
    batches = trail(TRAIL, rows_a_batch=2)
    with session.connect(replicats.dsn) as connection:
        connection.execute("CREATE TABLE public.history (id integer, what text)")
        for crash in range(len(batches) + 1):
            connection.execute("TRUNCATE public.t, public.history")
            connection.execute(f"DELETE FROM {CHECKPOINTS}")
            first = Run(replicats.dsn, limit)
            for batch in batches[:crash]:
                first.delivery.feed(first.stage.run(batch))
            first.target.close()
            second = Run(replicats.dsn, limit)
            for batch in batches_after(batches, second.position):
                second.delivery.feed(second.stage.run(batch))
            second.delivery.flush()
            second.target.close()
            assert connection.execute("SELECT id, a FROM public.t ORDER BY id").fetchall() == EXPECTED_ROWS, crash
            found = connection.execute("SELECT count(*) FROM public.history").fetchone()
            assert found == (EXPECTED_HISTORY,), crash
