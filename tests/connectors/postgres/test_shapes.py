"""A target table that changes between any two steps of a delivery: the transaction fails, and succeeds when it is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import Replicats, Value, batches_after, image, insert, trail

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import apply_wire, session
from ggshell.connectors.postgres.apply_wire import ApplyStep
from ggshell.errors import ApplyError, TargetChangedError
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, Response
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

EXACT = "0.123456789012345"
BIG = "9876543210"
COPIED = 40
"""So many rows of a transaction are applied with COPY rather than one by one."""


def execute(replicats: Replicats, *statements: str) -> list[tuple[object, ...]]:
    with session.connect(replicats.dsn) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return [(*row,) for row in cursor.fetchall()] if cursor.description else []


def make_real_again(replicats: Replicats) -> None:
    """Change column b to a type that cannot store EXACT, and remove its values."""
    execute(replicats, "TRUNCATE t", "ALTER TABLE t ALTER b TYPE real")


CHANGES = {
    "another type": "ALTER TABLE t ALTER b TYPE double precision",
    "a table in its place": "BEGIN; ALTER TABLE t RENAME TO u; CREATE TABLE t (id int PRIMARY KEY, a text, b float8); COMMIT",
    "a table dropped and made again": "BEGIN; DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, b float8, a text); COMMIT",
    "columns that change names": "ALTER TABLE t RENAME b TO c; ALTER TABLE t ADD b float8",
    "a column added": "ALTER TABLE t ADD c int; ALTER TABLE t ALTER b TYPE float8",
    "a column dropped and added": "ALTER TABLE t DROP b; ALTER TABLE t ADD b float8",
    "a schema in its place": "ALTER SCHEMA public RENAME TO older; CREATE SCHEMA public;"
    " CREATE TABLE public.t (id int PRIMARY KEY, a text, b float8); ALTER TABLE older.ggs_checkpoint SET SCHEMA public;"
    " ALTER TABLE older.ggs_checkpoint_lox SET SCHEMA public",
}


@pytest.mark.parametrize("size", [1, COPIED], ids=["row by row", "copied"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_table_is_described_again_before_anything_is_committed(
    replicats: Replicats, change: str, size: int
) -> None:
    make_real_again(replicats)
    batches = trail([Tx(n, [insert(100 * n + k, b=EXACT) for k in range(size)]) for n in (1, 2)], rows_a_batch=size)
    replicat = replicats.start()
    replicat.feed(batches[0])
    replicat.flush()
    execute(replicats, change)
    with pytest.raises(TargetChangedError, match=r'"public"\."t"'):
        for batch in batches[1:]:
            replicat.feed(batch)
            replicat.flush()
    assert execute(replicats, "SELECT count(*) FROM t WHERE id >= 200") == [(0,)]
    replicat = replicats.start()
    assert replicat.applied is not None
    for batch in batches_after(batches, replicat.applied.position):
        replicat.feed(batch)
    replicat.flush()
    assert execute(replicats, "SELECT DISTINCT b::text FROM t WHERE id >= 200") == [(EXACT,)]
    assert execute(replicats, "SELECT count(*) FROM t WHERE id >= 200") == [(size,)]


def test_a_type_changed_and_changed_back_between_transactions_does_no_harm(replicats: Replicats) -> None:
    """The types are those for which the statements were prepared."""
    batches = trail([Tx(n, [insert(n, b=EXACT)]) for n in range(1, 30)], rows_a_batch=1)
    replicat = replicats.start(group=1)
    for batch in batches:
        replicat.feed(batch)
        replicat.flush()
        execute(replicats, "ALTER TABLE t ALTER b TYPE text", "ALTER TABLE t ALTER b TYPE numeric USING b::numeric")
    assert execute(replicats, "SELECT count(*), sum(id), min(b::text), max(b::text) FROM t") == [
        (29, sum(range(1, 30)), EXACT, EXACT)
    ]


def test_a_check_that_is_prepared_again_detects_earlier_changes(
    replicats: Replicats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statement was dropped, and is prepared after the table has changed."""
    monkeypatch.setattr(apply_wire, "MOST_PREPARED", 2)
    make_real_again(replicats)
    execute(replicats, "CREATE TABLE u (id int PRIMARY KEY, a text, b numeric)")
    other = TableDefinition(TableName("hr", "u"), insert(1).table.columns, (0,))
    replicat = replicats.start(group=1)
    replicat.feed(trail([Tx(1, [insert(1)])])[0])
    replicat.flush()
    target = replicats.target
    assert target is not None
    known = [text for text in target._wire._names if "NULL::" in text]
    assert known
    for n in range(2, 30):
        columns = (0, 1, 2)[: 1 + n % 3]
        row = Row(other, IoType.INSERT, image(*(str(n), "x", "1")[: len(columns)], columns=columns))
        replicat.feed(trail([Tx(n, [row])])[0])
        replicat.flush()
    assert not {*target._wire._names, *target._wire._older} & {*known}
    execute(replicats, "ALTER TABLE t ALTER b TYPE double precision")
    with pytest.raises(TargetChangedError, match=r'"public"\."t"'):
        replicat.feed(trail([Tx(30, [insert(30, b=EXACT)])])[0])
        replicat.flush()


