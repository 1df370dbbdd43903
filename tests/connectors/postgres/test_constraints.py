"""DBOPTIONS DEFERREFCONST and SUPPRESSTRIGGERS: rows that refer to each other, changed by one statement in the source."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import BEGIN, CHECKPOINTS, Replicats, image, trail

from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.appliers import ApplierTarget
from ggshell.connectors.postgres.checkpoint_sql import PostgresCheckpointTables
from ggshell.connectors.postgres.target import PostgresTarget
from ggshell.errors import ApplyError, DatabaseError
from ggshell.parameters.loading import load_replicat
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.target import PLAIN_SESSION, CheckpointRow, SessionOptions
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

RING = TableDefinition(TableName("hr", "ring"), (Column("id", "integer"), Column("other", "integer")), (0,))
StartDelivery = Callable[[SessionOptions], Delivery]


def classic(dsn: str, options: SessionOptions) -> PostgresTarget:
    return PostgresTarget(dsn, "rep1", "/home", CHECKPOINTS, BEGIN, options=options)


def applier(dsn: str, options: SessionOptions) -> PostgresTarget:
    row = CheckpointRow(BEGIN, None)
    numbers = itertools.count(1)
    return ApplierTarget(dsn, "rep1", "/home", CHECKPOINTS, row, number=0, numbers=numbers, options=options)


@pytest.fixture(params=[classic, applier])
def start_delivery(replicats: Replicats, request: pytest.FixtureRequest) -> Iterator[StartDelivery]:
    """Deliveries to a table whose rows 1 to 3 refer to each other in a ring, and whose trigger records each delete."""
    with session.connect(replicats.dsn) as connection:
        connection.execute("CREATE TABLE ring (id int PRIMARY KEY, other int REFERENCES ring)")
        connection.execute("INSERT INTO ring VALUES (1, NULL), (2, 1), (3, 2); UPDATE ring SET other = 3 WHERE id = 1")
    targets: list[PostgresTarget] = []

    def started(options: SessionOptions) -> Delivery:
        targets.append(request.param(replicats.dsn, options))
        mapper = Mapper([MapRule("hr.*", "public.*")], targets[-1].describe)
        delivery = Delivery(targets[-1], mapper, applier=request.param is applier)
        delivery.start()
        return delivery

    yield started
    for target in targets:
        target.close()


def delete_all(delivery: Delivery) -> None:
    """The rows of one ``DELETE FROM ring`` in the trail."""
    rows = [Row(RING, IoType.DELETE, image(str(n))) for n in (1, 2, 3)]
    for batch in trail([Tx(1, rows)]):
        delivery.feed(batch)
    delivery.flush()


def remaining_rows(replicats: Replicats) -> int:
    with session.connect(replicats.dsn) as connection:
        return len(connection.execute("SELECT FROM ring").fetchall())


def test_a_ring_of_rows_is_deleted_with_deferred_constraints(
    start_delivery: StartDelivery, replicats: Replicats
) -> None:
    with session.connect(replicats.dsn) as connection:
        connection.execute("ALTER TABLE ring ALTER CONSTRAINT ring_other_fkey DEFERRABLE")
    delete_all(start_delivery(SessionOptions(defer_constraints=True)))
    assert not remaining_rows(replicats)


def test_a_ring_of_rows_is_deleted_with_suppressed_triggers(
    start_delivery: StartDelivery, replicats: Replicats
) -> None:
    delete_all(start_delivery(SessionOptions(suppress_triggers=True)))
    assert not remaining_rows(replicats)


def test_the_error_for_a_foreign_key_offers_both_options(start_delivery: StartDelivery, replicats: Replicats) -> None:
    with pytest.raises(ApplyError, match="SQLSTATE 23503") as raised:
        delete_all(start_delivery(PLAIN_SESSION))
    assert "DBOPTIONS DEFERREFCONST" in raised.value.hint
    assert "DBOPTIONS SUPPRESSTRIGGERS" in raised.value.hint
    assert remaining_rows(replicats) == 3


def test_a_user_who_may_not_suppress_triggers_is_shown_the_required_grant(south: str) -> None:
    with session.connect(south) as connection:
        PostgresCheckpointTables(connection).create(CHECKPOINTS)
        connection.execute("DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
    plain = psycopg.conninfo.make_conninfo(south, user="plain")
    options = SessionOptions(suppress_triggers=True)
    with pytest.raises(DatabaseError, match="SUPPRESSTRIGGERS failed") as raised:
        classic(plain, options)
    assert "GRANT SET ON PARAMETER session_replication_role" in raised.value.hint
    with session.connect(south) as connection:
        connection.execute("GRANT SET ON PARAMETER session_replication_role TO plain")
    classic(plain, options).close()


def test_the_options_are_read_from_the_parameter_file(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    text = "REPLICAT rep1\nDBOPTIONS SUPPRESSTRIGGERS\nDBOPTIONS {}\nMAP a.*, TARGET b.*;\n"
    found = []
    for last in ("DEFERREFCONST", "NOSUPPRESSTRIGGERS", "DEFERREFCONST, NOSUPPRESSTRIGGERS"):
        path.write_text(text.format(last))
        loaded = load_replicat(path)
        found.append((loaded.suppress_triggers, loaded.defer_constraints))
    assert found == [(True, True), (False, False), (False, True)]
