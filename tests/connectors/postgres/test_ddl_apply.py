"""Delivery of DDL statements between rows: in order, exactly once, in one target transaction."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from batches import Row, Tx
from connectors.postgres.ddl_batches import (
    NEW,
    WIDER,
    add_column,
    create_made,
    ddl,
    feed,
    made,
    query,
    run,
    wider,
)
from pipeline.apply.hand_made import Replicats, batches_after, image, insert, trail, update

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.ddl_parts import ddl_parts
from ggshell.record.definition import Column
from ggshell.record.operation import IoType
from ggshell.types import Csn

MIXED: Sequence[Tx] = (
    Tx(1, [insert(1)]),
    Tx(
        2,
        [
            insert(2),
            create_made(),
            made(1),
            add_column(),
            made(2),
            wider(3, "new"),
            *[wider(n, "many") for n in range(10, 60)],
        ],
    ),
    Tx(3, [wider(4, "later"), made(3)]),
    Tx(4, [ddl("DROP TABLE hr.made", "DROP TABLE", NEW.name)]),
    Tx(5, [wider(5, "last")]),
)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 1000])
def test_statements_and_rows_are_applied_in_order(replicats: Replicats, rows: int) -> None:
    replicat = replicats.start()
    feed(replicat, trail(MIXED, rows_a_batch=rows))
    assert query(replicats, "SELECT count(*), count(c), min(c) FROM t") == [(55, 53, "last")]
    assert query(replicats, "SELECT to_regclass('public.made')") == [(None,)]
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(5)


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_split_transactions_contain_statements(replicats: Replicats, limit: int) -> None:
    for _ in range(2):
        feed(replicats.start(limit=limit), trail(MIXED, rows_a_batch=4))
    assert query(replicats, "SELECT count(*), count(c) FROM t") == [(55, 53)]


@pytest.mark.parametrize("limit", [None, 3])
def test_an_interruption_at_any_place_applies_everything_once(replicats: Replicats, limit: int | None) -> None:
    batches = [part for batch in trail(MIXED, rows_a_batch=3) for part in ddl_parts(batch)]
    for place in range(len(batches)):
        run(
            replicats,
            "DROP TABLE t",
            "DROP TABLE IF EXISTS made",
            "CREATE TABLE t (id integer PRIMARY KEY, a text, b numeric)",
            "TRUNCATE ggs_checkpoint",
        )
        replicat = replicats.start(limit=limit)
        for part in batches[:place]:
            replicat.feed(part)
        again = replicats.start(limit=limit)  # closes the connection without a commit
        assert again.applied is not None
        feed(again, batches_after(trail(MIXED, rows_a_batch=3), again.applied.position))
        assert query(replicats, "SELECT count(*), count(c) FROM t") == [(55, 53)], place
        assert query(replicats, "SELECT to_regclass('public.made')") == [(None,)]


def test_a_statement_without_a_handler_stops_and_leaves_nothing(replicats: Replicats) -> None:
    replicat = replicats.start()
    wrong = ddl("ALTER TABLE hr.t ADD COLUMN a text", "ALTER TABLE")
    with pytest.raises(
        ApplyError, match=r"refuses ALTER TABLE of hr\.t: column \"a\".*statement: ALTER TABLE hr\.t ADD"
    ) as raised:
        feed(replicat, trail([Tx(1, [insert(1)]), Tx(2, [insert(2), create_made(), made(1), wrong])]))
    assert raised.value.code == "OGG-00519"
    assert raised.value.place is not None
    assert query(replicats, "SELECT id FROM t") == [(1,)]
    assert query(replicats, "SELECT to_regclass('public.made')") == [(None,)]


def test_updates_use_the_types_after_a_change(replicats: Replicats) -> None:
    replicat = replicats.start()
    changed = WIDER._replace(columns=(Column("id", "integer"), Column("a", "text"), Column("b", "text")))
    rows = [insert(n, "x", "1.50") for n in range(3)] + [update(n, "y", "2.50") for n in range(3)]
    after = [Row(changed, IoType.FIELD_COMP, image(str(n), "z", "text")) for n in range(3)]
    alter = ddl("ALTER TABLE hr.t ALTER COLUMN b TYPE text", "ALTER TABLE")
    feed(
        replicat,
        trail([Tx(1, rows), Tx(2, [*[update(n, "w", "3.50") for n in range(3)], alter, *after[:2]]), Tx(3, after[2:])]),
    )
    assert set(query(replicats, "SELECT a, b FROM t")) == {("z", "text")}
