"""TRANSABORT, TRANSDISCARD and TRANSEXCEPTION in a real database: a whole transaction is tried again, or passed over."""

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
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, ErrorRules, Response
from ggshell.pipeline.apply.mapping import MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.types import Csn

DEFERRED = "ALTER TABLE t ADD CONSTRAINT once UNIQUE (b) DEFERRABLE INITIALLY DEFERRED"
BROKEN_OFF = """
CREATE FUNCTION broken_off() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$;
CREATE TRIGGER broken_off BEFORE INSERT ON t FOR EACH ROW WHEN (NEW.id = 3) EXECUTE FUNCTION broken_off()
"""


def rows(replicats: Replicats) -> list[int]:
    with session.connect(replicats.dsn) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM t ORDER BY id").fetchall()]


def in_target(replicats: Replicats, *statements: str) -> None:
    with session.connect(replicats.dsn) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


def feed(replicat: Delivery, transactions: list[Tx]) -> None:
    """Feed what lies behind the place where the delivery stands, as a run does after every reconnection."""
    batches = trail(transactions, rows_a_batch=4)
    for batch in batches_after(batches, replicat.applied.position) if replicat.applied is not None else batches:
        replicat.feed(batch)
    replicat.flush()


def ended(replicat: Delivery, transactions: list[Tx], again: Callable[[int], object] = lambda _: None) -> list[float]:
    """Deliver as a run does: whenever a transaction is to be begun anew, restart; the pauses that were asked for."""
    pauses: list[float] = []
    while True:
        try:
            feed(replicat, transactions)
        except TransactionAbortedError as error:
            pauses.append(error.pause)
            again(len(pauses))
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


def test_transabort_begins_the_transaction_anew_until_it_succeeds(replicats: Replicats) -> None:
    in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    replicat = replicats.start(group=3, responses=abort("23505"))

    def again(number: int) -> None:
        assert rows(replicats) == [1, 3], "nothing of the transaction stays, what was before it is committed"
        if number == 4:
            in_target(replicats, "DELETE FROM t")
            in_target(replicats, "INSERT INTO t VALUES (1, 'x', 1.5)")

    assert ended(replicat, TRANSACTIONS, again) == [7.0] * 4
    assert rows(replicats) == [1, 2, 3, 4, 5]
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(3)


def test_transabort_ends_behind_its_tries_and_the_discard_file_has_the_row_once(
    replicats: Replicats, tmp_path: Path
) -> None:
    in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    replicat = replicats.start(group=3, responses=abort(retries=2), discard=discard)
    pauses: list[int] = []
    with pytest.raises(ApplyError, match=r"t \(id = 3\) failed: .*duplicate key"):
        ended(replicat, TRANSACTIONS, pauses.append)
    assert pauses == [1, 2]
    assert rows(replicats) == [1, 3]
    assert discard.path.read_text().count("Operation failed") == 1


def test_transabort_counts_the_tries_of_each_transaction(replicats: Replicats) -> None:
    in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0), (5, 'in the way', 0)")
    replicat = replicats.start(group=1, responses=abort(retries=1))
    gone = {1: 3, 2: 5}
    again = lambda number: in_target(replicats, f"DELETE FROM t WHERE id = {gone[number]}")  # noqa: E731
    assert ended(replicat, TRANSACTIONS, again) == [7.0, 7.0]
    assert rows(replicats) == [1, 2, 3, 4, 5]


def test_transabort_says_when_a_deadlock_is_tried_again(replicats: Replicats) -> None:
    in_target(replicats, BROKEN_OFF)
    replicat = replicats.start(responses=abort("60", retries=3))
    dropped = lambda number: number == 2 and in_target(replicats, "DROP TRIGGER broken_off ON t")  # noqa: E731
    assert ended(replicat, TRANSACTIONS, dropped) == [7.0, 7.0]
    assert rows(replicats) == [1, 2, 3, 4, 5]


def test_transabort_answers_a_refused_commit(replicats: Replicats) -> None:
    in_target(replicats, DEFERRED)
    transactions = [Tx(1, [insert(1, b="1")]), Tx(2, [insert(2, b="1"), insert(3, b="3")])]
    replicat = replicats.start(responses=abort("23505", retries=1))
    with pytest.raises(ApplyError, match="refuses to commit transaction"):
        ended(replicat, transactions)
    assert rows(replicats) == [1]
    again = replicats.start(responses=abort("23505", retries=1))
    mended = lambda _: in_target(replicats, "UPDATE t SET b = 9 WHERE id = 1")  # noqa: E731
    assert ended(again, transactions, mended) == [7.0]
    assert rows(replicats) == [1, 2, 3]


