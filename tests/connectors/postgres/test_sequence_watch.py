"""Sequences whose values cannot be captured are reported, and those that cannot be read are not left out silently."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import ddl_capture_sql, sequence_values, session
from ggshell.connectors.postgres.sealed_messages import sealed
from ggshell.connectors.postgres.sequence_watch import SequenceWatch
from ggshell.connectors.postgres.table_logging import PostgresTableLogging
from ggshell.errors import DatabaseError
from ggshell.home.events import Severity
from ggshell.types import TableName


@pytest.fixture
def clerk(north: str) -> Iterator[psycopg.Connection]:
    """A user who may read one of two sequences."""
    with session.connect(north) as owner:
        owner.execute("CREATE SCHEMA s; CREATE SEQUENCE s.seen; CREATE SEQUENCE s.hidden; SELECT nextval('s.seen')")
        owner.execute("CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA s TO clerk; GRANT SELECT ON s.seen TO clerk")
        try:
            with session.connect(f"{north} user=clerk") as connection:
                yield connection
        finally:
            owner.execute("DROP OWNED BY clerk; DROP ROLE clerk")


def test_a_sequence_that_the_user_may_not_read_is_reported_once(clerk: psycopg.Connection) -> None:
    lines: list[str] = []

    def tell(severity: Severity, code: str, text: str) -> None:
        lines.append(f"{code} {text}")

    clock = FakeClock()
    watch = SequenceWatch(lambda name: name.owner == "s", tell, clock)
    for _ in range(2):
        watch.check(clerk)
        clock.advance(1000)
    assert len(lines) == 1
    assert lines[0].startswith("GGS-00598 The values of sequence s.hidden are not captured")


def test_exact_values_are_refused_if_a_sequence_cannot_be_read(clerk: psycopg.Connection) -> None:
    with pytest.raises(DatabaseError, match=r"may not read sequence s\.hidden"):
        sequence_values.flush(clerk, "s.*")
    with pytest.raises(DatabaseError, match=r"may not read sequence s\.hidden"):
        sequence_values.read_all(clerk, lambda name: name.owner == "s")
    (value,) = sequence_values.read_all(clerk, lambda name: name == TableName("s", "seen"))
    assert (value.last, value.called) == (1, True)


def test_exact_values_are_read_after_schematrandata_was_deleted_and_added_again(north: str) -> None:
    with session.connect(north) as owner:
        owner.execute("CREATE SCHEMA s")
        logging = PostgresTableLogging(owner)
        logging.add_schema("s", all_columns=False)
        watch = SequenceWatch(lambda _: True, lambda *_: None, FakeClock())
        watch.begin(owner)
        watch.connection = owner
        logging.delete_schema("s")
        logging.add_schema("s", all_columns=False)
        body = json.dumps({"xid": 7, "values": [["s", "used", 5, True, 1, 0, True]]})
        (value,) = watch.values(7, sealed(ddl_capture_sql.secret(owner) or "", body).encode())
        assert (str(value.name), value.last, value.exact) == ("s.used", 5, True)
        assert watch.values(7, sealed("another", body).encode()) == []
        logging.delete_schema("s")
