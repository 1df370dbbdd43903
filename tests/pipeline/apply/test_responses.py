"""Which answer a refusal gets."""

from __future__ import annotations

import pytest
from batches import Tx
from pipeline.apply.hand_made import delete, insert, move, trail, update

from ggshell.pipeline.apply.error_rules import ErrorRule, Response, states
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import Refusal
from ggshell.record.operation import IoType
from ggshell.types import TableName

DUPLICATE, MISSING = Refusal("duplicate", "23505"), Refusal("no row", missing=True)
DISCARD, IGNORE, ABEND = Response.DISCARD, Response.IGNORE, Response.ABEND


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        ("1403", ("02000",)),
        ("-1403", ("02000",)),
        ("ORA-01403", ("02000",)),
        ("0001", ("23505",)),
        ("23505", ("23505",)),
        ("22p02", ("22P02",)),
        ("DEFAULT", ("DEFAULT",)),
    ],
)
def test_errors_are_named_by_sqlstate_or_by_older_numbers(error: str, meant: tuple[str, ...]) -> None:
    assert states(error) == meant


@pytest.mark.parametrize(
    ("rules", "refusal", "response"),
    [
        ([], DUPLICATE, ABEND),
        ([ErrorRule("DEFAULT", DISCARD)], DUPLICATE, DISCARD),
        ([ErrorRule("1403", IGNORE), ErrorRule("DEFAULT", DISCARD)], MISSING, IGNORE),
        ([ErrorRule("1403", IGNORE), ErrorRule("DEFAULT", DISCARD)], DUPLICATE, DISCARD),
        ([ErrorRule("23505", IGNORE), ErrorRule("1", ABEND)], DUPLICATE, ABEND),
        ([ErrorRule("DEFAULT", DISCARD), ErrorRule("DEFAULT", ABEND)], MISSING, ABEND),
    ],
)
def test_the_last_rule_for_an_error_counts_before_the_default(
    rules: list[ErrorRule], refusal: Refusal, response: Response
) -> None:
    assert Responses(rules).to(refusal).response is response


def test_nothing_is_answered_without_rules() -> None:
    assert not Responses([ErrorRule("1", ABEND)]).active
    assert Responses([ErrorRule("1", DISCARD)]).active
    assert Responses(collisions=True).active


BATCH = trail([Tx(1, [insert(1), update(1, "u"), move(1, 2), delete(2)])])[0]
INSERT, UPDATE, MOVE, DELETE = range(4)


@pytest.mark.parametrize(
    ("row", "refusal", "switches", "becomes", "left_out"),
    [
        (INSERT, DUPLICATE, {"collisions": True}, IoType.FIELD_COMP, False),
        (INSERT, DUPLICATE, {"override_duplicates": True}, IoType.FIELD_COMP, False),
        (INSERT, Refusal("null", "23502"), {"collisions": True}, None, False),
        (UPDATE, MISSING, {"collisions": True}, None, True),
        (UPDATE, MISSING, {"insert_missing": True}, IoType.INSERT, False),
        (UPDATE, MISSING, {"override_duplicates": True}, None, False),
        (MOVE, MISSING, {"collisions": True}, IoType.INSERT, False),
        (DELETE, MISSING, {"collisions": True}, None, True),
        (DELETE, MISSING, {"insert_missing": True}, None, False),
    ],
)
def test_what_takes_the_place_of_a_refused_operation(
    row: int, refusal: Refusal, switches: dict[str, bool], becomes: IoType | None, left_out: bool
) -> None:
    responses = Responses(**switches)  # type: ignore[arg-type]
    others = responses.instead(BATCH, row, refusal)
    assert [int(other.io_type[0]) for other in others] == ([] if becomes is None else [becomes])
    assert responses.is_left_out(int(BATCH.io_type[row]), refusal) is left_out


def test_a_row_that_moves_to_a_key_that_exists_takes_its_place() -> None:
    others = Responses(collisions=True).instead(BATCH, MOVE, DUPLICATE)
    assert [int(other.io_type[0]) for other in others] == [IoType.DELETE, IoType.FIELD_COMP]
    assert Responses(override_duplicates=True).instead(BATCH, MOVE, DUPLICATE) == ()


def test_collisions_are_handled_for_the_tables_that_send_names() -> None:
    def of_shop(table: TableName) -> bool:
        return table.owner == "shop"

    shop, other = TableName("shop", "orders"), TableName("hr", "people")
    responses = Responses()
    responses.handle_collisions(True, {"shop.*": of_shop})
    assert (responses.active, responses.collides(shop), responses.collides(other)) == (True, True, False)
    responses.handle_collisions(True)
    responses.handle_collisions(False, {"shop.*": of_shop})
    assert (responses.collides(shop), responses.collides(other)) == (False, True)
    assert responses.collisions_told() == "HANDLECOLLISIONS is on, off for shop.*"
    responses.handle_collisions(False)
    assert (responses.active, responses.collides(other)) == (False, False)