def test_a_statement_whose_first_use_failed_is_prepared_again(replicats: Replicats) -> None:
    """It may be prepared, but for unknown types."""
    replicats.start()
    target = replicats.target
    assert target is not None
    wire = target._wire
    for divisor, state in (("0", "22012"), ("0", "22012"), ("1", "")):
        refusal = wire.send([ApplyStep("SELECT 5", (), opening=ApplyStep(f"SELECT 1 / {divisor}"))]) or wire.collect()
        assert (refusal.state if refusal is not None else "") == state
    known = ApplyStep("SELECT 5", (), opening=ApplyStep("SELECT 1 / 0"))
    assert (wire.send([known]) or wire.collect()) is None


def test_a_generated_column_that_becomes_an_ordinary_one_is_filled(replicats: Replicats) -> None:
    """Its type does not change, so comparing types does not show it."""
    execute(replicats, "ALTER TABLE t DROP b", "ALTER TABLE t ADD b numeric GENERATED ALWAYS AS (id * 2) STORED")
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(1, b="1")])])[0])
    replicat.flush()
    execute(replicats, "ALTER TABLE t ALTER b DROP EXPRESSION")
    (batch,) = trail([Tx(2, [insert(2, b="7")])])
    with pytest.raises(TargetChangedError):
        replicat.feed(batch)
        replicat.flush()
    replicat = replicats.start()
    replicat.feed(batch)
    replicat.flush()
    assert execute(replicats, "SELECT id, b FROM t ORDER BY id") == [(1, 2), (2, 7)]


def test_a_row_that_only_the_previous_type_refuses_is_not_discarded(replicats: Replicats, tmp_path: Path) -> None:
    execute(replicats, "ALTER TABLE t ALTER b TYPE int")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    responses = Responses([ErrorRule("DEFAULT", Response.DISCARD)])
    batches = trail([Tx(1, [insert(1, b="1")]), Tx(2, [insert(2, b=BIG)])], rows_a_batch=1)
    replicat = replicats.start(responses=responses, discard=discard)
    replicat.feed(batches[0])
    replicat.flush()
    execute(replicats, "ALTER TABLE t ALTER b TYPE bigint")
    with pytest.raises(TargetChangedError):
        replicat.feed(batches[1])
        replicat.flush()
    replicat = replicats.start(responses=responses, discard=discard)
    replicat.feed(batches[1])
    replicat.flush()
    assert execute(replicats, "SELECT b FROM t WHERE id = 2") == [(int(BIG),)]
    assert not discard.path.exists()


def test_an_error_of_one_group_is_final_only_if_its_own_tables_are_unchanged(replicats: Replicats) -> None:
    """The answer arrives while the next group, for another table, is being sent."""
    execute(replicats, "CREATE TABLE u (id int PRIMARY KEY, a text, b numeric)", "ALTER TABLE t ALTER b TYPE int")
    other = TableDefinition(TableName("hr", "u"), insert(1).table.columns, (0,))
    row = Row(other, IoType.INSERT, image("7", "x", "1"))
    batches = trail([Tx(1, [insert(1, b="1"), row]), Tx(2, [insert(2, b=BIG)]), Tx(3, [row])], rows_a_batch=2)
    replicat = replicats.start(group=1)
    replicat.feed(batches[0])
    replicat.flush()
    execute(replicats, "ALTER TABLE t ALTER b TYPE bigint")
    with pytest.raises(TargetChangedError, match=r'table "public"\."t" has'):
        replicat.feed(batches[1])
        replicat.flush()


