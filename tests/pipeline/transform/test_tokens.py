"""TOKENS: values added to rows, computed once for many rows."""

from __future__ import annotations

import pytest
from batches import Row, Tx, make_batch
from pipeline.transform.expressions import T, batch_of, image

from ggshell.clock import FakeClock
from ggshell.errors import GgsError, ParameterError, StatementError
from ggshell.language.clauses import TokenValues, parse_clause
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.tokens import TokenStage, compile_tokens
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType
from ggshell.record.user_tokens import decode_user_tokens, encode_user_tokens


def stage(body: str) -> TokenStage:
    found = parse_clause("tokens", body)
    assert isinstance(found, TokenValues)
    clauses = Clauses(tokens=found, source=body, place="e.prm:3")
    return TokenStage(lambda table: compile_tokens(table, clauses, Environment(FakeClock())))


def tokens(batch: ChangeBatch) -> list[dict[str, bytes]]:
    assert batch.user_tokens is not None
    places = zip(batch.user_tokens.start.tolist(), batch.user_tokens.length.tolist(), strict=True)
    return [decode_user_tokens(bytes(batch.buffer[first : first + size])) for first, size in places]


def test_each_row_gets_its_own_values_without_null_or_missing_ones() -> None:
    batch = batch_of([{"id": "1", "name": "a"}, {"id": "2", "name": None}, {"id": "3"}])
    stamped = stage("(n = @STRCAT (name, '!'), twice = @COMPUTE (id * 2), k = 'k')").stamp(batch)
    assert tokens(stamped) == [
        {"n": b"a!", "twice": b"2", "k": b"k"},
        {"twice": b"4", "k": b"k"},
        {"twice": b"6", "k": b"k"},
    ]
    assert [stamped.data(row) for row in range(3)] == [batch.data(row) for row in range(3)]


def test_rows_with_the_same_tokens_share_their_bytes() -> None:
    stamped = stage("(k = 'k')").stamp(batch_of([{"id": str(number)} for number in range(50)]))
    assert stamped.user_tokens is not None
    assert len(set(stamped.user_tokens.start.tolist())) == 1


def test_a_row_keeps_its_existing_tokens() -> None:
    batch = make_batch([Tx(1, [Row(T, IoType.INSERT, image({"id": "1"}), user=encode_user_tokens([("OLD", b"o")]))])])
    assert tokens(stage("(NEW = id)").stamp(batch)) == [{"OLD": b"o", "NEW": b"1"}]


def test_a_before_image_gets_tokens_of_its_own_values() -> None:
    before = Row(T, IoType.FIELD_COMP, image({"id": "1", "name": "old"}), before=True)
    after = Row(T, IoType.FIELD_COMP, image({"id": "1", "name": "new"}))
    assert tokens(stage("(n = name)").stamp(make_batch([Tx(1, [before, after])]))) == [{"n": b"old"}, {"n": b"new"}]


def test_a_table_without_tokens_is_unchanged() -> None:
    batch = batch_of([{"id": "1"}])
    assert TokenStage(lambda _: None).stamp(batch) is batch


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        ("(n = wrong)", StatementError, "has no column wrong"),
        ("(n = name)", ParameterError, "token n has 2001 bytes"),
    ],
)
def test_an_invalid_or_too_long_token_is_refused(body: str, error: type[GgsError], text: str) -> None:
    batch = batch_of([{"id": "1", "name": "x" * 2001}])
    with pytest.raises(error, match=text):
        stage(body).stamp(batch)
