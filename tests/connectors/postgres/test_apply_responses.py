"""REPERROR and HANDLECOLLISIONS in a real database: skipped operations, overwritten rows, and remaining errors."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import Replicats, delete, insert, key_update, trail, update

from ggshell.clock import FakeClock
from ggshell.connectors.postgres import session
from ggshell.errors import ApplyError
from ggshell.pipeline.apply import delivery as deliveries
from ggshell.pipeline.apply import groups
from ggshell.pipeline.apply.counters import OperationCounters
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, Response, Switches
from ggshell.pipeline.apply.responses import Responses
from ggshell.record.operation import IoType
from ggshell.types import Csn

DISCARD = [ErrorRule("DEFAULT", Response.DISCARD)]


def rows(replicats: Replicats) -> dict[int, str]:
    with session.connect(replicats.dsn) as connection:
        return dict(connection.execute("SELECT id, a FROM t").fetchall())  # type: ignore[arg-type]


def deliver(replicats: Replicats, transactions: list[Tx], responses: Responses, **options: object) -> Counter[str]:
    """Deliver in groups of three operations; returns the counts."""
    counts: Counter[str] = Counter()
    replicat = replicats.start(
        group=3,
        responses=responses,
        counters=OperationCounters(
            applied=lambda _, __, io_type, number: counts.update({IoType(io_type).name: number}),
            discarded=lambda _, __, ___, number: counts.update({"discards": number}),
            ignored=lambda _, __, ___, number: counts.update({"ignores": number}),
        ),
        **options,  # type: ignore[arg-type]
    )
    for batch in trail(transactions, rows_a_batch=4):
        replicat.feed(batch)
    replicat.flush()
    assert replicat.applied is not None
    assert replicat.applied.csn == Csn(transactions[-1].csn)
    return +counts


def test_discarded_operations_are_written_to_the_file_and_the_rest_of_their_transaction_is_kept(
    replicats: Replicats, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    transactions = [
        Tx(1, [insert(1), insert(2)]),
        Tx(2, [insert(3), insert(1, "twice"), update(9, "nobody"), insert(4)]),
        Tx(3, [delete(8), insert(5)]),
    ]
    counts = deliver(replicats, transactions, Responses(DISCARD), discard=discard)
    assert sorted(rows(replicats)) == [1, 2, 3, 4, 5]
    assert rows(replicats)[1] == "x"
    assert counts == {"INSERT": 5, "discards": 3}
    text = discard.path.read_text()
    assert text.count("Operation failed") == 3
    assert "a = twice" in text
    assert "SQLSTATE 23505" in text


def test_ignored_operations_leave_only_a_count(replicats: Replicats) -> None:
    rules = [ErrorRule("1403", Response.IGNORE)]
    counts = deliver(replicats, [Tx(1, [insert(1), delete(9), update(1, "u")])], Responses(rules))
    assert rows(replicats) == {1: "u"}
    assert counts == {"INSERT": 1, "FIELD_COMP": 1, "ignores": 1}


def test_an_error_without_a_rule_ends_replicat(replicats: Replicats) -> None:
    with pytest.raises(ApplyError, match="duplicate key"):
        deliver(
            replicats,
            [Tx(1, [insert(1)]), Tx(2, [insert(2), insert(1)])],
            Responses([ErrorRule("1403", Response.DISCARD)]),
        )
    assert rows(replicats) == {1: "x"}


def test_with_handlecollisions_the_table_ends_with_the_rows_of_the_source(replicats: Replicats) -> None:
    """The table was copied later than the position from which changes are applied."""
    with session.connect(replicats.dsn) as connection:
        connection.execute("INSERT INTO t VALUES (1, 'final', 1.5), (4, 'final', 1.5), (6, 'final', 1.5)")
    changes: list[Row] = [
        insert(1, "first"), update(1, "final"), insert(2), delete(2), insert(3), key_update(3, 4, "final"),
        key_update(5, 6, "final"), update(7, "gone"), delete(7), insert(8, "new"),
    ]  # fmt: skip
    deliver(
        replicats,
        [Tx(number, [change]) for number, change in enumerate(changes, 1)],
        Responses(switches=Switches(collisions=True)),
    )
    found = rows(replicats)
    assert {key: found[key] for key in (1, 4, 6, 8)} == {1: "final", 4: "final", 6: "final", 8: "new"}
    assert set(found) <= {1, 3, 4, 6, 8}


def test_missing_updates_can_be_inserted(replicats: Replicats) -> None:
    deliver(
        replicats, [Tx(1, [update(1, "u"), key_update(2, 3, "m")])], Responses(switches=Switches(insert_missing=True))
    )
    assert rows(replicats) == {1: "u", 3: "m"}


def test_rules_also_apply_to_a_large_transaction(replicats: Replicats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "LARGE_BYTES", 200)
    monkeypatch.setattr(deliveries, "MARK_BYTES", 150)
    changes = [insert(number % 40, f"v{number}") for number in range(60)]
    counts = deliver(replicats, [Tx(1, changes), Tx(2, [insert(99)])], Responses(DISCARD))
    assert sorted(rows(replicats)) == [*range(40), 99]
    assert all(value == f"v{key}" for key, value in rows(replicats).items() if key != 99)
    assert counts == {"INSERT": 41, "discards": 20}


def test_replicat_abends_after_the_last_retry(replicats: Replicats) -> None:
    rules = [ErrorRule("DEFAULT", Response.RETRYOP, 3)]
    with pytest.raises(ApplyError, match="duplicate key"):
        deliver(replicats, [Tx(1, [insert(1), insert(1)])], Responses(rules))
    assert rows(replicats) == {}


TRANSDISCARD = Responses([ErrorRule("23505", Response.TRANSDISCARD)])


def test_a_refused_transaction_is_discarded_as_a_whole_and_the_others_are_applied(
    replicats: Replicats, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    transactions = [
        Tx(1, [insert(1), insert(2)]),
        Tx(2, [insert(3), update(1, "never"), insert(2, "twice"), delete(1)]),
        Tx(3, [insert(5)]),
    ]
    counts = deliver(replicats, transactions, TRANSDISCARD, discard=discard)
    assert rows(replicats) == {1: "x", 2: "x", 5: "x"}
    assert counts == {"INSERT": 3, "discards": 4}
    assert discard.path.read_text().count("Operation failed") == 4
    restarted = replicats.start(responses=TRANSDISCARD, discard=discard)
    for batch in trail(transactions):
        restarted.feed(batch)
    restarted.flush()
    assert rows(replicats) == {1: "x", 2: "x", 5: "x"}, "neither applied nor discarded a second time"
    assert discard.path.read_text().count("Operation failed") == 4


def test_part_of_a_transaction_is_never_discarded_alone(replicats: Replicats) -> None:
    transactions = [Tx(1, [insert(1)]), Tx(2, [insert(2), insert(3), insert(1), insert(4)])]
    with pytest.raises(ApplyError, match="duplicate key"):
        deliver(replicats, transactions, TRANSDISCARD, limit=2)
    assert 4 not in rows(replicats)


def test_an_error_of_another_rule_ends_replicat_despite_transdiscard(replicats: Replicats) -> None:
    with pytest.raises(ApplyError) as caught:
        deliver(replicats, [Tx(1, [insert(1)]), Tx(2, [insert(2), delete(77)])], TRANSDISCARD)
    assert caught.value.code == "OGG-01403"
    assert rows(replicats) == {1: "x"}
