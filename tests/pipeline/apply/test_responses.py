"""The REPERROR response to a refused operation."""

from __future__ import annotations

import pytest
from batches import Row, Tx, make_batch
from pipeline.apply.hand_made import delete, insert, key_update, trail, update

from ggshell.pipeline.apply.error_rules import ErrorRule, Response, Switches, states
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import Refusal, TableMapping, TargetTable
from ggshell.record.image import decode_image, encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName

DUPLICATE, MISSING = Refusal("duplicate", "23505"), Refusal("no row", missing=True)
DISCARD, IGNORE, ABEND = Response.DISCARD, Response.IGNORE, Response.ABEND


@pytest.mark.parametrize(
    ("error", "expected"),
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
def test_errors_are_matched_by_sqlstate_or_older_error_number(error: str, expected: tuple[str, ...]) -> None:
    assert states(error) == expected


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
def test_the_last_rule_for_an_error_takes_precedence_over_the_default(
    rules: list[ErrorRule], refusal: Refusal, response: Response
) -> None:
    assert Responses(rules).to(refusal).response is response


def test_without_rules_there_is_no_response() -> None:
    assert not Responses([ErrorRule("1", ABEND)]).active
    assert Responses([ErrorRule("1", DISCARD)]).active
    assert Responses(switches=Switches(collisions=True)).active
    assert Responses(own_switches=[("b.t", Switches(insert_missing=True))]).active


BATCH = trail([Tx(1, [insert(1), update(1, "u"), key_update(1, 2), delete(2)])])[0]
INSERT, UPDATE, MOVE, DELETE = range(4)
COLLISIONS = Switches(collisions=True)


@pytest.mark.parametrize(
    ("row", "refusal", "switches", "becomes", "left_out"),
    [
        (INSERT, DUPLICATE, COLLISIONS, IoType.FIELD_COMP, False),
        (INSERT, DUPLICATE, Switches(override_duplicates=True), IoType.FIELD_COMP, False),
        (INSERT, Refusal("null", "23502"), COLLISIONS, None, False),
        (UPDATE, MISSING, COLLISIONS, None, True),
        (UPDATE, MISSING, Switches(insert_missing=True), IoType.INSERT, False),
        (UPDATE, MISSING, Switches(override_duplicates=True), None, False),
        (MOVE, MISSING, COLLISIONS, IoType.INSERT, False),
        (DELETE, MISSING, COLLISIONS, None, True),
        (DELETE, MISSING, Switches(insert_missing=True), None, False),
    ],
)
def test_the_replacement_of_a_refused_operation(
    row: int, refusal: Refusal, switches: Switches, becomes: IoType | None, left_out: bool
) -> None:
    responses = Responses(switches=switches)
    others = responses.instead(BATCH, row, refusal)
    assert [int(other.io_type[0]) for other in others] == ([] if becomes is None else [becomes])
    assert responses.is_left_out(int(BATCH.io_type[row]), refusal) is left_out


def test_a_key_update_to_an_existing_key_replaces_that_row() -> None:
    others = Responses(switches=COLLISIONS).instead(BATCH, MOVE, DUPLICATE)
    assert [int(other.io_type[0]) for other in others] == [IoType.DELETE, IoType.FIELD_COMP]
    assert Responses(switches=Switches(override_duplicates=True)).instead(BATCH, MOVE, DUPLICATE) == ()


def test_an_insert_for_an_update_has_what_only_the_before_image_has() -> None:
    """Unchanged values, such as large ones, are in the before image only (LOGALLSUPCOLS)."""
    old, new = encode_image([(0, b"1"), (1, b"large"), (2, b"7")]), encode_image([(0, b"2"), (2, b"8")])
    source = BATCH.tables[0]
    moved = make_batch([Tx(1, [Row(source, IoType.KEY_FIELD_COMP, join_key_update(old, new))])])
    (other,) = Responses(switches=COLLISIONS).instead(moved, 0, MISSING)
    assert decode_image(other.images(0)[1]) == [(0, b"2"), (1, b"large"), (2, b"8")]


def mapped(schema: str, switches: Switches | None = None) -> TableMapping:
    target = TargetTable(TableName(schema, "t"), (), (), ())
    return TableMapping(BATCH.tables[0], target, (), (), False, switches=switches)


def test_collisions_are_handled_for_the_tables_in_the_predicate() -> None:
    def of_shop(table: TableName) -> bool:
        return table.owner == "shop"

    shop, other = mapped("shop"), mapped("hr")
    responses = Responses()
    responses.handle_collisions(True, {"shop.*": of_shop})
    assert (responses.active, responses.collides(shop), responses.collides(other)) == (True, True, False)
    responses.handle_collisions(True)
    responses.handle_collisions(False, {"shop.*": of_shop})
    assert (responses.collides(shop), responses.collides(other)) == (False, True)
    assert responses.collisions_told() == "HANDLECOLLISIONS is on, off for shop.*"
    responses.handle_collisions(False)
    assert (responses.active, responses.collides(other)) == (False, False)


def test_the_switches_of_a_map_take_precedence_until_a_request_changes_them() -> None:
    shop, other = mapped("shop", COLLISIONS), mapped("hr", Switches(insert_missing=True))
    responses = Responses(own_switches=[("shop.t", COLLISIONS), ("hr.t", Switches(insert_missing=True))])
    assert (responses.collides(shop), responses.collides(other)) == (True, False)
    assert responses.collisions_told() == "HANDLECOLLISIONS is off, on for shop.t"
    assert [len(responses.instead(BATCH, UPDATE, MISSING, each)) for each in (shop, other)] == [0, 1]
    assert responses.is_left_out(IoType.FIELD_COMP, MISSING, shop)
    responses.handle_collisions(False)
    assert (responses.collides(shop), responses.collides(other)) == (False, False)
    assert responses.collisions_told() == "HANDLECOLLISIONS is off"
    assert responses.active
