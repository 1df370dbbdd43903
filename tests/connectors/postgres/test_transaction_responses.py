"""TRANSABORT, TRANSDISCARD and TRANSEXCEPTION in a real database: a whole transaction is retried or skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from batches import Tx
from pipeline.apply.hand_made import Replicats, batches_after, insert, trail, update

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import session
from ggshell.errors import ApplyError, TransactionAbortedError
from ggshell.pipeline.apply import delivery as deliveries
from ggshell.pipeline.apply import groups
from ggshell.pipeline.apply.counters import OperationCounters
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, ErrorRules, Response
from ggshell.pipeline.apply.mapping import MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.types import Csn

DEFERRED = "ALTER TABLE t ADD CONSTRAINT once UNIQUE (b) DEFERRABLE INITIALLY DEFERRED"
DEADLOCK_TRIGGER = """
CREATE FUNCTION broken_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$;
CREATE TRIGGER broken_off BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 3) EXECUTE FUNCTION broken_off()
"""


def rows(replicats: Replicats) -> list[int]:
    with session.connect(replicats.dsn) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM t ORDER BY id").fetchall()]


def execute_in_target(replicats: Replicats, *statements: str) -> None:
    with session.connect(replicats.dsn) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


def feed(replicat: Delivery, transactions: list[Tx]) -> None:
    """Feed the transactions after the position of the delivery, as a run does after every reconnection."""
    batches = trail(transactions, rows_a_batch=4)
    for batch in batches_after(batches, replicat.applied.position) if replicat.applied is not None else batches:
        replicat.feed(batch)
    replicat.flush()


def deliver(
    replicat: Delivery, transactions: list[Tx], before_retry: Callable[[int], object] = lambda _: None
) -> list[float]:
    """Deliver as a run does, with a restart for each repetition of a transaction; returns the pauses that were requested."""
    pauses: list[float] = []
    while True:
        try:
            feed(replicat, transactions)
        except TransactionAbortedError as error:
            pauses.append(error.pause)
            before_retry(len(pauses))
            replicat.restart()
        else:
            return pauses


TRANSACTIONS = [
    Tx(1, [insert(1)]),
    Tx(2, [insert(2), update(1, "second"), insert(3), insert(4)]),
    Tx(3, [insert(5)]),
]


def abort(error: str = "DEFAULT", retries: int | None = None) -> Responses:
    return Responses([ErrorRule(error, Response.TRANSABORT, retries, 7.0)])


def test_transabort_repeats_the_transaction_until_it_succeeds(replicats: Replicats) -> None:
    execute_in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    replicat = replicats.start(group=3, responses=abort("23505"))

    def before_retry(number: int) -> None:
        assert rows(replicats) == [1, 3], "the transaction is rolled back, and earlier ones are committed"
        if number == 4:
            execute_in_target(replicats, "DELETE FROM t")
            execute_in_target(replicats, "INSERT INTO t VALUES (1, 'x', 1.5)")

    assert deliver(replicat, TRANSACTIONS, before_retry) == [7.0] * 4
    assert rows(replicats) == [1, 2, 3, 4, 5]
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(3)


def test_transabort_abends_after_its_retries_and_the_discard_file_has_the_row_once(
    replicats: Replicats, tmp_path: Path
) -> None:
    execute_in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    replicat = replicats.start(group=3, responses=abort(retries=2), discard=discard)
    pauses: list[int] = []
    with pytest.raises(ApplyError, match=r"t \(id = 3\) failed: .*duplicate key"):
        deliver(replicat, TRANSACTIONS, pauses.append)
    assert pauses == [1, 2]
    assert rows(replicats) == [1, 3]
    assert discard.path.read_text().count("Operation failed") == 1


def test_transabort_counts_the_retries_of_each_transaction(replicats: Replicats) -> None:
    execute_in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0), (5, 'in the way', 0)")
    replicat = replicats.start(group=1, responses=abort(retries=1))
    gone = {1: 3, 2: 5}
    before_retry = lambda number: execute_in_target(replicats, f"DELETE FROM t WHERE id = {gone[number]}")  # noqa: E731
    assert deliver(replicat, TRANSACTIONS, before_retry) == [7.0, 7.0]
    assert rows(replicats) == [1, 2, 3, 4, 5]


def test_transabort_applies_to_a_deadlock(replicats: Replicats) -> None:
    execute_in_target(replicats, DEADLOCK_TRIGGER)
    replicat = replicats.start(responses=abort("60", retries=3))
    dropped = lambda number: number == 2 and execute_in_target(replicats, "DROP TRIGGER broken_off ON t")  # noqa: E731
    assert deliver(replicat, TRANSACTIONS, dropped) == [7.0, 7.0]
    assert rows(replicats) == [1, 2, 3, 4, 5]


def test_transabort_applies_to_a_refused_commit(replicats: Replicats) -> None:
    execute_in_target(replicats, DEFERRED)
    transactions = [Tx(1, [insert(1, b="1")]), Tx(2, [insert(2, b="1"), insert(3, b="3")])]
    replicat = replicats.start(responses=abort("23505", retries=1))
    with pytest.raises(ApplyError, match="refuses to commit transaction"):
        deliver(replicat, transactions)
    assert rows(replicats) == [1]
    restarted = replicats.start(responses=abort("23505", retries=1))
    remove_blocking_row = lambda _: execute_in_target(replicats, "UPDATE t SET b = 9 WHERE id = 1")  # noqa: E731
    assert deliver(restarted, transactions, remove_blocking_row) == [7.0]
    assert rows(replicats) == [1, 2, 3]


@pytest.mark.parametrize("response", [Response.TRANSDISCARD, Response.TRANSEXCEPTION])
def test_a_refused_commit_skips_its_transaction(replicats: Replicats, tmp_path: Path, response: Response) -> None:
    execute_in_target(replicats, DEFERRED)
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    transactions = [
        Tx(1, [insert(1, b="1")]),
        Tx(2, [insert(2, b="1"), insert(3, b="3")]),
        Tx(3, [insert(4, b="4")]),
    ]
    replicat = replicats.start(responses=Responses([ErrorRule("23505", response)]), discard=discard)
    assert deliver(replicat, transactions) == []
    assert rows(replicats) == [1, 4]
    text = discard.path.read_text()
    assert text.count("Operation failed") == 2
    assert "id = 3" in text


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> list[Tx]:
    """A transaction that is applied while it is read, between two small ones; its last row but one is refused."""
    monkeypatch.setattr(groups, "LARGE_BYTES", 200)
    monkeypatch.setattr(deliveries, "MARK_BYTES", 150)
    changes = [insert(number, f"v{number}") for number in range(10, 70)]
    return [Tx(1, [insert(1)]), Tx(2, [*changes, insert(1, "twice"), insert(99)]), Tx(3, [insert(2)])]


@pytest.mark.parametrize("response", [Response.TRANSDISCARD, Response.TRANSEXCEPTION])
def test_a_large_transaction_is_read_again_to_be_skipped_as_a_whole(
    replicats: Replicats, tmp_path: Path, large: list[Tx], response: Response
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    counts: dict[str, int] = {"applied": 0, "discards": 0}

    def count(what: str) -> Callable[..., None]:
        return lambda _, __, ___, number: counts.update({what: counts[what] + number})

    replicat = replicats.start(
        responses=Responses([ErrorRule("23505", response)]),
        discard=discard,
        counters=OperationCounters(applied=count("applied"), discarded=count("discards")),
    )
    assert deliver(replicat, large) == [0.0]
    assert rows(replicats) == [1, 2]
    assert discard.path.read_text().count("Operation failed") == 62
    assert counts == {"applied": 2, "discards": 62}


def test_a_large_transaction_is_repeated_from_its_beginning(replicats: Replicats, large: list[Tx]) -> None:
    replicat = replicats.start(responses=abort("23505", retries=2))

    def before_retry(number: int) -> None:
        assert rows(replicats) == [1]
        if number == 2:
            execute_in_target(replicats, "UPDATE t SET id = 1000")

    assert deliver(replicat, large, before_retry) == [7.0, 7.0]
    assert rows(replicats) == [1, 2, *range(10, 70), 99, 1000]


def test_default2_applies_to_a_table_without_an_exceptions_map(replicats: Replicats, tmp_path: Path) -> None:
    execute_in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    rules = [ErrorRule("DEFAULT", Response.EXCEPTION), ErrorRule("DEFAULT2", Response.DISCARD)]
    replicat = replicats.start(responses=Responses(rules), discard=discard)
    assert deliver(replicat, TRANSACTIONS) == []
    assert rows(replicats) == [1, 2, 3, 4, 5]
    assert discard.path.read_text().count("Operation failed") == 1


def test_rules_of_a_map_take_precedence_over_rules_of_the_file(replicats: Replicats, tmp_path: Path) -> None:
    execute_in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    own = ErrorRules([ErrorRule("23505", Response.DISCARD)])
    ignored = Responses([ErrorRule("23505", Response.ABEND), ErrorRule("1403", Response.IGNORE)], own_rules=True)
    rules = [MapRule("hr.t", "public.t", refusals=own)]
    replicat = replicats.start(responses=ignored, rules=rules, discard=discard)
    transactions = [*TRANSACTIONS, Tx(4, [update(77, "missing"), insert(6)])]
    assert deliver(replicat, transactions) == []
    assert rows(replicats) == [1, 2, 3, 4, 5, 6]
    assert discard.path.read_text().count("Operation failed") == 1


def test_transabort_of_a_map_applies_to_a_deadlock(replicats: Replicats) -> None:
    execute_in_target(replicats, DEADLOCK_TRIGGER)
    own = ErrorRules([ErrorRule("40P01", Response.TRANSABORT, 1, 3.0)])
    rules = [MapRule("hr.t", "public.t", refusals=own)]
    replicat = replicats.start(responses=Responses(own_rules=True), rules=rules)
    with pytest.raises(ApplyError, match="deadlock detected"):
        deliver(replicat, TRANSACTIONS)
    assert rows(replicats) == [1]