def test_the_check_sees_the_current_catalog_at_any_isolation_level(replicats: Replicats) -> None:
    execute(
        replicats,
        "CREATE TABLE u (id int PRIMARY KEY, a text, b real)",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''',"
        " current_database()); END $$",
    )
    other = TableDefinition(TableName("hr", "u"), insert(1).table.columns, (0,))

    def of_other(n: int, b: Value) -> Row:
        return Row(other, IoType.INSERT, image(str(n), "x", b))

    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [of_other(1, "1")])])[0])
    replicat.flush()
    target = replicats.target
    assert target is not None
    mapper = Mapper([MapRule("hr.*", "public.*")], target.describe)
    (batch,) = trail([Tx(2, [insert(2), of_other(2, EXACT)])])
    mappings = {n: found for n, table in enumerate(batch.tables) if (found := mapper.resolve(table)) is not None}
    assert target.apply(batch, 0, 1, mappings) is None
    assert target.await_answers() is None
    execute(replicats, "ALTER TABLE u ALTER b TYPE double precision")
    assert target.apply(batch, 1, 2, mappings) is None
    row = target.checkpoint()
    assert row is not None
    with pytest.raises(TargetChangedError):
        assert target.commit(row) is None
        target.await_answers()
    assert execute(replicats, "SELECT count(*) FROM t, u WHERE t.id = 2 OR u.id = 2") == [(0,)]


def test_a_source_definition_that_arrives_after_the_target_changed_ends_the_session(replicats: Replicats) -> None:
    """The new definition is described again, and its statements have the text of statements prepared before."""
    make_real_again(replicats)
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(1)])])[0])
    replicat.flush()
    execute(replicats, "ALTER TABLE t ALTER b TYPE double precision")
    columns = (*insert(1).table.columns[:2], Column("b", "double precision"))
    later = TableDefinition(TableName("hr", "t"), columns, (0,))
    (batch,) = trail([Tx(2, [Row(later, IoType.INSERT, image("2", "x", EXACT))])])
    with pytest.raises(TargetChangedError):
        replicat.feed(batch)
    replicat = replicats.start()
    replicat.feed(batch)
    replicat.flush()
    assert execute(replicats, "SELECT b::text FROM t WHERE id = 2") == [(EXACT,)]


def test_the_error_for_a_dropped_table_names_the_table_not_the_statement(replicats: Replicats) -> None:
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(1)])])[0])
    replicat.flush()
    execute(replicats, "DROP TABLE t")
    (batch,) = trail([Tx(2, [insert(2)])])
    with pytest.raises(TargetChangedError):
        replicat.feed(batch)
        replicat.flush()
    with pytest.raises(ApplyError, match=r"target table public\.t does not exist"):
        replicats.start().feed(batch)


def test_more_statement_shapes_than_are_kept_prepared(replicats: Replicats, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes are dropped by name: psycopg's own prepared statements stay, and so do those in use."""
    monkeypatch.setattr(apply_wire, "MOST_PREPARED", 8)
    names = [f"c{n}" for n in range(30)]
    execute(replicats, f"CREATE TABLE wide (id int PRIMARY KEY, {', '.join(name + ' int' for name in names)})")
    wide = TableDefinition(TableName("hr", "wide"), tuple(Column(n, "integer") for n in ("id", *names)), (0,))
    replicat = replicats.start(group=3)
    assert replicats.target is not None
    for turn in range(3):
        for place in range(1, 31):
            number = 100 * turn + place
            row = Row(wide, IoType.INSERT, image(str(number), "5", columns=(0, place)))
            second_row = Row(wide, IoType.FIELD_COMP, image(str(number), "6", columns=(0, place)))
            for batch in trail([Tx(2 * number, [row]), Tx(2 * number + 1, [second_row])]):
                replicat.feed(batch)
            replicat.flush()
            replicats.target.describe(TableName("public", "wide"))
    assert execute(replicats, "SELECT count(*), sum(c0), sum(c29) FROM wide") == [(90, 18, 18)]
    assert len(replicats.target._wire._names) <= 8 + 4