@pytest.mark.parametrize("response", [Response.TRANSDISCARD, Response.TRANSEXCEPTION])
def test_a_refused_commit_passes_its_transaction_over(replicats: Replicats, tmp_path: Path, response: Response) -> None:
    in_target(replicats, DEFERRED)
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    transactions = [
        Tx(1, [insert(1, b="1")]),
        Tx(2, [insert(2, b="1"), insert(3, b="3")]),
        Tx(3, [insert(4, b="4")]),
    ]
    replicat = replicats.start(responses=Responses([ErrorRule("23505", response)]), discard=discard)
    assert ended(replicat, transactions) == []
    assert rows(replicats) == [1, 4]
    text = discard.path.read_text()
    assert text.count("Operation failed") == 2
    assert "id = 3" in text


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> list[Tx]:
    """A transaction that is applied while it comes, between two small ones; its last row but one is refused."""
    monkeypatch.setattr(groups, "LARGE_BYTES", 200)
    monkeypatch.setattr(deliveries, "MARK_BYTES", 150)
    changes = [insert(number, f"v{number}") for number in range(10, 70)]
    return [Tx(1, [insert(1)]), Tx(2, [*changes, insert(1, "twice"), insert(99)]), Tx(3, [insert(2)])]


@pytest.mark.parametrize("response", [Response.TRANSDISCARD, Response.TRANSEXCEPTION])
def test_a_large_transaction_is_read_again_to_be_passed_over_whole(
    replicats: Replicats, tmp_path: Path, large: list[Tx], response: Response
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    counts: dict[str, int] = {"applied": 0, "discards": 0}

    def count(what: str) -> Callable[..., None]:
        return lambda _, __, ___, number: counts.update({what: counts[what] + number})

    replicat = replicats.start(
        responses=Responses([ErrorRule("23505", response)]),
        discard=discard,
        counted=count("applied"),
        discarded=count("discards"),
    )
    assert ended(replicat, large) == [0.0]
    assert rows(replicats) == [1, 2]
    assert discard.path.read_text().count("Operation failed") == 62
    assert counts == {"applied": 2, "discards": 62}


def test_a_large_transaction_is_tried_again_from_its_begin(replicats: Replicats, large: list[Tx]) -> None:
    replicat = replicats.start(responses=abort("23505", retries=2))

    def again(number: int) -> None:
        assert rows(replicats) == [1]
        if number == 2:
            in_target(replicats, "UPDATE t SET id = 1000")

    assert ended(replicat, large, again) == [7.0, 7.0]
    assert rows(replicats) == [1, 2, *range(10, 70), 99, 1000]


def test_default2_answers_where_a_table_has_no_exceptions_map(replicats: Replicats, tmp_path: Path) -> None:
    in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    rules = [ErrorRule("DEFAULT", Response.EXCEPTION), ErrorRule("DEFAULT2", Response.DISCARD)]
    replicat = replicats.start(responses=Responses(rules), discard=discard)
    assert ended(replicat, TRANSACTIONS) == []
    assert rows(replicats) == [1, 2, 3, 4, 5]
    assert discard.path.read_text().count("Operation failed") == 1


def test_a_maps_own_rules_come_before_the_files(replicats: Replicats, tmp_path: Path) -> None:
    in_target(replicats, "INSERT INTO t VALUES (3, 'in the way', 0)")
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    own = ErrorRules([ErrorRule("23505", Response.DISCARD)])
    ignored = Responses([ErrorRule("23505", Response.ABEND), ErrorRule("1403", Response.IGNORE)], own_rules=True)
    rules = [MapRule("hr.t", "public.t", refusals=own)]
    replicat = replicats.start(responses=ignored, rules=rules, discard=discard)
    transactions = [*TRANSACTIONS, Tx(4, [update(77, "missing"), insert(6)])]
    assert ended(replicat, transactions) == []
    assert rows(replicats) == [1, 2, 3, 4, 5, 6]
    assert discard.path.read_text().count("Operation failed") == 1


def test_a_maps_own_transabort_says_when_a_deadlock_is_tried_again(replicats: Replicats) -> None:
    in_target(replicats, BROKEN_OFF)
    own = ErrorRules([ErrorRule("40P01", Response.TRANSABORT, 1, 3.0)])
    rules = [MapRule("hr.t", "public.t", refusals=own)]
    replicat = replicats.start(responses=Responses(own_rules=True), rules=rules)
    with pytest.raises(ApplyError, match="deadlock detected"):
        ended(replicat, TRANSACTIONS)
    assert rows(replicats) == [1]
